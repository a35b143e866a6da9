"""Examples of the documentation run; it builds offline with warnings as errors; what it names exists."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _examples(path: Path) -> str:
    """All examples of a page, one after the other, as a reader would run them."""
    return "\n".join(code for skipped, code in _BLOCK.findall(path.read_text(encoding="utf-8")) if not skipped)


WITH_EXAMPLES = [path for path in PAGES if _examples(path)]


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::UserWarning")  # an example may warn as it would in a notebook
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("*.sqlite3"))
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(_examples(path), path.name, "exec"), {"__name__": "example"})


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 7


@pytest.mark.slow
def test_it_builds_offline_with_warnings_as_errors(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("_build"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(tmp_path / "docs"), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "out").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        fetched = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)', page.read_text(encoding="utf-8"))
        assert fetched == [], f"{page.name} asks for {fetched}"
    verbs = (tmp_path / "out" / "reference" / "cli.html").read_text(encoding="utf-8")
    assert all(f'id="{verb}"' in verbs for verb in ("search", "merge", "evaluate", "serve", "mcp"))


def test_every_command_that_is_named_exists() -> None:
    from memoryfield.cli.parser import build_parser

    verbs = set(build_parser()._subparsers._group_actions[0].choices)
    for path in PAGES:
        if path.name != "cli.md":
            for verb in re.findall(
                r"^(?:\S+=\S+ )?memoryfield ([a-z]+)|`memoryfield ([a-z]+)", path.read_text(), re.MULTILINE
            ):
                assert (verb[0] or verb[1]) in verbs, f"{path.name}: {verb}"


def test_every_link_between_pages_leads_somewhere() -> None:
    for path in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = re.sub(
            r"```.*?```|`[^`\n]+`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )  # links that are shown
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            if path.name != "cli.md":
                assert (path.parent / target).exists() or target.endswith("cli.md"), f"{path.name}: {target}"
