"""``hashing-1024``: hashed word pairs, no weights, no download. A baseline, and the last resort."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryfield.index.embedders.rows import Matrix, only, prefixed

MODEL_CODE = "hashing-1024"
DIMENSIONS = 1024
SOURCE = "scikit-learn HashingVectorizer, word 1-2 grams"


class HashingEmbedder:
    """Words and pairs of words hashed into 1,024 signed counts, scaled to length 1 (scikit-learn).

    Vectors of texts that share no word have cosine 0 but for chance collisions; meaning plays no part. A text
    without a word of two letters gives a row of zeros.
    """

    model_code = MODEL_CODE
    source = SOURCE
    dimensions = DIMENSIONS
    max_tokens: int | None = None
    document_prefix = ""
    query_prefix = ""
    normalized = True
    backend = "scikit-learn"
    backend_note = ""
    chosen_because = ""

    def __init__(self) -> None:
        self._vectorizer: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HashingEmbedder({self.model_code!r}, dimensions={self.dimensions})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, 1024) float32."""
        ready = prefixed("", texts)
        if not ready:
            return np.zeros((0, self.dimensions), np.float32)
        return np.asarray(self._loaded().transform(ready).toarray(), dtype=np.float32)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (1024,) float32."""
        return only(self.embed_documents([text]))

    def _loaded(self) -> Any:
        with self._lock:
            if self._vectorizer is None:
                from sklearn.feature_extraction.text import HashingVectorizer

                self._vectorizer = HashingVectorizer(
                    n_features=DIMENSIONS, ngram_range=(1, 2), norm="l2", alternate_sign=True, dtype=np.float32
                )
            return self._vectorizer
