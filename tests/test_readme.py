"""The README's example runs and prints what the README shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _example() -> tuple[str, str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- example:start -->")[1]
    found = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found.group(1), found.group(2)


def test_the_example_prints_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The field is a copy, so that the test leaves no index beside the example."""
    import shutil

    code, shown = _example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 5
    shutil.copytree(ROOT / "data" / "harbor", tmp_path / "data" / "harbor", ignore=shutil.ignore_patterns("*.sqlite3"))
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue().strip() == shown.strip()


def test_the_tour_runs_in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- tour:start -->")[1]
    code = text.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "backup" / "notes.memoryfield.zip.sha256").is_file()
    assert (tmp_path / "copy" / "oil.md").is_file()


def test_every_verb_and_make_target_of_the_readme_exists() -> None:
    from memoryfield.cli.parser import build_parser

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    verbs = build_parser()._subparsers._group_actions[0].choices
    for verb in re.findall(r"^memoryfield ([a-z]+)", text, re.MULTILINE):
        assert verb in verbs
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"^make ([a-z]+)", text, re.MULTILINE):
        assert target in targets
