"""Many writers at once, in processes and in threads: nothing is lost, torn or overwritten (FORMAT P14)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from memoryfield.errors import PageChanged, PageExists, PageNotFound
from memoryfield.format.pages import Change, PageDirectory

ROOT = Path(__file__).resolve().parents[2]

APPEND = """
import sys
from pathlib import Path
from memoryfield.errors import FieldLocked
from memoryfield.format.pages import PageDirectory
field, who = PageDirectory(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    while True:
        try:
            field.edit("log", append=f"- line {number} of writer {who}, which is long enough to be torn somewhere")
            break
        except FieldLocked:  # a slow disk: nothing was written, try again
            pass
"""


def test_twenty_processes_append_ten_lines_each_P14(tmp_path: Path) -> None:
    field = PageDirectory(tmp_path)
    (tmp_path / "log.md").write_bytes(b"---\ntitle: Log\n---\n")
    command = [sys.executable, "-c", APPEND, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(n)], cwd=ROOT, **pipes) for n in range(20)]  # type: ignore[call-overload]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:  # all at once
            writer.stdin.write("\n")
            writer.stdin.flush()
        errors = [writer.communicate(timeout=120)[1] for writer in writers]
    finally:
        for writer in writers:
            if writer.poll() is None:
                writer.kill()
                writer.communicate()
    assert errors == [""] * 20
    expected = {
        f"- line {n} of writer {w}, which is long enough to be torn somewhere" for n in range(10) for w in range(20)
    }
    lines = [line for line in field.read("log").body.splitlines() if line]
    assert len(lines) == 200
    assert set(lines) == expected
    for writer in range(20):  # each writer's own lines in its own order
        own = [line for line in lines if f"writer {writer}," in line]
        assert own == sorted(own)
    assert field.read("log").title == "Log"
    assert os.listdir(tmp_path) == ["log.md"]


def test_threads_of_one_process_P14(tmp_path: Path) -> None:
    shared = PageDirectory(tmp_path)
    shared.create("log", title="Log")
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            own = shared if number % 2 else PageDirectory(tmp_path)
            for step in range(10):
                own.edit("log", append=f"- {number}.{step}")
                own.create(title="Same title", body=f"{number}.{step}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len([line for line in shared.read("log").body.splitlines() if line]) == 60
    bodies = [page.body for page in shared.pages() if page.name != "log"]
    assert len(set(bodies)) == len(bodies) == 60


def test_of_two_conditional_writes_one_wins_P14(tmp_path: Path) -> None:
    field = PageDirectory(tmp_path)
    won: list[int] = []
    lost: list[int] = []
    for round_number in range(10):
        page = field.create(f"page-{round_number}", title="T")
        start = threading.Barrier(4)

        def work(
            number: int, name: str = page.name, sha256: str = page.sha256, start: threading.Barrier = start
        ) -> None:
            start.wait(10)
            try:
                field.edit(name, append=str(number), if_sha256=sha256)
                won.append(number)
            except PageChanged:
                lost.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(won), len(lost)) == (10, 30)


def test_of_many_creators_of_one_name_one_wins_P14(tmp_path: Path) -> None:
    field = PageDirectory(tmp_path)
    results: list[str] = []

    def work(number: int) -> None:
        try:
            field.create("wanted", title=f"by {number}")
            results.append("created")
        except PageExists:
            results.append("refused")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["created"] + ["refused"] * 7


def test_readers_see_whole_pages_while_others_write_P14(tmp_path: Path) -> None:
    field = PageDirectory(tmp_path)
    size = 3000
    raws = {f"{letter}\n".encode() * size for letter in "abcdef"}
    field.apply([Change(f"page-{n}", b"a\n" * size) for n in range(5)])
    stop = threading.Event()
    seen: list[str] = []

    def write() -> None:
        letter = 0
        while not stop.is_set():
            letter = (letter + 1) % 6
            field.apply([Change(f"page-{n}", f"{'abcdef'[letter]}\n".encode() * size) for n in range(5)])
            field.rename("page-0", "renamed")
            field.rename("renamed", "page-0")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            found = field.snapshot()
            assert set(found.entries) >= {f"page-{n}.md" for n in range(1, 5)}
            assert {entry.size for entry in found.entries.values()} == {2 * size}
            for page in field.pages():
                assert page.raw in raws
            try:
                assert field.read("page-0").raw in raws
            except PageNotFound as error:
                seen.append(str(error))
    finally:
        stop.set()
        writer.join()
    assert field.names() == [f"page-{n}" for n in range(5)]
