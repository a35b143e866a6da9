"""A small model with real structure for tests: each word has a direction of its own, a text is the sum of its words.

Run as a program it syncs a directory, as a process that can be killed: ``toy_model.py DIRECTORY [SECONDS_PER_TEXT]``.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Sequence
from functools import cache

import numpy as np


@cache
def _direction(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


class ToyModel:
    """An embedder without weights.

    Args:
        model_code: Its code.
        dimensions: Length of a vector.
        seconds: Time that each text takes.
        unit: Give unit vectors.
    """

    max_tokens = None
    query_prefix = "search_query: "

    def __init__(
        self,
        model_code: str = "toy-model",
        dimensions: int = 96,
        *,
        seconds: float = 0.0,
        unit: bool = True,
        document_prefix: str = "search_document: ",
    ) -> None:
        self.model_code = model_code
        self.source = f"tests/{model_code}"
        self.dimensions = dimensions
        self.normalized = unit
        self.document_prefix = document_prefix
        self.seconds = seconds
        self.texts: list[str] = []  # everything that was embedded, in order

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        time.sleep(self.seconds * len(texts))
        return np.stack([self.vector(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        return self.vector(text)

    def vector(self, text: str) -> np.ndarray:
        found = np.zeros(self.dimensions, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            found += _direction(word, self.dimensions)
        length = float(np.linalg.norm(found))
        return found / np.float32(length) if self.normalized and length else found


if __name__ == "__main__":
    from memoryfield.format.pages import PageDirectory
    from memoryfield.index.vectors import VectorIndex

    model = ToyModel(seconds=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    VectorIndex(PageDirectory(sys.argv[1]), model).sync()
