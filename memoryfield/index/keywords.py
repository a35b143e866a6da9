"""The keyword index of a field: SQLite's FTS5 with BM25, in the user's cache directory.

It is made from the pages and thrown away without asking when it is damaged, foreign or of another version. What counts
as a word is in ``words.py``.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memoryfield.errors import ForeignIndex, IndexFileError, PageNotFound
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.snapshot import Snapshot
from memoryfield.index.columns import CREATE_WORDS, INSERT_WORDS, folded_texts
from memoryfield.index.connections import FileWatch, Stamp, gate, make_directory, reading, remove_database, writing
from memoryfield.index.snippets import Snippet, page_snippets
from memoryfield.index.termscores import PageRows, TermScores, read_page_rows, read_term_scores
from memoryfield.index.words import query_terms
from memoryfield.places import cache_directory, field_key

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource

__all__ = ["KeywordIndex", "KeywordReport", "Snippet", "search_together"]

SCHEMA_VERSION = 2
# Of COLUMNS, for BM25. Titles above bodies were tried and helped no field; the name mostly repeats the title.
WEIGHTS = (0.3, 1.0, 1.0, 1.0, 0.3)
_LONGEST_VALUE = 256 * 2**20  # bytes; pages are at most 16 MiB, folding makes Chinese three times as long
_CHUNK = 500  # pages written at a time
_TRIES = 5  # at a file that other processes throw away at the same time
_SCHEMA = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE pages (id INTEGER PRIMARY KEY, filename TEXT NOT NULL UNIQUE, sha256 BLOB NOT NULL)",
    CREATE_WORDS,
    f"INSERT INTO about VALUES ('schema_version', '{SCHEMA_VERSION}')",
)

_SEARCH = (
    f"SELECT pages.filename, -bm25(words, {', '.join(map(str, WEIGHTS))}) AS score "
    "FROM words JOIN pages ON pages.id = words.rowid WHERE words MATCH ? ORDER BY score DESC, pages.filename LIMIT ?"
)
_MOST_ROWS = 2**63 - 1  # SQLite's largest integer, far more than there can be pages
_LEAST_IDF = 1e-6  # what FTS5 takes for a term that more than half of all pages hold

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
        self._page_rows: tuple[Stamp, PageRows] | None = None
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
            yield filename, bytes.fromhex(page.sha256), folded_texts(page)

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
        for turn in range(_TRIES):
            seen = _inode(self.path)
            try:
                return action()
            except FileNotFoundError:  # thrown away under our hands
                continue
            except IndexFileError as error:
                self._mend(error, seen, turn)
        return action()

    def _mend(self, error: IndexFileError, seen: int | None, turn: int) -> None:
        """Throw the file away if that helps; raise *error* again if nothing will.

        Other processes may do the same just now. A file that is not the one that was found unusable is left alone, and
        a failure that comes from its being thrown away is worth another try.
        """
        if _is_worthless(error):
            if _inode(self.path) == seen:
                self.delete()
        elif _is_passing(error):
            time.sleep(0.01 * 2**turn)
        else:
            raise error

    def delete(self) -> None:
        """Delete the file; the next sync makes it anew.

        Raises:
            IndexFileError: Something stands in its place that cannot be deleted, such as a directory.
        """
        with gate(self.path):
            remove_database(self.path)
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
        chosen = _names_of(among)

        def find() -> list[tuple[str, float]]:
            found: list[tuple[str, float]] = []
            limit = -1 if chosen is not None else min(k, _MOST_ROWS)
            with self._reading() as (connection, _):
                for filename, score in connection.execute(_SEARCH, (" OR ".join(terms), limit)):
                    name = filename.removesuffix(PAGE_SUFFIX)
                    if chosen is None or name in chosen:
                        found.append((name, score))
                        if len(found) == k:
                            break
            return found

        return self._answer(find, [])

    def counts(self, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many pages there are, and how many of them hold each term."""

        def count() -> tuple[int, dict[str, int]]:
            with self._reading() as (connection, _):
                (pages,) = connection.execute("SELECT count(*) FROM pages").fetchone()
                sql = "SELECT count(*) FROM words WHERE words MATCH ?"
                return pages, {term: connection.execute(sql, (term,)).fetchone()[0] for term in terms}

        nothing: tuple[int, dict[str, int]] = (0, {})
        return self._answer(count, nothing)

    def weighted(self, factors: Mapping[str, float], among: Collection[str] | None = None) -> list[tuple[str, float]]:
        """Return every page that holds one of the terms, with the sum of its BM25 for each term times a factor."""
        chosen = _names_of(among)

        def find() -> list[tuple[str, float]]:
            sums: dict[str, float] = {}
            with self._reading() as (connection, _):
                for term, factor in factors.items():
                    for filename, score in connection.execute(_SEARCH, (term, -1)):
                        sums[filename] = sums.get(filename, 0.0) + factor * score
            names = ((filename.removesuffix(PAGE_SUFFIX), score) for filename, score in sums.items())
            return [(name, score) for name, score in names if chosen is None or name in chosen]

        return self._answer(find, [])

    def term_scores(self, terms: Iterable[str]) -> TermScores:
        """Return what each term gives each page that holds it, for many questions at once."""
        asked = list(terms)

        def find() -> TermScores:
            with self._reading() as (connection, stamp):
                held = self._page_rows
                if held is None or held[0] != stamp:
                    held = self._page_rows = (stamp, read_page_rows(connection))
                return read_term_scores(connection, held[1], asked, WEIGHTS)

        return self._answer(find, TermScores())

    def snippets(self, query: str, names: Iterable[str]) -> dict[str, Snippet]:
        """Return for each page that is there the piece that shows why it was found; see ``snippets.page_snippets``."""
        pages = []
        for name in names:
            with contextlib.suppress(PageNotFound):
                pages.append(self.source.read(name))
        return page_snippets(query, pages)

    def _answer(self, question: Callable[[], Result], nothing: Result) -> Result:
        """Ask the file; if it turns out to be unusable, make it anew from the pages and ask again."""
        for turn in range(_TRIES):
            seen = _inode(self.path)
            try:
                return question()
            except FileNotFoundError:
                if self._snapshot is None:  # never synced: that is for the caller to decide
                    return nothing
            except IndexFileError as error:
                self._mend(error, seen, turn)
            self.sync()
        return question()


