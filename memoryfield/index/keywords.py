"""The keyword index of a field: SQLite's FTS5 with BM25, in the user's cache directory.

It is made from the pages and thrown away without asking when it is damaged, foreign or of another version. What counts
as a word is in ``words.py``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memoryfield.errors import ForeignIndex, IndexFileError, PageNotFound
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import as_text
from memoryfield.format.snapshot import Snapshot
from memoryfield.index.connections import FileWatch, Stamp, gate, make_directory, reading, writing
from memoryfield.index.snippets import CLOSE, OPEN, Snippet, marked_snippet, plain_snippet
from memoryfield.index.words import display_text, fold, query_terms
from memoryfield.places import cache_directory, field_key

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.format.pages import PageSource

__all__ = ["KeywordIndex", "KeywordReport", "Snippet"]

SCHEMA_VERSION = 1
COLUMNS = ("name", "title", "summary", "body", "other")
WEIGHTS = (1.0, 2.0, 1.5, 1.0, 0.5)  # of COLUMNS, for BM25; one setting for all fields
_LONGEST_VALUE = 256 * 2**20  # bytes; pages are at most 16 MiB, folding makes Chinese three times as long
_CHUNK = 500  # pages written at a time
_SCHEMA = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE pages (id INTEGER PRIMARY KEY, filename TEXT NOT NULL UNIQUE, sha256 BLOB NOT NULL)",
    f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, "
    "tokenize=\"porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'\")",
    f"INSERT INTO about VALUES ('schema_version', '{SCHEMA_VERSION}')",
)
_SKIPPED_KEYS = frozenset(["title", "summary", "uuid"])  # the first two have columns, the last is no word

Result = TypeVar("Result")


@dataclass(frozen=True)
class KeywordReport:
    """What a sync of the keyword index did; page names."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    pages: int = 0


@dataclass(frozen=True)
class _Held:
    """What the file holds, without the words."""

    stamp: Stamp | None = None
    sha256: Mapping[str, bytes] = field(default_factory=dict)  # by filename


