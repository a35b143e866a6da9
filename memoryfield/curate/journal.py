"""The file behind a field's history: one SQLite database in the user's state directory, never in the field.

A step is a set of changes that belong together. Contents are kept once each, under their sha256, compressed. A step is
durable before the first page changes; what it means to undo or to finish one is known in ``history.py``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoryfield import places
from memoryfield.curate.journalrows import DONE, PENDING, UNDONE, drop, keep, latest, prune, step_row
from memoryfield.errors import DamagedJournal, HistoryError, NewerSchema
from memoryfield.format.dates import clamped_ns
from memoryfield.format.journaling import Recorded
from memoryfield.format.sidefiles import strange_side

LARGEST = 2**30  # bytes
OLDEST = 400 * 86400 * 10**9  # nanoseconds
BUSY_SECONDS = 30.0
_APPLICATION = 0x6D666A31  # in the header of the file

# Migration n brings a file from version n to n + 1. A migration that was released is never changed.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE steps (id INTEGER PRIMARY KEY AUTOINCREMENT, time_ns INTEGER NOT NULL, verb TEXT NOT NULL,"
        " note TEXT NOT NULL, who TEXT NOT NULL, state TEXT NOT NULL, target INTEGER)",
        "CREATE TABLE changes (step INTEGER NOT NULL, filename TEXT NOT NULL, before BLOB, after BLOB, mode INTEGER,"
        " modified_ns INTEGER, new_mode INTEGER, new_modified_ns INTEGER, strayed INTEGER,"
        " PRIMARY KEY (step, filename)) WITHOUT ROWID",
        "CREATE TABLE contents (sha256 BLOB PRIMARY KEY, size INTEGER NOT NULL, codec INTEGER NOT NULL,"
        " packed BLOB NOT NULL)",
        "CREATE INDEX steps_by_state ON steps (state)",
        "CREATE INDEX changes_by_file ON changes (filename, step)",
        "CREATE INDEX changes_by_before ON changes (before)",
        "CREATE INDEX changes_by_after ON changes (after)",
    ),
    (
        # what this field and another place both held after the last transfer; gone_ns: deleted since, a tombstone
        "CREATE TABLE agreed (place TEXT NOT NULL, filename TEXT NOT NULL, sha256 BLOB NOT NULL, gone_ns INTEGER,"
        " PRIMARY KEY (place, filename)) WITHOUT ROWID",
    ),
)
SCHEMA_VERSION = len(_MIGRATIONS)


def journal_path(field: Path) -> Path:
    """Return where the journal of the field at *field* stands."""
    return places.state_directory() / "journals" / places.field_key(field) / "history.sqlite3"


class JournalFile:
    """The database. Every call opens it for a moment, so that threads and processes can share it.

    Args:
        path: The file; it is made with the first step.
        field: The field's directory, noted in the file.
    """

    def __init__(self, path: Path, field: Path) -> None:
        self.path = path
        self.field = field

    def exists(self) -> bool:
        """Say whether a step was ever kept."""
        try:
            return os.stat(self.path).st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise HistoryError(self._unusable(error.strerror or str(error))) from error

    # Opening

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the file, which must exist, in one read transaction.

        Raises:
            DamagedJournal: It cannot be read.
            NewerSchema: A newer version of this library wrote it.
            HistoryError: It cannot be opened, or another process holds it for too long.
        """
        for _ in range(2):
            with self._opened() as connection:
                connection.execute("PRAGMA query_only=ON")
                connection.execute("BEGIN")
                if self._check(connection) == SCHEMA_VERSION:
                    yield connection
                    return
            with self.writing():  # of an older version
                pass

    @contextlib.contextmanager
    def writing(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Open the file in one transaction; it is made, or brought to the present version, where needed.

        Args:
            durable: The transaction is on the disk at the end. Otherwise a loss of power may take it away as a whole.

        Raises:
            MemoryfieldError: As ``reading``; nothing was written.
        """
        try:
            places.private_directory(self.path.parent)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise HistoryError(self._unusable(error.strerror or str(error))) from error
        with self._opened() as connection:
            # FULL: the commit itself is on the disk too, or a page could be newer than what is known of it.
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("PRAGMA secure_delete=ON")  # what is pruned may have been a secret
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._migrate(connection, self._check(connection))
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), contextlib.closing(self._connect()) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            # The rollback journal is kept beside the file, emptied: to make and remove it would take two more writes
            # to the disk a change.
            connection.execute("PRAGMA journal_mode=PERSIST").fetchone()
            connection.execute(f"PRAGMA journal_size_limit={2**20}").fetchone()
            yield connection

    def _connect(self) -> sqlite3.Connection:
        side = strange_side(self.path)
        if side is not None:
            raise HistoryError(f"{side} is not a regular file and no part of a journal; nothing was changed: remove it")
        try:
            if not stat.S_ISREG(os.lstat(self.path).st_mode):
                raise HistoryError(self._unusable("it is not a regular file"))
        except OSError as error:
            raise HistoryError(self._unusable(error.strerror or str(error))) from error
        return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=16)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise DamagedJournal(self._damaged(f"a text is no text: {error.reason}")) from error
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                message = f"another process holds {self.path} for more than {BUSY_SECONDS:.0f} s: try again later"
                raise HistoryError(message) from error
            broken = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
            # Missing tables and columns: the file has our number, but is not what a migration made.
            if code in broken or (code == sqlite3.SQLITE_ERROR and "no such" in str(error)):
                raise DamagedJournal(self._damaged(str(error))) from error
            raise HistoryError(self._unusable(str(error))) from error

    def _damaged(self, why: str) -> str:
        return (
            f"the journal {self.path} is damaged ({why}). The field is not affected, but its history cannot be read. "
            "The next change sets the file aside and begins a new one."
        )

    def _unusable(self, why: str) -> str:
        return (
            f"the journal {self.path} cannot be used ({why}); nothing was changed: look at the disk and the "
            "permissions, or set MEMORYFIELD_STATE_DIR to another directory"
        )

    def _check(self, connection: sqlite3.Connection) -> int:
        """Return the version of the schema, 0 for a new file."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
        if version > SCHEMA_VERSION and application == _APPLICATION:
            raise NewerSchema(
                f"{self.path} has schema version {version}, this library knows up to {SCHEMA_VERSION}: update "
                "memoryfield-lab, or set MEMORYFIELD_STATE_DIR to another directory to begin a new history"
            )
        if empty and version == 0:
            return 0
        if application != _APPLICATION or version < 1:
            raise DamagedJournal(self._damaged("it was not written by this library"))
        return int(version)

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        for number in range(version, SCHEMA_VERSION):
            for statement in _MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number + 1}")
        if version == 0:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute("INSERT INTO about VALUES ('field', ?)", (_text(self.field),))

    # Steps

    def begin(
        self, verb: str, changes: Sequence[Recorded], note: str, who: str, target: int | None, largest: int, oldest: int
    ) -> int:
        """Keep a step as pending and return its id; the oldest steps go where the file outgrows its limits."""
        with self.writing() as connection:
            now = time.time_ns()
            prune(connection, now - oldest, largest, automatic=True)
            cursor = connection.execute(
                "INSERT INTO steps (time_ns, verb, note, who, state, target) VALUES (?, ?, ?, ?, ?, ?)",
                (now, verb, note, who, PENDING, target),
            )
            step = cursor.lastrowid
            assert step is not None
            for change in changes:
                before, after = keep(connection, change.before), keep(connection, change.after)
                last = latest(connection, change.filename, step)
                strayed = last[0] if last is not None and last[1] != before else None
                connection.execute(
                    "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        step,
                        change.filename,
                        before,
                        after,
                        change.mode,
                        _kept_ns(change.modified_ns),
                        change.new_mode,
                        _kept_ns(change.new_modified_ns),
                        strayed,
                    ),
                )
            return step

    def settle(self, step: int, state: str, remark: str = "") -> None:
        """Set what became of a pending step; one that undid or redid another sets that one's state too.

        Args:
            step: The step.
            state: Its state.
            remark: What to add to its note.
        """
        with self.writing(durable=False) as connection:
            row = step_row(connection, step)
            if row is None or row.state != PENDING:
                return
            note = "; ".join(part for part in (row.note, remark) if part)
            connection.execute("UPDATE steps SET state = ?, note = ? WHERE id = ?", (state, note, step))
            if state != DONE or row.target is None:
                return
            undoes = row.verb == "undo"
            connection.execute("UPDATE steps SET state = ? WHERE id = ?", (UNDONE if undoes else DONE, row.target))
            if not undoes:
                connection.execute(
                    "UPDATE steps SET state = ? WHERE target = ? AND verb = 'undo' AND state = ?",
                    (UNDONE, row.target, DONE),
                )

    def drop(self, step: int) -> None:
        """Forget a step that changed nothing."""
        with self.writing() as connection:
            drop(connection, step)

    def set_aside(self) -> Path | None:
        """Give a damaged file another name, so that a new one can begin, and return that name.

        The caller holds the field's lock.
        """
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for number in range(1, 1000):
            goal = self.path.with_name(f"damaged-{stamp}-{number}.sqlite3")
            if not os.path.lexists(goal):
                break
        try:
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}-journal", f"{goal}-journal")
            os.replace(self.path, goal)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HistoryError(self._unusable(f"it is damaged and cannot be renamed: {error.strerror}")) from error
        return goal

    def receive(self, other: Path) -> None:
        """Take over the file of a field that was moved here; the caller holds the locks of both."""
        old = JournalFile(other, self.field)
        with old.writing() as connection:
            connection.execute("UPDATE about SET value = ? WHERE key = 'field'", (_text(self.field),))
        try:
            places.private_directory(self.path.parent)
            os.replace(other, self.path)
        except OSError as error:
            raise HistoryError(self._unusable(error.strerror or str(error))) from error

    def aside(self) -> list[Path]:
        """Return the damaged files that were set aside."""
        return sorted(self.path.parent.glob("damaged-*.sqlite3"))

    def compact(self) -> int:
        """Give the space of what was pruned back to the disk; return the file's size in bytes."""
        with contextlib.suppress(HistoryError), self._opened() as connection:  # a full disk, a reader: another time
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()  # it holds parts of what was pruned
        return os.path.getsize(self.path)


def _kept_ns(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else clamped_ns(nanoseconds)


def _text(path: Path) -> str:
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")
