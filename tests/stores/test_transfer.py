"""Pages carried between two places: by content, conflicts left, deletions known, a plan first."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import NotEditable, PageChanged, QueryError, ReadOnlyField, StoreUnreachable
from memoryfield.places import state_directory
from memoryfield.stores.pages import StorePages
from memoryfield.stores.transfer import TransferPlan, plan_transfer


@pytest.fixture
def here(tmp_path: Path) -> mf.MemoryField:
    field = mf.open_field(tmp_path / "here", create=True, model="hashing-1024")
    field.put("tea", b"green\n")
    field.put("dock", b"deep\n")
    return field


@pytest.fixture
def there(tmp_path: Path) -> mf.MemoryField:
    return mf.open_field(tmp_path / "there", create=True, model="hashing-1024")


def acts(plan: TransferPlan) -> dict[str, str]:
    return {move.name: move.act for move in plan.moves}


def texts(field: mf.MemoryField) -> dict[str, bytes]:
    return {page.name: page.raw for page in field.pages()}


def test_a_plan_writes_nothing_and_apply_does_it_once(here: mf.MemoryField, there: mf.MemoryField) -> None:
    plan = here.plan_push(there.path)
    assert acts(plan) == {"tea": "add", "dock": "add"} and len(there) == 0
    assert "2 to add" in repr(plan) and "2 to add" in plan._repr_html_()
    plan.apply()
    assert texts(there) == texts(here)
    again = here.plan_push(there.path)
    assert again.moves == () and again.same == 2 and again.apply().changes == ()


def test_who_changed_what(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.plan_push(there.path).apply()
    here.put("tea", b"black\n", replace=True)
    there.put("dock", b"deeper\n", replace=True)
    there.put("pier", b"long\n")
    push = here.plan_push(there.path)
    assert acts(push) == {"tea": "update", "dock": "keep", "pier": "keep"}
    push.apply()
    assert texts(there) == {"tea": b"black\n", "dock": b"deeper\n", "pier": b"long\n"}
    pull = here.plan_pull(there.path)
    assert acts(pull) == {"dock": "update", "pier": "add"}
    pull.apply()
    assert texts(here) == texts(there)


def test_deletions_are_carried_and_can_be_undone(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.plan_push(there.path).apply()
    there.delete("tea")
    assert acts(here.plan_push(there.path)) == {"tea": "keep"}, "what was deleted there does not come back"
    pull = here.plan_pull(there.path)
    assert acts(pull) == {"tea": "delete"}
    pull.apply()
    assert here.names() == ["dock"]
    assert here.history()[0].verb == "pull"
    here.undo()
    assert here["tea"].raw == b"green\n"


def test_a_page_that_was_never_carried_is_not_deleted(here: mf.MemoryField, there: mf.MemoryField) -> None:
    there.put("pier", b"long\n")
    assert acts(here.plan_push(there.path))["pier"] == "keep"


@pytest.mark.parametrize("who_deletes", ["here", "there", "nobody"])
def test_conflicts_are_left_and_told(here: mf.MemoryField, there: mf.MemoryField, who_deletes: str) -> None:
    here.plan_push(there.path).apply()
    for field, name in ((here, "here"), (there, "there")):
        if name == who_deletes:
            field.delete("tea")
        else:
            field.put("tea", f"{name}\n".encode(), replace=True)
    before = texts(there)
    plan = here.plan_push(there.path)
    assert acts(plan) == {"tea": "conflict"} and "take=[NAME]" in repr(plan)
    assert [move.name for move in plan.apply().conflicts] == ["tea"] and texts(there) == before
    with pytest.raises(QueryError, match="dock is no conflict"):
        plan.apply(take=["dock"])
    here.plan_push(there.path).apply(take=["tea"])
    assert texts(there) == texts(here)
    assert here.plan_push(there.path).moves == ()


def test_two_fields_that_never_met(here: mf.MemoryField, there: mf.MemoryField) -> None:
    there.put("tea", b"theirs\n")
    there.put("dock", b"deep\n")
    assert acts(here.plan_push(there.path)) == {"tea": "conflict"}


def test_identities_are_kept(here: mf.MemoryField, there: mf.MemoryField) -> None:
    page = here.write("coal", title="Coal", on_similar="ignore")
    there.put("hard-coal", page.raw)
    moves = {move.name: move for move in here.plan_push(there.path).moves}
    assert moves["coal"].act == "conflict" and "same uuid" in moves["coal"].reason
    there.delete("hard-coal")
    there.write("coal", title="Other", on_similar="ignore")
    plan = here.plan_push(there.path)
    assert {m.name: m.reason for m in plan.conflicts}["coal"] == "has another uuid in the target"
    with pytest.raises(QueryError, match="cannot be taken over"):
        plan.apply(take=["coal"])


def test_a_rename_is_carried(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.write("coal", title="Coal", on_similar="ignore")
    here.plan_push(there.path).apply()
    here.rename("coal", "hard-coal")
    plan = here.plan_push(there.path)
    assert acts(plan) == {"coal": "delete", "hard-coal": "add"}
    plan.apply()
    assert texts(there) == texts(here)


def test_a_target_that_changes_after_the_plan_is_refused(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.plan_push(there.path).apply()
    here.put("tea", b"black\n", replace=True)
    here.put("coal", b"hard\n")
    plan = here.plan_push(there.path)
    there.put("tea", b"theirs\n", replace=True)
    with pytest.raises(PageChanged):
        plan.apply()
    assert texts(there) == {"tea": b"theirs\n", "dock": b"deep\n"}


def test_names_that_cannot_be_new(here: mf.MemoryField, there: mf.MemoryField) -> None:
    (here.path / "a--b.md").write_bytes(b"read, never made\n")
    assert acts(here.plan_push(there.path))["a--b"] == "conflict"
    here.plan_push(there.path).apply()
    assert there.names() == ["dock", "tea"]


def test_to_a_store_and_back(here: mf.MemoryField, memory: Any) -> None:
    pages = StorePages(memory)
    memory.files.clear()
    plan_transfer(here._source, pages).apply()
    assert memory.files == {"tea.md": b"green\n", "dock.md": b"deep\n"}
    memory.files["tea.md"] = b"theirs\n"
    del memory.files["dock.md"]
    plan = plan_transfer(pages, here._source, "pull")
    assert acts(plan) == {"tea": "update", "dock": "delete"}
    plan.apply()
    assert texts(here) == {"tea": b"theirs\n"}
    memory.fails = lambda call: True
    with pytest.raises(StoreUnreachable):  # an earlier copy will not do
        plan_transfer(pages, here._source, "pull")


def test_it_is_told_how_far_a_transfer_is(here: mf.MemoryField, memory: Any) -> None:
    pages, told = StorePages(memory), []
    memory.files.clear()
    plan_transfer(here._source, pages).apply(progress=lambda *numbers: told.append(numbers))
    assert told == [(1, 2), (2, 2)]
    told.clear()
    plan_transfer(StorePages(type(memory)(place="test://other")), here._source, progress=lambda *n: told.append(n))
    assert told == [(1, 2), (2, 2)]


def test_refusals(here: mf.MemoryField, there: mf.MemoryField, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="to itself"):
        here.plan_push(here.path)
    report = here.export(tmp_path / "x.memoryfield.zip")
    plan = here.plan_push(report.path)
    here.put("coal", b"hard\n")
    with pytest.raises(ReadOnlyField):
        here.plan_push(report.path).apply()
    assert plan.moves == ()
    assert issubclass(NotEditable, mf.MemoryfieldError)


def record(here: mf.MemoryField, there: mf.MemoryField) -> Path:
    """Where earlier versions kept what both places held."""
    pair = "\n".join(sorted(os.path.realpath(field.path) for field in (here, there)))
    return state_directory() / "transfers" / f"{hashlib.sha256(pair.encode()).hexdigest()[:24]}.json"


def test_what_both_held_is_in_the_journal_with_a_tombstone_for_what_was_deleted(
    here: mf.MemoryField, there: mf.MemoryField
) -> None:
    here.plan_push(there.path).apply()
    (journal,) = [f._kept_history() for f in (here, there) if f._kept_history().agreed(agreed_as(here, there))]
    assert not record(here, there).exists()
    there.delete("tea")
    here.plan_pull(there.path).apply()
    held = journal.agreed(agreed_as(here, there))
    assert held["dock.md"] == (hashlib.sha256(b"deep\n").digest(), None)
    digest, gone_ns = held["tea.md"]
    assert digest == hashlib.sha256(b"green\n").digest() and gone_ns is not None
    here.put("tea", b"green\n")
    (move,) = here.plan_push(there.path).moves
    assert move.act == "add" and "deleted before 20" in move.reason, "a page that comes back is told of"
    here.plan_push(there.path).apply()
    assert journal.agreed(agreed_as(here, there))["tea.md"][1] is None
    here.put("tea", b"black\n", replace=True)
    assert acts(here.plan_push(there.path)) == {"tea": "update"}


def agreed_as(here: mf.MemoryField, there: mf.MemoryField) -> str:
    return "\n".join(sorted(os.path.realpath(field.path) for field in (here, there)))


def test_old_tombstones_go(here: mf.MemoryField, there: mf.MemoryField) -> None:
    history = here._kept_history()
    history.agree("x", {"a.md": b"1" * 32, "b.md": b"2" * 32})
    history.agree("x", {"b.md": b"2" * 32})
    assert list(history.agreed("x")) == ["a.md", "b.md"]
    history.oldest = timedelta(0)
    history.agree("x", {"b.md": b"2" * 32})
    assert list(history.agreed("x")) == ["b.md"] and history.agreed("y") == {}


def test_a_journal_of_the_first_version_is_brought_up_to_date(here: mf.MemoryField, there: mf.MemoryField) -> None:
    history = here._kept_history()
    with contextlib.closing(sqlite3.connect(history.path)) as connection:
        connection.executescript("DROP TABLE agreed; PRAGMA user_version = 1")
    assert history.agreed("x") == {} and len(history.steps()) == 2
    history.agree("x", {"a.md": b"1" * 32})
    assert history.agreed("x") == {"a.md": (b"1" * 32, None)}


def test_what_an_earlier_version_kept_is_read_and_moved(here: mf.MemoryField, there: mf.MemoryField) -> None:
    pages = {"tea": hashlib.sha256(b"green\n").hexdigest(), "gone": hashlib.sha256(b"x").hexdigest()}
    old = record(here, there)
    old.parent.mkdir(parents=True)
    there.put("tea", b"green\n")
    there.put("dock", b"deep\n")
    here.put("tea", b"black\n", replace=True)
    for damage in (
        "[" * 5000,
        "{}",
        json.dumps({"pages": {"../x": "y", "tea": 7}}),
        "nonsense",
        '{"pages": {"tea": "z"}}',
    ):
        old.write_text(damage)
        assert acts(here.plan_push(there.path)) == {"tea": "conflict"}, "no loss"
    old.write_text(json.dumps({"places": [], "pages": pages}))
    plan = here.plan_push(there.path)
    assert acts(plan) == {"tea": "update"}
    plan.apply()
    assert not old.exists() and here.plan_push(there.path).moves == ()


def test_a_damaged_journal_makes_conflicts_not_losses(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.plan_push(there.path).apply()
    here.put("tea", b"black\n", replace=True)
    there.delete("dock")
    for field in (here, there):
        field._kept_history().path.write_bytes(b"nonsense" * 1000)
    plan = here.plan_push(there.path)
    assert acts(plan) == {"tea": "conflict", "dock": "add"}
    plan.apply()
    assert acts(here.plan_push(there.path)) == {"tea": "conflict"}


def test_secrets_are_told_of(here: mf.MemoryField, there: mf.MemoryField) -> None:
    here.put("keys", b"the key is AKIA" + b"Q3T7XK2LMZP4VB6N" + b" and more\n")
    with pytest.warns(UserWarning, match="secret"):
        here.plan_push(there.path)
