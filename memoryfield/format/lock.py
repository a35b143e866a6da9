"""The lock of a field: one writer at a time, whichever process or thread it is.

The lock file stands in the user's state directory, never in the field (FORMAT X8). It is advisory: programs that do not
know it are met by conditional writes instead.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoryfield import places
from memoryfield.errors import FieldError, FieldLocked

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_TIMEOUT = 60.0  # seconds; a lock is held for one write, but many writers on a slow disk queue up


class _Gate:
    """What the threads of this process share for one lock file."""

    def __init__(self) -> None:
        self.threads = threading.RLock()
        self.depth = 0
        self.held: BaseFileLock | None = None


_gates: dict[Path, _Gate] = {}
_gates_guard = threading.Lock()


def _forget_after_fork() -> None:
    """Start anew in a forked child: a gate that another thread held at the fork would never open there."""
    global _gates, _gates_guard
    _gates, _gates_guard = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def lock_file(path: Path) -> Path:
    """Return where the lock of the field at *path* stands; two ways to one directory give the same file."""
    return places.state_directory() / "locks" / f"{places.field_key(path)}.lock"


@contextmanager
def field_lock(path: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the lock of the field at *path*; a thread that holds it may take it again.

    Args:
        path: The field's directory.
        timeout: Seconds to wait for another thread or process.

    Raises:
        FieldLocked: Somebody else held the lock for all of that time.
        FieldError: The lock file cannot be made.
    """
    file = lock_file(path)
    with _gates_guard:
        gate = _gates.setdefault(file, _Gate())
    deadline = time.monotonic() + timeout
    if not gate.threads.acquire(timeout=max(timeout, 0.0)):
        raise FieldLocked(f"{path} is being written by another thread for more than {timeout:g} s: try again later")
    try:
        if gate.depth == 0:
            gate.held = _acquired(path, file, timeout, deadline)
        gate.depth += 1
        try:
            yield
        finally:
            gate.depth -= 1
            if gate.depth == 0 and gate.held is not None:
                held, gate.held = gate.held, None
                held.release()
    finally:
        gate.threads.release()


def _acquired(path: Path, file: Path, timeout: float, deadline: float) -> BaseFileLock:
    from filelock import FileLock, Timeout

    try:
        places.private_directory(file.parent)
        # The gate keeps other threads out, so the lock need not know threads.
        lock = FileLock(file, timeout=max(deadline - time.monotonic(), 0.0), thread_local=False, poll_interval=0.01)
        lock.acquire()
    except Timeout:
        message = (
            f"{path} is being written by another process for more than {timeout:g} s: try again later (lock: {file})"
        )
        raise FieldLocked(message) from None
    except OSError as error:
        raise FieldError(
            f"the lock file {file} cannot be made ({error.strerror or error}): "
            "set MEMORYFIELD_STATE_DIR to a directory that can be written"
        ) from error
    return lock
