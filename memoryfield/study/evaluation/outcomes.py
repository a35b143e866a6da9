"""What one retriever made of each probe, kept small enough to be saved: ranks, first pages, scores, times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memoryfield.study.evaluation import metrics
from memoryfield.study.probes.probe import Probe, Probes

if TYPE_CHECKING:
    from memoryfield.retrieve.bulk import Rankings

KEPT = 10  # first pages that are kept of each probe
NDCG_AT = 10
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One retriever's answers to the probes, in the order of the probes.

    Attributes:
        label: What it is called in the tables.
        retriever: How pages were ranked.
        model_code: The model, where vectors were searched.
        recipe: Which text of the pages was embedded.
        gold_ranks: Ranks of the gold pages that were found within the depth, ascending.
        family_ranks: Best rank of a page of the gold pages' families, 0 for none.
        top: The first pages, at most ten.
        scores: What the gate looks at: the retriever's score of the first page, or what a gate makes of it; minus
            infinity where nothing was found.
        threshold: Score from which the gate lets a question pass; NaN where there is none, minus infinity for a gate
            that lets everything pass.
        gate: Where the threshold comes from; empty where there is none.
        embedding_ms: Milliseconds that the questions of the timed sample took to embed, one by one.
        search_ms: Milliseconds that the rest of their search took.
        seconds: All probes at once: embedding and ranking together.
    """

    label: str
    retriever: str
    model_code: str | None
    recipe: str | None
    gold_ranks: tuple[tuple[int, ...], ...]
    family_ranks: tuple[int, ...]
    top: tuple[tuple[str, ...], ...]
    scores: tuple[float, ...]
    threshold: float = math.nan
    gate: str = ""
    embedding_ms: tuple[float, ...] = ()
    search_ms: tuple[float, ...] = ()
    seconds: float = 0.0

    @cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """(n_probes,) rank of the first gold page, 0 where none was found."""
        return metrics.first_ranks(self.gold_ranks)

    def values(self, metric: str, probes: Probes) -> Values:
        """Return a figure for each probe; NaN for those that do not count in it. ``metric`` as in ``Evaluation``."""
        name, _, number = metric.partition("@")
        counted = np.array([probe.counts for probe in probes], bool)
        if name in ("answered", "wrong_answers"):
            counted = np.array([probe.answerable == (name == "answered") for probe in probes], bool)
            found = (np.array(self.scores) >= self.threshold).astype(np.float64)
            counted &= not math.isnan(self.threshold)
        elif name == "recall":
            found = metrics.recall_at(self.first, int(number))
        elif name == "mrr":
            found = metrics.reciprocal_ranks(self.first)
        elif name == "ndcg":
            found = metrics.ndcg_at(self.gold_ranks, [len(probe.gold) for probe in probes], int(number))
        elif name == "coverage":
            found = metrics.coverage_at(self.gold_ranks, [len(probe.gold) for probe in probes], int(number))
        elif name == "family_recall":
            found = metrics.recall_at(np.array(self.family_ranks, np.int64), int(number))
        else:
            found = metrics.reciprocal_ranks(np.array(self.family_ranks, np.int64))
        return np.where(counted, found, np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as values that JSON can hold."""
        return {
            "label": self.label,
            "retriever": self.retriever,
            "model": self.model_code,
            "recipe": self.recipe,
            "gate": self.gate,
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
            "seconds": self.seconds,
            "embedding_ms": list(self.embedding_ms),
            "search_ms": list(self.search_ms),
            "gold_ranks": [list(ranks) for ranks in self.gold_ranks],
            "family_ranks": list(self.family_ranks),
            "top": [list(names) for names in self.top],
            "scores": [None if math.isinf(score) else score for score in self.scores],
        }


def shown_metric(name: str) -> str:
    """Return how a figure is written for people."""
    for code, shown in (("_p95", ", 95th"), ("_", " "), ("mrr", "MRR"), ("ndcg", "nDCG"), ("auc", "AUC")):
        name = name.replace(code, shown)
    return name


def outcome(
    rankings: Rankings, probes: Sequence[Probe], *, kept: int = KEPT
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[tuple[str, ...], ...], tuple[float, ...]]:
    """Return ranks of gold pages, best ranks of their families, first pages and first scores for each probe.

    Args:
        rankings: What the retriever found, one row a probe.
        probes: The probes, in that order.
        kept: How many first pages to keep.
    """
    gold = _ranks(rankings, [probe.gold for probe in probes])
    family = _ranks(rankings, [probe.gold | probe.family_gold if probe.gold else frozenset() for probe in probes])
    top = tuple(tuple(rankings.names[row] for row in rows if row >= 0) for rows in rankings.order[:, :kept].tolist())
    scores = tuple(
        float(score) if names and math.isfinite(score) else -math.inf
        for names, score in zip(top, rankings.scores[:, 0].tolist(), strict=True)
    )
    return gold, tuple(min(ranks, default=0) for ranks in family), top, scores


def _ranks(rankings: Rankings, wanted: Sequence[frozenset[str]]) -> tuple[tuple[int, ...], ...]:
    """Return for each probe the ranks of the pages that are wanted, ascending."""
    position = {name: number for number, name in enumerate(rankings.names)}
    pairs = [(n, position[name]) for n, names in enumerate(wanted) for name in sorted(names) if name in position]
    found: list[list[int]] = [[] for _ in wanted]
    step = max(1, 4_000_000 // max(rankings.order.shape[1], 1))
    for start in range(0, len(pairs), step):
        numbers, pages = np.array(pairs[start : start + step], np.int64).T
        hits, places = np.nonzero(rankings.order[numbers] == pages[:, None])
        for number, place in zip(numbers[hits].tolist(), places.tolist(), strict=True):
            found[number].append(place + 1)
    return tuple(tuple(sorted(ranks)) for ranks in found)


def quantile_threshold(scores: Values, share: float) -> float:
    """Return the highest score that at least *share* of (n,) scores reach; NaN without scores that are finite."""
    if not len(scores):
        return math.nan
    ordered = np.sort(scores)[::-1]
    threshold = float(ordered[math.ceil(share * len(ordered) - 1e-9) - 1])
    return threshold if math.isfinite(threshold) else math.nan
