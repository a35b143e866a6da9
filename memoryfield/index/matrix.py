"""The k rows of a matrix that are nearest to a query: one product, or one bit a dimension first for many rows.

A bit says whether a value is above its column's mean. Rows that agree with the query in most bits are scored exactly;
the scores are always those of the floats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
RowArray = npt.NDArray[np.intp]

MANY_ROWS = 20_000  # from here on bits come first; below, the product costs less than a millisecond or two
_CANDIDATE_SHARE = 100  # one row in so many is scored exactly
_FEWEST_CANDIDATES = 500
_GATHER = 2_000  # so few chosen rows are cheaper to copy out than to score all
_BLOCK = 1 << 17  # rows whose distances are worked out at a time; keeps the intermediate arrays in the cache
_WORDS_IN_BYTE = 3  # sums of the bits of three 64-bit words fit into one byte


class SignBits:
    """One bit for each value of a matrix, packed, and the distances of a query to all rows in bits.

    Args:
        matrix: (n_rows, dimensions) float32.
    """

    def __init__(self, matrix: FloatArray) -> None:
        rows, dimensions = matrix.shape
        self._mean = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
        # One row of words for each 64 dimensions: a pass over one word of all rows is a pass over contiguous memory.
        self._words = np.empty((-(-dimensions // 64), rows), np.uint64)
        for start in range(0, rows, 4096):
            self._words[:, start : start + 4096] = self._pack(matrix[start : start + 4096]).T

    def _pack(self, block: FloatArray) -> npt.NDArray[np.uint64]:
        packed = np.packbits(block > self._mean, axis=1)
        padded = np.zeros((len(block), self._words.shape[0] * 8), np.uint8)
        padded[:, : packed.shape[1]] = packed
        return padded.view(np.uint64)

    def distances(self, query: FloatArray) -> npt.NDArray[np.int32]:
        """Return in how many bits each row differs from *query*, (dimensions,) float32."""
        wanted = self._pack(query[None, :])[0]
        words = self._words
        found = np.empty(words.shape[1], np.int32)
        for start in range(0, len(found), _BLOCK):
            block = words[:, start : start + _BLOCK]
            total = np.zeros(block.shape[1], np.uint16)
            for first in range(0, len(wanted), _WORDS_IN_BYTE):
                part = np.bitwise_count(block[first] ^ wanted[first])
                for number in range(first + 1, min(first + _WORDS_IN_BYTE, len(wanted))):
                    part += np.bitwise_count(block[number] ^ wanted[number])
                total += part
            found[start : start + _BLOCK] = total
        return found


def top_k(
    matrix: FloatArray, query: FloatArray, k: int, *, rows: RowArray | None = None, bits: SignBits | None = None
) -> tuple[RowArray, FloatArray]:
    """Return the *k* rows with the largest product with *query*, and the products; best first, equal ones by row.

    Args:
        matrix: (n_rows, dimensions) float32.
        query: (dimensions,) float32.
        k: How many.
        rows: Ascending numbers of the rows to choose from; all by default.
        bits: Bits of *matrix*; with them only the likeliest rows are scored.

    Returns:
        (at most k,) row numbers and (at most k,) float32 products.
    """
    available = len(matrix) if rows is None else len(rows)
    if k <= 0 or available == 0:
        return np.empty(0, np.intp), np.empty(0, np.float32)
    if rows is not None and available <= _GATHER:
        return _best(matrix[rows] @ query, rows, k)
    candidates = max(len(matrix) // _CANDIDATE_SHARE, _FEWEST_CANDIDATES, 20 * k)
    if bits is not None and candidates < available:
        distances = bits.distances(query)
        if rows is not None:
            distances = distances[rows]
        limit = np.partition(distances, candidates - 1)[candidates - 1]
        likely = np.flatnonzero(distances <= limit)
        chosen = likely if rows is None else rows[likely]
        return _best(matrix[chosen] @ query, chosen, k)
    scores = matrix @ query
    return _best(scores if rows is None else scores[rows], rows, k)


def _best(scores: FloatArray, rows: RowArray | None, k: int) -> tuple[RowArray, FloatArray]:
    """Pick the k best of *scores*; ``rows`` names the row of each."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)  # with all that equal the last one, so that the choice is by row
    else:
        places = np.arange(len(scores))
    found = scores[places]
    order = np.argsort(-found, kind="stable")[:k]
    best = places[order]
    return (best if rows is None else rows[best]), found[order]
