"""The pairs above a cosine are all found, whatever the shape of the vectors."""

from __future__ import annotations

import numpy as np
import pytest

from memoryfield.curate import pairs
from memoryfield.curate.pairs import nearest_pairs, pairs_above
from memoryfield.errors import QueryError


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _clustered(count: int, dimensions: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, dimensions)) * np.linspace(2, 0.1, dimensions)
    return _unit(centres[rng.integers(0, 40, count)] + rng.normal(size=(count, dimensions)) * rng.choice([0.1, 0.6]))


@pytest.mark.parametrize("cut", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_pairs_as_the_whole_product(monkeypatch: pytest.MonkeyPatch, cut: float, seed: int) -> None:
    monkeypatch.setattr(pairs, "_TILE", 100)
    rows = _clustered(730, 48, seed)
    rows[700:] = rows[:30]  # equal rows: cosine 1
    whole = np.triu(rows.astype(np.float64) @ rows.astype(np.float64).T, 1)
    expected = np.argwhere(whole >= cut - 1e-6)
    found = pairs_above(rows, cut)
    assert np.array_equal(np.stack([found.first, found.second], axis=1), expected) and len(expected) >= 30
    assert np.allclose(found.cosine, whole[found.first, found.second], atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows(count: int) -> None:
    found = pairs_above(np.ones((count, 1), dtype=np.float32), 0.5)
    assert len(found.first) == len(found.second) == len(found.cosine) == count // 2


def test_senseless_cuts_are_refused() -> None:
    for cut in (1.5, float("nan")):
        with pytest.raises(QueryError, match="cosine"):
            pairs_above(np.ones((2, 1), dtype=np.float32), cut)
    with pytest.raises(QueryError, match="higher"):
        pairs_above(np.ones((9, 1), dtype=np.float32), 0.5, most=10)


@pytest.mark.parametrize("kind", ["a bound that is of use here and there", "of no use"])
def test_whole_tiles_where_the_bound_is_of_no_use(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The prefix is chosen on a sample that misleads: half of the rows, or all, lie outside of its directions."""
    monkeypatch.setattr(pairs, "_TILE", 50)
    rng = np.random.default_rng(4)
    rows = _unit(rng.normal(size=(600, 64)) * np.r_[np.full(4, 9.0), np.ones(60)])
    if kind == "of no use":
        rows = _unit(rng.normal(size=(600, 64)))
    rows[300:] = _unit(rng.normal(size=(300, 64)) * np.r_[np.zeros(4), np.ones(60)])
    rows[590:] = rows[300:310]
    turn = np.linalg.qr(rng.normal(size=(64, 4)))[0].astype(np.float32)
    monkeypatch.setattr(pairs, "_bounding", lambda matrix, cut: pairs._shortened(matrix, turn))
    whole = np.triu(rows.astype(np.float64) @ rows.astype(np.float64).T, 1)
    found = pairs_above(rows, 0.35)
    assert np.array_equal(np.stack([found.first, found.second], axis=1), np.argwhere(whole >= 0.35 - 1e-6))


def test_the_nearest_of_each_row() -> None:
    rows = _clustered(700, 24, 3)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -np.inf)
    found = {tuple(pair) for pair in nearest_pairs(rows, 5).tolist()}
    expected = {(min(i, j), max(i, j)) for i in range(700) for j in np.argsort(-cosines[i], kind="stable")[:5].tolist()}
    assert found == expected
    assert len(nearest_pairs(rows[:1], 5)) == 0 and nearest_pairs(rows[:2], 5).tolist() == [[0, 1], [0, 1]]
