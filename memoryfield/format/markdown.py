"""As much Markdown as the format needs: lines outside and inside code, headings, the first line of prose.

Not a Markdown parser: nothing is rendered from it. Lines end in LF, CRLF or CR; time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BREAK = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_QUOTE = re.compile(r"(?:[ \t]{0,12}>)*")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:(`{3,})[^`]*|(~{3,}).*)\Z", re.DOTALL)
_CLOSER = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*\Z")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z", re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|(-+))[ \t]*\Z")
_NO_PARAGRAPH = re.compile(r"(?:[ \t]*(?:>|[-*+](?:[ \t]|\Z)|\d{1,9}[.)](?:[ \t]|\Z)|\|))")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_KEY_AND_VALUE = re.compile(r"[A-Za-z_][\w-]*:(?:\s|\Z)")
_NO_PROSE = re.compile(r"[ \t]*(?:\||!\[|<[A-Za-z/!?]|\[[^\]]{1,200}\]:)")
_MARKER = re.compile(r"[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])|\[[ xX]\](?=[ \t]))[ \t]*)*")


class Line(NamedTuple):
    """One line of a text: its characters without the line end, where they begin, where the next line begins."""

    text: str
    start: int
    end: int
    in_code: bool


class Heading(NamedTuple):
    """A heading: level 1 to 6, its text, where its first line begins, where the line after it begins, which form."""

    level: int
    text: str
    start: int
    end: int
    underlined: bool


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of *text*; the lines of fenced code, fences included, are marked."""
    fence = ""
    depth = 0
    for match in _LINE.finditer(text):
        content = match[0].rstrip("\r\n")
        in_code = bool(fence)
        if "```" in content or "~~~" in content or (fence and depth):
            quote = _QUOTE.match(content)
            quoted = quote[0].count(">") if quote is not None else 0
            inner = content[quote.end() :] if quote is not None else content
            if fence and quoted < depth:
                fence, in_code = "", False  # a quotation ends, and the code in it
            if fence:
                closer = _CLOSER.match(inner)
                if closer is not None and closer[1].startswith(fence):
                    fence = ""
            else:
                opener = _FENCE.match(inner)
                if opener is not None:
                    fence, depth, in_code = opener[1] or opener[2], quoted, True
        yield Line(content, match.start(), match.end(), in_code)


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings of *text* (``#`` and underlined), not those in code or in HTML comments."""
    paragraph: list[Line] = []
    comment = False
    for line in lines(text):
        if comment or (not line.in_code and line.text.lstrip().startswith("<!--")):
            comment = "-->" not in line.text
            paragraph = []
            continue
        if line.in_code or not line.text.strip():
            paragraph = []
            continue
        atx = _ATX.match(line.text)
        if atx is not None:
            paragraph = []
            yield Heading(len(atx[1]), _closed(atx[2] or ""), line.start, line.end, False)
            continue
        under = _UNDERLINE.match(line.text)
        if under is not None and paragraph:
            title = " ".join(part.text.strip() for part in paragraph)
            yield Heading(1 if under[1] else 2, title, paragraph[0].start, line.end, True)
            paragraph = []
        elif _RULE.match(line.text) is not None or _starts_other(line.text, bool(paragraph)):
            paragraph = []
        else:
            paragraph.append(line)


def first_heading(text: str) -> str:
    """Return the text of the first heading that has one, or an empty string.

    An underlined paragraph of several lines, or one that reads ``key: value``, is passed over: it is more often
    frontmatter that went wrong than a heading.
    """
    for heading in headings(text):
        if not heading.text:
            continue
        if heading.underlined:
            several = len(_BREAK.findall(text, heading.start, heading.end - 1)) > 1
            if several or _KEY_AND_VALUE.match(heading.text) is not None:
                continue
        return heading.text
    return ""


def first_prose(text: str) -> str:
    """Return the first line of prose, or failing that of a list or quotation, or an empty string."""
    second = ""
    previous = ""
    comment = False
    for line in lines(text):
        stripped = line.text.strip()
        if comment or stripped.startswith("<!--"):
            comment = "-->" not in stripped
            stripped = ""
        under = previous and _UNDERLINE.match(line.text) is not None
        if previous and not under:
            return previous
        previous = ""
        if not stripped or line.in_code or under or _ATX.match(line.text) or _RULE.match(line.text):
            continue
        if _NO_PROSE.match(line.text) is not None:
            continue
        marker = _MARKER.match(line.text)
        if marker is not None and marker[0].strip():
            second = second or line.text[marker.end() :].strip()
        else:
            previous = stripped
    return previous or second


def line_end(raw: bytes) -> str:
    r"""Return the line end of the first line: ``\r\n``, ``\n`` or, in a file without any ``\n``, ``\r``."""
    first = raw.find(b"\n")
    if first > 0 and raw[first - 1 : first] == b"\r":
        return "\r\n"
    return "\r" if first < 0 and b"\r" in raw else "\n"


def _starts_other(line: str, in_paragraph: bool) -> bool:
    """Say whether a line begins a list, quotation, table or, outside of a paragraph, indented code."""
    if line.startswith(("    ", "\t")):
        return not in_paragraph
    return _NO_PARAGRAPH.match(line) is not None


def _closed(text: str) -> str:
    """Return the text of an ATX heading without its closing number signs."""
    text = text.strip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else text
