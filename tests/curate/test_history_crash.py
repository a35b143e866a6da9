"""Processes that end in the middle of a step, disks that are full, fields that cannot be written: all or nothing.

Once at every call that touches the field or the journal, by ending the process there; and at random moments, by a kill.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryfield.curate.history import History, keep_history
from memoryfield.curate.journal import JournalFile
from memoryfield.errors import FieldError, HistoryError, PageChanged, PageExists, ReadOnlyField
from memoryfield.format.files import Folder, is_temporary
from memoryfield.format.pages import Change, PageDirectory

ROOT = Path(__file__).resolve().parents[2]
needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="needs fork and SIGKILL"
)

# What a merge does: one page written, two deleted, links in two others rewritten, one page added.
START = {
    "one": b"# One\n" * 50,
    "two": b"# Two\n" * 50,
    "three": b"# Three\n" * 50,
    "link": b"[a](two.md) [b](three.md)\n",
    "other": b"[[two]]\n",
}
MERGE = [
    Change("one", b"# One, two and three\n" * 90),
    Change("two", None),
    Change("three", None),
    Change("link", b"[a](one.md) [b](one.md)\n"),
    Change("other", b"[[one]]\n"),
    Change("note", b"merged\n"),
]
END = {"one": MERGE[0].after, "link": MERGE[3].after, "other": MERGE[4].after, "note": b"merged\n"}


def fill(path: Path) -> PageDirectory:
    field = PageDirectory(path, create=True)
    for name, raw in START.items():
        (path / f"{name}.md").write_bytes(raw)
    return field


def content(field: PageDirectory) -> dict[str, bytes]:
    return {page.name: page.raw for page in field.pages()}


def no_leftovers(field: PageDirectory) -> bool:
    return not any(is_temporary(name) for name in os.listdir(field.path))


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    return fill(tmp_path / "field")


# At every call

CRASHER = """
import os, sys
from pathlib import Path
import filelock
from memoryfield.curate.history import keep_history
from memoryfield.curate.journal import JournalFile
from memoryfield.errors import PageChanged
from memoryfield.format.files import Folder
from memoryfield.format.pages import Change, PageDirectory
sys.path.insert(0, str(Path("tests/curate")))
from test_history_crash import MERGE, patched

place, act = Path(sys.argv[1]), sys.argv[2]

def work(field):
    history = keep_history(field)
    if act == "apply":
        field.apply(MERGE, verb="merge")
    elif act == "undo":
        history.undo()
    elif act == "redo":
        history.redo()
    elif act == "recover":
        history.recover()

for line in sys.stdin:
    number = int(line)
    child = os.fork()
    if child == 0:
        left = [number]
        def call(name):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
        try:
            with patched(call):
                work(PageDirectory(place))
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@contextlib.contextmanager
def patched(call: Callable[[str], None]) -> Iterator[None]:
    """Have *call* called before each deed that changes the field or the journal, and after those on the journal."""
    whole: list[tuple[type, str, Any]] = []

    def wrap(owner: type, name: str, after: bool) -> None:
        original = getattr(owner, name)

        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            call(name)
            result = original(*arguments, **keywords)
            if after:
                call(name)
            return result

        whole.append((owner, name, original))
        setattr(owner, name, wrapper)

    for name in ("stage", "put_new", "replace", "remove", "sync"):
        wrap(Folder, name, False)
    for name in ("begin", "settle", "drop"):
        wrap(JournalFile, name, True)
    try:
        yield
    finally:
        for owner, name, original in whole:
            setattr(owner, name, original)


@contextlib.contextmanager
def crasher(place: Path, act: str) -> Iterator[Callable[[int], int]]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CRASHER, str(place), act]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:

        def until(number: int) -> int:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            return int(process.stdout.readline() or "-1")

        try:
            yield until
        finally:
            _, errors = process.communicate(timeout=30)
        assert errors == ""


class World:
    """A field with its state directory, kept and brought back for each round."""

    def __init__(self, place: Path, field: PageDirectory) -> None:
        self.parts = [field.path, Path(os.environ["MEMORYFIELD_STATE_DIR"])]
        self.place = place

    def keep(self, name: str) -> None:
        for part in self.parts:
            shutil.copytree(part, self.place / name / part.name, dirs_exist_ok=True)

    def bring_back(self, name: str) -> None:
        for part in self.parts:
            shutil.rmtree(part)
            shutil.copytree(self.place / name / part.name, part)


