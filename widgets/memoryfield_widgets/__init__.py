"""Notebook widgets for a memoryfield.

Every panel stands alone (``MemoryMap(field)``) or beside others, shares one state with them, and does nothing that a
method of :class:`memoryfield.MemoryField` does not do. ``panel.py`` says how a panel is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryfield_widgets.editor import PageEditor
    from memoryfield_widgets.families import FamilyReview
    from memoryfield_widgets.map import MemoryMap
    from memoryfield_widgets.models import ModelComparison
    from memoryfield_widgets.panel import Panel
    from memoryfield_widgets.probes import ProbeAnnotator
    from memoryfield_widgets.scatter import ScatterMap
    from memoryfield_widgets.search import SearchBox
    from memoryfield_widgets.state import State
    from memoryfield_widgets.status import StatusBar
    from memoryfield_widgets.workbench import Workbench

__version__ = "0.1.0"

_HOMES = {
    "FamilyReview": "families",
    "MemoryMap": "map",
    "ModelComparison": "models",
    "PageEditor": "editor",
    "Panel": "panel",
    "ProbeAnnotator": "probes",
    "ScatterMap": "scatter",
    "SearchBox": "search",
    "State": "state",
    "StatusBar": "status",
    "Workbench": "workbench",
}

__all__ = [
    "FamilyReview",
    "MemoryMap",
    "ModelComparison",
    "PageEditor",
    "Panel",
    "ProbeAnnotator",
    "ScatterMap",
    "SearchBox",
    "State",
    "StatusBar",
    "Workbench",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"memoryfield_widgets.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'memoryfield_widgets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
