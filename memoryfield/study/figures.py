"""Pictures of results: plotly for exploring, SVG for what must show without a kernel.

Page text reaches a figure only escaped: plotly reads a few tags and ``$...$`` in its texts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memoryfield.display import counted, escape, plain

if TYPE_CHECKING:
    import plotly.graph_objects

    from memoryfield.study.layout import Layout

# Okabe and Ito (2008), "Color universal design": told apart with the common forms of colour blindness
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon")
_REST = "#9A9A9A"
# Labels of a static picture, in its units: side of a place, width of a letter and height of a line of text.
_CELL, _LETTER, _LINE = 56, 6.2, 15.0
_LONGEST_LABEL, _MOST_LABELS = 26, 16


def layout_figure(layout: Layout, color: str | None) -> plotly.graph_objects.Figure:
    """Draw a layout with plotly, coloured by the frontmatter key *color*."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for label, rows, style in _groups(layout, color):
        texts = [_hover(layout, i) for i in rows]
        figure.add_trace(
            go.Scatter(
                x=layout.xy[rows, 0],
                y=layout.xy[rows, 1],
                mode="markers",
                name=escape(label, 40),
                text=texts,
                customdata=[layout.names[i] for i in rows],
                hovertemplate="%{text}<extra></extra>",
                marker={"size": 8, "opacity": 0.85, "line": {"width": 0.5, "color": "white"}, **style},
            )
        )
    kind = "PCA" if layout.method == "pca" else "UMAP"
    figure.update_layout(
        title=f"{counted(len(layout), 'page')}, {kind}, {escape(layout.model_code, 60)}",
        template="plotly_white",
        showlegend=color is not None,
        hoverlabel={"align": "left"},
        margin={"l": 20, "r": 20, "t": 50, "b": 20},
        xaxis={"visible": False},
        # one unit is as long on both axes: a map that is stretched misleads
        yaxis={"visible": False, "scaleanchor": "x"},
    )
    return figure


def _groups(layout: Layout, color: str | None) -> list[tuple[str, list[int], dict[str, Any]]]:
    if color is None:
        return [("pages", list(range(len(layout))), {"color": PALETTE[0]})]
    values = [page.get(color, "") for page in layout.pages]
    counts = Counter(value for value in values if value)
    most = sorted(counts, key=lambda value: (-counts[value], value))[: len(PALETTE)]
    groups: list[tuple[str, list[int], dict[str, Any]]] = [
        (value, [i for i, v in enumerate(values) if v == value], {"color": PALETTE[n], "symbol": SYMBOLS[n]})
        for n, value in enumerate(most)
    ]
    rest = [i for i, v in enumerate(values) if v not in most]
    return groups + ([("other", rest, {"color": _REST, "symbol": "circle-open"})] if rest else [])


def _hover(layout: Layout, row: int) -> str:
    page = layout.pages[row]
    title = escape(page.get("title") or layout.names[row], 80)
    lines = [f"<b>{title}</b>", escape(layout.names[row], 80)]
    summary = page.get("summary", "")
    lines += [escape(summary[start : start + 70]) for start in range(0, min(len(summary), 280), 70)]
    return "<br>".join(lines)


def layout_svg(layout: Layout, width: int, height: int) -> str:
    """Draw a layout as SVG: one circle a page with its title, readable by a screen reader."""
    margin = 14
    if len(layout) == 0:
        points = np.zeros((0, 2))
    else:
        low, high = layout.xy.min(axis=0), layout.xy.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        # one scale for both axes, centred
        scale = float(min((width - 2 * margin) / span[0], (height - 2 * margin) / span[1]))
        points = (layout.xy - (low + high) / 2) * scale * np.array([1, -1]) + np.array([width / 2, height / 2])
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(page.get("title") or name, 80)}</title></circle>'
        for (x, y), name, page in zip(points, layout.names, layout.pages, strict=True)
    )
    pages = counted(len(layout), "page")
    words = "".join(
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'
        for text, x, y in _labels(layout, points, width)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mathjax_ignore" role="img" viewBox="0 0 {width} {height}"'
        f' aria-label="Map of {pages}" style="max-width:{width}px;width:100%;height:auto">'
        f'<g fill="{PALETTE[0]}" fill-opacity="0.75">{circles}</g>'
        # the colours of the page around it where that has any; a rim keeps words readable above points
        '<g font-size="11" pointer-events="none" style="fill:var(--ink,#222);stroke:var(--ground,#fff);'
        f'stroke-width:3px;stroke-linejoin:round;paint-order:stroke">{words}</g></svg>'
    )


def _labels(layout: Layout, points: NDArray[np.float64], width: int) -> list[tuple[str, float, float]]:
    """Return titles for the densest places of a picture, each of the page in the middle of its place; none meet.

    Args:
        layout: The map.
        points: Where its pages stand in the picture: (n_pages, 2).
        width: Of the picture.
    """
    cells: dict[tuple[int, int], list[int]] = {}
    for row, (x, y) in enumerate(points // _CELL):
        cells.setdefault((int(x), int(y)), []).append(row)
    found: list[tuple[str, float, float]] = []
    for _, rows in sorted(cells.items(), key=lambda item: (-len(item[1]), item[0])):
        middle = points[rows].mean(axis=0)
        row = rows[int(np.argmin(((points[rows] - middle) ** 2).sum(axis=1)))]
        text = plain(layout.pages[row].get("title") or layout.names[row], _LONGEST_LABEL)
        half = len(text) * _LETTER / 2
        x, y = min(max(float(points[row, 0]), half), width - half), max(float(points[row, 1]) - 7, _LINE)
        if all(abs(x - a) > half + len(t) * _LETTER / 2 or abs(y - b) > _LINE for t, a, b in found):
            found.append((text, x, y))
        if len(found) == _MOST_LABELS:
            break
    return found
