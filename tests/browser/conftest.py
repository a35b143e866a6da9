"""A real JupyterLab in a headless Chromium: one server for all tests, a fresh notebook, kernel and workspace for each.

A test opens a notebook with ``notebook(cell, cell, ...)``, acts with mouse and keyboard on ``book.page``, and asks the
kernel with ``book.ask("an expression")``. It waits for states (``book.until``), never for a time. At the end no script
may have failed and no request may have left the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENS = ROOT / "build" / "screens"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SERVER_STARTS = 90.0  # seconds
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            # a browser, a server and a kernel on a busy machine: what fails three times in a row is broken, and says so
            item.add_marker(pytest.mark.flaky(reruns=2))


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


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address, its token, and the directory whose notebooks it opens."""

    address: str
    token: str
    root: Path


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests."""
    with running_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@contextlib.contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """Run a JupyterLab on the loopback interface with a token and directories of its own, below *home*."""
    root = home / "notebooks"
    overrides = home / "config" / "labconfig" / "default_setting_overrides.json"
    for directory in (root, overrides.parent):
        directory.mkdir(parents=True)
    settings = {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        # every cell is in the document, also those out of sight
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    }
    overrides.write_text(json.dumps(settings), encoding="utf-8")
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "MEMORYFIELD_CACHE_DIR": "cache",
        "MEMORYFIELD_STATE_DIR": "state",
    }
    env = {**os.environ, "HF_HUB_OFFLINE": "1", **{name: str(home / place) for name, place in places.items()}}
    # a kernel speaks with its server only
    env.update({"PYTHONDONTWRITEBYTECODE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    log = home / "lab.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=env, cwd=root, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        running = Lab(f"http://127.0.0.1:{port}", token, root)
        try:
            _wait_for_server(running, process, log)
            yield running
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for_server(lab: Lab, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SERVER_STARTS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(errors="replace")
        try:
            with urllib.request.urlopen(f"{lab.address}/api", timeout=1):
                return
        except OSError:
            time.sleep(0.1)  # no browser runs yet
    raise AssertionError(f"JupyterLab did not start in {SERVER_STARTS:.0f} s:\n{log.read_text(errors='replace')}")


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


@pytest.fixture
def notebook(lab: Lab, browser: Any, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Return what opens a notebook of given cells and runs them all.

    Args of the function: the cells' code; ``size``, of the window; ``run=False`` to open it only; ``reduced=True`` for
    a reader who asked for less motion.
    """
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    opened: list[Book] = []

    def open_notebook(*cells: str, size: Sequence[int] = (1400, 1000), run: bool = True, reduced: bool = False) -> Book:
        book = open_book(lab, browser, f"{name}-{len(opened)}", cells, size=size, reduced=reduced)
        opened.append(book)
        if run:
            assert book.run_all(), [output for output in book.outputs() if output["output_type"] == "error"]
        return book

    yield open_notebook
    failed = []
    for book in opened:
        book.close()
        failed += [f"a script failed: {problem}" for problem in book.problems]
        failed += [f"a request left the machine: {url}" for url in book.outside]
    assert not failed, "\n".join(failed)


def open_book(
    lab: Lab,
    browser: Any,
    name: str,
    cells: Sequence[str],
    *,
    size: Sequence[int] = (1400, 1000),
    reduced: bool = False,
) -> Book:
    """Open a new notebook of some cells in a workspace of its own, and wait for its kernel; nothing is run yet."""
    import nbformat

    place = lab.root / name
    place.mkdir(exist_ok=True)
    path = place / "test.ipynb"
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce" if reduced else "no-preference"
    )
    page = context.new_page()
    page.set_default_timeout(STEP * 1000)
    book = Book(page, path)
    page.on("pageerror", lambda error: book.problems.append(str(error)))
    page.on("request", lambda asked: None if _is_own(lab, asked.url) else book.outside.append(asked.url))
    context.request.get(f"{lab.address}/lab?token={lab.token}")  # leaves the cookie
    page.goto(f"{lab.address}/lab/workspaces/{name}/tree/{name}/test.ipynb?reset")
    page.wait_for_function(
        f"{NOTEBOOK}?.context?.isReady && {NOTEBOOK}.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=SERVER_STARTS * 1000,
    )
    return book


def _is_own(lab: Lab, url: str) -> bool:
    return url.startswith((lab.address, lab.address.replace("http", "ws", 1), "data:", "blob:"))


@pytest.fixture
def harbor_copy(tmp_path: Path) -> Path:
    """A copy of the example field that a test may change."""
    return Path(shutil.copytree(ROOT / "data" / "harbor", tmp_path / "harbor"))
