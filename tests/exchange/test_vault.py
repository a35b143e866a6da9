"""Folders of Markdown become flat fields: names, links, what is left alone, and a second run that adds nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.errors import FieldNotFound, QueryError
from memoryfield.exchange.vault import flat_names, read_vault


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for folder in ("Projects", "Daily", ".obsidian"):
        (root / folder).mkdir(parents=True)
    (root / "Boat.md").write_text(
        "---\ntitle: Boat\naliases: [Skiff]\nsource: a book  # mine\n---\n# Boat\n"
        "See [[Projects/Note One|x]], [[Skiff]], [rel](Projects/Note%20One.md#top), ![[img.png]], [[gone]],\n"
        "[web](https://example.com/Boat.md) and `[[Boat]]`.\n"
    )
    (root / "Projects" / "Note One.md").write_bytes(b"Back to [boat](../Boat.md).\r\nNo newline at the end")
    (root / "Daily" / "Note One.md").write_text("Beside: [[Note One]]\n")
    (root / "Broken.md").write_text('---\ntitle: "broken\n---\nx\n')
    (root / "bytes.md").write_bytes(b"caf\xe9 [[Boat]]\n")
    (root / "fine-name.md").write_text("fine\n")
    (root / "img.png").write_bytes(b"\x89PNG")
    (root / ".obsidian" / "app.md").write_text("hidden\n")
    return root


def test_names_are_flat_links_follow_and_bytes_stay(vault: Path, tmp_path: Path) -> None:
    plan = mf.import_field(vault, tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    assert field.names() == ["boat", "broken", "bytes", "daily-note-one", "fine-name", "projects-note-one"]
    boat = field["boat"].body
    assert "[[projects-note-one|x]], [[boat|Skiff]], [rel](projects-note-one.md#top), ![[img.png]], [[gone]]" in boat
    assert "[web](https://example.com/Boat.md) and `[[Boat]]`" in boat
    assert b"source: a book  # mine\n" in field["boat"].raw  # a key of the user's is the user's
    assert field["projects-note-one"].raw.endswith(b"Back to [boat](boat.md).\r\nNo newline at the end")
    assert "[[daily-note-one|Note One]]" in field["daily-note-one"].body  # the one beside it, not the other
    # what cannot be edited comes along as it is
    assert field["broken"].raw == (vault / "Broken.md").read_bytes()
    assert field["bytes"].raw == (vault / "bytes.md").read_bytes()
    assert {(u.where, u.reason.split(" leads")[0]) for u in plan.unread if "link" in u.reason} >= {
        ("Boat.md", "the link to 'gone'")
    }
    assert ("img.png", "no Markdown; 1 page shows it") in {(u.where, u.reason) for u in plan.unread}


def test_three_runs_are_as_one_and_edits_are_never_overwritten(vault: Path, tmp_path: Path) -> None:
    goal = tmp_path / "field"
    mf.import_field(vault, goal)
    first = {path.name: path.read_bytes() for path in goal.glob("*.md")}
    for _ in range(2):
        plan = mf.import_field(vault, goal)
        assert plan.counts == {"add": 0, "update": 0, "unchanged": 6, "conflict": 0}
        assert {path.name: path.read_bytes() for path in goal.glob("*.md")} == first
    # changed in the source only: updated; edited here only: left; both: a conflict
    (vault / "Daily" / "Note One.md").write_text("Newer\n")
    (vault / "fine-name.md").write_text("finer\n")
    field = mf.open_field(goal)
    field.edit("fine-name", append="mine\n")
    field.edit("boat", append="mine\n")
    plan = mf.import_field(vault, goal)
    assert {item.name: item.action for item in plan} == {
        "boat": "unchanged",
        "broken": "unchanged",
        "bytes": "unchanged",
        "daily-note-one": "update",
        "fine-name": "conflict",
        "projects-note-one": "unchanged",
    }
    assert "Newer" in field["daily-note-one"].body and "mine" in field["fine-name"].body
    # one step of the history each, and it can be undone
    assert field.history()[0].verb == "import"
    field.undo()
    assert field["daily-note-one"].raw == first["daily-note-one.md"]


def test_a_dry_run_writes_nothing_and_says_what_would_be(vault: Path, tmp_path: Path) -> None:
    plan = mf.import_field(vault, tmp_path / "field", dry_run=True)
    assert not (tmp_path / "field").exists()
    assert plan.counts["add"] == 6 and "Daily/Note One.md" in repr(plan)
    assert len(plan.to_frame()) == 6 and plan.to_dict()["add"] == 6
    assert "<script" not in plan._repr_html_()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_of_the_file_system_are_not_followed(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside\n")
    (vault / "Link.md").symlink_to(tmp_path / "outside.md")
    (vault / "Loop").symlink_to(vault)
    plan = mf.import_field(vault, tmp_path / "field")
    assert len(plan) == 6
    assert sum("link of the file system" in item.reason for item in plan.unread) == 2


def test_another_page_of_that_name_is_never_overwritten(vault: Path, tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "field", create=True)
    field.write("boat", body="mine\n")
    before = field["boat"].raw
    plan = mf.import_field(vault, tmp_path / "field")
    assert field["boat"].raw == before and plan[0].name == "boat-2"


def test_secrets_are_told_of_and_never_shown(vault: Path, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    (vault / "Keys.md").write_text(f"token: {secret}\n")
    plan = mf.import_field(vault, tmp_path / "field", dry_run=True)
    assert len(plan.secrets) == 1 and "keys, line" in plan.secrets[0]
    assert secret not in repr(plan) and secret not in str(plan.to_dict())


def test_flat_names_do_not_depend_on_the_order() -> None:
    paths = ["a/x.md", "b/x.md", "x.md", "B/X.md", "ü/é.md", "日本.md", "con.md", "a b.md", "a-b.md"]
    names = flat_names(paths)
    assert names == flat_names(list(reversed(paths)))
    assert len(set(names.values())) == len(paths)
    assert names["x.md"] == "x" and names["a/x.md"] == "a-x" and names["a-b.md"] == "a-b"


def test_a_flat_folder_of_pages_stays_a_field_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.md").write_text("a\n")
    report = mf.import_field(tmp_path / "one", tmp_path / "two")
    assert report.added == ("a",) and (tmp_path / "two" / "a.md").read_bytes() == b"a\n"


def test_what_is_no_source_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\0\1")
    with pytest.raises(QueryError, match="no known kind"):
        mf.import_field(tmp_path / "x.bin", tmp_path / "field")
    with pytest.raises(FieldNotFound):
        mf.import_field(tmp_path / "missing.jsonl", tmp_path / "field", kind="records")
    with pytest.raises(QueryError, match="expected auto"):
        mf.import_field(tmp_path / "x.bin", tmp_path / "field", kind="other")
    assert not (tmp_path / "field").exists()


def test_a_link_by_the_end_of_a_path_finds_that_file(tmp_path: Path) -> None:
    for path in ("a/sub/n7.md", "b/other/n7.md", "c/xsub/n7.md"):
        (tmp_path / "vault" / path).parent.mkdir(parents=True)
        (tmp_path / "vault" / path).write_text(f"{path}\n")
    (tmp_path / "vault" / "top.md").write_text("[[sub/n7.md]] [[other/N7.md]] [[gone/n7.md]]\n")
    parts, unread = read_vault(tmp_path / "vault")
    top = next(part for part in parts if part.key == "top.md")
    assert top.raw == b"[[a-sub-n7|sub/n7.md]] [[b-other-n7|other/N7.md]] [[gone/n7.md]]\n"
    assert [item.where for item in unread] == ["top.md"]


def test_a_plan_says_what_would_be_done_and_the_report_what_was(vault: Path, tmp_path: Path) -> None:
    plan = mf.import_field(vault, tmp_path / "field", dry_run=True)
    report = mf.import_field(vault, tmp_path / "field")
    assert "6 to add" in repr(plan) and "6 added" in repr(report) and "to add" not in repr(report)


def test_two_sources_of_one_name_do_not_replace_each_other(tmp_path: Path) -> None:
    for place, text in (("one", "first"), ("two", "second")):
        (tmp_path / place / "notes" / "sub").mkdir(parents=True)
        (tmp_path / place / "notes" / "sub" / "To Do.md").write_text(f"{text}\n")
    mf.import_field(tmp_path / "one" / "notes", tmp_path / "field")
    plan = mf.import_field(tmp_path / "two" / "notes", tmp_path / "field")
    assert plan.counts["conflict"] == 1 and "another source" in plan[0].notes[0]
    assert "first" in mf.open_field(tmp_path / "field")["to-do"].body


def test_a_page_repaired_here_is_not_imported_once_more(vault: Path, tmp_path: Path) -> None:
    mf.import_field(vault, tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    field.put("broken", b"---\ntitle: repaired\n---\nx\n", replace=True)
    for _ in range(2):
        plan = mf.import_field(vault, tmp_path / "field")
        assert plan.counts == {"add": 0, "update": 0, "unchanged": 5, "conflict": 1}
        assert "repaired" in next(item for item in plan if item.action == "conflict").notes[0]
    assert field["broken"].title == "repaired" and len(field) == 6


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("Boat Hoist.md", "Text.\n", "Boat Hoist"),
        ("Boat Hoist.md", "---\ntags: [a]\n---\nText.\n", "Boat Hoist"),
        ("Boat Hoist.md", "# Overview\n\nText.\n", "Boat Hoist"),
        ("Boat Hoist.md", "# Boat hoist\n\nText.\n", "Boat hoist"),
        ("Boat Hoist.md", "---\ntitle: The hoist\n---\nText.\n", "The hoist"),
        ("Übersicht 日本.md", "Text.\n", "Übersicht 日本"),
        ("README.md", "# The yard\n\nText.\n", "The yard"),
        ("sub/boat.md", "Text.\n", "boat"),
    ],
)
def test_a_note_keeps_the_title_that_its_file_name_was(tmp_path: Path, path: str, text: str, title: str) -> None:
    file = tmp_path / "vault" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (tmp_path / "vault" / "other sub").mkdir()
    (tmp_path / "vault" / "other sub" / "x.md").write_text("x\n")
    mf.import_field(tmp_path / "vault", tmp_path / "field")
    (page,) = (page for page in mf.open_field(tmp_path / "field").pages() if page.name != "x")
    assert page.title == title and page.body == text.rpartition("---\n")[2]


def test_no_bookkeeping_stands_in_the_pages(vault: Path, tmp_path: Path) -> None:
    (vault / "facts.md").write_text("same bytes\n")
    mf.import_field(vault, tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    assert not any("imported" in key for page in field.pages() for key in page.frontmatter)
    assert field["facts"].raw == b"same bytes\n"


def test_pages_are_known_again_where_the_memory_of_the_import_is_lost(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "facts.jsonl"
    facts.write_text('{"id": 1, "memory": "Tea is at four."}\n{"memory": "Rope is in the loft."}\n')
    for source in (vault, facts):
        mf.import_field(source, tmp_path / "field")
    before = {page.name: page.raw for page in mf.open_field(tmp_path / "field").pages()}
    monkeypatch.setenv("MEMORYFIELD_STATE_DIR", str(tmp_path / "another machine"))
    for source in (vault, facts):
        plan = mf.import_field(source, tmp_path / "field")
        assert plan.counts["add"] == plan.counts["update"] == plan.counts["conflict"] == 0
    # what was edited there is not overwritten, though nobody knows any more what was written
    field = mf.open_field(tmp_path / "field")
    field.edit("tea-is-at-four", body="Tea is at five.\n")
    monkeypatch.setenv("MEMORYFIELD_STATE_DIR", str(tmp_path / "a third machine"))
    assert mf.import_field(facts, tmp_path / "field").counts["conflict"] == 1
    after = {page.name: page.raw for page in field.pages()}
    assert {n: r for n, r in after.items() if n != "tea-is-at-four"} == {
        n: r for n, r in before.items() if n != "tea-is-at-four"
    }


def test_a_page_that_was_renamed_here_is_still_known(vault: Path, tmp_path: Path) -> None:
    mf.import_field(vault, tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    field.rename("fine-name", "finer-name")
    plan = mf.import_field(vault, tmp_path / "field")
    assert plan.counts["add"] == 0 and "fine-name" not in field.names()


def test_a_damaged_memory_of_imports_is_no_obstacle_and_a_newer_one_is_refused(vault: Path, tmp_path: Path) -> None:
    from memoryfield.errors import NewerSchema
    from memoryfield.places import state_directory

    mf.import_field(vault, tmp_path / "field")
    (path,) = (state_directory() / "imports").glob("field-*.json")
    for text in ("{", "[]", '{"schema_version": 1, "pieces": {"a": 3}}', '{"schema_version": "x", "pieces": {}}'):
        path.write_text(text)
        assert mf.import_field(vault, tmp_path / "field").counts["add"] == 0
    path.write_text('{"schema_version": 9, "pieces": {}}')
    with pytest.raises(NewerSchema):
        mf.import_field(vault, tmp_path / "field")


@pytest.mark.parametrize("there", [False, True])
def test_a_dry_run_of_a_flat_folder_and_of_an_archive_writes_nothing(tmp_path: Path, there: bool) -> None:
    source = mf.open_field(tmp_path / "one", create=True)
    source.write("boat", title="Boat", body="x\n")
    source.export(tmp_path / "one.memoryfield.zip")
    goal = tmp_path / "two"
    if there:
        mf.open_field(goal, create=True).write("boat", body="another\n")
    report = mf.import_field(tmp_path / "one", goal, dry_run=True)
    assert goal.exists() == there and "nothing was written" in repr(report)
    assert (len(report.conflicts), len(report.added)) == ((1, 0) if there else (0, 1))
    assert ("1 conflict" if there else "1 page to add") in repr(report) and "1 conflicts" not in repr(report)
    told = mf.import_field(tmp_path / "one.memoryfield.zip", tmp_path / "three", dry_run=True)
    assert told.added == ("boat",) and not (tmp_path / "three").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_memory_folder_keeps_the_links_of_its_index_and_between_its_notes(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Index\n\n- [Role](user_role.md) - x\n- [[Testing feedback]]\n\n# More\n\ny\n")
    (folder / "user_role.md").write_text(
        "---\nname: User role\ndescription: A boat builder\n---\nSee [[feedback-testing]] and [[nowhere]].\n"
    )
    (folder / "feedback_testing.md").write_text("---\nname: Testing feedback\n---\nUse real ones.\n")
    plan = mf.import_field(folder, tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    links = [f.message for f in field.validate() if "links to" in f.message]
    assert links == ["links to nowhere.md, which is not there"], links
    assert [item.where for item in plan.unread] == ["user_role.md"]
    assert (field["user-role"].title, field["user-role"].summary) == ("User role", "A boat builder")
