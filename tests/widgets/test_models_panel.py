"""The comparison of models without a browser: spaces, maps by message, pairs, links, probes, failures, interruption."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import memoryfield as mf
from memoryfield_widgets import ModelComparison, State

MODEL = "hashing-1024"
CONTENT = f"{MODEL} (content)"
Told = Callable[[Any], list[tuple[dict[str, Any], list[Any]]]]


@pytest.fixture
def panel(field: mf.MemoryField, state: State) -> ModelComparison:
    return ModelComparison(field, [MODEL], recipes=["page", "content"])


def _settle(panel: ModelComparison) -> None:
    assert panel.state.jobs.wait()
    assert panel.state.error == "", panel.state.trouble


def _last(sent: list[tuple[dict[str, Any], list[Any]]], kind: str) -> tuple[dict[str, Any], list[Any]]:
    return [(content, buffers) for content, buffers in sent if content["kind"] == kind][-1]


def test_what_was_asked_for_is_compared_when_the_panel_is_shown(
    panel: ModelComparison, hear: Callable[..., None], told: Told
) -> None:
    assert panel.stage == "idle"
    assert MODEL in panel.twin() and "field.compare(models) returns them" in panel.twin()
    sent = told(panel)
    hear(panel, "hello")
    _settle(panel)
    assert panel.stage == "ready" and panel.labels == [MODEL, CONTENT] == panel.shown_pair
    content, buffers = _last(sent, "points")
    names = list(panel.field)
    assert content["names"] == names and content["kinds"] == ["PCA", "PCA"] and panel.method == "pca"
    first, second, rbo = (np.frombuffer(part, "<f4") for part in buffers)
    assert first.shape == second.shape == (2 * len(names),) and rbo.shape == (len(names),)
    (one, other), _ = panel.comparison.places(method="pca")
    assert np.allclose(first.reshape(-1, 2), one, atol=1e-6) and np.allclose(second.reshape(-1, 2), other, atol=1e-6)
    changed = panel.comparison.most_changed(20)
    assert [row["name"] for row in panel.changed] == [page.name for page in changed] == content["numbered"]
    assert panel.changed[0]["near"][1][0][0] == changed[0].near_second[0][0]
    assert [table["heading"] for table in panel.tables][1] == "How alike the spaces are"
    assert "Comparison of 2 spaces" in panel.twin()
    stored = sum(len(repr(panel.get_state()[name])) for name in panel.keys if name not in ("_esm", "_css"))
    assert stored < 200_000


def test_another_pair_turns_the_maps_and_the_neighbours(
    panel: ModelComparison, hear: Callable[..., None], told: Told
) -> None:
    sent = told(panel)
    panel.compare()
    _settle(panel)
    before, there = _last(sent, "points")
    row = panel.changed[0]
    hear(panel, "pair", first=CONTENT, second=MODEL)
    _settle(panel)
    after, back = _last(sent, "points")
    assert after["pair"] == before["pair"][::-1] and after["version"] > before["version"]
    assert there[0] == back[1] and there[1] == back[0]
    assert panel.changed[0]["near"] == row["near"][::-1] and panel.changed[0]["words"] == row["words"][::-1]
    hear(panel, "pair", first=MODEL, second=MODEL)
    assert "a pair is of two spaces" in panel.state.error
    hear(panel, "pair", first="no such", second=MODEL)
    assert "no space 'no such'" in panel.state.error and panel.shown_pair == [CONTENT, MODEL]


def test_pages_are_linked_with_the_other_panels(panel: ModelComparison, hear: Callable[..., None], told: Told) -> None:
    sent = told(panel)
    panel.compare()
    _settle(panel)
    hear(panel, "select", names=["page-03"], open=True)
    assert panel.state.selected == ("page-03",) and panel.state.active == "page-03"
    assert _last(sent, "selection")[0] == {"kind": "selection", "names": ["page-03"], "active": "page-03"}
    page = _last(sent, "page")[0]["page"]
    assert page["name"] == "page-03" and len(page["near"]) == 2 and page["near"][0]
    hear(panel, "select", names=["page-01", "no-such-page", 7, "page-02"], open=True)
    assert panel.state.selected == ("page-01", "page-02") and panel.state.active == "page-03"
    panel.state.update(selected=("page-05",), active="page-05")
    assert _last(sent, "selection")[0]["names"] == ["page-05"] and _last(sent, "page")[0]["page"]["name"] == "page-05"
    hear(panel, "look", name="gone")
    assert _last(sent, "page")[0]["page"] is None
    assert not panel.stale
    panel.field.edit("page-05", body="other words\n")
    panel.state.wrote("edited")
    assert panel.stale


def test_umap_is_shown_when_it_is_ready_and_pca_until_then(
    panel: ModelComparison, hear: Callable[..., None], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.compare()
    _settle(panel)
    sent = told(panel)
    places, asked = panel.comparison.places, []

    def slow(*pair: str, method: str) -> Any:
        asked.append((method, panel.method))
        return places(*pair, method="pca")[0], ("UMAP", "UMAP")

    object.__setattr__(panel.comparison, "places", slow)  # what is tested is the order of things, not UMAP
    hear(panel, "method", method="umap")
    _settle(panel)
    assert asked == [("umap", "pca")] and panel.method == "umap"
    assert _last(sent, "points")[0]["kinds"] == ["UMAP", "UMAP"]
    hear(panel, "method", method="pca")
    assert panel.method == "pca" and len(asked) == 1  # both are kept
    hear(panel, "method", method="tsne")
    assert "tsne" in panel.state.error


def test_models_recipes_and_dimensions_are_chosen_in_the_panel(
    field: mf.MemoryField, state: State, hear: Callable[..., None], told: Told
) -> None:
    panel = ModelComparison(field)
    sent = told(panel)
    hear(panel, "hello")
    _settle(panel)
    known = {row["code"]: row for row in panel.choices["models"]}
    assert panel.stage == "idle" and known[MODEL]["ready"] and not known[MODEL]["chosen"]
    hear(panel, "compare", models=[], recipes=[], dimensions="")
    assert "choose one model" in state.error
    hear(panel, "compare", models=[MODEL], recipes=["content", "page", "no such"], dimensions="many")
    assert "dimensions are whole numbers" in state.error
    state.error = ""
    hear(panel, "compare", models=[MODEL, MODEL, 3], recipes=["content", "page"], dimensions="")
    _settle(panel)
    assert panel.labels == [CONTENT, MODEL]
    assert [row["code"] for row in panel.choices["recipes"] if row["chosen"]] == ["page", "content"]
    assert next(row for row in panel.choices["models"] if row["code"] == MODEL)["chosen"]
    hear(panel, "compare", models=[MODEL], recipes=["page"], dimensions="512 256")
    _settle(panel)
    assert panel.labels == [MODEL] and panel.shown_pair == []  # one space has tables and no maps
    assert any("was not trained to be cut" in note for table in panel.tables for note in table["notes"])
    assert _last(sent, "points")[0]["pair"] == [CONTENT, MODEL]


def test_probes_give_retrieval_with_intervals(field: mf.MemoryField, state: State) -> None:
    probes = [mf.Probe("a", "night ferry", frozenset(["page-03"])), mf.Probe("b", "crane rope", frozenset(["page-02"]))]
    panel = ModelComparison(field, [MODEL], probes, recipes=["page", "content"])
    panel.compare()
    _settle(panel)
    text = repr(panel.tables)
    assert "mrr" in text.lower() and "[" in next(c for t in panel.tables for r in t["rows"] for c in r if "[" in c)


def test_a_model_that_fails_is_named_and_the_others_go_on(field: mf.MemoryField, state: State) -> None:
    panel = ModelComparison(field, [MODEL, "no-such-model-x"], recipes=["page", "content"])
    panel.compare()
    assert state.jobs.wait()
    assert panel.labels == [MODEL, CONTENT] and panel.stage == "ready"
    assert "could not be compared: no-such-model-x" in state.error


def test_a_comparison_can_be_cancelled_and_begun_again(
    panel: ModelComparison, hear: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    compare = panel.field.compare

    def slow(*args: Any, progress: Callable[[int, int], None], **options: Any) -> Any:
        begun.set()
        assert go.wait(30)
        progress(1, 2)
        return compare(*args, progress=progress, **options)

    monkeypatch.setattr(panel.field, "compare", slow)
    panel.compare()
    assert begun.wait(30) and panel.stage == "working"
    assert panel.state.busy[0].title == "comparing models"
    panel.state.jobs.cancel()
    go.set()
    _settle(panel)
    assert panel.stage == "failed" and panel.comparison is None
    panel.compare()
    _settle(panel)
    assert panel.stage == "ready"


def test_messages_before_anything_is_compared_do_nothing(panel: ModelComparison, hear: Callable[..., None]) -> None:
    for kind, content in (
        ("pair", {"first": "a", "second": "b"}),
        ("select", {"names": ["page-01"]}),
        ("look", {"name": "page-01"}),
        ("method", {"method": "pca"}),
    ):
        hear(panel, kind, **content)
    assert panel.state.error == "" and panel.state.selected == ()
