"""Numbers behind families: local scaling, average linkage with and without answers, and the silhouette of a cut.

Similarities are square, symmetric arrays; a higher value means nearer, and a *cut* is a similarity, too. Average
linkage joins two groups by the mean over all their pairs, so that no chain of neighbours makes a family of its ends.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# A page has at least this many neighbours: where the field has fewer, others of an ordinary similarity are assumed.
# Otherwise two pages that are the whole field would be measured against each other alone.
_NEIGHBOURS = 10
_ORDINARY = 0.3


def neighbour_level(similarity: FloatArray, near: int, far: int) -> FloatArray:
    """Return for each row the mean similarity to its near-th to far-th neighbour.

    Args:
        similarity: ``(rows, pages)``; the page itself must hold ``-inf``.
        near: First neighbour that counts, from 1; those before may be of the family.
        far: Last one.
    """
    count = similarity.shape[1] - 1
    if count < _NEIGHBOURS:
        missing = np.full((len(similarity), _NEIGHBOURS - max(count, 0)), _ORDINARY)
        similarity = np.hstack([similarity, missing])
    nearest = -np.sort(np.partition(-similarity, far - 1, axis=1)[:, :far], axis=1)
    return np.asarray(nearest[:, near - 1 :].mean(axis=1), dtype=np.float64)


class Tree:
    """Average linkage of the pages of one block.

    Attributes:
        merges: As scipy gives them.
        heights: Similarity of each merge, highest first.
        step: For each pair, in condensed order, the merge that first holds both.
    """

    def __init__(self, similarity: FloatArray) -> None:
        from scipy.cluster.hierarchy import cophenet, linkage
        from scipy.spatial.distance import squareform

        self._top = float(similarity.max()) + 1e-6
        distance = self._top - (similarity + similarity.T) / 2
        np.fill_diagonal(distance, 0)
        self.merges: FloatArray = np.asarray(linkage(squareform(distance, checks=False), "average"))
        self.heights: FloatArray = self._top - self.merges[:, 2]
        # average linkage never goes back, so the distances of the merges are sorted
        found = np.searchsorted(self.merges[:, 2], cophenet(self.merges))
        self.step: npt.NDArray[np.int32] = np.minimum(found, len(self.heights) - 1).astype(np.int32)

    def labels(self, cut: float) -> IntArray:
        """Return a number for each page; pages of one group, as joined at *cut* or above, share it."""
        from scipy.cluster.hierarchy import fcluster

        return np.asarray(fcluster(self.merges, self._top - cut, "distance"), dtype=np.int64)


def silhouettes(distance: FloatArray, labels: IntArray) -> FloatArray:
    """Return the silhouette of each page, 0 for a page alone and -1 where all pages are one group."""
    labels = np.unique(labels, return_inverse=True)[1]
    count, groups = len(labels), int(labels.max()) + 1
    if groups < 2:
        return np.full(count, -1.0)
    member = np.zeros((count, groups))
    member[np.arange(count), labels] = 1
    size = member.sum(axis=0)
    total = distance @ member
    row = np.arange(count)
    own = total[row, labels] / np.maximum(size[labels] - 1, 1)
    mean = total / size
    mean[row, labels] = np.inf
    other = mean.min(axis=1)
    score = (other - own) / np.maximum(np.maximum(own, other), 1e-9)
    score[size[labels] == 1] = 0
    return np.asarray(score, dtype=np.float64)


class _Groups:
    """Groups of pages that are joined one by one, with the sum of the similarities between any two."""

    def __init__(self, similarity: FloatArray, barred: npt.NDArray[np.bool_]) -> None:
        count = len(similarity)
        self.label = np.arange(count)
        self.size = np.ones(count)
        self.total = similarity.copy()
        self.barred = barred.copy()
        self.alive = np.ones(count, dtype=bool)

    def join(self, a: int, b: int) -> int:
        a, b = min(a, b), max(a, b)
        self.total[a] += self.total[b]
        self.total[:, a] = self.total[a]
        self.barred[a] |= self.barred[b]
        self.barred[:, a] = self.barred[a]
        self.size[a] += self.size[b]
        self.alive[b] = False
        self.label[self.label == b] = a
        return a

    def means(self, group: int) -> FloatArray:
        row = np.where(self.alive & ~self.barred[group], self.total[group] / (self.size[group] * self.size), -np.inf)
        row[group] = -np.inf
        return np.asarray(row, dtype=np.float64)

    def all_means(self) -> FloatArray:
        average = self.total / np.outer(self.size, self.size)
        average[self.barred] = -np.inf
        average[~self.alive] = -np.inf
        average[:, ~self.alive] = -np.inf
        np.fill_diagonal(average, -np.inf)
        return np.asarray(average, dtype=np.float64)


def constrained_average(
    similarity: FloatArray, same: Iterable[tuple[int, int]], barred: npt.NDArray[np.bool_], cut: float
) -> IntArray:
    """Return a group for each page by average linkage down to *cut*.

    Args:
        similarity: ``(n, n)``, symmetric.
        same: Pairs that are joined first, whatever their similarity.
        barred: ``(n, n)``, symmetric: pairs that are never joined, unless *same* holds them together.
        cut: Smallest mean similarity at which two groups are joined.
    """
    groups = _Groups(similarity, barred)
    for a, b in sorted(same):
        if groups.label[a] != groups.label[b]:
            groups.join(int(groups.label[a]), int(groups.label[b]))
    average = groups.all_means()
    best, where = average.max(axis=1), average.argmax(axis=1)
    while True:
        a = int(best.argmax())
        if not best[a] >= cut:
            break
        a, b = sorted((a, int(where[a])))
        groups.join(a, b)
        row = groups.means(a)
        average[a], average[:, a] = row, row
        average[b], average[:, b] = -np.inf, -np.inf
        best[b] = -np.inf
        best[a], where[a] = row.max(), row.argmax()
        stale = np.flatnonzero(groups.alive & ((where == a) | (where == b)))
        if len(stale):
            best[stale], where[stale] = average[stale].max(axis=1), average[stale].argmax(axis=1)
        better = groups.alive & (row > best)
        best[better], where[better] = row[better], a
    return np.unique(groups.label, return_inverse=True)[1].astype(np.int64)
