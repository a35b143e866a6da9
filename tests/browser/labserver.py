"""A JupyterLab on the loopback interface with directories of its own, and kernels that are started ahead."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER_STARTS = 90.0  # seconds
PORTS_TRIED = 3  # one that was free may have been taken by another process of pytest


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address, its token, and the directory whose notebooks it opens."""

    address: str
    token: str
    root: Path


class Kernels:
    """Kernels in directories of their own, each started while the one before is in use."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._starter = ThreadPoolExecutor(1)
        self._count = 0
        self._next: Future[Path] | None = None
        self._sessions: dict[Path, str] = {}

    def take(self) -> Path:
        """Return the path of a notebook, not written yet, whose kernel is there or will be soon."""
        taken = self._next or self._starter.submit(self._start)
        path = taken.result(SERVER_STARTS)
        self._next = self._starter.submit(self._start)
        return path

    def _start(self) -> Path:
        self._count += 1
        place = self.lab.root / f"book-{self._count:03}"
        place.mkdir()
        wanted = {"path": f"{place.name}/test.ipynb", "name": "test.ipynb", "type": "notebook"}
        made = self._ask("POST", "sessions", {**wanted, "kernel": {"name": "python3"}})
        self._sessions[place / "test.ipynb"] = json.loads(made)["id"]
        return place / "test.ipynb"

    def end(self, path: Path) -> None:
        """End the kernel of a notebook; the next test does not wait for it."""
        self._starter.submit(self._end, self._sessions.pop(path))

    def _end(self, session: str) -> None:
        with contextlib.suppress(urllib.error.HTTPError):  # a test may have ended it
            self._ask("DELETE", f"sessions/{session}", None)

    def _ask(self, method: str, path: str, content: dict[str, Any] | None) -> bytes:
        asked = urllib.request.Request(
            f"{self.lab.address}/api/{path}",
            None if content is None else json.dumps(content).encode(),
            {"Authorization": f"token {self.lab.token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(asked, timeout=SERVER_STARTS) as reply:
            read: bytes = reply.read()
        return read

    def close(self) -> None:
        """Start no more; the server ends those that run."""
        self._starter.shutdown(cancel_futures=True)


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
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    # what every notebook of the tests imports first; a kernel is started before its test begins
    (startup / "imports.py").write_text("import memoryfield_widgets as _\ndel _\n", encoding="utf-8")
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
    token = secrets.token_hex(16)
    log = home / "lab.log"
    for _ in range(PORTS_TRIED):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        running = Lab(f"http://127.0.0.1:{port}", token, root)
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
        with (
            log.open("wb") as output,
            subprocess.Popen(command, env=env, cwd=root, stdout=output, stderr=subprocess.STDOUT) as process,
        ):
            try:
                if _is_up(running, process, log):
                    yield running
                    return
            finally:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
    raise AssertionError(f"JupyterLab ended {PORTS_TRIED} times as it started:\n{log.read_text(errors='replace')}")


def _is_up(lab: Lab, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait for the server; say whether it answers, or has ended."""
    end = time.monotonic() + SERVER_STARTS
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"{lab.address}/api", timeout=1):
                return process.poll() is None  # else it was another one that answered
        except OSError:
            time.sleep(0.1)  # no browser runs yet
    raise AssertionError(f"JupyterLab did not start in {SERVER_STARTS:.0f} s:\n{log.read_text(errors='replace')}")
