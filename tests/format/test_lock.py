"""The lock of a field: threads, processes, forks, and where its file stands."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryfield import places
from memoryfield.errors import FieldError, FieldLocked
from memoryfield.format.lock import field_lock, lock_file
from memoryfield.format.pages import PageDirectory

ROOT = Path(__file__).resolve().parents[2]

HOLD = """
import sys, time
from pathlib import Path
from memoryfield.format.lock import field_lock
with field_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of ``tmp_path / "field"``."""
    (tmp_path / "field").mkdir()
    command = [sys.executable, "-c", HOLD, str(tmp_path / "field")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.communicate("\n", timeout=30)


def test_another_process_waits_and_then_says_so_P14(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(FieldLocked, match=r"another process .* 0.2 s"), field_lock(tmp_path / "field", timeout=0.2):
        pass
    assert 0.15 < time.monotonic() - begun < 5
    holder.communicate("\n", timeout=30)
    with field_lock(tmp_path / "field", timeout=5):
        pass


def test_a_killed_process_holds_nothing_P14(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    holder.kill()
    holder.wait()
    with field_lock(tmp_path / "field", timeout=5):
        pass


def test_a_thread_may_take_it_again(tmp_path: Path) -> None:
    with field_lock(tmp_path), field_lock(tmp_path, timeout=0), PageDirectory(tmp_path).lock(0):
        pass
    with field_lock(tmp_path, timeout=0):
        pass


def test_threads_exclude_one_another(tmp_path: Path) -> None:
    inside = []
    most = []

    def work() -> None:
        for _ in range(20):
            with field_lock(tmp_path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160
    assert max(most) == 1


def test_an_error_inside_lets_go(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), field_lock(tmp_path):
        raise ZeroDivisionError
    done = []

    def take() -> None:
        with field_lock(tmp_path, timeout=1):
            done.append(1)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert done == [1]


def test_the_file_stands_in_the_state_directory_X8(tmp_path: Path) -> None:
    field = PageDirectory(tmp_path / "field", create=True)
    with field.lock():
        assert lock_file(field.path).exists()
    assert lock_file(field.path).parent == places.state_directory() / "locks"
    assert os.listdir(field.path) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_two_ways_to_one_directory_share_a_lock(tmp_path: Path) -> None:
    (tmp_path / "field").mkdir()
    (tmp_path / "way").symlink_to("field", target_is_directory=True)
    assert lock_file(tmp_path / "way") == lock_file(tmp_path / "field") == lock_file(tmp_path / "x" / ".." / "field")


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEMORYFIELD_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(FieldError, match="MEMORYFIELD_STATE_DIR"), field_lock(tmp_path):
        pass


FORK = """
import os, sys, threading
from pathlib import Path
from memoryfield.format.lock import field_lock
path = Path(sys.argv[1])
held, go = threading.Event(), threading.Event()
def hold():
    with field_lock(path):
        held.set()
        go.wait(30)
thread = threading.Thread(target=hold)
thread.start()
held.wait(30)
child = os.fork()
if child == 0:
    try:
        with field_lock(path, timeout=0.2):
            os._exit(1)  # its parent holds the lock
    except BaseException as error:
        os._exit(0 if type(error).__name__ == "FieldLocked" else 2)
_, status = os.waitpid(child, 0)
go.set()
thread.join()
child = os.fork()
if child == 0:
    with field_lock(path, timeout=5):
        os._exit(0)
_, second = os.waitpid(child, 0)
with field_lock(path, timeout=5):
    print(os.waitstatus_to_exitcode(status), os.waitstatus_to_exitcode(second))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_shares_the_lock_nor_hangs(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("0 0\n", "")