class KeywordIndex:
    """The keyword index of a field.

    It can be used from several threads; no connection is kept.

    Args:
        source: The pages.
        path: The file; by default in the cache directory.
    """

    def __init__(self, source: PageSource, path: str | os.PathLike[str] | None = None) -> None:
        self.source = source
        default = cache_directory() / "keywords" / f"{field_key(source.path)}.sqlite3"
        self.path = Path(os.path.abspath(default if path is None else Path(path).expanduser()))
        self._watch = FileWatch(self.path)
        self._sync_lock = threading.Lock()
        self._held: _Held | None = None
        self._snapshot: Snapshot | None = None
        self._current: tuple[Stamp | None, Snapshot] | None = None

    def __repr__(self) -> str:
        return f"<KeywordIndex: {str(self.path)!r}>"

    @property
    def snapshot(self) -> Snapshot | None:
        """The pages as the last sync saw them."""
        return self._snapshot

    # Bringing it up to date

    def sync(self, *, verify: bool = True, snapshot: Snapshot | None = None) -> KeywordReport:
        """Read what changed, and drop what is gone.

        Args:
            verify: Read and hash every page to find out; otherwise trust old stat data.
            snapshot: The pages as the caller saw them a moment ago, instead of looking again.

        Raises:
            IndexFileError: The cache directory cannot be written.
        """
        with self._sync_lock:
            if snapshot is None:
                snapshot = self.source.snapshot(known=self._snapshot, verify=verify)
            self._snapshot = snapshot
            current = self._current
            stamp = self._stamp()
            if (
                current is not None
                and stamp is not None
                and current[0] == stamp
                and (current[1] is snapshot or current[1].entries == snapshot.entries)
            ):
                return KeywordReport(pages=len(snapshot.entries))
            return self._repaired(lambda: self._sync(snapshot))

    def _sync(self, snapshot: Snapshot) -> KeywordReport:
        before = self._read_held().sha256
        entries = snapshot.entries
        changed = [name for name, entry in entries.items() if before.get(name) != entry.sha256]
        gone = [name for name in before if name not in entries]
        waiting = False
        if changed or gone or self._stamp() is None:
            for start in range(0, max(len(changed), 1), _CHUNK):
                rows = list(self._rows(changed[start : start + _CHUNK]))
                waiting = waiting or any(sha256 != entries[filename].sha256 for filename, sha256, _ in rows)
                waiting = waiting or len(rows) < len(changed[start : start + _CHUNK])
                with self._transaction() as connection:
                    _write(connection, rows, before, gone if start == 0 else [])
        held = self._read_held()
        is_current = not waiting and len(held.sha256) == len(entries)
        self._current = (held.stamp, snapshot) if is_current else None
        return KeywordReport(
            added=_names(name for name in changed if name not in before),
            updated=_names(name for name in changed if name in before),
            removed=_names(gone),
            pages=len(entries),
        )

    def _rows(self, filenames: Sequence[str]) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
        """Yield filename, hash and folded columns of pages as they are now."""
        for filename in filenames:
            try:
                page = self.source.read(filename)
            except PageNotFound:
                continue
            yield filename, bytes.fromhex(page.sha256), tuple(fold(display_text(text)) for text in _columns(page))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        make_directory(self.path.parent)
        with writing(self.path, create=True, longest=_LONGEST_VALUE) as (connection, counter):
            if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                for statement in _SCHEMA:
                    connection.execute(statement)
            else:
                _check_schema(connection, self.path, counter - 1)
            yield connection
            connection.execute("INSERT OR REPLACE INTO about VALUES ('counter', ?)", (str(counter),))

    def _read_held(self) -> _Held:
        stamp = self._stamp()
        held = self._held
        if stamp is None:
            return _Held()
        if held is not None and held.stamp == stamp:
            return held
        with contextlib.suppress(FileNotFoundError), self._reading() as (connection, stamp):
            self._held = _Held(stamp, dict(connection.execute("SELECT filename, sha256 FROM pages").fetchall()))
            return self._held
        return _Held()

    def _stamp(self) -> Stamp | None:
        try:
            return self._watch.stamp()
        except ForeignIndex:  # something else than a file; it is replaced when it is opened
            return None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, Stamp]]:
        with reading(self.path, longest=_LONGEST_VALUE) as (connection, stamp):
            _check_schema(connection, self.path, stamp.counter)
            yield connection, stamp

    def _repaired(self, action: Callable[[], Result]) -> Result:
        """Do something with the file; if it turns out to be unusable, throw it away and try again."""
        try:
            return action()
        except IndexFileError as error:
            if not _is_worthless(error):
                raise
        self.delete()
        return action()

    def delete(self) -> None:
        """Delete the file; the next sync makes it anew."""
        with gate(self.path):
            for ending in ("-journal", "-wal", "-shm", ""):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.path}{ending}")
            self._held = self._current = None

    # Using it

    def search(self, query: str, k: int, among: Collection[str] | None = None) -> list[tuple[str, float]]:
        """Return the *k* pages that BM25 ranks first for the words of *query*, best first; equal ones by name.

        Any text can be asked: there is no syntax. A page is found by any one of the words.

        Args:
            query: What somebody typed.
            k: How many.
            among: Choose from these pages only; names with or without ``.md``.

        Returns:
            Names and scores; higher is better. Empty if there are no words in *query*.
        """
        terms = query_terms(query)
        if not terms or k <= 0:
            return []
        if among is not None and not isinstance(among, (set, frozenset, dict)):
            among = frozenset(among)

        def find() -> list[tuple[str, float]]:
            found: list[tuple[str, float]] = []
            with self._reading() as (connection, _):
                rows = connection.execute(
                    f"SELECT pages.filename, -bm25(words, {', '.join(map(str, WEIGHTS))}) AS score "
                    "FROM words JOIN pages ON pages.id = words.rowid WHERE words MATCH ? "
                    "ORDER BY score DESC, pages.filename" + ("" if among is not None else " LIMIT ?"),
                    (" OR ".join(terms),) if among is not None else (" OR ".join(terms), k),
                )
                for filename, score in rows:
                    name = filename.removesuffix(PAGE_SUFFIX)
                    if among is None or name in among or filename in among:
                        found.append((name, score))
                        if len(found) == k:
                            break
            return found

        return self._answer(find, [])

    def snippets(self, query: str, pages: Sequence[Page]) -> dict[str, Snippet]:
        """Return for each page the piece that holds most of the words of *query*, by page name.

        A page with none of them, or one that is not indexed as it is now, gives its summary.
        """
        terms = query_terms(query)
        if not terms or not pages:
            return {page.name: plain_snippet(page) for page in pages}
        by_filename = {page.filename: page for page in pages}
        marks = ", ".join(f"highlight(words, {number}, '{OPEN}', '{CLOSE}')" for number in range(len(COLUMNS)))

        def find() -> dict[str, list[str]]:
            asked = list(by_filename)
            with self._reading() as (connection, _):
                rows = connection.execute(
                    f"SELECT pages.filename, pages.sha256, {marks} FROM words JOIN pages ON pages.id = words.rowid "
                    f"WHERE words MATCH ? AND pages.filename IN ({', '.join('?' * len(asked))})",
                    (" OR ".join(terms), *asked),
                )
                return {
                    filename: marked
                    for filename, sha256, *marked in rows
                    if sha256.hex() == by_filename[filename].sha256
                }

        nothing: dict[str, list[str]] = {}
        found = self._answer(find, nothing)
        return {
            page.name: _snippet(page, found[page.filename]) if page.filename in found else plain_snippet(page)
            for page in pages
        }

    def _answer(self, question: Callable[[], Result], nothing: Result) -> Result:
        """Ask the file; where it is missing or unusable, make it anew from the pages and ask again."""
        try:
            return question()
        except FileNotFoundError:
            return nothing
        except IndexFileError as error:
            if not _is_worthless(error):
                raise
        self.delete()
        self.sync()
        return question()


