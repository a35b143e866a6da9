"""Which of two retrievers is better, and whether the difference is real: the same probes, paired.

For each pair: the mean difference, its bootstrap interval over the probes, and a permutation test (``intervals.py``).
Where several pairs or figures are looked at, p is corrected for their number (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from memoryfield.display import Table, counted
from memoryfield.errors import QueryError
from memoryfield.study.evaluation.intervals import holm, permutation_p
from memoryfield.study.evaluation.outcomes import shown_metric

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

    from memoryfield.study.evaluation.evaluation import Evaluation


@dataclass(frozen=True)
class Difference:
    """How much better the second of two runs is.

    Attributes:
        first: Label of the first.
        second: Label of the second.
        metric: Which figure.
        before: Figure of the first, over the probes that count in both.
        after: Figure of the second.
        value: The second less the first; NaN where no probe counts in both.
        low: Lower end of the interval of the difference; NaN where one probe counts.
        high: Upper end, or NaN.
        p: Two-sided p of the permutation test.
        p_corrected: The same, corrected for how many differences were looked at.
        better: How many probes the second does better on.
        worse: How many it does worse on.
        n: How many probes count.
    """

    first: str
    second: str
    metric: str
    before: float
    after: float
    value: float
    low: float
    high: float
    p: float
    p_corrected: float
    better: int
    worse: int
    n: int

    @property
    def is_sure(self) -> bool:
        """Whether the corrected p is below 0.05."""
        return self.p_corrected < 0.05

    @property
    def interval(self) -> str:
        """The difference with its interval, where it has one."""
        ends = "" if math.isnan(self.low) else f" [{self.low:+.3f}, {self.high:+.3f}]"
        return f"{self.value:+.3f}{ends}"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as values that JSON can hold; None where there is no value."""
        numbers = ("before", "after", "value", "low", "high", "p", "p_corrected")
        values = {name: getattr(self, name) for name in numbers}
        rounded = {name: None if math.isnan(value) else round(value, 6) for name, value in values.items()}
        names = {"first": self.first, "second": self.second, "metric": self.metric}
        return {**names, **rounded, "better": self.better, "worse": self.worse, "n": self.n}

    def _row(self) -> tuple[Any, ...]:
        if math.isnan(self.value):
            return (shown_metric(self.metric), self.first, self.second, "", "", "", "", "", "", self.n)
        counts = (self.better, self.worse, self.n)
        p = f"{self.p_corrected:.4f}" + ("" if self.p_corrected == self.p else f" ({self.p:.4f})")
        return (
            shown_metric(self.metric),
            self.first,
            self.second,
            f"{self.before:.3f}",
            f"{self.after:.3f}",
            self.interval,
            p,
            *counts,
        )

    def __repr__(self) -> str:
        return Differences([self]).__repr__()

    def _repr_html_(self) -> str:
        return Differences([self])._repr_html_()


