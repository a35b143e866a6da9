"""Syncs that are killed, and many processes at once, lose nothing (FORMAT X8, X9)."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.format.pages import PageDirectory
from memoryfield.index.vectors import VectorIndex

Model = Callable[..., Any]


def program(toy_program: Path, body: str) -> list[str]:
    """Return a command that runs *body* with the small model imported as ToyModel."""
    start = f"import sys\nsys.path.insert(0, {str(toy_program.parent)!r})\nfrom toy_model import ToyModel\n"
    return [sys.executable, "-c", start + textwrap.dedent(body)]


def check_whole(field: PageDirectory, index: VectorIndex, model: Any) -> None:
    """Assert that every page has the row that it should have, and no other row is there."""
    with closing(sqlite3.connect(index.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        rows = {row[0]: row[1:] for row in connection.execute("SELECT filename, sha256_hash, embedding FROM pages")}
        seen = dict(connection.execute("SELECT filename, sha256_hash FROM sync_state").fetchall())
    assert {filename: row[0] for filename, row in rows.items()} == seen
    contents = {f"{name}.md": field.read(name).raw for name in field.names()}
    assert set(rows) == set(contents)
    for filename, raw in contents.items():
        sha256, embedding = rows[filename]
        assert sha256 == hashlib.sha256(raw).digest(), filename
        assert np.array_equal(np.frombuffer(embedding, "<f4"), model.vector(raw.decode())), filename


KILLED = """
import os, random, signal, time
from pathlib import Path
from memoryfield.format.pages import PageDirectory
from memoryfield.index.vectors import VectorIndex
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
choose = random.Random(7)
started = time.monotonic()
child = os.fork()
if not child:
    VectorIndex(PageDirectory(folder), ToyModel(seconds=0.0003), path=folder.parent / "measure.sqlite3").sync()
    os._exit(0)
os.waitpid(child, 0)
whole = time.monotonic() - started  # of a sync that nobody kills, on this machine now
for turn in range(rounds):
    for _ in range(choose.randrange(40)):
        number = choose.randrange(150)
        path = folder / f"p-{number}.md"
        if choose.random() < 0.2:
            path.unlink(missing_ok=True)
        else:
            path.write_text(f"page {number} turn {turn} word{choose.randrange(99)}\\n")
    child = os.fork()
    if not child:
        try:
            VectorIndex(PageDirectory(folder), ToyModel(seconds=0.0003)).sync()
        finally:
            os._exit(0)
    time.sleep(choose.random() * whole)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print("done")
"""


@pytest.mark.kills
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes, which this system has not")
def test_next_sync_completes_what_a_killed_one_left_X9(tmp_path: Path, toy_model: Model, toy_program: Path) -> None:
    """Eighty syncs killed at random moments, in the middle of writing too, while pages come, change and go."""
    for number in range(150):
        (tmp_path / f"p-{number}.md").write_text(f"page {number}\n")
    command = [*program(toy_program, KILLED), str(tmp_path), "80"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0 and run.stdout.endswith("done\n"), run.stderr
    field, model = PageDirectory(tmp_path), toy_model()
    index = VectorIndex(field, model)
    held = len(index.vectors())
    report = index.sync()
    assert held and not report.waiting and not report.bad_rows
    check_whole(field, index, model)
    assert index.sync().changed is False and VectorIndex(field, model).sync().changed is False
    assert [name for name in os.listdir(tmp_path) if not name.endswith(".md")] == ["toy-model.sqlite3"]


SYNCING = """
from memoryfield.format.pages import PageDirectory
from memoryfield.index.vectors import VectorIndex
import time
index = VectorIndex(PageDirectory(sys.argv[1]), ToyModel(seconds=0.0005))
end = time.monotonic() + float(sys.argv[2])
turns = 0
while time.monotonic() < end:
    report = index.sync(verify=turns % 2 == 0)
    assert not report.refused and not report.bad_rows, report
    turns += 1
print(turns)
"""

WRITING = """
from memoryfield.format.pages import PageDirectory
import random
field = PageDirectory(sys.argv[1])
own = sys.argv[2]
choose = random.Random(own)
for turn in range(9):
    field.create(f"own-{own}-{turn}", title=f"Page {own} {turn}", body=f"words of {own} in turn {turn}\\n")
    field.edit("shared", append=f"line {own} {turn}\\n")
    if turn % 3 == 2:
        field.delete(f"own-{own}-{turn - 1}")
"""


@pytest.mark.slow
def test_four_syncing_while_twenty_write_lose_nothing_X9(tmp_path: Path, toy_model: Model, toy_program: Path) -> None:
    field, model = PageDirectory(tmp_path), toy_model()
    field.create("shared", title="Shared", body="lines\n")
    syncing = [*program(toy_program, SYNCING), str(tmp_path), "7"]
    syncers = [subprocess.Popen(syncing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    writing = program(toy_program, WRITING)
    writers = [
        subprocess.Popen([*writing, str(tmp_path), str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(20)
    ]
    for output, errors in [process.communicate(timeout=200) for process in [*writers, *syncers]]:
        assert errors == ""
        assert output is None or int(output) >= 1
    assert len(field.names()) == 1 + 20 * (9 - 3)
    shared = field.read("shared").body
    assert sum(line.startswith("line ") for line in shared.splitlines()) == 180
    index = VectorIndex(field, model)
    report = index.sync()
    assert not report.waiting and not report.bad_rows
    check_whole(field, index, model)
    assert VectorIndex(field, model).sync().changed is False
