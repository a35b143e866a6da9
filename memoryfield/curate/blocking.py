"""Which pages are compared with which: all with all in a field of some thousand pages, blocks of neighbours beyond.

How near the neighbours of a page usually are is always taken from the whole field, a strip of rows at a time. In a
large field each page then proposes its nearest pages, the best proposals join blocks of bounded size, and only pairs
within a block are looked at: the memory grows with the number of pages and not with that of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memoryfield.curate.committee import Pair, beyond, mixture
from memoryfield.curate.evidence import Evidence
from memoryfield.curate.linkage import FloatArray, IntArray, neighbour_level
from memoryfield.curate.settings import Settings

ALL_AT_ONCE = 3000  # up to this many pages every pair is looked at
_LARGEST_BLOCK = 600
_STRIP = 256
_PROPOSED = 20  # pages that each page proposes
_LEAST_SCORE = -0.1  # well below any cut that a field was seen to need


def levels_of(evidence: Evidence, settings: Settings) -> tuple[dict[str, FloatArray], list[tuple[float, int, int]]]:
    """Return how near the neighbours of each page usually are, for each view, and what each page proposes.

    A proposal is the raw similarity in the first view and the two pages, smaller number first.
    """
    count = len(evidence)
    everyone = np.arange(count)
    levels = {name: np.zeros(count) for name in settings.views}
    first = next(iter(settings.views))
    proposals: list[tuple[float, int, int]] = []
    height = count if count <= ALL_AT_ONCE else _STRIP
    for top in range(0, count, max(height, 1)):
        rows = everyone[top : top + height]
        tile = evidence.tile(rows, everyone)
        own = np.arange(len(rows))
        for name, weights in settings.views.items():
            similarity = mixture(tile, weights)
            similarity[own, rows] = -np.inf
            levels[name][rows] = neighbour_level(similarity, settings.near, settings.far)
            if name == first and count > ALL_AT_ONCE:
                raw = similarity + beyond(tile, settings)
                nearest = np.argpartition(-raw, _PROPOSED, axis=1)[:, :_PROPOSED]
                for place, row in enumerate(rows.tolist()):
                    proposals += [(float(raw[place, j]), min(row, j), max(row, j)) for j in nearest[place].tolist()]
    return levels, proposals


def blocks_of(
    count: int,
    level: FloatArray,
    proposals: Iterable[tuple[float, int, int]],
    joined: Iterable[Pair],
) -> list[IntArray]:
    """Return the blocks of pages to compare.

    Args:
        count: Number of pages.
        level: How near the neighbours of each page usually are in the first view.
        proposals: Raw similarities of pairs in that view.
        joined: Pairs that are to stand in one block where its size allows: answers, same titles and the like.
    """
    if count <= ALL_AT_ONCE:
        return [np.arange(count)]
    leader = list(range(count))
    size = [1] * count

    def find(page: int) -> int:
        while leader[page] != page:
            leader[page] = leader[leader[page]]
            page = leader[page]
        return page

    scored = {(a, b): raw - (level[a] + level[b]) / 2 for raw, a, b in proposals}
    wanted = [(np.inf, a, b) for a, b in sorted(joined)]
    wanted += sorted((-s, a, b) for (a, b), s in scored.items() if s >= _LEAST_SCORE)
    for _, a, b in wanted:
        one, other = sorted((find(a), find(b)))
        if one != other and size[one] + size[other] <= _LARGEST_BLOCK:
            leader[other] = one
            size[one] += size[other]
    members: dict[int, list[int]] = {}
    for page in range(count):
        members.setdefault(find(page), []).append(page)
    return [np.array(found) for found in members.values() if len(found) > 1]
