"""The scores of all pages for some questions, by vectors and by words, over one field or several."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.index.keywords import term_scores_together
from memoryfield.index.matrix import FloatArray, RowArray
from memoryfield.index.termscores import ScoreArray, TermScores
from memoryfield.index.words import query_terms
from memoryfield.retrieve.fusion import reciprocal_rank_fusion
from memoryfield.retrieve.hybrid import question_weight, scaled, share_of_words

if TYPE_CHECKING:
    from memoryfield.retrieve.search import SearchTarget

Key = tuple[int, str]  # number of the field, page name: two fields may have a page of one name
Ranked = tuple[RowArray, ScoreArray]  # numbers of pages, best first, and their scores

_BLOCK = 256  # questions whose products with all pages are held at a time
_ROUNDING = 1e-5  # by how much a product of matrices may miss the score that is worked out row by row
_FUSED_ROUNDING = 1e-4  # the same after scaling
_FEWEST_FUSED = 100  # how deep each list is that is fused by rank, at least


def fused_depth(k: int) -> int:
    """Return how many pages of each half are fused by rank for the first *k*."""
    return max(_FEWEST_FUSED, 10 * k)


class Scoring:
    """Questions and the pages of some fields, ready to be ranked by any retriever.

    Args:
        targets: The fields, in step with the disk.
        questions: What is asked.
        embedded: (n_questions, dimensions) float32 unit rows, zeros where the model has no vector; None for words only.
        with_words: Whether words are needed.

    Attributes:
        names: Of all pages, field by field and sorted; a page's number is its place here.
        words: What each term of the questions gives each page.
    """

    def __init__(
        self, targets: Sequence[SearchTarget], questions: Sequence[str], embedded: FloatArray | None, with_words: bool
    ) -> None:
        self.embedded = embedded
        self._vectors = [
            None if embedded is None or target.vectors is None else target.vectors.vectors() for target in targets
        ]
        self.terms = [query_terms(question) for question in questions] if with_words else [[] for _ in questions]
        asked = list(dict.fromkeys(term for terms in self.terms for term in terms))
        found = term_scores_together([target.keywords for target in targets if target.keywords is not None], asked)
        if not with_words or len(found) != len(targets):
            found = [TermScores() for _ in targets]
        self._number_pages(found)
        self._last: tuple[int, ScoreArray] | None = None

    def _number_pages(self, found: Sequence[TermScores]) -> None:
        """Give each page of each field one number, whichever half it is in."""
        self._starts: list[int] = []
        self._of_vector: list[RowArray] = []
        of_words: list[RowArray] = []
        whole: list[str] = []
        for vectors, words in zip(self._vectors, found, strict=True):
            near = () if vectors is None else vectors.names
            self._starts.append(len(whole))
            if near == words.names or not near or not words.names:  # as nearly always; both are sorted
                names = near or words.names
                place = np.arange(len(names)) + len(whole)
                self._of_vector.append(place if near else place[:0])
                of_words.append(place if words.names else place[:0])
            else:
                names = tuple(sorted({*near, *words.names}))
                number_of = {name: len(whole) + number for number, name in enumerate(names)}
                self._of_vector.append(np.array([number_of[name] for name in near], np.intp))
                of_words.append(np.array([number_of[name] for name in words.names], np.intp))
            whole += names
        self.names = tuple(whole) if len(found) != 1 else names
        one = len(found) == 1 and len(of_words[0]) == len(self.names)
        self.words = TermScores(self.names, found[0].terms if one else _joined(found, of_words))

    def key(self, page: int) -> Key:
        """Return the field and the name of a page."""
        return bisect_right(self._starts, page) - 1, self.names[page]

    def word_scores(self, number: int) -> ScoreArray:
        """Return the BM25 of every page for a question; read only."""
        if self._last is None or self._last[0] != number:
            self._last = (number, self.words.scores(self.terms[number]))
        return self._last[1]

    def blocks(self, numbers: range) -> Iterator[tuple[int, FloatArray | None]]:
        """Yield each question with the product of its vector and every page; NaN where a page has no vector."""
        for start in range(numbers.start, numbers.stop, _BLOCK):
            part = range(start, min(start + _BLOCK, numbers.stop))
            whole = None
            if self.embedded is not None:
                queries = self.embedded[part.start : part.stop]
                only = self._vectors[0] if len(self._vectors) == 1 else None
                if only is not None and len(only.names) == len(self.names):
                    whole = only.page_scores(queries)
                else:
                    whole = np.full((len(part), len(self.names)), np.nan, np.float32)
                    for vectors, places in zip(self._vectors, self._of_vector, strict=True):
                        if vectors is not None and len(places):
                            whole[:, places] = vectors.page_scores(queries)
            for number in part:
                has_vector = self.embedded is not None and bool(self.embedded[number].any())
                yield number, whole[number - part.start] if whole is not None and has_vector else None

    def _exact(self, number: int, pages: RowArray) -> FloatArray:
        """Return the scores of some pages by vector, each worked out in the same way."""
        found = np.full(len(pages), np.nan, np.float32)
        if self.embedded is None:
            return found
        for vectors, places in zip(self._vectors, self._of_vector, strict=True):
            if vectors is not None and len(places):
                at = np.searchsorted(places, pages)
                here = (at < len(places)) & (places[np.minimum(at, len(places) - 1)] == pages)
                found[here] = vectors.exact_scores(at[here], self.embedded[number])
        return found

    def by_vector(self, number: int, products: FloatArray | None, depth: int, among: RowArray | None = None) -> Ranked:
        """Return the first *depth* pages by vector; *among* are the numbers of those to choose from."""
        if products is None:
            return np.empty(0, np.intp), np.empty(0)
        pages = np.flatnonzero(np.isfinite(products)) if among is None else among[np.isfinite(products[among])]
        pages = _highest(products, pages, depth, _ROUNDING)
        return _best(pages, self._exact(number, pages).astype(np.float64), depth)

    def by_words(self, number: int, depth: int, among: RowArray | None = None) -> Ranked:
        """Return the first *depth* pages that hold one of the question's words."""
        scores = self.word_scores(number)
        pages = np.flatnonzero(scores > 0.0) if among is None else among[scores[among] > 0.0]
        pages = _highest(scores, pages, depth, 0.0)
        return _best(pages, scores[pages], depth)

    def by_rank(self, number: int, products: FloatArray | None, depth: int) -> Ranked:
        """Return the first *depth* pages by reciprocal rank fusion of both halves."""
        deep = fused_depth(depth)
        halves = [self.by_vector(number, products, deep)[0].tolist(), self.by_words(number, deep)[0].tolist()]
        found = reciprocal_rank_fusion(halves)[:depth]
        return np.array([page for page, _ in found], np.intp), np.array([score for _, score in found])

    def share(self, number: int) -> float:
        """Return which share of the question's words the page holds that has most of them by BM25."""
        scores = self.word_scores(number)
        if not scores.any():
            return 0.0
        return share_of_words(self.terms[number], self.words, int(np.argmax(scores)))

    def fused(
        self, number: int, products: FloatArray | None, depth: int, weight: float, among: RowArray | None = None
    ) -> Ranked:
        """Return the first *depth* pages by the weighted sum of both halves; see ``hybrid.py``.

        Args:
            number: Of the question.
            products: Of its vector and every page; None where it has none, and words alone decide.
            depth: How many.
            weight: Of the vectors in the field; how literal the question is comes on top of it.
            among: Numbers of the pages to choose from.
        """
        if products is None:
            pages, _ = self.by_words(number, depth, among)
            scores = self.word_scores(number)
            return pages, scaled(scores[pages], float(scores.mean()), float(scores.max())) if len(pages) else np.empty(
                0
            )
        words = self.word_scores(number)
        if words.any():
            weight = question_weight(weight, share_of_words(self.terms[number], self.words, int(np.argmax(words))))
            by_words = (1.0 - weight) * scaled(words, float(words.mean()), float(words.max()))
        else:
            weight, by_words = 1.0, np.zeros(len(words))
        held = products[np.isfinite(products)]
        if not len(held):
            return self.fused(number, None, depth, weight, among)
        mean, best = float(held.mean(dtype=np.float64)), float(held.max())

        def both(vectors: FloatArray, pages: RowArray) -> ScoreArray:
            near = scaled(vectors, mean, best)
            near[np.isnan(near)] = 0.0  # a page without a vector is as near as the mean
            return weight * near + by_words[pages]

        pages = np.arange(len(products)) if among is None else among
        pages = pages[_highest(both(products[pages], pages), np.arange(len(pages)), depth, _FUSED_ROUNDING)]
        return _best(pages, both(self._exact(number, pages), pages), depth)


def _highest(scores: npt.NDArray[np.floating], pages: RowArray, depth: int, slack: float) -> RowArray:
    """Return those of *pages*, ascending, among which the first *depth* are."""
    if depth >= len(pages):
        return pages
    held = scores[pages]
    chosen: RowArray = pages[held >= np.partition(held, len(held) - depth)[len(held) - depth] - slack]
    return chosen


def _best(pages: RowArray, scores: ScoreArray, depth: int) -> Ranked:
    order = np.argsort(-scores, kind="stable")[:depth]
    return pages[order], scores[order]


def _joined(found: Sequence[TermScores], numbers: Sequence[RowArray]) -> dict[str, tuple[RowArray, ScoreArray]]:
    """Return the scores of several fields as one, in the numbering of all pages."""
    terms: dict[str, tuple[RowArray, ScoreArray]] = {}
    for term in dict.fromkeys(term for words in found for term in words.terms):
        parts = [
            (of[words.terms[term][0]], words.terms[term][1])
            for words, of in zip(found, numbers, strict=True)
            if term in words.terms
        ]
        terms[term] = (np.concatenate([rows for rows, _ in parts]), np.concatenate([scores for _, scores in parts]))
    return terms
