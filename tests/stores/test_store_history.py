"""The history of a field that lives elsewhere: steps, undo and redo on conditions, merges, and a cut in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import HistoryError, PageChanged, ReadOnlyField, StoreUnreachable
from memoryfield.format.changes import Change
from memoryfield.stores.opening import open_store
from memoryfield.stores.pages import StorePages

TWINS = {
    "brake.md": b"---\ntitle: Brake\n---\nThe winch brake slips when wet. Dry it first.\n",
    "wet-brake.md": b"---\ntitle: Wet brake\n---\nThe winch brake slips when wet. Oil it in spring.\n",
    "deck.md": b"See [the wet brake](wet-brake.md).\n",
}


@pytest.fixture(params=["memory", "bucket"])
def field(request: pytest.FixtureRequest, memory: Any) -> Iterator[mf.MemoryField]:
    """A field in a store, with three pages; ``files(field)`` are what the store holds."""
    if request.param == "memory":
        memory.files = dict(TWINS)
        pages = StorePages(memory)
    else:
        pytest.importorskip("obstore")
        bucket = request.getfixturevalue("bucket")
        bucket.objects.update({f"deck/{name}": raw for name, raw in TWINS.items()})
        pages = StorePages(open_store("s3://notes/deck", **bucket.options()))
    yield mf.MemoryField(pages, model="hashing-1024", who="ann")


def files(field: mf.MemoryField) -> dict[str, bytes]:
    return {page.filename: page.raw for page in mf.MemoryField(StorePages(field._source.store)).pages()}  # type: ignore[attr-defined]


def test_each_verb_is_a_step_that_can_be_undone_and_redone(field: mf.MemoryField) -> None:
    states = [files(field)]
    field.write("coal", title="Coal", body="black\n", on_similar="ignore")
    states.append(files(field))
    field.edit("coal", append="and hard\n")
    states.append(files(field))
    field.rename("wet-brake", "damp-brake")
    states.append(files(field))
    field.delete("deck")
    states.append(files(field))
    steps = field.history()
    assert [(step.verb, step.who) for step in reversed(steps)] == [
        ("write", "ann"),
        ("edit", "ann"),
        ("rename", "ann"),
        ("delete", "ann"),
    ]
    assert "+and hard" in field.diff(steps[2].id) and "rename to damp-brake.md" in field.diff(steps[1].id)
    assert [step.verb for step in field.history("coal")] == ["edit", "write"]
    for state in reversed(states[:-1]):
        field.undo()
        assert files(field) == state
    with pytest.raises(HistoryError, match="nothing to undo"):
        field.undo()
    for state in states[1:]:
        field.redo()
        assert files(field) == state


def test_a_merge_is_one_step(field: mf.MemoryField) -> None:
    before = files(field)
    field.plan_merge(["brake", "wet-brake"], into="brake").apply()
    after = files(field)
    assert sorted(after) == ["brake.md", "deck.md"] and b"Oil it in spring" in after["brake.md"]
    assert b"(brake.md)" in after["deck.md"], "links are rewritten"
    assert field.history()[0].verb == "merge" and field.undo().verb == "undo"
    assert files(field) == before
    field.redo()
    assert files(field) == after


def test_another_writer_is_never_overwritten_by_an_undo(field: mf.MemoryField) -> None:
    field.edit("deck", append="ours\n")
    other = mf.MemoryField(StorePages(field._source.store))  # type: ignore[attr-defined]
    other._source.journal = None  # type: ignore[attr-defined]  # as from another machine
    other.put("deck", b"theirs\n", replace=True)
    with pytest.raises(PageChanged, match="by another program"):
        field.undo()
    assert files(field)["deck.md"] == b"theirs\n"


def test_who_made_a_step(field: mf.MemoryField) -> None:
    field.opened_again(who="bo").edit("deck", append="bo's\n")
    field.edit("deck", append="ann's\n")
    assert [step.who for step in field.history()] == ["ann", "bo"]


def test_a_cut_in_the_middle_is_mended_by_the_next_change(memory: Any) -> None:
    memory.files = dict(TWINS)
    field = mf.MemoryField(StorePages(memory), model="hashing-1024")
    plan = field.plan_merge(["brake", "wet-brake"], into="brake")
    cut: list[str] = []

    def fails(call: str) -> bool:
        cut.append(call) if call == "write deck.md" or cut else None
        return bool(cut)

    memory.fails = fails
    with pytest.raises(StoreUnreachable) as refused:
        plan.apply()
    assert "half done" in "".join(refused.value.__notes__)
    assert "wet-brake.md" in memory.files and memory.files["brake.md"] != TWINS["brake.md"], "cut in the middle"
    memory.fails = lambda call: False
    again = mf.MemoryField(StorePages(memory), model="hashing-1024")
    assert again.history()[0].state == "done" and "finished after a crash" in again.history()[0].note
    assert sorted(memory.files) == ["brake.md", "deck.md"]
    again.undo()
    assert memory.files == TWINS


def test_a_refused_write_leaves_no_step(memory: Any) -> None:
    memory.files = dict(TWINS)
    field = mf.MemoryField(StorePages(memory))
    memory.before = lambda call: memory.files.update({"deck.md": b"theirs\n"}) if call == "write deck.md" else None
    with pytest.raises(PageChanged):
        field._source.apply([Change("coal", b"new\n", absent=True), Change("deck", b"ours\n")])  # type: ignore[attr-defined]
    assert "coal.md" not in memory.files and len(field.history()) == 0


def test_pages_whose_names_nobody_would_make_can_come_back(memory: Any) -> None:
    memory.files = {"a--b.md": b"read, never made\n"}
    field = mf.MemoryField(StorePages(memory))
    field.delete("a--b")
    field.undo()
    assert memory.files == {"a--b.md": b"read, never made\n"}


def test_a_place_that_takes_no_changes_says_so(memory: Any) -> None:
    memory.read_only = True
    field = mf.MemoryField(StorePages(memory))
    for act in (field.history, field.undo, field.diff, lambda: field.plan_merge(["tea", "dock"])):
        with pytest.raises(ReadOnlyField, match="read only"):
            act()


def test_histories_of_places_are_apart(memory: Any, tmp_path: Path) -> None:
    field = mf.MemoryField(StorePages(memory))
    field.write("coal", title="Coal", on_similar="ignore")
    assert len(mf.MemoryField(StorePages(type(memory)(place="test://other/memory"))).history()) == 0
    here = mf.open_field(tmp_path / "memory", create=True)
    assert len(here.history()) == 0 and here.history().notes == ()
    with pytest.raises(HistoryError, match="is an address"):
        field._kept_history().adopt(tmp_path)


def test_pull_merge_push(memory: Any, tmp_path: Path) -> None:
    """The other way: in a directory, with the plan looked at in between."""
    memory.files = dict(TWINS)
    away = StorePages(memory)
    here = mf.open_field(tmp_path / "here", create=True, model="hashing-1024")
    from memoryfield.stores.transfer import plan_transfer

    plan_transfer(away, here._source, "pull").apply()
    here.plan_merge(["brake", "wet-brake"], into="brake").apply()
    push = plan_transfer(here._source, away)
    assert {move.name: move.act for move in push.moves} == {"brake": "update", "deck": "update", "wet-brake": "delete"}
    push.apply()
    assert memory.files == {page.filename: page.raw for page in here.pages()}
    here.undo()
    plan_transfer(here._source, away).apply()
    assert memory.files == TWINS
