"""The numbers that families are found with: one setting for all fields and models, chosen on six fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def _views() -> dict[str, dict[str, float]]:
    return {
        "all": {"content": 1, "words": 1, "jaccard": 1, "head": 0.5},
        "content": {"content": 1},
        "wording": {"words": 1, "jaccard": 1},
        "content and head": {"content": 1, "head": 1},
        "content and jaccard": {"content": 1, "jaccard": 1},
        "head and title": {"head": 1, "title": 1},
        "title": {"title": 1},
        "title first": {"content": 1, "words": 1, "title": 2},
        "everything": {"content": 1, "words": 1, "jaccard": 1, "head": 1, "title": 1},
    }


@dataclass(frozen=True)
class Settings:
    """One setting for all fields, chosen on six of them; ``benchmarks/bench_families.py`` shows what it reaches.

    Attributes:
        near: First neighbour of a page that counts for how near its neighbours usually are.
        far: Last one; half of their mean similarity is taken off.
        lines: Added for shared rare lines.
        numbers: Added for shared numbers, taken off for other ones.
        template: Taken off for one form with other values.
        slot: Taken off where the titles fill one place differently.
        same: Added for equal text.
        unlike: Taken off the log odds for long pages that share little, each tenth by a tenth of it.
        cut: The cut that serves most fields.
        broad: Share of the pages in families from which a field counts as one of broad families, and where it does so
            in full; the silhouette then says how broad.
        tried: That share is the one at so much above the cut that the silhouette likes best.
        above: In such a field the cut is at most this much above that one.
        common: Where fewer merges than this share of the pages stand clear of the cut, repetition is rare there.
        clear: So much above the cut is clear of it.
        rare: How much the cut goes up then, for each factor e.
        spread: How far the right cut may lie from that (standard deviation).
        first: Weight of the first view before any answer; the others share the rest.
        slopes: How soft a cut may be.
        wrong: How often an answer is taken for a slip or a special case.
        calm: After so many answers they count half; a few say little about the field.
        first_least: Families join at this mean probability while there are no answers.
        least: After answers they join at the one of these that promises the best F1.
        floor: Pairs that are less likely do not count as expected.
        views: Weights of the kinds of evidence, by view.
    """

    near: int = 2
    far: int = 10
    lines: float = 0.31
    numbers: float = 0.3
    template: float = 0.8
    slot: float = 0.07
    same: float = 0.3
    unlike: float = 8.0
    cut: float = 0.17
    broad: tuple[float, float] = (0.45, 0.55)
    tried: float = 0.105
    above: float = 0.06
    common: float = 0.08
    clear: float = 0.1
    rare: float = 0.07
    spread: float = 0.08
    first: float = 0.6
    slopes: tuple[float, ...] = (0.03, 0.06)
    wrong: float = 0.03
    calm: float = 5.0
    first_least: float = 0.42
    least: tuple[float, ...] = (0.5, 0.45, 0.4, 0.35, 0.3)
    floor: float = 0.1
    views: Mapping[str, Mapping[str, float]] = field(default_factory=_views)