@needs_fork
@pytest.mark.parametrize("act", ["apply", "undo", "redo"])
def test_an_end_at_every_call_leaves_all_or_nothing(field: PageDirectory, tmp_path: Path, act: str) -> None:
    before, after = START, END
    history = keep_history(field)
    field.write("early", b"an earlier step")
    before, after = {**START, "early": b"an earlier step"}, {**END, "early": b"an earlier step"}
    if act != "apply":
        field.apply(MERGE, verb="merge")
        before, after = after, before
    if act == "redo":
        history.undo()
        before, after = after, before
    world = World(tmp_path / "kept", field)
    world.keep("start")
    outcomes = set()
    with crasher(field.path, act) as until:
        for number in range(100):
            world.bring_back("start")
            code = until(number)
            again = keep_history(PageDirectory(field.path))  # mends
            found = content(field)
            assert found in (before, after), number
            outcomes.add(found == after)
            steps = again.steps()
            assert not {"pending", "half done"} & {step.state for step in steps}
            # Whatever happened: everything that stands can be undone, to the last byte.
            with contextlib.suppress(HistoryError):
                while True:
                    again.undo()
            assert content(field) == START
            if code == 0:
                assert found == after
                break
            assert code == 9
        else:
            raise AssertionError("never ended by itself")
    assert number > 15
    assert outcomes == {True, False}


@needs_fork
def test_an_end_in_the_middle_of_mending(field: PageDirectory, tmp_path: Path) -> None:
    keep_history(field)
    field.write("early", b"an earlier step")
    world = World(tmp_path / "kept", field)
    world.keep("start")
    before, after = {**START, "early": b"an earlier step"}, {**END, "early": b"an earlier step"}
    halves, notes = 0, set()
    with crasher(field.path, "apply") as until, crasher(field.path, "recover") as recovering:
        for number in range(8, 40, 2):
            world.bring_back("start")
            if until(number) == 0:
                break
            if content(field) in (before, after):
                continue
            halves += 1
            world.keep("half")
            for second in range(100):
                world.bring_back("half")
                if recovering(second) == 0:
                    break
                mended = keep_history(PageDirectory(field.path))
                assert content(field) == after
                notes.add(mended.steps()[0].note)
                assert all(name.endswith(".md") or is_temporary(name) for name in os.listdir(field.path))
    assert halves > 2
    assert notes == {"", "finished after a crash"}


@needs_fork
@pytest.mark.parametrize("theirs", ["one", "three", "note"])
def test_another_program_after_a_crash_loses_nothing(field: PageDirectory, tmp_path: Path, theirs: str) -> None:
    keep_history(field)
    field.write("early", b"an earlier step")
    (field.path / "early.md").unlink()
    world = World(tmp_path / "kept", field)
    world.keep("start")
    kinds = set()
    with crasher(field.path, "apply") as until:
        for number in range(100):
            world.bring_back("start")
            if until(number) == 0:
                break
            half = content(field)
            (field.path / f"{theirs}.md").write_bytes(b"theirs")
            history = History(PageDirectory(field.path))
            mended = history.recover()
            found = content(field)
            assert found.pop(theirs) == b"theirs"
            rest = [{k: v for k, v in state.items() if k != theirs} for state in (START, END)]
            assert found in rest, number
            kinds.add((half in (START, END), found == rest[0]))
            for step in mended:
                assert step.state == ("rolled back" if found == rest[0] else "done")
                assert f"changed by another program: {theirs}.md" in step.note
            field.write("after", b"writes go on")
    assert len(kinds) > 1


# At random moments

