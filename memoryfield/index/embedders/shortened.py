"""The first dimensions of a longer vector, for models that were trained to be cut (Matryoshka)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memoryfield.errors import QueryError
from memoryfield.index.embedders import Embedder
from memoryfield.index.embedders.rows import Matrix, only, unit_rows


class ShortenedEmbedder:
    """Another embedder's vectors, cut to their first *dimensions* and scaled to length 1 again.

    nomic's models are trained with a layer norm before the cut (their card says so): each vector has its mean
    taken away first. The division by the deviation, the other half of a layer norm, is undone by the scaling.
    """

    normalized = True

    def __init__(self, whole: Embedder, dimensions: int, *, centred: bool) -> None:
        """Wrap *whole*.

        Args:
            whole: The embedder of the full vectors.
            dimensions: How many to keep.
            centred: Take each vector's mean away before the cut.

        Raises:
            QueryError: *dimensions* is not between 1 and those of *whole*.
        """
        if not 1 <= dimensions <= whole.dimensions:
            raise QueryError(f"{whole.model_code} has {whole.dimensions} dimensions; {dimensions} cannot be had")
        self.whole = whole
        self._centred = centred
        self.dimensions = dimensions
        self.model_code = f"{whole.model_code}-{dimensions}"
        self.source = whole.source
        self.max_tokens = whole.max_tokens
        self.document_prefix = whole.document_prefix
        self.query_prefix = whole.query_prefix
        self.backend = str(getattr(whole, "backend", ""))
        self.backend_note = str(getattr(whole, "backend_note", ""))
        self.chosen_because = str(getattr(whole, "chosen_because", ""))

    def __repr__(self) -> str:
        return f"ShortenedEmbedder({self.model_code!r}, dimensions={self.dimensions}, of={self.whole!r})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, dimensions) float32."""
        return self._cut(self.whole.embed_documents(texts))

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (dimensions,) float32."""
        return only(self._cut(self.whole.embed_query(text)[None, :]))

    def _cut(self, rows: Matrix) -> Matrix:
        return shortened_rows(rows, self.dimensions, centred=self._centred)


def shortened_rows(rows: Matrix, dimensions: int, *, centred: bool) -> Matrix:
    """Return the first *dimensions* of each row, scaled to length 1: (n, dimensions) float32.

    Args:
        rows: (n, at least *dimensions*) float32, whole vectors of any length.
        dimensions: How many to keep.
        centred: Take each row's mean away before the cut.
    """
    if centred:
        rows = rows - rows.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
    return unit_rows(rows[:, :dimensions])
