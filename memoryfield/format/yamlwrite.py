"""Values as YAML that PyYAML, and YAML 1.2 readers too, read back as the same text.

A scalar stays plain only where no reader could take it for anything but text; everything is written on one line and
never folded. Where it goes in a page is decided in ``yamledit.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import TypeAlias

from memoryfield.errors import FrontmatterError
from memoryfield.format.dates import date_text
from memoryfield.format.yamlread import DEEPEST, Value

# What callers may give: None inside a list or mapping is YAML's null.
Settable: TypeAlias = (
    "str | bool | int | float | datetime | date | list[Settable] | tuple[Settable, ...] | Mapping[str, Settable] | None"
)

KNOWN_KEYS = ("title", "uuid", "summary", "created", "updated")
LONGEST_KEY = 200  # YAML stops looking for the colon after 1024

# Line breaks of any YAML version, what YAML forbids in a stream, and what no editor shows.
_STRANGE = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufeff\\ufffe\\uffff"
_NEEDS_ESCAPE = re.compile(f"[{_STRANGE}]")
_ESCAPED = re.compile(f'[{_STRANGE}"\\\\]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\x1b": "\\e"}
_PLAIN_BLOCK = re.compile(r"(?:\w|[(/])(?:[^:#]|:(?=\S)|(?<=\S)#)*")
_PLAIN_FLOW = re.compile(r"\w[^:#,?\[\]{}&*!|>'\"%@`]*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_NUMBER = re.compile(r"[g-nq-suvwyG-NQ-SUVWY]|[^\W\d_a-zA-Z]")  # a letter that stands in no number and no date
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nil", "none", "nan", "inf"])
_SURROGATE = re.compile("[\ud800-\udfff]")


def as_value(given: object, depth: int = 0) -> Value:
    """Return what will be read back once *given* is written.

    Raises:
        FrontmatterError: It has no place in frontmatter: another type, no time zone, a half of a surrogate pair.
    """
    if isinstance(given, str):
        if _SURROGATE.search(given):
            raise FrontmatterError("the text holds a lone surrogate, which UTF-8 cannot hold")
        return str(given)
    if given is None or isinstance(given, (bool, int, float, date)):
        return _bare(given)
    if depth >= DEEPEST - 1:
        raise FrontmatterError(f"the value is nested deeper than {DEEPEST} levels")
    if isinstance(given, Mapping):
        return {checked_key(key): as_value(value, depth + 1) for key, value in given.items()}
    if isinstance(given, (list, tuple)):
        return [as_value(item, depth + 1) for item in given]
    kind = type(given).__name__
    raise FrontmatterError(f"a {kind} has no place in frontmatter: give text, a number, a date, a list or a mapping")


def checked_key(key: object) -> str:
    """Return *key* where it can be a key of frontmatter.

    Raises:
        FrontmatterError: It is no text, empty, too long or more than one line.
    """
    if not isinstance(key, str):
        raise FrontmatterError(f"the key {key!r} is not text")
    if not key or key != key.strip() or len(key) > LONGEST_KEY or _NEEDS_ESCAPE.search(key) or _SURROGATE.search(key):
        raise FrontmatterError(f"{key[:60]!r} cannot be a key: give one line of 1 to {LONGEST_KEY} visible characters")
    return str(key)


def dump_value(given: Settable, *, flow: bool = False, style: str = "") -> str:
    """Return *given* as YAML on one line.

    Args:
        given: The value.
        flow: It will stand inside brackets or braces.
        style: Quotes that a text should have if it can: ``'``, ``"``, or empty for the fewest.

    Raises:
        FrontmatterError: As :func:`as_value`.
    """
    value = as_value(given)
    if isinstance(given, str):
        return _quoted(given, flow, style)
    if isinstance(given, date):
        return _quoted(str(value), flow, style)
    if isinstance(given, Mapping):
        return (
            "{" + ", ".join(f"{dump_key(key, flow=True)}: {dump_value(v, flow=True)}" for key, v in given.items()) + "}"
        )
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(dump_value(item, flow=True) for item in given) + "]"
    return str(value)


def dump_key(key: str, *, flow: bool = False) -> str:
    """Return *key* as YAML.

    Raises:
        FrontmatterError: As :func:`checked_key`.
    """
    return _quoted(checked_key(key), flow, "")


def dump_literal(text: str, indent: str, newline: str) -> str | None:
    r"""Return a text of several lines as a ``|`` block without its last line end, or None where that cannot hold it.

    Args:
        text: The text; its lines end in ``\n``.
        indent: Blanks before each line.
        newline: Line end to write.
    """
    bare = text.removesuffix("\n")
    rows = bare.split("\n")
    if not rows[0] or rows[0][0] in " \t" or not rows[-1].strip() or any(_NEEDS_ESCAPE.search(row) for row in rows):
        return None
    header = "|" if text.endswith("\n") else "|-"
    return newline.join([header] + [indent + row if row else "" for row in rows])


def dump_frontmatter(fields: Mapping[str, Settable], newline: str = "\n") -> str:
    """Return a whole block, fences included: the known keys in their order, then the others as given.

    Args:
        fields: Keys and values; a key whose value is None is left out.
        newline: Line end to write.

    Raises:
        FrontmatterError: As :func:`as_value`.
    """
    order = [key for key in KNOWN_KEYS if key in fields] + [key for key in fields if key not in KNOWN_KEYS]
    rows = [f"{dump_key(key)}: {dump_value(fields[key])}" for key in order if fields[key] is not None]
    return newline.join(["---", *rows, "---", ""])


def _bare(given: bool | int | float | date | None) -> str:
    if given is None:
        return "null"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, date):
        try:
            return date_text(given)
        except ValueError as error:
            raise FrontmatterError(str(error)) from None
    if isinstance(given, int):
        try:
            return str(int(given))
        except ValueError:  # Python refuses to write numbers of more than 4300 digits
            raise FrontmatterError("the number is too large to be written") from None
    number = float(given)
    if math.isnan(number):
        return ".nan"
    if math.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    text = repr(number)
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text  # YAML 1.1 asks for the point


def _quoted(text: str, flow: bool, style: str) -> str:
    if style == "" and _is_plain(text, flow):
        return text
    if style == '"' or _NEEDS_ESCAPE.search(text):
        return '"' + _ESCAPED.sub(_escape, text) + '"'
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str, flow: bool) -> bool:
    """Say whether every reader takes the bare text for a text."""
    pattern = _PLAIN_FLOW if flow else _PLAIN_BLOCK
    if pattern.fullmatch(text) is None or text != text.strip() or _NEEDS_ESCAPE.search(text):
        return False
    if text[0].isnumeric():
        return _UUID.fullmatch(text) is not None or _NO_NUMBER.search(text) is not None
    return text[0] != "_" and text.lower() not in _WORDS


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _ESCAPES.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
