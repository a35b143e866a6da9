"""The tale as a film: each step is done by mouse and keyboard, looked at, and saved as a frame of a recording."""

from __future__ import annotations

import runpy
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDING = runpy.run_path(str(Path(__file__).with_name("recording.py")))
CELLS = (
    """import memoryfield as mf
from memoryfield_widgets import Workbench

field = mf.open_field("harbor", model="all-MiniLM-L6-v2")
field.sync(progress=False);""",
    "Workbench(field)",
)
SIZE = (1600, 1000)
QUESTION = "the boat hoist will not pick up on a frosty morning"
LARGEST = 4_000_000  # bytes of the recording
MAP = "document.querySelector('.mf-map').memorymap"


class Film:
    """Saves numbered frames of a notebook's window."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.frames: list[Path] = []

    def frame(self) -> None:
        """Save the next frame, once nothing moves on the map."""
        self.book.page.wait_for_function(f"() => {MAP}.moved >= 1 && !{MAP}.frame")
        self.frames.append(self.book.shot(f"recording-{len(self.frames) + 1:02}"))


def to_the_top(book: Any, selector: str) -> None:
    """Scroll the notebook until an element stands at its upper edge."""
    book.page.evaluate(
        "(selector) => document.querySelector(selector).scrollIntoView({block: 'start', behavior: 'instant'})",
        selector,
    )


def opened(notebook: Any, *, size: tuple[int, int] = SIZE) -> Any:
    """Open a notebook beside a copy of the example field, run it, and wait for the map in its final form."""
    book = notebook(*CELLS, size=size, run=False)
    shutil.copytree(
        ROOT / "data" / "harbor", book.path.parent / "harbor", ignore=shutil.ignore_patterns("*.sqlite3*", "*.lock")
    )
    book.theme(dark=False)
    book.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    assert book.run_all(), book.outputs()
    book.do("bench = Out[2]; state = bench.state")
    book.page.locator(".mf-map[data-method='umap'][data-color='region']").wait_for(timeout=180_000)
    book.until("not state.busy", seconds=120)
    return book


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tale_is_recorded(notebook: Any) -> None:
    """Search, see the map answer, lasso, open, edit, review families, merge, undo, compare two models."""
    book = opened(notebook)
    page, bench, film = book.page, book.page.locator(".mf-workbench"), Film(book)

    def region(name: str) -> Any:
        return bench.get_by_role("region", name=name, exact=True)

    # the memory as a whole: every page a point, the regions named
    assert book.ask("len(field)") == 180
    assert page.evaluate(f"{MAP}.labels.length") > 5
    columns = bench.locator(".mf-grid").evaluate("el => getComputedStyle(el).gridTemplateColumns.split(' ').length")
    assert columns == 3
    film.frame()

    # a question: hits beside the map, their numbers on it, and the map in its light
    to_the_top(book, ".mf-workbench")
    question = bench.get_by_role("combobox", name="Question")
    question.press_sequentially(QUESTION, delay=5)
    page.locator(".mf-map[data-color='similarity'][data-hits='10']").wait_for()
    book.until("state.hits is not None and state.hits.query", QUESTION)
    options = bench.get_by_role("listbox", name="Pages found").get_by_role("option")
    assert options.count() == 10
    film.frame()

    # the first hit, opened
    name = options.first.get_attribute("data-name")
    assert name == "travel-lift-cold-start"
    options.first.click()
    editor = region("Page")
    editor.locator(".mf-name", has_text=name).wait_for()
    editor.locator(".mf-similar li").first.wait_for()
    page.wait_for_function(f"{MAP}.names[{MAP}.open] === '{name}'")
    book.until("not state.busy")
    film.frame()
    book.shot("picture-workbench")

    # a lasso around the hits
    bench.get_by_role("group", name="Tool").get_by_role("button", name="Lasso").click()
    places = page.evaluate(f"() => {MAP}.hits.slice(0, 5).map((row) => {MAP}.screenOf({MAP}.names[row]))")
    left, right = min(x for x, _ in places) - 22, max(x for x, _ in places) + 22
    top, bottom = min(y for _, y in places) - 22, max(y for _, y in places) + 22
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top + 4)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=6)
    film.frame()
    page.mouse.up()
    book.until("len(state.selected) >= 5")
    assert page.locator(".mf-map").get_attribute("data-selected") == str(book.ask("len(state.selected)"))
    film.frame()
    page.get_by_role("button", name="Clear", exact=True).last.click()
    book.until("len(state.selected)", 0)

    # an edit, its diff, saved
    before = book.ask("{page.name: page.sha256 for page in field.pages()}")
    editor.get_by_label("Summary").fill("The hoist needs ten minutes of warming before it lifts in frost.")
    editor.get_by_role("button", name="Save…").click()
    dialog = editor.get_by_role("dialog")
    dialog.locator(".mf-added", has_text="ten minutes of warming").wait_for()
    dialog.scroll_into_view_if_needed()
    film.frame()
    dialog.get_by_role("button", name="Save").click()
    book.until("'ten minutes' in field.read('travel-lift-cold-start').summary")
    editor.get_by_role("button", name="Undo", exact=True).click()
    book.until("{page.name: page.sha256 for page in field.pages()}", before)

    # families: two pages that may say the same
    bench.get_by_role("tab", name="Families", exact=True).click()
    families = region("Families")
    families.get_by_text("Do these two pages say the same?").wait_for(timeout=180_000)
    families.locator("mark.mf-differs").first.wait_for()
    book.until("not state.busy", seconds=120)
    film.frame()

    # a family, its plan as a diff with an account of every sentence, applied and undone
    families.get_by_role("tab", name="Families (").click()
    families.locator(".mf-groups > li").first.get_by_role("button", name="Plan the merge").click()
    families.locator(".mf-desk-title", has_text=" pages into ").wait_for()
    families.locator(".mf-diff-new, .mf-diff-old").first.wait_for()
    film.frame()
    page.evaluate("document.querySelector('.mf-families .mf-diff').scrollIntoView({block: 'center'})")
    to_the_top(book, ".mf-workbench")
    film.frame()
    families.get_by_role("button", name="Apply the merge").click()
    families.get_by_text(" merged into ").first.wait_for()
    book.until("len(field) < 180")
    book.until("bench.title == f'harbor: {len(field)} pages'")
    book.until("not state.busy")
    page.wait_for_function("Number(document.querySelector('.mf-map').dataset.count) < 179")
    film.frame()
    families.get_by_role("button", name="Undo", exact=True).first.click()
    book.until("{page.name: page.sha256 for page in field.pages()}", before)
    page.locator(".mf-map[data-count='179'][data-color='similarity'][data-hits='10']").wait_for()
    book.until("not state.busy")
    colors = page.evaluate(f"new Set({MAP}.coloring.values).size")
    assert colors > 50, "the map is in the question's colours again"
    film.frame()

    to_the_top(book, ".mf-workbench")

    # two models: where the same pages lie, and which moved
    bench.get_by_role("tab", name="Models").click()
    models = region("Models")
    for choice in ("all-MiniLM-L6-v2", "hashing-1024", "page"):
        models.get_by_role("checkbox", name=choice, exact=True).check()
    models.get_by_role("button", name="Compare", exact=True).click()
    models.locator(".mf-changed > li").first.wait_for(timeout=120_000)
    assert book.ask("list(bench.panel('models').shown_pair)") == ["all-MiniLM-L6-v2", "hashing-1024"]
    book.until("not state.busy", seconds=120)
    film.frame()
    assert not book.ask("state.trouble"), book.ask("state.trouble")
    book.theme(dark=True)
    bench.get_by_role("tab", name="Page").click()
    to_the_top(book, ".mf-workbench")
    page.wait_for_function(f"() => {MAP}.dark && !{MAP}.frame")
    book.shot("picture-workbench-dark")

    blank = page.context.new_page()
    made = RECORDING["record"](RECORDING["changes"](blank, film.frames), film.frames[0].with_name("recording.png"))
    raw = made.read_bytes()
    at = raw.index(b"acTL")
    assert struct.unpack(">I", raw[at + 4 : at + 8]) == (len(film.frames),) == (12,)
    assert len(raw) < LARGEST


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_panels_alone_for_the_documentation(notebook: Any) -> None:
    """The map, the search and two models, each by itself, in both themes."""
    book = opened(notebook, size=(1400, 1500))
    page = book.page
    book.do("bench.close()")
    for cell, selector in (("MemoryMap", ".mf-map"), ("SearchBox", ".mf-search")):
        show(book, f"from memoryfield_widgets import *\nshown = {cell}(field)\nshown")
        panel = page.locator(selector).last
        panel.wait_for()
        if cell == "MemoryMap":
            page.locator(".mf-map[data-method='umap'][data-color='region']").wait_for(timeout=60_000)
            book.do(f"state.ask({QUESTION!r}, delay=0)")
            page.locator(".mf-map[data-color='similarity'][data-hits='10']").wait_for()
            page.wait_for_function(f"() => {MAP}.moved >= 1 && !{MAP}.frame")
        else:
            panel.get_by_role("button", name="Settings").click()
            panel.get_by_role("listbox", name="Pages found").get_by_role("option").nth(4).wait_for()
        book.until("not state.busy")
        for dark in (False, True):
            book.theme(dark=dark)
            book.shot(f"picture-{selector[4:]}-{'dark' if dark else 'light'}", panel)
        book.theme(dark=False)
    show(book, "shown = FamilyReview(field)\nshown")
    panel = page.locator(".mf-families")
    panel.get_by_text("Do these two pages say the same?").wait_for(timeout=120_000)
    panel.locator(".mf-review-body mark.mf-differs").first.wait_for()
    book.until("not state.busy")
    book.shot("picture-families", panel)
    panel.get_by_role("tab", name="Families (").click()
    panel.locator(".mf-groups > li").last.get_by_role("button", name="Plan the merge").click()
    panel.locator(".mf-diff-new, .mf-diff-old").first.wait_for()
    book.shot("picture-merge", panel)
    show(book, "shown = ModelComparison(field, ['all-MiniLM-L6-v2', 'hashing-1024'])\nshown")
    panel = page.locator(".mf-models")
    panel.locator(".mf-changed > li").first.wait_for(timeout=120_000)
    book.until("not state.busy", seconds=120)
    panel.locator(".mf-changed > li button").first.click()
    book.shot("picture-models", panel)


def show(book: Any, code: str) -> None:
    """Run code in the notebook's last cell, in place of what stands there."""
    assert (
        book.page.evaluate(
            """async (code) => {
          const app = window.jupyterapp, content = app.shell.currentWidget.content;
          content.activeCellIndex = content.widgets.length - 1;
          content.activeCell.model.sharedModel.setSource(code);
          return await app.commands.execute('notebook:run-cell');
        }""",
            code,
        )
        is not False
    )
