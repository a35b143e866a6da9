"""Fixtures for search tests: fields of real files, and the small model of the index tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryfield.format.pages import PageDirectory, PageSource
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.vectors import VectorIndex
from memoryfield.retrieve.search import SearchTarget

PAGES = {
    "anchor": ("Anchors", "2026-01-10", "draft: true\ntags: [boat, iron]", "Anchors hold a boat in the harbor mud."),
    "bread": ("Bread", "2026-02-20T23:30:00Z", "tags: [kitchen]\nportions: 4", "Bread: flour, water, salt, yeast."),
    "compass": ("Compass", "2026-03-01T00:30:00+02:00", "draft: false", "A compass points north, also on a boat."),
    "dough": ("Dough", "2026-03-15", "tags: kitchen", "Knead the dough until smooth, then let it rest."),
    "engine": ("Engine", "2026-04-01", "owner:\n  team: yard", "The engine of the boat needs oil and a filter."),
}


@pytest.fixture
def toy_model() -> Callable[..., Any]:
    """Return the class of the small model."""
    if "toy_model" not in sys.modules:
        path = Path(__file__).parent.parent / "index" / "toy_model.py"
        spec = importlib.util.spec_from_file_location("toy_model", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["toy_model"] = module
        spec.loader.exec_module(module)
    return sys.modules["toy_model"].ToyModel  # type: ignore[no-any-return]


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    """Return a field of five pages with frontmatter."""
    folder = tmp_path / "harbor"
    folder.mkdir()
    for name, (title, updated, more, body) in PAGES.items():
        text = f"---\ntitle: {title}\nsummary: About {title.lower()}\nupdated: {updated}\n{more}\n---\n{body}\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return PageDirectory(folder)


@pytest.fixture
def target(field: PageDirectory, toy_model: Callable[..., Any]) -> SearchTarget:
    """Return the field with both indexes, ready to search."""
    return make_target(field, toy_model())


@pytest.fixture
def targets_of() -> Callable[..., SearchTarget]:
    """Return a function that makes a target of a source and a model."""
    return make_target


def make_target(source: PageSource, model: Any, name: str = "", recipe: str = "page") -> SearchTarget:
    index = VectorIndex(source, model, recipe)
    return SearchTarget(name or source.path.name, source, index, KeywordIndex(source))
