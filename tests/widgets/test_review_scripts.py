"""The scripts of families, models and probes, run by Node: pure functions, and that the joined modules are ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import memoryfield_widgets
from memoryfield_widgets.panel import script

NODE = shutil.which("node")
WIDGETS = Path(memoryfield_widgets.__file__).parent
PANELS = {
    "families": ("merging.js", "families.js"),
    "models": ("geometry.js", "colors.js", "pixels.js", "paint.js", "twindraw.js", "twinmaps.js", "models.js"),
    "probes": ("probes.js",),
}


@pytest.mark.skipif(NODE is None, reason="Node is not installed, so scripts are tested in the browser only")
def test_pure_functions(tmp_path: Path) -> None:
    for path in WIDGETS.glob("*.js"):
        shutil.copy(path, tmp_path)
    # Node takes a file for a module by its ending or by the nearest package.json
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(Path(__file__).with_name("review_scripts.test.mjs"), tmp_path)
    assert NODE is not None
    command = [NODE, "--test", "review_scripts.test.mjs"]
    env = {**os.environ, "WIDGETS": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


@pytest.mark.skipif(NODE is None, reason="Node is not installed, so scripts are tested in the browser only")
@pytest.mark.parametrize("panel", PANELS)
def test_the_joined_script_is_a_module(panel: str, tmp_path: Path) -> None:
    joined = tmp_path / f"{panel}.mjs"
    joined.write_text(script(*PANELS[panel]), encoding="utf-8")
    assert NODE is not None
    run = subprocess.run([NODE, "--check", str(joined)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
