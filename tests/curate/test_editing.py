"""An edit as a plan: what it shows, and on what condition it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.errors import InvalidName, NotEditable, PageChanged, PageExists, QueryError, ReadOnlyField

TEXT = "---\ntitle: Winch   # the green one\nuuid: 1b4e28ba-2fa1-41d2-883f-0016d3cca427\n---\nOil it.\r\nTwice.\r\n"


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    (tmp_path / "winch.md").write_bytes(TEXT.encode())
    return mf.open_field(tmp_path)


def test_a_plan_writes_nothing_and_shows_what_it_would(field: mf.MemoryField) -> None:
    plan = field.plan_edit("winch", body="Oil it.\nThrice.\n", keys={"tags": ["deck"]})
    assert field.read("winch").raw == TEXT.encode()
    assert plan.changes
    assert "-Twice." in plan.diff and "+Thrice." in plan.diff and "+tags" in plan.diff
    assert "title" not in plan.diff.replace("--- a/winch.md", "").partition("+tags")[2]
    assert "Thrice" in repr(plan) and "Thrice" in plan._repr_html_()
    page = plan.apply()
    assert page.raw == plan.after.raw
    assert b"# the green one" in page.raw and b"Oil it.\r\nThrice.\n" in page.raw
    assert field.history()[0].verb == "edit"
    field.undo()
    assert field.read("winch").raw == TEXT.encode()


def test_only_the_version_that_was_read_is_overwritten(field: mf.MemoryField) -> None:
    read = field.read("winch")
    field.edit("winch", append="Someone else.")
    plan = field.plan_edit(read, title="Mine")
    with pytest.raises(PageChanged):
        plan.apply()
    assert "Someone else." in field.read("winch").body


def test_an_edit_without_a_change_is_none(field: mf.MemoryField) -> None:
    plan = field.plan_edit("winch", title="Winch", body="Oil it.\nTwice.\n")
    assert (plan.changes, plan.diff) == (False, "")
    assert "no change" in repr(plan)
    assert plan.apply().raw == TEXT.encode()
    assert len(field.history()) == 0


def test_raw_bytes_are_taken_as_they_are(field: mf.MemoryField) -> None:
    new = TEXT.replace("Winch ", "Windlass ").encode()
    assert field.plan_edit("winch", raw=new).apply().raw == new
    with pytest.raises(QueryError, match="no body"):
        field.plan_edit("winch", raw=new, body="x")
    with pytest.raises(NotEditable, match="uuid"):
        field.plan_edit("winch", raw=b"---\nuuid: other\n---\n").apply()


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_the_whole_text_keeps_a_bom_and_the_line_ends_of_lines_that_stay(field: mf.MemoryField, bom: bytes) -> None:
    field.put("winch", bom + TEXT.encode(), replace=True)
    page = field.read("winch")
    shown = page.text.replace("\r\n", "\n")  # as a text field of a browser gives it back
    assert not field.plan_edit(page, text=shown).changes
    plan = field.plan_edit(page, text=shown.replace("green", "red"))
    assert plan.after.raw == bom + TEXT.replace("green", "red").encode()
    with pytest.raises(NotEditable, match="surrogate"):
        field.plan_edit(page, text="\ud800")


def test_a_draft_is_the_page_that_write_would_make(field: mf.MemoryField) -> None:
    draft = field.draft(title="Winch", summary="S", body="Text", tags=["a"])
    assert draft.name == "winch-2"
    assert draft.name not in field
    assert (draft.title, draft.summary, draft.body, draft.frontmatter["tags"]) == ("Winch", "S", "Text\n", ["a"])
    assert field.put(draft.name, draft.raw).uuid == draft.uuid
    with pytest.raises(PageExists):
        field.put(draft.name, draft.raw)
    with pytest.raises(InvalidName):
        field.draft(title="???")


def test_an_archive_makes_no_plan(field: mf.MemoryField, tmp_path: Path) -> None:
    archive = mf.open_field(field.export(tmp_path / "out").path)
    with pytest.raises(ReadOnlyField):
        archive.plan_edit("winch", title="x")
