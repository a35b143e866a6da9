"""Snippets: the piece of a page that shows why it was found.

The few pages to show are put into a full-text table in memory, so that words match as they do in the keyword index
and no file has to be in step.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryfield.index.columns import COLUMNS, CREATE_WORDS, INSERT_WORDS, folded_texts, page_texts
from memoryfield.index.words import display_text, query_terms, starts

if TYPE_CHECKING:
    from memoryfield.format.page import Page

SNIPPET_LENGTH = 240  # characters
_SHOWN = ("body", "summary", "other", "title")  # a name is shown beside the snippet anyway
OPEN, CLOSE = "\x02", "\x03"  # around matches; folded text has no control characters


@dataclass(frozen=True)
class Snippet:
    """A piece of a page, with the places of the words that were asked for.

    Attributes:
        text: One line.
        spans: Where matched words begin and end in *text*, in characters, ascending.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()

    def marked(self, opening: str = "[", closing: str = "]") -> str:
        """Return the text with something around each matched word."""
        parts, last = [], 0
        for start, end in self.spans:
            parts += [self.text[last:start], opening, self.text[start:end], closing]
            last = end
        return "".join([*parts, self.text[last:]])


def page_snippets(query: str, pages: Sequence[Page]) -> dict[str, Snippet]:
    """Return for each page the piece that holds most of the words of *query*, by page name.

    It is taken from the body if that holds any, else from summary, other frontmatter or title. A page with none of the
    words gives its summary.
    """
    found = {page.name: plain_snippet(page) for page in pages}
    terms = query_terms(query)
    if not terms or not pages:
        return found
    marks = ", ".join(f"highlight(words, {number}, '{OPEN}', '{CLOSE}')" for number in range(len(COLUMNS)))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(CREATE_WORDS)
        connection.executemany(INSERT_WORDS, ((number, *folded_texts(page)) for number, page in enumerate(pages)))
        matches = connection.execute(f"SELECT rowid, {marks} FROM words WHERE words MATCH ?", (" OR ".join(terms),))
        for number, *marked in matches:
            texts = dict(zip(COLUMNS, zip(page_texts(pages[number]), marked, strict=True), strict=True))
            for text, with_marks in (texts[column] for column in _SHOWN):
                if OPEN in with_marks:
                    found[pages[number].name] = _marked_snippet(text, with_marks)
                    break
    return found


def plain_snippet(page: Page) -> Snippet:
    """Return the beginning of a page, or its summary, as a snippet without marked words."""
    return Snippet(" ".join((page.summary or page.body[: 4 * SNIPPET_LENGTH]).split())[:SNIPPET_LENGTH])


def _marked_snippet(text: str, marked: str) -> Snippet:
    """Return the best stretch of a text, from its folded form with OPEN and CLOSE around matches."""
    shown = display_text(text)
    return _window(shown, _matches(shown, marked))


def _matches(text: str, marked: str) -> list[tuple[int, int]]:
    """Return the places of matches in *text* from its folded form with marks."""
    before, *pieces = marked.split(OPEN)
    places: list[tuple[int, int]] = []
    offset = len(before)
    for piece in pieces:
        inside, _, after = piece.partition(CLOSE)
        places.append((offset, offset + len(inside)))
        offset += len(inside) + len(after)
    if text.isascii():
        return places
    begins = starts(text)
    found = []
    character = 0
    for start, end in places:
        while begins[character + 1] <= start:
            character += 1
        first = character
        while character + 1 < len(begins) and begins[character] < end:
            character += 1
        found.append((first, character))
        character = max(first, character - 1)
    return found


def _window(text: str, matches: Sequence[tuple[int, int]]) -> Snippet:
    """Cut out the stretch with the most different matched words, at the edges of words, as one line."""
    words = [text[start:end].casefold() for start, end in matches]
    within: Counter[str] = Counter()
    best, best_count, last = matches[0], 0, 0
    for first, (start, _) in enumerate(matches):
        while last < len(matches) and (last == first or matches[last][1] - start <= SNIPPET_LENGTH * 3 // 4):
            within[words[last]] += 1
            last += 1
        if len(within) > best_count:
            best, best_count = (start, matches[last - 1][1]), len(within)
        within[words[first]] -= 1
        if not within[words[first]]:
            del within[words[first]]
    begin = max(0, min(best[0] - SNIPPET_LENGTH // 4, len(text) - SNIPPET_LENGTH))
    finish = min(len(text), begin + SNIPPET_LENGTH)
    if begin and " " in text[begin : best[0]]:
        begin = text.index(" ", begin) + 1
    if finish < len(text) and " " in text[best[1] : finish]:
        finish = text.rindex(" ", best[1], finish)
    return _as_one_line(text, begin, finish, matches)


def _as_one_line(text: str, begin: int, finish: int, matches: Sequence[tuple[int, int]]) -> Snippet:
    characters: list[str] = ["… "] if begin else []
    places: dict[int, int] = {}
    length = sum(map(len, characters))
    blank = True
    for position in range(begin, finish):
        places[position] = length
        character = text[position]
        if character.isspace():
            if blank:
                continue
            character = " "
        blank = character == " "
        characters.append(character)
        length += 1
    places[finish] = length
    shown = "".join(characters).rstrip() + (" …" if finish < len(text.rstrip()) else "")
    inside = [(max(start, begin), min(end, finish)) for start, end in matches if start < finish and end > begin]
    spans = [(places[start], places[end]) for start, end in inside]
    return Snippet(shown, tuple((start, end) for start, end in spans if start < end))
