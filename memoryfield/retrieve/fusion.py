"""Ranked lists made into one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

RANK_CONSTANT = 60  # Cormack, Clarke and Büttcher 2009; larger values make the first ranks count less


def reciprocal_rank_fusion(lists: Sequence[Sequence[Item]], k: int = RANK_CONSTANT) -> list[tuple[Item, float]]:
    """Return the items of several rankings, best first, with the sum of ``1 / (k + rank)`` over the rankings.

    Items with equal sums come in the order of their best rank, then of the first ranking that has them there.

    Args:
        lists: Rankings, best first. An item that stands in one twice counts where it stands first.
        k: How little the first ranks matter.
    """
    sums: dict[Item, float] = {}
    best: dict[Item, tuple[int, int]] = {}
    for number, ranking in enumerate(lists):
        for rank, item in enumerate(dict.fromkeys(ranking), start=1):
            sums[item] = sums.get(item, 0.0) + 1.0 / (k + rank)
            best[item] = min(best.get(item, (rank, number)), (rank, number))
    return sorted(sums.items(), key=lambda pair: (-pair[1], best[pair[0]]))
