"""How well duplicate families are found, against those that people made, with no answers and with twenty; pairs_above.

    .venv/bin/python benchmarks/bench_families.py FOLDER [--quick]

The folder holds one folder a field, with ``<field>.memoryfield.zip`` and ``families.csv`` (columns ``page, family``);
``harbor``, which comes with the library, is always measured. The answers come from the families that people made, for
the pair that ``borderline`` puts first each time. One setting serves all fields. Of a field without such a table only
the number of families is told: where people wrote each page once there should be hardly any.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from measure import Results

from memoryfield.curate.evidence import head_text
from memoryfield.curate.families import Families, families
from memoryfield.curate.pairs import pairs_above
from memoryfield.examples import example_field
from memoryfield.format.pages import open_pages
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.recipes import CONTENT, recipe_text

MODEL = "all-MiniLM-L6-v2"
ANSWERS = 20

# Best single method at the best threshold, chosen with the labels; then what is to be reached and what was aimed at,
# with 0 answers and with 20.
GOALS = {
    "bash-tasks-300": (0.80, (0.65, 0.76), (0.72, 0.84)),
    "tldr-platforms-300": (0.66, (0.40, 0.60), (0.54, 0.68)),
    "webarena-tasks": (0.86, (0.88, 0.93), (0.90, 0.94)),
    "assist-notes": (0.84, (0.83, 0.88), (0.87, 0.91)),
    "assist-short": (0.53, (0.22, 0.50), (0.54, 0.62)),
    "harbor": (None, (0.80, 0.80), (0.90, 0.90)),
}
CUT = 0.8  # of the pairs that pairs_above looks for
TILE = 2048


@dataclass(frozen=True)
class Field:
    """Pages whose families are known, by name; none is where each page was written once."""

    name: str
    path: Path
    known: dict[str, str]


@dataclass(frozen=True)
class Scores:
    """How well families agree with the known ones."""

    f1: float
    precision: float
    recall: float
    bcubed: float


def fields(folder: Path | None) -> list[Field]:
    """Return harbor and the fields of the folder that have known families."""
    found = []
    for place in sorted(folder.iterdir()) if folder is not None else []:
        archive, table = place / f"{place.name}.memoryfield.zip", place / "families.csv"
        if archive.is_file():
            found.append(Field(place.name, archive, _known(table) if table.is_file() else {}))
    harbor = example_field("harbor")
    return [*found, Field("harbor", harbor, _known(harbor.parent / "harbor.families.csv"))]


def _known(table: Path) -> dict[str, str]:
    with open(table, encoding="utf-8", newline="") as stream:
        return {row["page"].removesuffix(".md"): row["family"] for row in csv.DictReader(stream)}


def scores(found: Families, names: Sequence[str], known: dict[str, str]) -> Scores:
    """Return pairwise and B-cubed scores over the pages whose family is known."""
    theirs = np.array([known[name] for name in names])
    family = {name: number for number, members in enumerate(found) for name in members.members}
    ours = np.array([family.get(name, -1 - number) for number, name in enumerate(names)])
    a, b = ours[:, None] == ours[None, :], theirs[:, None] == theirs[None, :]
    both = a & b
    n = len(names)
    pairs = (both.sum() - n) / 2, (a.sum() - n) / 2, (b.sum() - n) / 2
    per_page = (both.sum(axis=1) / a.sum(axis=1)).mean(), (both.sum(axis=1) / b.sum(axis=1)).mean()
    return Scores(
        2 * pairs[0] / max(pairs[1] + pairs[2], 1),
        pairs[0] / max(pairs[1], 1),
        pairs[0] / max(pairs[2], 1),
        2 * per_page[0] * per_page[1] / sum(per_page),
    )


def measure(field: Field, answers: int, results: Results) -> None:
    """Add the rows of one field: without answers and after each of some numbers of them."""
    model = load_model(MODEL)
    # a page that nobody put into a family is in none and stays out, as in every figure that ours is compared with
    pages = [page for page in open_pages(field.path).pages() if not page.is_special]
    pages = [page for page in pages if page.name in field.known or not field.known]
    names = [page.name for page in pages]
    content = model.embed_documents([recipe_text(CONTENT, page) for page in pages])
    heads = model.embed_documents([head_text(page) for page in pages])
    started = time.process_time()
    found = families(pages, content, heads, model_code=model.model_code)
    if not field.known:
        estimate, low, high = found.precision
        doubtful = f"{len(found.doubtful)} of them called doubtful"
        expected = f"expected precision {estimate:.2f}, {low:.2f} to {high:.2f}" if len(found) else "nothing to expect"
        results.add(
            f"{field.name}, no known families", "", "", f"{len(found)} of {len(pages)} pages, {doubtful}; {expected}"
        )
        return
    oracle, first, last = GOALS.get(field.name, (None, None, None))
    _row(results, field, found, names, 0, oracle, first)
    results.note(f"{field.name}: {len(pages)} pages, {time.process_time() - started:.1f} s of CPU after the vectors")
    for given in range(1, answers + 1):
        if not (asked := found.borderline(1)):
            break
        same = field.known[asked[0].first] == field.known[asked[0].second]
        found = found.review(asked[0].first, asked[0].second, same=same)
        if given in (5, 10) or given == answers:
            _row(results, field, found, names, given, oracle, last if given == ANSWERS else None)


def _row(
    results: Results,
    field: Field,
    found: Families,
    names: Sequence[str],
    given: int,
    oracle: float | None,
    goal: tuple[float, float] | None,
) -> None:
    reached = scores(found, names, field.known)
    estimate, low, high = found.precision
    ours = f"F1 {reached.f1:.2f}, B-cubed {reached.bcubed:.2f}, precision {reached.precision:.2f} "
    ours += f"(expected {estimate:.2f}, {low:.2f} to {high:.2f}), recall {reached.recall:.2f}"
    results.add(
        f"{field.name}, {given} answers",
        "best method, labels chose its threshold",
        "" if oracle is None else f"F1 {oracle:.2f}",
        ours,
        None if oracle is None else reached.f1 / oracle,
        "" if goal is None else f"F1 at least {goal[0]:.2f}, aim {goal[1]:.2f}",
        None if goal is None else round(reached.f1, 2) >= goal[0],
    )


def measure_pairs(count: int, results: Results) -> None:
    """Add the rows of pairs_above against the tiled product of the upper triangle: CPU time, one core."""
    for kind, rows in (("spectrum as of sentence models", _falling(count)), ("no structure", _even(count))):
        started = time.process_time()
        for top in range(0, count, TILE):
            for left in range(top, count, TILE):
                rows[top : top + TILE] @ rows[left : left + TILE].T
        plain = time.process_time() - started
        started = time.process_time()
        found = pairs_above(rows, CUT)
        ours = time.process_time() - started
        results.add(
            f"pairs of cosine {CUT} among {count:,} x {rows.shape[1]}, {kind}",
            "tiled float32 product of the upper triangle",
            f"{plain:.1f} s",
            f"{ours:.1f} s, {len(found.first):,} pairs",
            ours / plain,
            "at most 0.4 x" if kind.startswith("spectrum") else "",
            ours / plain <= 0.4 if kind.startswith("spectrum") else None,
        )


def _falling(count: int) -> npt.NDArray[np.float32]:
    random = np.random.default_rng(0)
    scale = (np.arange(1, 769) ** -0.6).astype(np.float32)
    centres = random.standard_normal((count // 50, 768), dtype=np.float32) * scale
    noise = random.standard_normal((count, 768), dtype=np.float32) * scale
    return _unit(centres[random.integers(0, len(centres), count)] + np.float32(0.6) * noise)


def _even(count: int) -> npt.NDArray[np.float32]:
    return _unit(np.random.default_rng(0).standard_normal((count, 768), dtype=np.float32))


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="folder of fields with known families; else harbor alone")
    parser.add_argument("--quick", action="store_true", help="five answers instead of twenty, fewer vectors")
    asked = parser.parse_args()
    results = Results("Duplicate families", f"Pairwise F1 and B-cubed F1 with {MODEL}, one setting for all fields.")
    for field in fields(asked.folder):
        measure(field, 5 if asked.quick else ANSWERS, results)
    measure_pairs(20_000 if asked.quick else 50_000, results)
    results.print()


if __name__ == "__main__":
    main()
