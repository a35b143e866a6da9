"""The tools as module functions, found by Jupyter's MCP server (and so Jupyter AI) through an entry point.

Which fields they are over stands in ``MEMORYFIELD_FIELDS``: paths as in ``PATH``, each with an optional ``name=`` in
front. ``MEMORYFIELD_MODEL`` names the model; ``auto`` takes what is ready.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryfield.agent.tools import MemoryTools
from memoryfield.errors import QueryError

VARIABLE = "MEMORYFIELD_FIELDS"
_NAMES = (
    "memory_search",
    "memory_pull",
    "memory_read",
    "memory_list",
    "memory_write",
    "memory_delete",
    "memory_refresh",
)


def fields_from(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the fields that an environment names.

    Raises:
        QueryError: It names none.
    """
    fields: dict[str, Path] = {}
    for item in environment.get(VARIABLE, "").split(os.pathsep):
        label, equals, path = item.partition("=")
        if not equals:
            label, path = Path(item).name, item
        if path.strip():
            fields[label.strip()] = Path(path.strip()).expanduser()
    if not fields:
        raise QueryError(f"set {VARIABLE} to the directories of your memory, such as personal=~/memory")
    return fields


@functools.cache
def _tools() -> MemoryTools:
    return MemoryTools(dict(fields_from(os.environ)), model=os.environ.get("MEMORYFIELD_MODEL"), who="jupyter-ai")


def tool_specifications() -> list[str]:
    """Return ``module:function`` of each tool; nothing where no field is named, so that nothing useless is offered."""
    return [f"{__name__}:{name}" for name in _NAMES] if os.environ.get(VARIABLE, "").strip() else []


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_tools(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
