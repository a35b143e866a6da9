"""A map of a million pages: jupyter-scatter draws it, and its selection is the state's.

``MemoryMap`` has names, cards, a list for the keyboard and colours of the question, up to some hundred thousand pages.
This one has points, a lasso and its own zoom, and lies whole in the notebook's widget state: save such a notebook
without widget state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import memoryfield as mf
from memoryfield_widgets.state import State

ACCENT = "#d55e00"  # what is selected; of the same palette as the map's colours


class ScatterMap:
    """Points for pages by jupyter-scatter, linked with the other panels of the field.

    Args:
        field: The field, or the state of one.
        layout: Where the pages are; by default ``field.layout(method="pca")``. Names that the field does not have are
            points that cannot be opened.
        state: The state to share; by default the field's own.
        height: In pixels.

    Attributes:
        state: What this map shares with the panels.
        positions: The layout.
        chart: The ``jscatter.Scatter``, for its colours, tooltips and axes.

    Raises:
        QueryError: jupyter-scatter is not installed, or the layout holds no page.
    """

    def __init__(
        self, field: mf.MemoryField | State, layout: Any = None, *, state: State | None = None, height: int = 480
    ) -> None:
        scatter = _scatter()
        self.state = State.of(field) if state is None else state
        if layout is None:
            layout = self.state.field.layout(method="pca", describe=False)
        if not len(layout):
            raise mf.errors.QueryError(f"{self.state.field.name} has no page to show")
        self.positions = layout
        self._row = {name: row for row, name in enumerate(layout.names)}
        self._guard = threading.RLock()
        x, y = np.ascontiguousarray(layout.xy.T, dtype=np.float32)
        self.chart = scatter(x, y, height=height, opacity_unselected=0.4, color_selected=ACCENT)
        self._ends: list[Callable[[], None]] = [self.state.follow(self._show, "selected")]
        self._show()
        self.chart.widget.observe(self._taken, names="selection")

    @property
    def field(self) -> mf.MemoryField:
        """The field."""
        return self.state.field

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selected pages."""
        return self.state.selected

    def select(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Select pages here and in the panels, and return what then is selected.

        Raises:
            PageNotFound: A name is not on the map.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in wanted if name not in self._row]
        if unknown:
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            raise mf.errors.PageNotFound(f"no page {', '.join(map(repr, unknown[:3]))}{more} on this map")
        self.state.selected = tuple(wanted)
        return self.state.selected

    def close(self) -> None:
        """Take the map away and stop following the state."""
        for end in self._ends:
            end()
        self.chart.widget.unobserve(self._taken, names="selection")
        self.chart.widget.close()

    def _show(self, _changed: frozenset[str] = frozenset()) -> None:
        rows = np.array([self._row[name] for name in self.state.selected if name in self._row], dtype=np.uint32)
        with self._guard:
            if not np.array_equal(np.sort(rows), np.sort(self._rows())):
                self.chart.selection(rows)

    def _taken(self, _change: Any) -> None:
        """Take what was selected with the lasso; pages that are not on this map are not selected any more."""
        with self._guard:
            rows = self._rows()
            if {self._row[name] for name in self.state.selected if name in self._row} == set(rows.tolist()):
                return
            names = self.positions.names
            chosen = tuple(names[row] for row in rows.tolist() if row < len(names))
        self.state.selected = chosen

    def _rows(self) -> Any:
        return np.asarray(self.chart.widget.selection, dtype=np.int64).ravel()

    def __repr__(self) -> str:
        return f"<ScatterMap of {self.field.name!r}: {len(self.positions):,} points>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = self.chart.show()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self)}, metadata


def _scatter() -> Any:
    try:
        import jscatter
    except ImportError as error:
        raise mf.errors.QueryError(
            "a map of this size needs the package jupyter-scatter: pip install 'memoryfield-lab[scatter]'"
        ) from error
    return jscatter.Scatter
