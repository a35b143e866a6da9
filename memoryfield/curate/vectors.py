"""Vectors as models give them, made into the unit rows that pages are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.errors import EmbeddingFailed, QueryError
from memoryfield.index.matrix import as_float32

if TYPE_CHECKING:
    from memoryfield.format.page import Page


def rows_of(given: object, model_code: str, count: int) -> npt.NDArray[np.float32]:
    """Return what a model gave as one row a page.

    Raises:
        QueryError: There is not one row a page.
        EmbeddingFailed: It is no array of numbers, or not of rows.
    """
    rows = as_float32(given, model_code)
    found = len(rows) if rows.ndim else 0
    if found != count:
        raise QueryError(f"{count} pages need as many vectors, there are {found}.")
    if rows.ndim != 2 and count:
        raise EmbeddingFailed(f"{model_code} gave an array of the shape {rows.shape}; one row a page is expected.")
    return rows.reshape(count, -1) if count else np.zeros((0, 1), dtype=np.float32)


def unit_rows(rows: npt.NDArray[np.float32], pages: Sequence[Page]) -> npt.NDArray[np.float64]:
    """Return the rows with length 1.

    Raises:
        EmbeddingFailed: A row has no direction; the message names its page.
    """
    exact = rows.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1)
    for page, length in zip(pages, lengths, strict=True):
        if not (np.isfinite(length) and length > 0):
            raise EmbeddingFailed(f"{page.filename} has no usable vector: index the field anew with this model.")
    return np.asarray(exact / lengths[:, None])
