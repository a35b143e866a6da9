"""Fixtures for index tests: fields of real files, and a small model with real structure."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoryfield.format.pages import PageDirectory

TOY_MODEL = Path(__file__).with_name("toy_model.py")


def load_toy_model() -> ModuleType:
    """Import the module beside this file; test directories are no packages."""
    if "toy_model" not in sys.modules:
        spec = importlib.util.spec_from_file_location("toy_model", TOY_MODEL)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["toy_model"] = module
        spec.loader.exec_module(module)
    return sys.modules["toy_model"]


@pytest.fixture
def toy_model() -> Callable[..., Any]:
    """Return the class of the small model."""
    return load_toy_model().ToyModel  # type: ignore[no-any-return]


@pytest.fixture
def toy_program() -> Path:
    """Return the program that syncs a directory with the small model."""
    return TOY_MODEL


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    """Return a field of five pages about different things."""
    folder = tmp_path / "field"
    folder.mkdir()
    pages = {
        "anchor": ("Anchors", "Anchors hold a boat in the harbor. Drop the anchor slowly into the mud."),
        "bread": ("Bread", "Bread needs flour, water, salt and yeast. Let the dough rise overnight."),
        "compass": ("Compass", "A compass points north. Keep iron away from the compass on the boat."),
        "dough": ("Dough", "Knead the dough until it is smooth, then let it rest under a cloth."),
        "engine": ("Engine", "The engine of the boat needs oil. Change the filter every season."),
    }
    for name, (title, body) in pages.items():
        text = f"---\ntitle: {title}\nsummary: About {title.lower()}\n---\n{body}\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return PageDirectory(folder)
