"""Unified diffs of pages for people to look at: every control character is visible, so nothing obeys a page's text."""

from __future__ import annotations

import difflib
import re

from memoryfield.display import counted
from memoryfield.format.findings import shown_name

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def unified_diff(filename: str, before: bytes | None, after: bytes | None, new_filename: str | None = None) -> str:
    """Return the change of one page as a unified diff that ends in a line feed.

    Bytes that are no UTF-8 and control characters are shown as escapes.

    Args:
        filename: The page.
        before: Its bytes before; None where there was no page.
        after: Its bytes after; None where it is deleted.
        new_filename: Its name after, where that is another one.
    """
    old, new = shown_name(filename), shown_name(new_filename or filename)
    head = [f"rename from {old}", f"rename to {new}"] if old != new else []
    if before == after:
        return "".join(f"{line}\n" for line in head)
    source = "/dev/null" if before is None else f"a/{old}"
    goal = "/dev/null" if after is None else f"b/{new}"
    body = list(difflib.unified_diff(_lines(before), _lines(after), source, goal, lineterm=""))
    if not body:  # an empty page came or went, or only the last line end did
        body = [f"--- {source}", f"+++ {goal}"]
        sizes = " -> ".join("no page" if raw is None else counted(len(raw), "byte") for raw in (before, after))
        body.append(f"@@ {sizes} @@")
    return "\n".join([*head, *body]) + "\n"


def _lines(raw: bytes | None) -> list[str]:
    if not raw:
        return []
    text = raw.decode("utf-8", "backslashreplace")
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")  # shown as an escape only where line ends are mixed
    lines = [_CONTROL.sub(_visible, line) for line in text.split("\n")]
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\n\\ no line end at the end of the page"]


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
