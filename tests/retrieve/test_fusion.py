"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest

from memoryfield.retrieve.fusion import reciprocal_rank_fusion


def test_sum_of_reciprocal_ranks() -> None:
    fused = dict(reciprocal_rank_fusion([["a", "b", "c"], ["b", "d"]]))
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62})


def test_best_first_and_ties_by_best_rank_then_first_list() -> None:
    assert [item for item, _ in reciprocal_rank_fusion([["a", "b"], ["c", "a"]])] == ["a", "c", "b"]
    assert [item for item, _ in reciprocal_rank_fusion([["x", "y"], ["z", "w"]])] == ["x", "z", "y", "w"]


def test_smaller_k_lets_first_ranks_count_more() -> None:
    lists = [["a", "x", "y", "z"], ["x", "y", "z", "w"]]
    assert reciprocal_rank_fusion(lists, k=60)[0][0] == "x"
    assert dict(reciprocal_rank_fusion(lists, k=0))["a"] == 1.0


def test_repeated_items_count_once_and_empty_lists_are_fine() -> None:
    assert reciprocal_rank_fusion([["a", "a", "b"]]) == [("a", 1 / 61), ("b", 1 / 62)]
    assert reciprocal_rank_fusion([[], []]) == reciprocal_rank_fusion([]) == []
    assert [item for item, _ in reciprocal_rank_fusion([[], ["b", "a"]])] == ["b", "a"]
