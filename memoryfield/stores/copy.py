"""The copy of a field that lives elsewhere: the bytes of its pages by tag, in a file of the cache directory.

A sync keeps what it has read at once, so that an interrupted one goes on from there; which pages the field has is
replaced in one step, when all of them are here. A damaged file is thrown away: all of it can be read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from memoryfield.errors import FieldError
from memoryfield.format.names import is_page_filename
from memoryfield.format.snapshot import Entry, Skipped
from memoryfield.places import private_directory
from memoryfield.stores.protocol import Fetched

_VERSION = 1
_SCHEMA = (
    "CREATE TABLE contents (filename TEXT, tag TEXT, sha256 BLOB NOT NULL, raw BLOB NOT NULL, "
    "PRIMARY KEY (filename, tag)) WITHOUT ROWID",
    "CREATE TABLE present (filename TEXT PRIMARY KEY, tag TEXT NOT NULL, modified_ns INTEGER NOT NULL)",
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"PRAGMA user_version = {_VERSION}",
)
_FAR_NS = 2**63 - 1


class Row(NamedTuple):
    """A page of the copy: its version, and what a snapshot says of it."""

    tag: str
    entry: Entry


@dataclass(frozen=True)
class State:
    """The field as it was at the last sync.

    Attributes:
        rows: By filename, sorted by page name.
        others: Filenames of what is kept beside the pages.
        skipped: What is left out.
        writes: Whether the store said that it takes changes.
        synced_ns: When that was, in nanoseconds since 1970; 0 for never.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    writes: bool | None = None
    synced_ns: int = 0


def page_entry(raw_sha256: bytes, size: int, modified_ns: int) -> Entry:
    """Return the entry of a page that is no file: no inode, and no time but that of the store."""
    return Entry(raw_sha256, size, max(-_FAR_NS, min(_FAR_NS, modified_ns)), 0, 0)


class Copy:
    """The file.

    Args:
        path: Where it is or will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()

    def load(self) -> State:
        """Return the last state; an empty one where there is none or the file is damaged."""
        with self._lock:
            try:
                with self._opened() as connection:
                    return _read_state(connection)
            except (sqlite3.DatabaseError, ValueError, TypeError, KeyError, RecursionError):
                self._remove()
                return State()

    def known(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[bytes, int]]:
        """Return sha256 and size of the contents that are here, of those with these filenames and tags."""
        asked = set(wanted)
        if not asked:
            return {}
        with self._connected() as connection:
            rows = connection.execute("SELECT filename, tag, sha256, length(raw) FROM contents")
            return {(name, tag): (sha256, size) for name, tag, sha256, size in rows if (name, tag) in asked}

    def keep(self, fetched: Sequence[Fetched]) -> None:
        """Keep what was read."""
        rows = [(f.filename, f.tag, hashlib.sha256(f.raw).digest(), f.raw) for f in fetched if f.raw is not None]
        with self._connected() as connection:
            connection.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?)", rows)

    def settle(self, state: State) -> None:
        """Make *state* the last one, in one step, and forget the contents that it does not need."""
        rows = [(name, row.tag, row.entry.mtime_ns) for name, row in state.rows.items()]
        about = {
            "others": state.others,
            "skipped": state.skipped,
            "writes": state.writes,
            "synced_ns": state.synced_ns,
        }
        with self._connected() as connection:
            connection.execute("DELETE FROM present")
            connection.executemany("INSERT INTO present VALUES (?, ?, ?)", rows)
            told = [(key, json.dumps(value)) for key, value in about.items()]
            connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", told)
            connection.execute(
                "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM present WHERE "
                "present.filename = contents.filename AND present.tag = contents.tag)"
            )

    def confirm(self, synced_ns: int) -> None:
        """Note that nothing had changed at this moment."""
        with self._connected() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('synced_ns', ?)", (json.dumps(synced_ns),))

    def raw(self, filename: str, tag: str) -> bytes | None:
        """Return the bytes of a version of a page; None where they are not here, or not what they were."""
        with self._connected() as connection:
            query = "SELECT raw, sha256 FROM contents WHERE filename = ? AND tag = ?"
            found = connection.execute(query, (filename, tag)).fetchone()
        return _sound(found)

    def all_raw(self, rows: dict[str, Row]) -> Iterator[tuple[str, bytes | None]]:
        """Yield the bytes of many pages, in their order."""
        names = list(rows)
        for start in range(0, len(names), 100):
            with self._connected() as connection:
                query = "SELECT raw, sha256 FROM contents WHERE filename = ? AND tag = ?"
                part = names[start : start + 100]
                found = [connection.execute(query, (name, rows[name].tag)).fetchone() for name in part]
            yield from zip(part, map(_sound, found), strict=True)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                with self._opened() as connection:
                    yield connection
            except sqlite3.OperationalError as error:
                raise FieldError(f"the copy of the field in {self.path} cannot be used: {error}") from error
            except sqlite3.DatabaseError as error:
                self._remove()
                message = f"the copy of the field in {self.path} was damaged and is thrown away ({error}): try again"
                raise FieldError(message) from error

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            private_directory(self.path.parent)
        except OSError as error:
            raise FieldError(f"{self.path.parent} cannot be made: {error.strerror or error}") from error
        with contextlib.closing(sqlite3.connect(self.path, timeout=30.0)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # what a power cut breaks is noticed and read again
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    for (table,) in connection.execute(
                        "SELECT name FROM sqlite_master WHERE type = 'table'"
                    ).fetchall():
                        connection.execute('DROP TABLE "{}"'.format(table.replace('"', '""')))
                    for statement in _SCHEMA:
                        connection.execute(statement)
                connection.commit()
            with connection:
                yield connection

    def _remove(self) -> None:
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + ending).unlink()


def _sound(found: tuple[bytes, bytes] | None) -> bytes | None:
    if found is None or hashlib.sha256(found[0]).digest() != found[1]:
        return None
    return found[0]


def _read_state(connection: sqlite3.Connection) -> State:
    about = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM about")}
    rows = connection.execute(
        "SELECT filename, tag, modified_ns, sha256, length(raw) FROM present JOIN contents USING (filename, tag)"
    ).fetchall()
    if len(rows) != connection.execute("SELECT count(*) FROM present").fetchone()[0]:
        return State()
    found = {
        name: Row(tag, page_entry(sha256, size, modified_ns))
        for name, tag, modified_ns, sha256, size in rows
        if is_page_filename(name)
    }
    return State(
        dict(sorted(found.items(), key=lambda item: item[0][:-3])),
        tuple(about.get("others", ())),
        tuple(Skipped(*item) for item in about.get("skipped", ())),
        about.get("writes"),
        int(about.get("synced_ns", 0)),
    )
