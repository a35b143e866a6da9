"""Pairs of near pages are found exactly, in a fixed order, with the field's own closeness beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memoryfield.curate import near
from memoryfield.curate.near import near_duplicates
from memoryfield.errors import QueryError


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_pairs_equal_a_full_product() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(size=(300, 24))
    rows = _unit(np.vstack([base, base[:40] + 0.05 * rng.normal(size=(40, 24)), base[:5]]))
    names = [f"page-{i:04d}" for i in rng.permutation(len(rows))]
    found = near_duplicates(names, rows, 0.9, model_code="m", recipe="page")
    cosines = rows.astype(np.float64) @ rows.astype(np.float64).T
    expected = {tuple(sorted((names[i], names[j]))) for i in range(len(rows)) for j in range(i) if cosines[i, j] >= 0.9}
    assert {(p.first, p.second) for p in found} == expected
    assert [p.cosine for p in found] == sorted((p.cosine for p in found), reverse=True)
    assert all(p.first < p.second for p in found)


def test_more_rows_than_a_block_and_equal_vectors() -> None:
    rng = np.random.default_rng(5)
    rows = _unit(rng.normal(size=(2500, 16)))
    rows[2400] = rows[3]
    names = [f"p{i}" for i in range(2500)]
    found = near_duplicates(names, rows, 1.0, model_code="m", recipe="page")
    assert [(p.first, p.second) for p in found] == [("p2400", "p3")]
    assert found[0].cosine == pytest.approx(1.0)


def test_a_large_field_gives_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    rows = _unit(rng.normal(size=(3000, 12)))
    rows[2990:] = rows[:10]
    names = [f"p{i:04d}" for i in rng.permutation(3000)]
    whole = near_duplicates(names, rows, 0.92, model_code="m", recipe="page")
    monkeypatch.setattr(near, "_MANY", 100)
    order = rng.permutation(3000)
    many = near_duplicates([names[i] for i in order], rows[order], 0.92, model_code="m", recipe="page")
    assert [(p.first, p.second) for p in many] == [(p.first, p.second) for p in whole] and len(whole) >= 10
    assert many.median_nearest == pytest.approx(whole.median_nearest, abs=0.01)
    assert many == near_duplicates(names, rows, 0.92, model_code="m", recipe="page")


def test_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    rows = _unit(rng.normal(size=(60, 4)))
    names = [f"p{i:02d}" for i in range(60)]
    order = rng.permutation(60)
    one = near_duplicates(names, rows, 0.8, model_code="m", recipe="page")
    two = near_duplicates([names[i] for i in order], rows[order], 0.8, model_code="m", recipe="page")
    assert [(p.first, p.second) for p in one] == [(p.first, p.second) for p in two]


@pytest.mark.parametrize("count", [0, 1])
def test_fields_of_no_and_one_page(count: int) -> None:
    found = near_duplicates(["a"][:count], np.ones((count, 1), dtype=np.float32), 0.9, model_code="m", recipe="page")
    assert len(found) == 0 and math.isnan(found.median_nearest)
    assert "0 pairs" in repr(found) and found.to_dict()["median_nearest"] is None
    assert list(found.to_frame().columns) == ["first", "second", "cosine"]


def test_threshold_out_of_range_is_refused() -> None:
    with pytest.raises(QueryError, match="between -1 and 1"):
        near_duplicates(["a"], np.ones((1, 1), dtype=np.float32), 1.5, model_code="m", recipe="page")
    with pytest.raises(QueryError, match="between -1 and 1"):
        near_duplicates(["a"], np.ones((1, 1), dtype=np.float32), float("nan"), model_code="m", recipe="page")
