"""A frontmatter block's YAML as a tree of text, with the place of every value.

Every scalar is the text that stands there: no dates, numbers or booleans are guessed, tags are ignored. The tree is
built from parser events with an own stack, so that no input can exhaust the interpreter's or C's stack, and within
limits, so that no input can grow in memory. What the tree means for a page is decided in ``frontmatter.py``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

MOST_ALIASES = 16
DEEPEST = 32  # collections within collections
MOST_VALUES = 10_000  # keys, values and items together; bounds the time
LONGEST_EXPANDED = 256 * 1024  # characters, once aliases are followed

# libyaml where PyYAML was built with it: about eight times as fast, and the same events.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_BREAK = re.compile(r"\r\n|\n|\r")
# libyaml compares each %TAG with all before it; a block has no use for directives.
_DIRECTIVE = re.compile(r"(?:\A|[\n\r\x85\u2028\u2029])%(?:TAG|YAML)")
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class BlockError(Exception):
    """The block is not YAML, or beyond the limits.

    Attributes:
        message: What is wrong.
        index: Where, in characters from the start of the block.
    """

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


class Node:
    """One value of the block and its place.

    Attributes:
        kind: ``scalar``, ``sequence``, ``mapping`` or ``alias``.
        value: What it says.
        start: First character, an anchor or tag included.
        end: Behind its last character; for a block collection behind its last inner value.
        style: Of a scalar: ``'``, ``"``, ``|``, ``>`` or empty for a plain one; of a collection ``flow`` or ``block``.
        marked: An anchor or a tag stands before it.
        items: Of a sequence.
        entries: Key and value, of a mapping.
        height: Levels of collections from here downwards.
        weight: Characters of the value once aliases are followed.
    """

    __slots__ = ("end", "entries", "height", "items", "kind", "marked", "start", "style", "value", "weight")

    def __init__(self, kind: str, value: Value, start: int, end: int, style: str, marked: bool) -> None:
        self.kind = kind
        self.value = value
        self.start = start
        self.end = end
        self.style = style
        self.marked = marked
        self.items: list[Node] = []
        self.entries: list[tuple[Node, Node]] = []
        self.height = 0
        self.weight = len(value) + 1


@dataclass(frozen=True)
class Tree:
    """What a block holds.

    Attributes:
        root: Its value; None for a block with nothing but blanks and comments.
        duplicates: Keys that stand twice in one mapping, and where the last one begins, which is the one that counts.
    """

    root: Node | None
    duplicates: Mapping[str, int]


def read_tree(text: str) -> Tree:
    """Read the text between the fences.

    Raises:
        BlockError: It is not YAML, more than one document, too deep, or plays with aliases.
    """
    directive = _DIRECTIVE.search(text)
    if directive is not None:
        raise BlockError("a YAML directive (%), which frontmatter cannot have", directive.end() - 1)
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.reader.ReaderError:
        found = _UNREADABLE.search(text)
        index = found.start() if found is not None else 0
        shown = f"U+{ord(text[index]):04X}" if found is not None else "a character"
        raise BlockError(f"{shown} is not allowed in YAML", index) from None
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise BlockError(f"not readable as YAML ({type(error).__name__})", 0) from None
    return Tree(builder.root, builder.duplicates)


def line_of(text: str, index: int) -> int:
    """Return the line in which a character stands, from 0."""
    return lines_of(text, [index])[0]


def lines_of(text: str, indexes: Iterable[int]) -> list[int]:
    """Return the lines in which characters stand, from 0; lines end in LF, CRLF or CR as in Markdown."""
    starts = [match.end() for match in _BREAK.finditer(text)]
    return [bisect_right(starts, index) for index in indexes]


class _Builder:
    """Takes parser events one by one and grows the tree."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.duplicates: dict[str, int] = {}
        self._open: list[Node] = []
        self._keys: list[Node | None] = []  # beside _open: the key that waits for its value
        self._anchors: dict[str, Node] = {}
        self._aliases = 0
        self._documents = 0
        self._values = 0

    def take(self, event: Any) -> None:
        kind = type(event)
        start = event.start_mark.index
        if kind is yaml.ScalarEvent:
            value = event.value
            if not value.isascii() and _SURROGATE.search(value):  # the pure Python loader lets "\ud800" through
                value = _SURROGATE.sub("\ufffd", value)
            marked = event.anchor is not None or event.tag is not None
            node = Node("scalar", value, start, event.end_mark.index, event.style or "", marked)
            self._remember(event.anchor, node)
            self._place(node)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(self._open) == DEEPEST:
                raise BlockError(f"nested deeper than {DEEPEST} levels", start)
            marked = event.anchor is not None or event.tag is not None
            mapping = kind is yaml.MappingStartEvent
            style = "flow" if event.flow_style else "block"
            node = Node("mapping" if mapping else "sequence", {} if mapping else [], start, -1, style, marked)
            self._remember(event.anchor, node)
            self._open.append(node)
            self._keys.append(None)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._close(event.end_mark.index)
        elif kind is yaml.AliasEvent:
            self._place(self._alias(event.anchor, start, event.end_mark.index))
        elif kind is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                raise BlockError("a second YAML document begins inside the block", start)

    def _remember(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _alias(self, anchor: str, start: int, end: int) -> Node:
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            raise BlockError(f"more than {MOST_ALIASES} YAML aliases (*)", start)
        target = self._anchors.get(anchor)
        if target is None:
            raise BlockError(
                f"*{anchor} is read as a YAML alias, but nothing has the anchor &{anchor}: quote the value", start
            )
        if target.end < 0:
            raise BlockError(f"the YAML alias *{anchor} stands inside its own anchor", start)
        if len(self._open) + target.height > DEEPEST:
            raise BlockError(f"nested deeper than {DEEPEST} levels through aliases", start)
        node = Node("alias", target.value, start, end, "", True)
        node.height = target.height
        node.weight = target.weight
        return node

    def _place(self, node: Node) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            raise BlockError(f"more than {MOST_VALUES:,} keys and values", node.start)
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if parent.kind == "sequence":
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is not None:
            parent.entries.append((key, node))
            self._keys[-1] = None
        elif isinstance(node.value, str):
            self._keys[-1] = node
        elif node.style == "flow" and node.kind == "mapping":
            raise BlockError("braces as a key: an unfilled {{placeholder}}, or a value that needs quotes", node.start)
        else:
            raise BlockError("a list or mapping cannot be a key", node.start)

    def _close(self, end: int) -> None:
        node = self._open.pop()
        self._keys.pop()
        if node.kind == "mapping":
            fields: dict[str, Value] = {}
            for key, value in node.entries:
                assert isinstance(key.value, str)
                if key.value in fields:
                    self.duplicates[key.value] = key.start
                fields[key.value] = value.value
                node.weight += key.weight + value.weight
                node.height = max(node.height, value.height)
            node.value = fields
            last = node.entries[-1][1].end if node.entries else node.start
        else:
            node.value = [item.value for item in node.items]
            node.weight += sum(item.weight for item in node.items)
            node.height = max((item.height for item in node.items), default=0)
            last = node.items[-1].end if node.items else node.start
        node.height += 1
        node.end = end if node.style == "flow" else last
        if self._aliases and node.weight > LONGEST_EXPANDED:
            raise BlockError("YAML aliases blow the block up", node.start)
        self._place(node)


def _explained(error: yaml.MarkedYAMLError, text: str) -> BlockError:
    """Turn the parser's words into ours where the cause is a common one."""
    problem = str(error.problem or error.context or "not readable as YAML")
    mark = error.problem_mark or error.context_mark
    opened = str(error.context or "")
    # An opened bracket or quote is noticed lines later; its own line is the one to look at.
    unclosed = "bracket" if "flow" in opened else "quotation mark" if "quoted" in opened else ""
    if unclosed and error.context_mark is not None:
        mark = error.context_mark
    index = min(mark.index if mark is not None else 0, len(text))
    following = text[index : index + 1]
    if "<<<<<<< " in text:
        problem, index = "a merge conflict is not resolved", text.index("<<<<<<< ")
    elif "nesting" in problem:
        problem = f"nested deeper than {DEEPEST} levels"
    elif unclosed and "escape" not in problem:
        problem = (
            f"an opening {unclosed} has no closing one, or what stands between is no list: close it or quote the value"
        )
    elif following == "\t":
        problem = "a tab where YAML allows only spaces"
    elif following and following in "`@":
        problem = f"a value cannot begin with {following}: put it in quotes"
    elif following == "*" or "alphabetic or numeric" in problem:
        problem = "a value that begins with * or & must stand in quotes"
    elif "mapping values are not allowed" in problem:
        problem = "a colon inside a value: put the value in quotes"
    elif problem.startswith(("did not find expected", "expected <block end>")):
        problem = "text behind a closing bracket or quotation mark, or a wrong indentation: put the value in quotes"
    return BlockError(problem, index)
