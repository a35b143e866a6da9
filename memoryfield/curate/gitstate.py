"""Which bytes of a field git has committed. Nothing is committed, refreshed or run by the repository's configuration.

Only ``git ls-tree`` is called: unlike ``git status`` it needs no filter program, no hook and no file monitor, which a
repository of a stranger may name. What a page's object would be called is computed here.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

TIMEOUT = 5.0  # seconds
_OPTIONS = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}", "-c", "protocol.allow=never")
_OF_OTHERS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")


def committed_objects(directory: Path) -> dict[str, str] | None:
    """Return the object names of the files that the last commit holds directly in a directory, by filename.

    Returns:
        An empty mapping where nothing is committed yet; None where the directory is in no git work tree, or where git
        is missing, refuses, or takes more than 5 s.
    """
    real = Path(os.path.realpath(directory))
    if not any(os.path.lexists(place / ".git") for place in (real, *real.parents)):
        return None
    listing = _git(real, "ls-tree", "-z", "HEAD", "--", ".")
    if listing is None:
        # No commit yet is another thing than no repository.
        return {} if _git(real, "rev-parse", "--is-inside-work-tree") == b"true\n" else None
    found = {}
    for line in listing.split(b"\0"):
        attributes, _, name = line.partition(b"\t")
        words = attributes.split()
        if len(words) == 3 and words[1] == b"blob":
            found[os.fsdecode(name)] = words[2].decode("ascii", "replace")
    return found


def is_object(raw: bytes, name: str) -> bool:
    """Say whether git calls these bytes by that object name, as they are or with line feeds for its ``autocrlf``."""
    algorithm = "sha1" if len(name) == 40 else "sha256"
    for content in {raw, raw.replace(b"\r\n", b"\n")}:
        digest = hashlib.new(algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        if digest.hexdigest() == name:
            return True
    return False


def _git(directory: Path, *arguments: str) -> bytes | None:
    environment = {key: value for key, value in os.environ.items() if key not in _OF_OTHERS}
    environment |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }
    try:
        run = subprocess.run(
            ["git", *_OPTIONS, "--no-optional-locks", "--no-pager", *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout if run.returncode == 0 else None
