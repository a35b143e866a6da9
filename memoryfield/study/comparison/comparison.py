"""What a comparison of spaces found: agreement of each pair, shape and cost of each space, the pages in between."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.display import Table, plain
from memoryfield.errors import PageNotFound, QueryError
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.study.comparison.changed import ChangedPage, ChangedPages, Words, as_seen, most_changed
from memoryfield.study.comparison.tables import all_tables, space_rows
from memoryfield.study.evaluation.intervals import CONFIDENCE, NOTHING, Estimate, resamples_of

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

    from memoryfield.format.page import Page
    from memoryfield.study.comparison.likeness import Likeness, Shape
    from memoryfield.study.comparison.procrustes import Points
    from memoryfield.study.comparison.spaces import Space
    from memoryfield.study.evaluation.differences import Differences
    from memoryfield.study.evaluation.evaluation import Evaluation

FIGURES = ("agreement", "similarities", "changed")
MEASURES = {
    "overlap": "neighbour overlap",
    "rbo": "rank-biased overlap",
    "cka": "linear CKA",
    "cka_unbiased": "linear CKA, unbiased",
    "correlation": "correlation of cosines",
    "rank_correlation": "rank correlation of cosines",
}


@dataclass(frozen=True)
class Agreement:
    """How far the families of two spaces agree.

    Attributes:
        adjusted_rand: 1 for the same families, about 0 for what chance gives.
        f1: Pairwise F1 of the one against the other; the same in both directions.
        pairs_first: Pairs of pages that stand together in the first.
        pairs_second: And in the second.
    """

    adjusted_rand: float
    f1: float
    pairs_first: int
    pairs_second: int


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Spaces of the same pages, side by side.

    Attributes:
        spaces: What was compared.
        shapes: What the similarities in each space look like.
        likenesses: How alike each pair is, by the labels of the two; values by page are in the order of *pages*.
        k: Neighbours that count as near.
        pages: The pages, by name, sorted.
        failed: What could not be compared, and why.
        notes: What else is worth knowing.
        agreements: How far the families of each pair agree, where that was asked for.
        evaluation: How well each space finds the answers of probes, where there were any.
    """

    spaces: tuple[Space, ...]
    shapes: tuple[Shape, ...]
    likenesses: Mapping[tuple[str, str], Likeness]
    k: int
    pages: Mapping[str, Page]
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    agreements: Mapping[tuple[str, str], Agreement] = field(default_factory=dict)
    evaluation: Evaluation | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the spaces."""
        return tuple(space.label for space in self.spaces)

    @cached_property
    def _words(self) -> Words:
        return Words(list(self.pages.values()))

    @property
    def chance(self) -> float:
        """Neighbour overlap that two unrelated spaces would have; NaN for a page without others."""
        others = len(self.pages) - 1
        return min(self.k, others) / others if others > 0 else float("nan")

    def pair(self, first: str | None = None, second: str | None = None) -> tuple[str, str]:
        """Return the labels of a pair in the order of ``likenesses``; the one that is least alike by default.

        Raises:
            QueryError: There is no such space, it is one and the same, or there are fewer than two.
        """
        if len(self.spaces) < 2:
            raise QueryError(f"a pair needs two spaces and there are {len(self.spaces)}" + self._why_missing())
        for label in (first, second):
            if label is not None and label not in self.labels:
                raise QueryError(f"there is no space {label!r}; there are: {', '.join(self.labels)}")
        if first is not None and first == second:
            raise QueryError(f"{first!r} twice; a pair is of two spaces")
        if first is None and second is None:
            return self.least_alike()[0][0]
        one = first if first is not None else next(label for label in self.labels if label != second)
        other = second if second is not None else next(label for label in self.labels if label != one)
        return (one, other) if (one, other) in self.likenesses else (other, one)

    def _why_missing(self) -> str:
        return "".join(f"; {label} failed: {why}" for label, why in self.failed.items())

    def most_changed(self, n: int = 10, first: str | None = None, second: str | None = None) -> ChangedPages:
        """Return the *n* pages that two spaces see most differently, with their neighbours in both.

        Args:
            n: How many.
            first: Label of a space; by default every pair is looked at and each page shown in its worst.
            second: Label of the other.
        """
        pairs = self.likenesses
        if first is not None or second is not None:
            chosen = self.pair(first, second)
            pairs = {chosen: self.likenesses[chosen]}
        return most_changed(n, pairs, self._by_label, self.pages, self._words, self.k)

    def page(self, name: str, first: str | None = None, second: str | None = None) -> ChangedPage:
        """Return one page as two spaces see it, with its neighbours in both; by default the least alike pair.

        Raises:
            PageNotFound: The page was not compared.
        """
        pair = self.pair(first, second)
        names = list(self.pages)
        name = name.removesuffix(PAGE_SUFFIX)
        if name not in self.pages:
            raise PageNotFound(f"there is no page {name!r} among the {len(names):,} that were compared")
        row, likeness = names.index(name), self.likenesses[pair]
        values = float(likeness.overlap[row]), round(float(likeness.rbo[row]), 9)
        return as_seen(name, row, pair, values, self._by_label, self.pages, names, self._words)

    @property
    def _by_label(self) -> dict[str, tuple[Space, Shape]]:
        return {space.label: (space, shape) for space, shape in zip(self.spaces, self.shapes, strict=True)}

    @cached_property
    def differences(self) -> Differences | None:
        """How much better one space finds the answers than another, probe by probe; None without probes."""
        if self.evaluation is None:
            return None
        return self.evaluation.compare(("recall@1", "mrr"))

    # ---- as frames

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a pair of spaces: means over the pages, and what holds of the spaces as a whole."""
        import pandas

        columns = ["first", "second", *MEASURES]
        rows = [[*labels, *self.values(labels).values()] for labels in self.likenesses]
        frame = pandas.DataFrame(rows, columns=columns)
        for measure in ("overlap", "rbo"):
            found = [self.estimate(measure, *labels) for labels in self.likenesses]
            frame[f"{measure}_low"] = [one.low for one in found]
            frame[f"{measure}_high"] = [one.high for one in found]
        if self.agreements:
            agreed = [self.agreements.get(labels) for labels in self.likenesses]
            frame["families_rand"] = [float("nan") if one is None else one.adjusted_rand for one in agreed]
            frame["families_f1"] = [float("nan") if one is None else one.f1 for one in agreed]
        return frame

    def spaces_frame(self) -> pandas.DataFrame:
        """Return one row a space: its costs, and the shape of its similarities."""
        import pandas

        return pandas.DataFrame(space_rows(self))

    def pages_frame(self, first: str | None = None, second: str | None = None) -> pandas.DataFrame:
        """Return one row a page: ``name, title, overlap, rbo`` of a pair, by default the least alike."""
        import pandas

        likeness = self.likenesses[self.pair(first, second)]
        titles = [page.title for page in self.pages.values()]
        values = {"name": list(self.pages), "title": titles, "overlap": likeness.overlap, "rbo": likeness.rbo}
        return pandas.DataFrame(values)

    def least_alike(self) -> list[tuple[tuple[str, str], float]]:
        """Return every pair with its mean rank-biased overlap, the least alike first."""
        found = [(labels, self.values(labels)["rbo"]) for labels in self.likenesses]
        return sorted(found, key=lambda pair: (np.nan_to_num(pair[1]), pair[0]))

    def values(self, labels: tuple[str, str]) -> dict[str, float]:
        """Return all ``MEASURES`` of a pair, those of single pages as their mean."""
        likeness = self.likenesses[labels]
        empty = not len(likeness.overlap)
        return {
            "overlap": float("nan") if empty else float(likeness.overlap.mean()),
            "rbo": float("nan") if empty else float(likeness.rbo.mean()),
            **{name: float(getattr(likeness, name)) for name in list(MEASURES)[2:]},
        }

    def value(self, measure: str, first: str, second: str) -> float:
        """Return one of ``MEASURES`` for two spaces, whichever comes first; 1 for a space with itself."""
        if measure not in MEASURES:
            raise QueryError(f"measure is {measure!r}; expected one of {', '.join(MEASURES)}")
        return 1.0 if first == second else self.values(self.pair(first, second))[measure]

    def estimate(self, measure: str, first: str | None = None, second: str | None = None) -> Estimate:
        """Return the mean over the pages of ``overlap`` or ``rbo``, with a 95 % bootstrap interval over the pages."""
        if measure not in ("overlap", "rbo"):
            raise QueryError(f"measure is {measure!r}; only overlap and rbo have a value for each page")
        values = getattr(self.likenesses[self.pair(first, second)], measure)
        if not len(values) or not np.isfinite(values).all():
            return NOTHING
        count = 2000 if len(values) <= 1000 else 400  # resamples of many pages are large and agree sooner
        return resamples_of(len(values), count, 0, CONFIDENCE).mean(values)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the vectors as values that JSON can hold; NaN becomes None."""
        found = {
            "k": self.k,
            "pages": len(self.pages),
            "spaces": space_rows(self),
            "pairs": [
                {
                    "first": labels[0],
                    "second": labels[1],
                    **self.values(labels),
                    **({"families": asdict(self.agreements[labels])} if labels in self.agreements else {}),
                }
                for labels in self.likenesses
            ],
            "changed": self.most_changed(10).to_dict(),
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
            "differences": None if self.differences is None else self.differences.to_dict()["differences"],
            "failed": dict(self.failed),
            "notes": list(self.notes),
        }
        cleaned: dict[str, Any] = _json_values(found)
        return cleaned

    # ---- to look at

    def tables(self) -> list[Table]:
        """Return what ``repr`` shows: the spaces, the pairs, retrieval where there were probes, and what failed."""
        return all_tables(self)

    def __repr__(self) -> str:
        return "\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def figure(self, kind: str = "agreement", **options: Any) -> plotly.graph_objects.Figure:
        """Draw with plotly.

        Args:
            kind: ``agreement`` (a heat map; option ``measure``, one of ``MEASURES``), ``similarities`` (cosines of
                all pairs in each space), or ``changed`` (options ``n``, ``first``, ``second``: the pages that two
                spaces see most differently, and where the one's neighbours stand in the other).
            options: As said above.
        """
        from memoryfield.study.comparison import figures as compare_figures

        draw = {
            "agreement": compare_figures.agreement_figure,
            "similarities": compare_figures.similarities_figure,
            "changed": compare_figures.changed_figure,
        }
        if kind not in draw:
            raise QueryError(f"kind is {kind!r}; expected one of {', '.join(FIGURES)}")
        return draw[kind](self, **options)

    def maps(
        self, first: str | None = None, second: str | None = None, *, method: str = "auto", n: int = 10
    ) -> plotly.graph_objects.Figure:
        """Draw the maps of two spaces side by side, the second turned, flipped and scaled to fit the first.

        The *n* pages that the two see most differently have numbers. Maps help the eye and are no evidence.

        Args:
            first: Label of a space; by default the pair that is least alike.
            second: Label of the other.
            method: ``auto``, ``pca`` or ``umap``; see ``layout``.
            n: How many pages are numbered.
        """
        from memoryfield.study.comparison import figures as compare_figures

        return compare_figures.maps_figure(self, *self.pair(first, second), method=method, n=n)

    def places(
        self, first: str | None = None, second: str | None = None, *, method: str = "auto"
    ) -> tuple[tuple[Points, Points], tuple[str, str]]:
        """Return where the pages are on the maps of two spaces, the second laid over the first, and how both were made.

        Args:
            first: Label of a space; by default the pair that is least alike.
            second: Label of the other.
            method: ``auto``, ``pca`` or ``umap``; see ``layout``.

        Returns:
            Two arrays (n_pages, 2) in the order of ``pages``, and ``PCA`` or ``UMAP`` for each.
        """
        from memoryfield.study.comparison import figures as compare_figures

        return compare_figures.aligned_maps(self, *self.pair(first, second), method)

    def to_markdown(self) -> str:
        """Return spaces, pairs and notes as Markdown tables."""
        from memoryfield.study.comparison.report import markdown

        return markdown(self)

    def report(
        self, path: str | os.PathLike[str] | None = None, *, title: str = "", maps: str = "auto", n: int = 15
    ) -> str:
        """Return the comparison as one HTML page that needs no network and no script, and write it where asked.

        Args:
            path: File to write; an HTML page there is replaced, nothing else.
            title: Heading; by default made of the labels.
            maps: How the maps are made: ``auto``, ``pca``, ``umap`` or ``none``.
            n: How many of the most different pages are shown.
        """
        from memoryfield.format.targets import HTML_STARTS, check_target, write_target
        from memoryfield.study.comparison.report import html_report

        if maps not in ("auto", "pca", "umap", "none"):
            raise QueryError(f"maps is {maps!r}; expected auto, pca, umap or none")
        target = None if path is None else check_target(path, HTML_STARTS, what="HTML page", error=QueryError)
        text = html_report(self, title=title, maps=maps, n=n)
        if target is not None:
            write_target(Path(target), text.encode("utf-8", "backslashreplace"))
        return text


def _json_values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json_values(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json_values(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return plain(value) if isinstance(value, os.PathLike) else json.loads(json.dumps(value))
