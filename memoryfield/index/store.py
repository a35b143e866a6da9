"""The rows of a vector index file, read and written (FORMAT X2, X3, X7). What the tables are is in ``schema.py``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memoryfield.format.dates import clamped_ns
from memoryfield.format.snapshot import RACY_WINDOW_NS, Entry
from memoryfield.index import schema
from memoryfield.index.connections import Stamp
from memoryfield.index.passagestore import read_passages
from memoryfield.index.recipes import PASSAGES
from memoryfield.index.schema import HasVectors, Meta, check_model, check_schema, mismatch

FLOAT32 = np.dtype("<f4")
LONGEST_FILENAME = 255
INODE_MASK = 2**63 - 1  # SQLite's integers have a sign; some file systems number beyond them
_NOT_SEEN = (-1, -1, -1, -1)
_BATCH = 256  # rows read at a time: large enough for numpy to work in bulk, small beside the matrix
_SEEN = (
    "SELECT CAST(filename AS TEXT), CAST(sha256_hash AS BLOB), CAST(size AS INTEGER), CAST(mtime_ns AS INTEGER), "
    f"CAST(ctime_ns AS INTEGER), CAST(inode AS INTEGER), max(mtime_ns, ctime_ns) >= seen_ns - {RACY_WINDOW_NS} "
    "FROM sync_state"
)
_NOTE = "INSERT OR REPLACE INTO sync_state VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
_NOTE_IF_CURRENT = (
    "INSERT OR REPLACE INTO sync_state SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE "
    "EXISTS (SELECT 1 FROM pages WHERE filename = ?1 AND sha256_hash = ?2) OR "
    "EXISTS (SELECT 1 FROM refused WHERE filename = ?1 AND sha256_hash = ?2)"
)
_IS_VECTOR = "typeof(embedding) = 'blob' AND length(embedding) = :bytes"
_HAS_NAME = f"typeof(filename) = 'text' AND length(filename) <= {LONGEST_FILENAME}"


class Row(NamedTuple):
    """One row to write."""

    filename: str
    frontmatter: str
    last_modified: str
    sha256: bytes
    embedding: bytes


@dataclass(frozen=True)
class State:
    """What an index file holds, without the vectors.

    Attributes:
        stamp: State of the file that this was read from; None where there is no file yet.
        meta: Ours, or None in a file that another tool made.
        entries: By filename, the content and stat data of each row and each refused page; size -1 where not known.
        racy: Filenames whose stat data were too young to prove anything later.
        refused: By filename, why there is no vector.
        bad: By filename, what is wrong with a row that has to be made anew.
        modified: ``last_modified`` of the rows, where a stranger wrote and ours cannot be relied on; else None.
    """

    stamp: Stamp | None = None
    meta: Meta | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    racy: frozenset[str] = frozenset()
    refused: dict[str, str] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    modified: dict[str, str] | None = None


# Reading


def read_state(
    connection: sqlite3.Connection, path: Path, stamp: Stamp, model: HasVectors, recipe: str, *, trust: bool = True
) -> State:
    """Return what the file holds; where a stranger wrote, after a look at every row.

    Args:
        connection: The file, in a read transaction.
        path: Its place.
        stamp: Its state.
        model: The model whose vectors it should hold.
        recipe: The text that they should be of.
        trust: Believe our own tables where nobody seems to have written since.

    Raises:
        ForeignIndex: Not an index of this format.
        NewerSchema: From a newer version of this library.
        ModelMismatch: The vectors are not of this model.
    """
    meta = check_schema(connection, path)
    if meta is not None:
        check_model(meta, path, model, recipe)
    elif not schema.has_table(connection, "pages"):
        return State(stamp)
    entries: dict[str, Entry] = {}
    racy: frozenset[str] = frozenset()
    refused: dict[str, str] = {}
    if meta is not None and schema.has_table(connection, "sync_state") and schema.has_table(connection, "refused"):
        rows = connection.execute(_SEEN).fetchall()
        entries = {row[0]: Entry._make(row[1:6]) for row in rows}
        racy = frozenset([row[0] for row in rows if row[6]])
        reasons = "SELECT CAST(filename AS TEXT), CAST(reason AS TEXT) FROM refused"
        refused = {name: reason for name, reason in connection.execute(reasons) if name in entries}
        if trust and meta.counter == stamp.counter:
            return State(stamp, meta, entries, racy, refused)
    current: dict[str, Entry] = {name: entry for name, entry in entries.items() if name in refused}
    modified: dict[str, str] = {}
    for filename, sha, last_modified in connection.execute(
        f"SELECT filename, sha256_hash, last_modified FROM pages WHERE {_HAS_NAME}"
    ):
        known = entries.get(filename)
        same = known is not None and known.sha256 == sha and filename not in refused
        current[filename] = known if same and known is not None else Entry(sha, *_NOT_SEEN)
        modified[filename] = last_modified
        refused.pop(filename, None)
    bad: dict[str, str] = {}
    for block in read_blocks(connection, path, model, recipe, has_meta=meta is not None):
        bad.update(block.misshapen)
        bad.update((block.filenames[number], why) for number, why in unusable(block.vectors).items())
    if recipe == PASSAGES:
        lacking = read_passages(connection, model.dimensions)[1]
        bad.update((filename, why) for filename, why in lacking.items() if filename in modified)
    return State(stamp, meta, current, racy, refused, bad, modified)


class Block(NamedTuple):
    """Some hundred rows.

    Attributes:
        filenames: Of the rows that have a vector of the right length.
        sha256: Hash of the content that each was made from, as stored.
        vectors: (n_rows, dimensions) float32, as stored.
        misshapen: By filename, what stands in the place of a vector in the other rows.
    """

    filenames: list[str]
    sha256: list[bytes]
    vectors: npt.NDArray[np.float32]
    misshapen: dict[str, str]


def read_blocks(
    connection: sqlite3.Connection, path: Path, model: HasVectors, recipe: str, *, has_meta: bool
) -> Iterator[Block]:
    """Yield all rows in one pass; what is no vector of the right length is not read.

    Raises:
        ModelMismatch: No row at all has the length of the model's vectors, and the file does not say whose they are.
    """
    bytes_each = model.dimensions * FLOAT32.itemsize
    cursor = connection.execute(
        f"SELECT filename, CAST(sha256_hash AS BLOB), CASE WHEN {_IS_VECTOR} THEN embedding END, "
        f"typeof(embedding), length(embedding) FROM pages WHERE {_HAS_NAME}",
        {"bytes": bytes_each},
    )
    fits = False
    other: float | None = None
    while rows := cursor.fetchmany(_BATCH):
        good = [row for row in rows if row[2] is not None]
        fits = fits or bool(good)
        misshapen = {}
        if len(good) < len(rows):
            for filename, _, blob, kind, length in rows:
                if blob is None:
                    is_blob = kind == "blob"
                    misshapen[filename] = f"{length} bytes instead of {bytes_each}" if is_blob else f"{kind}, no vector"
                    other = length / FLOAT32.itemsize if is_blob else other
        joined = np.frombuffer(b"".join([row[2] for row in good]), FLOAT32).reshape(len(good), model.dimensions)
        vectors = joined.astype(np.float32, copy=False)
        yield Block([row[0] for row in good], [row[1] for row in good], vectors, misshapen)
    if other is not None and not fits and not has_meta:
        made_by = path.name.removesuffix(".sqlite3")
        raise mismatch(path, f"{made_by!r} ({other:g} dimensions)", model, recipe)


def hashes(connection: sqlite3.Connection, meta: Meta | None, stamp: Stamp) -> dict[str, bytes]:
    """Return, by filename, the hash of the content that each row was made from, or for which there is no vector."""
    own = meta is not None and schema.has_table(connection, "sync_state")
    if own and meta is not None and meta.counter == stamp.counter:
        return dict(connection.execute("SELECT filename, sha256_hash FROM sync_state").fetchall())
    found = dict(connection.execute(f"SELECT filename, sha256_hash FROM pages WHERE {_HAS_NAME}").fetchall())
    if schema.has_table(connection, "refused") and own:
        found = {**dict(connection.execute("SELECT filename, sha256_hash FROM refused").fetchall()), **found}
    return found


def filenames(connection: sqlite3.Connection) -> list[str]:
    """Return the filenames of all rows."""
    return [name for (name,) in connection.execute(f"SELECT filename FROM pages WHERE {_HAS_NAME}")]


def unusable(vectors: npt.NDArray[np.float32]) -> dict[int, str]:
    """Return, by row number, why a vector cannot be used (FORMAT X7)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
        suspects = np.flatnonzero(~((squares > 1e-30) & (squares < 1e30)))
    problems = {}
    for row in suspects.tolist():
        if not np.isfinite(vectors[row]).all():
            problems[row] = "not finite"
        elif not vectors[row].any():
            problems[row] = "zero"
    return problems


