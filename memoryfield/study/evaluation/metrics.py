"""Figures of ranked retrieval, for one question each, from the ranks at which its gold pages stand.

A rank counts from 1; a page that was not found within the depth of the ranking has none. Sources: recall, reciprocal
rank (Voorhees 1999, TREC-8 question answering track), discounted cumulative gain (Järvelin and Kekäläinen 2002, ACM
TOIS 20(4)), with gain 1 for a gold page and the logarithm to base 2 (as trec_eval's ``ndcg_cut``); the area under the
ROC curve as the share of pairs in the right order (Hanley and McNeil 1982, Radiology 143).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Ranks = Sequence[Sequence[int]]


def first_ranks(ranks: Ranks) -> npt.NDArray[np.int64]:
    """Return the best rank of each question, 0 where nothing was found."""
    return np.array([min(own, default=0) for own in ranks], np.int64)


def recall_at(first: npt.NDArray[np.int64], k: int) -> Values:
    """Return 1 for each question with at least one gold page among the first *k*, else 0.

    Where a question has one gold page, this is the share of gold pages found; with several, any of them will do, since
    each answers the question on its own. (Elsewhere the same is called success@k or hit rate.)

    Args:
        first: (n_questions,) rank of the first gold page, 0 for none.
        k: How many pages are looked at.
    """
    return ((first >= 1) & (first <= k)).astype(np.float64)


def coverage_at(ranks: Ranks, gold: Sequence[int], k: int) -> Values:
    """Return for each question which share of its gold pages is among the first *k*; NaN without gold pages."""
    found = np.array([sum(rank <= k for rank in own) for own in ranks], np.float64)
    counts = np.array(gold, np.float64)
    shares: Values = np.divide(found, counts, out=np.full(len(found), np.nan), where=counts > 0)
    return shares


def reciprocal_ranks(first: npt.NDArray[np.int64]) -> Values:
    """Return 1 divided by the rank of the first gold page, 0 where none was found; their mean is MRR."""
    return np.divide(1.0, first, out=np.zeros(len(first)), where=first >= 1)


def ndcg_at(ranks: Ranks, gold: Sequence[int], k: int) -> Values:
    """Return nDCG@k of each question; NaN without gold pages.

    The gain of a gold page at rank r is 1 / log2(r + 1); the sum over the first *k* is divided by what it would be if
    all gold pages stood first.

    Args:
        ranks: For each question the ranks of its gold pages that were found.
        gold: How many gold pages each question has.
        k: How many pages are looked at.
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])
    values = np.full(len(ranks), np.nan)
    for number, (own, count) in enumerate(zip(ranks, gold, strict=True)):
        if count > 0:
            gained = sum(discounts[rank - 1] for rank in own if rank <= k)
            values[number] = gained / ideal[min(count, k)]
    return values


def auc(positive: npt.ArrayLike, negative: npt.ArrayLike, weights: tuple[Values, Values] | None = None) -> Values:
    """Return the area under the ROC curve: how often a positive score is above a negative one, ties counted half.

    Args:
        positive: (n,) scores of answerable questions; minus infinity where nothing was found.
        negative: (m,) scores of unanswerable ones.
        weights: (b, n) and (b, m): how often each counts, for b resamples; by default once each.

    Returns:
        (b,) areas, b = 1 without weights; NaN without a positive or a negative.
    """
    above, below = np.asarray(positive, np.float64), np.asarray(negative, np.float64)
    rows, columns = weights if weights is not None else (np.ones((1, len(above))), np.ones((1, len(below))))
    if not len(above) or not len(below):
        return np.full(len(rows), np.nan)
    order = np.unique(np.concatenate([above, below]), return_inverse=True)[1]
    size = int(order.max()) + 1
    # by distinct score: how many negatives lie below it, and how many on it
    at = np.zeros((len(columns), size))
    for column, place in enumerate(order[len(above) :]):
        at[:, place] += columns[:, column]
    lower = np.cumsum(at, axis=1) - at
    own = order[: len(above)]
    total = np.einsum("bn,bn->b", rows, lower[:, own] + 0.5 * at[:, own])
    pairs = rows.sum(axis=1) * columns.sum(axis=1)
    shares: Values = np.divide(total, pairs, out=np.full(len(rows), np.nan), where=pairs > 0)
    return shares
