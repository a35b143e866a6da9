"""Names for the dense regions of a map, made of the words that tell their pages from the rest.

A region is what flows to one peak of the density: pages counted on a grid, smoothed, each cell following its steepest
ascent. A word counts by how much more frequent it is in the region than elsewhere (class-based TF-IDF: Grootendorst,
2022, arXiv:2203.05794). All of it is fixed by the coordinates and the texts; there is no chance in it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[^\W\d_][\w'’-]*", re.UNICODE)
_SHORTEST = 3
_TITLE_WEIGHT = 2
_WORDS = 2  # in a label
_LONGEST = 34  # characters of a label
# For each level: cells along a side, width of the smoothing in cells, smallest share of the pages in a region.
_LEVELS = ((40, 1.9, 0.015), (72, 1.2, 0.004))
_FEWEST = 3
# what ties sentences together in English, and a little German and French
_COMMON_TEXT = (
    "the and for with from that this not was are but all any can has had have how its our out per she his her they "
    "them then than too were what when where which who why will you your into over under about after before new use "
    "using der die das und für von mit ein eine ist les des une pour dans"
)
_COMMON = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True)
class Label:
    """The name of a dense region.

    Attributes:
        text: What stands on the map.
        words: The words it is made of, or none where it is a title.
        x: Where it stands, in the map's coordinates.
        y: The same, upwards.
        level: 1 for what shows from afar, 2 for what shows nearby.
        names: Pages of the region.
    """

    text: str
    words: tuple[str, ...]
    x: float
    y: float
    level: int
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Label {self.text!r}: {len(self.names)} pages>"


def density_labels(
    xy: NDArray[np.float32], names: Sequence[str], titles: Sequence[str], summaries: Sequence[str]
) -> tuple[Label, ...]:
    """Return names for the dense regions of a map, those of the largest regions first, the coarse level first.

    Args:
        xy: ``(n_pages, 2)`` float32.
        names: Page names.
        titles: Their titles.
        summaries: Their summaries.
    """
    if len(names) < _FEWEST:
        return ()
    words = [_words(title, summary) for title, summary in zip(titles, summaries, strict=True)]
    spread = Counter(word for own in words for word in own)
    forms = _forms([*titles, *summaries])
    found: list[Label] = []
    for level, (side, width, share) in enumerate(_LEVELS, start=1):
        regions = density_regions(xy, side, width)
        fewest = max(_FEWEST, math.ceil(share * len(names)))
        order = sorted(set(regions.tolist()), key=lambda region: (-int((regions == region).sum()), region))
        for region in order:
            rows = np.flatnonzero(regions == region)
            if len(rows) < fewest:
                continue
            middle = np.median(xy[rows], axis=0)
            telling = _telling([words[row] for row in rows.tolist()], spread, len(names))
            central = int(rows[np.argmin(((xy[rows] - middle) ** 2).sum(axis=1))])
            shown = tuple(forms.get(word, word) for word in telling)
            text = " · ".join(shown) if shown else titles[central]
            members = tuple(names[row] for row in rows.tolist())
            found.append(Label(_cut(text), shown, float(middle[0]), float(middle[1]), level, members))
    return tuple(found)


def density_regions(xy: NDArray[np.float32], side: int = 40, width: float = 1.9) -> NDArray[np.int64]:
    """Return for each point the region it is in, as the number of its peak's cell.

    Args:
        xy: ``(n_points, 2)``.
        side: Cells along a side of the grid.
        width: Of the smoothing, in cells.
    """
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = max(float((high - low).max()), 1e-9)
    pad = math.ceil(3 * width)
    cells = np.clip(((xy - (low + high) / 2) / span + 0.5) * side, 0, side - 1).astype(np.int64) + pad
    whole = side + 2 * pad
    density = np.zeros((whole, whole))
    np.add.at(density, (cells[:, 0], cells[:, 1]), 1.0)
    kernel = np.exp(-0.5 * (np.arange(-pad, pad + 1) / width) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        density = np.apply_along_axis(lambda line: np.convolve(line, kernel, mode="same"), axis, density)
    # a cell leads to the highest of its nine; following that ends on a peak
    padded = np.pad(density, 1, constant_values=-1.0)
    around = [(dx, dy) for dx in (0, -1, 1) for dy in (0, -1, 1)]  # itself first: on a plateau nothing moves
    stacked = np.stack([padded[1 + dx : 1 + dx + whole, 1 + dy : 1 + dy + whole] for dx, dy in around])
    best = np.array(around)[stacked.argmax(axis=0)]
    place = np.stack(np.meshgrid(np.arange(whole), np.arange(whole), indexing="ij"), axis=-1)
    goal = np.clip(place + best, 0, whole - 1)
    leads = goal[..., 0] * whole + goal[..., 1]
    leads = leads.ravel()
    while True:
        further = leads[leads]
        if np.array_equal(further, leads):
            break
        leads = further
    found: NDArray[np.int64] = leads[cells[:, 0] * whole + cells[:, 1]]
    return found


def _words(title: str, summary: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, weight in ((title, _TITLE_WEIGHT), (summary, 1)):
        for word in {found.lower() for found in _WORD.findall(text[:300])}:
            if len(word) >= _SHORTEST and word not in _COMMON:
                counts[word] += weight
    return counts


def _forms(texts: Sequence[str]) -> dict[str, str]:
    """Return how each word is written most often."""
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        for found in _WORD.findall(text[:300]):
            counts.setdefault(found.lower(), Counter())[found] += 1
    # the first letter of a title is large for another reason
    return {word: min(forms, key=lambda form: (-forms[form], form.istitle(), form)) for word, forms in counts.items()}


def _telling(pages: Sequence[Counter[str]], spread: Counter[str], total: int) -> list[str]:
    inside: Counter[str] = Counter()
    carriers: Counter[str] = Counter()
    for own in pages:
        inside.update(own)
        carriers.update(own.keys())
    fewest = max(2, math.ceil(0.15 * len(pages)))
    scores = {
        word: inside[word] / len(pages) * math.log(1 + total / spread[word])
        for word in inside
        if carriers[word] >= fewest and spread[word] <= 0.5 * total
    }
    chosen: list[str] = []
    for word in sorted(scores, key=lambda word: (-scores[word], word)):
        if not any(word[:5] == other[:5] for other in chosen):  # hoist and hoists say it once
            chosen.append(word)
        if len(chosen) == _WORDS:
            break
    return chosen


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
