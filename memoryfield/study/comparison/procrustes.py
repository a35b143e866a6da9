"""Laying one map over another of the same pages, so that the eye compares places and not turns and flips.

Source: orthogonal Procrustes with scaling (Schönemann 1966; Gower 1975).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]


def aligned(target: npt.ArrayLike, moving: npt.ArrayLike) -> tuple[Points, Points]:
    """Return two maps with the centre 0 and the size 1, the second turned or flipped to lie on the first as it can.

    Args:
        target: (n_pages, 2).
        moving: (n_pages, 2), the same pages in the same order.
    """
    first, second = _unit(target), _unit(moving)
    if len(first) == 0:
        return first, second
    left, _, right = np.linalg.svd(second.T @ first)
    return first, second @ (left @ right)


def _unit(points: npt.ArrayLike) -> Points:
    rows = np.asarray(points, dtype=np.float64)
    if len(rows) == 0:
        return rows.reshape(0, 2)
    rows = rows - rows.mean(axis=0)
    size = float(np.linalg.norm(rows))
    found: Points = rows / size if size > 0 else rows
    return found
