"""The map in JupyterLab: first paint, frames a second, selections, stored state, beside plotly and jupyter-scatter.

    .venv/bin/python benchmarks/bench_map.py [--quick]

The Workbench is measured too. Needs Chromium and playwright, as the browser tests do. jupyter-scatter, and with it a
million points, is measured where it can be imported (extra ``scatter``).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from material import CHECKOUT, workspace, write_pages
from measure import Results, arguments, duration

SECONDS = 3.0  # of panning, and of zooming
SELECTIONS = 20
FIRST_PAINT = 2.0  # seconds, promised at 10,000 pages
FRAMES = 30.0  # a second, promised at 10,000 pages
STATE = 200_000  # bytes, promised at 1,000 pages
WORKBENCH = 2.0  # seconds from the start of the cell to something useful, promised at 1,000 pages
MILLION = 1_000_000

SETUP = """
import sys, time, json
sys.path.insert(0, {benchmarks!r})
import numpy as np, ipywidgets
import memoryfield as mf
from material import FreeEmbedder, clustered
class Given(FreeEmbedder):
    def __init__(self, count):
        super().__init__(64, pool=1)
        self._pool = clustered(count, 64)
field = mf.open_field({field!r}, model=Given({count}))
heard = []
def stored(widget):
    state = ipywidgets.Widget.get_manager_state(widgets=[widget], drop_defaults=False)
    return len(json.dumps(state))
"""
PREPARE = "field.sync(progress=False)\nxy = field.layout(method='pca', describe=False).xy"
IMPORTS = {
    "ours": "from memoryfield_widgets import MemoryMap, State",
    "plotly": "import plotly.graph_objects as go",
    "jupyter-scatter": "import jscatter, pandas as pd",
}
CELLS = {
    "ours": """
began = time.time()
view = MemoryMap(field, method="pca")
view.state.follow(lambda changed: heard.append((time.time(), len(view.selected))), "selected")
view
""",
    "plotly": """
began = time.time()
view = go.FigureWidget([go.Scattergl(x=xy[:, 0], y=xy[:, 1], mode="markers", text=field.names())])
view._config = {**view._config, "scrollZoom": True}
view.update_layout(width=900, height=480, dragmode="pan")
view.data[0].on_selection(lambda trace, points, state: heard.append((time.time(), len(points.point_inds))))
view
""",
    "jupyter-scatter": """
