"""What an evaluation found: figures with intervals, per probe, by category, as tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memoryfield.display import Table, counted
from memoryfield.errors import QueryError
from memoryfield.study.evaluation import metrics
from memoryfield.study.evaluation.intervals import NOTHING, Estimate, Resamples, resamples_of
from memoryfield.study.evaluation.outcomes import NDCG_AT, Run, Values, shown_metric
from memoryfield.study.probes.probe import Probes

if TYPE_CHECKING:
    import os

    import pandas
    import plotly.graph_objects

    from memoryfield.study.evaluation.differences import Difference, Differences
    from memoryfield.study.evaluation.misses import Misses

SCHEMA = 1
_TIMES = {"embedding_ms": 0.5, "embedding_ms_p95": 0.95, "search_ms": 0.5, "search_ms_p95": 0.95}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Probes put to several retrievers.

    Figures (``metrics`` lists those that there are): ``recall@k``, ``mrr``, ``ndcg@10`` and ``coverage@k`` over the
    probes that have gold pages; ``family_recall@k`` and ``family_mrr`` over the same, where a page of a gold page's
    family is as good; ``auc`` of the gate's score, ``answered`` (share of answerable probes that pass the gate) and
    ``wrong_answers`` (share of unanswerable ones that pass); ``embedding_ms``, ``search_ms`` (medians) and their
    ``_p95``. ``docs/evaluation.md`` has the formulas.

    Attributes:
        probes: The probes.
        runs: One for each retriever, in the order asked.
        about: Everything needed to repeat it: field, digests, settings, seed, versions.
        notes: What else is worth knowing.
    """

    probes: Probes
    runs: tuple[Run, ...]
    about: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    _known: dict[tuple[str, str, str | None], Estimate] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, label: str) -> Run:
        """Return the run of a retriever.

        Raises:
            QueryError: There is none of that label.
        """
        for run in self.runs:
            if run.label == label:
                return run
        raise QueryError(f"no retriever is called {label!r} here; there are: {', '.join(self.labels)}")

    @property
    def labels(self) -> list[str]:
        """What the retrievers are called."""
        return [run.label for run in self.runs]

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of recall@k."""
        return tuple(self.about["ks"])

    @property
    def has_families(self) -> bool:
        """Whether family figures say something of their own."""
        return any(probe.family_gold - probe.gold for probe in self.probes)

    @property
    def metrics(self) -> list[str]:
        """The figures that there are."""
        names = [f"recall@{k}" for k in self.ks] + ["mrr", f"ndcg@{NDCG_AT}"]
        if self.has_families:
            names += [f"family_recall@{k}" for k in self.ks] + ["family_mrr"]
        if any(not probe.answerable for probe in self.probes):
            names.append("auc")
        if any(not math.isnan(run.threshold) for run in self.runs):
            names += ["answered", "wrong_answers"]
        if any(run.search_ms for run in self.runs):
            names += list(_TIMES)
        return names

    # ---- figures

    def values(self, metric: str, label: str) -> Values:
        """Return a figure for each probe, (n_probes,) in their order; NaN for probes that do not count in it.

        Raises:
            QueryError: No such figure, or no such retriever; AUC and times are no figures of single probes.
        """
        if metric in ("auc", *_TIMES):
            raise QueryError(f"{metric} is no figure of single probes")
        return self[label].values(self._checked(metric), self.probes)

    def _checked(self, metric: str) -> str:
        name, at, number = str(metric).partition("@")
        counted = name in ("recall", "ndcg", "coverage", "family_recall") and number.isascii() and number.isdigit()
        plain = not at and name in ("mrr", "family_mrr", "auc", "answered", "wrong_answers", *_TIMES)
        if not plain and not (counted and 1 <= int(number[:9]) <= self.about["depth"]):
            depth = self.about["depth"]
            raise QueryError(
                f"there is no figure {metric!r}; there are: {', '.join(self.metrics)}, and others k up to {depth}"
            )
        return f"{name}@{int(number)}" if counted else name

    def estimate(self, metric: str, label: str, category: str | None = None) -> Estimate:
        """Return a figure with its bootstrap interval.

        Args:
            metric: Its name.
            label: Which retriever.
            category: Only the probes of one category.

        Returns:
            The estimate; without a value (NaN, n = 0) where no probe counts in it.

        Raises:
            QueryError: No such figure, retriever or category.
        """
        metric = self._checked(metric)
        key = (metric, label, category)
        if key not in self._known:
            self._known[key] = self._estimated(metric, self[label], self._among(category))
        return self._known[key]

    def _among(self, category: str | None) -> npt.NDArray[np.intp]:
        """Return the numbers of a category's probes, in the order of their ids: their order in a file says nothing."""
        if category is not None and category not in self.probes.categories:
            raise QueryError(f"no probe is of category {category!r}; there are: {', '.join(self.probes.categories)}")
        chosen = [i for i, probe in enumerate(self.probes) if category is None or probe.category == category]
        return np.array(sorted(chosen, key=lambda i: self.probes[i].id), np.intp)

    def resamples(self, n: int) -> Resamples:
        """Return the resamples of *n* probes that the intervals are made with."""
        about = self.about
        return resamples_of(n, about["resamples"], about["seed"], about["confidence"])

    def _estimated(self, metric: str, run: Run, among: npt.NDArray[np.intp]) -> Estimate:
        if metric in _TIMES:
            times = np.array(run.embedding_ms if metric.startswith("embedding") else run.search_ms)
            return self.resamples(len(times)).quantile(times, _TIMES[metric])
        if metric == "auc":
            return self._auc(run, among)
        values = run.values(metric, self.probes)[among]
        values = values[~np.isnan(values)]
        return self.resamples(len(values)).mean(values) if len(values) else NOTHING

    def _auc(self, run: Run, among: npt.NDArray[np.intp]) -> Estimate:
        scores = np.array(run.scores)
        positive, negative = (
            np.array([i for i in among if self.probes[i].answerable == wanted], np.intp) for wanted in (True, False)
        )
        if not len(positive) or not len(negative):
            return NOTHING
        above, below = scores[positive], scores[negative]
        # both groups keep their size in a resample: how many there are of each was chosen, not found
        other = self.resamples(len(below))
        if len(above) == len(below):  # drawn alike, the two groups would rise and fall together
            other = replace(other, seed=other.seed + 1)
        weights = (self.resamples(len(above)).weights, other.weights)
        value = float(metrics.auc(above, below)[0])
        if len(above) == len(below) == 1:  # there is one way to draw them
            return Estimate(value, math.nan, math.nan, 2)
        found = self.resamples(len(above) + len(below)).of(value, metrics.auc(above, below, weights))
        return found

    def tradeoff(self, label: str) -> pandas.DataFrame:
        """Return what each threshold of the gate would do: ``threshold, answered, wrong_answers``, strictest first.

        Raises:
            QueryError: There are no answerable or no unanswerable probes.
        """
        import pandas
        from sklearn.metrics import roc_curve

        answerable = np.array([probe.answerable for probe in self.probes], int)
        if not 0 < answerable.sum() < len(answerable):
            raise QueryError("a trade-off needs answerable and unanswerable probes; add those of a second file with +")
        scores = np.array(self[label].scores)
        finite = scores[np.isfinite(scores)]
        scores = np.where(np.isfinite(scores), scores, (finite.min() if len(finite) else 0.0) - 1.0)
        wrong, right, thresholds = roc_curve(answerable, scores, drop_intermediate=False)
        return pandas.DataFrame({"threshold": thresholds, "answered": right, "wrong_answers": wrong})

    # ---- views

    def to_frame(self, category: str | None = None) -> pandas.DataFrame:
        """Return one row for each retriever and figure: ``retriever, metric, value, low, high, n``."""
        import pandas

        rows = []
        for run in self.runs:
            for metric in self.metrics:
                found = self.estimate(metric, run.label, category)
                rows.append((run.label, metric, found.value, found.low, found.high, found.n))
        return pandas.DataFrame(rows, columns=["retriever", "metric", "value", "low", "high", "n"])

    def by_category(self) -> pandas.DataFrame:
        """Return the rows of ``to_frame`` for each category, in a column ``category`` before them; without times."""
        import pandas

        frames = []
        for category in self.probes.categories:
            frame = self.to_frame(category)
            frame.insert(0, "category", category)
            frames.append(frame[~frame["metric"].isin(list(_TIMES))])
        return pandas.concat(frames, ignore_index=True)

    def per_probe(self) -> pandas.DataFrame:
        """Return one row a probe: what was asked, and for each retriever what it found.

        Columns of a retriever: ``LABEL rank`` of the first gold page and ``LABEL family rank`` (missing where not
        found), ``LABEL top`` (the first page), ``LABEL above`` (the pages above the first gold page, at most ten) and
        ``LABEL same family`` (whether the first page, where it is no gold page, is of a gold page's family).
        """
        import pandas

        columns: dict[str, Any] = {
            "id": [probe.id for probe in self.probes],
            "question": [probe.question for probe in self.probes],
            "category": [probe.category for probe in self.probes],
            "answerable": [probe.answerable for probe in self.probes],
            "gold": [sorted(probe.gold) for probe in self.probes],
        }
        for run in self.runs:
            first = run.first.tolist()
            family = list(run.family_ranks)
            columns[f"{run.label} rank"] = pandas.array([rank or None for rank in first], dtype="Int64")
            columns[f"{run.label} family rank"] = pandas.array([rank or None for rank in family], dtype="Int64")
            columns[f"{run.label} top"] = [names[0] if names else None for names in run.top]
            columns[f"{run.label} above"] = [
                list(names[: rank - 1] if rank else names) for names, rank in zip(run.top, first, strict=True)
            ]
            columns[f"{run.label} same family"] = [
                bool(names) and names[0] not in probe.gold and names[0] in probe.family_gold
                for names, probe in zip(run.top, self.probes, strict=True)
            ]
        return pandas.DataFrame(columns)

    def misses(self, k: int = 1, labels: Sequence[str] | None = None) -> Misses:
        """Return the probes whose gold page some retriever does not have among its first *k*, sorted by kind.

        Args:
            k: A gold page further down is missed.
            labels: Which retrievers to look at; all by default. A weak baseline among them misses nearly everything.

        Raises:
            QueryError: A *k* below 1 or above the depth, or no such retriever.
        """
        from memoryfield.study.evaluation.misses import find_misses

        return find_misses(self, k, labels)

    def difference(self, first: str, second: str, metric: str = "mrr", category: str | None = None) -> Difference:
        """Return how much better the second retriever is than the first, on the same probes, and how sure that is."""
        from memoryfield.study.evaluation.differences import difference

        return difference(self, self, first, second, metric, category=category)

    def compare(
        self, metrics: Sequence[str] = ("recall@1", "mrr", "ndcg@10"), baseline: str | None = None
    ) -> Differences:
        """Return the differences of all pairs of retrievers, corrected for how many they are (Holm).

        Args:
            metrics: Which figures.
            baseline: Compare only with this retriever.
        """
        from memoryfield.study.evaluation.differences import compare

        return compare(self, metrics, baseline)

    def diff(self, new: Evaluation, metrics: Sequence[str] = ("recall@1", "mrr", "ndcg@10")) -> Differences:
        """Return what changed from this evaluation to a later one of the same probes, as before and after a merge.

        Raises:
            QueryError: They have no retriever or no probe in common.
        """
        from memoryfield.study.evaluation.differences import diff

        return diff(self, new, metrics)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Evaluation:
        """Read an evaluation that ``save`` wrote.

        Raises:
            RowError: The file cannot be read, is none, was written by a newer version, or is damaged.
        """
        from memoryfield.study.evaluation.files import load_evaluation

        return load_evaluation(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the evaluation as JSON: all of it, with what is needed to repeat it.

        Raises:
            QueryError: Another ending than ``.json``, or something else stands there.
        """
        from memoryfield.study.evaluation.files import save_evaluation

        save_evaluation(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as values that JSON can hold; ``save`` keeps the answers to each probe as well."""
        figures = {
            run.label: {metric: self.estimate(metric, run.label).to_dict() for metric in self.metrics}
            for run in self.runs
        }
        return {"about": dict(self.about), "probes": len(self.probes), "figures": figures, "notes": list(self.notes)}

    def figure(self, kind: str = "figures") -> plotly.graph_objects.Figure:
        """Draw with plotly: ``figures`` with their intervals, ``ranks`` (recall at every k), ``categories``, ``gate``.

        Raises:
            QueryError: No such picture, or nothing to draw in it.
        """
        from memoryfield.study.evaluation.figures import evaluation_figure

        return evaluation_figure(self, kind)

    def tables(self) -> list[Table]:
        """Return what ``repr`` shows: the figures of retrieval, families, gate and latency that there are."""
        about = self.about
        gold = sum(probe.counts for probe in self.probes)
        heading = f"{about['field']}: {counted(gold, 'probe')} with gold pages, {counted(about['pages'], 'page')}"
        retrieval = self._figures(heading, [f"recall@{k}" for k in self.ks] + ["mrr", f"ndcg@{NDCG_AT}"])
        found = [retrieval]
        if self.has_families:
            found.append(self._figures("Families", [f"family_recall@{k}" for k in self.ks] + ["family_mrr"]))
        if "auc" in self.metrics or "answered" in self.metrics:
            unanswerable = sum(not probe.answerable for probe in self.probes)
            names = [name for name in ("auc", "answered", "wrong_answers") if name in self.metrics]
            gate = self._figures(f"Gate, {unanswerable} unanswerable probes", names)
            kinds = sorted({f"threshold {run.gate}" for run in self.runs if run.gate})
            found.append(Table(gate.heading, gate.columns, gate.rows, kinds))
        if "search_ms" in self.metrics:
            found.append(self._figures("Milliseconds a question, asked one by one", list(_TIMES)))
        models = [
            f"{run.label}: {run.retriever}" + (f", {run.model_code}, recipe {run.recipe}" if run.model_code else "")
            for run in self.runs
        ]
        level = f"{about['confidence']:.0%} bootstrap intervals over the probes, {about['resamples']:,} resamples"
        last = found[-1]
        notes = [*last.notes, *models, f"{level}, seed {about['seed']}; depth {about['depth']}", *self.notes]
        return [*found[:-1], Table(last.heading, last.columns, last.rows, notes)]

    def _figures(self, heading: str, names: Sequence[str]) -> Table:
        rows = [[run.label, *(self.estimate(name, run.label) for name in names)] for run in self.runs]
        titles = [shown_metric(name.removeprefix("family_")) for name in names]
        return Table(heading, ["retriever", *titles], rows)

    def __repr__(self) -> str:
        return "\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())
