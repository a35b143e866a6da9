"""How sure a figure is: bootstrap intervals, paired differences, permutation tests, correction for many of them.

Sources: percentile bootstrap (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13); the exact
interval of a share (Clopper and Pearson 1934, Biometrika 26); the paired permutation test (Fisher 1935; for retrieval
Smucker, Allan and Carterette 2007, CIKM); step-down correction (Holm 1979, Scandinavian Journal of Statistics 6). What
is resampled is the questions, not the pages: the intervals say what other questions of the same kind would give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from memoryfield.errors import QueryError

Values = npt.NDArray[np.float64]

CONFIDENCE = 0.95
_BLOCK = 4_000_000  # counts drawn at a time
_EXACT = 12  # with so few differences all signs are gone through


@dataclass(frozen=True)
class Estimate:
    """A figure and how far it may be off.

    Attributes:
        value: The figure; NaN where nothing counts in it.
        low: Lower end of the interval; NaN where one question cannot tell how far another would be off.
        high: Upper end, or NaN.
        n: How many questions count in it.
    """

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if math.isnan(self.value):
            return ""
        return f"{self.value:.2f}" + ("" if math.isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]")

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the estimate as values that JSON can hold; None where there is no value."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {**{key: None if math.isnan(x) else round(x, 6) for key, x in numbers.items()}, "n": self.n}


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class Resamples:
    """Resamples of *n* questions, the same for every figure, so that differences are paired.

    Attributes:
        n: How many questions.
        count: How many resamples.
        seed: Seed of the random numbers.
        confidence: Share of resamples inside an interval.
    """

    n: int
    count: int = 2000
    seed: int = 0
    confidence: float = CONFIDENCE

    @cached_property
    def weights(self) -> Values:
        """(count, n): how often each question is in each resample."""
        random = np.random.default_rng([self.seed, self.n])
        drawn = np.zeros((self.count, self.n))
        step = max(1, _BLOCK // max(self.n, 1))
        for start in range(0, self.count, step):
            rows = min(step, self.count - start)
            picks = random.integers(0, self.n, (rows, self.n)) + self.n * np.arange(rows)[:, None]
            drawn[start : start + rows] = np.bincount(picks.ravel(), minlength=rows * self.n).reshape(rows, self.n)
        return drawn

    def mean(self, values: Values) -> Estimate:
        """Return the mean of (n,) values; one value has no interval.

        A share that is 0 or 1 on every question has no spread to resample; it gets the exact binomial interval.
        """
        if not self.n:
            return NOTHING
        value = float(values.mean())
        if self.n > 1 and value in (0.0, 1.0) and np.all(values == value):
            low, high = exact_interval(round(value * self.n), self.n, self.confidence)
            return Estimate(value, low, high, self.n)
        return self.of(value, self.weights @ values / self.n)

    def of(self, value: float, resampled: Values) -> Estimate:
        """Return a figure with the interval of its (count,) resampled values; those without a value are left out.

        Where there is but one question to draw, every resample is the same: that is no interval.
        """
        kept = resampled[np.isfinite(resampled)]
        if not len(kept) or math.isnan(value):
            return NOTHING
        if self.n == 1:
            return Estimate(value, math.nan, math.nan, 1)
        tail = (1.0 - self.confidence) / 2
        low, high = np.quantile(kept, [tail, 1.0 - tail])
        return Estimate(value, float(low), float(high), self.n)

    def quantile(self, values: Values, share: float) -> Estimate:
        """Return a quantile of (n,) values, such as the median."""
        if not self.n:
            return NOTHING
        random = np.random.default_rng([self.seed, self.n])
        resampled = np.quantile(values[random.integers(0, self.n, (self.count, self.n))], share, axis=1)
        return self.of(float(np.quantile(values, share)), resampled)


@lru_cache(maxsize=4)
def resamples_of(n: int, count: int, seed: int, confidence: float) -> Resamples:
    """Return resamples, kept for the next figure of as many questions."""
    return Resamples(n, count, seed, confidence)


def exact_interval(hits: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the exact interval of a share of *hits* in *n* (Clopper and Pearson)."""
    from scipy.special import betaincinv  # scipy.stats takes seconds to load

    tail = (1.0 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1.0 - tail))
    return low, high


def permutation_p(differences: Values, *, count: int = 10_000, seed: int = 0) -> float:
    """Return how often a mean difference as far from 0 comes about when each question's two values are swapped at will.

    Two-sided. With up to 12 differences that are not 0 every way of swapping is counted, otherwise *count* random ones
    and the observed one.

    Args:
        differences: (n,) value of one side less the other's, for each question.
        count: Random swaps.
        seed: Seed of the random numbers.

    Returns:
        p, between 0 and 1; 1 where no question differs, NaN where there is none.
    """
    if not len(differences):
        return math.nan
    changed = differences[differences != 0.0]
    observed = abs(changed.sum())
    slack = 1e-9 * max(1.0, float(np.abs(changed).sum()))  # of sums that are equal but for rounding
    if len(changed) <= _EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(changed))[:, None] >> np.arange(len(changed))) & 1)
        return float(np.mean(np.abs(signs @ changed) >= observed - slack))
    random = np.random.default_rng([seed, len(differences)])
    extreme, step = 0, max(1, _BLOCK // len(changed))
    for start in range(0, count, step):
        signs = 1.0 - 2.0 * random.integers(0, 2, (min(step, count - start), len(changed)))
        extreme += int(np.sum(np.abs(signs @ changed) >= observed - slack))
    return (extreme + 1) / (count + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm); NaN stays NaN and does not count."""
    corrected = [math.nan] * len(p_values)
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    highest = 0.0
    for done, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - done)))
        corrected[place] = highest
    return corrected


def check_resampling(resamples: object, seed: object, confidence: object) -> None:
    """Refuse settings of the bootstrap that make no sense.

    Raises:
        QueryError: One is out of range; says what it may be.
    """
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 100 <= resamples <= 1_000_000:
        raise QueryError(f"resamples={resamples!r}: give a whole number from 100 to 1,000,000")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise QueryError(f"seed={seed!r}: give a whole number of at least 0")
    if isinstance(confidence, bool) or not isinstance(confidence, float) or not 0.5 <= confidence < 1.0:
        raise QueryError(f"confidence={confidence!r}: give a share from 0.5 to below 1, such as 0.95")
