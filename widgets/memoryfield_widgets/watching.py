"""Seeing what other programs did to a field: names, sizes and times of its files, compared with the last look."""

from __future__ import annotations

import os
import threading
from pathlib import Path

PAGE_SUFFIX = ".md"
Print = dict[str, tuple[int, int]]


class Watch:
    """Looks at the files of a field; no file is read.

    Args:
        path: The directory or the archive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._known = fingerprint(path)

    def look(self) -> tuple[str, ...]:
        """Return the names of pages that came, went or changed since the last look, sorted."""
        with self._guard:
            before, self._known = self._known, fingerprint(self.path)
            after = self._known
        names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        return tuple(sorted(name.removesuffix(PAGE_SUFFIX) for name in names))


def fingerprint(path: Path) -> Print:
    """Return size and time by file name; of an archive one entry; of a place that is gone none."""
    try:
        if not path.is_dir():
            status = path.stat()
            return {path.name: (status.st_size, status.st_mtime_ns)}
        found: Print = {}
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.endswith(PAGE_SUFFIX) and not entry.name.startswith("."):
                    status = entry.stat(follow_symlinks=False)
                    found[entry.name] = (status.st_size, status.st_mtime_ns)
        return found
    except OSError:
        return {}
