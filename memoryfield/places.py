"""Where our own files live: the user's cache and state directories, never the field.

The cache may be deleted at any time; the state holds locks (later also the journal). Both can be moved with
the environment variables ``MEMORYFIELD_CACHE_DIR`` and ``MEMORYFIELD_STATE_DIR``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

APPLICATION = "memoryfield-lab"


def cache_directory() -> Path:
    """Directory of what can be made anew: keyword indexes, exported models, layouts."""
    chosen = os.environ.get("MEMORYFIELD_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir(APPLICATION, appauthor=False))


def state_directory() -> Path:
    """Directory of what must survive: locks, journals, review answers."""
    chosen = os.environ.get("MEMORYFIELD_STATE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_state_dir(APPLICATION, appauthor=False))


def field_key(path: Path) -> str:
    """Name for a field's files in those directories: its own name and a digest of its resolved path."""
    resolved = os.path.realpath(path)
    digest = hashlib.sha256(os.fsencode(os.path.normcase(resolved))).hexdigest()[:16]
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in os.path.basename(resolved))
    return f"{readable[:40].strip('-') or 'field'}-{digest}"


def private_directory(path: Path) -> Path:
    """Make *path* with its parents, readable by the user alone, and return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
