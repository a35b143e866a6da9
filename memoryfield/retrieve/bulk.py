"""Many questions ranked at once, as ``search`` ranks them one by one.

They are embedded in one batch; then come one matrix product and one pass over the words. For evaluation
and calibration: no page is read, there are no snippets and no filters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.display import counted
from memoryfield.errors import QueryError
from memoryfield.index.matrix import FloatArray
from memoryfield.retrieve.embedding import embed_questions
from memoryfield.retrieve.filters import page_filter
from memoryfield.retrieve.scoring import Scoring
from memoryfield.retrieve.search import SearchTarget, check_targets, fusion_weight, model_of, prepare
from memoryfield.retrieve.weights import FusionWeight

if TYPE_CHECKING:
    import pandas as pd

    from memoryfield.format.snapshot import Snapshot
    from memoryfield.index.syncing import Progress

_TOLD = 100  # questions between two calls of ``progress``


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
        best_cosines: (n_questions,) float32, the vector score of the nearest page; NaN where there is none. None where
            no vectors were searched.
        snapshot: The pages as the last sync saw them; None where there was none.
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
    best_cosines: FloatArray | None = None
    snapshot: Snapshot | None = None

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        pages = f"{counted(len(self.names), 'page')}, the first {self.order.shape[1]:,} kept"
        how = self.retriever if self.model_code is None else f"{self.retriever}, {self.model_code}"
        return f"<Rankings: {counted(len(self), 'question')} over {pages} ({how})>"

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
    weight: float | FusionWeight | None = None,
    progress: Progress | None = None,
) -> Rankings:
    """Rank the pages of a field for many questions; the first *k* are those of ``search`` with that *k*.

    Args:
        target: The field.
        questions: Any texts; one without words or without a vector gets no pages, as in a search.
        retriever: As in ``search``.
        depth: How many pages to keep for each question.
        sync: Bring the indexes in step with the pages first. Without, a page that is gone may still be ranked.
        weight: Of the vectors in ``hybrid``; by default learned from the field.
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
    chosen: FusionWeight | None = None
    if retriever == "hybrid":
        chosen = fusion_weight([target], weight)
        notes.append(chosen.note)
    started = time.perf_counter()
    scoring = Scoring([target], asked, embedded, retriever != "vector")
    order, scores, cosines = _ranked(scoring, len(asked), retriever, depth, chosen, progress)
    searching = time.perf_counter() - started
    each = np.ones(len(asked)) / max(len(asked), 1)
    return Rankings(
        asked,
        scoring.names,
        order,
        scores,
        embedding * each,
        searching * each,
        retriever,
        None if model is None else model.model_code,
        target.vectors.recipe if model is not None and target.vectors is not None else None,
        tuple(notes),
        cosines,
        _seen(target, retriever),
    )


def _seen(target: SearchTarget, retriever: str) -> Snapshot | None:
    if retriever != "keyword" and target.vectors is not None:
        return target.vectors.snapshot
    return None if target.keywords is None else target.keywords.snapshot


def _ranked(
    scoring: Scoring,
    count: int,
    retriever: str,
    depth: int,
    weight: FusionWeight | None,
    progress: Progress | None,
) -> tuple[npt.NDArray[np.int32], FloatArray, FloatArray | None]:
    order = np.full((count, depth), -1, np.int32)
    scores = np.zeros((count, depth), np.float32)
    cosines = None if retriever == "keyword" else np.full(count, np.nan, np.float32)
    if progress is not None and count:
        progress(0, count)
    for number, products in scoring.blocks(range(count)):
        if retriever == "vector":
            pages, found = scoring.by_vector(number, products, depth)
        elif retriever == "keyword":
            pages, found = scoring.by_words(number, depth)
        elif weight is None:
            pages, found = scoring.by_rank(number, products, depth)
        else:
            pages, found = scoring.fused(number, products, depth, weight.vector)
        order[number, : len(pages)] = pages
        scores[number, : len(pages)] = found
        if cosines is not None and products is not None and len(products):
            cosines[number] = np.nanmax(products) if np.isfinite(products).any() else np.nan
        if progress is not None and ((number + 1) % _TOLD == 0 or number + 1 == count):
            progress(number + 1, count)
    return order, scores, cosines
