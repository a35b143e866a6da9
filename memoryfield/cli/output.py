"""How commands write: text for people, one JSON document for programs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from memoryfield.display import plain


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


def show(result: Any, as_json: bool) -> None:
    """Write a result as people read it, or as JSON."""
    say_json(result.to_dict()) if as_json else say(repr(result))


def say_frame(frame: Any, **words: Any) -> None:
    """Write a frame of pandas; characters in its texts that would act on a terminal are made visible.

    Args:
        frame: The frame.
        words: For its ``to_string``.
    """
    visible = frame.apply(lambda column: column.map(lambda value: plain(value) if isinstance(value, str) else value))
    say(visible.to_string(index=False, **words))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def add_on_secrets(verb: argparse.ArgumentParser) -> None:
    """Add the option that says what becomes of secrets on their way out."""
    verb.add_argument(
        "--on-secrets",
        choices=["warn", "refuse", "ignore"],
        default="warn",
        help="what to do when what leaves holds what looks like keys (default: warn)",
    )


def heed_secrets_of(label: str, field: Any, on_secrets: str) -> None:
    """Warn of secrets in a field that is about to be served, or refuse."""
    from memoryfield.exchange.outward import heed_secrets, secrets_in

    heed_secrets(lambda: [f"{label}: {place}" for place in secrets_in(field.pages())], on_secrets)


def html_target(path: Path) -> Path:
    """Return where an HTML page may be written, its directory made; never over a page or another kind of file."""
    from memoryfield.errors import QueryError
    from memoryfield.format.targets import HTML_STARTS, check_target

    path.parent.mkdir(parents=True, exist_ok=True)
    return check_target(path, HTML_STARTS, what="HTML page", error=QueryError)


def write_html(path: Path, text: str) -> None:
    """Write an HTML page in one step."""
    from memoryfield.format.targets import write_target

    write_target(path, text.encode("utf-8", "backslashreplace"))
