"""Copies of index files for an archive: whole, and with nothing of pages that do not go along (FORMAT A1).

An index holds the frontmatter and the vectors of every page it was made from, in the free space of its file also of
pages that are gone, and the place that its model came from. A copy keeps the rows of the exported pages as they are
exported; what is left out of it, the next sync makes anew. What the tables mean is known on a higher floor.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryfield.errors import ArchiveError
from memoryfield.format.files import Folder, Unreadable
from memoryfield.format.sidefiles import strange_side

_PAGES = "pages"
_WITH_PAGES = (_PAGES, "sync_state", "refused")  # each with the columns filename and sha256_hash
_TABLES = frozenset([*_WITH_PAGES, "meta"])
# An absolute path, one under home or here, a URL, a drive letter, a host and port. A model hub's id is none of them.
_PLACE = re.compile(r"\s*(?:[/\\~.]|[^\s/\\]*:)|.*\\", re.DOTALL)


@contextlib.contextmanager
def index_copy(folder: Folder, filename: str, exported: Mapping[str, bytes]) -> Iterator[Path]:
    """Copy an index through SQLite, so that a sync at the same moment does not tear it.

    Args:
        folder: The field.
        filename: The index.
        exported: Filenames of the pages whose rows to keep, with the sha256 that the rows must have.

    Raises:
        ArchiveError: It is no index, or damaged.
    """
    try:
        with folder.opened(filename) as (descriptor, _):
            # A file in WAL mode without its log is complete, and SQLite would make side files in the field to read it.
            is_alone = os.read(descriptor, 20)[18:20] == b"\x02\x02" and not folder.is_there(filename + "-wal")
    except (FileNotFoundError, Unreadable) as error:
        raise ArchiveError(f"{filename} cannot be exported as an index: {error}") from error
    side = strange_side(folder.path / filename)
    if side is not None:
        raise ArchiveError(f"{filename} cannot be exported as an index: {side} beside it is not a regular file")
    address = f"{(folder.path / filename).as_uri()}?mode=ro{'&immutable=1' if is_alone else ''}"
    with tempfile.TemporaryDirectory(prefix="memoryfield-") as scratch:
        whole, copy = Path(scratch) / "whole.sqlite3", Path(scratch) / "index.sqlite3"
        try:
            with contextlib.closing(_connected(address)) as reader, contextlib.closing(_connected(whole)) as writer:
                reader.backup(writer)
                writer.execute("PRAGMA journal_mode = DELETE")
                _cut(writer, exported)
                # Into a new file once more: it begins its counts of changes anew, and equal rows give equal bytes.
                with contextlib.closing(_connected(copy)) as last:
                    writer.backup(last)
        except UnicodeDecodeError as error:
            raise ArchiveError(
                f"{filename} cannot be exported as an index: it is damaged, a text in it is no text"
            ) from error
        except sqlite3.Error as error:
            raise ArchiveError(f"{filename} cannot be exported as an index: {error}") from error
        yield copy


def _connected(place: str | Path) -> sqlite3.Connection:
    connection = sqlite3.connect(place, uri=isinstance(place, str), timeout=10, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _cut(connection: sqlite3.Connection, exported: Mapping[str, bytes]) -> None:
    """Take everything out of a copy that must not travel."""
    _drop_strangers(connection)
    there = {str(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if _PAGES not in there:
        raise sqlite3.DatabaseError("it has no table 'pages'")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("CREATE TEMP TABLE exported (filename TEXT PRIMARY KEY, sha256 BLOB) WITHOUT ROWID")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO temp.exported VALUES (?, ?)", exported.items())
    for table in _WITH_PAGES:
        if table in there:
            # The names that are ours stand on the left, whose collation counts.
            connection.execute(
                f"DELETE FROM main.{table} AS held WHERE NOT EXISTS (SELECT 1 FROM temp.exported AS kept"
                " WHERE kept.filename = held.filename AND kept.sha256 = held.sha256_hash)"
            )
    if "meta" in there:
        rows = connection.execute("SELECT CAST(value AS TEXT) FROM main.meta WHERE key = 'source'").fetchall()
        if any(_PLACE.match(str(source)) for (source,) in rows):
            connection.execute("UPDATE main.meta SET value = '' WHERE key = 'source'")
    connection.execute("COMMIT")
    connection.execute("VACUUM")


def _drop_strangers(connection: sqlite3.Connection) -> None:
    """Drop what no index has: triggers, which would run when rows are deleted, and other tables with other rows."""
    found = connection.execute(
        "SELECT CAST(type AS TEXT), CAST(name AS TEXT), rootpage FROM sqlite_master"
        " ORDER BY CASE WHEN type = 'trigger' THEN 0 WHEN type = 'view' THEN 1 WHEN type = 'index' THEN 2"
        " WHEN NOT rootpage THEN 3 ELSE 4 END, name"  # a virtual table before those that it is made of
    ).fetchall()
    for kind, name, rootpage in ((str(row[0]), str(row[1]), row[2]) for row in found):
        quoted = '"' + name.replace('"', '""') + '"'
        if kind == "table" and name.lower() in _TABLES:
            if not rootpage:
                raise sqlite3.DatabaseError(f"its table {name!r} is a virtual table")
        elif name.lower() == "sqlite_sequence":
            connection.execute("DELETE FROM main.sqlite_sequence")
        elif kind != "index" or not name.lower().startswith("sqlite_autoindex_"):
            connection.execute(f"DROP {kind} IF EXISTS main.{quoted}")
