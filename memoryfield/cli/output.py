"""How commands write: text for people, one JSON document for programs."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(text: str) -> None:
    """Write one line or more to standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """Write a remark to standard error, where it does not mix with results."""
    sys.stderr.write(text + "\n")


def say_json(value: Any) -> None:
    """Write *value* as JSON; text stays readable, characters that would act on a terminal are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    if not text.isascii():
        text = "".join(c if c.isascii() or c.isprintable() else _escaped(c) for c in text)
    say(text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
