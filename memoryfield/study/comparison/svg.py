"""Pictures of a comparison as SVG, for a page without scripts. Colours come from the page's own variables.

Every picture says in words what it shows (``aria-label``, ``title``), and no difference is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memoryfield.display import escape, plain
from memoryfield.study.comparison.comparison import MEASURES
from memoryfield.study.comparison.figures import colour, density

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoryfield.study.comparison.comparison import Comparison
    from memoryfield.study.comparison.procrustes import Points

_DASHES = ("", "8 4", "2 3", "8 3 2 3", "12 5", "12 4 2 4")
_CELL, _LABEL = 56, 24


def heat_map(comparison: Comparison, measure: str = "rbo") -> str:
    """Return how alike the spaces are: one cell a pair, its value in it."""
    labels = comparison.labels
    left = min(60 + 6.6 * max((len(plain(label, 34)) for label in labels), default=0), 300)
    width, height = left + _CELL * len(labels) + 8, _LABEL + _CELL * len(labels) + 4
    parts = []
    for row, one in enumerate(labels):
        y = _LABEL + row * _CELL
        parts.append(
            f'<text x="{left - 10:.0f}" y="{y + _CELL / 2 + 5:.0f}" text-anchor="end" font-size="13">'
            f"{row + 1}&#160; {escape(one, 34)}</text>"
            f'<text class="soft" x="{left + row * _CELL + _CELL / 2:.0f}" y="16" text-anchor="middle" font-size="13">'
            f"{row + 1}</text>"
        )
        for column, other in enumerate(labels):
            value = comparison.value(measure, one, other)
            shown = f"{value:.2f}" if np.isfinite(value) else "–"
            strength = float(np.clip(np.nan_to_num(value), 0.0, 1.0))
            ink = ' style="fill:var(--on-value)"' if strength > 0.8 else ""
            x = left + column * _CELL
            parts.append(
                f'<g><title>{escape(one, 60)} and {escape(other, 60)}: {shown}</title><rect x="{x + 1:.0f}" '
                f'y="{y + 1}" width="{_CELL - 2}" height="{_CELL - 2}" rx="3" fill="var(--value)" '
                f'fill-opacity="{0.06 + 0.94 * strength:.2f}"/><text x="{x + _CELL / 2:.0f}" '
                f'y="{y + _CELL / 2 + 5:.0f}" text-anchor="middle" font-size="14"{ink}>{shown}</text></g>'
            )
    return _svg(width, height, f"{MEASURES[measure]} of {len(labels)} spaces, pair by pair", "".join(parts))


def distributions(comparison: Comparison) -> str:
    """Return the cosines of all pairs of pages in each space, as lines."""
    width, height, left, bottom, top = 720, 300, 46, 44, 10
    lines = [density(shape.histogram) for shape in comparison.shapes]
    held = [x for xs, _ in lines for x in xs]
    if not held:
        return ""
    low, high = min(held), max(held)
    most = max(y for _, ys in lines for y in ys)
    span = max(high - low, 0.02)

    def place(x: float, y: float) -> str:
        across = left + (x - low) / span * (width - left - 10)
        return f"{across:.1f},{height - bottom - y / most * (height - bottom - top):.1f}"

    parts = []
    step = 0.1 if span < 0.9 else 0.2
    for tick in np.arange(np.ceil(low / step) * step, high + 1e-9, step):
        x = place(float(tick), 0.0).split(",")[0]
        parts.append(
            f'<line x1="{x}" x2="{x}" y1="{top}" y2="{height - bottom}" stroke="var(--line)"/>'
            f'<text class="soft" x="{x}" y="{height - bottom + 18}" text-anchor="middle" font-size="12">'
            f"{abs(tick) if abs(tick) < 1e-9 else tick:.1f}</text>"
        )
    for share in (0.0, most / 2, most):
        y = place(low, share).split(",")[1]
        parts.append(
            f'<line x1="{left}" x2="{width - 10}" y1="{y}" y2="{y}" stroke="var(--line)"/><text class="soft" '
            f'x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end" font-size="12">{share:.0%}</text>'
        )
    for number, (xs, ys) in enumerate(lines):
        points = " ".join(place(x, y) for x, y in zip(xs, ys, strict=True))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour(number)}" stroke-width="2.5" '
            f'stroke-dasharray="{_DASHES[number % len(_DASHES)]}"><title>'
            f"{escape(comparison.labels[number], 60)}</title></polyline>"
        )
    parts.append(
        f'<text class="soft" x="{(width + left) / 2}" y="{height - 6}" text-anchor="middle" font-size="12">'
        "cosine</text>"
    )
    picture = _svg(width, height, "cosines of all pairs of pages in each space", "".join(parts))
    return picture + _legend(comparison.labels)


def _legend(labels: Sequence[str]) -> str:
    items = "".join(
        '<span style="white-space:nowrap;margin-right:1.4rem"><svg style="display:inline-block;vertical-align:middle" '
        f'width="40" height="10" aria-hidden="true"><line x1="0" x2="40" y1="5" y2="5" stroke="{colour(n)}" '
        f'stroke-width="2.5" stroke-dasharray="{_DASHES[n % len(_DASHES)]}"/></svg> {escape(label, 60)}</span>'
        for n, label in enumerate(labels)
    )
    return f'<p style="max-width:none"><small>{items}</small></p>'


def page_map(points: Points, titles: Sequence[str], rbo: npt.NDArray[np.float64], numbers: Mapping[int, str]) -> str:
    """Return one map: pages that both spaces see alike are filled, others hollow; those that change most are numbered.

    Args:
        points: (n_pages, 2), of an aligned map.
        titles: Of the pages.
        rbo: (n_pages,) how alike the two spaces see each.
        numbers: What to write beside some pages, by row.
    """
    size, margin = 440, 18
    if len(points) == 0:
        return ""
    low, high = points.min(axis=0), points.max(axis=0)
    span = float(max((high - low).max(), 1e-12))
    placed = (points - (low + high) / 2) / span * (size - 2 * margin) * np.array([1, -1]) + size / 2
    values = np.nan_to_num(rbo)
    parts = []
    for row in sorted(range(len(points)), key=lambda row: (row in numbers, row)):  # numbered ones on top
        x, y = placed[row]
        title = f"<title>{escape(titles[row], 80)}: {values[row]:.2f}</title>"
        if row in numbers:
            continue
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="var(--value)" '
            f'fill-opacity="{0.05 + 0.85 * values[row]:.2f}" stroke="var(--value)" stroke-opacity="0.7">'
            f"{title}</circle>"
        )
    for row, text in numbers.items():
        x, y = placed[row]
        parts.append(
            f"<g><title>{escape(titles[row], 80)}: {values[row]:.2f}</title>"
            f'<path d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z" fill="#D55E00" stroke="var(--ground)"/>'
            f'<text x="{x + 8:.1f}" y="{y + 4.5:.1f}" font-size="13" font-weight="600" stroke="var(--ground)" '
            f'stroke-width="3" paint-order="stroke">{escape(text)}</text></g>'
        )
    return _svg(size, size, f"map of {len(points)} pages", "".join(parts))


def _svg(width: float, height: float, label: str, inner: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{inner}</svg>'
    )
