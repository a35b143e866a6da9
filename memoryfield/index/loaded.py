"""Vectors in memory: one matrix with a name for each row, read from a file once and searched many times."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memoryfield.display import counted
from memoryfield.errors import EmbeddingFailed, QueryError
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename
from memoryfield.index import schema, store
from memoryfield.index.connections import Stamp
from memoryfield.index.matrix import MANY_ROWS, FloatArray, RowArray, SignBits, as_float32, best_rows, top_k
from memoryfield.index.passagestore import PAGE_SHARE, PassageMatrix


@dataclass
class _Memo:
    """What searches leave behind for the next one."""

    was_searched: bool = False
    bits: SignBits | None = None
    rows: tuple[Collection[str], RowArray] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """All usable vectors of an index at one moment. Read only.

    Attributes:
        names: Page names, sorted.
        matrix: (n_pages, dimensions) float32, unit rows, one for each name.
        digest: Tells one set of pages and contents from another, with the model and recipe; hexadecimal.
        bad_rows: Rows that were left out, by page name, and why.
        stamp: State of the file that they were read from.
        passages: Several vectors a page, in an index of recipe ``passages``; a page's score then is mostly its best
            passage's.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    digest: str = ""
    bad_rows: Mapping[str, str] = field(default_factory=dict)
    stamp: Stamp | None = None
    passages: PassageMatrix | None = None
    _memo: _Memo = field(default_factory=_Memo)

    def __repr__(self) -> str:
        return f"<Vectors: {counted(len(self.names), 'page')}, {self.matrix.shape[1]} dimensions>"

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Row number by page name."""
        return {name: row for row, name in enumerate(self.names)}

    def rows(self, among: Collection[str]) -> RowArray:
        """Return the row numbers of pages, ascending; names without a vector are left out.

        Args:
            among: Page names, with or without ``.md``. The answer for a ``frozenset`` is kept for the next call.
        """
        kept = self._memo.rows
        if kept is not None and kept[0] is among:
            return kept[1]
        position = self.positions.get
        found = {position(name.removesuffix(PAGE_SUFFIX)) for name in among}
        rows = np.array(sorted(row for row in found if row is not None), np.intp)
        if isinstance(among, frozenset):
            self._memo.rows = (among, rows)
        return rows

    def _bits(self) -> SignBits | None:
        """Return the bits for the first pass over many rows; not at the first search, which they would make slower."""
        memo = self._memo
        if len(self.names) >= MANY_ROWS:
            if memo.bits is None and memo.was_searched:
                memo.bits = SignBits(self.matrix)
            memo.was_searched = True
        return memo.bits

    def search(
        self, vector: npt.ArrayLike, k: int, among: Collection[str] | None = None, *, exact: bool = False
    ) -> tuple[list[str], FloatArray]:
        """Return the *k* pages nearest to *vector* by cosine, best first; equal ones by name.

        Args:
            vector: (dimensions,) of any length but zero.
            k: How many.
            among: Choose from these pages only.
            exact: Score every row, also where there are many; otherwise those that bits show to be near.

        Returns:
            Names and their cosines, float32.

        Raises:
            QueryError: *vector* has another number of dimensions.
            EmbeddingFailed: *vector* is zero, not finite or no array of real numbers.
        """
        query = as_float32(vector, "the question's model")
        if query.shape != self.matrix.shape[1:]:
            shapes = f"the query has shape {query.shape}, the index {self.matrix.shape[1:]}"
            raise QueryError(f"{shapes}: they are of different models.")
        with np.errstate(over="ignore", invalid="ignore"):
            length = float(np.sqrt(query @ query))
        if not 0.0 < length < np.inf:
            raise EmbeddingFailed("the question's vector is zero or not finite: the model cannot place it.")
        rows = None if among is None else self.rows(among)
        query = query / np.float32(length)
        if self.passages is not None:
            found, scores = best_rows(self.page_scores(query), rows, k)
        else:
            found, scores = top_k(self.matrix, query, k, rows=rows, bits=None if exact else self._bits())
        names = self.names
        return [names[row] for row in found.tolist()], scores

    def page_scores(self, queries: FloatArray) -> FloatArray:
        """Return the score of every page: (dimensions,) or (n, dimensions) unit rows -> (n_pages,) or (n, n_pages)."""
        scores: FloatArray = queries @ self.matrix.T
        if self.passages is None:
            return scores
        best = self.passages.best(queries @ self.passages.matrix.T)
        return _blended(scores, best)

    def rescored(self, rows: RowArray, query: FloatArray) -> tuple[RowArray, FloatArray]:
        """Return rows with their scores, best first, equal ones by row.

        A product over a matrix may round equal rows differently; here each row is worked out in the same way, so that
        equal pages have equal scores, and one question the same ranking alone or among many.

        Args:
            rows: Numbers of pages, ascending.
            query: (dimensions,) float32, a unit vector.
        """
        scores = self.exact_scores(rows, query)
        best = np.argsort(-scores, kind="stable")
        return rows[best], scores[best]

    def exact_scores(self, rows: RowArray, query: FloatArray) -> FloatArray:
        """Return the scores of some pages, each worked out in the same way; see ``rescored``."""
        scores: FloatArray = np.einsum("ij,j->i", self.matrix[rows], query)
        if self.passages is not None and len(rows):
            chosen, begins = self.passages.of(rows)
            products = np.einsum("ij,j->i", self.passages.matrix[chosen], query)
            scores = _blended(scores, np.maximum.reduceat(products, begins))
        return scores

    def best_span(self, name: str, vector: FloatArray) -> tuple[int, int] | None:
        """Return where the passage that is nearest to *vector* stands in a page's body; None for a page with one."""
        row = self.positions.get(name)
        if self.passages is None or row is None:
            return None
        first, last = self.passages.offsets[row : row + 2].tolist()
        if last - first < 2:
            return None
        products = np.einsum("ij,j->i", self.passages.matrix[first:last], vector)
        start, end = self.passages.spans[first + int(np.argmax(products))].tolist()
        return start, end

    def equal(self) -> tuple[tuple[str, ...], ...]:
        """Return groups of pages that have one and the same vector, sorted (FORMAT X7)."""
        first: dict[bytes, list[int]] = {}
        for row, start in enumerate(np.ascontiguousarray(self.matrix[:, :4])):
            first.setdefault(start.tobytes(), []).append(row)
        groups: dict[bytes, list[str]] = {}
        for rows in first.values():
            if len(rows) > 1:
                for row in rows:
                    groups.setdefault(self.matrix[row].tobytes(), []).append(self.names[row])
        return tuple(sorted(tuple(group) for group in groups.values() if len(group) > 1))


