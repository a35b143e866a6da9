"""The k rows of a matrix of unit vectors that are nearest to a query: one product, or bits first where rows are many.

A bit says whether a value is above its column's mean. Of two vectors at the angle a (seen from that mean) every bit
differs with the probability a / pi, so the number of differing bits of d is spread around d * a / pi with a known
deviation. The best rows by bits are scored first; then every row whose bits leave it a chance against the k-th of these
is scored too. Where that would be too many, as among vectors without any clusters, all are scored after all. The
scores returned are always products of the floats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memoryfield.errors import EmbeddingFailed

FloatArray = npt.NDArray[np.float32]
RowArray = npt.NDArray[np.intp]

MANY_ROWS = 20_000  # from here on bits pay; below, a product costs a millisecond or two
# How many deviations too many bits may differ before a row is given up. Measured on near neighbours in sentence vectors
# and in made-up clusters: mean 0.0, 99 % below 2.2, so that about one neighbour in several thousand is missed.
_DEVIATIONS = 3.3
_FIRST = 500  # rows scored to learn what the k-th best score is at least
_WORTHWHILE = 16  # one row in so many may be scored one by one before a product over all is cheaper
_GATHER = 2_000  # so few chosen rows are cheaper to copy out than to score all
_BLOCK = 1 << 17  # rows whose distances are worked out at a time; keeps the intermediate arrays in the cache
_WORDS_IN_BYTE = 3  # sums of the bits of three 64-bit words fit into one byte


class SignBits:
    """One bit for each value of a matrix, packed, and what follows from them for the products with a query.

    Args:
        matrix: (n_rows, dimensions) float32, unit rows.
    """

    def __init__(self, matrix: FloatArray) -> None:
        rows, dimensions = matrix.shape
        self._mean = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
        # One row of words for each 64 dimensions: a pass over one word of all rows is a pass over contiguous memory.
        self._words = np.empty((-(-dimensions // 64), rows), np.uint64)
        for start in range(0, rows, 4096):
            self._words[:, start : start + 4096] = self._pack(matrix[start : start + 4096]).T
        self._square = float(self._mean @ self._mean)
        self._along = matrix @ self._mean
        self._lengths = np.sqrt(np.maximum(1.0 - 2.0 * self._along + np.float32(self._square), 0.0))
        self._cosines = _highest_cosines(dimensions)

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

    def highest_products(
        self, query: FloatArray, distances: npt.NDArray[np.int32], rows: RowArray | None
    ) -> FloatArray:
        """Return how large the product of each row with *query* may be, to go by its distance.

        Args:
            query: (dimensions,) float32, a unit vector.
            distances: In how many bits each of the rows differs.
            rows: Which rows these are; all by default.
        """
        along = float(query @ self._mean)
        length = max(1.0 - 2.0 * along + self._square, 0.0) ** 0.5
        highest = self._cosines.take(distances)
        highest *= self._lengths if rows is None else self._lengths[rows]
        highest *= np.float32(length)
        highest += self._along if rows is None else self._along[rows]
        highest += np.float32(along - self._square)
        return highest


def _highest_cosines(dimensions: int) -> FloatArray:
    """Return, by the number of differing bits, the largest cosine that two vectors can be thought to have."""
    chance = np.linspace(0.0, 1.0, 4001)
    most = dimensions * chance + _DEVIATIONS * np.sqrt(dimensions * chance * (1.0 - chance))
    smallest = np.searchsorted(np.maximum.accumulate(most), np.arange(dimensions + 1))
    return np.cos(np.pi * chance[np.minimum(smallest, 4000)]).astype(np.float32)


def as_float32(given: object, whose: str) -> FloatArray:
    """Return as float32 what a model gave, of any shape.

    Args:
        given: An array, or what numpy makes one of.
        whose: Name of the model, for the message.

    Raises:
        EmbeddingFailed: It is no array of real numbers; text is not read as numbers, and nothing is cut off.
    """
    try:
        found = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different lengths, or a tensor elsewhere
        raise EmbeddingFailed(f"{whose} gave a {type(given).__name__} that is no array: {error}.") from error
    if found.dtype.kind not in "fiu":
        raise EmbeddingFailed(
            f"{whose} gave a {type(given).__name__} of the type {found.dtype}, expected real numbers; "
            "nothing of it was used."
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which is looked for anyway
        return found.astype(np.float32, copy=False)


def top_k(
    matrix: FloatArray, query: FloatArray, k: int, *, rows: RowArray | None = None, bits: SignBits | None = None
) -> tuple[RowArray, FloatArray]:
    """Return the *k* rows with the largest product with *query*, and the products; best first, equal ones by row.

    Args:
        matrix: (n_rows, dimensions) float32, unit rows.
        query: (dimensions,) float32, a unit vector.
        k: How many.
        rows: Ascending numbers of the rows to choose from; all by default.
        bits: Bits of *matrix*; with them most rows are not scored.

    Returns:
        (at most k,) row numbers and (at most k,) float32 products.
    """
    available = len(matrix) if rows is None else len(rows)
    k = min(k, available)
    if k <= 0 or available == 0:
        return np.empty(0, np.intp), np.empty(0, np.float32)
    if rows is not None and available <= _GATHER:
        return best_rows(matrix[rows] @ query, rows, k)
    if bits is not None:
        chosen = _likely(matrix, query, k, rows, bits)
        if chosen is not None:
            return best_rows(matrix[chosen] @ query, chosen, k)
    scores = matrix @ query
    return best_rows(scores if rows is None else scores[rows], rows, k)


def _likely(matrix: FloatArray, query: FloatArray, k: int, rows: RowArray | None, bits: SignBits) -> RowArray | None:
    """Return the rows among which the best will be, ascending; None if these would be too many."""
    distances = bits.distances(query)
    if rows is not None:
        distances = distances[rows]
    most = len(matrix) // _WORTHWHILE
    first = max(_FIRST, 2 * k)
    if first >= min(most, len(distances)):
        return None
    nearest = np.flatnonzero(distances <= np.partition(distances, first - 1)[first - 1])
    if len(nearest) > most:
        return None
    scores = matrix[nearest if rows is None else rows[nearest]] @ query
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    highest = bits.highest_products(query, distances, rows)
    highest[nearest] = np.inf
    likely = np.flatnonzero(highest >= least)
    if len(likely) > most:
        return None
    return likely if rows is None else rows[likely]


def best_rows(scores: FloatArray, rows: RowArray | None, k: int) -> tuple[RowArray, FloatArray]:
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
