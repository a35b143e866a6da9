"""How alike two vector spaces of the same pages are, and what the similarities within one of them look like.

Everything is computed in the spaces themselves, never on maps of them. Neighbours are exact. Cosines are compared to
six decimals, and equal ones stand in the order of the rows, so that rows sorted by name give the same answer whatever
order they came in. No matrix of all pairs is kept: neighbours are found block by block, and sums over all pairs come
from products of the columns (the sum of a_ij * b_ij over all pairs is the squared Frobenius norm of A'B).

Sources: rank-biased overlap, extrapolated (Webber, Moffat and Zobel 2010, eq. 32); linear CKA (Kornblith et al. 2019)
and its unbiased form (HSIC of Song et al. 2012); hubness as the skewness of k-occurrences (Radovanović et al. 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

RBO_DEPTH = 50  # further down a weight of 0.9 ** 50 = 0.005 is left
RBO_PERSISTENCE = 0.9
BINS = 2000  # of the cosines from -1 to 1; quantiles are read off them
_CELLS = 4_000_000  # similarities held at a time
_RANKED_PAIRS = 200_000  # pairs whose similarities are ranked; more would cost memory and change the third decimal
_SEED = 20_260_801


@dataclass(frozen=True, eq=False)
class Shape:
    """What the similarities within one space look like; NaN where there are too few pages to tell.

    Attributes:
        neighbors: (n_pages, depth) row numbers, nearest first, without the page itself.
        mean_cosine: Over all pairs; far above 0 means that vectors crowd into a cone (anisotropy).
        deviation: Standard deviation of the cosines of all pairs.
        quantiles: 5 %, 50 % and 95 % of the cosines of all pairs, to 0.001.
        nearest: Median cosine of a page with its nearest.
        hubness: Skewness of how often a page is among the *k* nearest of others; above 1 a few pages are everywhere.
        occurrences: (n_pages,) how often each page is.
        tied: Share of pages whose k-th and next neighbour have the same cosine, so that only their names decide.
        histogram: (BINS,) number of pairs by cosine, from -1 to 1.
    """

    neighbors: Rows
    mean_cosine: float
    deviation: float
    quantiles: tuple[float, float, float]
    nearest: float
    hubness: float
    occurrences: npt.NDArray[np.int64]
    tied: float
    histogram: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Likeness:
    """How alike two spaces are; NaN where there are too few pages to tell.

    Attributes:
        overlap: (n_pages,) share of the *k* nearest that both spaces name.
        rbo: (n_pages,) rank-biased overlap of the neighbours, persistence 0.9, down to the 50th.
        correlation: Pearson's, of the cosines of all pairs; from 3 pages.
        rank_correlation: Spearman's, of all pairs or of 200,000 drawn; from 3 pages.
        cka: Linear CKA; from 3 pages. High by itself where dimensions are many and pages few.
        cka_unbiased: The same with unbiased sums; from 4 pages. About 0 for unrelated spaces.
    """

    overlap: Doubles
    rbo: Doubles
    correlation: float
    rank_correlation: float
    cka: float
    cka_unbiased: float


def shape_of(matrix: FloatArray, k: int, progress: Callable[[int], None] | None = None) -> Shape:
    """Return what one space looks like.

    Args:
        matrix: (n_pages, dimensions) float32, unit rows, sorted by page name.
        k: Neighbours that count as near; cut to the number of other pages.
        progress: Called with the number of rows of each block when it is done.
    """
    count = len(matrix)
    depth = min(max(RBO_DEPTH, k), max(count - 1, 0))
    k = min(k, depth)
    neighbors = np.empty((count, depth), np.int32)
    nearest = np.empty(count)
    ties = 0
    histogram = np.zeros(BINS, np.int64)
    block = max(1, _CELLS // max(count, 1))
    for top in range(0, count, block):
        cosines = np.clip(matrix[top : top + block] @ matrix.T, -1.0, 1.0)
        here = np.arange(len(cosines))
        places = np.minimum((cosines + 1.0) * (BINS / 2), BINS - 1).astype(np.int32)
        histogram += np.bincount(places.ravel(), minlength=BINS)
        histogram -= np.bincount(places[here, top + here], minlength=BINS)
        if depth:
            rounded = np.rint(cosines * np.float32(1e6)).astype(np.int64)
            # one number for cosine and row, all different: the order does not hang on how they are sorted
            keys = rounded * count + np.arange(count - 1, -1, -1)
            keys[here, top + here] = np.iinfo(np.int64).min
            best = np.argpartition(keys, count - depth, axis=1)[:, count - depth :]
            order = np.argsort(-np.take_along_axis(keys, best, axis=1), axis=1)
            found = np.take_along_axis(best, order, axis=1)
            neighbors[top : top + block] = found
            ranked = np.take_along_axis(rounded, found, axis=1)
            nearest[top : top + block] = ranked[:, 0] / 1e6
            if depth > k:
                ties += int((ranked[:, k - 1] == ranked[:, k]).sum())
        if progress is not None:
            progress(len(cosines))
    histogram //= 2  # every pair was met twice
    pairs = count * (count - 1)
    total, squares = _pair_sums(matrix)
    mean = total / pairs if pairs else float("nan")
    occurrences = np.bincount(neighbors[:, :k].ravel(), minlength=count) if k else np.zeros(count, np.int64)
    return Shape(
        neighbors,
        mean,
        max(squares / pairs - mean * mean, 0.0) ** 0.5 if pairs else float("nan"),
        (_quantile(histogram, 0.05), _quantile(histogram, 0.5), _quantile(histogram, 0.95)),
        float(np.median(nearest)) if depth else float("nan"),
        _skewness(occurrences) if depth else float("nan"),
        occurrences,
        ties / count if count else float("nan"),
        histogram,
    )


def likeness_of(first: FloatArray, second: FloatArray, shapes: tuple[Shape, Shape], k: int) -> Likeness:
    """Return how alike two spaces of the same pages are.

    Args:
        first: (n_pages, dimensions) float32, unit rows, sorted by page name.
        second: The same pages in the other space; its dimensions may differ.
        shapes: What ``shape_of`` said of the two.
        k: Neighbours that count as near.
    """
    one, other = (shape.neighbors for shape in shapes)
    correlation, cka, unbiased = _moments(first, second)
    return Likeness(
        overlap(one, other, k),
        rank_biased_overlap(one, other),
        correlation,
        _rank_correlation(first, second),
        cka,
        unbiased,
    )


def overlap(one: Rows, other: Rows, k: int) -> Doubles:
    """Return the share of each page's *k* nearest that both lists name: (n_pages,); NaN for a page without others.

    Args:
        one: (n_pages, depth) row numbers, nearest first.
        other: The same of another space.
        k: How many count; cut to the length of the lists.
    """
    k = min(k, one.shape[1])
    if k == 0:
        return np.full(len(one), np.nan)
    found = np.empty(len(one))
    for top in range(0, len(one), 4096):
        both = one[top : top + 4096, :k, None] == other[top : top + 4096, None, :k]
        found[top : top + 4096] = both.sum(axis=(1, 2)) / k
    return found


def rank_biased_overlap(one: Rows, other: Rows, persistence: float = RBO_PERSISTENCE) -> Doubles:
    """Return the extrapolated rank-biased overlap of each page's neighbours: (n_pages,); NaN for a page without others.

    Args:
        one: (n_pages, depth) row numbers, nearest first, each once.
        other: The same of another space.
        persistence: How little the weight falls from one rank to the next.
    """
    depth = one.shape[1]
    if depth == 0:
        return np.full(len(one), np.nan)
    ranks = np.arange(depth)
    # an item that stands at rank i here and j there is shared from depth max(i, j) on
    shared_from = np.zeros((depth * depth, depth), np.float32)
    shared_from[np.arange(depth * depth), np.maximum(ranks[:, None], ranks[None, :]).ravel()] = 1.0
    weights = (1.0 - persistence) * persistence**ranks / (ranks + 1)
    weights[-1] += persistence**depth / depth  # what follows is taken to agree as much as all before
    found = np.empty(len(one))
    for top in range(0, len(one), 1024):
        same = one[top : top + 1024, :, None] == other[top : top + 1024, None, :]
        agreed = np.cumsum(same.reshape(len(same), -1).astype(np.float32) @ shared_from, axis=1, dtype=np.float64)
        found[top : top + 1024] = agreed @ weights
    return found


def _product(left: FloatArray, right: FloatArray) -> Doubles:
    """Return left' right: (columns of left, columns of right), added up in float64."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for top in range(0, len(left), 4096):
        total += left[top : top + 4096].astype(np.float64).T @ right[top : top + 4096].astype(np.float64)
    return total


