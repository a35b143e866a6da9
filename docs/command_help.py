"""Writes the reference of the command line from the parser itself, before Sphinx reads its sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "reference" / "cli.md"


def text() -> str:
    """Return the page: each verb with its help."""
    from memoryfield.cli.parser import build_parser

    parser = build_parser()
    parts = ["# Command line", "", "```text", _help(parser), "```", ""]
    verbs = parser._subparsers._group_actions[0].choices  # type: ignore[union-attr]  # argparse tells nobody else
    for name, verb in sorted(verbs.items()):  # type: ignore[union-attr]
        parts += [f"## {name}", "", "```text", _help(verb), "```", ""]
    return "\n".join(parts)


def _help(parser: Any) -> str:
    import os

    os.environ["COLUMNS"] = "100"
    shown: str = parser.format_help()
    return shown.rstrip().replace("usage: __main__.py", "usage: memoryfield")


def _write(_app: Any) -> None:
    TARGET.write_text(text(), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
