"""Pictures of results: plotly for exploring, SVG for what must show without a kernel.

Page text reaches a figure only escaped: plotly reads a few tags and ``$...$`` in its texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
_LONGEST_LABEL, _MOST_LABELS, _MOST_HIDDEN = 26, 16, 2
_AWAY = (7, 18, 32, 48)  # how far a label may stand from its point
_MARGIN = 24  # of a static picture
_TURN, _WORTH_A_TURN = 5, 1.02  # degrees between the turns that are tried; a turn that gains less is not made


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
    """Draw a layout as SVG: one circle a page with its title, readable by a screen reader.

    It is turned so that it fills the picture, for no direction of a map means anything; it is never stretched.
    """
    points = _turned_to_fit(layout.xy.astype(np.float64), width - 2 * _MARGIN, height - 2 * _MARGIN)
    points = points * np.array([1, -1]) + np.array([width / 2, height / 2])
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(page.get("title") or name, 80)}</title></circle>'
        for (x, y), name, page in zip(points, layout.names, layout.pages, strict=True)
    )
    labels = _labels(layout, points, width, height)
    words = "".join(
        f'<text x="{one.x:.1f}" y="{one.y:.1f}" text-anchor="middle">{escape(one.text)}</text>' for one in labels
    )
    lines = "".join(one.line() for one in labels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mathjax_ignore" role="img" viewBox="0 0 {width} {height}"'
        f' aria-label="Map of {layout.counted}" style="max-width:{width}px;width:100%;height:auto">'
        # the colours of the page around it where that has any; a rim keeps words readable above lines and points
        f'<g style="stroke:var(--soft,#666);stroke-width:0.7px">{lines}</g>'
        f'<g fill="{PALETTE[0]}" fill-opacity="0.75">{circles}</g>'
        '<g font-size="11" pointer-events="none" style="fill:var(--ink,#222);stroke:var(--ground,#fff);'
        f'stroke-width:3px;stroke-linejoin:round;paint-order:stroke">{words}</g></svg>'
    )


def _turned_to_fit(xy: NDArray[np.float64], width: float, height: float) -> NDArray[np.float64]:
    """Return places around (0, 0), turned and scaled by one factor so that they fill a width and a height."""
    best, found = 0.0, np.zeros_like(xy)
    for degrees in range(0, 180, _TURN) if len(xy) else ():
        angle = np.radians(degrees)
        turned = xy @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        low, high = turned.min(axis=0), turned.max(axis=0)
        span = np.where(high - low > 1e-9, high - low, 1.0)
        scale = float(min(width / span[0], height / span[1]))
        if scale > best * _WORTH_A_TURN:
            best, found = scale, (turned - (low + high) / 2) * scale
    return found


@dataclass(frozen=True)
class _Label:
    """A title in a picture: the middle of its base line, and the point it belongs to."""

    text: str
    x: float
    y: float
    tie: tuple[float, float]

    @property
    def half(self) -> float:
        return len(self.text) * _LETTER / 2

    def line(self) -> str:
        """Return what joins it to its point, where it stands apart."""
        x, y = self.tie
        end = (min(max(x, self.x - self.half), self.x + self.half), min(max(y, self.y - 9), self.y + 3))
        if abs(end[0] - x) + abs(end[1] - y) <= _AWAY[0]:
            return ""
        return f'<path d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}"/>'

    def meets(self, other: _Label) -> bool:
        return abs(self.x - other.x) <= self.half + other.half and abs(self.y - other.y) <= _LINE

    def covers(self, points: NDArray[np.float64]) -> int:
        """Return how many points it hides."""
        near = np.abs(points - np.array([self.x, self.y - 4])) < np.array([self.half + 3, 9])
        return int(near.all(axis=1).sum())

    def places(self, width: int, height: int) -> Iterator[_Label]:
        """Yield itself near its point, the nearest places first, inside the picture."""
        (x, y), half = self.tie, self.half
        for away in _AWAY:
            # beside, the text begins beyond the point; above and below its middle is there
            beside = half + away
            steps = ((0, -away), (0, away + 8), (beside, 4), (-beside, 4), (beside, -away), (-beside, -away))
            for right, down in (*steps, (beside, away + 8), (-beside, away + 8)):
                moved = replace(self, x=x + right, y=y + down)
                if half <= moved.x <= width - half and _LINE <= moved.y <= height - 4:
                    yield moved


def _labels(layout: Layout, points: NDArray[np.float64], width: int, height: int) -> list[_Label]:
    """Return titles for the densest places of a picture, each of the page in the middle of its place.

    None meet. Each stands as near to its point as it can without hiding others; one that would hide many is left out.

    Args:
        layout: The map.
        points: Where its pages stand in the picture: (n_pages, 2).
        width: Of the picture.
        height: Of the picture.
    """
    cells: dict[tuple[int, int], list[int]] = {}
    for row, (x, y) in enumerate(points // _CELL):
        cells.setdefault((int(x), int(y)), []).append(row)
    found: list[_Label] = []
    for _, rows in sorted(cells.items(), key=lambda item: (-len(item[1]), item[0]))[: 4 * _MOST_LABELS]:
        middle = points[rows].mean(axis=0)
        row = rows[int(np.argmin(((points[rows] - middle) ** 2).sum(axis=1)))]
        text = plain(layout.pages[row].get("title") or layout.names[row], _LONGEST_LABEL)
        label = _Label(text, 0.0, 0.0, (float(points[row, 0]), float(points[row, 1])))
        best, least = None, _MOST_HIDDEN + 1
        for moved in label.places(width, height):
            if least > 0 and not any(moved.meets(other) for other in found) and (hides := moved.covers(points)) < least:
                best, least = moved, hides
        if best is not None:
            found.append(best)
        if len(found) == _MOST_LABELS:
            break
    return found
