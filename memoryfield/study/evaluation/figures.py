"""Pictures of an evaluation, with plotly: for light and dark pages, told apart by colour and by shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.display import escape
from memoryfield.errors import QueryError
from memoryfield.study.evaluation.intervals import Estimate
from memoryfield.study.evaluation.outcomes import NDCG_AT, shown_metric
from memoryfield.study.figures import PALETTE, SYMBOLS

if TYPE_CHECKING:
    import plotly.graph_objects

    from memoryfield.study.evaluation.differences import Differences
    from memoryfield.study.evaluation.evaluation import Evaluation

KINDS = ("figures", "ranks", "categories", "gate")
_COLOURS = PALETTE[:6]  # the last two are lost on white, or on black
_TEXT = "#7F7F7F"  # as far from white as from black
_GRID = "rgba(127,127,127,0.25)"
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def evaluation_figure(evaluation: Evaluation, kind: str) -> plotly.graph_objects.Figure:
    """Draw an evaluation; see ``Evaluation.figure``."""
    if kind not in KINDS:
        raise QueryError(f"there is no picture {kind!r}; there are: {', '.join(KINDS)}")
    if kind == "gate":
        return _gate(evaluation)
    if not any(probe.counts for probe in evaluation.probes):
        raise QueryError("no probe has a page that answers it: there is nothing to draw")
    if kind == "ranks":
        return _ranks(evaluation)
    if kind == "categories":
        names = [c for c in evaluation.probes.categories if evaluation.estimate("mrr", evaluation.labels[0], c).n]
        rows = [[evaluation.estimate("mrr", label, name) for name in names] for label in evaluation.labels]
        counts = [found.n for found in rows[0]]
        titles = [f"{escape(name, 30) or '(none)'}<br>{count}" for name, count in zip(names, counts, strict=True)]
        return _dots(evaluation, titles, rows, "MRR by category, number of probes below")
    metrics = [f"recall@{k}" for k in evaluation.ks] + ["mrr", f"ndcg@{NDCG_AT}"]
    if evaluation.has_families:
        metrics += [f"family_recall@{evaluation.ks[0]}", "family_mrr"]
    rows = [[evaluation.estimate(metric, label) for metric in metrics] for label in evaluation.labels]
    titles = [shown_metric(metric).replace("family ", "family<br>") for metric in metrics]
    return _dots(evaluation, titles, rows, "Retrieval")


def _style(number: int) -> dict[str, Any]:
    return {"color": _COLOURS[number % len(_COLOURS)], "symbol": SYMBOLS[number % len(SYMBOLS)], "size": 9}


def _blank(title: str, **more: Any) -> plotly.graph_objects.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        title=title,
        template="plotly_white",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": _TEXT},
        margin={"l": 60, "r": 20, "t": 60, "b": 60},
        legend={"orientation": "h", "y": -0.2},
        **more,
    )
    figure.update_xaxes(gridcolor=_GRID, linecolor=_GRID, zerolinecolor=_GRID)
    figure.update_yaxes(gridcolor=_GRID, linecolor=_GRID, zerolinecolor=_GRID)
    return figure


def _title(evaluation: Evaluation, text: str) -> str:
    about = evaluation.about
    counted = sum(probe.counts for probe in evaluation.probes)
    return f"{text}: {escape(about['field'], 40)}, {counted} probes, {about['confidence']:.0%} intervals"


def _dots(
    evaluation: Evaluation, titles: Sequence[str], rows: Sequence[Sequence[Estimate]], text: str
) -> plotly.graph_objects.Figure:
    """Draw one dot with its interval for each retriever and title, side by side."""
    import plotly.graph_objects as go

    figure = _blank(_title(evaluation, text))
    width = min(0.7 / len(rows), 0.16)
    for number, (label, found) in enumerate(zip(evaluation.labels, rows, strict=True)):
        offset = (number - (len(rows) - 1) / 2) * width
        values = np.array([one.value for one in found])
        figure.add_trace(
            go.Scatter(
                x=np.arange(len(titles)) + offset,
                y=values,
                mode="markers",
                name=escape(label, 40),
                marker=_style(number),
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": np.array([one.high for one in found]) - values,
                    "arrayminus": values - np.array([one.low for one in found]),
                    "thickness": 1.5,
                    "width": 3,
                },
                text=[str(one) for one in found],
                hovertemplate="%{fullData.name}: %{text}<extra></extra>",
            )
        )
    figure.update_xaxes(tickvals=list(range(len(titles))), ticktext=list(titles), showgrid=False, zeroline=False)
    figure.update_yaxes(range=[0, 1.03])
    return figure


def _ranks(evaluation: Evaluation) -> plotly.graph_objects.Figure:
    """Draw recall at every k, with a band for the interval."""
    import plotly.graph_objects as go

    figure = _blank(_title(evaluation, "Share of probes with a gold page among the first k"))
    depth = int(evaluation.about["depth"])
    ks = sorted({1, *np.unique(np.geomspace(1, depth, 40).astype(int)).tolist()})
    for number, label in enumerate(evaluation.labels):
        found = [evaluation.estimate(f"recall@{k}", label) for k in ks]
        colour = _COLOURS[number % len(_COLOURS)]
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        figure.add_trace(
            go.Scatter(
                x=[*ks, *ks[::-1]],
                y=[one.high for one in found] + [one.low for one in found][::-1],
                fill="toself",
                fillcolor=f"rgba({red},{green},{blue},0.12)",
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=label,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=ks,
                y=[one.value for one in found],
                mode="lines",
                name=escape(label, 40),
                legendgroup=label,
                line={"color": colour, "dash": _DASHES[number % len(_DASHES)], "width": 2},
                text=[str(one) for one in found],
                hovertemplate="%{fullData.name}, k=%{x}: %{text}<extra></extra>",
            )
        )
    ticks = [k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if k <= depth]
    figure.update_xaxes(type="log", title="k", zeroline=False, tickvals=ticks, ticktext=[str(k) for k in ticks])
    figure.update_yaxes(range=[0, 1.03])
    return figure


def _gate(evaluation: Evaluation) -> plotly.graph_objects.Figure:
    """Draw what each threshold of the gate would do; a large mark stands at the threshold of the run."""
    import plotly.graph_objects as go

    figure = _blank("The gate: what each threshold lets pass")
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": _TEXT, "dash": "dot", "width": 1}, showlegend=False)
    )
    for number, run in enumerate(evaluation.runs):
        curve = evaluation.tradeoff(run.label)
        area = evaluation.estimate("auc", run.label)
        figure.add_trace(
            go.Scatter(
                x=curve["wrong_answers"],
                y=curve["answered"],
                mode="lines",
                line={"color": _COLOURS[number % len(_COLOURS)], "dash": _DASHES[number % len(_DASHES)], "width": 2},
                name=f"{escape(run.label, 40)}, AUC {area}",
                legendgroup=run.label,
                text=[f"{threshold:.4g}" for threshold in curve["threshold"]],
                hovertemplate="threshold %{text}: %{y:.0%} answered, %{x:.0%} wrong<extra></extra>",
            )
        )
        if not math.isnan(run.threshold):
            figure.add_trace(
                go.Scatter(
                    x=[evaluation.estimate("wrong_answers", run.label).value],
                    y=[evaluation.estimate("answered", run.label).value],
                    mode="markers",
                    marker={**_style(number), "size": 13},
                    legendgroup=run.label,
                    showlegend=False,
                    text=[f"{run.threshold:.4g}"],
                    hovertemplate="threshold %{text}: %{y:.0%} answered, %{x:.0%} wrong<extra></extra>",
                )
            )
    figure.update_xaxes(title="unanswerable probes that pass", range=[-0.02, 1.02], tickformat=".0%")
    figure.update_yaxes(title="answerable probes that pass", range=[-0.02, 1.03], tickformat=".0%")
    figure.update_layout(legend={"orientation": "h", "y": -0.25})
    return figure


def differences_figure(differences: Differences) -> plotly.graph_objects.Figure:
    """Draw differences with their intervals, one a row; filled where the corrected p is below 0.05."""
    import plotly.graph_objects as go

    shown = [one for one in differences if not math.isnan(one.value)][::-1]
    if not shown:
        raise QueryError("no difference has a value: there is nothing to draw")
    figure = _blank("Paired differences, second less first; filled: p below 0.05 after correction")
    values = np.array([one.value for one in shown])
    figure.add_trace(
        go.Scatter(
            x=values,
            y=list(range(len(shown))),
            mode="markers",
            marker={
                "size": 11,
                "color": PALETTE[0],
                "symbol": ["circle" if one.is_sure else "circle-open" for one in shown],
                "line": {"width": 2},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.array([one.high for one in shown]) - values,
                "arrayminus": values - np.array([one.low for one in shown]),
                "color": PALETTE[0],
            },
            text=[f"{one.interval}, p {one.p_corrected:.4f}, {one.better} better, {one.worse} worse" for one in shown],
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    )
    names = [f"{shown_metric(one.metric)}: {escape(one.first, 30)} → {escape(one.second, 30)}" for one in shown]
    figure.update_yaxes(tickvals=list(range(len(shown))), ticktext=names, showgrid=False, automargin=True)
    figure.update_xaxes(zeroline=True, zerolinecolor=_TEXT, zerolinewidth=1.5)
    figure.update_layout(height=max(260, 34 * len(shown) + 140))
    return figure
