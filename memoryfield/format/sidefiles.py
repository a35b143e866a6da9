"""Files that SQLite keeps beside a database: looked at before it is, since opening a pipe there would wait for ever."""

from __future__ import annotations

import os
import stat
from pathlib import Path

SIDES = ("-journal", "-wal", "-shm")


def strange_side(path: Path) -> str | None:
    """Return the first file beside a database that has one of SQLite's names and is no regular file, or None.

    Args:
        path: The database.
    """
    for ending in SIDES:
        side = f"{path}{ending}"
        try:
            mode = os.lstat(side).st_mode
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(mode):
            return side
    return None
