"""Figures of a comparison in plotly. They stand on a clear ground, in a grey that is read on light and on dark.

Page text and labels reach a figure only escaped. Colours are those of Okabe and Ito, and cividis for values; lines
differ in their dashes and points in their symbols as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.display import escape
from memoryfield.errors import QueryError
from memoryfield.study.comparison.comparison import MEASURES
from memoryfield.study.comparison.likeness import BINS
from memoryfield.study.comparison.procrustes import Points, aligned
from memoryfield.study.figures import PALETTE
from memoryfield.study.layout import layout

if TYPE_CHECKING:
    import plotly.graph_objects

    from memoryfield.study.comparison.comparison import Comparison

INK = "#767676"  # 4.5 : 1 against white and against #111
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_BIN = 20  # fine bins in one that is drawn


def agreement_figure(comparison: Comparison, measure: str = "rbo") -> plotly.graph_objects.Figure:
    """Draw how alike each pair of spaces is as a heat map.

    Args:
        comparison: What to draw.
        measure: One of ``MEASURES``.
    """
    import plotly.graph_objects as go

    if measure not in MEASURES:
        raise QueryError(f"measure is {measure!r}; expected one of {', '.join(MEASURES)}")
    labels = [escape(label, 40) for label in comparison.labels]
    names = comparison.labels
    values = np.array([[comparison.value(measure, a, b) for b in names] for a in names]).reshape(len(names), len(names))
    texts = [[f"{value:.2f}" if np.isfinite(value) else "–" for value in row] for row in values]
    figure = go.Figure(
        go.Heatmap(
            z=np.where(np.isfinite(values), values, 0.0),
            x=labels,
            y=labels,
            text=texts,
            texttemplate="%{text}",
            colorscale="Cividis",
            zmin=0,
            zmax=1,
            hovertemplate="%{y}<br>%{x}<br>%{text}<extra></extra>",
            xgap=2,
            ygap=2,
        )
    )
    _style(figure, f"How alike the spaces are: {MEASURES[measure]}")
    figure.update_layout(yaxis={"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"})
    figure.update_xaxes(constrain="domain", tickangle=-30)
    return figure


def similarities_figure(comparison: Comparison) -> plotly.graph_objects.Figure:
    """Draw the cosines of all pairs of pages in each space."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for number, (space, shape) in enumerate(zip(comparison.spaces, comparison.shapes, strict=True)):
        x, y = density(shape.histogram)
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="lines",
                name=escape(space.label, 40),
                line={"color": colour(number), "dash": DASHES[number % len(DASHES)], "width": 2},
                hovertemplate="cosine %{x:.2f}: %{y:.1%} of the pairs<extra>%{fullData.name}</extra>",
            )
        )
    _style(figure, "Cosines of all pairs of pages")
    figure.update_layout(
        xaxis_title="cosine",
        yaxis={"title": "share of pairs", "tickformat": ".0%", "rangemode": "tozero"},
        legend={"orientation": "h", "y": -0.2},
    )
    return figure


def changed_figure(
    comparison: Comparison, n: int = 15, first: str | None = None, second: str | None = None
) -> plotly.graph_objects.Figure:
    """Draw where the nearest pages in one space stand in the other, for the pages that change most.

    Args:
        comparison: What to draw.
        n: How many pages.
        first: Label of a space; the pair that is least alike by default.
        second: Label of the other.
    """
    import plotly.graph_objects as go

    labels = comparison.pair(first, second)
    changed = comparison.most_changed(n, *labels)
    spaces = {space.label: space for space in comparison.spaces}
    row = {name: number for number, name in enumerate(comparison.pages)}
    figure = go.Figure()
    for number, (one, other) in enumerate((labels, labels[::-1])):
        x, y, texts = [], [], []
        for page in changed:
            ranks = _ranks(spaces[other].matrix, row[page.name])
            for name, cosine in page.near_first if number == 0 else page.near_second:
                x.append(int(ranks[row[name]]))
                y.append(escape(page.name, 40))
                texts.append(f"{escape(name, 60)}<br>cosine {cosine:.2f} in {escape(one, 40)}")
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                text=texts,
                mode="markers",
                name=f"nearest in {escape(one, 40)}: rank in {escape(other, 40)}",
                marker={"color": PALETTE[number], "symbol": ("circle", "square-open")[number], "size": 9},
                hovertemplate="%{text}<br>rank %{x}<extra></extra>",
            )
        )
    _style(figure, "Where a page's nearest in one space stand in the other")
    figure.update_layout(
        xaxis={
            "type": "log",
            "title": "rank (logarithmic)",
            "range": [-0.05, np.log10(max(len(row), 2)) + 0.05],
            "tickvals": [step * 10**power for power in range(6) for step in (1, 2, 5)],
            "minor": {"showgrid": False, "ticks": ""},
        },
        yaxis={"autorange": "reversed", "title": None},
        legend={"orientation": "h", "y": -0.2},
        height=max(320, 40 + 26 * len(changed) + 140),
    )
    return figure


