"""Verbs that carry fields between places: export, import."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE
from memoryfield.cli.output import say, say_json


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "export",
        _export,
        "write a field as a .memoryfield.zip with a .sha256 file beside it",
        "memoryfield export notes/ notes.memoryfield.zip",
        "memoryfield export notes/ backup/ --indexes",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("target", type=Path, help="file to write, or a directory for it")
    verb.add_argument("--pages", nargs="+", metavar="NAME", help="only these pages")
    verb.add_argument("--indexes", action="store_true", help="take the vector indexes along")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "import",
        _import,
        "unpack an archive into a new directory, or add the pages of a folder to a field",
        "memoryfield import notes.memoryfield.zip notes/",
        "memoryfield import folder-of-pages/ notes/",
    )
    verb.add_argument("source", type=Path, help=".memoryfield.zip, or a folder of pages")
    verb.add_argument("target", type=Path, help="new directory for an archive; field for a folder")
    verb.add_argument("--sha256", help="refuse the archive unless it has this sha256")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _export(options: argparse.Namespace) -> int:
    from memoryfield.opening import open_field

    report = open_field(options.field).export(options.target, names=options.pages, indexes=options.indexes)
    say_json(report.to_dict()) if options.json else say(repr(report))
    return DONE


def _import(options: argparse.Namespace) -> int:
    from memoryfield.opening import import_field

    report = import_field(options.source, options.target, sha256=options.sha256)
    say_json(report.to_dict()) if options.json else say(repr(report))
    return DONE
