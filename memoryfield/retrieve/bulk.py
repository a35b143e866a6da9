"""Many questions ranked at once, as ``search`` ranks them one by one.

They are embedded in one batch; then come one matrix product and one pass over the words. For evaluation
and calibration: no page is read, there are no snippets and no filters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memoryfield.errors import QueryError
from memoryfield.index.embedders.rows import unit_rows
from memoryfield.index.matrix import FloatArray, as_float32
from memoryfield.index.termscores import TermScores
from memoryfield.index.words import query_terms
from memoryfield.retrieve.filters import page_filter
from memoryfield.retrieve.fusion import reciprocal_rank_fusion
from memoryfield.retrieve.search import SearchTarget, check_targets, fused_depth, model_of, prepare

if TYPE_CHECKING:
    import pandas as pd

    from memoryfield.index.embedders import Embedder
    from memoryfield.index.loaded import Vectors
    from memoryfield.index.syncing import Progress

_BLOCK = 256  # questions whose products with all pages are held at a time
_ROUNDING = 1e-5  # by how much a product of matrices may miss the cosine that is worked out row by row

Ranked = tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]  # rows of the pages, best first, and their scores


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """The ranked pages of many questions.

    Attributes:
        questions: What was asked.
        names: Names of all pages that could be found, sorted.
        order: (n_questions, depth) int32: numbers in *names*, best first; -1 where there are no more.
        scores: (n_questions, depth) float32, as in the hits of a search; 0 where there are no more.
        embedding_seconds: (n_questions,) float64; the time of the batch, shared out evenly.
        search_seconds: (n_questions,) float64; likewise.
        retriever: How they were ranked.
        model_code: The model, if vectors were searched.
        recipe: Which text of the pages was embedded.
        notes: What else is worth knowing.
    """

    questions: tuple[str, ...]
    names: tuple[str, ...]
    order: npt.NDArray[np.int32]
    scores: FloatArray
    embedding_seconds: npt.NDArray[np.float64]
    search_seconds: npt.NDArray[np.float64]
    retriever: str
    model_code: str | None = None
    recipe: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        pages = f"{len(self.names):,} pages, the first {self.order.shape[1]:,} kept"
        how = self.retriever if self.model_code is None else f"{self.retriever}, {self.model_code}"
        return f"<Rankings: {len(self):,} questions over {pages} ({how})>"

    def ranked(self, question: int) -> list[tuple[str, float]]:
        """Return names and scores for one question, best first."""
        rows, scores = self.order[question], self.scores[question]
        return [(self.names[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row >= 0]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each question and page: ``question``, ``rank``, ``name``, ``score``."""
        import pandas as pd

        numbers, ranks = np.nonzero(self.order >= 0)
        return pd.DataFrame(
            {
                "question": np.array(self.questions, object)[numbers],
                "rank": ranks + 1,
                "name": np.array(self.names, object)[self.order[numbers, ranks]],
                "score": self.scores[numbers, ranks],
            }
        )


def rank_many(
    target: SearchTarget,
    questions: Sequence[str],
    retriever: str = "hybrid",
    depth: int = 100,
    *,
    sync: bool = True,
    progress: Progress | None = None,
) -> Rankings:
    """Rank the pages of a field for many questions; the first *k* are those of ``search`` with that *k*.

    Args:
        target: The field.
        questions: Any texts; one without words or without a vector gets no pages, as in a search.
        retriever: As in ``search``.
        depth: How many pages to keep for each question.
        sync: Bring the indexes in step with the pages first. Without, a page that is gone may still be ranked.
        progress: Called with questions done and questions asked.

    Raises:
        QueryError: Something asked for makes no sense.
        ModelMismatch: The vector index is not of the model it is searched with.
        ModelNotReady: The model cannot be loaded.
        EmbeddingFailed: The model gives something else than vectors.
        IndexFileError: An index cannot be used.
    """
    if isinstance(questions, str):
        raise QueryError("questions is one text; give a list of them.")
    asked = tuple(questions)
    for question in asked:
        check_targets([target], question, depth, retriever, None)
    check_targets([target], "", depth, retriever, None)
    model = model_of([target], retriever)
    notes: list[str] = []
    prepare(target, retriever, page_filter(), sync, False, None, notes)
    started = time.perf_counter()
    embedded = None if model is None else embed_questions(model, asked)
    embedding = time.perf_counter() - started
    run = _Run(target, asked, retriever, depth, embedded)
    order, scores = run.ranked(progress)
    searching = time.perf_counter() - started - embedding
    each = np.ones(len(asked)) / max(len(asked), 1)
    return Rankings(
        asked,
        run.names,
        order,
        scores,
        embedding * each,
        searching * each,
        retriever,
        None if model is None else model.model_code,
        target.vectors.recipe if model is not None and target.vectors is not None else None,
        tuple(notes),
    )


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


