"""Places for pages that a map does not know yet, without moving the others: a map that jumps cannot be read twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEIGHBORS = 5
_SHARPNESS = 0.05  # cosines that far below the nearest count a third as much
_BLOCK = 1024


def row_digests(rows: NDArray[np.float32]) -> tuple[bytes, ...]:
    """Return a short digest of each row; equal rows have equal ones."""
    return tuple(hashlib.blake2b(row.data, digest_size=8).digest() for row in np.ascontiguousarray(rows))


def placed(
    names: Sequence[str],
    rows: NDArray[np.float32],
    digests: Sequence[bytes],
    earlier_names: Sequence[str],
    earlier_xy: NDArray[np.float32],
    earlier_digests: Sequence[bytes],
) -> NDArray[np.float32] | None:
    """Return coordinates in which every page that did not change stays where it was.

    A new or changed page goes to the mean of its nearest unchanged pages, the nearer ones counting more.

    Args:
        names: Page names.
        rows: ``(n_pages, dimensions)`` float32, unit rows.
        digests: Of *rows*.
        earlier_names: Page names of the earlier map.
        earlier_xy: ``(n_earlier, 2)`` float32.
        earlier_digests: Of the rows that it was made of.

    Returns:
        ``(n_pages, 2)`` float32; None where no page is as it was.
    """
    known = {name: number for number, name in enumerate(earlier_names)}
    before = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    kept = np.array(
        [old >= 0 and earlier_digests[old] == digest for old, digest in zip(before, digests, strict=True)], dtype=bool
    )
    if not kept.any():
        return None
    xy = np.zeros((len(names), 2), dtype=np.float32)
    xy[kept] = earlier_xy[before[kept]]
    anchors, anchored = rows[kept], xy[kept]
    moving = np.flatnonzero(~kept)
    k = min(NEIGHBORS, len(anchors))
    for start in range(0, len(moving), _BLOCK):
        some = moving[start : start + _BLOCK]
        cosines = rows[some] @ anchors.T
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :k]  # stable: rows are in the order of names
        values = np.take_along_axis(cosines, nearest, axis=1)
        weights = np.exp((values - values[:, :1]) / _SHARPNESS)
        weights /= weights.sum(axis=1, keepdims=True)
        xy[some] = np.einsum("nk,nkd->nd", weights, anchored[nearest])
    return xy