def search_together(
    indexes: Sequence[KeywordIndex], query: str, k: int, among: Sequence[Collection[str] | None]
) -> list[list[tuple[str, float]]]:
    """Search several fields as if they were one, so that scores can be compared: how rare a word is counts over all.

    Args:
        indexes: One for each field.
        query: What somebody typed.
        k: How many pages of each field.
        among: For each field the pages to choose from.

    Returns:
        For each field names and scores, best first.
    """
    terms = query_terms(query)
    counts = [index.counts(terms) for index in indexes]
    pages = sum(count for count, _ in counts)
    whole = {term: _idf(pages, sum(held.get(term, 0) for _, held in counts)) for term in terms}
    answers = []
    for index, chosen, (own_pages, held) in zip(indexes, among, counts, strict=True):
        factors = {term: whole[term] / _idf(own_pages, number) for term, number in held.items() if number}
        found = index.weighted(factors, chosen)
        answers.append(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k])
    return answers


def term_scores_together(indexes: Sequence[KeywordIndex], terms: Sequence[str]) -> list[TermScores]:
    """Look up terms in several fields as if they were one; see ``search_together``."""
    found = [index.term_scores(terms) for index in indexes]
    if len(found) < 2:
        return found
    pages = sum(len(held.names) for held in found)
    answers = []
    for held in found:
        scores = {}
        for term, (rows, own) in held.terms.items():
            holding = sum(len(other.terms[term][0]) for other in found if term in other.terms)
            scores[term] = (rows, own * (_idf(pages, holding) / _idf(len(held.names), len(rows))))
        answers.append(TermScores(held.names, scores))
    return answers


def _idf(pages: int, holding: int) -> float:
    """Return how much a term counts, by FTS5's formula."""
    return max(math.log((pages - holding + 0.5) / (holding + 0.5)), _LEAST_IDF)


def _names_of(among: Collection[str] | None) -> frozenset[str] | None:
    return None if among is None else frozenset(name.removesuffix(PAGE_SUFFIX) for name in among)


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
        connection.execute(INSERT_WORDS, (number, *texts))


def _check_schema(connection: sqlite3.Connection, path: Path, counter: int) -> None:
    """Make sure that a file is ours, and that nobody else wrote to it: SQLite would have counted that."""
    try:
        found = dict(connection.execute("SELECT key, value FROM about LIMIT 10").fetchall())
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # no such table
            raise
        if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise FileNotFoundError(path) from None  # another process is about to make it
        found = {}
    if found != {"schema_version": str(SCHEMA_VERSION), "counter": str(counter)}:
        raise ForeignIndex(f"{path} is not a keyword index as this library left it.")


def _is_worthless(error: IndexFileError) -> bool:
    """Say whether a failure means that the file is of no use."""
    damaged = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG)
    return isinstance(error, ForeignIndex) or _code(error) in damaged


def _is_passing(error: IndexFileError) -> bool:
    """Say whether a failure may come from another process that throws the file away while we use it."""
    return _code(error) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _code(error: IndexFileError) -> int:
    """Return SQLite's code behind an error, without its details; -1 where SQLite is not the cause."""
    cause = error.__cause__
    return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF if isinstance(cause, sqlite3.Error) else -1


def _inode(path: Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def _names(filenames: Iterator[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(filename.removesuffix(PAGE_SUFFIX) for filename in filenames))
