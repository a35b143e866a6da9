"""Names and places of index files, and what a file is (FORMAT X1, X5, X12)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.files import (
    default_index_path,
    describe_index,
    file_stem,
    find_indexes,
    index_filename,
    inspect_index,
    pages_behind,
    parse_index_filename,
)
from memoryfield.index.vectors import VectorIndex
from memoryfield.places import cache_directory


def test_plain_name_for_the_default_recipe_X1_X5() -> None:
    assert index_filename("nomic-embed-text-v1.5") == "nomic-embed-text-v1.5.sqlite3"
    assert index_filename("nomic-embed-text-v1.5", "content") == "nomic-embed-text-v1.5.content.sqlite3"


@pytest.mark.parametrize("code", ["BAAI/bge-small-en-v1.5", "nomic-embed-text:latest", "..", "a b", "模型", "x" * 500])
def test_any_code_makes_a_name_that_every_system_holds(code: str) -> None:
    name = index_filename(code)
    assert not name.startswith(".")
    assert len(name) < 200
    assert all(c.isascii() and (c.isalnum() or c in "._+-") for c in name)


def test_long_codes_do_not_fall_together() -> None:
    assert file_stem("x" * 400 + "1") != file_stem("x" * 400 + "2")


def test_name_leads_back_to_model_and_recipe() -> None:
    assert parse_index_filename("nomic-embed-text-v1.5.sqlite3") == ("nomic-embed-text-v1.5", "page")
    assert parse_index_filename("nomic-embed-text-v1.5.content.sqlite3") == ("nomic-embed-text-v1.5", "content")
    assert parse_index_filename("notes.md") is None
    assert parse_index_filename(".hidden.sqlite3") is None
    assert parse_index_filename(".sqlite3") is None


def test_unknown_recipe_has_no_file() -> None:
    with pytest.raises(QueryError, match="chapters"):
        index_filename("toy", "chapters")


class ReadOnlyDirectory(PageDirectory):
    """A directory that the system would not let us write."""

    read_only = True  # type: ignore[assignment]


def test_field_that_cannot_be_written_keeps_its_index_in_the_cache(field: PageDirectory) -> None:
    assert default_index_path(field, "toy") == field.path / "toy.sqlite3"
    place = default_index_path(ReadOnlyDirectory(field.path), "toy")
    assert place.is_relative_to(cache_directory() / "indexes")
    assert place.name == "toy.sqlite3"


def test_missing_and_empty_files_are_told_apart(tmp_path: Path) -> None:
    assert inspect_index(tmp_path / "toy.sqlite3").state == "missing"
    (tmp_path / "toy.sqlite3").touch()
    assert inspect_index(tmp_path / "toy.sqlite3").state == "empty"


def test_state_of_our_own_file(field: PageDirectory, toy_model: Callable[..., Any]) -> None:
    index = VectorIndex(field, toy_model("toy/a b"))
    index.sync()
    state = inspect_index(index.path)
    assert (state.state, state.model_code, state.recipe) == ("ok", "toy/a b", "page")
    assert (state.dimensions, state.rows, state.has_meta, state.problem) == (96, 5, True, "")
    assert state.modified is not None and state.modified.tzinfo is not None
    assert "toy/a b" in repr(state) and "toy/a b" in state._repr_html_()
    assert state.to_dict()["rows"] == 5


def test_indexes_of_a_field_are_found_with_how_far_they_are_behind(
    field: PageDirectory, toy_model: Callable[..., Any]
) -> None:
    model = toy_model()
    VectorIndex(field, model).sync()
    VectorIndex(field, model, "content").sync()
    (field.path / "empty-model.sqlite3").touch()
    cached = VectorIndex(ReadOnlyDirectory(field.path), toy_model("other"))
    cached.sync()
    (field.path / "new.md").write_text("new\n")
    (field.path / "bread.md").write_text("changed\n")
    (field.path / "anchor.md").unlink()
    states = find_indexes(field)
    names = ["empty-model.sqlite3", "toy-model.content.sqlite3", "toy-model.sqlite3", "other.sqlite3"]
    assert [state.path.name for state in states] == names
    snapshot = field.snapshot()
    shown = {state.path.name: describe_index(state, snapshot)[5] for state in states}
    assert shown["toy-model.sqlite3"] == shown["other.sqlite3"] == "3 pages behind"
    assert shown["empty-model.sqlite3"] == "5 pages behind"
    VectorIndex(field, model).sync()
    assert pages_behind(states[2].path, snapshot) == 0
    assert describe_index(inspect_index(states[2].path), snapshot)[5] == "up to date"


AWKWARD = ["a b", "what?", "50%", "%20", "#1", "it's", 'say "hi"', "漢字", "a&b=c", "file:x?mode=memory", "ünï\u0301"]


@pytest.mark.skipif(os.name == "nt", reason="Windows holds no such names")
@pytest.mark.parametrize("name", AWKWARD)
def test_fields_with_awkward_names_X12(tmp_path: Path, name: str, toy_model: Callable[..., Any]) -> None:
    folder = tmp_path / name / "field"
    folder.mkdir(parents=True)
    (folder / "one.md").write_text("one stone\n")
    index = VectorIndex(PageDirectory(folder), toy_model())
    index.sync()
    assert sorted(os.listdir(folder)) == ["one.md", "toy-model.sqlite3"]
    assert index.search(toy_model().embed_query("stone"), 3)[0] == ["one"]
    assert index.state().state == "ok"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(os.name == "nt" or os.sys.platform == "darwin", reason="the file system takes only Unicode names")
def test_field_whose_name_is_no_text_X12(tmp_path: Path, toy_model: Callable[..., Any]) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    (folder / "one.md").write_text("one stone\n")
    index = VectorIndex(PageDirectory(folder), toy_model())
    index.sync()
    assert index.search(toy_model().embed_query("stone"), 3)[0] == ["one"]
