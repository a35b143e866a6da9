"""Processes that are killed in the middle of a write, a rename, an import, an export: no page is lost or half.

A nursery process forks a worker for each round, so that a round costs milliseconds and the kill is a real SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoryfield.format.archive import export_archive, import_archive, read_sidecar, verify_archive
from memoryfield.format.files import is_temporary
from memoryfield.format.pages import Change, PageDirectory

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="needs fork and SIGKILL"),
]

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 60
LINES = 2000

NURSERY = """
import os, sys
from itertools import count
from pathlib import Path
import filelock
from memoryfield.format.archive import export_archive, import_archive
from memoryfield.format.pages import Change, PageDirectory

LINES = 2000
place = Path(sys.argv[2])

def text(name, number):
    return f"{name} {number}\\n".encode() * LINES

def write():
    field = PageDirectory(place / "field")
    for number in count(os.getpid() * 1000):
        for name in ("one", "two"):
            field.write(name, text(name, number))
        field.apply([Change("three", text("three", number)), Change("four", text("four", number))])

def rename():
    field = PageDirectory(place / "field")
    while True:
        here = [name for name in ("old", "new") if name in field.names()]
        if len(here) == 2:  # left by the kill of a worker before: both are whole, either may go
            field.delete(here[0])
            continue
        field.rename(here[0], "new" if here[0] == "old" else "old")

def create():
    field = PageDirectory(place / "field")
    while True:
        field.create(title="Fresh page", body=text("fresh", 1).decode())
        for name in field.names():
            if name.startswith("fresh-page-"):
                field.delete(name)

def unpack():
    for number in count():
        import_archive(place / "source.memoryfield.zip", place / "imports" / f"{os.getpid()}-{number}")

def pack():
    field = PageDirectory(place / "field")
    for number in count(os.getpid() * 1000):
        field.write("one", text("one", number))
        export_archive(field, place / "target.memoryfield.zip")

work = {"write": write, "rename": rename, "create": create, "unpack": unpack, "pack": pack}[sys.argv[1]]
while sys.stdin.readline():
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
        os._exit(1)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@contextlib.contextmanager
def nursery(work: str, place: Path) -> Iterator[Callable[[], None]]:
    """A function that lets one worker run for a random moment and kills it."""
    chance = random.Random(time.time_ns())
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", NURSERY, work, str(place)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def one_round() -> None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            worker = int(process.stdout.readline())
            time.sleep(chance.random() ** 2 * 0.06)
            os.kill(worker, signal.SIGKILL)
            code = int(process.stdout.readline())
            assert code == -signal.SIGKILL, "the worker ended by itself"

        try:
            yield one_round
        finally:
            _, errors = process.communicate(timeout=30)
        assert errors == ""


def rounds(least: int, enough: Callable[[], bool]) -> Iterator[int]:
    """Count rounds: so many, and more on a slow machine, until the kills have met something that was going on."""
    for number in range(10 * least):
        if number >= least and enough():
            return
        yield number


def is_whole(raw: bytes) -> bool:
    lines = raw.splitlines()
    return len(lines) == LINES and len(set(lines)) == 1


def age(path: Path) -> None:
    past = time.time() - 4000
    for directory, _, names in os.walk(path):
        for name in names:
            if name.startswith("."):
                os.utime(Path(directory) / name, (past, past))


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    return PageDirectory(tmp_path / "field", create=True)


def text(name: str, number: int) -> bytes:
    return f"{name} {number}\n".encode() * LINES