# Writing, inside a transaction that the caller opened


def reconcile(connection: sqlite3.Connection) -> None:
    """Bring ours in line with ``pages`` after a stranger wrote there; what is not known of a row is marked so."""
    connection.execute(f"DELETE FROM pages WHERE NOT ({_HAS_NAME})")
    connection.execute("DELETE FROM refused WHERE filename IN (SELECT filename FROM pages)")
    connection.execute(
        "DELETE FROM sync_state WHERE filename NOT IN (SELECT filename FROM refused) AND NOT EXISTS ("
        "SELECT 1 FROM pages WHERE pages.filename = sync_state.filename AND pages.sha256_hash = sync_state.sha256_hash)"
    )
    connection.execute(
        "INSERT INTO sync_state SELECT filename, sha256_hash, -1, -1, -1, -1, -1 FROM pages "
        "WHERE filename NOT IN (SELECT filename FROM sync_state)"
    )


def stored_sha256(connection: sqlite3.Connection, filename: str) -> bytes | None:
    """Return the hash in a row, or None where there is no row."""
    row: Any = connection.execute("SELECT sha256_hash FROM pages WHERE filename = ?", (filename,)).fetchone()
    return None if row is None else row[0]


def write_rows(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows, or replace those of the same pages."""
    connection.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)", rows)
    connection.executemany("DELETE FROM refused WHERE filename = ?", [(row.filename,) for row in rows])


def copy_row(connection: sqlite3.Connection, filename: str, like: str, sha256: bytes, last_modified: str) -> bool:
    """Give a page the row of another page of the same content; say whether that was still there."""
    done = connection.execute(
        "INSERT OR REPLACE INTO pages SELECT ?, frontmatter, ?, sha256_hash, embedding FROM pages "
        "WHERE filename = ? AND sha256_hash = ?",
        (filename, last_modified, like, sha256),
    )
    connection.execute("DELETE FROM refused WHERE filename = ?", (filename,))
    return done.rowcount == 1


def write_refused(connection: sqlite3.Connection, filename: str, sha256: bytes, reason: str) -> None:
    """Note that the model gives no usable vector for a content, and drop the row of an earlier one."""
    connection.execute("DELETE FROM pages WHERE filename = ?", (filename,))
    connection.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, ?)", (filename, sha256, reason))


def write_modified(connection: sqlite3.Connection, filename: str, sha256: bytes, last_modified: str) -> None:
    """Set the modification time of a row whose content did not change."""
    connection.execute(
        "UPDATE pages SET last_modified = ? WHERE filename = ? AND sha256_hash = ?", (last_modified, filename, sha256)
    )


def write_seen(
    connection: sqlite3.Connection, entries: Iterable[tuple[str, Entry]], seen_ns: int, *, sure: bool = False
) -> None:
    """Note the stat data that pages were found with.

    Args:
        connection: The index, in a write transaction.
        entries: Filenames and what was found.
        seen_ns: When that was.
        sure: The rows were written in this transaction; otherwise a row of another content is left out.
    """
    connection.executemany(
        _NOTE if sure else _NOTE_IF_CURRENT,
        [(name, *storable(entry), seen_ns) for name, entry in entries],
    )


def storable(entry: Entry) -> Entry:
    """Return stat data as SQLite's integers can hold them; some file systems have times of a million years."""
    sha256, size, mtime_ns, ctime_ns, inode = entry
    return Entry(sha256, size, clamped_ns(mtime_ns), clamped_ns(ctime_ns), inode & INODE_MASK)


def remove(connection: sqlite3.Connection, filename: str, sha256: bytes) -> None:
    """Drop everything about a page that is gone, unless another content of it was written meanwhile."""
    for table in ("pages", "refused", "sync_state"):
        connection.execute(f"DELETE FROM {table} WHERE filename = ? AND sha256_hash = ?", (filename, sha256))
