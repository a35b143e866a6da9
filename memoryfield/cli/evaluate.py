"""Verbs that measure search: evaluate, probes check."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import note, say, say_frame, say_json


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "evaluate",
        _evaluate,
        "measure how well search surfaces the pages that answer a set of questions",
        "memoryfield evaluate notes/ --probes probes.jsonl --model auto",
        "memoryfield evaluate notes/ --probes probes.jsonl noanswer.jsonl --retriever vector keyword hybrid hashed",
        "memoryfield evaluate notes/ --probes probes.jsonl --save after.json --against before.json",
    )
    verb.add_argument("field", help="directory or archive")
    verb.add_argument("--probes", nargs="+", required=True, metavar="FILE", help="questions, .jsonl or .csv")
    verb.add_argument(
        "--retriever",
        nargs="+",
        default=["vector", "keyword", "hybrid"],
        metavar="NAME",
        help="vector, keyword, hybrid or hashed (default: the first three)",
    )
    verb.add_argument(
        "-k", nargs="+", type=int, default=[1, 3, 5, 10], metavar="K", help="recall@K (default: 1 3 5 10)"
    )
    verb.add_argument("--families", metavar="CSV", help="file with the columns page and family, for family recall")
    verb.add_argument("--model", help="embedding model; auto takes what is ready")
    verb.add_argument("--recipe", default="page", help="what of a page is embedded (default: page)")
    verb.add_argument("--backend", help="torch, fast or another backend of the model")
    verb.add_argument("--seed", type=int, default=0, help="seed of the intervals and tests (default: 0)")
    verb.add_argument("--by-category", action="store_true", help="figures of each category of questions")
    verb.add_argument("--misses", action="store_true", help="list the questions that are missed, by kind")
    verb.add_argument("--compare", action="store_true", help="differences of all pairs of retrievers, with tests")
    verb.add_argument("--save", type=Path, metavar="FILE", help="write the evaluation as JSON")
    verb.add_argument("--against", type=Path, metavar="FILE", help="compare with an evaluation that was saved")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "probes",
        _probes,
        "check a set of questions against a field: missing pages, repeats, copied text",
        "memoryfield probes check notes/ --probes probes.jsonl",
    )
    verb.add_argument("what", choices=["check"], help="what to do with them")
    verb.add_argument("field", help="directory or archive")
    verb.add_argument("--probes", nargs="+", required=True, metavar="FILE", help="questions, .jsonl or .csv")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _read(paths: list[str]) -> Any:
    from memoryfield.study.probes.files import read_probes

    probes = read_probes(paths[0])
    for path in paths[1:]:
        probes = probes + read_probes(path)
    return probes


def _evaluate(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field
    from memoryfield.study.evaluation.differences import diff
    from memoryfield.study.evaluation.files import evaluation_target, load_evaluation

    probes = _read(options.probes)
    if options.save is not None:
        evaluation_target(options.save)  # before the work, not after it
    before = load_evaluation(options.against) if options.against is not None else None
    field = open_field(options.field, model=options.model, recipe=options.recipe, backend=options.backend)
    found = field.evaluate(
        probes,
        options.retriever,
        options.k,
        families=options.families,
        seed=options.seed,
        progress=not (options.quiet or options.json),
    )
    changes = diff(before, found) if before is not None else None
    if options.save is not None:
        found.save(options.save)
    if options.json:
        document = found.to_dict()
        if options.by_category:
            document["categories"] = _records(found.by_category())
        if options.misses:
            document["misses"] = _records(found.misses().to_frame())
        if options.compare:
            document["compare"] = found.compare().to_dict()
        if changes is not None:
            document["against"] = changes.to_dict()
        say_json(document)
        return DONE
    say(repr(found))
    if options.by_category:
        frame = found.by_category().dropna(subset=["value"])
        say_frame(frame, float_format="%.3f")
    if options.misses:
        say(repr(found.misses()))
    if options.compare:
        say(repr(found.compare()))
    if changes is not None:
        say(f"against {options.against}:\n{changes!r}")
    if options.save is not None:
        note(f"written to {options.save}")
    return DONE


def _records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as values that JSON can hold; None where there is no value."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _probes(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field

    findings = _read(options.probes).check(open_field(options.field))
    say_json([finding.to_dict() for finding in findings]) if options.json else say(repr(findings))
    return NOTHING if len(findings) else DONE
