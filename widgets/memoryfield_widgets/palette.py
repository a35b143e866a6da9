"""What colours a map: categories or a scale, always with a shape or a size that says the same.

The colours themselves are in ``colors.js`` and, for the static picture, here: those of Okabe and Ito, and viridis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito (2008), in the order of colors.js; the darker yellow can be seen on white
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#b3a400", "#1a1a1a")
REST = "#8a9099"
SHAPES = 8  # as many as colors.js draws
MISSING = 255  # category of pages that have none
RING = 7  # shape of all values that have no colour of their own
_IN_LEGEND = 14


@dataclass(frozen=True)
class Entry:
    """One line of a legend: its text, the colour and shape of its points, and how many there are."""

    text: str
    color: int
    shape: int
    count: int


@dataclass(frozen=True, eq=False)
class Coloring:
    """Colours for all points of a map.

    Attributes:
        by: What was asked for.
        title: What it is called in the legend.
        scale: ``none``, ``categories`` or ``sequence``.
        legend: For categories.
        colors: ``(n_pages,)`` uint8: category of each page.
        shapes: ``(n_pages,)`` uint8.
        values: ``(n_pages,)`` float32 from 0 to 1, ``nan`` where missing: for a sequence.
        low: Number at the low end of a sequence, where it means something.
        high: Number at its high end.
        low_text: The low end in words.
        high_text: The high end in words.
        missing: In words, how many pages have no value.
    """

    by: str
    title: str = ""
    scale: str = "none"
    legend: tuple[Entry, ...] = ()
    colors: NDArray[np.uint8] | None = None
    shapes: NDArray[np.uint8] | None = None
    values: NDArray[np.float32] | None = None
    low: float | None = None
    high: float | None = None
    low_text: str = ""
    high_text: str = ""
    missing: str = ""

    def message(self) -> tuple[dict[str, Any], list[bytes]]:
        """Return what the script is told, and the arrays."""
        content = {
            "by": self.by,
            "title": self.title,
            "scale": self.scale,
            "legend": [{"text": e.text, "color": e.color, "shape": e.shape, "count": e.count} for e in self.legend],
            "low": self.low,
            "high": self.high,
            "low_text": self.low_text,
            "high_text": self.high_text,
            "missing": self.missing,
        }
        if self.colors is not None and self.shapes is not None:
            return content, [self.colors.tobytes(), self.shapes.tobytes()]
        return content, [] if self.values is None else [self.values.tobytes()]


def categories(
    by: str,
    title: str,
    values: Sequence[str | None],
    *,
    order: Sequence[str] | None = None,
    missing: str = "none",
    others: str = "other values",
) -> Coloring:
    """Return colours for values that name groups: the most frequent eight, or as many as *order* names.

    Args:
        by: What was asked for.
        title: Heading of the legend.
        values: One for each page, None where there is none.
        order: The values that get a colour, first to last; by default the most frequent.
        missing: What the legend calls pages without a value.
        others: What it calls the values without a colour of their own.
    """
    counts = Counter(value for value in values if value is not None)
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    chosen = ranked[: len(COLORS)] if order is None else [v for v in order if v in counts][: len(COLORS) * SHAPES]
    # each round through the colours takes other shapes, so that no two groups look alike
    looks = {v: (n % len(COLORS), (n + n // len(COLORS)) % (SHAPES - 1)) for n, v in enumerate(chosen)}
    colors = np.full(len(values), MISSING, dtype=np.uint8)
    shapes = np.zeros(len(values), dtype=np.uint8)
    for row, value in enumerate(values):
        if value is not None:
            colors[row], shapes[row] = looks.get(value, (MISSING, RING))
    entries = [Entry(value[:60], *looks[value], counts[value]) for value in chosen]
    more = len(counts) - len(chosen)
    if more:
        rest = sum(counts[value] for value in ranked if value not in looks)
        entries.append(Entry(f"{more:,} {others}", MISSING, RING, rest))
    without = len(values) - sum(counts.values())
    if without:
        entries.append(Entry(missing, MISSING, 0, without))
    if len(entries) > _IN_LEGEND:
        entries = [*entries[: _IN_LEGEND - 1], *entries[-1:]]
    return Coloring(by, title, "categories", tuple(entries), colors, shapes)


def sequence(
    by: str,
    title: str,
    values: Sequence[float] | NDArray[np.floating[Any]],
    *,
    low: float | None = None,
    low_text: str = "",
    high_text: str = "",
    numbers: bool = False,
) -> Coloring:
    """Return colours for values on a scale.

    Args:
        by: What was asked for.
        title: Heading of the legend.
        values: One for each page, ``nan`` where there is none.
        low: Value at the low end; what lies below looks like it. By default the smallest.
        low_text: The low end in words.
        high_text: The high end in words.
        numbers: Whether a page's own number may be shown.
    """
    given = np.asarray(values, dtype=np.float64)
    known = given[np.isfinite(given)]
    bottom = float(known.min()) if len(known) and low is None else float(low or 0.0)
    top = float(known.max()) if len(known) else bottom
    span = top - bottom if top > bottom else 1.0
    shares = np.where(np.isfinite(given), np.clip((given - bottom) / span, 0.0, 1.0), np.nan).astype(np.float32)
    without = len(given) - len(known)
    return Coloring(
        by,
        title,
        "sequence",
        values=shares,
        low=bottom if numbers else None,
        high=top if numbers else None,
        low_text=low_text,
        high_text=high_text,
        missing=f"{without:,} {'page has' if without == 1 else 'pages have'} none (rings)" if without else "",
    )


def dates(by: str, title: str, days: Sequence[float]) -> Coloring:
    """Return colours for dates, given in days since 1970."""
    known = [day for day in days if np.isfinite(day)]
    ends = [_day(min(known)), _day(max(known))] if known else ["", ""]
    return sequence(by, title, days, low_text=ends[0], high_text=ends[1])


def sizes(by: str, title: str, bytes_: Sequence[int]) -> Coloring:
    """Return colours for sizes; each doubling is as far as the next."""
    values = np.log2(np.maximum(np.asarray(bytes_, dtype=np.float64), 1.0))
    ends = [f"{min(bytes_):,} bytes", f"{max(bytes_):,} bytes"] if len(bytes_) else ["", ""]
    return sequence(by, title, values, low_text=ends[0], high_text=ends[1])


def similarity(by: str, question: str, cosines: NDArray[np.floating[Any]]) -> Coloring:
    """Return colours for the cosine to a question; the lower half of the pages recedes."""
    known = cosines[np.isfinite(cosines)]
    low = float(np.median(known)) if len(known) else 0.0
    top = float(known.max()) if len(known) else 0.0
    title = f"similarity to “{question[:40]}{'…' if len(question) > 40 else ''}”"
    return sequence(by, title, cosines, low=low, low_text=f"≤ {low:.2f}", high_text=f"{top:.2f}", numbers=True)


def _day(days: float) -> str:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)).strftime("%Y-%m-%d")
    except (OverflowError, ValueError):
        return ""
