"""Snippets: the piece of a page that shows why it was found.

The few pages to show are put into a full-text table in memory, so that words match as they do in the keyword index
and no file has to be in step.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from memoryfield.display import Marked
from memoryfield.index.columns import COLUMNS, CREATE_WORDS, page_texts
from memoryfield.index.words import display_text, fold, query_terms, starts

if TYPE_CHECKING:
    from memoryfield.format.page import Page

SNIPPET_LENGTH = 240  # characters
_SHOWN = ("body", "summary", "other", "title")  # a name is shown beside the snippet anyway
# A long text is searched in pieces, some at a time: the time that SQLite takes to mark words grows with their number
# times the length of the text.
_PIECE = 8192  # characters
_PIECES_AT_ONCE = 8
_OVERLAP = 24  # characters, where a piece does not end at a blank; a word cut in two is whole in the next piece
_INSERT = "INSERT INTO words (rowid, body) VALUES (?, ?)"  # all pieces into one column: which one makes no difference
# The piece with most of the words, the rarest counting most; among the pieces from a number on.
_BEST = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? ORDER BY rank, rowid LIMIT 1"
# Words that stand in nearly every English text, and so show nothing; they are marked where nothing else was asked for.
_PLAIN_WORDS = frozenset(
    query_terms(
        "a an and are as at be been but by can could did do does for from had has have he her him his how i if in into "
        "is it its me my not of on or our she should so than that the their them then there these they this those to "
        "up us was we were what when where which who why will with would you your"
    )
)
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
        return Marked(self.text, self.spans).between(opening, closing)


def page_snippets(query: str, pages: Sequence[Page]) -> dict[str, Snippet]:
    """Return for each page the piece that holds most of the words of *query*, by page name.

    It is taken from the body if that holds any, else from summary, other frontmatter or title. A page with none of the
    words gives its summary. Words such as *the* and *of* are left out, unless the question has no others.
    """
    asked = query_terms(query)
    terms = [term for term in asked if term not in _PLAIN_WORDS] or asked
    if not terms or not pages:
        return {page.name: plain_snippet(page) for page in pages}
    found: dict[str, Snippet] = {}
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(CREATE_WORDS)
        finder = _Finder(connection, " OR ".join(terms))
        for page in pages:
            texts = dict(zip(COLUMNS, page_texts(page), strict=True))
            tried = (finder.snippet(texts[column]) for column in _SHOWN)
            found[page.name] = next((snippet for snippet in tried if snippet is not None), None) or plain_snippet(page)
    return found


def plain_snippet(page: Page) -> Snippet:
    """Return the beginning of a page, or its summary, as a snippet without marked words."""
    return Snippet(" ".join((page.summary or page.body[: 4 * SNIPPET_LENGTH]).split())[:SNIPPET_LENGTH])


class _Finder:
    """Finds the words of one question in texts.

    Args:
        connection: Holds an empty table ``words``.
        expression: The question for FTS5.
    """

    def __init__(self, connection: sqlite3.Connection, expression: str) -> None:
        self._connection = connection
        self._expression = expression
        self._used = 0
        self._marked = f"SELECT highlight(words, {COLUMNS.index('body')}, '{OPEN}', '{CLOSE}') FROM words"
        self._marked += " WHERE words MATCH ? AND rowid = ?"

    def snippet(self, text: str) -> Snippet | None:
        """Return the best stretch of the first part of *text* that holds any of the words; None if none does."""
        shown = display_text(text)
        pieces = _pieces(shown)
        while some := list(islice(pieces, _PIECES_AT_ONCE)):
            first, self._used = self._used, self._used + len(some)
            rows = ((first + number, fold(shown[start:end])) for number, (start, end) in enumerate(some))
            self._connection.executemany(_INSERT, rows)
            best = self._connection.execute(_BEST, (self._expression, first)).fetchone()
            if best is not None:
                start, end = some[best[0] - first]
                (marked,) = self._connection.execute(self._marked, (self._expression, best[0])).fetchone()
                matches = _matches(shown[start:end], marked)
                return _window(shown, [(start + begin, start + finish) for begin, finish in matches])
        return None


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the pieces of a text begin and end, one at least; they end at blanks if there are any nearby."""
    start = 0
    while start + _PIECE < len(text):
        end = start + _PIECE
        blank = max(text.rfind(" ", end - 256, end), text.rfind("\n", end - 256, end))
        yield start, blank if blank > 0 else end
        start = blank if blank > 0 else end - _OVERLAP
    yield start, len(text)


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
