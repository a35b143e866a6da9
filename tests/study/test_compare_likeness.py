"""Likeness of spaces: against plain definitions, other implementations, and at sizes where little can be told."""

from __future__ import annotations

import numpy as np
import pytest

from memoryfield.study.comparison import likeness
from memoryfield.study.comparison.compare import family_agreement
from memoryfield.study.comparison.likeness import Likeness, likeness_of, overlap, rank_biased_overlap, shape_of
from memoryfield.study.comparison.procrustes import aligned


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _space(count: int, dimensions: int, seed: int) -> np.ndarray:
    return _unit(np.random.default_rng(seed).normal(size=(count, dimensions)) + 0.4)


def _likeness(one: np.ndarray, other: np.ndarray, k: int = 10) -> Likeness:
    return likeness_of(one, other, (shape_of(one, k), shape_of(other, k)), k)


def test_shape_is_what_the_matrix_of_all_cosines_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _space(90, 12, 0)
    monkeypatch.setattr(likeness, "_CELLS", 90 * 7)  # blocks of seven rows
    shape = shape_of(rows, 10)
    cosines = rows.astype(np.float64) @ rows.T.astype(np.float64)
    pairs = cosines[np.triu_indices(90, 1)]
    assert shape.mean_cosine == pytest.approx(pairs.mean(), abs=1e-6)
    assert shape.deviation == pytest.approx(pairs.std(), abs=1e-5)
    assert shape.quantiles == pytest.approx(np.quantile(pairs, [0.05, 0.5, 0.95]), abs=0.002)
    assert shape.histogram.sum() == len(pairs)
    np.fill_diagonal(cosines, -2)
    assert shape.nearest == pytest.approx(np.median(cosines.max(axis=1)), abs=1e-6)
    assert (shape.neighbors == np.argsort(-np.round(cosines, 6), axis=1, kind="stable")[:, :50]).all()
    from scipy.stats import skew

    counts = np.bincount(shape.neighbors[:, :10].ravel(), minlength=90)
    assert (shape.occurrences == counts).all() and shape.hubness == pytest.approx(skew(counts))


def test_equal_cosines_stand_in_the_order_of_the_names_and_are_counted() -> None:
    rows = np.eye(12, dtype=np.float32)  # every two pages are equally far apart
    shape = shape_of(rows, 3)
    assert shape.neighbors[5, :4].tolist() == [0, 1, 2, 3] and shape.neighbors[1, :2].tolist() == [0, 2]
    assert shape.tied == 1.0 and shape.mean_cosine == pytest.approx(0.0)
    assert shape_of(_space(40, 8, 1), 3).tied == 0.0


def test_the_order_of_rows_changes_nothing_but_the_order() -> None:
    one, other = _space(80, 9, 21), _space(80, 7, 22)
    order = np.random.default_rng(23).permutation(80)
    found, moved = _likeness(one, other), _likeness(one[order], other[order])
    assert np.allclose(found.overlap[order], moved.overlap) and np.allclose(found.rbo[order], moved.rbo)
    for measure in ("correlation", "rank_correlation", "cka", "cka_unbiased"):
        assert getattr(found, measure) == pytest.approx(getattr(moved, measure), abs=1e-9)
    shape, turned = shape_of(one, 10), shape_of(one[order], 10)
    assert (order[turned.neighbors] == shape.neighbors[order]).all() and turned.hubness == pytest.approx(shape.hubness)


def test_rank_biased_overlap_follows_its_definition() -> None:
    one, other = np.array([[1, 2, 3, 4]], np.int32), np.array([[2, 1, 9, 3]], np.int32)
    shared = [0, 2, 2, 3]  # items in common down to each depth
    p = 0.9
    expected = shared[3] / 4 * p**4 + (1 - p) / p * sum(x / d * p**d for d, x in enumerate(shared, 1))
    assert rank_biased_overlap(one, other)[0] == pytest.approx(expected, abs=1e-6)
    assert rank_biased_overlap(one, one)[0] == pytest.approx(1.0)
    assert rank_biased_overlap(one, one + 10)[0] == 0.0
    # what is at the top counts more
    assert rank_biased_overlap(one, np.array([[1, 2, 8, 9]]))[0] > rank_biased_overlap(one, np.array([[8, 9, 3, 4]]))[0]
    assert overlap(one, other, 2)[0] == 1.0 and overlap(one, other, 3)[0] == pytest.approx(2 / 3)


