"""Files whose time no calendar has, which some file systems hold: they are read, renamed, kept and put back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryfield.curate.history import History
from memoryfield.format.dates import clamped_ns, moment_of
from memoryfield.format.fixes import plan_fixes
from memoryfield.format.pages import PageDirectory

FAR = [10**12, -(10**12), 2**33]
LIMIT = 2**63 - 1


@pytest.fixture(params=[None, "/dev/shm"], ids=["tmp", "shm"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param is None:
        yield tmp_path
        return
    if not os.access(request.param, os.W_OK):
        pytest.skip(f"there is no {request.param} to write in")
    with tempfile.TemporaryDirectory(dir=request.param) as made:
        yield Path(made)


def set_time(path: Path, seconds: int) -> None:
    """Set a time, and skip where the file system keeps none that no calendar has."""
    try:
        os.utime(path, ns=(seconds * 10**9, seconds * 10**9))
    except (OSError, OverflowError) as error:
        pytest.skip(f"the file system of {path} refuses the time {seconds} s: {error}")
    got = os.stat(path).st_mtime_ns
    print(f"asked for {seconds} s, the file system holds {got} ns")


@pytest.mark.parametrize("seconds", FAR)
def test_pages_with_far_times_are_renamed_kept_and_put_back(place: Path, seconds: int) -> None:
    directory = PageDirectory(place / "field", create=True)
    history = History(directory)
    directory.journal = history
    directory.create("a", title="A", body="[b](b.md)\n")
    directory.create("b", title="B")
    for name in ("a.md", "b.md"):
        set_time(directory.path / name, seconds)
    held = os.stat(directory.path / "b.md").st_mtime_ns
    before = {name: directory.read(name).raw for name in directory.names()}

    snapshot = directory.snapshot()
    assert snapshot.entries["b.md"].mtime_ns == clamped_ns(held)
    assert directory.snapshot(snapshot, verify=False).entries == snapshot.entries
    assert directory.read("b").modified == moment_of(held / 1e9)

    directory.rename("b", "c")
    assert os.stat(directory.path / "c.md").st_mtime_ns == held
    directory.edit("c", append="more")
    set_time(directory.path / "c.md", seconds)
    directory.delete("c")
    assert directory.names() == ["a"]
    for _ in range(3):
        history.undo()
    assert {name: directory.read(name).raw for name in directory.names()} == before
    assert "rename" in repr(history.steps())


@pytest.mark.parametrize("seconds", FAR)
def test_a_repair_keeps_a_far_time(place: Path, seconds: int) -> None:
    directory = PageDirectory(place / "field", create=True)
    directory.journal = History(directory)
    (directory.path / "Meeting Notes.md").write_bytes(b"x\n")
    set_time(directory.path / "Meeting Notes.md", seconds)
    held = os.stat(directory.path / "Meeting Notes.md").st_mtime_ns
    plan_fixes(directory).apply()
    assert os.stat(directory.path / "meeting-notes.md").st_mtime_ns == held


def test_times_at_and_beyond_the_limits() -> None:
    assert moment_of(0) == datetime(1970, 1, 1, tzinfo=UTC)
    for seconds in (1e12, -1e12, 1e300, float("inf"), float("nan")):
        assert moment_of(seconds) is None
    for nanoseconds in (0, 1, -LIMIT, LIMIT):
        assert clamped_ns(nanoseconds) == nanoseconds
    assert (clamped_ns(10**21), clamped_ns(-(10**21))) == (LIMIT, -LIMIT)
