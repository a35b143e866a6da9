"""How results show themselves: one table, as plain text and as HTML that says the same.

Values come from pages and so from strangers. Text for a terminal has its control and direction characters made
visible; HTML has everything escaped and nothing that a page could turn into markup.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Around marked words while they are escaped: Unicode keeps these for such use, text between programs has none.
_MARKS = ("\ufdd0", "\ufdd1")
_NO_MARKS = {ord(mark): "\ufffd" for mark in _MARKS}
_ALLOWED_FORMAT = {"\u200c", "\u200d"}  # joiners that Persian and emoji need


def plain(value: object, limit: int | None = None) -> str:
    """Return *value* as one line that a terminal shows as it is.

    Args:
        value: Anything; ``None`` becomes an empty string.
        limit: Longest length in characters; a longer text is cut and ends in an ellipsis.
    """
    text = "" if value is None else str(value)
    if limit is not None:
        text = text[: limit * 2 + 16]
    if not (text.isascii() and text.isprintable()):
        text = "".join(_visible(c) for c in text)
    text = " ".join(text.split())
    return text if limit is None or len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def _visible(character: str) -> str:
    if character in "\n\t\r\u2028\u2029\x85\x0b\x0c":
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cs") or (category == "Cf" and character not in _ALLOWED_FORMAT):
        return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    return character


def counted(count: int, what: str, several: str | None = None) -> str:
    """Return a number with its noun: ``1 page``, ``2 pages``, ``1,000 pages``.

    Args:
        count: How many.
        what: The noun for one.
        several: The noun for any other number, where that is not *what* with an ``s``.
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def score_text(score: float) -> str:
    """Return a score with enough digits to be told from zero: ``0.731``, ``0.000012``."""
    if not 0 < abs(score) < 0.0005:
        return f"{score:.3f}"
    return f"{score:.{min(1 - math.floor(math.log10(abs(score))), 12)}f}"


def escape(value: object, limit: int | None = None) -> str:
    """Return *value* as HTML text: escaped, and without the ``$`` and back-ticks that notebooks typeset."""
    text = html.escape(plain(value, limit), quote=True)
    return text.replace("$", "&#36;").replace("`", "&#96;").replace("\\(", "&#92;(").replace("\\[", "&#92;[")


@dataclass(frozen=True)
class Marked:
    """A cell of a table with marked words: in brackets as text, highlighted in HTML.

    Attributes:
        value: The text.
        spans: Where marked words begin and end in it, ascending.
    """

    value: str
    spans: Sequence[tuple[int, int]] = ()

    def __str__(self) -> str:
        return self.between("[", "]")

    def between(self, opening: str, closing: str) -> str:
        """Return the text with something around each marked word."""
        parts, last = [], 0
        for start, end in self.spans:
            parts += [self.value[last:start], opening, self.value[start:end], closing]
            last = end
        return "".join([*parts, self.value[last:]])

    def text(self, limit: int | None = None) -> str:
        """Return the cell for a terminal; see ``plain``."""
        return plain(self, limit)

    def html(self, limit: int | None = None) -> str:
        """Return the cell as HTML text, cut where ``text`` is cut."""
        clean = Marked(self.value.translate(_NO_MARKS), self.spans)
        shown = escape(clean.between(*_MARKS), limit)
        missing = shown.count(_MARKS[0]) - shown.count(_MARKS[1])  # a mark may be cut
        return shown.replace(_MARKS[0], "<mark>").replace(_MARKS[1], "</mark>") + "</mark>" * missing


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under a heading, with notes below; the same content as text and as HTML.

    Attributes:
        heading: One line above the rows.
        columns: Column titles.
        rows: One sequence of values a row, as long as *columns*.
        notes: Lines below the rows.
        right: Titles of the columns that are aligned to the right (numbers).
        widths: Longest length in characters of a column's cells, by title; 60 where not given.
        more: How many rows are not shown.
    """

    heading: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()
    right: frozenset[str] = field(default_factory=frozenset)
    widths: dict[str, int] = field(default_factory=dict)
    more: int = 0

    def _cells(self, show: Callable[[object, int | None], str]) -> list[list[str]]:
        limits = [self.widths.get(title, 60) for title in self.columns]
        return [[show(value, limit) for value, limit in zip(row, limits, strict=True)] for row in self.rows]

    def _footer(self) -> list[str]:
        return ([f"... and {self.more} more"] if self.more else []) + [plain(note) for note in self.notes]

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [plain(self.heading)]
        if self.rows:
            cells = self._cells(plain)
            wide = [max(_width(r[i]) for r in [list(self.columns), *cells]) for i in range(len(self.columns))]
            for row in [list(self.columns), *cells]:
                padded = [_pad(v, wide[i], self.columns[i] in self.right) for i, v in enumerate(row)]
                lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join(lines + ["  " + line for line in self._footer()])

    def html(self) -> str:
        """Return the table as an HTML fragment without scripts, styled by classes and a few inline rules."""
        parts = [
            f'<div class="memoryfield mathjax_ignore tex2jax_ignore"><p><strong>{escape(self.heading)}</strong></p>'
        ]
        if self.rows:
            align = ["right" if title in self.right else "left" for title in self.columns]
            head = "".join(
                f'<th scope="col" style="text-align:{a}">{escape(t)}</th>'
                for t, a in zip(self.columns, align, strict=True)
            )
            body = "".join(
                "<tr>"
                + "".join(f'<td style="text-align:{a}">{cell}</td>' for cell, a in zip(row, align, strict=True))
                + "</tr>"
                for row in self._cells(_html_cell)
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<p><small>{escape(line)}</small></p>" for line in self._footer()]
        return "".join(parts) + "</div>"


def _html_cell(value: object, limit: int | None) -> str:
    return value.html(limit) if isinstance(value, Marked) else escape(value, limit)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
