"""The gate: says that nothing in a field answers a question.

A question's score is the cosine of the page nearest to it. How high that is where a page answers differs from model to
model and from field to field. So it is compared with what the field's own words reach when they are thrown together:
questions made of words of many pages, which no page answers. A question passes whose nearest page is nearer than it is
for four of ten of these. Nobody has to label anything; with labels, ``gate_from_probes`` is surer.

The aim is to keep nine of ten questions that have an answer. How many of the others pass depends on what they are:
few of those about other things, many of those that name the field's own people and things.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.display import counted
from memoryfield.errors import QueryError
from memoryfield.retrieve.bulk import Rankings
from memoryfield.retrieve.embedding import embed_questions
from memoryfield.retrieve.knownitems import KnownItem
from memoryfield.retrieve.remembered import remembered
from memoryfield.retrieve.scoring import Scoring

if TYPE_CHECKING:
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.results import SearchResults
    from memoryfield.retrieve.search import SearchTarget

KEPT = 0.9  # share of questions with an answer that should pass
_VERSION = 1
_QUANTILE = 0.4  # of the questions thrown together; on three fields with labels this kept 91 to 96 % of the answerable
_WORDS = 9  # in such a question
_LEARNED_WORDS = "learned from the words"
_NO_SCORE = -1.0  # of a question that the model has no vector for

_calibrated: weakref.WeakKeyDictionary[VectorIndex, tuple[str, Gate]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False, repr=False)
class Gate:
    """What a field's pages have to reach for a question to count as answered.

    Attributes:
        target: The field; with vectors.
        threshold: The score from which a question passes.
        calibrated_on: What the threshold was learned from.
        kept: Share of the questions with an answer that pass; aimed at, or measured on probes.
        passed: Share of the questions without an answer that pass; None where that was not measured.
    """

    target: SearchTarget
    threshold: float
    calibrated_on: str
    kept: float = KEPT
    passed: float | None = None

    def __repr__(self) -> str:
        at = "open" if self.threshold == -np.inf else f"at {self.threshold:.3f}"
        passed = "" if self.passed is None else f", lets pass {self.passed:.0%} of the others"
        kept = f"{'aims to keep' if self.calibrated_on.startswith(_LEARNED_WORDS) else 'keeps'} {self.kept:.0%}"
        return f"<Gate {at}: {kept} of what has an answer{passed}; {self.calibrated_on}>"

    @property
    def recipe(self) -> str:
        """Which text of the pages its cosines are of."""
        return _index(self.target).recipe

    @property
    def model_code(self) -> str:
        """The model whose cosines it knows."""
        return _index(self.target).model_code

    def scores(self, asked: Rankings | Sequence[str]) -> npt.NDArray[np.float64]:
        """Return one score a question: the cosine of the nearest page, -1 where the model has no vector for it.

        Args:
            asked: Questions; or their rankings, which hold the scores already if they are of the same model and recipe.
        """
        if isinstance(asked, str):
            raise QueryError("asked is one text; give a list of them, or call score().")
        index = _index(self.target)
        if isinstance(asked, Rankings):
            same = (asked.model_code, asked.recipe) == (index.model_code, index.recipe)
            if same and asked.best_cosines is not None:
                return np.where(np.isnan(asked.best_cosines), _NO_SCORE, asked.best_cosines).astype(np.float64)
            asked = asked.questions
        return _nearest(self.target, asked)

    def score(self, question: str) -> float:
        """Return the score of one question."""
        return float(self.scores([question])[0])

    def passes(self, asked: str | SearchResults) -> bool:
        """Say whether a question, or that of some results, has a page that is near enough."""
        return self.score(asked if isinstance(asked, str) else asked.query) >= self.threshold

    def to_dict(self) -> dict[str, object]:
        """Return the gate as values that JSON can hold."""
        return {
            "field": self.target.field,
            "model_code": self.model_code,
            "recipe": self.recipe,
            "threshold": None if self.threshold == -np.inf else self.threshold,
            "calibrated_on": self.calibrated_on,
            "kept": self.kept,
            "passed": self.passed,
        }


def calibrated_gate(target: SearchTarget) -> Gate:
    """Return the gate of a field, learned from its own pages and kept in the cache directory.

    Args:
        target: The field, with vectors in step with the disk. With fewer than eight pages nothing can be learned, and
            every question passes.

    Raises:
        QueryError: The field has no vectors here.
    """
    index = _index(target)
    digest = index.vectors().digest
    held = _calibrated.get(index)
    if held is not None and held[0] == digest:
        return held[1]

    def learn(items: Sequence[KnownItem]) -> float:
        return float(np.quantile(_nearest(target, thrown_together(items)), _QUANTILE))

    found = remembered(target, index, f"gate {_VERSION}", learn, least=-1.0, most=1.01)
    if found is None:
        return Gate(target, -np.inf, "too few pages to learn from: everything passes", 1.0)
    gate = Gate(target, found[0], f"{_LEARNED_WORDS} of {found[1]} pages")
    _calibrated[index] = (digest, gate)
    return gate


def gate_from_probes(
    target: SearchTarget, answerable: Sequence[str], unanswerable: Sequence[str] = (), *, keep: float = KEPT
) -> Gate:
    """Return a gate that keeps a share of questions known to have an answer.

    Args:
        target: The field, with vectors in step with the disk.
        answerable: Questions that a page answers.
        unanswerable: Questions that no page answers, to measure how many pass.
        keep: Share of the answerable ones that should pass.

    Raises:
        QueryError: No questions, or *keep* is no share.
    """
    if not answerable:
        raise QueryError("a gate needs questions that a page answers; there are none.")
    share: object = keep
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.0 < share <= 1.0:
        raise QueryError(f"keep={keep!r}: give a share above 0 and up to 1, such as 0.9.")
    good = _nearest(target, answerable)
    threshold = float(np.quantile(good, 1.0 - keep, method="lower"))
    passed = float((_nearest(target, unanswerable) >= threshold).mean()) if len(unanswerable) else None
    counts = f"{counted(len(answerable), 'question')} with an answer and {len(unanswerable):,} without"
    return Gate(target, threshold, f"learned from {counts}", float((good >= threshold).mean()), passed)


def thrown_together(items: Sequence[KnownItem]) -> list[str]:
    """Return as many questions of words of many pages, the same for the same items."""
    words = [word for item in items for word in item.question.split()]
    random.Random(0).shuffle(words)
    made = [" ".join(words[start : start + _WORDS]) for start in range(0, len(words), _WORDS)]
    return made[: len(items)]


def _nearest(target: SearchTarget, questions: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the highest score by vector of each question."""
    scoring = Scoring([target], questions, embed_questions(_index(target).embedder, questions), False)
    found = np.full(len(questions), _NO_SCORE)
    for number, products in scoring.blocks(range(len(questions))):
        if products is not None and np.isfinite(products).any():
            found[number] = float(np.nanmax(products))
    return found


def _index(target: SearchTarget) -> VectorIndex:
    if target.vectors is None:
        raise QueryError(f"a gate compares vectors, and the field {target.field!r} has none here: choose a model.")
    return target.vectors
