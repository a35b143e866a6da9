"""A merge and its undo on a disk that fails: at every system call, and on a real file system that is full."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoryfield.curate.history import History, keep_history
from memoryfield.curate.merge import plan_merge
from memoryfield.errors import MemoryfieldError, NotEditable
from memoryfield.format.directory import PageDirectory
from memoryfield.format.files import is_temporary

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "tide-limit": "---\ntitle: Tide limit\nuuid: 11111111-1111-4111-8111-111111111111\n---\n"
    "The slip needs 4.1 m of tide.\n\nOllis decides on the day.\n",
    "slip-tide": "---\ntitle: Slip and tide\n---\nThe slip needs 4.0 m of tide.\n\nNever on a falling tide.\n",
    "slip-again": "Write the time on the white board the day before.\n",
    "office": "The table is [there](slip-tide.md), and see [[slip-again]].\n",
    "index": "# Yard\n\n- [tides](slip-tide.md)\n",
}
NOW = datetime(2026, 9, 1, tzinfo=UTC)
CALLS = ("open", "write", "fsync", "replace", "link", "rename", "unlink", "fchmod", "scandir", "stat", "lstat", "read")


def _field(path: Path) -> tuple[PageDirectory, History]:
    path.mkdir()
    for name, text in PAGES.items():
        (path / f"{name}.md").write_text(text)
    directory = PageDirectory(path)
    return directory, keep_history(directory)


def _content(directory: PageDirectory) -> dict[str, bytes]:
    names = sorted(os.listdir(directory.path))
    assert not any(is_temporary(name) for name in names)
    return {name: (directory.path / name).read_bytes() for name in names}


def _merge(directory: PageDirectory) -> None:
    names = ["tide-limit", "slip-tide", "slip-again"]
    plan_merge([directory.read(name) for name in names], "tide-limit", directory=directory, now=NOW).apply()


class _Fault:
    """Counts the system calls that Python makes, and lets one of them fail."""

    def __init__(self, at: int, code: int) -> None:
        self.count, self.at, self.code = 0, at, code
        self.where = ""

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        originals = {name: getattr(os, name) for name in CALLS if hasattr(os, name)}

        def failing(name: str, original: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                self.count += 1
                if self.count == self.at:
                    self.where = name
                    raise OSError(self.code, os.strerror(self.code))
                return original(*given, **named)

            return call

        try:
            for name, original in originals.items():
                setattr(os, name, failing(name, original))
            yield
        finally:
            for name, original in originals.items():
                setattr(os, name, original)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["merge", "undo"])
def test_a_fault_at_every_system_call_leaves_all_or_nothing(tmp_path: Path, act: str) -> None:
    directory, history = _field(tmp_path / "field")
    unmerged = _content(directory)
    _merge(directory)
    merged = _content(directory)
    assert len(merged) == 3 and b"(tide-limit.md)" in merged["office.md"]
    if act != "undo":
        history.undo()
    before, after = (merged, unmerged) if act == "undo" else (unmerged, merged)
    failures: set[str] = set()
    late = 0
    for number in range(1, 400):
        fault = _Fault(number, (errno.ENOSPC, errno.EIO)[number % 2])
        error: Exception | None = None
        with fault.at_work():
            try:
                _merge(directory) if act == "merge" else getattr(history, act)()
            except (MemoryfieldError, OSError) as caught:
                error = caught
        history.recover()
        found = _content(directory)
        if error is None:
            assert found == after, fault.where
        else:
            assert isinstance(error, MemoryfieldError), f"{fault.where}: {error!r}"
            failures.add(fault.where)
            late += found == after  # all was done, and a look at it afterwards failed
            assert found in (before, after), fault.where
        if found == after:
            history.undo() if act != "undo" else history.redo()
            assert _content(directory) == before
        if not fault.where:
            break
    else:
        raise AssertionError("more system calls than expected")
    assert {"open", "write", "fsync", "replace"} <= failures, failures
    assert late <= 12


FULL = """
import os, sys
from pathlib import Path
from memoryfield.curate.history import keep_history
from memoryfield.curate.merge import plan_merge
from memoryfield.errors import MemoryfieldError, NotEditable
from memoryfield.format.directory import PageDirectory

disk, field, state = map(Path, sys.argv[1:])
os.environ["MEMORYFIELD_STATE_DIR"] = str(state)
directory = PageDirectory(field)
history = keep_history(directory)
content = lambda: {n: (field / n).read_bytes() for n in sorted(os.listdir(field))}
names = ["tide-limit", "slip-tide", "slip-again"]
merge = lambda: plan_merge([directory.read(n) for n in names], "tide-limit", directory=directory).apply()
start = content()
free = lambda: os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
outcomes = set()
for left in range(0, 161, 4):
    filler = disk / "filler"
    with open(filler, "wb") as file:
        file.write(bytes(max(free() - left * 1024, 0)))
    for act in (merge, history.undo):
        before = content()
        try:
            act()
        except MemoryfieldError as error:
            outcomes.add("refused")
            assert content() == before, (left, act, error)
            assert "disk" in str(error).lower() or "space" in str(error).lower(), error
            break
        outcomes.add("done")
        assert content() != before
    filler.unlink()
    history.recover()
    if content() != start:
        history.undo()
    assert content() == start, left
    assert {step.state for step in history.steps()} <= {"done", "undone"}
print(" ".join(sorted(outcomes)))
"""


@pytest.mark.parametrize("full", ["field", "journal", "both"])
def test_a_full_disk_leaves_all_or_nothing(tmp_path: Path, full: str) -> None:
    """A small file system in memory that a namespace of its own can mount; the rest of the machine does not see it."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this system mounts no file system for a test")
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "pages").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "pages" / f"{name}.md").write_text(text)
    field = (disk if full != "journal" else tmp_path) / "field"
    state = (disk if full != "field" else tmp_path) / "state"
    script = 'mount -t tmpfs -o size=512k none "$1" && cp -r "$2" "$3" && shift 3 && exec "$@"'
    python = [sys.executable, "-W", "error", "-c", FULL, str(disk), str(field), str(state)]
    command = [unshare, "-rm", "sh", "-c", script, "sh", str(disk), str(tmp_path / "pages"), str(field), *python]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if "mount:" in run.stderr:
        pytest.skip("this system mounts no file system for a test")
    assert run.stderr == ""
    assert run.stdout.split() == ["done", "refused"]


def test_a_page_that_cannot_be_read_stops_a_merge(tmp_path: Path) -> None:
    """A link in it would be left pointing to nothing."""
    directory, _ = _field(tmp_path / "field")
    before = _content(directory)
    with open(tmp_path / "field" / "huge.md", "wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(NotEditable, match=r"huge\.md.*links in it"):
        _merge(directory)
    (tmp_path / "field" / "huge.md").unlink()
    assert _content(directory) == before
    _merge(directory)
