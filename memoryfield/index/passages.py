"""Recipe ``passages``: a page cut into pieces that a model with a short input reads to their end.

A page that fits is one passage, the very text of recipe ``page``. A longer one has as its first passage the beginning
of that text, frontmatter included, as such a model reads it; then its body is cut where its author cut it: at headings,
between paragraphs, between sentences, and inside a sentence only where that alone is too long. Each of these pieces is
embedded with the page's title in front.

Tokens are estimated from the characters, not counted by the model's tokenizer, so that a page is cut in the same way
whatever runs the model. The estimate is on the high side: of pieces of prose and code in Latin script nearly all fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryfield.format.markdown import headings, lines
from memoryfield.index.recipes import PAGE, recipe_text

if TYPE_CHECKING:
    from memoryfield.format.page import Page

MOST_PASSAGES = 128  # of one page; what comes after is not embedded
MOST_TOKENS = 220  # of a passage, title included; a model that reads more finds no better what is drowned in the rest
_SPECIAL_TOKENS = 2  # that BERT and its like put around a text
_MARGIN = 0.9  # the estimate of a single text may be too low
_TITLE_CHARACTERS = 160
_FULL_AT_HEADING = 0.4  # so full a passage ends where a heading begins
_FULL_AT_PARAGRAPH = 0.75
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]")
_SENTENCE = re.compile(r"[.!?…]+[\"')\]”’]*\s+|[。！？]+|\n")


@dataclass(frozen=True)
class Passage:
    """A piece of a page.

    Attributes:
        start: Where it begins in the page's body, in characters.
        end: Where it ends there.
        text: What is embedded: the title, and the piece; or the page as it stands.
    """

    start: int
    end: int
    text: str


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a model of the BERT family makes of *text*, rather too many than too few."""
    total = 0
    for match in _PIECE.finditer(text):
        length = match.end() - match.start()
        first = match[0][0]
        if first.isascii() and first.isalpha():
            total += 1 + (length - 1) // 6
        elif first.isascii() and first.isdigit():
            total += 1 + (length - 1) // 3
        else:
            total += 1
    return total


def passage_limit(max_tokens: int | None) -> int:
    """Return how many estimated tokens a passage may have for a model that reads *max_tokens*, its prefix included."""
    if max_tokens is None:
        return MOST_TOKENS
    return max(16, min(MOST_TOKENS, int((max_tokens - _SPECIAL_TOKENS) * _MARGIN)))


def cut_page(page: Page, limit: int, prefix: str = "") -> tuple[list[Passage], bool]:
    """Return the passages of a page in their order, and whether there would have been more.

    Args:
        page: The page.
        limit: Estimated tokens of a passage; see ``passage_limit``.
        prefix: What the model puts before each of them.
    """
    limit = max(16, limit - estimated_tokens(prefix))
    whole = recipe_text(PAGE, page)
    body = page.body
    if estimated_tokens(whole) <= limit and len(whole) >= len(page.text):
        return [Passage(0, len(body), whole)], False
    title = page.title[:_TITLE_CHARACTERS].strip()
    room = max(limit // 2, limit - estimated_tokens(title))
    found = [_beginning(whole, len(page.text) - len(body), limit)]
    for start, end in _ranges(body, room):
        piece = body[start:end].strip()
        if not piece:
            continue
        if len(found) == MOST_PASSAGES:
            return found, True
        found.append(Passage(start, end, f"{title}\n\n{piece}" if title else piece))
    return found, False


def _beginning(whole: str, before_body: int, limit: int) -> Passage:
    """Return as much of a page's text as one passage may have."""
    start, end, _ = next(_pieces(whole, 0, len(whole), limit), (0, len(whole), 0))
    return Passage(0, max(0, end - before_body), whole[start:end].rstrip())


@dataclass(frozen=True)
class _Unit:
    start: int
    end: int
    tokens: int
    at_heading: bool
    at_paragraph: bool


def _ranges(body: str, room: int) -> Iterator[tuple[int, int]]:
    """Yield where passages begin and end; together they are the body."""
    start, filled, end = 0, 0, 0
    for unit in _units(body, room):
        full = filled + unit.tokens > room
        full = full or (unit.at_heading and filled >= _FULL_AT_HEADING * room)
        full = full or (unit.at_paragraph and filled >= _FULL_AT_PARAGRAPH * room)
        if full and filled:
            yield start, end
            start, filled = unit.start, 0
        filled += unit.tokens
        end = unit.end
    if end > start:
        yield start, end


def _units(body: str, room: int) -> Iterator[_Unit]:
    """Yield the sentences and lines of the body, none of them longer than *room*."""
    heads = {heading.start for heading in headings(body)}
    blank = True
    for line in lines(body):
        if not line.text.strip() and not line.in_code:
            yield _Unit(line.start, line.end, 0, False, False)
            blank = True
            continue
        at_heading, at_paragraph = line.start in heads, blank
        blank = False
        for start, end in _sentences(body, line.start, line.end):
            for piece_start, piece_end, tokens in _pieces(body, start, end, room):
                yield _Unit(piece_start, piece_end, tokens, at_heading, at_paragraph)
                at_heading = at_paragraph = False


def _sentences(body: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(body, start, end):
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _pieces(body: str, start: int, end: int, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield parts of a sentence, cut between words where it is longer than *room*."""
    filled, first = 0, start
    for match in _PIECE.finditer(body, start, end):
        at, stop = match.span()
        while at < stop:  # a word of a thousand letters is cut too
            part = min(stop, at + room)
            tokens = estimated_tokens(body[at:part])
            if filled and filled + tokens > room:
                yield first, at, filled
                filled, first = 0, at
            filled += tokens
            at = part
    yield first, end, filled