def _lengths(matrix: FloatArray) -> Doubles:
    squares: Doubles = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return squares


def _pair_sums(matrix: FloatArray) -> tuple[float, float]:
    """Return the sums of the cosines and of their squares over all ordered pairs of two different pages."""
    lengths = _lengths(matrix)
    column = matrix.sum(axis=0, dtype=np.float64)
    return (
        float(column @ column - lengths.sum()),
        float((_product(matrix, matrix) ** 2).sum() - (lengths**2).sum()),
    )


def _moments(first: FloatArray, second: FloatArray) -> tuple[float, float, float]:
    """Return the correlation of the cosines, linear CKA, and linear CKA with unbiased sums."""
    count = len(first)
    if count < 3:
        return (float("nan"),) * 3
    sides = (first, second)
    columns = [matrix.sum(axis=0, dtype=np.float64) for matrix in sides]
    lengths = [_lengths(matrix) for matrix in sides]
    # sum of each page's cosines with all others
    rows = [
        matrix.astype(np.float64) @ column - own for matrix, column, own in zip(sides, columns, lengths, strict=True)
    ]
    totals = [float(row.sum()) for row in rows]
    pairs = count * (count - 1)

    def sums(a: int, b: int) -> tuple[float, float, float]:
        product = _product(sides[a], sides[b])
        together = float((product**2).sum() - lengths[a] @ lengths[b])
        covariance = together / pairs - totals[a] / pairs * (totals[b] / pairs)
        centred = float(((product - np.outer(columns[a], columns[b]) / count) ** 2).sum())
        unbiased = float("nan")
        if count >= 4:
            unbiased = (
                together
                + totals[a] * totals[b] / ((count - 1) * (count - 2))
                - 2.0 / (count - 2) * float(rows[a] @ rows[b])
            ) / (count * (count - 3))
        return covariance, centred, unbiased

    mixed, one, other = sums(0, 1), sums(0, 0), sums(1, 1)
    correlation, cka, unbiased = (_ratio(m, a, b) for m, a, b in zip(mixed, one, other, strict=True))
    return correlation, cka, unbiased