class _Run:
    """Everything that ranking the questions needs, with both halves in one numbering of the pages."""

    def __init__(
        self, target: SearchTarget, questions: Sequence[str], retriever: str, depth: int, embedded: FloatArray | None
    ) -> None:
        self.questions, self.retriever, self.depth, self.embedded = questions, retriever, depth, embedded
        self.vectors: Vectors | None = None
        self.words = TermScores()
        if embedded is not None and target.vectors is not None:
            self.vectors = target.vectors.vectors()
        self.terms = [query_terms(question) for question in questions] if retriever != "vector" else []
        if retriever != "vector" and target.keywords is not None:
            self.words = target.keywords.term_scores(term for terms in self.terms for term in terms)
        held = () if self.vectors is None else self.vectors.names
        self.names = tuple(sorted({*held, *self.words.names}))
        position = {name: number for number, name in enumerate(self.names)}
        self.of_vector = np.array([position[name] for name in held], np.intp)
        self.of_words = np.array([position[name] for name in self.words.names], np.intp)

    def ranked(self, progress: Progress | None) -> tuple[npt.NDArray[np.int32], FloatArray]:
        order = np.full((len(self.questions), self.depth), -1, np.int32)
        scores = np.zeros((len(self.questions), self.depth), np.float32)
        if progress is not None and self.questions:
            progress(0, len(self.questions))
        for start in range(0, len(self.questions), _BLOCK):
            numbers = range(start, min(start + _BLOCK, len(self.questions)))
            for number, (rows, found) in zip(numbers, self._block(numbers), strict=True):
                order[number, : len(rows)] = rows
                scores[number, : len(rows)] = found
            if progress is not None:
                progress(numbers.stop, len(self.questions))
        return order, scores

    def _block(self, numbers: range) -> Iterator[Ranked]:
        products = None
        if self.vectors is not None and self.embedded is not None:
            products = self.vectors.page_scores(self.embedded[numbers.start : numbers.stop])
        fused = fused_depth(self.depth)
        for number in numbers:
            row = None if products is None else products[number - numbers.start]
            if self.retriever == "vector":
                yield self._by_vector(number, row, self.depth)
            elif self.retriever == "keyword":
                yield self._by_words(number, self.depth)
            else:
                halves = [self._by_vector(number, row, fused)[0].tolist(), self._by_words(number, fused)[0].tolist()]
                found = reciprocal_rank_fusion(halves)[: self.depth]
                yield np.array([item for item, _ in found], np.intp), np.array([score for _, score in found])

    def _by_vector(self, number: int, products: FloatArray | None, depth: int) -> Ranked:
        if products is None or self.vectors is None or self.embedded is None or not self.embedded[number].any():
            return np.empty(0, np.intp), np.empty(0)
        chosen = np.arange(len(products))
        if depth < len(products):
            chosen = np.flatnonzero(products >= np.partition(products, -depth)[-depth] - _ROUNDING)
        rows, scores = self.vectors.rescored(chosen, self.embedded[number])
        return self.of_vector[rows[:depth]], scores[:depth].astype(np.float64)

    def _by_words(self, number: int, depth: int) -> Ranked:
        scores = self.words.scores(self.terms[number])
        chosen = np.flatnonzero(scores > 0.0)
        if depth < len(chosen):
            held = scores[chosen]
            chosen = chosen[held >= np.partition(held, -depth)[-depth]]
        best = chosen[np.argsort(-scores[chosen], kind="stable")[:depth]]
        return self.of_words[best], scores[best]
