"""The journal's file: damaged, of a newer version, pruned, moved with its field; git; several processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryfield import places
from memoryfield.curate import gitstate
from memoryfield.curate.history import History, keep_history
from memoryfield.curate.journal import journal_path
from memoryfield.errors import DamagedJournal, HistoryError, MemoryfieldError, NewerSchema, QueryError
from memoryfield.format.pages import Change, PageDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    directory = PageDirectory(tmp_path / "a field %23?#'é", create=True)
    (directory.path / "page.md").write_bytes(b"first\n")
    return directory


@pytest.fixture
def history(field: PageDirectory) -> History:
    return keep_history(field)


def run(history: History, *statements: str) -> None:
    connection = sqlite3.connect(history.path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# Damage


@pytest.mark.parametrize(
    "damage",
    ["garbage", "cut", "middle", "foreign", "no-table", "unknown-number"],
)
def test_a_damaged_journal_stops_no_write_and_is_kept_aside(
    field: PageDirectory, history: History, damage: str
) -> None:
    for number in range(30):
        field.write("page", os.urandom(3000) + b"%d" % number)
    last = field.read("page").raw
    size = history.path.stat().st_size
    if damage == "garbage":
        history.path.write_bytes(b"garbage" * 1000)
    elif damage == "cut":
        os.truncate(history.path, size // 2)
    elif damage == "middle":
        with open(history.path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
    elif damage == "foreign":
        history.path.unlink()
        run(history, "CREATE TABLE theirs (a)")
    elif damage == "no-table":
        run(history, "DROP TABLE changes")
    else:
        run(history, "PRAGMA application_id=7")
    bad = history.path.read_bytes()
    for act in (history.steps, history.undo, history.diff):
        with pytest.raises(DamagedJournal, match=r"is damaged .*The field is not affected"):
            act()
    assert field.read("page").raw == last
    again = keep_history(PageDirectory(field.path))  # opening works
    again.directory.write("page", b"after the damage\n")
    steps = again.steps()
    assert len(steps) == 1
    assert "a damaged journal was set aside" in repr(steps)
    (aside,) = list(history.path.parent.glob("damaged-*.sqlite3"))
    assert aside.read_bytes() == bad
    again.undo()
    assert field.read("page").raw == last


def test_a_damaged_part_of_the_journal_never_reaches_a_page(field: PageDirectory, history: History) -> None:
    for number in range(6):
        field.write("page", b"%d\n" % number + os.urandom(1500))
    good = history.path.read_bytes()
    refused = undone = 0
    for start in range(0, len(good), 4096):
        history.path.write_bytes(good)
        before, last = history.content(6, "page", before=True), field.read("page").raw
        bad = good[:start] + b"\xa5" * 4096 + good[start + 4096 :]
        history.path.write_bytes(bad)
        try:
            history.undo(6)
        except HistoryError:
            refused += 1
            assert field.read("page").raw == last
        else:
            undone += 1
            assert field.read("page").raw == before
        (field.path / "page.md").write_bytes(last)
        history.path.write_bytes(bad)
        field.write("other", b"%d" % start)  # and a write is never stopped
        assert field.read("other").raw == b"%d" % start
        (field.path / "other.md").unlink()
    assert refused
    assert undone


def test_one_damaged_content_costs_only_its_own_step(field: PageDirectory, history: History) -> None:
    field.write("page", b"second\n")
    field.write("page", b"third\n")
    field.create("other", title="Other")
    run(history, "UPDATE contents SET packed = x'00', codec = 0 WHERE size = 7")
    with pytest.raises(HistoryError, match=r"content .* is damaged"):
        history.undo(2)
    with pytest.raises(HistoryError, match=r"content .* is damaged"):
        history.diff(2)
    assert field.read("page").raw == b"third\n"
    assert [step.state for step in history.steps()] == ["done"] * 3
    history.undo(3)
    field.write("page", b"fourth\n")


def test_a_newer_journal_is_refused_with_a_sentence(field: PageDirectory, history: History) -> None:
    field.write("page", b"second\n")
    run(history, "PRAGMA user_version=99")
    for act in (history.steps, history.undo, lambda: field.write("page", b"third\n")):
        with pytest.raises(NewerSchema, match="schema version 99, this library knows up to 2: update memoryfield-lab"):
            act()
    assert field.read("page").raw == b"second\n"
    assert keep_history(PageDirectory(field.path)).directory.read("page").raw == b"second\n"  # opening works


def test_an_empty_file_is_no_damage(field: PageDirectory, history: History) -> None:
    history.path.parent.mkdir(parents=True)
    history.path.touch()
    assert len(history.steps()) == 0
    field.write("page", b"second\n")
    assert len(history.steps()) == 1


def test_a_state_directory_that_cannot_be_used(field: PageDirectory, history: History) -> None:
    history.path.parent.parent.mkdir(parents=True)
    history.path.parent.write_bytes(b"a file in the way")
    with pytest.raises(HistoryError, match=r"cannot be used .* nothing was changed"):
        field.write("page", b"second\n")
    assert field.read("page").raw == b"first\n"
    assert os.listdir(field.path) == ["page.md"]


# Size and age


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("ending", ["", "-journal", "-wal", "-shm"])
def test_a_pipe_in_place_of_a_file_of_the_journal_is_refused(
    field: PageDirectory, history: History, ending: str
) -> None:
    field.write("one", b"1")
    path = journal_path(field.path)
    Path(f"{path}{ending}").unlink(missing_ok=True)
    os.mkfifo(f"{path}{ending}")
    before = {page.name: page.raw for page in field.pages()}
    with pytest.raises(HistoryError, match="not a regular file"):
        field.write("two", b"2")
    if ending:  # a journal that is none holds no steps
        with pytest.raises(HistoryError, match="not a regular file"):
            history.undo()
    assert {page.name: page.raw for page in field.pages()} == before


def test_contents_are_kept_once_and_compressed(field: PageDirectory, history: History) -> None:
    text = b"a line that repeats\n" * 20_000
    for number in range(20):
        field.apply([Change(f"page-{number}", text)])
    assert history.path.stat().st_size < len(text)


def test_prune_takes_the_oldest_for_good(field: PageDirectory, history: History) -> None:
    secret = b"hunter2-" + os.urandom(20).hex().encode()
    field.write("page", secret)
    for number in range(10):
        field.write("page", b"%d" % number)
    report = history.prune(keep_bytes=10**9)
    assert (report.steps, report.kept) == (0, 11)
    run(history, "UPDATE steps SET time_ns = time_ns - 86400000000000 * 3 WHERE id <= 4")
    report = history.prune(older_than=2)
    assert (report.steps, report.kept) == (4, 7)
    assert [step.id for step in history.steps()] == [11, 10, 9, 8, 7, 6, 5]
    assert history.path.stat().st_size == report.size
    assert secret not in b"".join(path.read_bytes() for path in history.path.parent.iterdir())
    history.undo()
    assert history.prune(timedelta(0)).kept == 0
    assert history.prune(datetime.now(UTC)).steps == 0
    with pytest.raises(HistoryError, match="nothing to undo"):
        history.undo()
    with pytest.raises(QueryError):
        history.prune(-1)


def test_the_limits_take_the_oldest_and_say_so(field: PageDirectory) -> None:
    history = History(field, largest=300_000)
    field.journal = history
    for _ in range(20):
        field.write("page", os.urandom(50_000))
    steps = history.steps()
    assert 1 < len(steps) < 8
    assert steps[0].id == 20
    assert f"{20 - len(steps)} older steps" in repr(steps)
    assert history.path.stat().st_size < 450_000
    before = history.content(steps[0], "page", before=True)
    history.undo()
    assert field.read("page").raw == before


def test_a_step_larger_than_the_limit_is_kept(field: PageDirectory) -> None:
    field.journal = history = History(field, largest=10_000)
    field.write("page", os.urandom(500_000))
    history.undo()
    assert field.read("page").raw == b"first\n"


def test_the_limit_of_age(field: PageDirectory) -> None:
    field.journal = history = History(field, oldest=timedelta(days=30))
    field.write("page", b"second\n")
    field.write("page", b"third\n")
    run(history, "UPDATE steps SET time_ns = time_ns - 86400000000000 * 31 WHERE id = 1")
    field.write("page", b"fourth\n")
    assert [step.id for step in history.steps()] == [3, 2]


# Moved fields


def test_a_moved_field_adopts_its_journal(field: PageDirectory, history: History, tmp_path: Path) -> None:
    field.write("page", b"second\n")
    (tmp_path / "elsewhere").mkdir()
    goal = tmp_path / "elsewhere" / field.path.name
    shutil.move(field.path, goal)
    moved = keep_history(PageDirectory(goal))
    steps = moved.steps()
    assert len(steps) == 0
    assert f"a journal of {os.path.realpath(field.path)} is there" in repr(steps).replace("\n", " ")
    assert len(moved.adopt(field.path)) == 1
    moved.undo()
    assert (goal / "page.md").read_bytes() == b"first\n"
    assert moved.elsewhere() == []
    with pytest.raises(HistoryError, match="no journal of"):
        moved.adopt(field.path)


def test_adopt_takes_nothing_from_anybody(field: PageDirectory, history: History, tmp_path: Path) -> None:
    field.write("page", b"second\n")
    copy = tmp_path / "copy"
    shutil.copytree(field.path, copy)
    other = keep_history(PageDirectory(copy))
    assert len(other.steps()) == 0  # a copy is another field
    with pytest.raises(HistoryError, match="still there"):
        other.adopt(field.path)
    other.directory.write("page", b"third\n")
    shutil.rmtree(field.path)
    with pytest.raises(HistoryError, match="has a history already"):
        other.adopt(field.path)


# git


def git(place: Path, *arguments: str) -> None:
    options = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *options, *arguments], cwd=place, check=True, capture_output=True, timeout=60)


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@needs_git
def test_steps_say_whether_git_has_them(field: PageDirectory, history: History) -> None:
    def committed() -> list[bool | None]:
        return [step.committed for step in reversed(history.steps())]

    field.write("page", b"second\n")
    assert committed() == [None]
    git(field.path, "init", "-q")
    assert committed() == [False]
    git(field.path, "add", "page.md")
    assert committed() == [False]
    git(field.path, "commit", "-qm", "x")
    assert committed() == [True]
    field.write("page", b"third\n")
    field.create("other", title="Other")
    assert committed() == [True, False, False]
    assert "not committed" in repr(history.steps())
    assert history.steps(git=False)[0].committed is None
    history.undo(2)
    assert committed() == [True, True, False, True]  # the page is what the commit holds
    field.write("page", b"fourth\n")
    field.delete("page")
    assert committed()[-1] is False
    git(field.path, "add", "-A")
    git(field.path, "commit", "-qm", "y")
    assert set(committed()) == {True}
    status = subprocess.run(["git", "status", "--porcelain"], cwd=field.path, capture_output=True, check=True)
    assert status.stdout == b""


@needs_git
def test_a_repository_of_a_stranger_runs_nothing(field: PageDirectory, history: History, tmp_path: Path) -> None:
    repository = field.path.parent
    marker = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    script.chmod(0o755)
    git(repository, "init", "-q")
    git(repository, "add", field.path.name)
    git(repository, "commit", "-qm", "x")
    for key in (
        "core.fsmonitor",
        "core.pager",
        "filter.e.clean",
        "filter.e.smudge",
        "diff.external",
        "core.sshCommand",
    ):
        git(repository, "config", key, str(script))
    (field.path / ".gitattributes").write_text("* filter=e diff=e\n")
    hooks = repository / ".git" / "hooks"
    for name in ("post-index-change", "pre-commit", "reference-transaction"):
        shutil.copy(script, hooks / name)
    index = (repository / ".git" / "index").read_bytes()
    field.write("page", b"second\n")
    assert history.steps()[0].committed is False
    history.undo()
    assert [step.committed for step in history.steps()] == [True, True]
    assert not marker.exists()
    assert (repository / ".git" / "index").read_bytes() == index


@needs_git
def test_a_broken_repository_is_no_answer(field: PageDirectory, history: History) -> None:
    (field.path / ".git").mkdir()
    field.write("page", b"second\n")
    assert history.steps()[0].committed is None


@needs_git
def test_a_git_that_hangs_is_left_alone(
    field: PageDirectory, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(field.path, "init", "-q")
    field.write("page", b"second\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(gitstate, "TIMEOUT", 0.2)
    assert history.steps()[0].committed is None


# Many at once

WRITER = """
import sys
from pathlib import Path
from memoryfield.curate.history import keep_history
from memoryfield.errors import FieldLocked, HistoryError, PageChanged
from memoryfield.format.pages import PageDirectory
field, who = PageDirectory(Path(sys.argv[1])), sys.argv[2]
history = keep_history(field, who=who)
print("ready", flush=True)
sys.stdin.readline()
def patiently(act):
    while True:
        try:
            return act()
        except FieldLocked:
            pass
