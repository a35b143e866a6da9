"""The passages of a vector index file of recipe ``passages``, read and written.

The table ``passages`` has a row for each page: where its passages stand, and their vectors one after the other; none
where there is one passage, whose vector then is the page's in ``pages``. That has the specification's form, so that
other tools read the file as they read any index: a page's vector is the mean of its passages'.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memoryfield.index import schema
from memoryfield.index.matrix import FloatArray, RowArray

PAGE_SHARE = 0.2  # of the page's vector in its score; the rest is its best passage's
_FLOAT32 = np.dtype("<f4")
_SPAN = np.dtype("<i4")
_MOST = 4096  # passages of a page that are believed
_ORPHANS = (
    "DELETE FROM passages WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.filename = passages.filename "
    "AND pages.sha256_hash = passages.sha256_hash)"
)
_ROWS = (
    "SELECT pages.filename, passages.spans, passages.embeddings FROM pages LEFT JOIN passages "
    "ON passages.filename = pages.filename AND passages.sha256_hash = pages.sha256_hash "
    "AND typeof(spans) = 'blob' AND typeof(embeddings) = 'blob' WHERE typeof(pages.filename) = 'text'"
)


class PassageRow(NamedTuple):
    """The passages of one page, as stored."""

    filename: str
    sha256: bytes
    spans: bytes
    embeddings: bytes


def passage_row(filename: str, sha256: bytes, spans: Sequence[tuple[int, int]], vectors: FloatArray) -> PassageRow:
    """Return a row to write; *vectors* has one row for each span."""
    stored = b"" if len(spans) == 1 else vectors.astype(_FLOAT32).tobytes()
    return PassageRow(filename, sha256, np.array(spans, _SPAN).tobytes(), stored)


def page_vector(vectors: FloatArray) -> FloatArray:
    """Return the vector of a page with these passages: their mean, of length 1."""
    first: FloatArray = vectors[0]
    if len(vectors) == 1:
        return first
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    mean = (vectors / lengths[:, None]).mean(axis=0)
    length = float(np.sqrt(mean @ mean))
    return first if length < 1e-6 else (mean / length).astype(np.float32)


def write_passages(connection: sqlite3.Connection, rows: Iterable[PassageRow]) -> None:
    """Insert rows, or replace those of the same pages."""
    connection.executemany("INSERT OR REPLACE INTO passages VALUES (?, ?, ?, ?)", rows)


def copy_passages(connection: sqlite3.Connection, filename: str, like: str, sha256: bytes) -> bool:
    """Give a page the passages of another page of the same content; say whether they were there."""
    done = connection.execute(
        "INSERT OR REPLACE INTO passages SELECT ?, sha256_hash, spans, embeddings FROM passages "
        "WHERE filename = ? AND sha256_hash = ?",
        (filename, like, sha256),
    )
    return done.rowcount == 1


def drop_orphans(connection: sqlite3.Connection) -> None:
    """Drop the passages of contents that have no row any more."""
    connection.execute(_ORPHANS)


def read_passages(
    connection: sqlite3.Connection, dimensions: int
) -> tuple[dict[str, tuple[npt.NDArray[np.int32], FloatArray]], dict[str, str]]:
    """Return spans and vectors by filename, and for the pages whose passages cannot be used why.

    The vectors of a page with one passage are empty: its vector stands in ``pages``.
    """
    found: dict[str, tuple[npt.NDArray[np.int32], FloatArray]] = {}
    bad: dict[str, str] = {}
    if not schema.has_table(connection, "passages"):
        return {}, {name: "no passages" for (name,) in connection.execute("SELECT CAST(filename AS TEXT) FROM pages")}
    for filename, spans, stored in connection.execute(_ROWS):
        if spans is None:
            bad[filename] = "no passages"
            continue
        count, odd = divmod(len(spans), 2 * _SPAN.itemsize)
        wanted = 0 if count == 1 else count * dimensions * _FLOAT32.itemsize
        if odd or not 0 < count <= _MOST or len(stored) != wanted:
            bad[filename] = f"{len(stored):,} bytes instead of {wanted:,} for {count:,} passages"
            continue
        places = np.frombuffer(spans, _SPAN).reshape(count, 2).astype(np.int32)
        vectors = np.frombuffer(stored, _FLOAT32).reshape(-1, dimensions).astype(np.float32)
        lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        if (places < 0).any() or (places[:, 0] > places[:, 1]).any():
            bad[filename] = "passages that end before they begin"
        elif not ((lengths > 1e-30) & (lengths < 1e30)).all():
            bad[filename] = "a passage whose vector is zero or not finite"
        else:
            found[filename] = (places, vectors / np.sqrt(lengths)[:, None].astype(np.float32))
    return found, bad


@dataclass(frozen=True, eq=False)
class PassageMatrix:
    """The passages of all pages at one moment.

    Attributes:
        matrix: (n_passages, dimensions) float32, unit rows, page by page in the order of the pages.
        offsets: (n_pages + 1,) where the passages of each page begin.
        spans: (n_passages, 2) int32, where each stands in the body of its page, in characters.
    """

    matrix: FloatArray
    offsets: RowArray
    spans: npt.NDArray[np.int32]

    def best(self, products: FloatArray) -> FloatArray:
        """Return the highest product of each page: (..., n_passages) -> (..., n_pages)."""
        if len(self.offsets) == 1:
            return np.empty((*products.shape[:-1], 0), np.float32)
        found: FloatArray = np.maximum.reduceat(products, self.offsets[:-1], axis=-1)
        return found

    def of(self, rows: RowArray) -> tuple[RowArray, RowArray]:
        """Return the numbers of the passages of some pages, and where each page's begin among these."""
        counts = self.offsets[rows + 1] - self.offsets[rows]
        begins = np.cumsum(counts) - counts
        return np.repeat(self.offsets[rows] - begins, counts) + np.arange(int(counts.sum())), begins


def gather_passages(
    names: Sequence[str], matrix: FloatArray, held: dict[str, tuple[npt.NDArray[np.int32], FloatArray]], ending: str
) -> PassageMatrix:
    """Put passages in the order of the pages; a page without any has its own vector as the only one.

    Args:
        names: Page names, in the order of *matrix*.
        matrix: (n_pages, dimensions) float32, unit rows.
        held: Spans and vectors by filename.
        ending: Of filenames.
    """
    nothing = (np.zeros((1, 2), np.int32), np.empty((0, matrix.shape[1]), np.float32))
    rows = [held.get(name + ending, nothing) for name in names]
    counts = np.array([len(spans) for spans, _ in rows], np.intp)
    offsets = np.concatenate([np.zeros(1, np.intp), np.cumsum(counts)])
    whole = np.empty((int(offsets[-1]), matrix.shape[1]), np.float32)
    for number, (_, vectors) in enumerate(rows):
        whole[offsets[number] : offsets[number + 1]] = vectors if len(vectors) else matrix[number]
    whole.flags.writeable = False
    spans = np.concatenate([spans for spans, _ in rows]) if rows else np.empty((0, 2), np.int32)
    return PassageMatrix(whole, offsets, spans)
