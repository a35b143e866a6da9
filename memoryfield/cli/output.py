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
    """Write *value* as JSON; characters stay as they are, lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    say(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