def test_kills_while_writing_P14(field: PageDirectory, tmp_path: Path) -> None:
    names = ["four", "one", "three", "two"]
    field.apply([Change(name, text(name, 0)) for name in names])
    changed: set[str] = set()
    with nursery("write", tmp_path) as one_round:
        for _ in rounds(ROUNDS, lambda: len(changed) > 20):
            one_round()
            assert field.names() == names
            assert list(field.snapshot().entries) == [f"{name}.md" for name in names]
            for page in field.pages():
                assert is_whole(page.raw), page.name
                assert page.raw.startswith(page.name.encode())
                changed.add(page.sha256)
    assert len(changed) > 20  # the kills came while something was going on
    age(field.path)
    field.write("one", text("one", -1))
    PageDirectory(field.path).write("one", text("one", -2))
    assert sorted(os.listdir(field.path)) == [f"{name}.md" for name in names]


def test_kills_while_renaming_P14(field: PageDirectory, tmp_path: Path) -> None:
    field.apply([Change("old", text("precious", 1))])
    linker = b"[a](old.md) and text\n"
    field.apply([Change("linker", linker)])
    seen: set[tuple[str, ...]] = set()
    with nursery("rename", tmp_path) as one_round:
        for _ in rounds(ROUNDS, lambda: len(seen) > 1):
            one_round()
            names = field.names()
            assert set(names) in ({"linker", "old"}, {"linker", "new"}, {"linker", "old", "new"})
            seen.add(tuple(names))
            for name in names:
                if name != "linker":
                    assert field.read(name).raw == text("precious", 1)
            assert field.read("linker").raw in (linker, linker.replace(b"old", b"new"))
    assert len(seen) > 1


def test_kills_while_creating_and_deleting_P14(field: PageDirectory, tmp_path: Path) -> None:
    field.apply([Change("kept", text("kept", 1))])
    with nursery("create", tmp_path) as one_round:
        for _ in range(ROUNDS):
            one_round()
            assert field.read("kept").raw == text("kept", 1)
            for page in field.pages():
                if page.name != "kept":
                    assert page.body == text("fresh", 1).decode()
                    assert page.uuid is not None
    leftovers = [name for name in os.listdir(field.path) if not name.endswith(".md")]
    assert all(is_temporary(name) for name in leftovers)


def test_kills_while_importing_A2(field: PageDirectory, tmp_path: Path) -> None:
    field.apply([Change(f"page-{n}", text(f"page-{n}", n)) for n in range(12)])
    expected = field.snapshot().entries
    export_archive(field, tmp_path / "source.memoryfield.zip")
    complete: set[str] = set()
    with nursery("unpack", tmp_path) as one_round:
        for _ in rounds(ROUNDS // 2, lambda: bool(complete)):
            one_round()
            for path in (tmp_path / "imports").glob("[!.]*"):
                if path.name in complete:
                    continue
                found = PageDirectory(path).snapshot()
                assert {k: v.sha256 for k, v in found.entries.items()} == {k: v.sha256 for k, v in expected.items()}
                assert found.skipped == ()
                complete.add(path.name)
    assert complete
    leftovers = list((tmp_path / "imports").glob(".*"))
    assert all(re.fullmatch(r"\.memoryfield-import-[0-9a-f]{16}", path.name) for path in leftovers)
    past = time.time() - 4000
    for path in leftovers:
        os.utime(path, (past, past))
    import_archive(tmp_path / "source.memoryfield.zip", tmp_path / "imports" / "last")
    assert list((tmp_path / "imports").glob(".*")) == []


def test_kills_while_exporting_A1(field: PageDirectory, tmp_path: Path) -> None:
    field.apply([Change(f"page-{n}", text(f"page-{n}", n)) for n in range(5)])
    field.apply([Change("one", text("one", 0))])
    target = tmp_path / "target.memoryfield.zip"
    export_archive(field, target)
    archives: set[str] = set()
    with nursery("pack", tmp_path) as one_round:
        for _ in rounds(ROUNDS // 2, lambda: len(archives) > 3):
            one_round()
            report = verify_archive(target)  # its digest is that of the side file, where there is one
            assert len(report.members) == 6
            assert read_sidecar(target) in (None, report.sha256)
            archives.add(report.sha256)
    assert len(archives) > 3