for number in range(8):
    patiently(lambda: field.edit("log", append=f"- {who}.{number}"))
    patiently(lambda: field.create(f"page-{who}-{number}", title="Own"))
    len(history.steps(limit=3))
    own = [step for step in history.steps(f"page-{who}-{number}") if step.who == who]
    patiently(lambda: history.undo(own[0]))
    if number % 2:
        patiently(lambda: history.redo(own[0]))
"""


def test_four_processes_at_once(field: PageDirectory, history: History) -> None:
    (field.path / "log.md").write_bytes(b"# Log\n")
    command = [sys.executable, "-W", "error", "-c", WRITER, str(field.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # mypy finds no overload of Popen for arguments in a dict
    writers = [subprocess.Popen([*command, str(n)], cwd=ROOT, **pipes) for n in range(4)]  # type: ignore[call-overload]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("\n")
            writer.stdin.flush()
        errors = [writer.communicate(timeout=200)[1] for writer in writers]
    finally:
        for writer in writers:
            if writer.poll() is None:
                writer.kill()
                writer.communicate()
    assert errors == [""] * 4
    steps = history.steps()
    assert len(steps) == 4 * (8 + 8 + 8 + 4)
    assert {step.state for step in steps} == {"done", "undone"}
    assert not any(change.strayed for step in steps for change in step.changes)
    assert sum(name.startswith("page-") for name in field.names()) == 4 * 4 + 0
    for step in steps:
        if step.verb == "edit":
            history.undo(step)
    assert (field.path / "log.md").read_bytes() == b"# Log\n"


def test_threads_share_one_history(field: PageDirectory, history: History) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                field.create(f"own-{number}-{turn}", title="Own")
                history.steps(limit=2)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(history.steps()) == 20
    for _ in range(20):
        history.undo()
    assert field.names() == ["page"]


def test_journals_stand_in_the_state_directory(field: PageDirectory) -> None:
    path = journal_path(field.path)
    assert path.is_relative_to(places.state_directory())
    assert path != journal_path(field.path.parent)


def test_errors_are_of_this_library() -> None:
    assert issubclass(DamagedJournal, HistoryError)
    assert issubclass(HistoryError, MemoryfieldError)