def maps_figure(
    comparison: Comparison, first: str, second: str, *, method: str = "auto", n: int = 10
) -> plotly.graph_objects.Figure:
    """Draw the maps of two spaces side by side, aligned, with numbers on the pages that change most."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    maps, kinds = aligned_maps(comparison, first, second, method)
    likeness = comparison.likenesses[first, second]
    numbered = {page.name: str(place) for place, page in enumerate(comparison.most_changed(n, first, second), 1)}
    names = list(comparison.pages)
    titles = [f"{escape(label, 40)} ({kind})" for label, kind in zip((first, second), kinds, strict=True)]
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.02)
    hover = [
        f"<b>{escape(page.title, 80)}</b><br>{escape(page.name, 80)}<br>rank-biased overlap {value:.2f}"
        for page, value in zip(comparison.pages.values(), np.nan_to_num(likeness.rbo), strict=True)
    ]
    for column, points in enumerate(maps, 1):
        figure.add_trace(
            go.Scatter(
                x=points[:, 0],
                y=points[:, 1],
                mode="markers+text",
                text=[numbered.get(name, "") for name in names],
                textposition="top center",
                textfont={"color": INK, "size": 13},
                hovertext=hover,
                customdata=names,
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
                marker={
                    "size": [12 if name in numbered else 7 for name in names],
                    "symbol": ["diamond" if name in numbered else "circle" for name in names],
                    "color": np.nan_to_num(likeness.rbo),
                    "coloraxis": "coloraxis",
                    "line": {
                        "width": [2.5 if name in numbered else 0.5 for name in names],
                        "color": [PALETTE[5] if name in numbered else INK for name in names],
                    },
                },
            ),
            1,
            column,
        )
        figure.update_xaxes(visible=False, row=1, col=column)
        figure.update_yaxes(visible=False, scaleanchor=f"x{'' if column == 1 else 2}", row=1, col=column)
    _style(figure, f"{len(names):,} pages in two spaces; numbered: the {len(numbered)} that change most")
    figure.update_layout(
        coloraxis={"colorscale": "Cividis", "cmin": 0, "cmax": 1, "colorbar": {"title": "rank-biased<br>overlap"}},
        hoverlabel={"align": "left"},
    )
    return figure


def aligned_maps(
    comparison: Comparison, first: str, second: str, method: str
) -> tuple[tuple[Points, Points], tuple[str, str]]:
    """Return the maps of two spaces laid over one another, and how each was made."""
    spaces = {space.label: space for space in comparison.spaces}
    made = [
        layout(
            spaces[label].names,
            spaces[label].matrix,
            model_code=spaces[label].model_code,
            recipe=spaces[label].recipe,
            method=method,
        )
        for label in (first, second)
    ]
    kinds = tuple("PCA" if found.method == "pca" else "UMAP" for found in made)
    return aligned(made[0].xy, made[1].xy), (kinds[0], kinds[1])


def colour(number: int) -> str:
    """Return the colour of a line; yellow and black are left out, for one of them is lost on any ground."""
    return PALETTE[number % 6]


def density(histogram: Any) -> tuple[list[float], list[float]]:
    """Return the middles of bins of cosines and the share of pairs in each, from the first to the last with any."""
    counts = histogram.reshape(-1, _BIN).sum(axis=1)
    total = counts.sum()
    if not total:
        return [], []
    held = np.flatnonzero(counts)
    low, high = max(int(held[0]) - 1, 0), min(int(held[-1]) + 2, len(counts))
    width = 2.0 * _BIN / BINS
    middles = (np.arange(low, high) + 0.5) * width - 1.0
    return middles.tolist(), (counts[low:high] / total).tolist()


def _ranks(matrix: Any, row: int) -> Any:
    """Return the rank of every page for one page, 1 for the nearest; its own is 0."""
    cosines = np.round(matrix @ matrix[row], 6)
    cosines[row] = np.inf
    ranks = np.empty(len(cosines), np.int64)
    ranks[np.argsort(-cosines, kind="stable")] = np.arange(len(cosines))
    return ranks


def _style(figure: plotly.graph_objects.Figure, title: str) -> None:
    line = "rgba(128,128,128,0.25)"
    figure.update_layout(
        title=title,
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK},
        margin={"l": 20, "r": 20, "t": 60, "b": 20},
    )
    figure.update_xaxes(automargin=True, gridcolor=line, zerolinecolor=line)
    figure.update_yaxes(automargin=True, gridcolor=line, zerolinecolor=line)
