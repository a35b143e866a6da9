"""The map in JupyterLab: first paint, frames a second, selections, stored state, beside plotly and jupyter-scatter.

    .venv/bin/python benchmarks/bench_map.py [--quick]

Needs Chromium and playwright, as the browser tests do. jupyter-scatter is measured where it can be imported; give the
directory of one that was installed elsewhere in ``PYTHONPATH``.
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

SECONDS = 3.0  # of panning
SELECTIONS = 20
FIRST_PAINT = 2.0  # seconds, promised at 10,000 pages
FRAMES = 30.0  # a second, promised at 10,000 pages
STATE = 200_000  # bytes, promised at 1,000 pages

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
# drags to and fro for some seconds, a step with every frame, and counts the frames
DRAG = """async ([selector, seconds]) => {
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
  send('mousedown', x, y, node);
  const times = [];
  const start = performance.now();
  let i = 0;
  while (performance.now() - start < seconds * 1000) {
    await new Promise((done) => requestAnimationFrame(done));
    times.push(performance.now());
    i += 1;
    const at = [x + 90 * Math.sin(i / 9), y + 60 * Math.cos(i / 9)];
    send('mousemove', at[0], at[1], node);
    if (selector.includes('plotly')) send('mousemove', at[0], at[1], document.querySelector('.dragcover') ?? document);
  }
  send('mouseup', x, y, document.querySelector('.dragcover') ?? node);
  Element.prototype.setPointerCapture = capture;
  return (times.length - 1) / ((times.at(-1) - times[0]) / 1000);
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
    frames = page.evaluate(DRAG, [SURFACE[side], SECONDS])
    seconds, number = select_on(book, side)
    state = book.ask("stored(view)")
    return {"first": first, "frames": frames, "selection": seconds, "selected": number, "state": state}


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results(
        "Map",
        "Clock times in JupyterLab and a headless Chromium that draws without a graphics card. First paint runs from "
        "the start of the cell to the points on the screen; ours reads its index and places the pages in it, the "
        f"others are given the coordinates. Frames: {SECONDS:.0f} s of dragging. Selections: {SELECTIONS} boxes.",
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
        results.add(
            f"frames a second, {count:,} pages",
            other,
            f"{that['frames']:.0f}",
            f"{ours['frames']:.0f}",
            ours["frames"] / that["frames"],
            f"at least {FRAMES:.0f}" if promised else "",
            ours["frames"] >= FRAMES if promised else None,
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
