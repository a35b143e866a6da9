"""What the README shows runs, in the order in which it is shown, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

# One session of IPython, as in a notebook, and a shell in the same directory; standard input is empty.
_NEWCOMER = """
import json, subprocess, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for kind, text in json.loads(sys.stdin.read()):
    print(f"== {kind}: {text.splitlines()[0]}", flush=True)
    if kind == "sh":
        subprocess.run(["bash", "-euc", text], check=True, stdin=subprocess.DEVNULL)
    else:
        done = shell.run_cell(text, store_history=False)
        if not done.success:
            raise SystemExit(f"failed: {done.error_in_exec or done.error_before_exec!r}")
"""


def _example() -> tuple[str, str]:
    found = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", README.split("<!-- example:start -->")[1], re.DOTALL)
    assert found is not None
    return found.group(1), found.group(2)


def _copy_of_the_examples(into: Path) -> None:
    """So that no index is left beside the examples."""
    shutil.copytree(ROOT / "data", into / "data", ignore=shutil.ignore_patterns("*.sqlite3"))


def test_the_example_prints_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, shown = _example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 5
    _copy_of_the_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue().strip() == shown.strip()


@pytest.mark.slow
def test_all_blocks_run_one_after_the_other_in_a_fresh_directory(tmp_path: Path) -> None:
    """As a newcomer tries them: what one block leaves behind is what the next one finds."""
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "text", "ipython"}, "no block goes untried"
    tried = [(kind, text) for kind, text in BLOCKS if kind != "text" and not text.startswith("make ")]
    assert len(tried) >= 7
    _copy_of_the_examples(tmp_path)
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", _NEWCOMER],
        input=json.dumps(tried),
        cwd=tmp_path,
        env={**os.environ, "PATH": paths, "IPYTHONDIR": str(tmp_path / "ipython"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "UsageError" not in told and "Traceback" not in told, told  # a magic says what it refuses, and goes on
    assert (tmp_path / "backup" / "notes.memoryfield.zip.sha256").is_file()
    assert {path.stem for path in (tmp_path / "copy").glob("*.md")} == {"winch-brake", "oil"}
    pages = {path.stem for path in (tmp_path / "notes").glob("*.md")}
    assert pages == {"winch-brake", "oil", "oil-for-the-winch", "brake-again"}, "the merge was taken back"
    assert "merge" in told and "oil-for-the-winch" in told


def test_every_verb_and_make_target_of_the_readme_exists() -> None:
    from memoryfield.cli.parser import build_parser

    verbs = build_parser()._subparsers._group_actions[0].choices
    for verb in re.findall(r"(?:^|`)memoryfield ([a-z]+)", README, re.MULTILINE):
        assert verb in verbs
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE):
        assert target in targets


def test_the_badges_are_true() -> None:
    """They are pictures of our own: nothing is asked for elsewhere, and nothing in them goes stale unseen."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = {
        path.stem: " ".join(re.findall(r"<text[^>]*>([^<]*)<", path.read_text(encoding="utf-8")))
        for path in (ROOT / "docs" / "badges").glob("*.svg")
    }
    for name in texts:
        assert f"docs/badges/{name}.svg" in README
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    first, last = versions[0], versions[-1]
    assert texts["python"] == f"python {first} to {last}"
    assert texts["licence"] == f"licence {project['license']}"
    assert "mypy --strict memoryfield" in (ROOT / "Makefile").read_text(encoding="utf-8") and "typed" in texts
    assert 'HF_HUB_OFFLINE", "1"' in (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8") and "offline" in texts
    assert len(texts) == 4


def test_pictures_of_the_readme_are_there_and_the_comparison_is_dated() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)
    assert all(words and (ROOT / path).is_file() for words, path in pictures)
    assert any(path.endswith("workbench.png") for _, path in pictures)
    table = README.split("## Beside other tools")[1]
    assert re.search(r"in [A-Z][a-z]+ 20\d\d: `memoryfield-tool` [\d.]+", table)
