"""Merges keep what hangs together: the order of steps, items under their own item; left-out headings are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoryfield.curate.blocks import read_blocks
from memoryfield.curate.merge import MergePlan, plan_merge
from memoryfield.errors import QueryError
from memoryfield.format.directory import PageDirectory


def _plan(folder: Path, first: str, second: str) -> MergePlan:
    for name, body in (("a", first), ("b", second)):
        head = f"---\ntitle: Yard\ncreated: '2026-01-0{1 + (name == 'b')}T08:00:00Z'\n---\n"
        (folder / f"{name}.md").write_text(head + body, encoding="utf-8")
    directory = PageDirectory(folder)
    return plan_merge([directory.read("a"), directory.read("b")], into="a", directory=directory)


def test_the_same_steps_in_another_order_stay_a_procedure_of_their_own(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "1. Stop the pump.\n2. Drain the tank.\n", "1. Drain the tank.\n2. Stop the pump.\n")
    assert "1. Drain the tank.\n2. Stop the pump.\n" in plan.body and "**[Steps of b, 2026-01-02.]**" in plan.body
    assert [block.kind for block in read_blocks(plan.body)[0]][:3] == ["numbers", "paragraph", "numbers"]


@pytest.mark.parametrize("mark", ["-", "1."])
def test_a_nested_item_stays_under_its_own_item(tmp_path: Path, mark: str) -> None:
    inner = f"{mark} Host B\n   {mark} port 5432 is open\n"
    plan = _plan(tmp_path, f"{mark} Host A\n   {mark} port 5432 is open\n{mark} Host B\n", f"{inner}{mark} Host A\n")
    nested = [path for block in read_blocks(plan.body)[0] for path in block.nested]
    assert ("host a", "port 5432 is open") in nested and ("host b", "port 5432 is open") in nested


def test_equal_lists_are_not_repeated(tmp_path: Path) -> None:
    body = "- Host A\n  - port 5432 is open\n    - to the yard\n- Host B\n\n1. Stop the pump.\n2. Drain the tank.\n"
    plan = _plan(tmp_path, body, body)
    assert plan.body.count("port 5432") == plan.body.count("to the yard") == plan.body.count("Drain") == 1


def test_a_heading_that_is_left_out_is_shown(tmp_path: Path) -> None:
    said = "Restart the service every night at two o'clock sharp.\n"
    plan = _plan(tmp_path, f"## Staging\n\n{said}", f"## Production\n\n{said}")
    assert "heading left out, all under it stands elsewhere: b#" in repr(plan) and "Production" in repr(plan)


def test_a_rewriter_that_gives_no_text_is_refused(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "The pump is red.\n", "The tank is blue.\n")
    given: Any
    for given in (None, 5, " \n"):
        with pytest.raises(QueryError, match="rewrite returned no text"):
            plan.rewritten(lambda _text, given=given: given)
