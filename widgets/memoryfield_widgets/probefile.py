"""The file of probes that are being written: read, added to, changed, and never robbed of what others wrote into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import memoryfield as mf

_KEYS = frozenset(["id", "question", "gold", "category", "answerable", "family_gold"])
_MOST_LOST = 3


class ProbeFile:
    """Probes in a ``.jsonl`` or ``.csv`` file; each change is written at once.

    Args:
        path: The file; it need not be there yet.

    Attributes:
        path: The file.
        probes: What it held when it was last read or written.

    Raises:
        RowError: The file cannot be read.
        QueryError: It holds keys that would be lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.probes = _read(path)

    def put(self, probe_id: str, probe: Any) -> None:
        """Replace, add or (None) take out one probe, in what the file holds now: others may write to it as well."""
        kept = list(_read(self.path))
        place = next((number for number, other in enumerate(kept) if other.id == probe_id), len(kept))
        kept[place : place + 1] = [] if probe is None else [probe]
        made = mf.Probes(kept)
        made.save(self.path)
        self.probes = made

    def new_id(self, field: str) -> str:
        """Return an id that no probe of the file has now."""
        taken = {probe.id for probe in _read(self.path)}
        number = len(taken) + 1
        while (made := f"{field}-{number:04}") in taken:
            number += 1
        return made


def _read(path: Path) -> Any:
    """Return what a file holds; nothing where there is none.

    Raises:
        RowError: It cannot be read.
        QueryError: It holds keys that writing it again would lose.
    """
    if not path.exists():
        return mf.Probes()
    probes = mf.read_probes(path)
    if path.suffix.lower() != ".csv":
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        other = sorted({str(key) for line in lines if line.strip() for key in json.loads(line)} - _KEYS)
        if other:
            keys = ", ".join(other[:_MOST_LOST])
            raise mf.errors.QueryError(
                f"{path.name} has keys that would be lost when it is written again ({keys}): give another path"
            )
    return probes
