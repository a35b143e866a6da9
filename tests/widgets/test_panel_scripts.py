"""Small functions of the scripts of search, editor and workbench, run by Node without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import memoryfield_widgets

HERE = Path(memoryfield_widgets.__file__).parent


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None:
        pytest.skip("needs Node, which is not here")
    place = tmp_path_factory.mktemp("scripts")
    (place / "package.json").write_text('{"type": "module"}')
    for path in HERE.glob("*.js"):
        shutil.copy(path, place)
    return place


def run(scripts: Path, name: str, expression: str) -> Any:
    """Return the value of an expression that uses the exports of a script as ``it``."""
    code = f"import * as it from './{name}'; console.log(JSON.stringify({expression}));"
    command = ["node", "--input-type=module", "-e", code]
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_arrows_go_round_the_hits(scripts: Path) -> None:
    keys = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "x"]
    found = run(
        scripts, "search.js", f"[-1, 0, 2].map((at) => {json.dumps(keys)}.map((key) => it.nextOption(key, at, 3)))"
    )
    assert found == [[0, 2, 2, 0, None], [1, 2, 2, 0, None], [0, 1, 2, 0, None]]
    assert run(scripts, "search.js", "['ArrowDown', 'x'].map((key) => it.nextOption(key, -1, 0))") == [-1, None]


def test_late_echoes_do_not_overwrite_what_is_typed(scripts: Path) -> None:
    sent = "e.send('wi'); e.send('winch');"
    steps = f"(() => {{ const e = it.echoes(); {sent} return ['wi', 'winch', 'winch', 'other'].map(e.isNews); }})()"
    assert run(scripts, "search.js", steps) == [False, False, True, True]


def test_size_in_words(scripts: Path) -> None:
    facts = [
        {"bytes": 8192, "limit": 8192},
        {"bytes": 9000, "limit": 8192},
        {"bytes": 10, "limit": 8192, "tokens": 300, "maxTokens": 256},
        {"bytes": 10, "limit": 8192, "tokens": None, "maxTokens": 256},
        {"limit": 8192},
    ]
    found = run(scripts, "editor.js", f"{json.dumps(facts)}.map(it.sizeWords)")
    assert [one["over"] for one in found] == [False, True, True, False, False]
    assert found[0]["words"] == "8,192 of 8,192 bytes"
    assert "808 bytes need not be embedded" in found[1]["words"]
    assert "300 of 256 tokens" in found[2]["words"] and "does not read the rest" in found[2]["words"]
    assert found[3]["words"].endswith("the model reads 256 tokens")
    assert found[4]["words"] == ""


def test_tabs_go_round(scripts: Path) -> None:
    keys = ["ArrowRight", "ArrowLeft", "Home", "End", "Enter"]
    found = run(
        scripts, "workbench.js", f"[0, 3].map((at) => {json.dumps(keys)}.map((key) => it.tabAfter(key, at, 4)))"
    )
    assert found == [[1, 3, 0, 3, None], [0, 2, 0, 3, None]]


def test_shortcuts_are_for_those_who_do_not_type(scripts: Path) -> None:
    nodes = [
        {"tagName": "INPUT", "type": "text"},
        {"tagName": "INPUT", "type": "checkbox"},
        {"tagName": "TEXTAREA"},
        {"tagName": "DIV", "isContentEditable": True},
        {"tagName": "BUTTON"},
        None,
    ]
    assert run(scripts, "workbench.js", f"{json.dumps(nodes)}.map(it.isTyping)") == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
