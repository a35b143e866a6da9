"""The command ``compare``: text, JSON, Markdown, the report, and what stops it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memoryfield.cli import DONE, NOTHING, REFUSED, main
from memoryfield.examples import example_field


@pytest.fixture
def notes(tmp_path: Path) -> str:
    path = tmp_path / "notes"
    shutil.copytree(example_field("bread"), path, ignore=shutil.ignore_patterns("*.sqlite3"))
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_two_recipes_with_a_report(notes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "made" / "out.html"
    probes = tmp_path / "probes.jsonl"
    probes.write_text('{"question": "salt left out of the dough", "gold": ["salt-in-red-cup"]}\n')
    code, out, _ = _run(
        capsys,
        *("compare", notes, "--models", "hashing-1024", "--recipes", "page, content", "--quiet"),
        *("--report", str(target), "--maps", "pca", "--probes", str(probes)),
    )
    assert code == DONE and "hashing-1024 (content)" in out and "overlap@10" in out and "most differently" in out
    assert "recall@1" in out and "paired difference" in out
    text = target.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and "Two maps" in text and "Retrieval" in text and "<script" not in text


def test_json_and_markdown(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "compare", notes, "--models", "hashing-1024,no-such-model-x", "--json")
    found = json.loads(out)
    assert code == DONE and found["pages"] == 12 and list(found["failed"]) == ["no-such-model-x"]
    assert found["spaces"][0]["index_bytes"] > 0 and found["evaluation"] is None
    code, out, _ = _run(
        capsys, "compare", notes, "--models", "hashing-1024", "--recipes", "page,content", "--markdown", "-k", "3"
    )
    assert code == DONE and "| first | second | overlap@3 |" in out


def test_what_stops_it(notes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "compare", notes, "--models", "no-such-model-x")
    assert code == NOTHING and "no model is called" in out
    code, _, err = _run(capsys, "compare", notes, "--models", "hashing-1024", "--dimensions", "64,x")
    assert code == REFUSED and "768,256" in err
    code, _, err = _run(capsys, "compare", notes, "--models", ",")
    assert code == REFUSED and "models is empty" in err
    page = Path(notes, "salt-in-red-cup.md")
    before = page.read_bytes()
    code, _, err = _run(capsys, "compare", notes, "--models", "hashing-1024", "--report", str(page))
    assert code == REFUSED and page.read_bytes() == before
    assert not list(Path(notes).glob("*.sqlite3"))  # nothing was embedded for it
