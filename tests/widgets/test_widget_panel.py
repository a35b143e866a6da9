"""The base of panels, the status line, and the face of the package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import memoryfield as mf
import memoryfield_widgets
from memoryfield_widgets import Panel, State, StatusBar
from memoryfield_widgets.packing import packed, unpacked
from memoryfield_widgets.panel import script, style

HERE = Path(memoryfield_widgets.__file__).parent
# those without a default export are parts that panels join
SCRIPTS = sorted(path.name for path in HERE.glob("*.js") if "export default" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", memoryfield_widgets.__all__)
def test_every_name_of_the_face_resolves(name: str) -> None:
    assert getattr(memoryfield_widgets, name) is getattr(memoryfield_widgets, name)
    assert name in dir(memoryfield_widgets)


def test_the_face_is_sorted_and_refuses_what_it_has_not() -> None:
    assert list(memoryfield_widgets.__all__) == sorted(memoryfield_widgets.__all__)
    with pytest.raises(AttributeError, match="no_such_panel"):
        memoryfield_widgets.no_such_panel  # noqa: B018


def test_importing_the_face_loads_nothing_heavy() -> None:
    code = "import sys, memoryfield_widgets; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"anywidget", "ipywidgets", "numpy", "plotly", "IPython"} & set(run.stdout.split())


def test_a_message_calls_its_method_and_others_nothing(state: State, hear: Callable[..., None]) -> None:
    class Ear(Panel):
        def heard_word(self, content: dict[str, str]) -> None:
            self.state.say(content["text"])

    ear = Ear(state)
    hear(ear, "word", text="hello")
    assert state.message == "hello"
    hear(ear, "unknown", text="x")
    hear(ear, "word")
    assert "KeyError" in state.error
    ear._handle_custom_msg("no mapping", [])
    ear._handle_custom_msg({"kind": ["word"]}, [])
    assert state.message == "hello"


def test_a_panel_that_stands_alone_shows_what_went_wrong(state: State, hear: Callable[..., None]) -> None:
    panel, bar = Panel(state), StatusBar(state)
    state.fail(mf.errors.QueryError("k=0: give a whole number"))
    assert panel.fault == "k=0: give a whole number" == Panel(state).fault and bar.fault == ""
    hear(panel, "dismiss")
    assert panel.fault == "" == state.error


def test_a_closed_panel_follows_no_more(state: State) -> None:
    bar = StatusBar(state)
    state.say("one")
    assert bar.message == "one"
    bar.close()
    state.say("two")
    assert bar.message == "one"


def test_the_status_line_shows_jobs_messages_and_errors(state: State, hear: Callable[..., None]) -> None:
    import threading

    bar = StatusBar(state.field)
    assert bar.state is state
    begun, go = threading.Event(), threading.Event()

    def work(job: object) -> None:
        job.progress(1, 4)  # type: ignore[attr-defined]
        begun.set()
        assert go.wait(30)
        job.progress(2, 4)  # type: ignore[attr-defined]

    job = state.jobs.start("index", work, title="embedding pages", long=True)
    assert begun.wait(30)
    assert [(row["title"], row["done"], row["total"]) for row in bar.jobs] == [("embedding pages", 1, 4)]
    hear(bar, "cancel", id=job.id)
    assert bar.jobs == []
    assert bar.message == "cancelled"
    go.set()
    state.fail(mf.errors.QueryError("k=0: give a whole number"))
    assert bar.error == "k=0: give a whole number"
    hear(bar, "dismiss")
    assert bar.error == ""


def test_a_panel_leaves_its_twin_in_the_notebook(state: State) -> None:
    class Still(Panel):
        def twin(self) -> str:
            return "<p>still</p>"

    class Broken(Panel):
        def twin(self) -> str:
            raise ValueError("no picture")

    data, _ = Still(state)._repr_mimebundle_()
    assert data["text/html"] == "<p>still</p>"
    assert "application/vnd.jupyter.widget-view+json" in data
    data, _ = Broken(state)._repr_mimebundle_()
    assert "text/html" not in data
    assert "no picture" in state.error


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_join_into_one_module_without_imports(name: str) -> None:
    lines = script(name).splitlines()
    assert [line for line in lines if line.startswith("import ")] == []
    assert len([line for line in lines if line.startswith("export default")]) == 1
    assert not [line for line in lines if ".innerHTML" in line or "insertAdjacentHTML" in line]


def test_styles_join() -> None:
    assert "--mf-accent" in style("status.css") and ".mf-status" in style("status.css")


def test_what_is_stored_with_a_widget_is_its_script_and_style_packed() -> None:
    source, look = script("status.js"), style("status.css")
    assert unpacked(StatusBar._esm) == (source, look) and StatusBar._css == ""
    assert len(StatusBar._esm) < (len(source) + len(look)) / 1.8
    with pytest.raises(ValueError, match="no packed panel"):
        unpacked(source)


def test_a_packed_panel_is_a_module_that_exports_what_its_script_does(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed, so packing is tested in the browser only")
    module = packed("mf-try", 'const text = "größer ${1} `";\nexport default { render: () => text };\n', ".mf > a {}")
    # a document and its addresses; Node imports from a data address what a browser imports from a blob
    (tmp_path / "packed.mjs").write_text(
        "globalThis.added = [];\n"
        "globalThis.document = { getElementById: () => null, createElement: () => ({}),"
        " head: { append: (node) => added.push(node) } };\n"
        "const made = []; const Real = Blob;\n"
        "globalThis.Blob = class extends Real { constructor(parts, how) { super(parts, how); made.push(parts); } };\n"
        "URL.createObjectURL = () => `data:text/javascript,${encodeURIComponent(made.at(-1)[0])}`;\n"
        "URL.revokeObjectURL = () => null;\n"
        f"const module = await import({json.dumps('data:text/javascript,' + quote(module))});\n"
        "console.log(JSON.stringify([module.default.render(), added[0].id, added[0].textContent]));\n",
        encoding="utf-8",
    )
    run = subprocess.run([node, "packed.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == ["größer ${1} `", "mf-try-style", ".mf > a {}"]


def test_indexes_are_built_updated_and_deleted_on_demand(
    state: State, hear: Callable[..., None], told: Callable[..., list[tuple[dict[str, Any], list[Any]]]]
) -> None:
    bar = StatusBar(state)
    sent = told(bar)
    hear(bar, "indexes", open=True)
    assert state.jobs.wait()
    assert sent[-1][0]["rows"] == []
    assert "hashing-1024" in sent[-1][0]["models"]

    hear(bar, "build", model="hashing-1024")
    assert state.jobs.wait()
    (row,) = sent[-1][0]["rows"]
    assert (row["model"], row["rows"], row["state"]) == ("hashing-1024", 12, "up to date")
    state.field.write("one-more", title="One more", on_similar="ignore")
    state.wrote()
    assert state.jobs.wait()
    assert sent[-1][0]["rows"][0]["state"] == "1 page behind"
    hear(bar, "build", model="hashing-1024", recipe="page")
    assert state.jobs.wait()
    assert sent[-1][0]["rows"][0]["state"] == "up to date"

    hear(bar, "delete", file=row["file"])
    assert state.jobs.wait()
    assert sent[-1][0]["rows"] == []
    assert state.message == "deleted the index hashing-1024.sqlite3"
    assert state.field.indexes() == []
    hear(bar, "delete", file="../page-01.md")
    assert state.jobs.wait()
    assert "has no index" in state.error
    hear(bar, "indexes", open=False)
    count = len(sent)
    state.wrote()
    assert state.jobs.wait()
    assert len(sent) == count


def test_a_style_of_one_panel_does_not_reach_into_another() -> None:
    """What two panels call alike stands below the root of each; only panel.css is meant for all."""
    roots = {"merging": "families"}
    uses: dict[str, dict[str, list[str]]] = {}
    for sheet in HERE.glob("*.css"):
        if sheet.stem == "panel":
            continue
        for group in re.findall(r"([^{}@]+)\{", re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.S)):
            for selector in group.split(","):
                for name in re.findall(r"\.(mf-[a-z0-9-]+)", selector):
                    root = roots.get(sheet.stem, sheet.stem)
                    uses.setdefault(name, {}).setdefault(root, []).append(selector.strip())
    assert len(uses) > 50
    shared = {name: found for name, found in uses.items() if len(found) > 1}
    leaks = [
        f"{root}.css: {selector}"
        for name, found in shared.items()
        for root, selectors in found.items()
        for selector in selectors
        if f".mf-{root}" not in selector and not re.search(rf"\.mf-(?!at\b|row\b)[a-z-]+[ >].*\.{name}", selector)
    ]
    assert leaks == []


def test_the_shared_style_never_wins_over_a_panels_own() -> None:
    """Each panel brings panel.css along, also after another panel's own sheet: at a tie the later one would win."""
    ties = []
    for sheet in HERE.glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.S)
        for group in re.findall(r"([^{}@]+)\{", text) if sheet.stem != "panel" else ():
            for selector in map(str.strip, group.split(",")):
                is_tag = re.search(r"[ >](button|select|textarea|label|mark|progress)$", selector)
                if is_tag and len(re.findall(r"\.mf", selector)) < 2:
                    ties.append(f"{sheet.name}: {selector}")
    assert ties == []