def _ratio(mixed: float, one: float, other: float) -> float:
    """Return mixed / sqrt(one * other), NaN where a side does not vary."""
    if not (one > 1e-15 and other > 1e-15):
        return float("nan")
    return float(np.clip(mixed / (one**0.5 * other**0.5), -1.0, 1.0))


def _rank_correlation(first: FloatArray, second: FloatArray) -> float:
    count = len(first)
    if count < 3:
        return float("nan")
    if count * (count - 1) // 2 <= _RANKED_PAIRS:
        left, right = np.triu_indices(count, 1)
    else:
        drawn = np.random.default_rng(_SEED)
        left = drawn.integers(0, count, _RANKED_PAIRS)
        right = (left + drawn.integers(1, count, _RANKED_PAIRS)) % count
    from scipy.stats import rankdata

    ranks = [rankdata(np.round(_cosines(matrix, left, right), 6)) for matrix in (first, second)]
    deviations = [rank - rank.mean() for rank in ranks]
    mixed, one, other = (float(deviations[a] @ deviations[b]) for a, b in ((0, 1), (0, 0), (1, 1)))
    return _ratio(mixed, one, other)


def _cosines(matrix: FloatArray, left: npt.NDArray[np.intp], right: npt.NDArray[np.intp]) -> Doubles:
    found = np.empty(len(left))
    for top in range(0, len(left), 8192):
        a, b = matrix[left[top : top + 8192]], matrix[right[top : top + 8192]]
        found[top : top + 8192] = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    return found


def _skewness(counts: npt.NDArray[np.int64]) -> float:
    deviations = counts - counts.mean()
    variance = float((deviations**2).mean())
    return float((deviations**3).mean()) / variance**1.5 if variance > 0 else 0.0


def _quantile(histogram: npt.NDArray[np.int64], share: float) -> float:
    total = histogram.sum()
    if not total:
        return float("nan")
    reached = np.cumsum(histogram)
    place = int(np.searchsorted(reached, share * total))
    before = float(reached[place - 1]) if place else 0.0
    within = (share * float(total) - before) / float(histogram[place])
    return float((place + within) * 2.0 / BINS - 1.0)
