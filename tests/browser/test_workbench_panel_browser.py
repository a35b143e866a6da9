"""The workbench in JupyterLab: the tale from end to end, keys alone, narrow and wide, what goes on around it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbconvert
import pytest

OPEN = """
import memoryfield as mf
from memoryfield_widgets import State, Workbench
field = mf.open_field({path!r}, model="hashing-1024")
field.sync(progress=False)
_ = field.search("anything", progress=False)
"""
SCREENS = Path(__file__).resolve().parents[2] / "build" / "screens"
SHOW = "state = State.of(field); bench = Workbench(field); bench"
# where the map is not what is looked at: UMAP is compiled anew in each kernel, which takes longer than the rest
PLAIN = "state = State.of(field); bench = Workbench(field); bench.map.lay_out('pca'); bench"
BENCH = ".mf-workbench"
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


@pytest.fixture
def notes(tmp_path: Any) -> Any:
    """Thirty pages, two of them almost the same."""
    place = tmp_path / "notes"
    place.mkdir()
    topics = ("winch brake lining", "sour dough starter", "harbour crane rope", "night ferry times", "paint store")
    for number in range(28):
        topic = topics[number % 5]
        text = f"The {topic} was looked at in week {number}. " + f"Note {number * 7} on the {topic}: " * (
            number % 3 + 1
        )
        page = f"---\ntitle: {topic.title()} {number}\nsummary: The {topic}.\n---\n{text}\n"
        (place / f"page-{number:02}.md").write_text(page)
    twin = "Two drops of thin oil go on each pawl of the deck winch in April, and the drum is wiped dry with a cloth. "
    for name, more in (("oil-the-winch", "Then close the lid."), ("winch-oil", "Close the lid afterwards.")):
        (place / f"{name}.md").write_text(f"---\ntitle: Oil for the deck winch\n---\n{twin * 2}{more}\n")
    return place


def region(book: Any, name: str) -> Any:
    return book.page.locator(BENCH).last.get_by_role("region", name=name, exact=True)


def hits(bench: Any) -> Any:
    return bench.get_by_role("listbox", name="Pages found").get_by_role("option")


def answered(book: Any, question: str) -> None:
    """Wait until the list in the window, too, is that of the last question: a key acts on what is listed."""
    book.until("state.hits is not None and state.hits.query", question)
    book.page.wait_for_function(
        "(names) => names.join() === [...document.querySelectorAll('.mf-search [role=option]')]"
        ".map((option) => option.dataset.name).join()",
        arg=book.ask("state.hits.names"),
    )


def ready(book: Any) -> Any:
    """Wait until the map has its points, and return the workbench."""
    bench = book.page.locator(BENCH).last
    bench.get_by_role("combobox", name="Question").wait_for()
    book.until("0 < len(bench.map._row) >= len(field) - 1", seconds=180)  # a page named index is not on the map
    return bench


def test_search_select_edit_save_undo_on_one_state(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes)), PLAIN)
    bench = ready(book)
    assert "notes: 30 pages" in bench.locator("h2").inner_text()
    question = bench.get_by_role("combobox", name="Question")
    question.fill("oil for the winch")
    answered(book, "oil for the winch")
    first = hits(bench).first
    first.click()
    name = first.get_attribute("data-name")
    assert name in ("oil-the-winch", "winch-oil")
    book.until("state.active", name)
    page = region(book, "Page")
    page.locator(".mf-name", has_text=name).wait_for()
    book.shot("workbench-light")

    book.do("bench.map.select(field.names()[:4])")
    book.until("len(state.selected)", 4)
    page.get_by_label("Title").fill("Oil for the old winch")
    page.get_by_role("button", name="Save…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    book.until(f"field.read({name!r}).title", "Oil for the old winch")
    hits(bench).filter(has_text="Oil for the old winch").wait_for()  # the hits follow
    page.get_by_role("button", name="Undo", exact=True).click()
    book.until(f"field.read({name!r}).title", "Oil for the deck winch")
    book.theme(dark=True)
    book.shot("workbench-dark")


def test_by_keyboard_alone(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes)), PLAIN, "1 + 1")
    bench = ready(book)
    keys = book.page.keyboard
    focused = "document.activeElement"
    bench.get_by_role("tab", name="Page").focus()
    keys.press("/")
    assert book.page.evaluate(f"{focused}.getAttribute('role')") == "combobox"
    keys.type("sour dough / why?")  # typed, not taken for shortcuts
    answered(book, "sour dough / why?")
    keys.press("ArrowDown")
    keys.press("Enter")
    book.until("state.active == state.hits[0].name")
    assert book.page.evaluate(f"{focused}.getAttribute('role')") == "combobox"
    seen = []
    for _ in range(5):
        keys.press("F6")
        where = f"{focused}.closest('.mf-slot-search, .mf-slot-map, [role=tablist], [role=tabpanel], .mf-slot-status')"
        seen.append(book.page.evaluate(f"{where}?.className || {where}?.getAttribute('role')"))
    assert seen[0] == "mf-slot mf-slot-map" and "mf-tabs" in seen[1] and seen[2] == "mf-slot"
    keys.press("Shift+F6")

    bench.get_by_role("tab", name="Page").focus()
    keys.press("ArrowRight")
    assert book.page.evaluate(f"{focused}.textContent") == "Families"
    region(book, "Families").wait_for()
    keys.press("End")
    region(book, "Probes").wait_for()
    keys.press("Home")
    region(book, "Page").wait_for()
    keys.press("?")
    bench.get_by_role("dialog", name="Keys").wait_for()
    book.shot("workbench-keys")
    keys.press("Escape")
    bench.get_by_role("dialog", name="Keys").wait_for(state="hidden")
    for key in ("a", "b", "d", "d", "x", "m"):
        keys.press(key)
    assert book.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length") == 3


@pytest.mark.parametrize("width", [800, 2000])
def test_narrow_and_wide(notebook: Any, notes: Any, width: int) -> None:
    book = notebook(OPEN.format(path=str(notes)), PLAIN, size=(width, 1100))
    bench = ready(book)
    bench.get_by_role("combobox", name="Question").fill("crane rope")
    hits(bench).first.click()
    region(book, "Page").locator(".mf-name").wait_for()
    bench.scroll_into_view_if_needed()
    book.shot(f"workbench-{width}", bench)
    wide = bench.evaluate("(node) => node.scrollWidth - node.clientWidth")
    assert wide <= 0, "nothing is cut off at the side"
    columns = bench.locator(".mf-grid").evaluate(
        "(node) => getComputedStyle(node).gridTemplateColumns.split(' ').length"
    )
    assert columns == (3 if width == 2000 else 1)


def test_run_again_two_at_once_edited_outside_and_restarted(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes)), SHOW)
    ready(book)
    book.do("first = bench")
    assert book.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    ready(book)
    assert book.page.locator(BENCH).count() == 1
    book.until("first.comm is None")  # an earlier run of the same cell is closed

    # two workbenches, one state
    book.do("other = Workbench(field)")
    book.do("other.ask('paint')")
    book.until("state.hits is not None and state.hits.query", "paint")
    book.page.wait_for_function("document.querySelector('.mf-workbench [role=combobox]').value === 'paint'")

    # another program writes, then someone looks at the window again
    (notes / "page-03.md").write_text("---\ntitle: Changed outside\n---\nNew words.\n")
    book.do("state.open('page-03')")
    book.page.evaluate("window.dispatchEvent(new Event('focus'))")
    book.until("state.message", "changed by another program: page-03")
    book.page.wait_for_function(
        "document.querySelector('.mf-editor .mf-field-title input').value === 'Changed outside'"
    )

    # a restarted kernel is told
    book.page.evaluate(f"{KERNEL}.restart()")
    book.page.locator(BENCH).get_by_text("run the cell again").first.wait_for()
    book.page.wait_for_function(f"{KERNEL}.connectionStatus === 'connected' && {KERNEL}.status === 'idle'")
    # JupyterLab gives up its own request to the kernel that went, and reports that as an error
    book.problems[:] = [problem for problem in book.problems if "Canceled future for create_subshell" not in problem]


def test_a_saved_notebook_shows_a_picture_and_tables_without_a_kernel(notebook: Any, notes: Any) -> None:
    book = notebook(
        OPEN.format(path=str(notes)), "bench = Workbench(field); bench.ask('winch'); bench.state.jobs.wait()", "bench"
    )
    ready(book)
    html = [output["data"]["text/html"] for output in book.outputs() if "text/html" in output.get("data", {})]
    text = "".join(html[-1])
    assert "<svg" in text and "<table" in text and "<script" not in text


def test_the_tale(notebook: Any, harbor_copy: Any) -> None:
    """Open the example, search, lasso, edit and save, find a family, merge, undo, compare two models."""
    for index in harbor_copy.glob("*.sqlite3*"):
        index.unlink()
    book = notebook(OPEN.format(path=str(harbor_copy)), SHOW)
    bench = ready(book)
    bench.get_by_role("combobox", name="Question").fill("the backup disk was empty")
    answered(book, "the backup disk was empty")
    book.page.keyboard.press("ArrowDown")
    book.page.keyboard.press("Enter")
    book.until("state.active == state.hits[0].name")

    # a lasso around everything on the map
    canvas = bench.locator(".mf-slot-map canvas").last
    canvas.scroll_into_view_if_needed()
    lasso = bench.locator(".mf-slot-map").get_by_role("button", name="Lasso")
    if lasso.count():
        lasso.first.click()
    box = canvas.bounding_box()
    corners = [(0.03, 0.03), (0.97, 0.03), (0.97, 0.97), (0.03, 0.97), (0.03, 0.05)]
    points = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    book.page.mouse.move(*points[0])
    book.page.mouse.down()
    for point in points[1:]:
        book.page.mouse.move(*point, steps=8)
    book.page.mouse.up()
    book.until("len(state.selected) > 100")

    page = region(book, "Page")
    name = book.ask("state.active")
    page.get_by_label("Text, Markdown").fill("The disk was empty. We look at it every Friday now.\n")
    page.get_by_role("button", name="Save…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    book.until(f"field.read({name!r}).body", "The disk was empty. We look at it every Friday now.\n")
    book.do("field.undo(); state.wrote('undone')")

    before = book.ask("{page.name: page.sha256 for page in field.pages()}")
    bench.get_by_role("tab", name="Families", exact=True).click()
    families = region(book, "Families")
    book.until("len(bench.panel('families').found or ()) > 0", seconds=180)
    families.get_by_role("tab", name="Families (").click()
    families.locator(".mf-groups > li").first.get_by_role("button", name="Plan the merge").click()
    families.locator(".mf-desk-title", has_text=" pages into ").wait_for()
    book.theme(dark=False)
    book.shot("tale-families")
    families.get_by_role("button", name="Apply the merge").click()
    families.get_by_text(" merged into ").first.wait_for()
    book.until("len(field) < 180")
    book.until("bench.title == f'harbor: {len(field)} pages'")
    bench.get_by_role("tab", name="Page").click()
    region(book, "Page").get_by_role("button", name="Undo", exact=True).click()
    book.until("{page.name: page.sha256 for page in field.pages()}", before)

    bench.get_by_role("tab", name="Models").click()
    models = region(book, "Models")
    for choice in ("hashing-1024", "page", "content"):
        models.get_by_role("checkbox", name=choice, exact=True).check()
    models.get_by_role("button", name="Compare", exact=True).click()
    models.locator(".mf-changed > li").first.wait_for()
    book.shot("tale-models")
    assert not book.ask("state.trouble"), book.ask("state.trouble")
    shutil.rmtree(harbor_copy)


def test_hostile_pages_run_no_script(notebook: Any, notes: Any) -> None:
    attack = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>"
    (notes / "trap.md").write_text(f"---\ntitle: '{attack}'\nsummary: '{attack}'\n---\nzyzzyva {attack}\n")
    book = notebook(OPEN.format(path=str(notes)), PLAIN)
    bench = ready(book)
    bench.get_by_role("combobox", name="Question").fill("zyzzyva")
    hits(bench).first.click()
    region(book, "Page").locator(".mf-preview p").first.wait_for()
    for tab in ("Families", "Models", "Probes"):
        bench.get_by_role("tab", name=tab).click()
        region(book, tab).wait_for()
    assert bench.locator("img, script").count() == 0
    assert book.page.evaluate("window.hacked") is None


def test_nothing_hinders_people_who_use_it_otherwise(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes)), PLAIN)
    bench = ready(book)
    bench.get_by_role("combobox", name="Question").fill("oil for the winch")
    hits(bench).first.click()
    region(book, "Page").locator(".mf-preview p").first.wait_for()
    shown = {
        "Page": ".mf-preview p",
        "Families": "mark.mf-differs",
        "Models": ".mf-changed > li",
        "Probes": ".mf-pool > li",
    }
    found = []
    for tab, sign in shown.items():
        bench.get_by_role("tab", name=tab, exact=True).click()
        panel = region(book, tab)
        if tab == "Models":
            for choice in ("hashing-1024", "page", "content"):
                panel.get_by_role("checkbox", name=choice, exact=True).check()
            panel.get_by_role("button", name="Compare", exact=True).click()
        if tab == "Probes":
            panel.get_by_role("textbox").first.fill("how is the winch oiled")
            panel.get_by_role("textbox").first.press("Enter")
        panel.locator(sign).first.wait_for()
        for dark in (False, True):
            book.theme(dark)
            found += [f"{tab}, {'dark' if dark else 'light'}: {said}" for said in book.violations(BENCH)]
    assert found == []


def test_a_saved_notebook_is_opened_again_with_another_kernel(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes)), PLAIN)
    ready(book)
    book.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    # what shows a notebook without running it (GitHub, nbviewer, nbconvert) shows the picture and the tables
    static = book.path.with_suffix(".html")
    static.write_text(nbconvert.HTMLExporter(template_name="basic").from_filename(str(book.path))[0])
    shown = book.page.context.new_page()
    shown.goto(static.as_uri())
    assert shown.locator("svg[aria-label*='30 pages']").bounding_box()["height"] > 200
    shown.screenshot(path=str(SCREENS / "notebook-without-kernel.png"), full_page=True)
    shown.close()
    book.page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
    book.page.reload()
    book.page.wait_for_function(
        "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    # the widget is gone with its kernel: JupyterLab keeps its place and waits, a new run of the cells brings it back
    book.page.locator(".jp-OutputArea-output").last.wait_for()
    assert book.run_all()
    ready(book)
    assert book.page.locator(BENCH).count() == 1


def test_a_thousand_pages_are_painted(notebook: Any, tmp_path: Any) -> None:
    """How fast is a figure of ``benchmarks/bench_map.py``; here it is said, and all points are there."""
    place = tmp_path / "many"
    place.mkdir()
    words = ("winch", "brake", "lining", "dough", "starter", "harbour", "crane", "rope", "ferry", "paint", "oil")
    for number in range(1000):
        text = " ".join(words[(number * 7 + i * (1 + number % 5)) % len(words)] for i in range(60))
        (place / f"page-{number:04}.md").write_text(f"---\ntitle: Page {number}\n---\n{text} {number}.\n")
    book = notebook(OPEN.format(path=str(place)), "import time; began = time.time(); " + SHOW, run=False)
    book.page.evaluate(
        """() => {
          const look = () => {
            const map = document.querySelector('.mf-map');
            if (map?.dataset.painted >= 1 && map.dataset.count === '1000') window.painted = Date.now();
            else requestAnimationFrame(look);
          };
          look();
        }"""
    )
    assert book.run_all(), book.outputs()
    book.page.wait_for_function("window.painted > 0")
    seconds = book.page.evaluate("window.painted") / 1000 - book.ask("began")
    print(f"first paint of the workbench on 1,000 pages: {seconds:.2f} s")
    assert seconds > 0
