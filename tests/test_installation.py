"""doctor says what is there, and clears only what can be made again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield import installation
from memoryfield.cli import main
from memoryfield.errors import QueryError
from memoryfield.installation import clear_caches
from memoryfield.places import cache_directory, state_directory


def _field(tmp_path: Path) -> mf.MemoryField:
    field = mf.open_field(tmp_path / "field", create=True, model="hashing-1024")
    field.write("tea", body="Green tea.\n")
    field.search("tea")
    return field


def test_it_names_packages_models_and_files(tmp_path: Path) -> None:
    _field(tmp_path)
    found = mf.doctor()
    shown = repr(found)
    assert "all that the main job needs is there" in shown and "all-MiniLM-L6-v2" in shown
    stores = {store.path.name: store for store in found.stores}
    assert stores["keywords"].derived and stores["keywords"].bytes > 0
    assert not stores["journals"].derived and stores["journals"].files >= 1
    json.dumps(found.to_dict())
    assert "<table" in found._repr_html_()


def test_clearing_leaves_pages_histories_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    field = _field(tmp_path)
    assert main(["doctor", "--clear"]) == 0
    assert "can be made again" in capsys.readouterr().out
    assert not any(cache_directory().iterdir())
    assert (state_directory() / "journals").is_dir() and len(field.history()) == 1
    assert field.search("tea")[0].name == "tea"  # made again
    assert clear_caches() > 0


def test_what_is_not_ours_is_never_deleted(tmp_path: Path) -> None:
    _field(tmp_path)
    stranger = cache_directory() / "thesis"
    stranger.mkdir()
    with pytest.raises(QueryError, match="thesis"):
        clear_caches()
    assert stranger.is_dir() and (cache_directory() / "keywords").is_dir()


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_every_directory_that_the_library_makes_is_known_to_doctor() -> None:
    package = Path(mf.__file__).parent
    pattern = re.compile(r"(cache|state)_directory\(\)(?:,| /) \"([\w-]+)\"")
    made = {found for path in package.rglob("*.py") for found in pattern.findall(path.read_text(encoding="utf-8"))}
    assert {("cache", "keywords"), ("state", "journals"), ("state", "imports")} <= made
    known = {("cache", name) for name in installation._CACHES} | {("state", name) for name in installation._STATES}
    assert made <= known


def test_what_an_earlier_version_left_is_cleared_with_the_rest(tmp_path: Path) -> None:
    _field(tmp_path)
    (cache_directory() / "weights").mkdir()
    (cache_directory() / "weights" / "x.json").write_text("{}")
    assert clear_caches() > 0 and not any(cache_directory().iterdir())
