"""The history of a field: every verb is a step, an undo gives back every byte, and loses nobody's later change."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoryfield.curate.history import History, keep_history
from memoryfield.errors import HistoryError, NotEditable, PageChanged, PageExists, QueryError
from memoryfield.format.fixes import plan_fixes
from memoryfield.format.importing import import_pages
from memoryfield.format.pages import Change, PageDirectory

BYTES = {
    "crane": b"\xef\xbb\xbf---\r\ntitle:  Crane # ours\r\n---\r\nSee [the yard](yard.md).\r\n",
    "yard": b"no line end, [[crane]]",
    "empty": b"",
    "broken": b"---\ntitle: [\n---\nkept\n",
    "bad-byte": b"caf\xe9 \x00\n",
    "index": b"# Harbor\n\n- [Crane](crane.md)\n",
}


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    directory = PageDirectory(tmp_path / "field", create=True)
    for name, raw in BYTES.items():
        (directory.path / f"{name}.md").write_bytes(raw)
    return directory


@pytest.fixture
def history(field: PageDirectory) -> History:
    return keep_history(field, who="curator")


def content(field: PageDirectory) -> dict[str, bytes]:
    return {name: (field.path / name).read_bytes() for name in sorted(os.listdir(field.path))}


def test_a_field_without_steps(field: PageDirectory, history: History) -> None:
    assert len(history.steps()) == 0
    assert not history.path.exists()  # looking makes no file
    for act in (history.undo, history.redo, history.diff):
        with pytest.raises(HistoryError, match="no history yet"):
            act()
    assert history.prune().steps == 0
    assert history.recover() == ()


def test_without_a_history_nothing_is_kept(field: PageDirectory) -> None:
    field.edit("yard", append="more")
    assert not History(field).path.exists()


def test_every_verb_is_one_step(field: PageDirectory, history: History, tmp_path: Path) -> None:
    field.create(title="Fresh page", body="text")
    field.edit("fresh-page", append="more")
    field.write("empty", b"not any more\n")
    field.rename("yard", "dock")
    field.delete("fresh-page")
    other = PageDirectory(tmp_path / "other", create=True)
    other.create("one", title="One")
    other.create("two", title="Two")
    import_pages(other, field)
    plan_fixes(field, reencode="cp1252").apply()
    field.apply([Change("one", None), Change("two", b"both\n")], verb="merge", note="one into two")
    steps = history.steps()
    assert [step.verb for step in steps] == [
        "merge", "fix", "import", "delete", "rename", "write", "edit", "write",
    ]  # fmt: skip
    assert [step.id for step in steps] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert steps[0].note == "one into two"
    assert steps[0].pages == ("one", "two")
    assert steps[2].note == "from other"
    assert steps[4].pages == ("crane", "dock", "yard")
    assert {step.who for step in steps} == {"curator"}
    assert all(step.state == "done" and step.committed is None for step in steps)
    now = datetime.now(UTC)
    assert all(0 <= (now - step.time).total_seconds() < 60 for step in steps)


def test_what_changes_nothing_is_no_step(field: PageDirectory, history: History) -> None:
    field.write("yard", BYTES["yard"])
    field.apply([])
    with pytest.raises(PageExists):
        field.create("yard", title="Yard")
    with pytest.raises(PageChanged):
        field.write("yard", b"x", if_sha256="0" * 64)
    assert len(history.steps()) == 0


def test_everything_is_undone_byte_for_byte_and_redone(field: PageDirectory, history: History, tmp_path: Path) -> None:
    states = [content(field)]
    acts = [
        lambda: field.create(title="Fresh page", body="text"),
        lambda: field.edit("crane", keys={"tags": ["a", "b"]}, append="more"),
        lambda: field.write("bad-byte", b"\xff\xe9\x00"),
        lambda: field.rename("yard", "dock"),
        lambda: field.delete("broken"),
        lambda: field.delete("empty"),
        lambda: field.apply([Change("dock", None), Change("crane", b"merged"), Change("new", b"n")], verb="merge"),
        lambda: plan_fixes(field, reencode="latin-1").apply(),
    ]
    for act in acts:
        act()
        states.append(content(field))
    for state in reversed(states[:-1]):
        assert history.undo().state == "done"
        assert content(field) == state
    with pytest.raises(HistoryError, match="nothing to undo"):
        history.undo()
    for state in states[1:]:
        history.redo()
        assert content(field) == state
    with pytest.raises(HistoryError, match="nothing to redo"):
        history.redo()
    for state in reversed(states[:-1]):  # and what was redone can be undone again
        history.undo()
        assert content(field) == state


def test_undo_of_an_undo_is_a_redo(field: PageDirectory, history: History) -> None:
    field.write("yard", b"second")
    undo = history.undo()
    assert (undo.verb, undo.target, field.read("yard").raw) == ("undo", 1, BYTES["yard"])
    redo = history.undo(undo)
    assert (redo.verb, redo.target, field.read("yard").raw) == ("redo", 1, b"second")
    assert [step.state for step in history.steps()] == ["done", "undone", "done"]
    again = history.undo(redo.id)
    assert (again.verb, again.target, field.read("yard").raw) == ("undo", 1, BYTES["yard"])
    with pytest.raises(HistoryError, match=r"step 1 .* cannot be undone: it is undone"):
        history.undo(1)
    with pytest.raises(HistoryError, match=r"step 2 .* cannot be undone: it is undone"):
        history.undo(2)
    history.redo(1)
    with pytest.raises(HistoryError, match="cannot be redone: it is done"):
        history.redo(1)
    with pytest.raises(HistoryError, match="there is no step 99"):
        history.undo(99)


def test_undo_of_an_older_step_that_nothing_depends_on(field: PageDirectory, history: History) -> None:
    field.write("yard", b"second")
    field.write("empty", b"filled")
    assert history.undo(1).pages == ("yard",)
    assert (field.read("yard").raw, field.read("empty").raw) == (BYTES["yard"], b"filled")
    assert history.undo().target == 2  # the last that is not undone


def test_a_later_step_is_not_lost(field: PageDirectory, history: History) -> None:
    field.rename("yard", "dock")
    field.edit("dock", append="later")
    field.write("crane", b"later too")
    before = content(field)
    with pytest.raises(PageChanged) as caught:
        history.undo(1)
    message = str(caught.value)
    assert "dock.md was changed by the later step 2 (edit)" in message
    assert "crane.md was changed by the later step 3 (write)" in message
    assert "undo the later steps first" in message
    assert content(field) == before
    assert len(history.steps()) == 3
    for _ in range(3):
        history.undo()
    assert field.read("yard").raw == BYTES["yard"]


@pytest.mark.parametrize("deed", ["edit", "delete", "create"])
def test_a_change_by_another_program_is_not_lost(field: PageDirectory, history: History, deed: str) -> None:
    field.rename("yard", "dock")
    if deed == "edit":
        (field.path / "crane.md").write_bytes(b"theirs")
    elif deed == "delete":
        (field.path / "dock.md").unlink()
    else:
        (field.path / "yard.md").write_bytes(b"theirs")
    before = content(field)
    with pytest.raises(PageChanged, match=r"\.md was changed since by another program\. Nothing was written"):
        history.undo()
    assert content(field) == before
    history.steps()  # and no step is left over
    assert [step.state for step in history.steps()] == ["done"]


def test_a_later_change_is_not_lost_by_a_redo(field: PageDirectory, history: History) -> None:
    field.delete("yard")
    history.undo()
    field.edit("yard", append="later")
    with pytest.raises(PageChanged, match=r"redone .* yard\.md was changed by the later step 3 \(edit\)"):
        history.redo()


def test_a_step_says_that_another_program_was_there(field: PageDirectory, history: History) -> None:
    field.write("yard", b"ours")
    (field.path / "yard.md").write_bytes(b"theirs")
    field.write("yard", b"ours again")
    steps = history.steps()
    assert steps[0].changes[0].strayed == 1
    assert steps[1].changes[0].strayed is None
    assert "changed by another program" in repr(steps)
    assert "since step 1" in repr(steps[0]) and "  found" in repr(steps[0])
    assert "found" not in repr(steps[1])  # nothing was, so no empty column
    history.undo()
    assert field.read("yard").raw == b"theirs"  # what was found is what comes back


def test_a_page_under_its_earlier_names(field: PageDirectory, history: History) -> None:
    field.edit("yard", append="one")
    field.rename("yard", "dock")
    field.rename("dock", "pier")
    field.edit("pier", append="two")
    field.create("yard", title="Another yard")
    assert [step.id for step in history.steps("pier")] == [4, 3, 2, 1]
    assert [step.id for step in history.steps("pier.md", limit=2)] == [4, 3]
    assert [step.id for step in history.steps("yard")] == [5, 2, 1]
    assert [step.id for step in history.steps(limit=2)] == [5, 4]
    assert len(history.steps("nothing")) == 0


def test_contents_and_diffs(field: PageDirectory, history: History) -> None:
    field.rename("yard", "dock")
    assert history.content(1, "yard", before=True) == BYTES["yard"]
    assert history.content(1, "yard") is None
    assert history.content(1, "dock.md") == BYTES["yard"]
    with pytest.raises(HistoryError, match="did not change"):
        history.content(1, "empty")
    assert "rename from yard.md\nrename to dock.md\n" in history.diff()
    assert "-See [the yard](yard.md).\n+See [the yard](dock.md).\n" in history.diff(1)
    field.write("crane", b"\x1b[31mred\x1b[0m \xff\xe2\x80\xae\n")
    assert "\x1b" not in history.diff()
    assert "\u202e" not in history.diff()
    assert "+\\x1b[31mred\\x1b[0m \\xff\\u202e" in history.diff()
    field.delete("empty")
    assert "--- a/empty.md\n+++ /dev/null\n@@ 0 bytes -> no page @@" in history.diff()


def test_names_that_no_new_page_may_have_come_back_P1(field: PageDirectory, history: History) -> None:
    (field.path / "a--b.md").write_bytes(b"double")
    field.delete("a--b")
    history.undo()
    assert field.read("a--b").raw == b"double"
    with pytest.raises(NotEditable):
        field.delete("index")
    field.delete("index", force=True)
    history.undo()
    assert field.read("index").raw == BYTES["index"]


def test_fixes_are_one_step_and_undone(field: PageDirectory, history: History) -> None:
    (field.path / "Slip Way.MD").write_bytes(b"see [[Slip Way]]\n")
    (field.path / "link.md").write_bytes(b"to [it](<Slip Way.MD>)\n")
    (field.path / "wide.md").write_bytes("wide".encode("utf-16"))
    before = content(field)
    plan_fixes(field).apply()
    assert "slip-way.md" in content(field)
    (step,) = history.steps()
    assert step.verb == "fix"
    assert step.pages == ("Slip Way.MD", "link", "slip-way", "wide")
    after = content(field)
    history.undo()
    assert content(field) == before
    history.redo()
    assert content(field) == after


def test_a_failed_fix_is_no_step(field: PageDirectory, history: History) -> None:
    (field.path / "wide.md").write_bytes("wide".encode("utf-16"))
    plan = plan_fixes(field)
    (field.path / "wide.md").write_bytes(b"theirs")
    with pytest.raises(PageChanged):
        plan.apply()
    assert len(history.steps()) == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_a_private_page_stays_private_when_it_comes_back(field: PageDirectory, history: History) -> None:
    page = field.path / "yard.md"
    page.chmod(0o600)
    os.utime(page, ns=(10**18, 10**18))
    field.rename("yard", "dock")
    assert stat.S_IMODE((field.path / "dock.md").stat().st_mode) == 0o600
    field.delete("dock")
    history.undo()
    history.undo()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.stat().st_mtime_ns == 10**18
    assert stat.S_IMODE(history.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(history.path.parent.stat().st_mode) == 0o700


def test_nothing_of_the_history_is_in_the_field_X8(field: PageDirectory, history: History) -> None:
    field.edit("yard", append="one")
    history.undo()
    assert sorted(os.listdir(field.path)) == sorted(f"{name}.md" for name in BYTES)
    assert not history.path.is_relative_to(field.path)


def test_two_ways_to_one_field_share_its_history(field: PageDirectory, history: History, tmp_path: Path) -> None:
    field.edit("yard", append="one")
    (tmp_path / "link").symlink_to(field.path)
    other = keep_history(PageDirectory(tmp_path / "link"))
    assert len(other.steps()) == 1
    other.undo()
    assert field.read("yard").raw == BYTES["yard"]


def test_the_values_show_themselves(field: PageDirectory, history: History) -> None:
    field.apply([Change(f"page-{n}", b"<script>alert(1)</script>") for n in range(30)], note="<b>`x`</b>\x1b[31m")
    history.undo()
    steps = history.steps()
    for value in (steps, steps[0], history.prune(0)):
        assert "\x1b" not in repr(value)
        assert "<b>" not in value._repr_html_()
        json.dumps(value.to_dict())
    assert "History: 2 steps" in repr(steps)
    assert "  curator  undo of step 1" in repr(steps)  # and by whom
    assert "page-0, page-1, page-10 and 27 more" in repr(steps)
    assert "... and 10 more" in repr(steps[0])
    frame = steps.to_frame()
    assert list(frame["verb"]) == ["undo", "write"]
    assert len(steps[1].to_frame()) == 30
    assert list(steps[0:1]) == [steps[0]]


def test_numbers_that_are_none_are_refused(field: PageDirectory, history: History) -> None:
    field.write("new-page", b"Text.\n")
    step: Any
    for step in (2**70, -(2**70), "x"):
        with pytest.raises(HistoryError, match="there is no step"):
            history.undo(step)
    for days in (float("nan"), float("inf"), -1.0):
        with pytest.raises(QueryError, match="older_than"):
            history.prune(older_than=days)
    assert len(history.steps()) == 1
