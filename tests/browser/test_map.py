"""The map in JupyterLab: by mouse, by keyboard, from Python."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from memoryfield_widgets.panel import script

MODEL = "hashing-1024"

OPEN = """
import memoryfield as mf
from memoryfield_widgets import MemoryMap, State
field = mf.open_field({path!r}, model={model!r})
state = State.of(field)
map = MemoryMap(field, method={method!r})
map
"""


def opened(notebook: Any, path: Path, *cells: str, method: str = "umap", **options: Any) -> Any:
    """Open a notebook with a map of a field and wait until it is drawn in full; ``pca`` where the places do not matter.

    UMAP is compiled anew in each kernel, which takes longer than the rest of such a test.
    """
    book = notebook(
        OPEN.format(path=str(path), model=MODEL, method="auto" if method == "umap" else method), *cells, **options
    )
    book.page.locator(".mf-map[data-painted]").first.wait_for()
    book.until(f"map.wait(0.01) and map.positions.method == {method!r} and len(map.labels) > 0")
    settled(book)
    return book


def settled(book: Any) -> None:
    """Wait until the view shows what Python has, and nothing moves any more."""
    version = book.ask("map._version")
    book.page.wait_for_function(
        "(version) => { const map = document.querySelector('.mf-map').memorymap;"
        " return map.points.version === version && map.moved >= 1 && map.names.length > 0 && !map.frame; }",
        arg=version,
    )


def place(book: Any, name: str) -> tuple[float, float]:
    """Return where a page is on the screen."""
    book.page.locator(".mf-map-stage").scroll_into_view_if_needed()
    x, y = book.page.evaluate("(name) => document.querySelector('.mf-map').memorymap.screenOf(name)", name)
    return x, y


def drag_around(book: Any, points: list[tuple[float, float]]) -> None:
    mouse = book.page.mouse
    mouse.move(*points[0])
    mouse.down()
    for point in points[1:]:
        mouse.move(*point)
    mouse.up()


def ring(center: tuple[float, float], radius: float, steps: int = 14) -> list[tuple[float, float]]:
    turns = [2 * math.pi * i / steps for i in range(steps)]
    return [(center[0] + radius * math.cos(t), center[1] + radius * math.sin(t)) for t in turns]


def tool(book: Any, name: str) -> None:
    book.page.get_by_role("group", name="Tool").get_by_role("button", name=name).click()


def test_look_hover_click_and_colour(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy)
    page = book.page
    map_ = page.locator(".mf-map")
    assert map_.get_attribute("data-count") == "179"  # all but index
    book.shot("map-light", map_)

    # the card shows what the page says, and nothing of it is markup
    x, y = place(book, "travel-lift-cold-start")
    page.mouse.move(x - 30, y)
    page.mouse.move(x, y)
    card = page.locator(".mf-card")
    page.locator(".mf-card:visible").get_by_text("bytes").wait_for()
    pointed = page.locator(".mf-map-stage").get_attribute("data-pointed")
    assert card.locator("strong").inner_text() == book.ask(f"field.read({pointed!r}).title")
    book.shot("map-hover", map_)

    page.mouse.click(x, y)
    book.until("state.active", pointed)
    page.locator(f".mf-option.mf-open[data-name='{pointed}']").wait_for()

    # a question recolours the map and numbers its hits
    book.do("state.ask('the boat hoist will not pick up on a frosty morning', delay=0)")
    page.locator(".mf-map[data-color='similarity'][data-hits='10']").wait_for()
    page.locator(".mf-legend").get_by_text("similarity to").wait_for()
    assert page.locator(".mf-option").first.locator(".mf-rank").inner_text() == "1"
    page.mouse.move(5, 5)
    book.shot("map-search-light", map_)
    book.theme(dark=True)
    settled(book)
    book.shot("map-search-dark", map_)

    # families and near pairs on demand
    page.get_by_role("group", name="Show").get_by_role("button", name="Families").click()
    page.get_by_role("group", name="Show").get_by_role("button", name="Near pairs").click()
    page.wait_for_function(
        "() => { const m = document.querySelector('.mf-map').memorymap;"
        " return m.hulls.length > 3 && m.edges.rows.length > 10; }"
    )
    book.do("state.ask('', delay=0); map.color_by = 'family'")
    page.locator(".mf-map[data-color='family']").wait_for()
    settled(book)
    book.shot("map-families-dark", map_)
    book.theme(dark=False)
    settled(book)
    book.shot("map-families-light", map_)
    assert book.ask("state.error") == ""
    assert len(book.ask("[entry.text for entry in map.legend]")) > 3


def test_narrow_and_wide(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy, size=(800, 1000), method="pca")
    map_ = book.page.locator(".mf-map")
    assert book.page.evaluate(
        "document.querySelector('.mf-map').scrollWidth <= document.querySelector('.mf-map').clientWidth"
    )
    book.shot("map-800", map_)
    book.page.set_viewport_size({"width": 2000, "height": 1100})
    settled(book)
    book.shot("map-2000", map_)


def test_a_hundred_selections_each_way(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy, method="pca")
    page = book.page
    book.do("log = []; state.follow(lambda changed: log.append(len(state.selected)), 'selected')")

    # lassos and boxes from the browser, one after the other without a pause: each arrives, with the right pages
    box = page.locator(".mf-map-above").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    shown: list[int] = []
    for turn in range(50):
        tool(book, "Lasso" if turn % 2 else "Box")
        radius = 60 + 2 * turn
        if turn % 2:
            drag_around(book, ring(middle, radius))
        else:
            left, top = middle[0] - radius, middle[1] - radius
            drag_around(book, [(left, top), (middle[0], middle[1]), (left + 2 * radius, top + 2 * radius)])
        shown.append(int(page.locator(".mf-map").get_attribute("data-selected")))
    view = page.evaluate("document.querySelector('.mf-map').memorymap.id")
    page.locator(f".mf-map[data-answered='{view}:50']").wait_for()
    changes = [number for turn, number in enumerate(shown) if turn == 0 or number != shown[turn - 1]]
    heard = book.ask("log")
    assert len(shown) == 50 and min(shown) > 0
    assert [n for i, n in enumerate(heard) if i == 0 or n != heard[i - 1]] == changes
    assert book.ask("len(map.selected)") == shown[-1]

    # and by Python, 50 ms apart: each is drawn
    page.evaluate(
        """() => {
          const map = document.querySelector('.mf-map').memorymap;
          window.drawn = [];
          const show = map.showSelection.bind(map);
          map.showSelection = (rows) => {
            show(rows);
            window.drawn.push([...rows].map((row) => map.names[row]).join());
          };
        }"""
    )
    book.do(
        "import time\n"
        "names = list(map.positions.names[20:120])\n"
        "for name in names:\n"
        "    map.select(name)\n"
        "    time.sleep(0.05)"
    )
    page.wait_for_function("() => window.drawn.length >= 100")
    assert page.evaluate("window.drawn") == book.ask("names")
    assert book.ask("map.selected") == [book.ask("names")[-1]]

    # 50 clicks with Shift in the list's and the map's way, at 50 ms in the page's own clock
    page.evaluate(
        """async () => {
          const map = document.querySelector('.mf-map').memorymap;
          map.select([], 'replace');
          for (let row = 0; row < 100; row++) {
            map.select([row], 'add');
            await new Promise((done) => setTimeout(done, 50));
          }
        }"""
    )
    book.until("len(map.selected)", 100)
    assert book.ask("map.selected") == book.ask("list(map.positions.names[:100])")
    assert book.ask("state.error") == ""


def test_shift_adds_alt_removes_and_the_keyboard_does_all(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy, reduced=True)
    page = book.page
    tool(book, "Box")
    box = page.locator(".mf-map-above").bounding_box()
    left, top, wide, high = box["x"] + 2, box["y"] + 40, box["width"] - 4, box["height"] - 44

    def drag(a: float, b: float, key: str | None = None) -> int:
        if key:
            page.keyboard.down(key)
        drag_around(book, [(left + a * wide, top), (left + 0.5 * wide, top + 9), (left + b * wide, top + high)])
        if key:
            page.keyboard.up(key)
        return int(page.locator(".mf-map").get_attribute("data-selected"))

    first = drag(0.3, 0.5)
    both = drag(0.5, 0.7, "Shift")
    assert 0 < first < both
    assert drag(0.3, 0.5, "Alt") == both - first
    book.until("len(map.selected)", both - first)
    book.shot("map-selected", page.locator(".mf-map"))

    # by keyboard only: from the map to the list, to a page, its selection, and back
    stage = page.locator(".mf-map-stage")
    stage.focus()
    before = page.evaluate("document.querySelector('.mf-map').memorymap.view")
    for key in ("ArrowLeft", "+", "+"):
        page.keyboard.press(key)
    after = page.evaluate("document.querySelector('.mf-map').memorymap.view")
    assert after["scale"] > 2 * before["scale"] and after["x"] < before["x"]
    page.keyboard.press("0")
    assert page.evaluate("document.querySelector('.mf-map').memorymap.view") == before
    page.keyboard.press("Escape")
    book.until("len(map.selected)", 0)
    page.get_by_label("Filter the list of pages").focus()
    page.keyboard.type("hoist")
    page.keyboard.press("Tab")
    listed = page.locator(".mf-option")
    names = [option.get_attribute("data-name") for option in listed.all()]
    assert 1 < len(names) < 20
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    book.until("state.active", names[1])
    page.keyboard.press(" ")
    book.until("list(map.selected)", [names[1]])
    assert listed.nth(1).get_attribute("aria-selected") == "true"
    assert listed.nth(1).get_attribute("aria-setsize") == str(len(names))
    assert page.locator(".mf-list").get_attribute("aria-activedescendant") == listed.nth(1).get_attribute("id")
    page.keyboard.press("Control+a")
    book.until("sorted(map.selected)", sorted(names))
    # nothing of all this reached the notebook
    assert page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length") == 1
    assert book.ask("state.error") == ""


def test_an_edit_moves_one_point_and_hostile_pages_run_nothing(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy, "map")  # the same map in two places
    page = book.page
    first, second = page.locator(".mf-map").nth(0), page.locator(".mf-map").nth(1)
    second.scroll_into_view_if_needed()
    page.locator(".mf-map[data-count='179']").nth(1).wait_for()
    before = book.ask("[list(row) for row in map._xy.astype(float)]")
    names = book.ask("map.positions.names")

    # pages from a stranger: their titles are text, on the map, in the list, in the card and in the legend
    evil = '<img src=x onerror=\\"window.hacked=1\\">'
    book.do(
        f"for number in range(3):\n"
        f"    field.write(f'zz-evil-{{number}}', title=\"{evil} {{}} $x$\".format(number),\n"
        f'                summary="<script>window.hacked=2</script>", kind="{evil}", on_similar=\'ignore\')\n'
        "field.edit('travel-lift-cold-start', body='A new text about invoices and the ledger.')\n"
        "state.wrote('pages changed')"
    )
    page.locator(".mf-map[data-count='182']").nth(1).wait_for()
    book.until("map.wait(0.01)")
    settled(book)
    after = book.ask("dict(zip(map.positions.names, [list(row) for row in map._xy.astype(float)]))")
    moved = [name for name, place in zip(names, before, strict=True) if after[name] != place]
    assert moved == ["travel-lift-cold-start"]
    first.get_by_label("Filter the list of pages").fill("evil")
    option = first.locator(".mf-option").first
    assert option.locator("img").count() == 0
    assert "<img src=x" in option.inner_text()
    option.hover()
    book.do("map.color_by = 'kind'")
    page.locator(".mf-map[data-color='kind']").nth(1).wait_for()
    first.scroll_into_view_if_needed()
    x, y = page.evaluate("document.querySelector('.mf-map').memorymap.screenOf('zz-evil-1')")
    page.mouse.move(x + 2, y)
    page.mouse.move(x, y)
    first.locator(".mf-card").get_by_text("<script>window.hacked=2</script>").wait_for()
    book.shot("map-hostile", first)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".mf-map img, .mf-map script").count() == 0

    # both views show one selection, whichever made it
    page.keyboard.press("Escape")
    book.do("map.select('zz-evil-2')")
    for view in (first, second):
        view.locator(".mf-option[data-name='zz-evil-2'][aria-selected='true']").or_(
            view.get_by_text("1 page selected", exact=True).first
        ).first.wait_for()

    # the saved notebook holds a picture, once there is a map, and no script of a page
    saved = "".join(
        "".join(output["data"].get("text/html", "")) for output in book.outputs() if output["output_type"] != "stream"
    )
    html = book.ask("(lambda made: made[0] if isinstance(made, tuple) else made)(map._repr_mimebundle_())['text/html']")
    assert "<svg" in html
    for bad in ("<img", "<script"):  # titles stand there, as text
        assert bad not in html and bad not in saved
    assert book.ask("state.error") == ""


def test_nothing_hinders_people_who_use_it_otherwise(notebook: Any, harbor_copy: Path) -> None:
    book = opened(notebook, harbor_copy, "from memoryfield_widgets import StatusBar\nStatusBar(field)", method="pca")
    book.page.locator(".mf-indexes summary").click()
    book.page.locator(".mf-indexes table").wait_for()
    book.do("map.select(map.positions.names[:5]); state.open(map.positions.names[2]); state.fail('something to see')")
    book.do("state.ask('frost on the boat hoist', delay=0)")
    book.page.locator(".mf-map[data-color='similarity'][data-hits='10']").wait_for()
    book.do("state.fail('something to see')")
    for dark in (False, True):
        book.theme(dark)
        settled(book)
        assert book.violations(".mf-map") == []
        assert book.violations(".mf-status") == []
    book.shot("status-indexes-dark", book.page.locator(".mf-status"))


PAINTED_TWICE = """(dark) => {
  let seed = 7;
  const random = () => ((seed = (seed * 16807) % 2147483647) / 2147483647);
  const count = 600;
  const goal = Float32Array.from({ length: 2 * count }, () => random() * 2 - 1);
  const sent = {
    start: goal.map((value) => value / 2), goal,
    color: Uint8Array.from({ length: 3 * count }, () => random() * 255),
    shape: Uint8Array.from({ length: count }, (_, i) => i % 8),
    size: Float32Array.from({ length: count }, (_, i) => 0.7 + (i % 4) / 4),
    lit: Uint8Array.from({ length: count }, (_, i) => Number(i % 3 === 0)),
  };
  const ground = dark ? [17, 17, 17] : [255, 255, 255];
  const pictures = [GlPainter, PlainPainter].map((Painter) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 600, height: 400 });
    const painter = Painter === GlPainter ? new GlPainter(canvas, canvas.getContext("webgl2")) : new Painter(canvas);
    for (const [name, data] of Object.entries(sent)) painter.set(name, data);
    const scene = { view: { x: 0.1, y: 0.05, scale: 280 }, width: 600, height: 400, ratio: 1, moved: 0.8, radius: 5.3 };
    while (!painter.draw({ ...scene, ground, anyLit: dark }));
    const flat = Object.assign(document.createElement("canvas"), { width: 600, height: 400 }).getContext("2d");
    flat.fillStyle = `rgb(${ground.join()})`;
    flat.fillRect(0, 0, 600, 400);
    flat.drawImage(canvas, 0, 0);
    return flat.getImageData(0, 0, 600, 400).data;
  });
  const far = pictures[0].filter((value, i) => Math.abs(value - pictures[1][i]) > 48).length;
  return [far / pictures[0].length, pictures[1].filter((value, i) => Math.abs(value - ground[i % 4]) > 48).length];
}"""


def test_both_painters_make_the_same_picture(browser: Any) -> None:
    page = browser.new_page()
    source = script("geometry.js", "colors.js", "pixels.js", "paint.js").replace("export ", "")
    page.evaluate(f"() => {{ {source}\nObject.assign(window, {{ GlPainter, PlainPainter }}); }}")
    for dark in (False, True):
        different, drawn = page.evaluate(PAINTED_TWICE, dark)
        assert different < 0.001 and drawn > 1000
    page.close()
