"""How often a gate lets memory through: for questions that it should answer, and for those that it should not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.field import MemoryField

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import plotly.graph_objects

_STEPS = 41


@dataclass(frozen=True, eq=False, repr=False)
class GateStudy:
    """Rates at which a gate lets memory through.

    Attributes:
        related: Scores of the questions that the field should answer, ascending.
        unrelated: Scores of the others, ascending.
        threshold: Threshold of the field's own gate.
        thresholds: Thresholds that were tried, ascending.
    """

    related: npt.NDArray[np.float64]
    unrelated: npt.NDArray[np.float64]
    threshold: float
    thresholds: npt.NDArray[np.float64]

    def rates(self, threshold: float) -> tuple[float, float]:
        """Return the share of related and of unrelated questions that pass a threshold."""
        return float((self.related >= threshold).mean()), float((self.unrelated >= threshold).mean())

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a threshold: ``threshold, related_passed, unrelated_passed``."""
        import pandas

        rows = [(float(at), *self.rates(float(at))) for at in self.thresholds]
        return pandas.DataFrame(rows, columns=["threshold", "related_passed", "unrelated_passed"])

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        import numpy as np

        kept, wrong = self.rates(self.threshold)
        rows: list[tuple[Any, ...]] = [
            (
                name,
                len(scores),
                *(f"{value:.3f}" for value in (scores.min(), np.median(scores), scores.max())),
                f"{rate:.0%}",
            )
            for name, scores, rate in (("related", self.related, kept), ("unrelated", self.unrelated, wrong))
        ]
        return Table(
            f"Gate at {self.threshold:.3f}: {kept:.0%} of the related questions pass, {wrong:.0%} of the unrelated",
            ("questions", "n", "lowest score", "median", "highest", "pass"),
            rows,
            ["figure() shows the trade for every threshold"],
            frozenset({"n", "lowest score", "median", "highest", "pass"}),
        )

    def figure(self) -> plotly.graph_objects.Figure:
        """Draw both rates over the threshold."""
        import plotly.graph_objects as go

        frame = self.to_frame()
        figure = go.Figure()
        lines = (("related", "#0072B2", "solid", "circle"), ("unrelated", "#D55E00", "dash", "square"))
        for name, color, dash, symbol in lines:
            figure.add_trace(
                go.Scatter(
                    x=frame["threshold"],
                    y=frame[f"{name}_passed"],
                    name=name,
                    mode="lines+markers",
                    line={"color": color, "dash": dash},
                    marker={"symbol": symbol, "size": 5},
                )
            )
        figure.add_vline(x=self.threshold, line_dash="dot", annotation_text="the field's gate")
        figure.update_layout(
            template="plotly_white", xaxis_title="threshold", yaxis_title="share that passes", yaxis_range=[-0.02, 1.02]
        )
        return figure

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def measure_gate(field: MemoryField, related: Sequence[str], unrelated: Sequence[str]) -> GateStudy:
    """Return how often memory would be put in front of a model, for thresholds over the whole range of scores.

    Args:
        field: The field.
        related: Questions that it should answer.
        unrelated: Questions that it should not.

    Raises:
        QueryError: One of the two is empty.
        ModelNotReady: The model cannot be loaded.
    """
    if not related or not unrelated:
        raise QueryError("give at least one related and one unrelated question")
    import numpy as np

    gate = field.gate(progress=False)
    yes, no = np.sort(gate.scores(list(related))), np.sort(gate.scores(list(unrelated)))
    low, high = min(yes[0], no[0]), max(yes[-1], no[-1])
    margin = max((high - low) * 0.02, 1e-6)
    threshold = gate.threshold if np.isfinite(gate.threshold) else float(low - margin)
    return GateStudy(yes, no, threshold, np.linspace(low - margin, high + margin, _STEPS))
