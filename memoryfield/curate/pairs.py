"""All pairs of rows above a cosine, exactly, without the whole product.

The rows are turned so that the first few directions hold most of their length. The product over those directions, plus
the product of what is left of the two lengths, is never below the cosine (Cauchy-Schwarz); only pairs whose bound
reaches the cut are worked out in full. The turn keeps cosines, so nothing is approximate but the saving. Where too many
pairs reach it, as among vectors that fill their space, whole tiles are worked out instead: never much dearer than the
plain product.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memoryfield.errors import QueryError

_TILE = 2048
_THIRTY_SECONDS = (1, 2, 3, 4, 6, 8, 12, 16)  # of the directions: prefixes that are tried on a sample
_SAMPLE = 1024
_CHECK = 40_000  # what a pair costs that is worked out in full, in products of one direction
_TRIED = 8  # tiles after which the bound is given up if it was of no use in more than half of them
_SLACK = 1e-5  # float32 products of unit rows are off by less
_MOST_PAIRS = 20_000_000
_AT_ONCE = 4096
_STRIP = 256


class CosinePairs(NamedTuple):
    """Pairs of rows, *first* below *second*, sorted.

    Attributes:
        first: ``(n_pairs,)`` row numbers.
        second: ``(n_pairs,)`` row numbers.
        cosine: ``(n_pairs,)`` float64.
    """

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    cosine: npt.NDArray[np.float64]


def pairs_above(matrix: npt.NDArray[np.float32], cut: float, *, most: int = _MOST_PAIRS) -> CosinePairs:
    """Return every pair of rows whose cosine is at least *cut*.

    Besides the matrix this needs at most half of its memory again, one tile, and the pairs found.

    Args:
        matrix: ``(n_rows, dimensions)`` float32, unit rows.
        cut: Between -1 and 1.
        most: Give up beyond so many pairs.

    Raises:
        QueryError: The cut is not between -1 and 1, or so low that there are more than *most* pairs.
    """
    if not -1.0 <= cut <= 1.0:
        raise QueryError(f"cut is {cut!r}; a cosine lies between -1 and 1.")
    count = len(matrix)
    head = _bounding(matrix, cut)
    parts: list[CosinePairs] = []
    total = tried = useless = 0
    for top in range(0, count, _TILE):
        for left in range(top, count, _TILE):
            bound = head[top : top + _TILE] @ head[left : left + _TILE].T
            near = np.flatnonzero(bound.ravel() >= cut - _SLACK)
            if head is not matrix:
                tried += 1
                if len(near) * _CHECK > bound.size * matrix.shape[1]:
                    useless += 1
                    bound = matrix[top : top + _TILE] @ matrix[left : left + _TILE].T
                    near = np.flatnonzero(bound.ravel() >= cut - _SLACK)
                if tried >= _TRIED and 2 * useless > tried:
                    head = matrix
            a, b = top + near // bound.shape[1], left + near % bound.shape[1]
            if left == top:
                a, b = a[a < b], b[a < b]
            found = _checked(matrix, a, b, cut)
            parts.append(found)
            total += len(found.cosine)
            if total > most:
                raise QueryError(f"more than {most:,} pairs have cosine {cut:g}; choose a higher cut.")
    if not parts:
        return CosinePairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    first, second, cosine = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((second, first))
    return CosinePairs(first[order], second[order], cosine[order])


def nearest_pairs(matrix: npt.NDArray[np.floating], most: int) -> npt.NDArray[np.int64]:
    """Return each row with the *most* rows nearest to it, as pairs of rows, the smaller first; some come twice.

    Args:
        matrix: ``(n_rows, dimensions)``, unit rows.
        most: How many, fewer than there are rows.
    """
    rows = np.asarray(matrix, dtype=np.float32)
    count = len(rows)
    most = min(most, count - 1)
    if most < 1:
        return np.zeros((0, 2), dtype=np.int64)
    found = np.empty((count, most), dtype=np.int64)
    for top in range(0, count, _STRIP):
        cosines = rows[top : top + _STRIP] @ rows.T
        own = np.arange(len(cosines))
        cosines[own, top + own] = -np.inf
        found[top : top + _STRIP] = np.argpartition(cosines, count - most, axis=1)[:, count - most :]
    one, other = np.repeat(np.arange(count), most), found.ravel()
    return np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1)


def _bounding(matrix: npt.NDArray[np.float32], cut: float) -> npt.NDArray[np.float32]:
    """Return rows whose products are never below the cosines: the leading directions and the length of the rest."""
    count, dimensions = matrix.shape
    if count < _TILE:
        return matrix
    turn = np.linalg.eigh((matrix.T @ matrix).astype(np.float64))[1][:, ::-1].astype(np.float32)
    sample = matrix[:: max(count // _SAMPLE, 1)][:_SAMPLE]
    lengths = [max(dimensions * part // 32, 1) for part in _THIRTY_SECONDS]
    costs = [n + _CHECK * _passing(_shortened(sample, turn[:, :n]), cut) for n in lengths]
    if min(costs) >= dimensions:
        return matrix  # vectors that fill their space: nothing is saved, nothing is lost
    length = lengths[costs.index(min(costs))]
    head = np.empty((count, length + 1), dtype=np.float32)
    for top in range(0, count, _AT_ONCE):
        head[top : top + _AT_ONCE] = _shortened(matrix[top : top + _AT_ONCE], turn[:, :length])
    return head


def _shortened(rows: npt.NDArray[np.float32], turn: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lead = rows @ turn
    own = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    rest = np.sqrt(np.maximum(own - np.einsum("ij,ij->i", lead, lead, dtype=np.float64), 0) + 1e-9)
    return np.hstack([lead, rest[:, None].astype(np.float32)])


def _passing(head: npt.NDArray[np.float32], cut: float) -> float:
    bound = head @ head.T
    np.fill_diagonal(bound, -np.inf)
    return float((bound >= cut).mean())


def _checked(
    matrix: npt.NDArray[np.float32], a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], cut: float
) -> CosinePairs:
    near = np.ones(len(a), dtype=bool)
    for top in range(0, len(a), _AT_ONCE):
        part = slice(top, top + _AT_ONCE)
        near[part] = np.einsum("ij,ij->i", matrix[a[part]], matrix[b[part]]) >= cut - _SLACK
    a, b = a[near], b[near]
    cosine = np.empty(len(a))
    for top in range(0, len(a), _AT_ONCE):  # what float32 leaves open: six times as slow, for a few
        part = slice(top, top + _AT_ONCE)
        cosine[part] = np.einsum("ij,ij->i", matrix[a[part]], matrix[b[part]], dtype=np.float64)
    keep = cosine >= cut - 1e-6  # equal texts have cosine 1, but for the rounding of float32
    return CosinePairs(a[keep], b[keep], np.minimum(cosine[keep], 1.0))
