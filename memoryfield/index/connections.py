"""SQLite files opened for a moment: read only and without trust, or for one short write; and told apart from before.

Every connection lives inside a ``with`` statement. On POSIX systems closing any descriptor of a file drops all locks
that the process holds on it, SQLite's too; so whoever opens a database here, even to look at its header, first takes
the *gate* of that file, a lock within this process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from memoryfield.errors import ForeignIndex, IndexFileError
from memoryfield.format.sidefiles import SIDES, strange_side
from memoryfield.places import private_directory

BUSY_SECONDS = 30.0
LONGEST_VALUE = 4 * 2**20  # bytes of one SQLite value; the largest of ours is far below
PAGE_SIZE = 16384  # bytes; at 768 dimensions a third faster to load than SQLite's default of 4096
RACY_NS = 3_000_000_000  # FORMAT X10: younger time stamps prove nothing
_MAGIC = b"SQLite format 3\0"
_SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_OPEN_FLAGS = os.O_RDONLY | sum(
    getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
)


class Stamp(NamedTuple):
    """What tells one state of a database file from another.

    Attributes:
        inode: Number of the file.
        size: Bytes.
        mtime_ns: Modification time.
        ctime_ns: Time of the last change of attributes.
        counter: SQLite's count of committed changes, from the file's header.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    counter: int


class _Gate:
    """A lock that can be referred to weakly."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()


_gates: weakref.WeakValueDictionary[str, _Gate] = weakref.WeakValueDictionary()
_gates_lock = threading.Lock()


def _gate(path: Path) -> _Gate:
    # The directory is resolved and the name is not: a symbolic link in the file's place is never opened.
    key = os.path.join(os.path.realpath(path.parent), path.name)
    with _gates_lock:
        found = _gates.get(key)
        if found is None:
            found = _gates[key] = _Gate()
        return found


@contextlib.contextmanager
def gate(path: Path) -> Iterator[None]:
    """Keep other threads of this process from opening the database at *path*."""
    held = _gate(path)
    with held.lock:
        yield


class FileWatch:
    """Says which state a database file is in, mostly from its stat data alone (a microsecond).

    Time stamps of the last three seconds prove nothing; there the change counter in the header is read too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = _gate(path)
        self._name = os.fspath(path)
        self._last: tuple[Stamp, bool] | None = None

    def stamp(self) -> Stamp | None:
        """Return the file's stamp, or None where there is no such file."""
        last = self._last
        try:
            status = os.lstat(self._name)
            if last is not None and last[1] and last[0][:4] == _from_stat(status):
                return last[0]
            with self._held.lock:
                now = time.time_ns()
                found = read_stamp(self.path)
        except (FileNotFoundError, NotADirectoryError):
            self._last = None
            return None
        in_wal = found.counter < 0
        self._last = (found, not in_wal and found.mtime_ns < now - RACY_NS)
        return found


def read_stamp(path: Path) -> Stamp:
    """Return the stamp of a database from its header; the caller holds the gate.

    Raises:
        FileNotFoundError: No such file.
        ForeignIndex: A symbolic link, or something else than a regular file.
    """
    with _descriptor(path) as descriptor:
        return descriptor_stamp(descriptor, path)


def descriptor_stamp(descriptor: int, path: Path) -> Stamp:
    """Return the stamp of an open database; the counter is negative where it is in WAL mode."""
    status = os.fstat(descriptor)
    header = _head(descriptor)
    counter = int.from_bytes(header[24:28], "big") if len(header) >= 28 else 0
    if header[18:19] == b"\2":
        with contextlib.suppress(OSError):
            side = os.lstat(f"{path}-wal")
            counter = hash((counter, side.st_size, side.st_mtime_ns))
        counter = -1 - abs(counter)
    return Stamp(*_from_stat(status), counter)


