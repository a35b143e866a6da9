"""What every embedder does to texts before and to vectors after: checks, prefixes, unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryfield.errors import EmbeddingFailed

Matrix = NDArray[np.float32]


def prefixed(prefix: str, texts: Sequence[str]) -> list[str]:
    """Return *texts* with *prefix* before each, fit for any tokenizer.

    Lone surrogates, which no encoder takes, become question marks.

    Raises:
        TypeError: *texts* is one string, or holds something else than strings.
    """
    if isinstance(texts, str):
        raise TypeError("embed_documents() takes a sequence of texts, not one text; put it into a list")
    ready = []
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a text to embed must be a str, not {type(text).__name__}")
        whole = prefix + text
        ready.append(whole if whole.isascii() else whole.encode("utf-8", "replace").decode("utf-8"))
    return ready


def unit_rows(matrix: NDArray[np.floating]) -> Matrix:
    """Return *matrix* as float32 with rows of length 1; rows of zeros and rows that are not finite stay.

    Args:
        matrix: (n, dimensions), any float type.
    """
    rows = np.ascontiguousarray(matrix, dtype=np.float32)
    # In float64, for the square of a large float32 overflows.
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    norms[~(norms > 0)] = 1.0
    return np.asarray(rows / norms[:, None], dtype=np.float32)


def only(matrix: Matrix) -> Matrix:
    """Return the one row of *matrix*: (dimensions,)."""
    return np.asarray(matrix[0], dtype=np.float32)


def check_shape(matrix: Matrix, count: int, dimensions: int, model: str) -> Matrix:
    """Return *matrix* if it is (count, dimensions).

    Raises:
        EmbeddingFailed: It is not.
    """
    if matrix.shape != (count, dimensions):
        raise EmbeddingFailed(
            f"{model} gave an array of shape {matrix.shape} for {count} texts; expected {(count, dimensions)}"
        )
    return matrix


def cosines(left: Matrix, right: Matrix) -> NDArray[np.float64]:
    """Return the cosine of each row of *left* with the same row of *right*: (n,) float64."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products: NDArray[np.float64] = np.einsum("ij,ij->i", a, b)
    return products / np.where(lengths > 0, lengths, np.nan)
