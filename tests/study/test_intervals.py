"""Bootstrap, permutation and correction, compared with scipy and with what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from memoryfield.errors import QueryError
from memoryfield.study.evaluation.intervals import (
    NOTHING,
    Resamples,
    check_resampling,
    exact_interval,
    holm,
    permutation_p,
)


def test_the_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(1).beta(2, 1, 60)
    found = Resamples(60, 20_000).mean(values)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=3).confidence_interval
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == (pytest.approx(theirs.low, abs=0.004), pytest.approx(theirs.high, abs=0.004))


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        found = Resamples(80, 400).mean((random.random(80) < 0.7).astype(float))
        inside += found.low <= 0.7 <= found.high
    assert 0.89 <= inside / 300 <= 0.99


def test_a_share_without_spread_gets_the_exact_interval() -> None:
    every, none = Resamples(55).mean(np.ones(55)), Resamples(55).mean(np.zeros(55))
    assert (every.value, every.high) == (1.0, 1.0) and every.low == pytest.approx(0.025 ** (1 / 55))
    assert (none.value, none.low) == (0.0, 0.0) and none.high == pytest.approx(1 - 0.025 ** (1 / 55))


@pytest.mark.parametrize("hits", [0, 1, 12, 54, 55])
def test_the_exact_interval_is_that_of_scipy(hits: int) -> None:
    theirs = stats.binomtest(hits, 55).proportion_ci(0.95, method="exact")
    assert exact_interval(hits, 55) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(2).random(30)
    assert Resamples(30, seed=5).mean(values) == Resamples(30, seed=5).mean(values)
    assert Resamples(30, seed=5).mean(values) != Resamples(30, seed=6).mean(values)


def test_each_resample_is_as_large_as_what_is_resampled() -> None:
    weights = Resamples(7, 300).weights
    assert weights.shape == (300, 7) and (weights.sum(axis=1) == 7).all()


def test_one_value_and_none() -> None:
    for value in (0.25, 0.0, 1.0, 34.69):
        for one in (Resamples(1).mean(np.array([value])), Resamples(1).quantile(np.array([value]), 0.95)):
            assert (one.value, one.n, str(one)) == (value, 1, f"{value:.2f}")
            assert one.to_dict() == {"value": value, "low": None, "high": None, "n": 1}
    assert Resamples(0).mean(np.array([])) is NOTHING and str(NOTHING) == ""
    assert Resamples(0).quantile(np.array([]), 0.5) is NOTHING
    assert NOTHING.to_dict() == {"value": None, "low": None, "high": None, "n": 0}


def test_quantiles_have_intervals() -> None:
    values = np.arange(101.0)
    found = Resamples(101).quantile(values, 0.95)
    assert found.value == 95.0 and 85 < found.low < 95 < found.high <= 100


@pytest.mark.parametrize("n", [8, 60])
def test_p_is_that_of_scipy(n: int) -> None:
    random = np.random.default_rng(4)
    one, other = random.random(n), random.random(n) + 0.05
    theirs = stats.permutation_test(
        (other, one),
        lambda a, b, axis=0: np.mean(a - b, axis=axis),
        vectorized=True,
        permutation_type="samples",
        n_resamples=40_000,
        rng=1,
    ).pvalue
    assert permutation_p(other - one, count=40_000) == pytest.approx(theirs, abs=1e-12 if n == 8 else 0.02)


def test_p_of_known_cases() -> None:
    assert permutation_p(np.zeros(20)) == 1.0
    assert math.isnan(permutation_p(np.array([])))
    assert permutation_p(np.array([1.0, 1, 1, 1, 1, 0, 0])) == 2 / 32  # only all or none of the five
    assert permutation_p(np.array([0.1] * 3 + [-0.1] * 3)) == 1.0
    assert permutation_p(np.ones(40), count=999) == 1 / 1000


def test_p_values_without_a_difference_are_spread_evenly() -> None:
    random = np.random.default_rng(9)
    p_values = [permutation_p(random.choice([-1.0, 0.0, 1.0], 60), count=400, seed=i) for i in range(300)]
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.09


def test_holm_by_hand() -> None:
    corrected = holm([0.01, 0.04, 0.03, math.nan])
    assert corrected[:3] == pytest.approx([0.03, 0.06, 0.06]) and math.isnan(corrected[3])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []


@pytest.mark.parametrize(
    "wrong", [(99, 0, 0.95), (True, 0, 0.95), (2000, -1, 0.95), (2000, 1.5, 0.95), (2000, 0, 95), (2000, 0, math.nan)]
)
def test_settings_that_make_no_sense(wrong: tuple[object, object, object]) -> None:
    with pytest.raises(QueryError, match="give a"):
        check_resampling(*wrong)
