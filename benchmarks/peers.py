"""Other programs for the same format, each in an environment of its own below ``build/peers``, run from outside only.

``memoryfield-tool`` is the reference; ``memoryfield`` (import name ``mf``) is another project's. A third one,
KISS, is not published as a package and is left out. An environment is made when it is first needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from material import CHECKOUT

_WORKER = Path(__file__).with_name("peer_worker.py")
_PLACE = CHECKOUT / "build" / "peers"
_OLDEST = (3, 12)
_INSTALL_SECONDS = 600


class PeerMissing(Exception):
    """A peer cannot be had here; the message says why."""


@dataclass(frozen=True)
class Package:
    """What to install for a peer."""

    name: str
    requirements: tuple[str, ...]
    module: str  # what its own program imports


TOOL = Package("memoryfield-tool", ("memoryfield-tool==0.5.0",), "memoryfield_tool.cli")
# Many Pythons cannot load SQLite extensions, which this one needs; pysqlite3 can.
MF = Package("memoryfield", ("memoryfield==0.3.0", "pysqlite3-binary"), "mf.cli")


def peer_python(package: Package) -> Path:
    """Return the Python of a peer's environment, made now if it is not there.

    Raises:
        PeerMissing: No Python that is new enough, or the package cannot be installed.
    """
    environment = _PLACE / package.name
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = environment / "ready"
    if ready.exists() and python.exists():
        return python
    tried: list[str] = []
    for candidate in _interpreters():
        print(f"making {environment.relative_to(CHECKOUT)} with {candidate}", file=sys.stderr, flush=True)
        shutil.rmtree(environment, ignore_errors=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1"]
        problem = _run([candidate, "-m", "venv", environment]) or _run([*pip, *package.requirements])
        if problem is None:
            ready.touch()
            return python
        tried.append(problem)
    wanted = ".".join(map(str, _OLDEST))
    raise PeerMissing("; ".join(tried) or f"no Python {wanted} or later on PATH or below ~/.pyenv/versions")


def _interpreters() -> Iterator[Path]:
    """Yield Pythons that are new enough and run."""
    found = [Path(sys.executable)] if sys.version_info >= _OLDEST else []
    names = [shutil.which(f"python3.{minor}") for minor in range(_OLDEST[1], _OLDEST[1] + 8)]
    found += [Path(name) for name in names if name]
    versions = Path.home() / ".pyenv" / "versions"
    numbered = [(tuple(map(int, re.findall(r"\d+", folder.name))), folder) for folder in versions.glob("3.*")]
    found += [folder / "bin" / "python" for numbers, folder in sorted(numbered) if numbers >= _OLDEST]
    check = f"import sys, venv; sys.exit(sys.version_info < {_OLDEST})"
    for python in found:
        if _run([python, "-c", check]) is None:
            yield python


def _run(command: list[Path | str]) -> str | None:
    """Run a command; None when it went well, else the last line that it said."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_SECONDS,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it failed")


def _environment() -> dict[str, str]:
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours}


class Peer:
    """A process that does a peer's work when asked, and says how long that took; a context manager.

    Raises:
        PeerMissing: It cannot be had here.
    """

    def __init__(self, package: Package) -> None:
        self.name = f"{package.name} {package.requirements[0].split('==')[1]}"
        try:
            self._process = subprocess.Popen(
                [str(peer_python(package)), str(_WORKER), package.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**_environment(), "PYTHONUTF8": "1", "NO_PROXY": "*"},
            )
        except OSError as error:
            raise PeerMissing(str(error)) from error
        try:
            self.ask("hello")
        except PeerMissing:
            self.close()
            raise

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, job: str, **settings: Any) -> dict[str, Any]:
        """Have a job done and return the reply.

        Raises:
            PeerMissing: The peer failed; the message is its own.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"job": job, **settings}, default=str) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise PeerMissing(f"{self.name} ended: {error}") from error
        line = self._process.stdout.readline()
        if not line:
            raise PeerMissing(f"{self.name} ended without a word")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise PeerMissing(reply["error"])
        return reply

    def seconds(self, job: str, **settings: Any) -> float:
        """Have a job done and return the CPU seconds for one of it."""
        return float(self.ask(job, **settings)["cpu"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._process.stdout:
            self._process.stdin.close()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def start(package: Package) -> Peer | PeerMissing:
    """Return a running peer, or why there is none."""
    try:
        return Peer(package)
    except PeerMissing as missing:
        return missing
