"""Probes in one place: the values, their files, and ways to make them.

probe        Probe and Probes
files        reading and writing JSON lines and CSV
checks       what is wrong with them for a field
making       from titles, from headings, or written by a language model
asker        a ready function for the last of these

``annotate`` opens the panel in which a person writes and judges them.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from memoryfield.study.probes.asker import openai_asker
from memoryfield.study.probes.checks import ProbeFinding, ProbeFindings
from memoryfield.study.probes.files import read_probes
from memoryfield.study.probes.making import PROMPT, from_sections, from_titles, write
from memoryfield.study.probes.probe import Probe, Probes

__all__ = [
    "PROMPT",
    "Probe",
    "ProbeFinding",
    "ProbeFindings",
    "Probes",
    "annotate",
    "from_sections",
    "from_titles",
    "openai_asker",
    "read_probes",
    "write",
]


def annotate(field: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
    """Return the notebook panel in which questions are written and judged; what is saved is read by ``read_probes``.

    Args:
        field: The ``MemoryField``.
        path: The file; by default ``NAME.probes.jsonl`` beside the field. One that is there is gone on with.
        options: As for ``memoryfield_widgets.ProbeAnnotator``.
    """
    # by its name and only now: this library works without its widgets, which stand above it
    return import_module("memoryfield_widgets").ProbeAnnotator(field, path, **options)