class Differences(Sequence[Difference]):
    """Differences that were looked at together, with p corrected for how many they are."""

    def __init__(self, differences: Sequence[Difference], notes: Sequence[str] = ()) -> None:
        corrected = holm([one.p for one in differences])
        self._items = tuple(replace(one, p_corrected=p) for one, p in zip(differences, corrected, strict=True))
        self.notes = tuple(notes)

    @overload
    def __getitem__(self, index: int) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Difference]: ...
    def __getitem__(self, index: int | slice) -> Difference | Sequence[Difference]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self._items)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a difference."""
        import pandas

        columns = list(Difference.__dataclass_fields__)
        return pandas.DataFrame([[getattr(one, name) for name in columns] for one in self._items], columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as values that JSON can hold."""
        return {"differences": [one.to_dict() for one in self._items], "notes": list(self.notes)}

    def figure(self) -> plotly.graph_objects.Figure:
        """Draw the differences with their intervals; those that are sure are filled."""
        from memoryfield.study.evaluation.figures import differences_figure

        return differences_figure(self)

    def table(self) -> Table:
        """Return the differences as a table to show."""
        columns = ("figure", "first", "second", "first has", "second has", "difference", "p", "better", "worse", "n")
        count = len(self._items)
        notes = [*self.notes]
        if count > 1:
            notes.insert(0, f"p corrected for {count} differences (Holm), uncorrected in brackets")
        heading = f"{counted(count, 'paired difference')}, second less first"
        right = frozenset(["first has", "second has", "better", "worse", "n"])
        return Table(heading, columns, [one._row() for one in self._items], notes, right)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def difference(
    old: Evaluation, new: Evaluation, first: str, second: str, metric: str = "mrr", *, category: str | None = None
) -> Difference:
    """Return how much better a run of *new* is than one of *old*, on the probes that count in both.

    Args:
        old: An evaluation.
        new: Another of the same probes, or the same one.
        first: Label of the run of *old*.
        second: Label of the run of *new*.
        metric: Which figure; one of single probes.
        category: Only the probes of one category.

    Raises:
        QueryError: No such run, figure or category.
    """
    one, other = old.values(metric, first), new.values(metric, second)
    numbers = {probe.id: number for number, probe in enumerate(new.probes)}
    places = [(i, numbers[old.probes[i].id]) for i in old._among(category) if old.probes[i].id in numbers]
    pairs = np.array([(one[i], other[j]) for i, j in places if not math.isnan(one[i] + other[j])]).reshape(-1, 2)
    if not len(pairs):
        empty = (math.nan,) * 7
        return Difference(first, second, metric, *empty, 0, 0, 0)
    gained = pairs[:, 1] - pairs[:, 0]
    value = float(gained.mean())
    resamples = new.resamples(len(gained))
    found = resamples.of(value, resamples.weights @ gained / len(gained))
    p = permutation_p(gained, seed=new.about["seed"])
    before, after = (float(side) for side in pairs.mean(axis=0))
    better, worse = int((gained > 0).sum()), int((gained < 0).sum())
    return Difference(
        first, second, metric, before, after, value, found.low, found.high, p, p, better, worse, len(gained)
    )


def compare(evaluation: Evaluation, metrics: Sequence[str], baseline: str | None = None) -> Differences:
    """Return the differences of all pairs of runs, or of each run from one; see ``Evaluation.compare``."""
    if isinstance(metrics, str):
        metrics = (metrics,)
    labels = evaluation.labels
    if baseline is not None:
        evaluation[baseline]  # an unknown label is refused
        pairs = [(baseline, label) for label in labels if label != baseline]
    else:
        pairs = list(combinations(labels, 2))
    return Differences([difference(evaluation, evaluation, *pair, metric) for metric in metrics for pair in pairs])


def diff(old: Evaluation, new: Evaluation, metrics: Sequence[str] = ("recall@1", "mrr", "ndcg@10")) -> Differences:
    """Return what changed between two evaluations of the same probes, as before and after a merge.

    Runs are matched by label and probes by id; only what is in both is compared. After a merge the gold pages may have
    other names: ``probes.with_gold_renamed`` gives the probes for the second evaluation.

    Args:
        old: Before.
        new: After.
        metrics: Which figures.

    Raises:
        QueryError: They have no retriever or no probe in common.
    """
    labels = [label for label in old.labels if label in new.labels]
    if not labels:
        raise QueryError(f"no retriever is in both: {', '.join(old.labels)} before, {', '.join(new.labels)} after")
    before = {probe.id: probe for probe in old.probes}
    both = [probe for probe in new.probes if probe.id in before]
    if not both:
        raise QueryError("no probe of one evaluation has the id of a probe of the other")
    notes = []
    if len(both) < max(len(old.probes), len(new.probes)):
        shared = counted(len(both), "probe is", "probes are")
        notes.append(f"{shared} in both, of {len(old.probes)} before and {len(new.probes)} after")
    asked = sum(before[probe.id].question != probe.question for probe in both)
    if asked:
        notes.append(f"{counted(asked, 'probe asks', 'probes ask')} something else now: their figures do not compare")
    moved = sum(before[probe.id].gold != probe.gold for probe in both)
    if moved:
        notes.append(f"{counted(moved, 'probe has', 'probes have')} other gold pages now")
    for label in labels:
        kinds = [(e[label].retriever, e[label].model_code, e[label].recipe) for e in (old, new)]
        if kinds[0] != kinds[1]:
            shown = " to ".join(", ".join(str(part) for part in kind if part) for kind in kinds)
            notes.append(f"{label} is another retriever now: {shown}")
    if old.about["field_sha256"] != new.about["field_sha256"]:
        pages = f"{old.about['pages']:,} to {new.about['pages']:,} pages"
        notes.append(f"the field changed between the two: {pages}")
    found = [difference(old, new, label, label, metric) for metric in metrics for label in labels]
    return Differences(found, notes)
