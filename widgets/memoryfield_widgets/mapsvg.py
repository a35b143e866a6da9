"""The map as a static picture: what stands in a saved notebook, without a kernel and without a script."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryfield_widgets.labels import Label
from memoryfield_widgets.palette import COLORS, MISSING, REST, Coloring

WIDTH, HEIGHT, MARGIN = 760, 460, 26
_MOST_POINTS = 4000  # more only make the file larger
_MOST_LABELS = 16
# as colors.js
_VIRIDIS = ("#89b373", "#69ac80", "#50a18a", "#469290", "#457f90", "#47688e", "#4b4d86", "#4b2b75", "#440154")


def escaped(text: object, limit: int = 200) -> str:
    """Return text for HTML, without what a notebook would typeset."""
    return html.escape(" ".join(str(text).split())[:limit]).replace("$", "&#36;").replace("`", "&#96;")


def map_svg(
    xy: NDArray[np.float32],
    coloring: Coloring | None,
    labels: Sequence[Label],
    hits: Sequence[int],
    selected: Sequence[int],
    heading: str,
) -> str:
    """Return the map as SVG.

    Args:
        xy: ``(n_pages, 2)``, between -1 and 1.
        coloring: Colours of the pages.
        labels: Names of regions; those of the coarse level are drawn.
        hits: Rows of the pages that were found, best first.
        selected: Rows of the pages that are selected.
        heading: What a screen reader says.
    """
    places = _places(xy)
    rows = np.arange(len(xy))
    if len(rows) > _MOST_POINTS:
        rows = rows[:: -(-len(rows) // _MOST_POINTS)]
    chosen = set(selected)
    parts = []
    for color, own in _by_color(coloring, rows):
        for lit in (False, True):
            drawn = [row for row in own if (row in chosen) == lit]
            if not drawn:
                continue
            # one path for all points of a colour: a line of no length with round ends is a dot
            dots = "".join(f"M{places[row][0]:.0f} {places[row][1]:.0f}h0" for row in drawn)
            opacity = 0.85 if lit or not chosen else 0.3
            parts.append(f'<path d="{dots}" stroke="{color}" stroke-opacity="{opacity}"/>')
    points = f'<g fill="none" stroke-width="7" stroke-linecap="round">{"".join(parts)}</g>'
    coarse = [label for label in labels if label.level == 1][:_MOST_LABELS]
    spots = _places(np.array([(label.x, label.y) for label in coarse], dtype=np.float32).reshape(-1, 2))
    names = "".join(
        f'<text x="{x:.0f}" y="{y:.0f}">{escaped(label.text)}</text>'
        for (x, y), label in zip(spots, coarse, strict=True)
    )
    numbers = "".join(
        f'<circle cx="{places[row][0]:.0f}" cy="{places[row][1]:.0f}" r="9" fill="#0b63b0"/>'
        f'<text x="{places[row][0]:.0f}" y="{places[row][1] + 4:.0f}" fill="#fff" stroke="none">{rank}</text>'
        for rank, row in reversed(list(enumerate(hits[:20], start=1)))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mathjax_ignore" role="img" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' aria-label="{escaped(heading)}" style="max-width:{WIDTH}px;width:100%;height:auto;background:#fff">{points}'
        '<g font-family="sans-serif" font-size="12.5" font-weight="600" text-anchor="middle" fill="#1b1e23"'
        f' stroke="#fff" stroke-width="3" paint-order="stroke">{names}{numbers}</g></svg>'
    )


def _places(xy: NDArray[np.float32]) -> list[tuple[float, float]]:
    scale = min(WIDTH, HEIGHT) / 2 - MARGIN
    wide = (WIDTH / 2 - MARGIN) / scale
    shown = xy * scale * min(1.0, wide) * np.array([1, -1]) + np.array([WIDTH / 2, HEIGHT / 2])
    return [(float(x), float(y)) for x, y in shown]


def _by_color(coloring: Coloring | None, rows: NDArray[np.int64]) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(_color(coloring, row), []).append(row)
    return sorted(groups.items(), key=lambda group: group[0] != REST)


def _color(coloring: Coloring | None, row: int) -> str:
    if coloring is None or coloring.scale == "none":
        return "#2f6f9f"
    if coloring.colors is not None:
        category = int(coloring.colors[row])
        return REST if category == MISSING else COLORS[category % len(COLORS)]
    value = float("nan") if coloring.values is None else float(coloring.values[row])
    return REST if np.isnan(value) else _VIRIDIS[min(int(value * len(_VIRIDIS)), len(_VIRIDIS) - 1)]
