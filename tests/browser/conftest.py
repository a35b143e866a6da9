"""A real JupyterLab in a headless Chromium: one server and window, a fresh notebook and kernel for each test.

A test opens a notebook with ``notebook(cell, cell, ...)``, acts with mouse and keyboard on ``book.page``, and asks the
kernel with ``book.ask("an expression")``. It waits for states (``book.until``), never for a time. At the end no script
may have failed and no request may have left the machine.

JupyterLab takes longer to start in a window than most tests take, and a kernel nearly as long. So the window of a test
that passed is cleared and used again, and while a test runs the kernel of the next one is started. ``fresh=True`` asks
for a window of its own. Several processes of pytest may run side by side: each has its own server and directories.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # a conftest finds its neighbours no other way
from labserver import SERVER_STARTS, Kernels, Lab, running_lab

ROOT = Path(__file__).resolve().parents[2]
SCREENS = ROOT / "build" / "screens"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
STEP = 60.0  # seconds that one thing a test waits for may take

FLAGS = [
    "--no-sandbox",  # tests also run as root, in containers
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-unsafe-swiftshader",  # WebGL2 without a graphics card
]
IS_THEMED = """(dark) => {
  const [red] = getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor.match(/[0-9.]+/g);
  return document.body.dataset.jpThemeLight === String(!dark) && red < 128 === dark;
}"""
NOTEBOOK = "window.jupyterapp?.shell?.currentWidget"
OPEN = """async (path) => {
  const { commands, shell } = window.jupyterapp;
  const opened = await commands.execute('docmanager:open', { path, factory: 'Notebook' });
  for (const other of [...shell.widgets('main')]) if (other !== opened) other.dispose();
  if (shell.leftCollapsed) shell.expandLeft();
  shell.activateById(opened.id);
}"""
READY = f"""(path) => {NOTEBOOK}?.context?.path === path && {NOTEBOOK}.context.isReady
  && {NOTEBOOK}.sessionContext?.session?.kernel?.status === 'idle'"""
FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            # a browser, a server and a kernel on a busy machine: what fails three times in a row is broken, and says so
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


def browser_program() -> str | None:
    """Return the Chromium of this machine, or None; Playwright's own is found by Playwright."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="browser tests need the package playwright")
    with api.sync_playwright() as playwright:
        program = browser_program()
        if program is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium here: install one, or run  python -m playwright install chromium")
        running = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests."""
    with running_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="session")
def kernels(lab: Lab) -> Iterator[Kernels]:
    """The kernels of all tests."""
    started = Kernels(lab)
    yield started
    started.close()


@dataclass
class Book:
    """A notebook that is open in JupyterLab.

    Attributes:
        page: Playwright's page.
        path: The notebook file; files beside it are the test's own.
        problems: Scripts that failed, as the browser reported them.
        outside: Requests to other machines.
    """

    page: Any
    path: Path
    problems: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    listeners: dict[str, Callable[[Any], None]] = field(default_factory=dict)

    def ask(self, expression: str) -> Any:
        """Return the value of a Python expression in the kernel; it has to be one that JSON can hold."""
        reply = self.page.evaluate(
            f"""async (code) => {{
              const kernel = {NOTEBOOK}.sessionContext.session.kernel;
              const future = kernel.requestExecute({{code: '', silent: true, store_history: false,
                                                     user_expressions: {{value: code}}}});
              return (await future.done).content.user_expressions?.value;
            }}""",
            f"__import__('json').dumps({expression}, default=list)",
        )
        assert reply is not None and reply["status"] == "ok", f"{expression}: {reply}"
        return json.loads(_literal(reply["data"]["text/plain"]))

    def do(self, code: str) -> None:
        """Run statements in the kernel as a cell would, without one."""
        reply = self.page.evaluate(
            f"""async (code) => {{
              const kernel = {NOTEBOOK}.sessionContext.session.kernel;
              return (await kernel.requestExecute({{code, store_history: false}}).done).content;
            }}""",
            code,
        )
        assert reply["status"] == "ok", f"{code}: {reply.get('ename')}: {reply.get('evalue')}"

    def until(self, expression: str, wanted: Any = True, seconds: float = STEP) -> Any:
        """Wait until a Python expression in the kernel has a value (or, by default, is true); return it."""
        end = time.monotonic() + seconds
        while True:
            value = self.ask(expression)
            if value == wanted or (wanted is True and value):
                return value
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds:.0f} s {expression} is {value!r}, not {wanted!r}")
            self.page.wait_for_timeout(50)  # Playwright's own: it lets the page's events through

    def leave(self) -> Any:
        """Close the notebook and return the window; its kernel goes on."""
        self.page.evaluate("() => { for (const one of [...window.jupyterapp.shell.widgets('main')]) one.dispose(); }")
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        return self.page

    def close(self) -> None:
        """End the kernel and close the window."""
        self.page.evaluate(f"async () => {{ await {NOTEBOOK}?.sessionContext?.shutdown(); }}")
        self.page.context.close()

    def run_all(self) -> bool:
        """Run all cells and return whether none raised."""
        return bool(self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')"))

    def outputs(self) -> list[dict[str, Any]]:
        """Return the outputs of all cells, as they would be saved."""
        found: list[dict[str, Any]] = self.page.evaluate(
            f"() => {NOTEBOOK}.content.model.toJSON().cells.flatMap((cell) => cell.outputs ?? [])"
        )
        return found

    def theme(self, dark: bool) -> None:
        """Switch JupyterLab's theme and wait until it is there."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
        self.page.wait_for_function(IS_THEMED, arg=dark)  # the attribute comes before the style sheet

    def violations(self, selector: str) -> list[str]:
        """Return in words what axe-core finds in a part of the page: what is serious or critical."""
        axe = pytest.importorskip("axe_playwright_python", reason="the check by axe-core needs axe-playwright-python")
        self.page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
        found = self.page.evaluate("async (selector) => (await axe.run(selector)).violations", selector)
        return [
            f"{one['impact']}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def shot(self, name: str, locator: Any = None) -> Path:
        """Save a picture of the page, or of one element, to ``build/screens``."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        path = SCREENS / f"{name}.png"
        (locator if locator is not None else self.page).screenshot(path=str(path))
        return path


def _literal(shown: str) -> str:
    """Return the text whose repr a kernel shows."""
    import ast

    value = ast.literal_eval(shown)
    assert isinstance(value, str)
    return value


Opener = Callable[..., Book]


class Windows:
    """The window that the next test gets: that of the one before, if nothing went wrong in it."""

    def __init__(self, lab: Lab, browser: Any) -> None:
        self.lab = lab
        self.browser = browser
        self._kept: Any = None

    def take(self, fresh: bool = False) -> Any:
        """Return a window with JupyterLab and no notebook in it."""
        if fresh or self._kept is None:
            return open_window(self.lab, self.browser)
        window, self._kept = self._kept, None
        return window

    def give_back(self, book: Book) -> None:
        """Keep a book's window for the next test; where one is kept already, or a question stands open, close it."""
        if self._kept is None and not book.page.locator(".jp-Dialog").count():
            self._kept = book.leave()
        else:
            book.page.context.close()


@pytest.fixture(scope="session")
def windows(lab: Lab, browser: Any) -> Windows:
    """The windows of all tests; they end with the browser."""
    return Windows(lab, browser)


@pytest.fixture
def notebook(
    lab: Lab, browser: Any, kernels: Kernels, windows: Windows, request: pytest.FixtureRequest
) -> Iterator[Opener]:
    """Return what opens a notebook of given cells and runs them all.

    Args of the function: the cells' code; ``size``, of the window; ``run=False`` to open it only; ``reduced=True`` for
    a reader who asked for less motion; ``fresh=True`` for a window of its own.
    """
    opened: list[Book] = []
    own: list[Book] = []

    def open_notebook(
        *cells: str, size: Sequence[int] = (1400, 1000), run: bool = True, reduced: bool = False, fresh: bool = False
    ) -> Book:
        window = windows.take(fresh)
        book = _open_in(windows.lab, window, kernels.take(), cells, size=size, reduced=reduced)
        opened.append(book)
        if fresh:
            own.append(book)
        if run:
            assert book.run_all(), [output for output in book.outputs() if output["output_type"] == "error"]
        return book

    yield open_notebook
    failed = []
    for book in opened:
        failed += [f"a script failed: {problem}" for problem in book.problems]
        failed += [f"a request left the machine: {url}" for url in book.outside]
        if failed or book in own or request.node.stash.get(FAILED, False):
            book.page.context.close()
        else:
            windows.give_back(book)
        kernels.end(book.path)
    assert not failed, "\n".join(failed)


def open_window(lab: Lab, browser: Any) -> Any:
    """Start JupyterLab in a window of its own and return Playwright's page; no notebook is open in it."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(STEP * 1000)
    context.request.get(f"{lab.address}/lab?token={lab.token}")  # leaves the cookie
    page.goto(f"{lab.address}/lab/workspaces/{secrets.token_hex(4)}?reset")
    page.wait_for_function("window.jupyterapp?.commands.hasCommand('docmanager:open')", timeout=SERVER_STARTS * 1000)
    page.evaluate("() => window.jupyterapp.restored.then(() => null)")
    return page


def open_book(
    lab: Lab,
    browser: Any,
    name: str,
    cells: Sequence[str],
    *,
    size: Sequence[int] = (1400, 1000),
    reduced: bool = False,
) -> Book:
    """Open a new notebook of some cells in a window of its own, and wait for its kernel; nothing is run yet."""
    path = lab.root / name / "test.ipynb"
    path.parent.mkdir(exist_ok=True)
    return _open_in(lab, open_window(lab, browser), path, cells, size=size, reduced=reduced)


def _open_in(lab: Lab, page: Any, path: Path, cells: Sequence[str], *, size: Sequence[int], reduced: bool) -> Book:
    import nbformat

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
    book = Book(page, path)
    book.listeners = {
        "pageerror": lambda error: book.problems.append(str(error)),
        "request": lambda asked: None if _is_own(lab, asked.url) else book.outside.append(asked.url),
    }
    for event, listener in book.listeners.items():
        page.on(event, listener)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(reduced_motion="reduce" if reduced else "no-preference")
    page.mouse.move(0, 0)
    inside = path.relative_to(lab.root).as_posix()
    page.evaluate(OPEN, inside)
    page.wait_for_function(READY, arg=inside, timeout=SERVER_STARTS * 1000)
    return book


def _is_own(lab: Lab, url: str) -> bool:
    return url.startswith((lab.address, lab.address.replace("http", "ws", 1), "data:", "blob:"))


@pytest.fixture
def harbor_copy(tmp_path: Path) -> Path:
    """A copy of the example field that a test may change."""
    return Path(shutil.copytree(ROOT / "data" / "harbor", tmp_path / "harbor"))
