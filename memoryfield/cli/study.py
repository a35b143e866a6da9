"""Verbs that ask about a field: index, search, near, map, report, models, doctor, demo."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import add_on_secrets, html_target, note, say, say_json, write_html
from memoryfield.cli.pages import conditions, where


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "demo", _demo, "run the main job on the example field", "memoryfield demo", "memoryfield demo --model auto"
    )
    verb.add_argument("--field", type=Path, help="field to use instead of the example")
    verb.add_argument("--model", default="auto", help="embedding model (default: auto)")
    verb.add_argument(
        "--out", type=Path, default=Path("build/demo.html"), help="page to write (default: build/demo.html)"
    )

    verb = verbs.add(
        "index",
        _index,
        "embed what changed, or with --list show the indexes",
        "memoryfield index notes/ --model auto",
        "memoryfield index notes/ --list --json",
    )
    _field_and_model(verb)
    verb.add_argument("--list", action="store_true", help="only list the indexes and their state")
    verb.add_argument("--delete", action="store_true", help="delete this model's index; it can be made again")
    verb.add_argument("--trust-stat", action="store_true", help="find changes by size and times instead of reading all")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "search",
        _search,
        "search pages",
        'memoryfield search notes/ "why did the build stop" -k 5 --model auto',
        'memoryfield search notes/ more-notes/ "brake pads" --retriever keyword --where tags=winch --since 2026-01-01',
    )
    verb.add_argument("field", nargs="+", help="directories or archives")
    verb.add_argument("question")
    _model(verb)
    verb.add_argument("-k", type=int, default=10, help="most hits (default: 10)")
    verb.add_argument("--retriever", choices=["vector", "keyword", "hybrid", "rrf"], default="hybrid")
    where(verb)
    verb.add_argument("--since", metavar="DATE", help="only pages updated at or after it")
    verb.add_argument("--until", metavar="DATE", help="only pages updated at or before it")
    verb.add_argument("--min-score", type=float, help="smallest score of the retriever")
    verb.add_argument("--verify", action="store_true", help="find changed pages by reading every byte")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "near",
        _near,
        "list pairs of pages whose vectors lie close together",
        "memoryfield near notes/ --threshold 0.92 --model auto",
    )
    _field_and_model(verb)
    verb.add_argument("--threshold", type=float, default=0.8, help="smallest cosine (default: 0.8)")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "map", _map, "write a map of the pages as one HTML file", "memoryfield map notes/ --out map.html --model auto"
    )
    _field_and_model(verb)
    verb.add_argument("--method", choices=["auto", "pca", "umap"], default="auto")
    verb.add_argument("--engine", choices=["umap-learn", "fastumap"], default="umap-learn")
    verb.add_argument("--color", metavar="KEY", help="frontmatter key to colour by")
    verb.add_argument("--out", type=Path, default=Path("map.html"), help="file to write (default: map.html)")
    verb.add_argument("--json", action="store_true", help="print the coordinates as JSON and write no file")

    verb = verbs.add(
        "report",
        _report,
        "write a report on a field as one HTML page: overview, health, map, families, models, retrieval",
        "memoryfield report notes/ --out report.html --model auto",
        "memoryfield report notes/ --probes questions.jsonl --models hashing-1024",
    )
    _field_and_model(verb)
    verb.add_argument("--out", type=Path, default=Path("report.html"), help="file to write (default: report.html)")
    verb.add_argument(
        "--models", nargs="*", default=["hashing-1024"], help="models to compare with; none leaves it out"
    )
    verb.add_argument("--probes", type=Path, help="questions with known answers (JSONL or CSV)")
    add_on_secrets(verb)

    verb = verbs.add(
        "doctor",
        _doctor,
        "say what is installed, which models are ready, and where our own files are",
        "memoryfield doctor",
        "memoryfield doctor --clear",
    )
    verb.add_argument("--clear", action="store_true", help="delete what can be made again; pages and histories stay")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add("models", _models, "list embedding models and whether they are ready", "memoryfield models")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _model(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--model", help="embedding model; default $MEMORYFIELD_MODEL or nomic-embed-text-v1.5; auto takes what is ready"
    )
    verb.add_argument(
        "--recipe",
        choices=["page", "content", "passages"],
        default="page",
        help="what of a page is embedded (default: page)",
    )
    verb.add_argument("--backend", help="torch, fast or another backend of the model")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")


def _field_and_model(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("field", help="directory or archive")
    _model(verb)


def _open(options: argparse.Namespace, path: str | None = None) -> Any:
    from memoryfield.cli.fields import open_field

    return open_field(path or options.field, model=options.model, recipe=options.recipe, backend=options.backend)


def _index(options: argparse.Namespace) -> int:
    field = _open(options)
    if options.list:
        states = field.indexes()
        if options.json:
            say_json([state.to_dict() for state in states])
        else:
            say(field.overview().text())
        return DONE if states else NOTHING
    if options.delete:
        index = field.vector_index()
        if not index.path.exists():
            note(f"there is no {index.path.name}: nothing was deleted")
            return NOTHING
        index.delete()
        say(f"deleted {index.path}")
        return DONE
    report = field.sync(verify=not options.trust_stat, progress=not (options.quiet or options.json))
    _say_choice(field)
    say_json(report.to_dict()) if options.json else say(repr(report))
    return DONE


def _search(options: argparse.Namespace) -> int:
    from memoryfield.opening import search_fields

    fields = [_open(options, path) for path in options.field]
    results = search_fields(
        fields,
        options.question,
        options.k,
        options.retriever,
        where=conditions(options.where) or None,
        since=options.since,
        until=options.until,
        min_score=options.min_score,
        verify=options.verify,
        progress=not (options.quiet or options.json),
    )
    if options.retriever != "keyword":
        _say_choice(fields[0])
    say_json(results.to_dict()) if options.json else say(repr(results))
    return DONE if len(results) else NOTHING


def _near(options: argparse.Namespace) -> int:
    field = _open(options)
    pairs = field.near_duplicates(options.threshold, progress=not (options.quiet or options.json))
    _say_choice(field)
    say_json(pairs.to_dict()) if options.json else say(repr(pairs))
    return DONE if len(pairs) else NOTHING


def _map(options: argparse.Namespace) -> int:
    target = None if options.json else html_target(options.out)
    field = _open(options)
    layout = field.layout(method=options.method, engine=options.engine, progress=not (options.quiet or options.json))
    _say_choice(field)
    if options.json:
        rows = zip(layout.names, layout.xy.tolist(), strict=True)
        say_json(
            {
                "method": layout.method,
                "model": layout.model_code,
                "pages": [{"name": n, "x": x, "y": y} for n, (x, y) in rows],
            }
        )
        return DONE
    assert target is not None
    if not len(layout):
        note("no page is there to be mapped; nothing was written")
        return NOTHING
    write_html(target, layout.figure(options.color).to_html(include_plotlyjs=True, full_html=True))
    say(repr(layout))
    say(f"written to {options.out}")
    return DONE


def _report(options: argparse.Namespace) -> int:
    from memoryfield.study.probes.files import read_probes

    target = html_target(options.out)
    field = _open(options)
    if options.probes is not None:
        read_probes(options.probes)  # before the work, not after it
    report = field.report(models=options.models, probes=options.probes, progress=not options.quiet)
    report.save(target, on_secrets=options.on_secrets)
    say(repr(report))
    say(f"written to {options.out}")
    return NOTHING if any(section.failed for section in report) else DONE


def _doctor(options: argparse.Namespace) -> int:
    from memoryfield.installation import clear_caches, doctor

    if options.clear:
        size = clear_caches()
        say_json({"cleared_bytes": size}) if options.json else say(f"deleted {size:,} bytes that can be made again")
        return DONE
    found = doctor()
    say_json(found.to_dict()) if options.json else say(repr(found))
    return NOTHING if found.problems else DONE


def _models(options: argparse.Namespace) -> int:
    from memoryfield.index.embedders.catalogue import models

    table = models()
    say_json(table.to_dict()) if options.json else say(repr(table))
    return DONE


def _say_choice(field: Any) -> None:
    """Say which model ``auto`` took and why."""
    because = getattr(field.embedder(), "chosen_because", None)
    if because:
        note(f"model auto: {because.split(';')[0]}")  # the rest: memoryfield models


def _demo(options: argparse.Namespace) -> int:
    from memoryfield.cli.demo import run_demo

    return run_demo(options.field, options.model, options.out)