NURSERY = """
import os, sys
from pathlib import Path
import filelock
from memoryfield.curate.history import keep_history
from memoryfield.errors import HistoryError
from memoryfield.format.pages import Change, PageDirectory

place = Path(sys.argv[1])

def work():
    field = PageDirectory(place)
    history = keep_history(field)
    while True:
        if "two" in field.names():
            pages = [page for page in field.pages() if page.name in ("one", "two", "three")]
            text = b"".join(page.raw for page in pages)
            field.apply([Change("one", text), Change("two", None), Change("three", None)], verb="merge")
            field.rename("one", "first")
            field.rename("first", "one")
        else:
            while "two" not in field.names():
                history.undo()

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


@needs_fork
@pytest.mark.kills
def test_kills_while_merging_renaming_and_undoing(field: PageDirectory) -> None:
    chance = random.Random(time.time_ns())
    whole = START["one"] + START["three"] + START["two"]
    links = {name: START[name] for name in ("link", "other")}
    merged = {"one": whole, **links}
    renamed = {"first": whole, **links}
    states = set()
    mended = 0
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", NURSERY, str(field.path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            for _ in range(60):
                process.stdin.write("go\n")
                process.stdin.flush()
                worker = int(process.stdout.readline())
                time.sleep(chance.random() * 0.3)
                os.kill(worker, signal.SIGKILL)
                assert int(process.stdout.readline()) == -signal.SIGKILL, "the worker ended by itself"
                mended += len(History(field).recover())
                found = content(field)
                assert found in (START, merged, renamed)
                states.add(tuple(found))
                field.apply([])
        finally:
            _, errors = process.communicate(timeout=30)
        assert errors == ""
    assert len(states) > 1
    assert mended > 3
    history = keep_history(field)
    with contextlib.suppress(HistoryError):
        while True:
            history.undo()
    assert content(field) == START


# Errors instead of ends


class Fault:
    """Raises an error at one call."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.left, self.error, self.where = at, error, ""

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == -1:
            self.where = name
            raise self.error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_at_every_call_leaves_all_or_nothing(
    field: PageDirectory, tmp_path: Path, error: BaseException
) -> None:
    history = keep_history(field)
    field.write("early", b"an earlier step")
    before, after = {**START, "early": b"an earlier step"}, {**END, "early": b"an earlier step"}
    world = World(tmp_path / "kept", field)
    world.keep("start")
    places = []
    for number in range(100):
        world.bring_back("start")
        fault = Fault(number, error)
        try:
            with patched(fault):
                field.apply(MERGE, verb="merge")
        except (FieldError, KeyboardInterrupt):
            failed = True
        else:
            failed = False
        places.append(fault.where)
        found = content(field)
        history.recover()
        assert found == content(field) or fault.where in ("settle", "begin")
        whole = [before, after] if isinstance(error, KeyboardInterrupt) or fault.where == "settle" else [before]
        assert content(field) in (whole if failed else [after]), fault.where
        assert no_leftovers(field)
        with contextlib.suppress(HistoryError):
            while True:
                history.undo()
        assert content(field) == START
        if not fault.where:
            break
    assert {"stage", "put_new", "replace", "remove", "begin"} <= set(places)


def test_what_cannot_be_taken_back_at_once_is_taken_back_later(field: PageDirectory) -> None:
    history = keep_history(field)

    def call(name: str) -> None:
        if name == "remove" or (broken and name == "stage"):
            broken.append(name)
            raise OSError(28, "No space left on device")

    broken: list[str] = []
    with pytest.raises(FieldError, match="No space") as caught, patched(call):
        field.apply(MERGE, verb="merge")
    assert content(field) not in (START, END)
    cause: BaseException | None = caught.value
    notes: list[str] = []
    while cause is not None:
        notes += getattr(cause, "__notes__", [])
        cause = cause.__cause__
    assert "half done and cannot be taken back now" in "".join(notes)
    (step,) = history.recover()
    assert step.state == "done"
    assert content(field) == END
    history.undo()
    assert content(field) == START


