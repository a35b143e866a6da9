"""The tables of a comparison: what ``repr``, notebooks, the report and Markdown show alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.display import Table

if TYPE_CHECKING:
    from memoryfield.study.comparison.comparison import Comparison

SPACE_COLUMNS = (
    *("space", "dim", "s / 1,000 pages", "load s", "ms / question", "index MB", "tokens read", "pages cut"),
    *("mean cosine", "nearest", "hubness"),
)
_SPACE_RIGHT = frozenset(SPACE_COLUMNS[1:])


def all_tables(comparison: Comparison) -> list[Table]:
    """Return what ``repr`` shows: the spaces, the pairs, retrieval where there were probes, and what failed."""
    count = len(comparison.pages)
    shown = "space" if len(comparison.spaces) == 1 else "spaces"
    heading = f"Comparison of {len(comparison.spaces)} {shown} on {count:,} {'page' if count == 1 else 'pages'}"
    spaces = Table(heading, SPACE_COLUMNS, [_space_row(row) for row in space_rows(comparison)], right=_SPACE_RIGHT)
    found = [spaces]
    if comparison.likenesses:
        found.append(pairs_table(comparison))
    if comparison.evaluation is not None and comparison.differences is not None:
        found += comparison.evaluation.tables()
        found += [comparison.differences.table()] if len(comparison.differences) else []
    notes = [f"failed: {label}: {why}" for label, why in comparison.failed.items()] + list(comparison.notes)
    if notes:
        found.append(Table("Notes", notes=notes))
    return found


def pairs_table(comparison: Comparison) -> Table:
    """Return how alike the spaces are, one row a pair."""
    columns = ["first", "second", f"overlap@{comparison.k}", "RBO", "CKA", "unbiased", "correlation", "ranks"]
    rows = []
    for labels in comparison.likenesses:
        means = [comparison.estimate(measure, *labels) for measure in ("overlap", "rbo")]
        row = [*labels, *(str(mean) if mean.n else _number(float("nan")) for mean in means)]
        row += [_number(value) for value in list(comparison.values(labels).values())[2:]]
        if comparison.agreements:
            found = comparison.agreements.get(labels)
            row += ["", ""] if found is None else [_number(found.adjusted_rand), _number(found.f1)]
        rows.append(row)
    columns += ["families (Rand)", "families (F1)"] if comparison.agreements else []
    notes = []
    if comparison.pages:
        notes.append(f"unrelated spaces have an overlap of {_number(comparison.chance)} by chance")
        notes.append("in brackets: 95 % bootstrap intervals over the pages")
    return Table("How alike the spaces are", columns, rows, notes, right=frozenset(columns[2:]))


def space_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return one row a space: its costs, and the shape of its similarities."""
    rows = []
    for space, shape in zip(comparison.spaces, comparison.shapes, strict=True):
        hub = int(shape.occurrences.argmax()) if len(shape.occurrences) else -1
        low, middle, high = shape.quantiles
        rows.append(
            {
                "space": space.label,
                "model": space.model_code,
                "recipe": space.recipe,
                "pages": len(space.names),
                **asdict(space.costs),
                "mean_cosine": shape.mean_cosine,
                "deviation": shape.deviation,
                "cosine_5": low,
                "cosine_50": middle,
                "cosine_95": high,
                "nearest": shape.nearest,
                "hubness": shape.hubness,
                "largest_hub": space.names[hub] if hub >= 0 else None,
                "largest_hub_occurrences": int(shape.occurrences[hub]) if hub >= 0 else 0,
                "never_near": float((shape.occurrences == 0).mean()) if hub >= 0 else float("nan"),
                "tied": shape.tied,
            }
        )
    return rows


def _space_row(row: Mapping[str, Any]) -> list[str]:
    size, limit, asked = row["index_bytes"], row["max_tokens"], row["query_seconds"]
    cut = row["cut_pages"]
    return [
        row["space"],
        str(row["dimensions"]),
        seconds(row["seconds_per_1000"]),
        seconds(row["load_seconds"]),
        "" if asked is None else seconds(asked * 1000),
        "" if size is None else f"{size / 1e6:.2f}",
        "all" if limit is None and cut is not None else "" if limit is None else f"{limit:,}",
        "" if cut is None else f"{cut:,} ({row['cut_tokens']:.1%} of tokens)" if cut else "0",
        _number(row["mean_cosine"]),
        _number(row["nearest"]),
        _number(row["hubness"]),
    ]


def seconds(value: float | None) -> str:
    """Return a measured time with two or three figures that mean something; nothing where it was not measured."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"
