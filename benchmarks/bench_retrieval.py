"""How fast many questions are ranked at once, and how well each retriever and the gate do on fields with probes.

    .venv/bin/python benchmarks/bench_retrieval.py [FOLDER] [--quick] [--passages]

The folder holds one folder a field, with ``<field>.memoryfield.zip``, ``probes*.jsonl`` and, where there is one,
``noanswer.jsonl``; ``harbor``, which comes with the library, is always measured. One setting serves all fields. Indexes
are kept in the cache directory, so that a second run embeds nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from material import CHECKOUT, FreeEmbedder, page_texts, workspace, write_pages
from measure import Results, duration

from memoryfield.format.pages import PageDirectory, open_pages
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.vectors import VectorIndex
from memoryfield.retrieve.bulk import rank_many
from memoryfield.retrieve.gate import calibrated_gate
from memoryfield.retrieve.search import RETRIEVERS, SearchTarget, search
from memoryfield.retrieve.weights import learned_weight

MODEL = "all-MiniLM-L6-v2"
DEPTH = 100
_HARBOR = CHECKOUT / "data" / "harbor"


@dataclass(frozen=True)
class Asked:
    """A question and the pages that answer it; none if nothing does."""

    question: str
    gold: frozenset[str]


def time_bulk(results: Results, pages: int, questions: int, alone: int) -> None:
    """Add the rows that compare one call for all with one search a question; the question's vector is free."""
    with workspace() as place:
        source = PageDirectory(write_pages(place / "field", pages))
        vectors, words = VectorIndex(source, FreeEmbedder()), KeywordIndex(source)
        vectors.sync()
        words.sync()
        target = SearchTarget("field", source, vectors, words)
        texts = page_texts(questions, size=400, seed=9)
        asked = [" ".join(text.split("\n---\n", 1)[-1].split()[3:13]) for text in texts]
        learned_weight([target])
        for retriever in RETRIEVERS:
            search([target], asked[0], retriever=retriever, sync=False)
            started = time.process_time()
            for question in asked[:alone]:
                search([target], question, retriever=retriever, sync=False)
            each = (time.process_time() - started) / alone
            started = time.process_time()
            rank_many(target, asked, retriever, DEPTH, sync=False)
            together = (time.process_time() - started) / questions
            ratio = each / together
            results.add(
                f"{questions:,} questions over {pages:,} pages, {retriever}",
                "one search each",
                f"{duration(each)} a question",
                f"{duration(together)} a question",
                f"{ratio:.0f} times as fast",
                "at least 20 times",
                ratio >= 20,
            )


def fields(folder: Path | None) -> Iterator[tuple[str, Path, list[Path]]]:
    """Yield name, pages and files of questions of each field."""
    yield "harbor", _HARBOR, [_HARBOR.with_name("harbor.probes.jsonl")]
    for own in sorted(folder.iterdir()) if folder is not None else []:
        files = sorted(own.glob("probes*.jsonl")) if own.is_dir() else []
        if files:
            yield own.name, own / f"{own.name}.memoryfield.zip", files


def read_asked(file: Path) -> list[Asked]:
    """Return the questions of one file."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Asked(row["question"], frozenset(name.removesuffix(".md") for name in row["gold"])) for row in rows]


def mean_reciprocal_rank(target: SearchTarget, asked: list[Asked], retriever: str) -> float:
    """Return the MRR of one retriever over the questions that have an answer."""
    found = rank_many(target, [one.question for one in asked], retriever, DEPTH, sync=False)
    gold = [np.array([name in one.gold for name in found.names]) for one in asked]
    ranks = []
    for number, right in enumerate(gold):
        rows = found.order[number][found.order[number] >= 0]
        hits = np.flatnonzero(right[rows])
        ranks.append(1.0 / (hits[0] + 1) if len(hits) else 0.0)
    return float(np.mean(ranks))


def measure_fields(results: Results, folder: Path | None, recipes: list[str]) -> None:
    """Add the rows of all fields."""
    model = load_model(MODEL)
    behind: list[float] = []
    for name, path, files in fields(folder):
        source = open_pages(path)
        by_recipe: dict[str, float] = {}
        for recipe in recipes:
            vectors, words = VectorIndex(source, model, recipe), KeywordIndex(source)
            vectors.sync(verify=False)
            words.sync(verify=False)
            target = SearchTarget(name, source, vectors, words)
            started = time.perf_counter()
            weight = learned_weight([target])
            taken = time.perf_counter() - started
            for file in files:
                asked = [one for one in read_asked(file) if one.gold]
                mrr = {retriever: mean_reciprocal_rank(target, asked, retriever) for retriever in RETRIEVERS}
                better = max(mrr["vector"], mrr["keyword"])
                if recipe == "page":
                    behind.append(mrr["hybrid"] - better)
                results.add(
                    f"MRR of hybrid, {name} ({file.stem}), recipe {recipe}",
                    f"weight {weight.vector:.2f}, learned in {duration(taken)}",
                    ", ".join(f"{retriever} {value:.3f}" for retriever, value in mrr.items() if retriever != "hybrid"),
                    f"{mrr['hybrid']:.3f}",
                    f"{mrr['hybrid'] - better:+.3f}",
                    "at most 0.02 below the better",
                    mrr["hybrid"] >= better - 0.02,
                )
                by_recipe[f"{file.stem} {recipe}"] = mrr["vector"]
                if recipe == "passages":
                    gain = mrr["vector"] - by_recipe[f"{file.stem} page"]
                    results.add(f"MRR of passages, {name}", "recipe page", "", f"{mrr['vector']:.3f}", f"{gain:+.3f}")
            if recipe == "page":
                measure_gate(results, name, target, files)
    mean = float(np.mean(behind))
    results.add(
        "MRR of hybrid, mean of all above with recipe page",
        "the better half",
        "",
        "",
        f"{mean:+.3f}",
        "+0.01",
        mean >= 0.01,
    )


def measure_gate(results: Results, name: str, target: SearchTarget, files: list[Path]) -> None:
    """Add the row of the gate, where there are questions without an answer."""
    extra = files[0].with_name("noanswer.jsonl")
    asked = [one for file in [*files, *([extra] if extra.exists() else [])] for one in read_asked(file)]
    answerable = [one.question for one in asked if one.gold]
    others = [one.question for one in asked if not one.gold]
    if not others:
        return
    gate = calibrated_gate(target)
    good, bad = gate.scores(answerable), gate.scores(others)
    kept, passed = float((good >= gate.threshold).mean()), float((bad >= gate.threshold).mean())
    at_ninety = float((bad >= np.quantile(good, 0.1)).mean())
    auc = float((good[:, None] > bad[None, :]).mean())
    results.add(
        f"gate, {name}: {len(answerable)} with an answer, {len(others)} without",
        "AUC, and passed where 90 % are kept by the labels",
        f"{auc:.3f}, {at_ninety:.0%}",
        f"at {gate.threshold:.2f} keeps {kept:.0%}, lets pass {passed:.0%}",
        "",
        "at most 25 % at 90 % kept" if name == "assist-notes" else "",
        at_ninety <= 0.25 if name == "assist-notes" else None,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="evaluation fields; harbor alone by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--passages", action="store_true", help="recipe passages too, which embeds a good deal")
    options = parser.parse_args()
    results = Results("Retrieval", "CPU time in a process that holds the indexes, files not looked at; MRR within 100.")
    time_bulk(results, *((2_000, 300, 30) if options.quick else (10_000, 1_000, 30)))
    measure_fields(results, options.folder, ["page", "passages"] if options.passages else ["page"])
    results.print()


if __name__ == "__main__":
    main()
