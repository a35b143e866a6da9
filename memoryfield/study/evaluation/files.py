"""Evaluations as JSON files: everything that was found, and everything needed to find it again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryfield.errors import MemoryfieldError, QueryError, RowError
from memoryfield.format.targets import check_target, write_target
from memoryfield.study.evaluation.evaluation import SCHEMA, Evaluation
from memoryfield.study.evaluation.intervals import check_resampling
from memoryfield.study.evaluation.outcomes import Run
from memoryfield.study.probes.probe import Probe, Probes
from memoryfield.study.rows import read_text

_KIND = "memoryfield evaluation"
_START = f'{{"kind": "{_KIND}"'
_MOST_DRAWN = 500_000_000  # counts that a bootstrap holds at once: 4 GB
_DEEPEST = 100_000
_ABOUT: Mapping[str, type | tuple[type, ...]] = {
    "field": str,
    "pages": int,
    "field_sha256": str,
    "probes_sha256": str,
    "ks": list,
    "depth": int,
    "resamples": int,
    "confidence": float,
    "seed": int,
    "versions": dict,
}


def evaluation_target(path: str | os.PathLike[str]) -> Path:
    """Return where an evaluation may be written; asked before a long run.

    Raises:
        QueryError: The file does not end in ``.json``, or something else than an evaluation stands there.
    """
    if Path(path).suffix.lower() != ".json":
        raise QueryError(f"an evaluation is written to a .json file, not to {Path(path).name!r}")
    return check_target(path, (_START.encode(),), what="evaluation", error=QueryError)


def save_evaluation(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Write an evaluation to a file; see ``Evaluation.save``.

    Raises:
        QueryError: The file does not end in ``.json``, or something else than an evaluation stands there.
    """
    goal = evaluation_target(path)
    document = {
        "kind": _KIND,
        "about": dict(evaluation.about),
        "notes": list(evaluation.notes),
        "figures": evaluation.to_dict()["figures"],  # for people and other programs; not read back
        "probes": [probe.to_dict() for probe in evaluation.probes],
        "runs": [run.to_dict() for run in evaluation.runs],
    }
    write_target(goal, (json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n").encode())


def load_evaluation(path: str | os.PathLike[str]) -> Evaluation:
    """Read an evaluation that ``save`` wrote; equal to what was saved.

    Raises:
        RowError: The file cannot be read, is none, was written by a newer version, or is damaged.
    """
    name, text = read_text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise RowError("is no JSON; expected a file that evaluation.save wrote", file=name) from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise RowError("is no evaluation; expected a file that evaluation.save wrote", file=name)
    about = document.get("about")
    schema = about.get("schema") if isinstance(about, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise RowError(
            f"was written by a newer version (schema {schema}, known is {SCHEMA}); update this one", file=name
        )
    try:
        return _evaluation(document)
    except (MemoryfieldError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = str(error) if isinstance(error, MemoryfieldError) else type(error).__name__
        raise RowError(f"is damaged ({said}); evaluate again", file=name) from None


def _evaluation(document: Mapping[str, Any]) -> Evaluation:
    about = document["about"]
    for key, kind in _ABOUT.items():
        if not isinstance(about[key], kind):
            raise ValueError(key)
    check_resampling(about["resamples"], about["seed"], about["confidence"])
    if not about["ks"] or not all(type(k) is int and 1 <= k <= about["depth"] for k in about["ks"]):
        raise ValueError("ks")
    probes = Probes(
        Probe(
            row["id"],
            row["question"],
            frozenset(row["gold"]),
            row.get("category", ""),
            row.get("answerable", bool(row["gold"])),
            frozenset(row.get("family_gold", ())),
        )
        for row in document["probes"]
    )
    if about["resamples"] * len(probes) > _MOST_DRAWN or about["depth"] > _DEEPEST:
        raise ValueError("resamples")
    runs = tuple(_run(row, len(probes), about["depth"]) for row in document["runs"])
    if not runs or len({run.label for run in runs}) < len(runs) or len({probe.id for probe in probes}) < len(probes):
        raise ValueError("runs")
    return Evaluation(probes, runs, about, tuple(str(note) for note in document["notes"]))


def _run(row: Mapping[str, Any], count: int, depth: int) -> Run:
    gold = tuple(tuple(_rank(rank, 1, depth) for rank in ranks) for ranks in row["gold_ranks"])
    family = tuple(_rank(rank, 0, depth) for rank in row["family_ranks"])
    top = tuple(tuple(_text(name) for name in names) for names in row["top"])
    scores = tuple(-math.inf if score is None else _number(score) for score in row["scores"])
    if {len(gold), len(family), len(top), len(scores)} != {count}:
        raise ValueError("one entry a probe")
    return Run(
        _text(row["label"]),
        _text(row["retriever"]),
        None if row["model"] is None else _text(row["model"]),
        None if row["recipe"] is None else _text(row["recipe"]),
        gold,
        family,
        top,
        scores,
        _number(row["threshold"]) if row["threshold"] is not None else -math.inf if row["gate"] else math.nan,
        _text(row["gate"]),
        tuple(_number(time) for time in row["embedding_ms"]),
        tuple(_number(time) for time in row["search_ms"]),
        _number(row["seconds"]),
    )


def _rank(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("rank")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value
