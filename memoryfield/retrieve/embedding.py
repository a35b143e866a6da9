"""Questions turned into vectors, many at once where the model can do that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.index.embedders.rows import unit_rows
from memoryfield.index.matrix import FloatArray, as_float32

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder


def embed_questions(model: Embedder, questions: Sequence[str]) -> FloatArray:
    """Return unit vectors of questions: (n_questions, dimensions) float32; zeros where the model has no vector."""
    many: Any = getattr(model, "embed_queries", None)
    if not questions:
        return np.zeros((0, model.dimensions), np.float32)
    if many is not None:
        given = many(list(questions))
    elif model.document_prefix == model.query_prefix:
        given = model.embed_documents(list(questions))
    else:
        given = np.stack([as_float32(model.embed_query(question), model.model_code) for question in questions])
    found = as_float32(given, model.model_code).copy()
    blank = [number for number, question in enumerate(questions) if not question.strip()]
    found[blank] = 0.0
    found[~np.isfinite(found).all(axis=1)] = 0.0
    return unit_rows(found)
