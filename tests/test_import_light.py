"""Importing the library costs nothing: what is heavy loads when it is first used."""

from __future__ import annotations

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
