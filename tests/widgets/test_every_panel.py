"""What holds for every panel: a cell that runs again, a closed one, a field that changed, an archive, a new kernel."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
import memoryfield_widgets
from memoryfield_widgets import Panel, State

PANELS = ["SearchBox", "PageEditor", "FamilyReview", "ProbeAnnotator", "StatusBar", "MemoryMap", "ModelComparison"]
MODEL = "hashing-1024"
Hear = Callable[..., None]


def _shown(kind: str, field: Any, hear: Hear) -> Panel:
    """Return a panel whose view has appeared, once it has done what it does by itself."""
    panel: Panel = getattr(memoryfield_widgets, kind)(field)
    hear(panel, "hello")
    assert panel.state.jobs.wait()
    return panel


@pytest.fixture(params=PANELS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_cell_that_runs_again_shows_the_same_state(kind: str, state: State, hear: Hear) -> None:
    state.update(active="page-03", selected=("page-03", "page-04"))
    state.ask("winch brake", delay=0.0)
    first = _shown(kind, state.field, hear)
    first.close()
    again = _shown(kind, state.field, hear)
    assert again.state is state and state.active == "page-03" and state.selected == ("page-03", "page-04")
    assert [hit.name for hit in state.hits] and state.error == ""
    assert again.twin() == _shown(kind, state.field, hear).twin()  # two at once as well


def test_a_closed_panel_starts_no_work(kind: str, state: State, hear: Hear, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = _shown(kind, state.field, hear)
    panel.close()
    started: list[str] = []
    monkeypatch.setattr(state.jobs, "start", lambda kind, *_, **__: started.append(kind))
    state.update(active="page-01", selected=("page-01",), revision=state.revision + 1, model=MODEL, recipe="content")
    assert started == [] and state.error == ""


def test_a_state_goes_with_its_last_panel(kind: str, field: mf.MemoryField, hear: Hear) -> None:
    import weakref

    panel = _shown(kind, field, hear)
    held = weakref.ref(panel.state)
    panel.close()
    del panel
    gc.collect()
    assert held() is None


def test_pages_that_other_programs_wrote_or_took_away_are_no_error(kind: str, state: State, hear: Hear) -> None:
    state.update(active="page-03", selected=("page-03", "page-04"))
    state.ask("winch brake", delay=0.0)
    panel = _shown(kind, state.field, hear)
    place = state.field.path
    (place / "page-03.md").unlink()
    (place / "page-04.md").write_text("---\ntitle: [\n---\nbroken\n", encoding="utf-8")
    (place / "page-99.md").write_bytes(b"---\ntitle: New\n---\n\xff\xfe\n")
    state.wrote("seen by the watch")
    assert state.jobs.wait()
    hear(panel, "hello")
    assert state.jobs.wait()
    assert state.error == "", state.trouble
    panel.twin()


def test_an_archive_is_shown_and_never_written(kind: str, field: mf.MemoryField, tmp_path: Path, hear: Hear) -> None:
    field.sync(progress=False)
    path = field.export(tmp_path / "notes.memoryfield.zip").path
    before = path.read_bytes()
    archive = mf.open_field(path, model=MODEL)
    state = State.of(archive)
    state.update(active="page-03", selected=("page-03", "page-04"))
    state.ask("winch brake", delay=0.0)
    panel = _shown(kind, archive, hear)
    assert len(state.hits) and state.error == "", state.trouble
    for act in ("save", "apply", "undo", "redo", "delete", "new"):
        hear(panel, act, name="page-03", file="x.sqlite3", id="none")
    assert state.jobs.wait()
    assert path.read_bytes() == before


@pytest.mark.slow
def test_after_a_restart_of_the_kernel_every_panel_begins_anew(field: mf.MemoryField) -> None:
    """Another process, the same field: what was learned and embedded is there, and nothing waits for the old one."""
    code = f"""
import memoryfield as mf
import memoryfield_widgets as widgets
field = mf.open_field({str(field.path)!r}, model={MODEL!r})
for kind in {PANELS!r}:
    panel = getattr(widgets, kind)(field)
    panel._handle_custom_msg({{"kind": "hello"}}, [])
    assert panel.state.jobs.wait(60) and panel.state.error == "", (kind, panel.state.error)
print(len(field.history()), sum(index.state == "ok" for index in field.indexes()) > 0)
"""
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120) for _ in range(2)]
    assert [run.returncode for run in said] == [0, 0], said[0].stderr + said[1].stderr
    assert said[0].stdout == said[1].stdout == "0 True\n"