def test_cka_and_correlations_against_plain_definitions() -> None:
    one = _space(60, 10, 1)
    other = _unit(one @ np.random.default_rng(2).normal(size=(10, 30)) + 0.3 * _space(60, 30, 3))
    found = _likeness(one, other)
    k, m = (rows.astype(np.float64) @ rows.T.astype(np.float64) for rows in (one, other))
    upper = np.triu_indices(60, 1)
    from scipy.stats import pearsonr, spearmanr

    assert found.correlation == pytest.approx(pearsonr(k[upper], m[upper]).statistic, abs=1e-6)
    assert found.rank_correlation == pytest.approx(spearmanr(k[upper], m[upper]).statistic, abs=1e-3)
    centre = np.eye(60) - 1 / 60
    kc, mc = centre @ k @ centre, centre @ m @ centre
    assert found.cka == pytest.approx((kc * mc).sum() / np.sqrt((kc**2).sum() * (mc**2).sum()), abs=1e-6)

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        n, ones = len(a), np.ones(len(a))
        a, b = a - np.diag(np.diag(a)), b - np.diag(np.diag(b))
        parts = np.trace(a @ b) + ones @ a @ ones * (ones @ b @ ones) / ((n - 1) * (n - 2))
        return float(parts - 2 / (n - 2) * (ones @ a @ b @ ones)) / (n * (n - 3))

    assert found.cka_unbiased == pytest.approx(hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m)), abs=1e-6)


def test_a_turned_space_is_the_same_space_and_an_unrelated_one_is_not() -> None:
    one = _space(200, 24, 4)
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 24)))
    same = _likeness(one, _unit(one @ turn))
    assert same.overlap.mean() > 0.99 and same.rbo.mean() > 0.99
    assert same.cka == pytest.approx(1, abs=1e-6) and same.cka_unbiased == pytest.approx(1, abs=1e-6)
    assert same.correlation == pytest.approx(1, abs=1e-6)
    strange = _likeness(one, _space(200, 24, 6))
    assert strange.overlap.mean() < 0.15 and abs(strange.cka_unbiased) < 0.05
    assert strange.cka > 0.08  # the plain form is high by itself, which is why there are two
    assert abs(strange.correlation) < 0.1 and abs(strange.rank_correlation) < 0.1


def test_many_pairs_are_drawn_and_drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = _space(150, 8, 7), _unit(_space(150, 8, 7) + 0.2 * _space(150, 8, 8))
    every = _likeness(one, other).rank_correlation
    monkeypatch.setattr(likeness, "_RANKED_PAIRS", 5000)
    drawn = _likeness(one, other).rank_correlation
    assert (
        drawn == _likeness(one, other).rank_correlation and drawn != every and drawn == pytest.approx(every, abs=0.03)
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_pages(count: int) -> None:
    one, other = _space(4, 6, 9)[:count], _space(4, 5, 10)[:count]
    shape, found = shape_of(one, 10), _likeness(one, other)
    assert shape.neighbors.shape == (count, max(count - 1, 0)) and len(found.overlap) == len(found.rbo) == count
    assert np.isnan(shape.mean_cosine) == np.isnan(shape.nearest) == (count < 2)
    assert np.isnan(found.cka_unbiased)
    assert np.isnan(found.cka) == np.isnan(found.correlation) == np.isnan(found.rank_correlation) == (count < 3)
    assert np.isnan(found.overlap).all() if count < 2 else (found.overlap == 1).all()


def test_equal_pages_say_nothing_of_how_spaces_vary() -> None:
    found = _likeness(np.ones((6, 4), np.float32) / 2, _space(6, 4, 11))
    assert np.isnan(found.cka) and np.isnan(found.correlation) and np.isnan(found.rank_correlation)
    assert np.isfinite(found.rbo).all()


def test_family_agreement_against_scikit_learn() -> None:
    from sklearn.metrics import adjusted_rand_score, pair_confusion_matrix

    drawn = np.random.default_rng(12)
    one = drawn.integers(0, 12, 60)
    other = np.where(drawn.random(60) < 0.7, one, drawn.integers(0, 12, 60))
    found = family_agreement(one, other)
    (_, fp), (fn, tp) = pair_confusion_matrix(one, other) // 2
    assert found.adjusted_rand == pytest.approx(adjusted_rand_score(one, other))
    assert found.f1 == pytest.approx(2 * tp / (2 * tp + fp + fn))
    alone = np.arange(5)
    assert family_agreement(alone, alone).adjusted_rand == 1.0 and family_agreement(alone, alone).f1 == 1.0
    assert family_agreement(alone, np.zeros(5, np.int64)).f1 == 0.0
    assert family_agreement(alone[:0], alone[:0]).f1 == 1.0


def test_maps_are_turned_flipped_and_scaled_into_place() -> None:
    points = np.random.default_rng(13).normal(size=(30, 2))
    turned = points @ np.array([[0.0, 1.0], [1.0, 0.0]]) * 7 + 3  # a flip as well
    first, second = aligned(points, turned)
    assert np.allclose(first, second) and np.linalg.norm(first) == pytest.approx(1)
    assert aligned(np.zeros((3, 2)), points[:3])[0].tolist() == [[0, 0]] * 3
    assert aligned(np.zeros((0, 2)), np.zeros((0, 2)))[1].shape == (0, 2)
