"""The k nearest rows, by one product and by bits first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from memoryfield.index.matrix import SignBits, top_k

Array = npt.NDArray[np.float32]


def unit(rows: npt.NDArray[np.floating]) -> Array:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(rows: int, dimensions: int, clusters: int, spread: float, seed: int) -> Array:
    """Return unit rows around centres that all lean to one side, as vectors of texts do."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((clusters, dimensions)) + 1.5 * random.standard_normal(dimensions)
    noise = spread * random.standard_normal((rows, dimensions))
    return unit(centres[random.integers(0, clusters, rows)] + noise)


def reference(matrix: Array, query: Array, k: int, rows: list[int] | None = None) -> list[int]:
    scores = matrix @ query
    chosen = range(len(matrix)) if rows is None else rows
    return sorted(chosen, key=lambda row: (-scores[row], row))[:k]


@pytest.mark.parametrize("k", [1, 3, 10, 99, 100, 1000])
def test_product_gives_the_same_as_sorting_all(k: int) -> None:
    matrix = clustered(100, 37, 5, 1.0, seed=1)
    rows, scores = top_k(matrix, matrix[4], k)
    assert rows.tolist() == reference(matrix, matrix[4], k)
    assert np.array_equal(scores, (matrix @ matrix[4])[rows])
    assert scores.dtype == np.float32


@pytest.mark.parametrize("k", [1, 7, 40, 41])
def test_some_rows_only(k: int) -> None:
    matrix = clustered(500, 64, 5, 1.0, seed=2)
    some = np.arange(3, 500, 12)
    rows, scores = top_k(matrix, matrix[15], k, rows=some)
    assert rows.tolist() == reference(matrix, matrix[15], k, some.tolist())
    assert np.allclose(scores, (matrix @ matrix[15])[rows], atol=1e-6)


def test_equal_scores_come_by_row_also_at_the_edge() -> None:
    matrix = np.zeros((50, 8), np.float32)
    matrix[:, 0] = 1.0
    matrix[30, 0] = 2.0
    rows, _ = top_k(matrix, matrix[0], 5)
    assert rows.tolist() == [30, 0, 1, 2, 3]
    rows, _ = top_k(matrix, matrix[0], 5, bits=SignBits(matrix))
    assert rows.tolist() == [30, 0, 1, 2, 3]


def test_nothing_to_choose_from() -> None:
    empty = np.empty((0, 8), np.float32)
    assert top_k(empty, np.ones(8, np.float32), 3)[0].tolist() == []
    matrix = np.eye(8, dtype=np.float32)
    assert top_k(matrix, matrix[0], 0)[0].tolist() == []
    assert top_k(matrix, matrix[0], 3, rows=np.empty(0, np.intp))[0].tolist() == []


@pytest.mark.parametrize("dimensions", [1, 63, 64, 65, 96, 384, 768])
def test_bit_distances_are_counts_of_differing_signs(dimensions: int) -> None:
    matrix = clustered(300, dimensions, 4, 1.0, seed=3)
    query = clustered(1, dimensions, 4, 1.0, seed=4)[0]
    mean = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
    expected = ((matrix > mean) != (query > mean)).sum(axis=1)
    assert np.array_equal(SignBits(matrix).distances(query), expected)


def cases() -> Iterator[tuple[str, Array, Array]]:
    random = np.random.default_rng(5)
    for spread in (0.5, 1.0, 2.0):
        matrix = clustered(20_000, 384, 200, spread, seed=6)
        picked = matrix[random.integers(0, len(matrix), 40)]
        near = unit(picked + 0.5 / np.sqrt(384) * random.standard_normal(picked.shape))
        yield f"documents with noise, spread {spread}", matrix, near
        yield f"unseen members, spread {spread}", matrix[:-40], matrix[-40:]


@pytest.mark.parametrize(("name", "matrix", "queries"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_bits_first_finds_the_same_ten_of_many(name: str, matrix: Array, queries: Array) -> None:
    bits = SignBits(matrix)
    found = [set(top_k(matrix, query, 10, bits=bits)[0].tolist()) for query in queries]
    exact = [set(top_k(matrix, query, 10)[0].tolist()) for query in queries]
    recall = np.mean([len(a & b) / 10 for a, b in zip(found, exact, strict=True)])
    assert recall == 1.0, name


def test_bits_with_some_rows_choose_among_them() -> None:
    matrix = clustered(8_000, 128, 50, 1.0, seed=7)
    some = np.flatnonzero(np.arange(8_000) % 2)
    rows, _ = top_k(matrix, matrix[9], 10, rows=some, bits=SignBits(matrix))
    assert rows.tolist() == top_k(matrix, matrix[9], 10, rows=some)[0].tolist()
    assert all(row % 2 for row in rows.tolist())


def test_rows_that_are_all_alike_do_not_break_the_bits() -> None:
    matrix = np.tile(unit(np.ones((1, 64))), (5_000, 1))
    rows, _ = top_k(matrix, matrix[0], 10, bits=SignBits(matrix))
    assert rows.tolist() == list(range(10))
