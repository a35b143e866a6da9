"""Where memoryfield-tool and we judge differently, neither undoes nor stops what the other does."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf

pytestmark = pytest.mark.interop

INDEX = "nomic-embed-text-v1.5.sqlite3"
UP_TO_DATE = "field: all files up to date"


def row_hashes(directory: Path) -> dict[str, bytes]:
    """Return the content that each row of the index was made from, by file name."""
    with closing(sqlite3.connect(directory / INDEX)) as database:
        return dict(database.execute("SELECT filename, sha256_hash FROM pages"))


def agrees(directory: Path) -> bool:
    """Say whether every row is of the page that is on the disk now, and no page lacks a row."""
    return row_hashes(directory) == {
        path.name: hashlib.sha256(path.read_bytes()).digest() for path in directory.glob("*.md")
    }


def found(field: mf.MemoryField, question: str) -> list[str]:
    return [hit.name for hit in field.search(question, k=20, retriever="vector", progress=False)]


def test_a_change_that_keeps_the_time_is_mended_for_both_X10(
    directory: Path, tool: Any, server: Any, ours: Any
) -> None:
    """The tool trusts an equal time and never sees this; a sync of ours reads the bytes."""
    field = ours(directory)
    field.sync(progress=False)
    tool.connect(directory)
    place, status = directory / "plain.md", (directory / "plain.md").stat()
    place.write_bytes(place.read_bytes().replace(b"dust extractor", b"coal scuttle  "))
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    server.reset()
    assert tool.index() == UP_TO_DATE
    assert not agrees(directory)
    assert field.sync(progress=False).updated == ("plain",)
    assert len(server.documents) == 1
    assert agrees(directory)
    assert tool.index() == UP_TO_DATE
    assert tool.search("coal scuttle")[0]["filename"] == "plain.md"


def test_files_that_only_the_tool_takes_for_pages_keep_their_rows_P1_P2_X10(
    directory: Path, tool: Any, server: Any, ours: Any
) -> None:
    """Were they removed by each sync of ours, the tool would embed them again, for ever."""
    strange = ["Bad Name.md", "plain.sync-conflict-20260301-101010-ABCDEFG.md", ".hidden.md", "under_score.md"]
    for name in strange:
        (directory / name).write_bytes(b"The dust extractor hums when its filter bag is full, says " + name.encode())
    tool.connect(directory)
    assert tool.index() == "field: indexed 10 files"
    server.reset()
    field = ours(directory)
    for _ in range(2):
        report = field.sync(progress=False)
        assert (report.embedded, report.removed, len(report.unchanged)) == (0, (), 6)
    field.edit("glue", append="One more line.")
    assert field.sync(progress=False).updated == ("glue",)
    content = (directory / INDEX).read_bytes()
    assert field.sync(progress=False).removed == ()
    assert (directory / INDEX).read_bytes() == content, "nothing changed, and yet the index was written"
    assert len(row_hashes(directory)) == 10
    names = found(field, "dust extractor filter bag")
    assert (names[0], sorted(names)) == ("plain", field.names())
    assert len(field.vector_index().vectors().names) == 6
    server.reset()
    assert tool.index() == UP_TO_DATE
    assert server.calls == []


def test_a_link_that_stops_the_tool_is_passed_over_by_us_P2(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_bytes(b"Nothing of this field.\n")
    try:
        (directory / "hammer.md").symlink_to(tmp_path / "outside.md")
    except OSError:
        pytest.skip("no symbolic links can be made here")
    tool.connect(directory)
    stopped = tool("index", "--field", "field")
    assert (stopped.out, "escapes the field root" in stopped.err) == ("", True)
    assert set(row_hashes(directory)) == {"glue.md"}
    field = ours(directory)
    report = field.sync(progress=False)
    assert (len(report.added), report.unchanged) == (5, ("glue",))
    assert "hammer" not in found(field, "nothing field")
    assert not [text for text in server.texts if "Nothing of this field" in text]
    assert (tmp_path / "outside.md").read_bytes() == b"Nothing of this field.\n"


def test_pages_that_stop_the_tool_do_not_stop_us_P7_P8(directory: Path, tool: Any, server: Any, ours: Any) -> None:
    """What it has indexed before it stopped is used; we embed the rest, and with our rows it works again."""
    (directory / "hammer.md").write_bytes(b"---\ntitle: Hammer\ncreated: 2026-13-45\n---\n\nHits nails.\n")
    tool.connect(directory)
    assert "month must be in 1..12" in tool("index", "--field", "field", fails=True).err
    done = set(row_hashes(directory))
    assert done == {"glue.md"}
    server.reset()
    field = ours(directory)
    assert len(field.sync(progress=False).added) == 6
    assert len(server.documents) == 6
    assert found(field, "hits nails")[0] == "hammer"
    # the tool reads frontmatter only of what it embeds: with our rows it works again
    assert tool.index() == UP_TO_DATE
    assert tool.search("hits nails")[0]["filename"] == "hammer.md"


def test_an_index_of_another_program_is_refused_and_unchanged_X11(
    directory: Path, tool: Any, server: Any, ours: Any
) -> None:
    """Same file name, other columns, as KISS writes it."""
    with closing(sqlite3.connect(directory / INDEX)) as database:
        database.execute(
            "CREATE TABLE pages (filename TEXT PRIMARY KEY, title TEXT, mtime REAL NOT NULL, sha256 TEXT NOT NULL,"
            " embedding BLOB NOT NULL)"
        )
        database.execute("INSERT INTO pages VALUES ('glue.md', 'Hide glue', 1772359200.25, 'ab', zeroblob(3072))")
        database.commit()
    content, status = (directory / INDEX).read_bytes(), (directory / INDEX).stat()
    field = ours(directory)
    for attempt in (
        lambda: field.sync(progress=False),
        lambda: found(field, "glue"),
        lambda: field.vector_index().vectors(),
    ):
        with pytest.raises(mf.errors.ForeignIndex, match="other columns"):
            attempt()
    (state,) = field.indexes()
    assert state.state == "foreign"
    assert "other columns" in state.problem
    assert server.documents == []
    assert [hit.name for hit in field.search("overnight", retriever="keyword", progress=False)] == ["glue"]
    now = (directory / INDEX).stat()
    assert (directory / INDEX).read_bytes() == content
    assert (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert [path.name for path in directory.iterdir() if path.name.startswith(INDEX)] == [INDEX]


def test_two_at_once_X8_X9(tmp_path: Path, tool: Any, server: Any, ours: Any) -> None:
    """The tool indexes and we sync the same field at the same time."""
    directory = tmp_path / "field"
    directory.mkdir()
    for number in range(24):
        (directory / f"page-{number:02}.md").write_bytes(f"# Page {number}\n\nWord{number} stands here.\n".encode())
    tool.connect(directory)
    field = ours(directory)
    server.delay = 0.02
    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.append(tool.index()))
    thread.start()
    try:
        field.sync(progress=False)
    finally:
        thread.join()
    assert outcomes and outcomes[0].startswith("field: ")
    server.reset()
    assert tool.index() == UP_TO_DATE
    report = field.sync(progress=False)
    assert (len(report.unchanged), report.embedded) == (24, 0)
    assert server.calls == []
    assert agrees(directory)
    assert found(field, "word17")[0] == "page-17"
