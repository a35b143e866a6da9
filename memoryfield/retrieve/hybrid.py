"""Vectors and words made into one score: a weighted sum of both, each brought to one scale.

A half's scores are scaled so that the mean of all pages is 0 and the best page 1: then a list that has one clear answer
counts for more than one in which many pages are nearly as good. The weight has two parts. One belongs to the field and
the model and is learned from the field's own pages (``weights.py``). The other belongs to the question: where one page
holds nearly all of its words, the rare ones counting most, somebody typed what is written there, and words decide.

The numbers below were chosen on eight sets of questions over seven fields, one setting for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memoryfield.index.recipes import PAGE, PASSAGES
from memoryfield.index.termscores import ScoreArray, TermScores

LEAST_WEIGHT, MOST_WEIGHT = 0.1, 0.75  # of the vectors
MOST_WEIGHT_OF_PASSAGES = 0.85  # which leave nothing of a page unread
RATIO_OF_NO_USE, WEIGHT_PER_RATIO = 0.1, 1.8  # how the weight follows from how vectors do on known items
LITERAL_FROM = 0.8  # from this share of the question's words in one page on the vectors lose weight
LITERAL_DROP = 0.9  # which share of their weight they lose where a page holds all words


def field_weight(ratio: float, recipe: str = PAGE) -> float:
    """Return the weight of the vectors in a field where they find known items *ratio* times as well as words do."""
    return min(
        MOST_WEIGHT_OF_PASSAGES if recipe == PASSAGES else MOST_WEIGHT,
        max(LEAST_WEIGHT, WEIGHT_PER_RATIO * (ratio - RATIO_OF_NO_USE)),
    )


def question_weight(weight: float, share: float) -> float:
    """Return the weight of the vectors for a question of whose words one page holds this *share*; 1 stays 1."""
    if weight >= 1.0:
        return 1.0
    literal = min(1.0, max(0.0, (share - LITERAL_FROM) / (1.0 - LITERAL_FROM)))
    return weight * (1.0 - LITERAL_DROP * literal)


def share_of_words(terms: Sequence[str], held: TermScores, page: int) -> float:
    """Return which share of a question's words a page holds, each word weighted by how rare it is.

    Args:
        terms: Of the question, as ``words.query_terms`` gives them.
        held: What they give the pages.
        page: Number of the page in ``held.names``.
    """
    words = [term for term in terms if " " not in term] or list(terms)
    total = found = 0.0
    for word in words:
        rows = held.terms[word][0] if word in held.terms else np.empty(0, np.intp)
        weight = math.log(1.0 + (len(held.names) - len(rows) + 0.5) / (len(rows) + 0.5))
        total += weight
        found += weight * bool((rows == page).any())
    return found / total if total else 0.0


def scaled(scores: npt.NDArray[np.floating], mean: float, best: float) -> ScoreArray:
    """Return scores on the scale where *mean* is 0 and *best* is 1; a page that is alone is the best."""
    spread = best - mean
    if spread > 1e-9:
        return (scores.astype(np.float64) - mean) / spread
    return (scores > 0).astype(np.float64) if len(scores) == 1 else np.zeros(len(scores))
