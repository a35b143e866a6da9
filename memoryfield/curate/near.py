"""Pairs of pages whose vectors lie close together: a first look at what may be said twice.

A pair is a place to look and never a verdict: no threshold means the same in two models or two fields, so the
result says how close the pages of this field are in general. Families, with evidence and review, grow from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from memoryfield.curate.pairs import pairs_above
from memoryfield.display import Table, counted
from memoryfield.errors import QueryError

if TYPE_CHECKING:
    import pandas

_BLOCK = 1024
_SHOWN = 20
_MOST_PAIRS = 1_000_000
_MANY = 5_000  # from so many pages on the whole product is avoided
_SAMPLED = 1_000
_STRIP = 128


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two pages and the cosine of their vectors; *first* comes before *second* in the alphabet."""

    first: str
    second: str
    cosine: float


@dataclass(frozen=True)
class NearDuplicates(Sequence[NearPair]):
    """Pairs at or above a threshold, nearest first.

    Attributes:
        pairs: The pairs.
        threshold: Smallest cosine of a pair.
        model_code: Model of the vectors.
        recipe: Recipe of the vectors.
        pages: How many pages were compared.
        median_nearest: Median over the pages, of a large field over a thousand of them, of the cosine to their nearest
            other page; ``nan`` below two pages.
    """

    pairs: tuple[NearPair, ...]
    threshold: float
    model_code: str
    recipe: str
    pages: int
    median_nearest: float

    @overload
    def __getitem__(self, index: int) -> NearPair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NearPair]: ...
    def __getitem__(self, index: int | slice) -> NearPair | Sequence[NearPair]:
        return self.pairs[index]

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[NearPair]:
        return iter(self.pairs)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a pair: ``first, second, cosine``."""
        import pandas

        rows = [(pair.first, pair.second, pair.cosine) for pair in self.pairs]
        return pandas.DataFrame(rows, columns=["first", "second", "cosine"])

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs and how they were found, ready for JSON."""
        median = None if np.isnan(self.median_nearest) else round(self.median_nearest, 6)
        pairs = [{"first": p.first, "second": p.second, "cosine": p.cosine} for p in self.pairs]
        return {
            "model": self.model_code,
            "recipe": self.recipe,
            "pages": self.pages,
            "threshold": self.threshold,
            "median_nearest": median,
            "pairs": pairs,
        }

    def _table(self) -> Table:
        count = len(self.pairs)
        heading = f"{counted(count, 'pair')} of {counted(self.pages, 'page')} with cosine {self.threshold:g} or more"
        notes = [f"model {self.model_code}, recipe {self.recipe}; a pair is a place to look, not a verdict"]
        if not np.isnan(self.median_nearest):
            notes.append(
                f"for comparison: half of the pages have their nearest other page at {self.median_nearest:.2f} or more"
            )
        return Table(
            heading,
            ["cosine", "first", "second"],
            [(f"{p.cosine:.3f}", p.first, p.second) for p in self.pairs[:_SHOWN]],
            notes,
            right=frozenset({"cosine"}),
            more=max(count - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def check_threshold(threshold: float) -> None:
    """Raise QueryError unless *threshold* can be a cosine."""
    if not -1.0 <= threshold <= 1.0:
        raise QueryError(f"threshold is {threshold!r}; a cosine lies between -1 and 1, a usual start is 0.8")


def near_duplicates(
    names: Sequence[str], matrix: NDArray[np.float32], threshold: float, *, model_code: str, recipe: str
) -> NearDuplicates:
    """Find every pair of rows with a cosine of at least *threshold*, exactly.

    Args:
        names: One name a row.
        matrix: ``(n_pages, dimensions)`` float32, unit rows.
        threshold: Between -1 and 1.
        model_code: Model that made the vectors, kept in the result.
        recipe: Recipe that made the vectors, kept in the result.

    Raises:
        QueryError: The threshold is not between -1 and 1, or so low that there are more than a million pairs.
    """
    check_threshold(threshold)
    count = len(names)
    if count > _MANY:
        return _of_many(names, matrix, threshold, model_code=model_code, recipe=recipe)
    nearest = np.full(count, -np.inf, dtype=np.float32)
    found: list[NearPair] = []
    for top in range(0, count, _BLOCK):
        rows = matrix[top : top + _BLOCK]
        for left in range(top, count, _BLOCK):
            cosines = rows @ matrix[left : left + _BLOCK].T
            if left == top:
                np.fill_diagonal(cosines, -np.inf)
            nearest[top : top + _BLOCK] = np.maximum(nearest[top : top + _BLOCK], cosines.max(axis=1))
            nearest[left : left + _BLOCK] = np.maximum(nearest[left : left + _BLOCK], cosines.max(axis=0))
            # float32 sums of unit rows are off by about 1e-7: equal texts count as cosine 1
            for i, j in np.argwhere(cosines >= threshold - 1e-6):
                a, b = top + int(i), left + int(j)
                if a < b:
                    first, second = sorted((names[a], names[b]))
                    found.append(NearPair(first, second, round(min(float(cosines[i, j]), 1.0), 6)))
            if len(found) > _MOST_PAIRS:
                raise QueryError(
                    f"more than {_MOST_PAIRS:,} pairs have cosine {threshold:g}; choose a higher threshold"
                )
    found.sort(key=lambda pair: (-pair.cosine, pair.first, pair.second))
    median = round(float(np.median(nearest)), 6) if count > 1 else float("nan")
    return NearDuplicates(tuple(found), threshold, model_code, recipe, count, median)


def _of_many(
    names: Sequence[str], matrix: NDArray[np.float32], threshold: float, *, model_code: str, recipe: str
) -> NearDuplicates:
    found = pairs_above(matrix, threshold, most=_MOST_PAIRS)
    pairs = []
    for a, b, cosine in zip(found.first.tolist(), found.second.tolist(), found.cosine.tolist(), strict=True):
        first, second = sorted((names[a], names[b]))
        pairs.append(NearPair(first, second, round(cosine, 6)))
    pairs.sort(key=lambda pair: (-pair.cosine, pair.first, pair.second))
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__))  # so that the order of the rows is no matter
    sample = by_name[np.linspace(0, len(names) - 1, min(_SAMPLED, len(names))).astype(np.int64)]
    nearest = np.empty(len(sample))
    for top in range(0, len(sample), _STRIP):
        rows = sample[top : top + _STRIP]
        cosines = matrix[rows] @ matrix.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        nearest[top : top + _STRIP] = cosines.max(axis=1)
    return NearDuplicates(tuple(pairs), threshold, model_code, recipe, len(names), round(float(np.median(nearest)), 6))
