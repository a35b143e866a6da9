"""The body of a page as blocks, and its sentences with their places: what a merge moves and what an account counts.

Blocks are headings, paragraphs, lists, tables, code, quotations, HTML and reference definitions, in the order in which
they stand; put together again they are the body, character for character. Line ends are LF here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import dedent
from typing import Literal

from memoryfield.curate.sentences import sentence_key, split_sentences
from memoryfield.format.markdown import Heading, Line, headings, lines

Kind = Literal["heading", "paragraph", "bullets", "numbers", "table", "code", "quote", "html", "definition", "rule"]

_MARKER = re.compile(r"([ \t]*)(?:([-*+])|(\d{1,9})[.)])(?:[ \t]+|\Z)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_DEFINITION = re.compile(r" {0,3}\[\^?[^\[\]\n]{1,200}\]:")
_HTML = re.compile(r" {0,3}<(?:!--|/?[a-zA-Z][\w-]*[\s>/])")
_QUOTE = re.compile(r" {0,3}>")
_QUOTE_MARKS = re.compile(r"[ \t]*(?:>[ ]?)+")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_CELLS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Sentence:
    """A sentence in its place.

    Attributes:
        text: As it stands there; for a table row its cells, for code the whole block.
        key: What equal sentences share.
        start: First character of it in the block or body that was read.
        end: Character behind it.
        kind: Kind of the block it stands in.
        heading: Text of the heading above it; empty before the first one.
    """

    text: str
    key: str
    start: int
    end: int
    kind: Kind
    heading: str = ""


@dataclass(frozen=True)
class Block:
    """A block of a body.

    Attributes:
        kind: What it is.
        text: Its characters, without the line end behind it.
        gap: What stands between it and the block before: line ends and blanks.
        level: Level of a heading, else 0.
        title: Text of a heading, else empty.
        origin: Name of the page that it comes from.
    """

    kind: Kind
    text: str
    gap: str = "\n\n"
    level: int = 0
    title: str = ""
    origin: str = ""

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the block, places counted from its first character."""
        return tuple(_sentences(self))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of its sentences."""
        return tuple(sentence.key for sentence in self.sentences)

    @cached_property
    def nested(self) -> frozenset[tuple[str, ...]]:
        """The keys of nested list items, each behind the keys of the items that it stands under."""
        return frozenset(_nested(self)) if self.kind in ("bullets", "numbers") else frozenset()

    @property
    def leads_in(self) -> bool:
        """Whether it announces what follows: it ends in a colon or a question."""
        return self.kind == "paragraph" and self.text.rstrip().rstrip("*_").endswith((":", "?", "：", "？"))

    def with_text(self, text: str) -> Block:
        """Return the block with other text."""
        return replace(self, text=text)


def read_blocks(body: str, origin: str = "") -> tuple[list[Block], str]:
    """Return the blocks of a body, and what stands behind the last one."""
    blocks: list[Block] = []
    position = 0
    for kind, start, end, heading in _spans(body):
        level, title = (heading.level, heading.text) if heading is not None else (0, "")
        blocks.append(Block(kind, body[start:end], body[position:start], level, title, origin))
        position = end
    return blocks, body[position:]


def write_blocks(blocks: list[Block], tail: str = "\n") -> str:
    """Return the body that the blocks make."""
    parts = []
    for i, block in enumerate(blocks):
        apart = i == 0 or "\n" in block.gap or "\r" in block.gap
        parts += [block.gap if apart else "\n\n", block.text]  # what came first once may not be first now
    return "".join(parts) + tail


def closed(block: Block) -> Block:
    """Return a block that swallows nothing put behind it: an open code fence or comment gets its end."""
    text = block.text
    is_open = block.kind == "html" and text.lstrip().startswith("<!--") and "-->" not in text
    if is_open or block.kind in ("code", "bullets", "numbers"):
        found = list(lines(f"{text}\n\n."))
        if found[-1].in_code:
            opener = next(line for line in found if all(other.in_code for other in found[found.index(line) :]))
            fence = _FENCE.search(opener.text)
            text += f"\n{' ' * fence.start(1)}{fence[1]}" if fence is not None else ""
    if is_open:
        text += "\n-->"
    if text != block.text:
        return block.with_text(text)
    return block


def body_sentences(body: str) -> list[Sentence]:
    """Return every sentence of a body, headings included, places counted from its first character."""
    found = []
    heading = ""
    offset = 0
    for block in read_blocks(body)[0]:
        offset += len(block.gap)
        heading = block.title if block.kind == "heading" else heading
        for s in block.sentences:
            found.append(replace(s, start=s.start + offset, end=s.end + offset, heading=heading))
        offset += len(block.text)
    return found


def list_items(block: Block) -> list[str]:
    """Return the items of a list, each with its marker and everything nested in it."""
    found: list[str] = []
    base = -1
    for line in lines(block.text):
        marker = None if line.in_code else _MARKER.match(line.text)
        width = len(marker[1].expandtabs(4)) if marker is not None else -1
        base = width if base < 0 else base
        if found and (marker is None or width > base + 1):
            found[-1] += block.text[line.start : line.end]
        else:
            found.append(block.text[line.start : line.end])
    return [item.rstrip("\n") for item in found]


def _nested(block: Block) -> Iterator[tuple[str, ...]]:
    markers = [
        (line.start, len(marker[1].expandtabs(4)))
        for line in lines(block.text)
        if not line.in_code and (marker := _MARKER.match(line.text)) is not None
    ]
    above: list[tuple[int, str]] = []  # indentation and key of the items around the present one
    number = -1
    for sentence in block.sentences:
        before = number
        while number + 1 < len(markers) and markers[number + 1][0] <= sentence.start:
            number += 1
        indent = markers[number][1] if number >= 0 else 0
        if number != before:
            while above and above[-1][0] >= indent:
                above.pop()
        if above and number != before:
            yield (*(key for _, key in above), sentence.key)
        if number != before:
            above.append((indent, sentence.key))


def table_parts(block: Block) -> tuple[str, list[str]]:
    """Return the heading rows of a table (two lines) and its other rows."""
    rows = block.text.split("\n")
    return "\n".join(rows[:2]), rows[2:]


# -- cutting into blocks ----------------------------------------------------------------------------------------------


def _spans(body: str) -> Iterator[tuple[Kind, int, int, Heading | None]]:
    """Yield kind, first character, character behind the last one, and the heading, of each block."""
    titles = {heading.start: heading for heading in headings(body)}
    all_lines = list(lines(body))
    i = 0
    while i < len(all_lines):
        line = all_lines[i]
        if not line.text.strip() and not line.in_code:
            i += 1
            continue
        title = titles.get(line.start)
        if title is not None:
            j = i
            while j < len(all_lines) and all_lines[j].end <= title.end:
                j += 1
            kind: Kind = "heading"
        else:
            kind, j = _block(all_lines, i, titles)
        last = all_lines[j - 1]
        yield kind, line.start, last.start + len(last.text), title
        i = j


def _block(all_lines: list[Line], i: int, titles: dict[int, Heading]) -> tuple[Kind, int]:
    """Return the kind of the block that begins in line *i*, and the line behind it."""
    line = all_lines[i]
    marker = _MARKER.match(line.text)
    if _RULE.match(line.text) and not line.in_code:
        return "rule", i + 1
    if marker is not None and (not line.in_code or marker[0].strip()):
        return ("bullets" if marker[2] else "numbers"), _list_end(all_lines, i, titles, bool(marker[2]))
    if line.in_code:
        return "code", _while(all_lines, i, lambda other: other.in_code)
    if line.text.startswith(("    ", "\t")):
        return "code", _while(all_lines, i, lambda other: other.text.startswith(("    ", "\t")) and not other.in_code)
    if _DEFINITION.match(line.text):
        return "definition", i + 1
    if _HTML.match(line.text):
        if line.text.lstrip().startswith("<!--"):
            j = i
            while j < len(all_lines) - 1 and "-->" not in all_lines[j].text:
                j += 1
            return "html", j + 1
        return "html", _while(all_lines, i, lambda other: bool(other.text.strip()))
    if _QUOTE.match(line.text):
        return "quote", _while(all_lines, i, lambda other: _QUOTE.match(other.text) is not None)
    if "|" in line.text and i + 1 < len(all_lines) and _is_delimiter(all_lines[i + 1]):
        return "table", _while(all_lines, i, lambda other: "|" in other.text and not other.in_code)
    j = i + 1
    while j < len(all_lines) and not _interrupts(all_lines, j, titles):
        j += 1
    return "paragraph", j


def _while(all_lines: list[Line], i: int, holds: Callable[[Line], bool]) -> int:
    j = i + 1
    while j < len(all_lines) and holds(all_lines[j]):
        j += 1
    return j


def _is_delimiter(line: Line) -> bool:
    return "-" in line.text and _DELIMITER.match(line.text) is not None and not line.in_code


def _interrupts(all_lines: list[Line], j: int, titles: dict[int, Heading]) -> bool:
    """Whether a line ends the paragraph above it."""
    line = all_lines[j]
    if line.in_code or not line.text.strip() or line.start in titles or _QUOTE.match(line.text):
        return True
    if _RULE.match(line.text) or line.text.lstrip().startswith("<!--"):
        return True
    if "|" in line.text and j + 1 < len(all_lines) and _is_delimiter(all_lines[j + 1]):
        return True
    marker = _MARKER.match(line.text)
    indented = marker is not None and len(marker[1]) > 3
    return marker is not None and not indented and bool(marker[2] or marker[3] == "1") and marker.end() < len(line.text)


def _list_end(all_lines: list[Line], i: int, titles: dict[int, Heading], bullets: bool) -> int:
    first = _MARKER.match(all_lines[i].text)
    base = len(first[1].expandtabs(4)) if first is not None else 0
    j = i + 1
    blank = False
    while j < len(all_lines):
        line = all_lines[j]
        if not line.text.strip() and not line.in_code:
            blank = True
            j += 1
            continue
        indent = len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip())
        marker = _MARKER.match(line.text) if not line.in_code or not blank else None
        inside = indent > base + 1 or (line.in_code and all_lines[j - 1].in_code)
        if not inside:
            if line.start in titles or _RULE.match(line.text):
                break
            if marker is not None and not line.in_code:
                if bool(marker[2]) != bullets:
                    break
            elif blank or line.in_code or _QUOTE.match(line.text):
                break
        elif line.start in titles:
            break
        blank = False
        j += 1
    while j > i + 1 and not all_lines[j - 1].text.strip() and not all_lines[j - 1].in_code:
        j -= 1
    return j


# -- cutting into sentences -------------------------------------------------------------------------------------------


def _sentences(block: Block) -> Iterator[Sentence]:
    if block.kind == "rule":
        return
    if block.kind == "heading":
        if block.title.strip():
            yield Sentence(block.title, sentence_key(block.title), 0, len(block.text), "heading")
    elif block.kind == "code":
        yield Sentence(block.text, _code_key(block.text), 0, len(block.text), block.kind)
    elif block.kind in ("definition", "html"):
        key = sentence_key(block.text.rstrip().removesuffix("-->").rstrip("`~ \n"))
        yield Sentence(block.text, key, 0, len(block.text), block.kind)
    elif block.kind == "table":
        yield from _rows(block)
    else:
        for start, end, in_code in _leaves(block):
            if in_code:
                text = block.text[start:end]
                yield Sentence(text, _code_key(text), start, end, block.kind)
                continue
            for first, last in split_sentences(block.text[start:end]):
                text = block.text[start + first : start + last]
                yield Sentence(text, sentence_key(text), start + first, start + last, block.kind)


def _rows(block: Block) -> Iterator[Sentence]:
    offset = 0
    for number, row in enumerate(block.text.split("\n")):
        cells = [cell.strip() for cell in _CELLS.split(row.strip().removeprefix("|").removesuffix("|"))]
        if number != 1 and any(cells):
            key = "row\n" + " | ".join(sentence_key(cell) for cell in cells)
            yield Sentence(" | ".join(cells), key, offset, offset + len(row), "table")
        offset += len(row) + 1


def _code_key(text: str) -> str:
    """Return code as it is compared: indentation counts, that of the whole and the closing fence do not."""
    rows = [_QUOTE_MARKS.sub("", row).rstrip() for row in text.split("\n")]
    fence = _FENCE.search(rows[0])
    if fence is not None and _ends_code(rows, fence[1]):
        rows.pop()
    return "code\n" + dedent("\n".join([rows[0].lstrip(), dedent("\n".join(rows[1:]))]))


def _ends_code(rows: list[str], fence: str) -> bool:
    last = rows[-1].strip()
    return len(rows) > 1 and last.startswith(fence) and not last.strip(fence[0])


def _leaves(block: Block) -> Iterator[tuple[int, int, bool]]:
    """Yield the pieces of a list or quotation that hold no line of another item, no blank line, or are code."""
    if block.kind == "paragraph":
        yield 0, len(block.text), False
        return
    start = end = 0
    in_code = False
    for line in lines(block.text):
        text = line.text.lstrip(" \t>") if block.kind == "quote" else line.text
        marker = None if line.in_code else _MARKER.match(text)
        begins = marker is not None or line.in_code != in_code or not (text.strip() or line.in_code)
        if begins and end > start:
            yield start, end, in_code
        if begins:
            skipped = len(line.text) - len(text) + (marker.end() if marker is not None else 0)
            start = line.start + skipped
        end = line.start + len(line.text)
        in_code = line.in_code
    if end > start:
        yield start, end, in_code
