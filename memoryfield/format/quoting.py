"""The commonest fault of a frontmatter, ``title: Insurance: which one``: it has one reading, and wants quotes."""

from __future__ import annotations

import re

from memoryfield.format.frontmatter import Frontmatter, read_frontmatter

COLON_INSIDE = "a colon inside a value"
_MOST = 50  # values of one page
# A key at the edge and a plain value on its line. What begins with a mark of YAML, or holds " #", has two readings.
_PLAIN = re.compile(rb"([A-Za-z0-9_][A-Za-z0-9_-]*:[ ]+)([^\s\"'\[\]{}|>&*!%#@`,?:-][^\r\n]*?)([ \t]*)")


def quoted(raw: bytes) -> bytes | None:
    """Return a page in whose frontmatter each value with a colon inside stands in quotes.

    None where that is not what ails the frontmatter, or not all of it: then a person has to look.
    """
    lines = raw.splitlines(keepends=True)
    changed: dict[int, tuple[str, str]] = {}
    front = read_frontmatter(raw)
    while front.error is not None:
        row = None if front.error.line is None else front.error.line - 1
        if not front.error.message.startswith(COLON_INSIDE) or row is None or row in changed or len(changed) >= _MOST:
            return None
        line = lines[row]
        end = line[len(line.rstrip(b"\r\n")) :]
        match = _PLAIN.fullmatch(line.removesuffix(end))
        if match is None or b" #" in match[2]:
            return None
        value = match[2].decode("utf-8", errors="surrogateescape")
        lines[row] = match[1] + b"'" + match[2].replace(b"'", b"''") + b"'" + match[3] + end
        changed[row] = (match[1].rstrip(b" :").decode("ascii"), value)
        front = read_frontmatter(b"".join(lines))
    return b"".join(lines) if changed and _reads(front, changed) else None


def _reads(front: Frontmatter, changed: dict[int, tuple[str, str]]) -> bool:
    """Say whether each changed key now says what stood there."""
    return all(front.fields.get(key) == value for key, value in changed.values())
