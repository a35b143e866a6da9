"""Probes in one place: the values, their files, and ways to make them.

probe        Probe and Probes
probefiles   reading and writing JSON lines and CSV
probechecks  what is wrong with them for a field
making       from titles, from headings, or written by a language model
asker        a ready function for the last of these
"""

from __future__ import annotations

from memoryfield.study.asker import openai_asker
from memoryfield.study.making import PROMPT, from_sections, from_titles, write
from memoryfield.study.probe import Probe, Probes
from memoryfield.study.probechecks import ProbeFinding, ProbeFindings
from memoryfield.study.probefiles import read_probes

__all__ = [
    "PROMPT",
    "Probe",
    "ProbeFinding",
    "ProbeFindings",
    "Probes",
    "from_sections",
    "from_titles",
    "openai_asker",
    "read_probes",
    "write",
]
