"""Which pages are compared with which: all with all in a field of some thousand pages, blocks of neighbours beyond.

In a large field each page has candidates: its nearest pages and those that share runs of words with it. How near the
neighbours of a page usually are is taken from them; the best of them join blocks of bounded size, and only pairs within
a block are looked at. So the memory grows with the number of pages and not with that of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memoryfield.curate.committee import Pair, beyond, mixture
from memoryfield.curate.evidence import Evidence
from memoryfield.curate.linkage import FloatArray, IntArray, neighbour_level
from memoryfield.curate.settings import Settings

ALL_AT_ONCE = 3000  # up to this many pages every pair is looked at
_LARGEST_BLOCK = 300
_STRIP = 16_384  # pairs that are worked out at a time
_PROPOSED = 20  # nearest pages, by contents and by titles, that each page is compared with
_LEAST_SCORE = -0.1  # well below any cut that a field was seen to need


def levels_of(evidence: Evidence, settings: Settings) -> tuple[dict[str, FloatArray], list[tuple[float, int, int]]]:
    """Return how near the neighbours of each page usually are, for each view, and the pairs to compare.

    Of a field of up to 3,000 pages these are none, since all are compared; else the candidates, each with its raw
    similarity in the first view and the two pages, smaller number first.
    """
    count = len(evidence)
    if count > ALL_AT_ONCE:
        return _levels_of_many(evidence, settings)
    everyone = np.arange(count)
    tile = evidence.tile(everyone, everyone) if count else {}
    levels = {name: np.zeros(count) for name in settings.views}
    for name, weights in settings.views.items() if count else ():
        similarity = mixture(tile, weights)
        np.fill_diagonal(similarity, -np.inf)
        levels[name] = neighbour_level(similarity, settings.near, settings.far)
    return levels, []


def _levels_of_many(
    evidence: Evidence, settings: Settings
) -> tuple[dict[str, FloatArray], list[tuple[float, int, int]]]:
    a, b = evidence.candidates(_PROPOSED)
    similarity = {name: np.empty(len(a)) for name in settings.views}
    raw = np.empty(len(a))
    first = next(iter(settings.views))
    for top in range(0, len(a), _STRIP):
        part = slice(top, top + _STRIP)
        linked = evidence.linked(a[part], b[part])
        for name, weights in settings.views.items():
            similarity[name][part] = mixture(linked, weights)
        raw[part] = similarity[first][part] + beyond(linked, settings)
    ends = np.concatenate([a, b])
    levels = {
        name: _level_of_pairs(ends, np.concatenate([found, found]), len(evidence), settings)
        for name, found in similarity.items()
    }
    return levels, list(zip(raw.tolist(), a.tolist(), b.tolist(), strict=True))


def _level_of_pairs(ends: IntArray, similarity: FloatArray, count: int, settings: Settings) -> FloatArray:
    """Return the mean of the near-th to far-th similarity of each page, over the pairs that it is in."""
    order = np.lexsort((-similarity, ends))
    ends, similarity = ends[order], similarity[order]
    starts = np.searchsorted(ends, np.arange(count))
    rank = np.arange(len(ends)) - starts[ends]
    counts = (rank >= settings.near - 1) & (rank < settings.far)
    total = np.bincount(ends[counts], similarity[counts], minlength=count)
    return np.asarray(total / np.maximum(np.bincount(ends[counts], minlength=count), 1), dtype=np.float64)


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