def _blended(page: FloatArray, best: FloatArray) -> FloatArray:
    """Return page scores; a page with one passage keeps its own cosine to the bit, or nearly."""
    return np.float32(1.0 - PAGE_SHARE) * best + np.float32(PAGE_SHARE) * page


def load_vectors(
    filenames: Iterable[str], blocks: Iterable[store.Block], model: schema.HasVectors, stamp: Stamp
) -> Vectors:
    """Put all usable vectors of an index into one matrix.

    Args:
        filenames: Of all rows.
        blocks: The rows, some hundred at a time.
        model: The model that the vectors are of.
        stamp: State of the file.
    """
    names = sorted([name.removesuffix(PAGE_SUFFIX) for name in filenames if is_page_filename(name)])
    position = {name + PAGE_SUFFIX: row for row, name in enumerate(names)}
    matrix = np.empty((len(names), model.dimensions), np.float32)
    hashes = [b""] * len(names)
    usable = np.zeros(len(names), np.bool_)
    bad: dict[str, str] = {}
    for block in blocks:
        problems = store.unusable(block.vectors)
        bad.update(block.misshapen)
        bad.update((block.filenames[number], why) for number, why in problems.items())
        rows = np.array([position.get(filename, -1) for filename in block.filenames], np.intp)
        rows[list(problems)] = -1
        for row, sha256 in zip(rows.tolist(), block.sha256, strict=True):
            if row >= 0:
                hashes[row] = sha256
        vectors = block.vectors
        if (rows < 0).any():
            vectors, rows = vectors[rows >= 0], rows[rows >= 0]
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        matrix[rows] = vectors / lengths[:, None].astype(np.float32)
        usable[rows] = True
    if not usable.all():
        kept = np.flatnonzero(usable).tolist()
        for row, old in enumerate(kept):  # in place: a second matrix might not fit
            matrix[row] = matrix[old]
        matrix, names, hashes = matrix[: len(kept)], [names[old] for old in kept], [hashes[old] for old in kept]
    matrix.flags.writeable = False
    digest = hashlib.sha256(f"{model.model_code}\0{model.dimensions}\0".encode())
    for name, sha256 in zip(names, hashes, strict=True):
        digest.update(name.encode() + b"\0" + sha256)
    shown = {filename.removesuffix(PAGE_SUFFIX): why for filename, why in bad.items()}
    return Vectors(tuple(names), matrix, digest.hexdigest(), shown, stamp)