began = time.time()
chart = jscatter.Scatter(data=pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1]}), x="x", y="y", height=480)
view = chart.widget
view.observe(lambda change: heard.append((time.time(), len(change.new))), "selection")
chart.show()
""",
}
# when the points are there, asked again with every frame
PAINTED = {
    "ours": "(n) => Number(document.querySelector('.mf-map')?.dataset.count) === n"
    " && Number(document.querySelector('.mf-map').dataset.painted) >= 1",
    "plotly": "(n) => { const plot = document.querySelector('.js-plotly-plot');"
    " return plot?._fullLayout?.xaxis?._length > 0 && plot.calcdata?.length > 0; }",
    "jupyter-scatter": "(n) => document.querySelector('.jp-OutputArea-output canvas')?.width > 300",
}
SURFACE = {
    "ours": ".mf-map-above",
    "plotly": ".js-plotly-plot .nsewdrag",
    "jupyter-scatter": ".jp-OutputArea-output canvas",
}
WORKBENCH_CELL = """
import time
began = time.time()
import memoryfield as mf
from memoryfield_widgets import Workbench
bench = Workbench(mf.open_field({field!r}, model={model!r}))
bench
"""
# a question can be typed, and the points are there
USEFUL = """(n) => Number(document.querySelector('.mf-workbench .mf-map')?.dataset.count) === n
 && Number(document.querySelector('.mf-workbench .mf-map').dataset.painted) >= 1
 && document.querySelector('.mf-workbench .mf-search input') !== null"""
SCATTER_CELL = """
import time
import numpy as np, memoryfield as mf
from memoryfield.study.layout import Layout
from memoryfield_widgets import ScatterMap
xy = np.random.default_rng(3).normal(size=({count}, 2)).astype(np.float32)
names = tuple(f"page-{{number:07}}" for number in range({count}))
field = mf.open_field({field!r})
began = time.time()
view = ScatterMap(field, Layout(names, xy, "pca", "given", "page", {{}}))
view
"""
# drags, or turns the wheel, to and fro, a step with every frame, and counts the frames; afterwards some frames whose
# picture is looked at: each has to differ from the one before
GESTURE = """async ([selector, seconds, gesture, picture]) => {
  const node = document.querySelector(selector);
  const box = node.getBoundingClientRect();
  const send = (type, x, y, target) => {
    const options = { bubbles: true, cancelable: true, clientX: x, clientY: y, button: 0, buttons: 1, pointerId: 1,
                      view: window };
    target.dispatchEvent(new PointerEvent(type.replace('mouse', 'pointer'), options));
    target.dispatchEvent(new MouseEvent(type, options));
  };
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const capture = Element.prototype.setPointerCapture;
  Element.prototype.setPointerCapture = () => null; // of a pointer that does not exist
  let i = 0;
  const step = () => {
    i += 1;
    if (gesture === 'zoom') {
      const deltaY = Math.sin(i / 9) > 0 ? -15 : 15; // to three times the size, and back
      node.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: x, clientY: y, deltaY,
                                                   view: window }));
      return;
    }
    const at = [x + 90 * Math.sin(i / 9), y + 60 * Math.cos(i / 9)];
    send('mousemove', at[0], at[1], node);
    if (selector.includes('plotly')) send('mousemove', at[0], at[1], document.querySelector('.dragcover') ?? document);
  };
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  if (gesture === 'pan') send('mousedown', x, y, node);
  const times = [];
  const start = performance.now();
  while (performance.now() - start < seconds * 1000) {
    await frame();
    times.push(performance.now());
    step();
  }
  let moved = null;
  if (picture) {
    const small = Object.assign(document.createElement('canvas'), { width: 120, height: 80 }).getContext('2d');
    let before = '';
    moved = 0;
    for (let turn = 0; turn <= 20; turn++) {
      step();
      await frame();
      await frame(); // the step's own is drawn by now
      small.clearRect(0, 0, 120, 80);
      small.drawImage(document.querySelector(picture), 0, 0, 120, 80);
      const now = small.getImageData(0, 0, 120, 80).data.join();
      moved += turn > 0 && now !== before;
      before = now;
    }
  }
  if (gesture === 'pan') send('mouseup', x, y, document.querySelector('.dragcover') ?? node);
  Element.prototype.setPointerCapture = capture;
  return [(times.length - 1) / ((times.at(-1) - times[0]) / 1000), moved];
}"""


def harness() -> Any:
    """Return the module of the browser tests that starts JupyterLab and the browser."""
    path = CHECKOUT / "tests" / "browser" / "conftest.py"
    spec = importlib.util.spec_from_file_location("browser_harness", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def chromium(tests: Any) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=tests.browser_program(), headless=True, args=tests.FLAGS)
        yield running
        running.close()


def select_on(book: Any, side: str) -> tuple[list[float], int]:
    """Draw boxes, and return the seconds until Python had each, and how many it had."""
    page = book.page
    if side == "ours":
        page.get_by_role("button", name="Box", exact=True).click()
    elif side == "plotly":
        book.do("view.update_layout(dragmode='select')")
        page.wait_for_function("() => document.querySelector('.js-plotly-plot')._fullLayout.dragmode === 'select'")
    else:
        return [], 0
    box = page.locator(SURFACE[side]).first.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seconds = []
    for turn in range(SELECTIONS):
        size = 60 + 4 * turn
        x = middle[0] + (70 if turn % 2 else -70)  # never the same pages twice
        before = book.ask("len(heard)")
        page.mouse.move(x - size, middle[1] - size)
        page.mouse.down()
        page.mouse.move(x, middle[1])
        page.mouse.move(x + size, middle[1] + size)
        released = time.time()
        page.mouse.up()
        try:
            book.until(f"len(heard) > {before}", seconds=5)
        except AssertionError:
            continue
        seconds.append(book.ask("heard[-1][0]") - released)
    return seconds, len(seconds)


def measure(book: Any, side: str, count: int) -> dict[str, Any]:
    """Show one side's map in an open notebook and return its figures."""
    page = book.page
    assert book.run_all(), book.outputs()
    # seen by the page's own clock with every frame; the machine's clock is the kernel's too
    painted = f"(n) => ({PAINTED[side]})(n) ? Date.now() : null"
    at = page.wait_for_function(painted, arg=count, polling="raf", timeout=120_000).json_value()
    first = at / 1000 - book.ask("began")
    if side == "ours":
        book.until("view.wait(0.01)", seconds=240)
    page.locator(SURFACE[side]).first.scroll_into_view_if_needed()
    picture = ".mf-map-points" if side == "ours" else None
    pan, panned = page.evaluate(GESTURE, [SURFACE[side], SECONDS, "pan", picture])
    zoom, zoomed = page.evaluate(GESTURE, [SURFACE[side], SECONDS, "zoom", picture])
    assert side != "ours" or (panned == zoomed == 20), f"of 20 steps each, {panned} and {zoomed} were seen"
    page.keyboard.press("0")
    seconds, number = select_on(book, side)
    state = book.ask("stored(view)")
    return {"first": first, "pan": pan, "zoom": zoom, "selection": seconds, "selected": number, "state": state}


def time_workbench(lab: Any, browser: Any, tests: Any, field: Path, count: int) -> float:
    """Return the seconds from the start of a cell in a new kernel to a Workbench that can be used."""
    cell = WORKBENCH_CELL.format(field=str(field), model="hashing-1024")
    book = tests.open_book(lab, browser, f"workbench-{count}", [cell], size=(1400, 1000))
    assert book.run_all(), book.outputs()
    at = book.page.wait_for_function(f"(n) => ({USEFUL})(n) ? Date.now() : null", arg=count, polling="raf").json_value()
    took = float(at / 1000 - book.ask("began"))
    book.close()
    return took


