"""The workbench without a browser: panels, tabs, what it leaves in a notebook, what it sees of other programs."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import ipywidgets
import pytest

import memoryfield as mf
from memoryfield_widgets import State, Workbench, workbench
from memoryfield_widgets.watching import Watch

Hear = Callable[..., None]
STEMS = ("winch", "rope", "bread", "crane", "ward", "harbour", "ferry", "dough", "keel", "lamp", "tide", "oven", "sail")
ENDINGS = ("", "s", "ery", "like", "less", "ful", "man", "yard", "work", "stone", "side", "ward", "way")


@pytest.fixture
def bench(state: State) -> Workbench:
    return Workbench(state)


def test_all_panels_stand_on_one_state(bench: Workbench, state: State) -> None:
    assert set(bench.parts) == {"search", "map", "status", "page"}
    assert all(panel.state is state for panel in bench.parts.values())
    state.open("page-03")
    assert bench.active == "page-03"
    assert bench.panel("page").facts["name"] == "page-03"
    assert bench.title == "notes: 12 pages"


def test_a_tab_makes_its_panel_when_it_is_first_opened(bench: Workbench, hear: Hear) -> None:
    for name in ("families", "models", "probes"):
        assert name not in bench.parts
        hear(bench, "tab", name=name)
        assert bench.tab == name and bench.parts[name] is bench.panel(name)
    hear(bench, "tab", name="cellar")
    assert bench.tab == "probes" and not bench.state.error
    with pytest.raises(mf.errors.QueryError, match="cellar"):
        bench.show("cellar")
    with pytest.raises(mf.errors.QueryError, match="cellar"):
        bench.panel("cellar")
    assert bench.state.jobs.wait()


def test_a_tab_that_is_open_at_first(state: State) -> None:
    assert "families" in Workbench(state, tab="families").parts
    with pytest.raises(mf.errors.QueryError, match="page, families"):
        Workbench(state, tab="x")


def test_a_search_reaches_every_panel(bench: Workbench, state: State) -> None:
    bench.ask("sour dough")
    assert state.jobs.wait()
    assert bench.hits is not None and bench.hits.query == "sour dough"
    bench.map.select(bench.hits.names[:2])
    assert bench.selected == tuple(bench.hits.names[:2])
    assert bench.panel("search").selected == bench.hits.names[:2]


def test_two_workbenches_of_one_field_show_the_same(bench: Workbench, field: mf.MemoryField) -> None:
    other = Workbench(field)
    assert other.state is bench.state
    other.ask("winch")
    assert other.state.jobs.wait()
    assert bench.panel("search").outcome == other.panel("search").outcome
    other.close()
    bench.state.open("page-01")
    assert bench.panel("page").facts["name"] == "page-01"


def test_what_other_programs_do_is_seen_and_said_once(bench: Workbench, hear: Hear, field: mf.MemoryField) -> None:
    bench.state.open("page-02")
    page = field.path / "page-02.md"
    page.write_text(page.read_text() + "Added elsewhere.\n")
    (field.path / "brand-new.md").write_text("New.\n")
    hear(bench, "look")
    assert bench.state.jobs.wait()
    assert bench.state.message == "changed by another program: brand-new, page-02"
    assert bench.title == "notes: 13 pages"
    assert "Added elsewhere." in bench.panel("page").page.body
    revision = bench.state.revision
    hear(bench, "look")
    assert bench.state.jobs.wait()
    assert bench.state.revision == revision


def test_what_is_done_here_is_no_news(bench: Workbench, hear: Hear, field: mf.MemoryField) -> None:
    field.edit("page-02", append="By hand.")
    bench.state.wrote("page-02 saved")
    hear(bench, "look")
    assert bench.state.jobs.wait()
    assert bench.state.message == "page-02 saved"


def test_a_closed_workbench_works_no_more(bench: Workbench, state: State) -> None:
    editor = bench.panel("page")
    bench.close()
    state.open("page-04")
    assert editor.facts["name"] is None
    assert bench.active == ""


def test_a_cell_that_runs_again_leaves_one_workbench(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([("cell", "run 1"), ("cell", "run 1"), ("cell", "run 2"), ("", "")])
    monkeypatch.setattr(workbench, "_cell_and_run", lambda: next(runs))
    first, second, third, fourth = (Workbench(state) for _ in range(4))
    state.open("page-05")
    assert [one.active for one in (second, third, fourth)] == ["", "page-05", "page-05"]
    assert first.active == "page-05"  # two of one run stand side by side; only the last is known


def test_an_archive_is_shown_as_read_only(field: mf.MemoryField, tmp_path: Path, hear: Hear) -> None:
    archive = mf.open_field(field.export(tmp_path / "out").path, model="hashing-1024")
    bench = Workbench(archive)
    assert bench.hint == "read only"
    bench.ask("winch")
    hear(bench, "look")
    assert bench.state.jobs.wait()
    assert len(bench.hits) and not bench.state.error
    hear(bench, "tab", name="families")
    assert bench.state.jobs.wait()


def test_an_empty_field(tmp_path: Path) -> None:
    bench = Workbench(mf.open_field(tmp_path / "new", create=True, model="hashing-1024"))
    bench.ask("anything")
    assert bench.state.jobs.wait()
    assert bench.panel("search").outcome["kind"] == "empty"
    assert bench.title == "new: 0 pages"
    assert isinstance(bench.twin(), str)


def test_the_saved_notebook_has_a_picture_and_tables_without_scripts(bench: Workbench, field: mf.MemoryField) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    field.write("trap", title=attack, summary=attack, body=f"winch {attack}", on_similar="ignore")
    bench.state.wrote()
    bench.ask("winch")
    bench.state.open("trap")
    assert bench.state.jobs.wait()
    data, _ = bench._repr_mimebundle_()
    html = data["text/html"]
    assert "<svg" in html and "<table" in html and "page-00" in html
    assert "<script" not in html and "<img" not in html
    assert "application/vnd.jupyter.widget-view+json" in data


@pytest.mark.slow
def test_the_stored_state_is_below_200_kb_at_1000_pages_with_every_tab_open(tmp_path: Path, hear: Hear) -> None:
    words = random.Random(3)
    for number in range(1000):
        if number % 5 != 1:  # each fifth page says what the one before it says
            said = " ".join(f"{words.choice(STEMS)}{words.choice(ENDINGS)}" for _ in range(40))
        text = f"---\ntitle: A page on {said[:30]}\nsummary: It is about {said[:90]}.\n---\n{said}. {said}.\n"
        (tmp_path / f"a-page-with-the-number-{number:04}.md").write_text(text)
    bench = Workbench(mf.open_field(tmp_path, model="hashing-1024"))
    bench.map.lay_out("pca")
    bench.ask("winchery and breadlike")
    bench.state.open("a-page-with-the-number-0007")
    bench.state.selected = bench.field.names()[:300]
    assert bench.state.jobs.wait(120)
    for tab in workbench.TABS:
        bench.show(tab)
        hear(bench.panel(tab), "hello")
    hear(bench.panel("models"), "method", method="pca")  # the maps go by message, and UMAP takes its time
    hear(bench.panel("models"), "compare", models=["hashing-1024"], recipes=["page", "content"])
    assert bench.state.jobs.wait(120)
    assert not bench.state.error
    assert bench.panel("families").groups and bench.panel("models").changed  # type: ignore[attr-defined]
    sizes = {name: _stored(panel) for name, panel in [*bench.parts.items(), ("workbench", bench)]}
    assert sum(sizes.values()) < 200_000, sizes


def _stored(widget: ipywidgets.Widget) -> int:
    """Return the bytes of a widget in a saved notebook; scripts and style sheets are counted too, bytes as base64."""
    state = ipywidgets.Widget.get_manager_state(widgets=[widget, widget.layout], drop_defaults=True)
    return len(json.dumps(state["state"]))


def test_the_saved_notebook_says_what_a_first_run_could_not_know(bench: Workbench) -> None:
    html = bench.twin()
    assert "FamilyReview(field), ModelComparison(field), ProbeAnnotator(field) show them" in html
    bench.show("families")
    assert "field.families() returns it" in bench.twin()
    bench.panel("families").find()  # type: ignore[attr-defined]
    assert bench.state.jobs.wait()
    assert "returns it" not in bench.twin() and "0 families, 0 of 12 pages" in bench.twin()


def test_watching_files(tmp_path: Path) -> None:
    place = tmp_path / "notes"
    place.mkdir()
    (place / "a.md").write_text("a")
    watch = Watch(place)
    assert watch.look() == ()
    (place / "b.md").write_text("b")
    (place / "index.sqlite3").write_text("no page")
    os.utime(place / "a.md", ns=(1, 1))
    assert watch.look() == ("a", "b")
    assert watch.look() == ()
    (place / "a.md").unlink()
    assert watch.look() == ("a",)
    for left in place.iterdir():
        left.unlink()
    place.rmdir()
    assert watch.look() == ("b",)


def test_every_key_in_the_help_is_a_key_of_a_panel() -> None:
    """The keys of the families panel are told in two places; they have to agree."""
    script = Path(workbench.__file__).with_name("workbench.js").read_text(encoding="utf-8")
    told = re.search(r'\["([a-z, ]+)", "in the families', script)
    assert told is not None
    families = Path(workbench.__file__).with_name("families.js").read_text(encoding="utf-8")
    for key in told[1].split(", "):
        assert re.search(rf'["\']?\b{key}\b["\']?\s*:|"{key}"', families), key
