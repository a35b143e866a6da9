"""Importing the library costs nothing: what is heavy loads when it is first used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEAVY = frozenset(
    {"IPython", "anywidget", "huggingface_hub", "ipywidgets", "matplotlib", "numba", "numpy", "onnx", "onnxruntime"}
    | {"openvino", "pandas", "plotly", "scipy", "sentence_transformers", "sklearn", "tokenizers", "torch"}
    | {"transformers", "umap"}
)

# These floors compute with arrays: numpy may load with them, nothing else from the list.
MAY_LOAD_NUMPY = ("index", "retrieve", "curate", "study")


def modules() -> list[str]:
    """Names of all modules of the library, from its files; ``__main__`` runs, it is not imported."""
    names = []
    for path in sorted((ROOT / "memoryfield").rglob("*.py")):
        if path.stem == "__main__":
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def loaded_by(*names: str) -> set[str]:
    """Return the top-level names in ``sys.modules`` of a fresh interpreter after importing *names*."""
    code = "\n".join([f"import {name}" for name in names] + ["import sys", "print(*sys.modules)"])
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_the_public_face_loads_nothing_heavy() -> None:
    assert not loaded_by("memoryfield") & HEAVY


def test_the_floors_without_arrays_load_nothing_heavy() -> None:
    light = [name for name in modules() if name.partition(".")[2].partition(".")[0] not in MAY_LOAD_NUMPY]
    assert "memoryfield.errors" in light
    assert not loaded_by(*light) & HEAVY


def test_the_floors_with_arrays_load_numpy_at_most() -> None:
    assert loaded_by(*modules()) & HEAVY <= {"numpy"}


@pytest.mark.parametrize("name", modules())
def test_every_module_can_be_imported_first(name: str) -> None:
    """A cycle of imports shows only when one begins at the wrong end."""
    loaded_by(name)


def test_nothing_is_told_to_the_makers_of_a_package(tmp_path: Path) -> None:
    """ONNX Runtime asks for an address of its makers, and keeps a file for them, unless it is told not to before."""
    pytest.importorskip("onnxruntime")
    code = (
        "import memoryfield as mf\n"
        "field = mf.open_field('f', create=True, model='all-MiniLM-L6-v2', backend='fast')\n"
        "field.write('a', body='text')\n"
        "field.search('text', progress=False)\n"
        "import sys; assert 'onnxruntime' in sys.modules\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache"), "USERPROFILE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=200)
    assert not [path for path in tmp_path.rglob("*") if "icrosoft" in path.name or "onnxruntime" in path.name.lower()]
