"""Find or install memoryfield-tool, and run it: a program of its own, used only from outside.

It needs Python 3.12 or later. Its environment is made once, in ``build/interop-venv`` of the checkout, and used again
while it works.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import filelock

VERSION = "0.5.0"
REQUIREMENT = f"memoryfield-tool=={VERSION}"
OLDEST = (3, 12)
CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT = CHECKOUT / "build" / "interop-venv"
WORKER = Path(__file__).with_name("tool_worker.py")
PIP_INSTALL = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1", "--timeout", "15")

INSTALL_SECONDS = 240
COMMAND_SECONDS = 60


class ToolMissing(Exception):
    """The tool cannot be had on this machine; the message says why and what to install."""


# --- the environment ----------------------------------------------------------------------------------------------


def candidate_interpreters() -> Iterator[Path]:
    """Yield the Pythons that may be new enough, the one that the user names first."""
    chosen = os.environ.get("MEMORYFIELD_TOOL_PYTHON")
    if chosen:
        yield Path(chosen).expanduser()
        return
    if sys.version_info >= OLDEST:
        yield Path(sys.executable)
    for minor in range(OLDEST[1], OLDEST[1] + 8):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield Path(found)
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    new_enough = [
        (tuple(int(part) for part in re.findall(r"\d+", folder.name)), folder)
        for folder in versions.glob("[0-9]*")
        if tuple(int(part) for part in re.findall(r"\d+", folder.name)[:2]) >= OLDEST
    ]
    for _, folder in sorted(new_enough):
        yield from (path for path in (folder / "bin" / "python", folder / "python.exe") if path.exists())


def environment_python(environment: Path) -> Path:
    """Return where the Python of a virtual environment lies."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environment(environment: Path) -> None:
    """Install the tool into a new environment with the first interpreter that can.

    Raises:
        ToolMissing: None can; says what each attempt ended with.
    """
    tried: list[str] = []
    for python in candidate_interpreters():
        version = _python_version(python)
        if version is None or version < OLDEST:
            found = "does not run" if version is None else f"is Python {version[0]}.{version[1]}"
            tried.append(f"{python} {found}")
            continue
        shutil.rmtree(environment, ignore_errors=True)
        environment.parent.mkdir(parents=True, exist_ok=True)
        commands = [
            [str(python), "-m", "venv", str(environment)],
            [str(environment_python(environment)), *PIP_INSTALL, REQUIREMENT],
        ]
        for command in commands:
            problem = _run_quietly(command)
            if problem is not None:
                tried.append(f"{python}: {problem}")
                break
        else:
            return
    shutil.rmtree(environment, ignore_errors=True)
    attempts = "; ".join(tried) if tried else "no such interpreter on PATH or below ~/.pyenv/versions"
    raise ToolMissing(
        f"the tests against {REQUIREMENT} need Python 3.12 or later and a package index: {attempts}. Install one "
        f"(or name it in MEMORYFIELD_TOOL_PYTHON), or make {environment.relative_to(CHECKOUT)} with that package in it."
    )


def _python_version(python: Path) -> tuple[int, int] | None:
    # asked of the interpreter itself: a shim of that name may stand for nothing
    try:
        done = subprocess.run(
            [str(python), "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            timeout=30,
            env=_clean_environment(),
        )
        major, minor = done.stdout.split()
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return int(major), int(minor)


def _run_quietly(command: list[str]) -> str | None:
    """Run a command; None when it went well, else what it said last."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=INSTALL_SECONDS, env=_clean_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")] or lines[-1:]
    return errors[-1] if errors else f"exit code {done.returncode}"


def _clean_environment() -> dict[str, str]:
    """Return the environment without what belongs to the Python that runs the tests."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONWARNINGS", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in ours}


# --- the program --------------------------------------------------------------------------------------------------


