"""What changed between two places: commits, a directory, an archive, a store; by content, with diffs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import memoryfield as mf
from memoryfield.cli import main
from memoryfield.errors import FieldNotFound, PageNotFound
from memoryfield.stores.pages import StorePages

UUID = "0d5a2bd4-2f0c-4a57-9b2c-3d64d1a8a001"


def with_uuid(text: str) -> bytes:
    return f"---\ntitle: Coal\nuuid: {UUID}\n---\n{text}\n".encode()


OLD = {
    "tea.md": b"green\nand hot\n",
    "dock.md": b"deep\n",
    "pier.md": b"long\n",
    "coal.md": with_uuid("black"),
    "empty.md": b"",
}
NEW = {
    "tea.md": b"black\nand hot\n",
    "dock.md": b"deep\n",
    "long-pier.md": b"long\n",
    "hard-coal.md": with_uuid("black and hard"),
    "crane.md": b"<b>tall</b> `x` $y$\n    indented\n",
    "void.md": b"",
}


def write(place: Path, files: dict[str, bytes]) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for path in place.glob("*.md"):
        path.unlink()
    for name, raw in files.items():
        (place / name).write_bytes(raw)
    return place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory in a work tree whose first commit has the old pages; the new ones are not committed."""
    pygit2 = pytest.importorskip("pygit2")
    repository = pygit2.init_repository(str(tmp_path / "work"), initial_head="main")
    ann = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)
    parents: list[Any] = []
    for message, files in (("Old", OLD), ("Newer", OLD | {"tea.md": b"white\n"})):
        write(tmp_path / "work" / "no tes", files)
        repository.index.add_all()
        parents = [repository.create_commit("HEAD", ann, ann, message, repository.index.write_tree(), parents)]
    return write(tmp_path / "work" / "no tes", NEW)


@pytest.fixture(params=["commit", "directory", "archive", "store"])
def earlier(request: pytest.FixtureRequest, home: Path, tmp_path: Path, memory: Any) -> Any:
    """The old pages in each kind of place."""
    if request.param == "commit":
        return f"git+file://{home}@main~1"
    if request.param == "directory":
        return write(tmp_path / "old", OLD)
    if request.param == "archive":
        return mf.open_field(write(tmp_path / "old", OLD)).export(tmp_path / "old.memoryfield.zip").path
    return f"memory://changes/{tmp_path.name}"


def test_what_changed_from_any_place(earlier: Any, home: Path) -> None:
    if isinstance(earlier, str) and earlier.startswith("memory"):
        fsspec = pytest.importorskip("fsspec")
        fsspec.filesystem("memory").pipe({f"{earlier[8:]}/{name}": raw for name, raw in OLD.items()})
    found = mf.open_field(home).changes_since(earlier)
    assert {page.name: page.what for page in found} == {
        "crane": "added",
        "empty": "deleted",
        "hard-coal": "renamed",
        "long-pier": "renamed",
        "tea": "changed",
        "void": "added",
    }
    assert found.added == ("crane", "void") and found.deleted == ("empty",) and found.changed == ("tea",)
    assert found.renamed == {"coal": "hard-coal", "pier": "long-pier"} and found.same == 1
    assert found["tea"].lines == (1, 1) and "-green\n+black\n" in found["tea"].diff()
    assert found["coal.md"] is found["hard-coal"] and "rename from coal.md" in found["hard-coal"].diff()
    assert found["pier"].lines == (0, 0)
    with pytest.raises(PageNotFound):
        found["dock"]


def test_how_it_shows_itself(home: Path) -> None:
    found = mf.open_field(home).changes_since("@HEAD~1")
    assert "2 added, 1 deleted, 1 changed, 2 renamed" in repr(found) and "was coal" in repr(found)
    html = found._repr_html_()
    assert "<b>tall" not in html and "&lt;b&gt;tall" in html and "`x`" not in html and "+    indented" in html
    frame = found.to_frame()
    assert list(frame.name) == [page.name for page in found] and frame.lines_added.sum() == 4
    assert json.loads(json.dumps(found.to_dict()))["pages"][0]["name"] == "crane"
    assert found.diff() == "".join(page.diff() for page in found)
    same = mf.open_field(home).changes_since(home)
    assert len(same) == 0 and not same and "nothing changed" in repr(same) and same.diff() == ""


def test_a_commit_of_the_own_repository_and_the_versions_of_a_page(home: Path) -> None:
    field = mf.open_field(home)
    assert field.changes_since("@main")["tea"].diff().splitlines()[-3:] == ["-white", "+black", "+and hot"]
    assert [v.message for v in field.versions("tea")] == ["Newer", "Old"]
    before = mf.open_field(f"git+file://{home}@main~1")
    assert [v.message for v in before.versions("tea")] == ["Old"]
    assert mf.open_field(f"git+file://{home}@main").changes_since("@main~1").changed == ("tea",), "of two commits"
    with pytest.raises(FieldNotFound):
        field.changes_since("@no-such-branch")


def test_a_field_that_is_in_no_repository(tmp_path: Path, memory: Any) -> None:
    field = mf.open_field(tmp_path / "alone", create=True)
    for act in (lambda: field.versions("tea"), lambda: field.changes_since("@HEAD")):
        with pytest.raises(FieldNotFound):
            act()
    with pytest.raises(FieldNotFound, match="no git repository"):
        mf.MemoryField(StorePages(memory)).versions("tea")


def test_an_earlier_copy_is_named(tmp_path: Path, memory: Any) -> None:
    pages = StorePages(memory)
    pages.snapshot()
    memory.fails = lambda call: True
    write(tmp_path / "here", {"tea.md": b"mine\n"})
    found = mf.MemoryField(StorePages(memory)).changes_since(tmp_path / "here")
    assert found.changed == ("tea",) and found.added == ("dock",)
    assert "test://memory: offline" in found.notes[0] and "offline" in repr(found)


def test_two_pages_of_one_text_are_paired_once(tmp_path: Path) -> None:
    write(tmp_path / "old", {"a.md": b"same\n", "b.md": b"same\n"})
    found = mf.open_field(write(tmp_path / "new", {"c.md": b"same\n"})).changes_since(tmp_path / "old")
    assert found.renamed == {"a": "c"} and found.deleted == ("b",)


def test_the_verb(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["changed", "@HEAD~1", str(home)]) == 0
    assert "2 renamed" in capsys.readouterr().out
    assert main(["changed", "@HEAD", str(home), "--diff"]) == 0
    assert "-white\n+black" in capsys.readouterr().out
    assert main(["changed", str(home), str(home), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["pages"] == []


def test_every_line_of_a_page_is_counted_also_those_that_look_like_the_head_of_a_diff(tmp_path: Path) -> None:
    text = b"---\ntitle: Tea\n---\n++ more\n"
    full, empty = write(tmp_path / "full", {"tea.md": text}), write(tmp_path / "empty", {})
    (gone,) = mf.open_field(empty).changes_since(full)
    (came,) = mf.open_field(full).changes_since(empty)
    assert gone.lines == (0, 4) and came.lines == (4, 0)


def test_a_field_at_a_commit_knows_its_versions_whatever_its_directory_is_called(home: Path) -> None:
    place = home.parent.rename(home.parent.with_name("50%20off #1")) / home.name
    field = mf.open_field(f"git+file://{quote(str(place))}@main")
    assert len(field.versions("tea")) == 2
    assert field.changes_since("@HEAD").changed == () and field.changes_since("@main~1").changed == ("tea",)
