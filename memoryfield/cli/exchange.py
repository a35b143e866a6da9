"""Verbs that carry fields between places: export, import."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import add_on_secrets, say, say_json, show


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "export",
        _export,
        "write a field as a .memoryfield.zip with a .sha256 file beside it",
        "memoryfield export notes/ notes.memoryfield.zip",
        "memoryfield export notes/ backup/ --indexes",
        "memoryfield export notes/ MEMORY.md --form memory-file",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("target", type=Path, help="file to write, or a directory for it")
    verb.add_argument("--pages", nargs="+", metavar="NAME", help="only these pages")
    verb.add_argument("--indexes", action="store_true", help="take the vector indexes along")
    verb.add_argument(
        "--form",
        choices=["archive", "vault", "memory-file", "records"],
        default="archive",
        help="an archive, a folder of Markdown, one Markdown file (titles and texts without the rest of the "
        "frontmatter), or JSON lines (default: archive)",
    )
    add_on_secrets(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "import",
        _import,
        "bring in an archive, the pages of a folder, or memories from elsewhere",
        "memoryfield import notes.memoryfield.zip notes/",
        "memoryfield import folder-of-pages/ notes/",
        "memoryfield import vault/ notes/ --dry-run",
        "memoryfield import conversations.json notes/",
    )
    verb.add_argument("source", type=Path, help="archive, folder, MEMORY.md, .json, .jsonl or the zip of an export")
    verb.add_argument("target", type=Path, help="new directory for an archive; field for all else")
    verb.add_argument("--sha256", help="refuse the archive unless it has this sha256")
    verb.add_argument(
        "--kind",
        choices=["auto", "field", "vault", "memory-file", "records", "conversations"],
        default="auto",
        help="what the source is (default: auto, which looks)",
    )
    verb.add_argument("--dry-run", action="store_true", help="write nothing, say what would be done")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _export(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field

    field = open_field(options.field)
    if options.form == "archive":
        report = field.export(
            options.target, names=options.pages, indexes=options.indexes, on_secrets=options.on_secrets
        )
        shown, whole = repr(report), report.to_dict()
    else:
        path = field.export_as(options.form, options.target, names=options.pages, on_secrets=options.on_secrets)
        shown, whole = f"written to {path}", {"path": str(path), "form": options.form}
    say_json(whole) if options.json else say(shown)
    return DONE


def _import(options: argparse.Namespace) -> int:
    from memoryfield.opening import import_field

    report = import_field(
        options.source, options.target, sha256=options.sha256, kind=options.kind, dry_run=options.dry_run
    )
    show(report, options.json)
    brought = [*getattr(report, "items", ()), *getattr(report, "added", ()), *getattr(report, "unchanged", ())]
    return DONE if brought else NOTHING