def _snippet(page: Page, marked: Sequence[str]) -> Snippet:
    """Return the best piece of the columns that SQLite marked the matches in; the body comes first."""
    texts = dict(zip(COLUMNS, zip(_columns(page), marked, strict=True), strict=True))
    for column in ("body", "summary", "other", "title"):
        text, with_marks = texts[column]
        if OPEN in with_marks:
            return marked_snippet(text, with_marks)
    return plain_snippet(page)


def _columns(page: Page) -> tuple[str, ...]:
    """Return the texts of a page in the order of COLUMNS; together they hold every word of it."""
    front = page.frontmatter
    title = page.title if page.title != page.name else ""
    summary = as_text(front.get("summary"))
    if page.frontmatter_error is not None:  # nobody can say what is a key there, but its words are to be found
        other = page.text[: max(0, len(page.text) - len(page.body))]
    else:
        others = (f"{key} {as_text(value)}" for key, value in front.items() if key not in _SKIPPED_KEYS)
        other = "\n".join(others)
    return (page.name, title, summary, page.body, other)


def _write(
    connection: sqlite3.Connection,
    rows: Sequence[tuple[str, bytes, tuple[str, ...]]],
    before: Mapping[str, bytes],
    gone: Sequence[str],
) -> None:
    """Write pages, but never over what another process wrote since we looked."""
    for filename in gone:
        found = connection.execute("SELECT id, sha256 FROM pages WHERE filename = ?", (filename,)).fetchone()
        if found is not None and found[1] == before[filename]:
            connection.execute("DELETE FROM words WHERE rowid = ?", (found[0],))
            connection.execute("DELETE FROM pages WHERE id = ?", (found[0],))
    for filename, sha256, texts in rows:
        found = connection.execute("SELECT id, sha256 FROM pages WHERE filename = ?", (filename,)).fetchone()
        if (None if found is None else found[1]) != before.get(filename):
            continue
        if found is not None:
            connection.execute("DELETE FROM words WHERE rowid = ?", (found[0],))
            connection.execute("UPDATE pages SET sha256 = ? WHERE id = ?", (sha256, found[0]))
            number = found[0]
        else:
            values = (filename, sha256)
            number = connection.execute("INSERT INTO pages (filename, sha256) VALUES (?, ?)", values).lastrowid
        connection.execute(
            f"INSERT INTO words (rowid, {', '.join(COLUMNS)}) VALUES (?{', ?' * len(COLUMNS)})", (number, *texts)
        )


def _check_schema(connection: sqlite3.Connection, path: Path, counter: int) -> None:
    """Make sure that a file is ours, and that nobody else wrote to it: SQLite would have counted that."""
    try:
        found = dict(connection.execute("SELECT key, value FROM about LIMIT 10").fetchall())
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # no such table
            raise
        found = {}
    if found != {"schema_version": str(SCHEMA_VERSION), "counter": str(counter)}:
        raise ForeignIndex(f"{path} is not a keyword index as this library left it.")


def _is_worthless(error: IndexFileError) -> bool:
    """Say whether a failure means that the file is of no use, rather than that it cannot be reached just now."""
    cause = error.__cause__
    if isinstance(error, ForeignIndex) or not isinstance(cause, sqlite3.Error):
        return isinstance(error, ForeignIndex)
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG)


def _names(filenames: Iterator[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(filename.removesuffix(PAGE_SUFFIX) for filename in filenames))
