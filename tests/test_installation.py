"""doctor says what is there, and clears only what can be made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memoryfield as mf
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
