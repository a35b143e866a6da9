"""Index files that strangers made: told apart, refused with what to do, never altered (FORMAT X11).

The case hostile-index, and its neighbours.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ForeignIndex, IndexFileError, NewerSchema
from memoryfield.format.pages import PageDirectory
from memoryfield.index.files import inspect_index
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.vectors import VectorIndex

Model = Callable[..., Any]

PAGES = (
    "CREATE TABLE pages (filename TEXT PRIMARY KEY, frontmatter JSON NOT NULL, last_modified DATETIME NOT NULL, "
    "sha256_hash BLOB NOT NULL, embedding BLOB NOT NULL)"
)
ROW = "('anchor.md', 'null', '2026-01-01T00:00:00+00:00', zeroblob(32), zeroblob(384))"


def make(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def text_file(path: Path) -> None:
    path.write_text("this is a text file, and a long one " * 100)


def short_file(path: Path) -> None:
    path.write_bytes(b"SQLite")


def kiss(path: Path) -> None:
    make(path, "CREATE TABLE pages (filename TEXT PRIMARY KEY, sha256 TEXT, mtime REAL, size INTEGER, vector BLOB)")


def other_database(path: Path) -> None:
    make(path, "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", "INSERT INTO notes VALUES (1, 'mine')")


def view(path: Path) -> None:
    make(path, PAGES.replace("pages", "hidden"), "CREATE VIEW pages AS SELECT * FROM hidden")


def trigger(path: Path) -> None:
    make(path, PAGES, "CREATE TRIGGER t AFTER INSERT ON pages BEGIN DELETE FROM pages; END")


def extra_view(path: Path) -> None:
    make(path, PAGES, f"INSERT INTO pages VALUES {ROW}", "CREATE VIEW meta AS SELECT 'a' AS key, 'b' AS value")


def virtual_table(path: Path) -> None:
    columns = "filename, frontmatter, last_modified, sha256_hash, embedding"
    make(path, f"CREATE VIRTUAL TABLE pages USING fts5({columns})")


def generated_column(path: Path) -> None:
    make(path, PAGES[:-1] + ", more TEXT GENERATED ALWAYS AS (hex(zeroblob(1000)))  VIRTUAL)")


def check_constraint(path: Path) -> None:
    make(path, PAGES.replace("embedding BLOB NOT NULL", "embedding BLOB NOT NULL CHECK (length(embedding) > 0)"))


def expression_index(path: Path) -> None:
    make(path, PAGES, "CREATE INDEX i ON pages (upper(filename))")


def other_meta(path: Path) -> None:
    make(path, PAGES, "CREATE TABLE meta (name TEXT, number INTEGER)")


def broken_meta(path: Path) -> None:
    make(path, PAGES, "CREATE TABLE meta (key TEXT, value TEXT)", "INSERT INTO meta VALUES ('schema_version', '1')")


FOREIGN = [
    text_file,
    short_file,
    kiss,
    other_database,
    view,
    trigger,
    extra_view,
    virtual_table,
    generated_column,
    check_constraint,
    expression_index,
    other_meta,
    broken_meta,
]


@pytest.mark.parametrize("maker", FOREIGN, ids=lambda maker: maker.__name__)
def test_foreign_file_is_refused_with_what_to_do_and_left_alone_X11(
    field: PageDirectory, toy_model: Model, maker: Callable[[Path], None]
) -> None:
    index = VectorIndex(field, toy_model())
    maker(index.path)
    before = index.path.read_bytes()
    files = sorted(os.listdir(field.path))
    for action in (index.sync, index.vectors, index.delete):
        with pytest.raises(ForeignIndex, match=r"(Move|Delete)|(move|delete)") as caught:
            action()
        assert str(index.path) in str(caught.value)
    state = index.state()
    assert state.state == "foreign" and str(index.path) in state.problem
    assert index.path.read_bytes() == before and sorted(os.listdir(field.path)) == files
    assert index.embedder.texts == []
    assert len(field.names()) == 5
    keywords = KeywordIndex(field)
    keywords.sync()
    assert keywords.search("dough", 1)[0][0] == "dough"


def test_foreign_file_can_be_passed_by_with_another_place_X11(
    field: PageDirectory, toy_model: Model, tmp_path: Path
) -> None:
    kiss(field.path / "toy-model.sqlite3")
    index = VectorIndex(field, toy_model(), path=tmp_path / "mine" / "toy-model.sqlite3")
    assert len(index.sync().added) == 5


@pytest.mark.parametrize("target", ["index", "page", "nothing", "directory"])
def test_symbolic_link_is_refused_and_its_target_left_alone_X11(
    field: PageDirectory, toy_model: Model, tmp_path: Path, target: str
) -> None:
    elsewhere = tmp_path / "elsewhere.sqlite3"
    if target == "index":
        VectorIndex(field, toy_model(), path=elsewhere).sync()
    elif target == "page":
        elsewhere.write_text("a file")
    elif target == "directory":
        elsewhere.mkdir()
    before = elsewhere.read_bytes() if elsewhere.is_file() else None
    index = VectorIndex(field, toy_model())
    index.path.symlink_to(elsewhere)
    for action in (index.sync, index.vectors, index.delete):
        with pytest.raises(ForeignIndex, match="symbolic link"):
            action()
    assert index.state().state == "symlink"
    assert index.path.is_symlink()
    assert (elsewhere.read_bytes() if elsewhere.is_file() else None) == before
    assert elsewhere.exists() == (target != "nothing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe_does_not_make_us_wait_X11(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    os.mkfifo(index.path)
    for action in (index.sync, index.vectors, index.delete):
        with pytest.raises(ForeignIndex, match="not a regular file"):
            action()


def test_newer_schema_is_refused(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    index.sync()
    make(index.path, "UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    before = index.path.read_bytes()
    for action in (VectorIndex(field, toy_model()).sync, index.vectors):
        with pytest.raises(NewerSchema, match="99"):
            action()
    assert index.state().state == "newer" and index.path.read_bytes() == before


def damaged(path: Path, kind: str) -> None:
    raw = bytearray(path.read_bytes())
    if kind == "truncated":
        del raw[len(raw) // 2 :]
    elif kind == "cut in the header":
        del raw[60:]
    elif kind == "overwritten":
        raw[4096:] = os.urandom(len(raw) - 4096)
    elif kind == "no schema":
        raw[100:4096] = bytes(3996)
    path.write_bytes(bytes(raw))


@pytest.mark.parametrize("kind", ["truncated", "cut in the header", "overwritten", "no schema"])
def test_damaged_file_is_said_to_be_so_and_left_alone_X11(field: PageDirectory, toy_model: Model, kind: str) -> None:
    for number in range(200):
        (field.path / f"p-{number}.md").write_text(f"page {number}\n")
    index = VectorIndex(field, toy_model())
    index.sync()
    damaged(index.path, kind)
    before = index.path.read_bytes()
    fresh = VectorIndex(field, toy_model())
    with pytest.raises(IndexFileError, match="delete"):
        fresh.vectors()
    with pytest.raises(IndexFileError, match="delete"):
        fresh.sync()
    assert index.path.read_bytes() == before
    fresh.state()
    if fresh.state().state == "damaged":
        fresh.delete()
        assert len(fresh.sync().added) == 205


def test_value_that_claims_three_gigabytes_X11(field: PageDirectory, toy_model: Model, tmp_path: Path) -> None:
    """The header of one record is changed so that its blob claims 3 GB; nothing of the size is ever asked for."""
    path = field.path / "toy-model.sqlite3"
    make(path, "PRAGMA page_size=4096", PAGES, f"INSERT INTO pages VALUES {ROW.replace('384', '60000')}")
    raw = path.read_bytes()
    # A blob of n bytes has the serial type 2 n + 12, as a big-endian number of seven bits a byte.
    claimed, bigger = 2 * 60000 + 12, 2 * 3_000_000_000 + 12
    old = varint(claimed)
    assert raw.count(old) == 1
    place = raw.index(old)
    new = varint(bigger)
    # The longer number takes the first bytes of the row itself; what matters is that SQLite believes the length.
    path.write_bytes(raw[:place] + new + raw[place + len(new) :])
    index = VectorIndex(field, toy_model())
    for action in (index.vectors, index.sync):
        with pytest.raises(IndexFileError):
            action()
    assert index.state().state in ("damaged", "ok")


def varint(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))


def test_large_values_are_not_read_X11(field: PageDirectory, toy_model: Model) -> None:
    """Rows with 40 MB in the place of a vector, a hash and a text cost no memory of that size."""
    index = VectorIndex(field, toy_model())
    index.sync()
    with closing(sqlite3.connect(index.path)) as connection, connection:
        connection.execute("UPDATE pages SET embedding = zeroblob(40000000) WHERE filename = 'anchor.md'")
    fresh = VectorIndex(field, toy_model())
    assert set(fresh.vectors().bad_rows) == {"anchor"}
    assert fresh.sync().updated == ("anchor",)
    with closing(sqlite3.connect(index.path)) as connection, connection:
        connection.execute("UPDATE pages SET frontmatter = zeroblob(40000000) WHERE filename = 'anchor.md'")
    assert VectorIndex(field, toy_model()).vectors().names == fresh.vectors().names


def test_rows_of_mixed_dimensions_X7_X11(field: PageDirectory, toy_model: Model) -> None:
    path = field.path / "toy-model.sqlite3"
    make(path, PAGES)
    model = toy_model()
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, name in enumerate(field.names()):
            dimensions = 96 if number % 2 else 64
            blob = model.vector(name)[:dimensions].astype("<f4").tobytes()
            raw = (field.path / f"{name}.md").read_bytes()
            values = (f"{name}.md", "null", "2026", __import__("hashlib").sha256(raw).digest(), blob)
            connection.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", values)
    index = VectorIndex(field, model)
    assert index.vectors().names == ("bread", "dough")
    assert "256 bytes instead of 384" in index.vectors().bad_rows["anchor"]
    report = index.sync()
    assert set(report.bad_rows) == set(report.updated) == {"anchor", "compass", "engine"}
    assert len(index.vectors()) == 5 and index.vectors().bad_rows == {}


def test_tables_of_ours_with_nonsense_in_them_X11(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    for statements in (
        ["UPDATE sync_state SET mtime_ns = 'text', inode = 1.5, size = zeroblob(9)"],
        ["UPDATE sync_state SET sha256_hash = 'text'"],
        ["DROP TABLE sync_state", "CREATE TABLE sync_state (a)", "INSERT INTO sync_state VALUES (1)"],
        ["DROP TABLE refused", "CREATE TABLE refused (filename TEXT, other TEXT)"],
        ["UPDATE meta SET value = zeroblob(3) WHERE key = 'dimensions'"],
        ["UPDATE meta SET value = NULL WHERE key = 'counter'"],
        ["INSERT INTO pages SELECT CAST(x'ff' AS TEXT) || filename, 'null', '2026', sha256_hash, embedding FROM pages"],
        ["UPDATE pages SET last_modified = 17, sha256_hash = 'text', frontmatter = x'ff'"],
    ):
        index = VectorIndex(field, model)
        index.path.unlink(missing_ok=True)
        index.sync()
        make(index.path, *statements)
        fresh = VectorIndex(field, model)
        try:
            report = fresh.sync()
            assert not report.refused and len(fresh.vectors()) == 5
            assert VectorIndex(field, model).sync().changed is False
        except IndexFileError as error:
            assert str(index.path) in str(error)
        index.state()


# Journals


def test_journal_of_a_killed_writer_is_played_back(field: PageDirectory, toy_model: Model, tmp_path: Path) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    before = index.vectors().matrix.copy()
    with_hot_journal(index.path, tmp_path)
    fresh = VectorIndex(field, model)
    assert np.array_equal(fresh.vectors().matrix, before)
    assert fresh.sync().changed is False
    assert not Path(f"{index.path}-journal").exists()


def with_hot_journal(path: Path, scratch: Path) -> None:
    """Leave the file as a writer that was killed in the middle of a commit does."""
    connection = sqlite3.connect(path, isolation_level=None)
    with closing(connection):
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE pages SET embedding = randomblob(384)")
        for _ in range(3):  # spilled to the file before the commit
            connection.execute("UPDATE pages SET frontmatter = hex(randomblob(100000))")
        journal = Path(f"{path}-journal").read_bytes()
        raw = path.read_bytes()
        connection.execute("ROLLBACK")
    path.write_bytes(raw)
    header = bytearray(journal)
    Path(f"{path}-journal").write_bytes(header)


def test_journal_that_names_another_file_is_refused_X11(field: PageDirectory, toy_model: Model, tmp_path: Path) -> None:
    """SQLite would delete the file that such a journal names."""
    index = VectorIndex(field, toy_model())
    index.sync()
    with_hot_journal(index.path, tmp_path)
    victim = tmp_path / "victim.txt"
    victim.write_text("precious\n")
    name = os.fsencode(victim)
    tail = name + struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    with open(f"{index.path}-journal", "ab") as journal:
        journal.write(struct.pack(">I", 1 << 30) + tail)
    before = index.path.read_bytes()
    fresh = VectorIndex(field, toy_model())
    for action in (fresh.vectors, fresh.sync):
        with pytest.raises(ForeignIndex, match="not a journal of ours"):
            action()
    assert victim.read_text() == "precious\n" and index.path.read_bytes() == before


def test_inspecting_never_raises(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    base = tmp_path / "base.sqlite3"
    make(base, PAGES, f"INSERT INTO pages VALUES {ROW}", "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    raw = base.read_bytes()
    for _ in range(150):
        broken = bytearray(raw)
        for place in random.integers(0, len(raw), 30):
            broken[place] = random.integers(0, 256)
        path = tmp_path / "m.sqlite3"
        path.write_bytes(bytes(broken))
        state = inspect_index(path)
        assert state.state in ("ok", "foreign", "damaged", "empty", "newer")
        assert (state.problem != "") == (state.state in ("foreign", "damaged", "newer"))
