"""Reading the frontmatter: where the block stands, what it says, what is wrong with it.

A block opens with ``---`` on the first line of the file (a BOM may come before) and closes with the next line that is
``---``, or ``...`` where what stands before it is a mapping. Blanks may follow either; lines end in LF, CRLF or CR.
What is read is text (FORMAT P7). Nothing here raises, whatever the bytes are. Editing is in ``edit.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from memoryfield.format.dates import parse_date
from memoryfield.format.yamlread import BlockError, Tree, Value, lines_of, read_tree

LONGEST_BLOCK = 64 * 1024  # bytes between the fences
BOM = b"\xef\xbb\xbf"

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r\n|\n|\r)")
_CLOSING = re.compile(rb"[\n\r](---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")
# One line that only a writer of YAML writes: a key, a list item, an opening bracket or brace, a directive.
_YAML_LINE = re.compile(r"(?:\A|[\n\r])[ \t]*(?:[\w\"'][\w \"'./-]{0,80}:(?:\s|\Z)|[-?][ \t]|[\[{]|%[A-Z])")
# A block that stands a little too late, or has a dash too many, to be one.
_NEAR_MISS = re.compile(
    rb"(?:\xef\xbb\xbf|[ \t\r\n])*+(?:<!--(?:[^-]|-(?!->)){0,2000}-->[ \t\r\n]*+){0,4}"
    rb"-{3,}+[ \t]*+[\r\n]+[A-Za-z][\w-]{0,60}[ \t]*:[ \t\r\n]"
)

# Lines of which YAML can make one thing only: `key: value` with a value that needs no second look. What `_STRANGE`
# names is a line break or not allowed in YAML. Each part matches in one way only: a failure costs linear time.
_STRANGE = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufeff\\ufffe\\uffff"
_PLAIN_LINE = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]{0,60}):(?: *| +(?:"
    rf"'([^'{_STRANGE}]*)' *|"
    rf'"([^"\\{_STRANGE}]*)" *|'
    r"\[([A-Za-z0-9_./ ,-]*)\] *|"
    r"([A-Za-z0-9_/.(\xa1-\u2027\u202a-\ud7ff\U00010000-\U0010ffff]"
    rf"[^:#{_STRANGE}]*(?:(?::(?=[^ \r\n])|(?<=[^ ])#)[^:#{_STRANGE}]*)*)"
    r"))(?:\r\n|\n)"
)
_EMPTY: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True)
class Problem:
    """Something to know about a page.

    Attributes:
        message: What is wrong, and where it helps what to do.
        line: Line of the file, from 1, or None.
        rule: Id of the rule in the format's description, such as ``P7``.
    """

    message: str
    line: int | None = None
    rule: str = ""

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class Frontmatter:
    """The frontmatter of a page; empty where there is none.

    Attributes:
        fields: Keys and what they say, as text, lists and mappings of text. Read only.
        error: Why the block cannot be read; the fields are empty then.
        warnings: What is readable but not as it should be.
        present: A block stands there, readable or broken.
        span: First byte of the opening fence, and behind the closing fence; (0, 0) without a block.
        inner: Bytes between the fences; (0, 0) without a block.
        body_start: First byte of the body.
    """

    fields: Mapping[str, Value] = field(default_factory=lambda: _EMPTY)
    error: Problem | None = None
    warnings: tuple[Problem, ...] = ()
    present: bool = False
    span: tuple[int, int] = (0, 0)
    inner: tuple[int, int] = (0, 0)
    body_start: int = 0


def read_frontmatter(raw: bytes) -> Frontmatter:
    """Read the frontmatter of a page's bytes. Never raises."""
    opening = _OPENING.match(raw)
    start = len(BOM) if raw.startswith(BOM) else 0
    if opening is None:
        near = _NEAR_MISS.match(raw)
        if near is None:
            return Frontmatter(body_start=start)
        message = "what looks like frontmatter does not begin with --- on the first line; it is read as body"
        return Frontmatter(body_start=start, warnings=(Problem(message, _line(raw, near.end()) - 1, "P6"),))
    begin = opening.end()
    closing = _CLOSING.search(raw, begin - 1)
    if closing is not None and closing[1] == b"...":
        # YAML's own end of a document closes the block only where a mapping stands before it.
        found = _read_block(raw, start, begin, closing)
        if found.present and found.error is None:
            return found
        closing = _next_dashes(raw, closing.start() + 1)
    if closing is None:
        if _looks_like_yaml(raw, begin, first_only=True):
            message = "the opening --- is never closed; everything is read as body"
            return Frontmatter(body_start=start, warnings=(Problem(message, 1, "P6"),))
        return Frontmatter(body_start=start)
    return _read_block(raw, start, begin, closing)


