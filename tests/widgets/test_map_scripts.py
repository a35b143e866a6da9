"""The map's scripts, run by Node: their pure functions, and that the joined module is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import memoryfield_widgets
from memoryfield_widgets.mapviews import SCRIPTS
from memoryfield_widgets.panel import script

NODE = shutil.which("node")
WIDGETS = Path(memoryfield_widgets.__file__).parent

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed, so scripts are tested in the browser only")


def node(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    env = {**os.environ, "WIDGETS": str(WIDGETS)}
    return subprocess.run([NODE, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, env=env)


def test_pure_functions(tmp_path: Path) -> None:
    # Node takes a file for a module by its ending or by the nearest package.json
    for name in (
        "geometry",
        "colors",
        "pixels",
        "paint",
        "maplist",
        "mapdraw",
        "mapacts",
        "mapscene",
        "maptold",
        "map",
        "panel",
        "status",
    ):
        shutil.copy(WIDGETS / f"{name}.js", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(Path(__file__).with_name("map_scripts.test.mjs"), tmp_path)
    assert NODE is not None
    env = {**os.environ, "WIDGETS": str(tmp_path)}
    run = subprocess.run(
        [NODE, "--test", "map_scripts.test.mjs"], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_the_joined_script_is_a_module(tmp_path: Path) -> None:
    joined = tmp_path / "map.mjs"
    joined.write_text(script(*SCRIPTS), encoding="utf-8")
    run = node("--check", str(joined), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
