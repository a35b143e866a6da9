"""push and pull as typed: a plan first, --yes, conflicts in the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryfield.cli import main


@pytest.fixture
def here(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    (place / "tea.md").write_text("green\n")
    return place


def test_push_and_pull(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "there"
    assert main(["push", str(here), str(there), "--create"]) == 0
    shown = capsys.readouterr()
    assert "1 to add" in shown.out and "nothing was written" in shown.err and not list(there.glob("*.md"))
    assert main(["push", str(here), str(there), "--yes"]) == 0
    assert (there / "tea.md").read_text() == "green\n"
    (there / "dock.md").write_text("deep\n")
    capsys.readouterr()
    assert main(["pull", str(here), str(there), "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["act"]) for row in told["pages"]] == [("dock", "add")] and told["same"] == 1
    assert (here / "dock.md").read_text() == "deep\n"


def test_conflicts(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "tea.md").write_text("black\n")
    assert main(["push", str(here), str(there), "--apply"]) == 1
    assert "conflict" in capsys.readouterr().out and (there / "tea.md").read_text() == "black\n"
    assert main(["push", str(here), str(there), "--apply", "--take", "tea"]) == 0
    assert (there / "tea.md").read_text() == "green\n"


def test_a_place_that_does_not_answer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", str(here), "http://ann:secret@127.0.0.1:9/notes"]) == 3
    shown = capsys.readouterr().err
    assert "cannot be reached" in shown and "secret" not in shown