def _next_dashes(raw: bytes, position: int) -> re.Match[bytes] | None:
    closing = _CLOSING.search(raw, position)
    while closing is not None and closing[1] == b"...":
        closing = _CLOSING.search(raw, closing.start() + 1)
    return closing


def _read_block(raw: bytes, start: int, begin: int, closing: re.Match[bytes]) -> Frontmatter:
    end = max(closing.start() + 1, begin)
    body = Frontmatter(body_start=start)

    def block(fields: Mapping[str, Value], error: Problem | None, warnings: tuple[Problem, ...]) -> Frontmatter:
        return Frontmatter(fields, error, warnings, True, (start, closing.end()), (begin, end), closing.end())

    if end - begin > LONGEST_BLOCK:
        if not _looks_like_yaml(raw, begin, first_only=True):
            return body
        message = f"the block has {end - begin:,} bytes, at most {LONGEST_BLOCK:,} are read"
        return block(_EMPTY, Problem(message, 1, "P8"), ())
    text = raw[begin:end].decode("utf-8", errors="replace")
    fields = _read_plain(text)
    if fields is not None:
        tree = None
    else:
        try:
            tree = read_tree(text)
        except BlockError as error:
            if not _YAML_LINE.search(text):
                return body
            return block(_EMPTY, Problem(error.message, 2 + lines_of(text, [error.index])[0], "P8"), ())
        if tree.root is None:
            fields = {}
        elif isinstance(tree.root.value, dict):
            fields = tree.root.value
        else:
            return body
    return block(MappingProxyType(fields), None, _warnings(fields, tree, text))


def _read_plain(text: str) -> dict[str, Value] | None:
    """Read a block of plain ``key: value`` lines, or return None where YAML must be asked."""
    fields: dict[str, Value] = {}
    position = 0
    match = _PLAIN_LINE.match
    while position < len(text):
        line = match(text, position)
        if line is None:
            return None
        key, single, double, listed, plain = line.groups()
        if key in fields:
            return None
        if plain is not None:
            fields[key] = plain.rstrip(" ")
        elif listed is None:
            fields[key] = single or double or ""
        else:
            items = [item.strip(" ") for item in listed.split(",")]
            if not all(item and item[0].isalnum() for item in items):
                return None
            fields[key] = [*items]
        position = line.end()
    return fields


def _warnings(fields: Mapping[str, Value], tree: Tree | None, text: str) -> tuple[Problem, ...]:
    found = []
    if tree is not None:
        places = lines_of(text, tree.duplicates.values()) if tree.duplicates else []
        for key, line in zip(tree.duplicates, places, strict=True):
            found.append(Problem(f"the key {key[:60]!r} is given more than once; the last one is read", 2 + line, "P7"))
    for key in ("created", "updated"):
        value = fields.get(key)
        if value is None or value == "" or (isinstance(value, str) and parse_date(value) is not None):
            continue
        shown = (
            f"not a date that exists: {value[:40]!r}" if isinstance(value, str) else "not a date but a list or mapping"
        )
        found.append(Problem(f"{key} is {shown}; it is kept as it is", _key_line(text, key), "P7"))
    return tuple(sorted(found, key=lambda problem: problem.line or 0))


def _key_line(text: str, key: str) -> int | None:
    lines = list(re.finditer(rf"(?:\A|[\n\r])[ \t{{]*[\"']?{key}[\"']?[ \t]*:", text))
    return 2 + lines_of(text, [lines[-1].end()])[0] if lines else None


def _looks_like_yaml(raw: bytes, begin: int, first_only: bool = False) -> bool:
    text = raw[begin : begin + LONGEST_BLOCK].decode("utf-8", errors="replace")
    if first_only:
        text = text.lstrip("\r\n \t").partition("\n")[0]
    return _YAML_LINE.search(text) is not None


def _line(raw: bytes, position: int) -> int:
    return 1 + lines_of(raw[:position].decode("latin-1"), [position])[0]
