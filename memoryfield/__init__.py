"""memoryfield: open, search, study and curate memory that is plain data.

A memoryfield is a flat directory of Markdown pages with optional YAML frontmatter, plus one SQLite file of vectors per
embedding model. Start with ``open_field``. Everything else is loaded when it is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

# ONNX Runtime tells its makers of each start unless it is told not to before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from memoryfield.errors import MemoryfieldError
    from memoryfield.field import MemoryField
    from memoryfield.format.page import Page
    from memoryfield.index.embedders.catalogue import load_model, models
    from memoryfield.installation import doctor
    from memoryfield.opening import import_field, open_field, search_fields
    from memoryfield.study.probes.files import read_probes
    from memoryfield.study.probes.probe import Probe, Probes

_HOMES = {
    "MemoryField": "memoryfield.field",
    "MemoryfieldError": "memoryfield.errors",
    "Page": "memoryfield.format.page",
    "Probe": "memoryfield.study.probes.probe",
    "Probes": "memoryfield.study.probes.probe",
    "doctor": "memoryfield.installation",
    "errors": "memoryfield",
    "import_field": "memoryfield.opening",
    "load_ipython_extension": "memoryfield.magics",
    "load_model": "memoryfield.index.embedders.catalogue",
    "models": "memoryfield.index.embedders.catalogue",
    "open_field": "memoryfield.opening",
    "read_probes": "memoryfield.study.probes.files",
    "search_fields": "memoryfield.opening",
    "unload_ipython_extension": "memoryfield.magics",
}

__all__ = [
    "MemoryField",
    "MemoryfieldError",
    "Page",
    "Probe",
    "Probes",
    "doctor",
    "errors",
    "import_field",
    "load_model",
    "models",
    "open_field",
    "read_probes",
    "search_fields",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("memoryfield-lab")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "0+unknown"
    if name == "errors":
        return import_module("memoryfield.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'memoryfield' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