@pytest.mark.skipif(os.name == "nt", reason="needs resource limits")
@pytest.mark.parametrize("limit", [8_000, 40_000, 120_000])
def test_a_disk_that_takes_no_more(field: PageDirectory, tmp_path: Path, limit: int) -> None:
    """A limit on file sizes: the system refuses to write on, at the page or in the journal."""
    program = """
import os, resource, signal, sys
from memoryfield.curate.history import keep_history
from memoryfield.errors import MemoryfieldError
from memoryfield.format.pages import Change, PageDirectory
field = PageDirectory(sys.argv[1])
history = keep_history(field)
field.write("early", b"early")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for number in range(40):
    before = {page.name: page.raw for page in field.pages()}
    try:
        field.apply([Change("one", os.urandom(3000 * (number + 1))), Change("two", b"%d" % number)])
    except MemoryfieldError as error:
        print(type(error).__name__)
        assert before == {page.name: page.raw for page in field.pages()}
        break
else:
    raise AssertionError("no limit was met")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert not [name for name in os.listdir(field.path) if name.startswith(".")]
assert {step.state for step in history.steps()} == {"done"}
for step in list(history.steps()):
    history.undo(step)
"""
    command = [sys.executable, "-W", "error", "-c", program, str(field.path), str(limit)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.stderr == ""
    assert run.stdout.strip() in ("FieldError", "HistoryError")
    assert content(field) == START


def test_other_programs_in_the_middle_of_a_step(field: PageDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """They change a page that was to be deleted, when the others are written: everything is taken back but theirs."""
    history = keep_history(field)
    plain = Folder.replace

    def replace(folder: Folder, temporary: str, filename: str) -> None:
        plain(folder, temporary, filename)
        (field.path / "two.md").write_bytes(b"theirs")

    monkeypatch.setattr(Folder, "replace", replace)
    with pytest.raises(PageChanged, match=r"two\.md was changed meanwhile; nothing was written"):
        field.apply(MERGE, verb="merge")
    monkeypatch.undo()
    assert content(field) == {**START, "two": b"theirs"}
    assert len(history.steps()) == 0


def test_a_name_taken_in_the_middle_of_a_step(field: PageDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_history(field)
    monkeypatch.setattr(Folder, "put_new", lambda *_: (_ for _ in ()).throw(FileExistsError(17, "File exists")))
    with pytest.raises(PageExists):
        field.apply(MERGE, verb="merge")
    monkeypatch.undo()
    assert content(field) == START


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_a_field_that_cannot_be_written(field: PageDirectory) -> None:
    """Whoever may not write can still read the history; nothing is half done."""
    history = keep_history(field)
    field.apply(MERGE, verb="merge")
    field.path.chmod(0o555)
    try:
        if os.geteuid() == 0:  # root writes everywhere: be somebody else, with a state directory of their own
            program = """
import os, sys
import filelock, pwd, sqlite3
from memoryfield.curate.history import keep_history
from memoryfield.errors import ReadOnlyField
from memoryfield.format.pages import PageDirectory
os.setgid(65534), os.setuid(65534)
history = keep_history(PageDirectory(sys.argv[1]))
assert len(history.steps()) == 1
try:
    history.undo()
except ReadOnlyField as error:
    print(error)
assert [step.state for step in history.steps()] == ["done"]
"""
            state = Path(os.environ["MEMORYFIELD_STATE_DIR"])
            for path in [state, *state.rglob("*")]:
                os.chown(path, 65534, 65534)
            reachable = [field.path, state]
            opened = []
            for place in {parent for path in reachable for parent in path.parents}:
                mode = place.stat().st_mode
                if not mode & 0o001:
                    opened.append((place, mode))
                    place.chmod(mode | 0o001)
            try:
                run = subprocess.run(
                    [sys.executable, "-c", program, str(field.path)],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
            finally:
                for place, mode in opened:
                    place.chmod(mode & 0o7777)
            assert run.stderr == ""
            assert "cannot be written" in run.stdout
        else:
            with pytest.raises(ReadOnlyField, match="cannot be written"):
                history.undo()
    finally:
        field.path.chmod(0o755)
    assert content(field) == END
    history = keep_history(field)
    history.undo()
    assert content(field) == START


def test_a_pending_step_of_a_living_process_is_left_alone(field: PageDirectory) -> None:
    keep_history(field)
    field.write("early", b"x")
    seen: list[str] = []

    def call(name: str) -> None:
        if name == "put_new" and not seen:
            # Another process opens the field and looks at its history, while we are in the middle of a step.
            program = (
                "import sys; from memoryfield.curate.history import keep_history;"
                "from memoryfield.format.pages import PageDirectory;"
                "print(keep_history(PageDirectory(sys.argv[1])).steps())"
            )
            command = [sys.executable, "-c", program, str(field.path)]
            run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
            seen.append(run.stdout + run.stderr)

    with patched(call):
        field.apply(MERGE, verb="merge")
    assert "a step is pending" in seen[0]
    assert content(field) == {**END, "early": b"x"}
