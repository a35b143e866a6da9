"""The verb that puts embedding models side by side: compare."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import html_target, say, say_json, write_html


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "compare",
        _compare,
        "compare embedding models on a field: agreement, retrieval, cost",
        "memoryfield compare notes/ --models all-MiniLM-L6-v2,hashing-1024 --report models.html",
        "memoryfield compare notes/ --models all-MiniLM-L6-v2 --recipes page,content --probes probes.jsonl --markdown",
        "memoryfield compare notes/ --models nomic-embed-text-v1.5 --dimensions 768,256,64 --json",
    )
    verb.add_argument("field", help="directory or archive")
    verb.add_argument("--models", required=True, metavar="A,B", help="models, with commas between them")
    verb.add_argument("--recipes", default="page", metavar="A,B", help="recipes, each a space (default: page)")
    verb.add_argument("--dimensions", metavar="N,M", help="lengths to cut vectors to, where a model was trained for it")
    verb.add_argument("--probes", metavar="FILE", help="questions with the pages that answer them, JSONL or CSV")
    verb.add_argument("--backend", help="torch, fast or another backend of the models")
    verb.add_argument("-k", type=int, default=10, help="neighbours that count as near (default: 10)")
    verb.add_argument("--families", action="store_true", help="also compare the families of each space; slow")
    verb.add_argument("--changed", type=int, default=5, metavar="N", help="pages seen most differently (default: 5)")
    verb.add_argument("--report", type=Path, metavar="FILE", help="also write one HTML page that needs no network")
    verb.add_argument("--maps", choices=["auto", "pca", "umap", "none"], default="auto", help="maps in the report")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")
    shown = verb.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.add_argument("--markdown", action="store_true", help="print Markdown tables")


def _compare(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field

    target = None if options.report is None else html_target(options.report)  # before anything is embedded
    found = open_field(options.field, backend=options.backend).compare(
        _listed(options.models),
        options.probes,
        recipes=_listed(options.recipes),
        dimensions=_numbers(options.dimensions),
        k=options.k,
        families=options.families,
        progress=not (options.quiet or options.json),
    )
    if target is not None:
        write_html(target, found.report(maps=options.maps))
    if options.json:
        say_json(found.to_dict())
    elif options.markdown:
        say(found.to_markdown())
    else:
        say(repr(found))
        if options.changed > 0 and found.likenesses and len(found.pages) > 1:
            say(repr(found.most_changed(options.changed)))
        if target is not None:
            say(f"written to {options.report}")
    return DONE if found.spaces else NOTHING


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str | None) -> list[int] | None:
    from memoryfield.errors import QueryError

    if text is None:
        return None
    try:
        return [int(part) for part in _listed(text)]
    except ValueError:
        raise QueryError(f"--dimensions {text!r}: whole numbers with commas are expected, such as 768,256") from None