def time_million(lab: Any, browser: Any, tests: Any, field: Path) -> dict[str, float]:
    """Return what a million points take in jupyter-scatter."""
    cell = SCATTER_CELL.format(count=MILLION, field=str(field))
    book = tests.open_book(lab, browser, "million", [cell], size=(1400, 1000))
    book.page.set_default_timeout(240_000)
    assert book.run_all(), book.outputs()
    painted = f"(n) => ({PAINTED['jupyter-scatter']})(n) ? Date.now() : null"
    at = book.page.wait_for_function(painted, arg=MILLION, polling="raf").json_value()
    surface = SURFACE["jupyter-scatter"]
    pan, _ = book.page.evaluate(GESTURE, [surface, SECONDS, "pan", None])
    began = time.time()
    book.do("view.select(names[:1000])")
    selected = time.time() - began
    found = {"first": at / 1000 - book.ask("began"), "pan": pan, "selected": selected}
    book.close()
    return found


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results(
        "Map",
        "Clock times in JupyterLab and a headless Chromium that draws without a graphics card. First paint runs from "
        "the start of the cell to the points on the screen; ours reads its index and places the pages in it, the "
        f"others are given the coordinates. Frames: {SECONDS:.0f} s of dragging, and of the wheel, a step with every "
        "frame; that the picture of our points differs after each step is looked at, too. Selections: "
        f"{SELECTIONS} boxes.",
    )
    tests = harness()
    sides = ["ours", "plotly", *(["jupyter-scatter"] if _can_import("jscatter") else [])]
    sizes = (1000, 10_000) if options.quick else (1000, 10_000, 100_000)
    with workspace() as place, tests.running_lab(_made(place / "lab")) as lab, chromium(tests) as browser:
        for count in sizes:
            field = write_pages(place / f"field-{count}", count, size=600)
            found = {}
            for side in sides:
                setup = SETUP.format(benchmarks=str(CHECKOUT / "benchmarks"), field=str(field), count=count)
                name = f"{side}-{count}"
                book = tests.open_book(lab, browser, name, [CELLS[side]], size=(1400, 1000))
                book.page.set_default_timeout(240_000)
                for code in (setup, PREPARE, IMPORTS[side]):
                    book.do(code)
                found[side] = measure(book, side, count)
                shown = ", ".join(f"{what} {value}" for what, value in found[side].items() if what != "selection")
                print(f"{side}, {count:,} pages: {shown}", file=sys.stderr, flush=True)
                book.close()
            _report(results, count, found)
            if count == 1000:
                import memoryfield as mf

                mf.open_field(field, model="hashing-1024").sync(progress=False)
                took = time_workbench(lab, browser, tests, field, count)
                results.add(
                    f"Workbench of {count:,} pages in a new kernel, imports included, until map and search can be used",
                    "-",
                    "-",
                    duration(took),
                    None,
                    f"below {WORKBENCH:.0f} s",
                    took < WORKBENCH,
                )
        if "jupyter-scatter" in sides and not options.quick:
            million = time_million(lab, browser, tests, place / "field-1000")
            results.note(
                f"ScatterMap, {MILLION:,} points: first paint {duration(million['first'])}, {million['pan']:.1f} "
                f"frames a second while it is dragged, 1,000 names selected from Python in "
                f"{duration(million['selected'])}"
            )
    if "jupyter-scatter" not in sides:
        results.note("jupyter-scatter is not installed here and was not measured")
    results.print()


def _can_import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _report(results: Results, count: int, found: dict[str, dict[str, Any]]) -> None:
    ours = found["ours"]
    promised = count == 10_000
    for other in [side for side in found if side != "ours"]:
        that = found[other]
        results.add(
            f"first paint, {count:,} pages",
            other,
            duration(that["first"]),
            duration(ours["first"]),
            ours["first"] / that["first"],
            f"below {FIRST_PAINT:.0f} s" if promised else "",
            ours["first"] < FIRST_PAINT if promised else None,
        )
        for gesture, word in (("pan", "dragged"), ("zoom", "zoomed")):
            results.add(
                f"frames a second while {word}, {count:,} pages",
                other,
                f"{that[gesture]:.0f}",
                f"{ours[gesture]:.0f}",
                ours[gesture] / that[gesture],
                f"at least {FRAMES:.0f}" if promised else "",
                ours[gesture] >= FRAMES if promised else None,
            )
        if that["selection"]:
            results.add(
                f"box selection to Python, {count:,} pages, median",
                other,
                f"{duration(statistics.median(that['selection']))}, {that['selected']} of {SELECTIONS}",
                f"{duration(statistics.median(ours['selection']))}, {ours['selected']} of {SELECTIONS}",
                statistics.median(ours["selection"]) / statistics.median(that["selection"]),
                "all" if promised else "",
                ours["selected"] == SELECTIONS if promised else None,
            )
        small = count == 1000
        results.add(
            f"state in the saved notebook, {count:,} pages",
            other,
            f"{that['state'] / 1000:,.0f} kB",
            f"{ours['state'] / 1000:,.0f} kB",
            ours["state"] / that["state"],
            f"below {STATE // 1000} kB" if small else "",
            ours["state"] < STATE if small else None,
        )


if __name__ == "__main__":
    main()
