"""Figures of ranked retrieval, compared with ir-measures (trec_eval's code) and scikit-learn."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, Success, nDCG
from sklearn.metrics import roc_auc_score

from memoryfield.study.evaluation import metrics


def made_up(seed: int, questions: int = 40, depth: int = 30) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return ranks of gold pages that were found, and how many gold pages each question has."""
    random = np.random.default_rng(seed)
    ranks, counts = [], []
    for _ in range(questions):
        count = int(random.integers(1, 15))
        found = int(random.integers(0, count + 1))
        ranks.append(tuple(sorted((random.choice(depth, found, replace=False) + 1).tolist())))
        counts.append(count)
    return ranks, counts


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_trec_eval(seed: int) -> None:
    depth = 30
    ranks, counts = made_up(seed, depth=depth)
    qrels, run = [], []
    for question, (own, count) in enumerate(zip(ranks, counts, strict=True)):
        for number in range(count):
            qrels.append(ir_measures.Qrel(f"q{question}", f"gold{number}", 1))
        names = {rank: f"gold{number}" for number, rank in enumerate(own)}
        for rank in range(1, depth + 1):
            run.append(ir_measures.ScoredDoc(f"q{question}", names.get(rank, f"other{rank}"), float(-rank)))
    first = metrics.first_ranks(ranks)
    ours = {RR: metrics.reciprocal_ranks(first)}
    for k in (1, 3, 5, 10):
        ours[Success @ k] = metrics.recall_at(first, k)
        ours[R @ k] = metrics.coverage_at(ranks, counts, k)
        ours[nDCG @ k] = metrics.ndcg_at(ranks, counts, k)
    theirs: dict[object, dict[str, float]] = {}
    for found in ir_measures.iter_calc(list(ours), qrels, run):
        theirs.setdefault(found.measure, {})[found.query_id] = found.value
    for measure, values in ours.items():
        expected = [theirs[measure][f"q{question}"] for question in range(len(ranks))]
        np.testing.assert_allclose(values, expected, atol=1e-9, err_msg=str(measure))


def test_small_cases_by_hand() -> None:
    ranks = [(1,), (2, 5), (), (11,)]
    first = metrics.first_ranks(ranks)
    assert first.tolist() == [1, 2, 0, 11]
    assert metrics.recall_at(first, 10).tolist() == [1, 1, 0, 0]
    assert metrics.reciprocal_ranks(first).tolist() == [1, 0.5, 0, 1 / 11]
    assert metrics.coverage_at(ranks, [1, 4, 2, 1], 5).tolist() == [1, 0.5, 0, 0]
    both = (1 / math.log2(3) + 1 / math.log2(6)) / (1 + 1 / math.log2(3))
    assert metrics.ndcg_at(ranks, [1, 2, 2, 1], 10) == pytest.approx([1, both, 0, 0])


def test_without_gold_pages_there_is_no_share() -> None:
    assert np.isnan(metrics.ndcg_at([()], [0], 10)).all() and np.isnan(metrics.coverage_at([()], [0], 3)).all()
    assert len(metrics.first_ranks([])) == len(metrics.reciprocal_ranks(np.array([], np.int64))) == 0


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_that_of_scikit_learn_also_with_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    positive, negative = random.integers(2, 9, 30) / 10, random.integers(0, 7, 21) / 10
    labels = np.r_[np.ones(30), np.zeros(21)]
    expected = roc_auc_score(labels, np.r_[positive, negative])
    assert metrics.auc(positive, negative) == pytest.approx([expected])
    weights = (random.integers(0, 3, (4, 30)).astype(float), random.integers(0, 3, (4, 21)).astype(float))
    both = [
        roc_auc_score(labels, np.r_[positive, negative], sample_weight=np.r_[p, n])
        for p, n in zip(*weights, strict=True)
    ]
    assert metrics.auc(positive, negative, weights) == pytest.approx(both)


def test_auc_of_nothing_found_and_of_nothing() -> None:
    assert metrics.auc([-math.inf, 0.5], [-math.inf]).tolist() == [0.75]
    assert np.isnan(metrics.auc([], [1.0])).all() and np.isnan(metrics.auc([1.0], [])).all()
