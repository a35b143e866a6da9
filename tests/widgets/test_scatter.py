"""The map of a million points: jupyter-scatter's selection and the state's are one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import memoryfield as mf
from memoryfield_widgets import MemoryMap, ScatterMap, State


@pytest.fixture
def scatter(state: State) -> ScatterMap:
    pytest.importorskip("jscatter", reason="extra 'scatter' is not installed")
    return ScatterMap(state)


def lasso(shown: ScatterMap, *rows: int) -> None:
    shown.chart.widget.selection = np.array(rows, dtype=np.uint32)


def test_a_selection_goes_both_ways(scatter: ScatterMap, state: State) -> None:
    names = scatter.positions.names
    assert scatter.chart.widget.points.shape[0] == len(names) == 12
    lasso(scatter, 3, 4)
    assert state.selected == scatter.selected == (names[3], names[4])
    state.selected = (names[7],)
    assert scatter.chart.widget.selection.tolist() == [7]
    assert scatter.select(names[:2]) == tuple(names[:2])
    assert scatter.chart.widget.selection.tolist() == [0, 1]
    lasso(scatter)
    assert state.selected == ()


def test_it_is_linked_with_the_other_map(scatter: ScatterMap, state: State) -> None:
    other = MemoryMap(state, method="pca")
    assert other.wait()
    other.select("page-05")
    assert scatter.selected == ("page-05",)
    lasso(scatter, 1)
    assert other.selected == ("page-01",)


def test_a_page_of_the_field_that_the_layout_has_not_stays_selected_elsewhere(field: mf.MemoryField) -> None:
    pytest.importorskip("jscatter", reason="extra 'scatter' is not installed")
    state = State(field)
    shown = ScatterMap(field, Places(("page-01", "stranger")), state=state)
    state.selected = ("page-09",)
    assert shown.chart.widget.selection.tolist() == [] and state.selected == ("page-09",)
    with pytest.raises(mf.errors.PageNotFound, match="page-09"):
        shown.select("page-09")


def test_a_closed_one_follows_no_more_and_a_notebook_shows_the_widget(scatter: ScatterMap, state: State) -> None:
    data, _ = scatter._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == scatter.chart.widget.model_id
    assert data["text/plain"] == "<ScatterMap of 'notes': 12 points>"
    chart = scatter.chart.widget
    scatter.close()
    state.selected = ("page-01",)
    assert chart.selection.tolist() == []


def test_without_the_package_it_says_what_to_install(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jscatter", None)
    with pytest.raises(mf.errors.QueryError, match=r"pip install 'memoryfield-lab\[scatter\]'"):
        ScatterMap(state)


def test_a_layout_without_pages_is_refused(state: State) -> None:
    pytest.importorskip("jscatter", reason="extra 'scatter' is not installed")
    with pytest.raises(mf.errors.QueryError, match="no page to show"):
        ScatterMap(state, Places(()))


class Places(SimpleNamespace):
    """A layout of given names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        xy = np.arange(2.0 * len(names), dtype=np.float32).reshape(-1, 2)
        super().__init__(names=names, xy=xy)

    def __len__(self) -> int:
        return len(self.names)