class Worker:
    """The process that runs the tool's commands (see ``tool_worker.py``). Closed as a context."""

    def __init__(self, python: Path, home: Path, embeddings_url: str) -> None:
        self._home = home
        self._count = 0
        self._lock = threading.Lock()
        home.mkdir(parents=True, exist_ok=True)
        self._log = (home / "worker.log").open("wb")
        kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "MEMORYFIELD_TOOL_CONFIG": str(home / "tool.toml"),
            "OLLAMA_HOST": embeddings_url,
            "NO_PROXY": "*",
            "PYTHONUTF8": "1",
        }
        try:
            self._process = subprocess.Popen(
                [str(python), str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                cwd=home,
            )
        except OSError as error:
            self._log.close()
            raise ToolMissing(f"{python} does not start: {error}") from error
        try:
            hello = json.loads(_pipe(self._process.stdout).readline() or b"{}")
        except ValueError:
            hello = {}
        if hello.get("version") != VERSION:
            self.close()
            said = (home / "worker.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise ToolMissing(f"{python} has no working {REQUIREMENT}: {hello or said[-1:]}")

    def run(self, args: list[str], env: dict[str, str], stdin: bytes, background: str) -> tuple[int, bytes, bytes]:
        """Run one command; returns exit code, output and error output."""
        with self._lock:
            self._count += 1
            files = {name: self._home / f"{self._count:04}.{name}" for name in ("stdin", "stdout", "stderr")}
            files["stdin"].write_bytes(stdin)
            request = {"args": args, "env": env, "background": background, **{k: str(v) for k, v in files.items()}}
            timer = threading.Timer(COMMAND_SECONDS, self._process.kill)
            timer.start()
            try:
                pipe = _pipe(self._process.stdin)
                pipe.write(json.dumps(request).encode("utf-8") + b"\n")
                pipe.flush()
                reply = _pipe(self._process.stdout).readline()
            finally:
                timer.cancel()
                timer.join()
            if not reply:
                raise RuntimeError(f"memoryfield-tool {' '.join(args)} did not end within {COMMAND_SECONDS} s")
            return json.loads(reply)["code"], files["stdout"].read_bytes(), files["stderr"].read_bytes()

    def close(self) -> None:
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()
        self._log.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("the process was started without this pipe")
    return pipe


def start_worker(home: Path, embeddings_url: str) -> Worker:
    """Start the tool, installing it first where that has not been done.

    Raises:
        ToolMissing: It cannot be had here.
    """
    python = environment_python(ENVIRONMENT)
    try:
        ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(ENVIRONMENT.with_suffix(".lock"), timeout=INSTALL_SECONDS):
            if python.exists():
                try:
                    return Worker(python, home, embeddings_url)
                except ToolMissing:
                    pass  # made by another version, or half made: once more, from the start
            make_environment(ENVIRONMENT)
            return Worker(python, home, embeddings_url)
    except (OSError, filelock.Timeout) as error:
        raise ToolMissing(
            f"no environment for {REQUIREMENT} in {ENVIRONMENT.relative_to(CHECKOUT)}: {error}"
        ) from error


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, output, error output."""

    code: int
    out: str
    err: str


class Tool:
    """memoryfield-tool with a configuration of its own; the methods are its verbs."""

    def __init__(self, worker: Worker, config: Path) -> None:
        self._worker = worker
        self._config = config

    def __call__(self, *args: str, stdin: bytes = b"", background: str = "skip", fails: bool = False) -> Outcome:
        """Run a command as typed; a failure that was not expected raises with all that the tool said."""
        env = {"MEMORYFIELD_TOOL_CONFIG": str(self._config)}
        code, out, err = self._worker.run([str(arg) for arg in args], env, stdin, background)
        outcome = Outcome(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
        if (code != 0) != fails:
            raise AssertionError(
                f"memoryfield-tool {' '.join(map(str, args))}: exit code {code}\n{outcome.out}{outcome.err}"
            )
        return outcome

    def connect(self, directory: Path, name: str = "field") -> str:
        self("connect", name, str(directory))
        return name

    def index(self, name: str = "field") -> str:
        """Return the line that ``index`` ends with."""
        return self("index", "--field", name).out.strip()

    def catalog(self, name: str = "field") -> dict[str, dict[str, Any]]:
        """Return what ``catalog`` knows of each page, by file name."""
        return {row["filename"]: row for row in json.loads(self("catalog", "--field", name, "--json").out)}

    def search(self, question: str, name: str = "field") -> list[dict[str, Any]]:
        return json.loads(self("search", "--field", name, "--json", question).out)

    def validate(self, name: str = "field") -> list[str]:
        """Return what ``validate`` finds; its last line, the count, is left out."""
        done = self("validate", "--field", name)
        return done.out.splitlines()[:-1] + done.err.splitlines()

    def read(self, filename: str, name: str = "field") -> str:
        return self("read", "--field", name, "--no-limit", "--no-line-numbers", filename).out