def _from_stat(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextlib.contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    try:
        status = os.lstat(path)
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, error.filename) from error
    if not stat.S_ISREG(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise ForeignIndex(f"{path} is {what}; it was left alone. Remove it, or choose another place for the index.")
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _head(descriptor: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, 100, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 100)


@contextlib.contextmanager
def reading(path: Path, *, longest: int = LONGEST_VALUE) -> Iterator[tuple[sqlite3.Connection, Stamp]]:
    """Open a database of unknown origin read only, in one read transaction.

    A file in WAL mode is read from a private copy, so that no side files appear beside it.

    Args:
        path: The file.
        longest: Bytes of the longest value that SQLite hands out.

    Yields:
        The connection, and the stamp of the state that it reads.

    Raises:
        FileNotFoundError: No such file.
        ForeignIndex: A symbolic link, not an SQLite database, or something else than files beside it.
        IndexFileError: Damaged, or locked for too long.
    """
    with gate(path), contextlib.ExitStack() as stack:
        _check_sides(path)
        descriptor = stack.enter_context(_descriptor(path))
        stamp, header = descriptor_stamp(descriptor, path), _head(descriptor)
        if header and not header.startswith(_MAGIC):
            raise ForeignIndex(
                f"{path} is not an SQLite database (it begins with {header[:12]!r}); it was left alone. "
                "Move it away, or choose another place for the index."
            )
        if header[18:19] == b"\2":
            connection = stack.enter_context(_copy_opened(path, longest))
        else:
            connection = stack.enter_context(_opened_read_only(path, longest))
            stamp = descriptor_stamp(descriptor, path)  # nobody can write any more
        with database_errors(path):
            yield connection, stamp


@contextlib.contextmanager
def _opened_read_only(path: Path, longest: int, *, recover: bool = True) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(_connect(path, "ro")) as connection:
        try:
            with database_errors(path):
                _distrust(connection, longest)
                connection.execute("PRAGMA query_only=ON")
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                needs_recovery = False
        except IndexFileError as error:
            cause = error.__cause__
            # A process was killed while it wrote: the journal beside the file has to be played back first.
            needs_recovery = (
                recover
                and isinstance(cause, sqlite3.OperationalError)
                and cause.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
                and os.path.lexists(f"{path}-journal")
            )
            if not needs_recovery:
                raise
        if not needs_recovery:
            yield connection
            return
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        with _opened_for_writing(path, longest) as connection:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        with _opened_read_only(path, longest, recover=False) as connection:
            yield connection
    else:
        with _copy_opened(path, longest) as connection:
            yield connection


@contextlib.contextmanager
def _copy_opened(path: Path, longest: int) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database and its side file, which SQLite then brings in order."""
    with tempfile.TemporaryDirectory(prefix="memoryfield-") as folder:
        copy = Path(folder) / "copy.sqlite3"
        for ending in ("", "-wal", "-journal"):
            side = Path(f"{path}{ending}")
            if side.is_file() and not side.is_symlink():
                shutil.copyfile(side, f"{copy}{ending}")
        with _opened_for_writing(copy, longest, shown=path) as connection:
            connection.execute("BEGIN")
            yield connection


@contextlib.contextmanager
def writing(
    path: Path, *, create: bool = False, longest: int = LONGEST_VALUE
) -> Iterator[tuple[sqlite3.Connection, int]]:
    """Open a database for one short write: rollback journal, one immediate transaction, committed at the end.

    The caller must have looked at the file through :func:`reading` first, if it was there.

    Args:
        path: The file.
        create: Make the file if there is none.
        longest: Bytes of the longest value that SQLite takes.

    Yields:
        The connection, and SQLite's count of changes that the file will have after the commit.

    Raises:
        FileNotFoundError: No such file, and *create* is not set.
        ForeignIndex: A symbolic link, or something else than files beside it.
        IndexFileError: Damaged, locked for too long, or not writable.
    """
    with gate(path):
        if create and not os.path.lexists(path):
            # Made by us and not by SQLite: two processes must not both take themselves for the first.
            with _write_errors(path), contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with _descriptor(path) as descriptor, _opened_for_writing(path, longest) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                # The descriptor is closed after the connection, when there are no locks left to lose.
                counter = descriptor_stamp(descriptor, path).counter + 1
                with database_errors(path):
                    yield connection, counter
                    connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


@contextlib.contextmanager
def _opened_for_writing(path: Path, longest: int, *, shown: Path | None = None) -> Iterator[sqlite3.Connection]:
    _check_journal(path)
    with contextlib.closing(_connect(path, "rw")) as connection, database_errors(shown or path):
        _distrust(connection, longest)
        if not os.path.getsize(path):
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        (journal,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        if journal != "delete":
            raise IndexFileError(
                f"{shown or path} is held in {journal!r} journal mode by another program; "
                "close that program and try again."
            )
        connection.execute("PRAGMA synchronous=NORMAL")
        yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    _check_sides(path)
    try:
        return sqlite3.connect(
            f"{_uri(path)}?mode={mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=16
        )
    except sqlite3.Error as error:
        raise IndexFileError(f"{path} cannot be opened: {error}.") from error


def _uri(path: Path) -> str:
    """Return the path as SQLite's URI, every byte quoted that could mean something there."""
    absolute = os.fsencode(os.path.abspath(path))
    if os.name == "nt":
        absolute = b"/" + absolute.replace(b"\\", b"/")
    return "file:" + quote(absolute, safe="/:" if os.name == "nt" else "/")


def _distrust(connection: sqlite3.Connection, longest: int) -> None:
    """Take from a file whose schema and cells may be hostile what it could do harm with (FORMAT X11)."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        connection.execute(f"PRAGMA {setting}")


def _check_sides(path: Path) -> None:
    """Refuse what is no regular file under a name of SQLite's beside a database: opening a pipe waits for ever."""
    side = strange_side(path)
    if side is not None:
        raise ForeignIndex(f"{side} is not a regular file; nothing was altered. Remove it, it is no part of an index.")


def remove_database(path: Path) -> None:
    """Delete a database and what SQLite left beside it; the caller holds the gate.

    Raises:
        IndexFileError: That is not possible.
    """
    for ending in (*SIDES, ""):
        try:
            os.unlink(f"{path}{ending}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise IndexFileError(
                f"{path}{ending} cannot be deleted ({error.strerror or error}): remove it, or choose another place "
                "(for caches with MEMORYFIELD_CACHE_DIR)."
            ) from error


def _check_journal(path: Path) -> None:
    """Refuse a journal that would make SQLite touch other files when it plays it back.

    A journal may name a second one, of a transaction over several databases, which is deleted at the end. None of ours
    does; one that came with a field could name any file.
    """
    journal = f"{path}-journal"
    _check_sides(path)
    try:
        size = os.lstat(journal).st_size
        with open(journal, "rb") as file:
            file.seek(max(0, size - 8))
            end = file.read(8)
    except OSError:  # none is there, or another process has just finished with it; SQLite says what cannot be read
        return
    if end != _SUPER_JOURNAL_MAGIC:
        return
    raise ForeignIndex(f"{journal} is not a journal of ours; nothing was altered. Delete it together with {path.name}.")


@contextlib.contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences about the file at *path*."""
    try:
        yield
    except UnicodeDecodeError as error:  # in a name or in SQLite's own message about one
        message = f"{path} is damaged ({error.reason} in a text). It is a cache: delete it to have it made anew."
        raise IndexFileError(message) from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"another process holds {path} for more than {BUSY_SECONDS:.0f} s; try again when it is done."
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG):
            message = f"{path} is damaged ({error}). It is a cache: delete it to have it made anew."
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
            message = f"{path} cannot be opened as needed ({error}): look at the permissions, or choose another place."
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            message = f"{path} cannot be read or written ({error}): look at the disk and its free space."
        else:
            message = f"{path} cannot be used as an index: {error}."
        raise IndexFileError(message) from error


def make_directory(path: Path) -> None:
    """Make a directory of ours with its parents.

    Raises:
        IndexFileError: That is not possible.
    """
    with _write_errors(path):
        private_directory(path)


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IndexFileError(
            f"{path} cannot be made ({error.strerror or error}): look at the permissions, or choose another place "
            "(for caches with MEMORYFIELD_CACHE_DIR)."
        ) from error
