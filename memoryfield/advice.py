"""What to do next, in the words of the place where it is read: a call in Python, an option at the command line.

Messages are made deep down, where nobody knows who will read them. The command line says once that it is the reader;
whatever gives advice has both wordings beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_AT_COMMAND_LINE: ContextVar[bool] = ContextVar("memoryfield_at_command_line", default=False)


class MemoryfieldWarning(UserWarning):
    """Something to heed; nothing was refused. The command line shows it as one line."""


def advice(*, python: str, command: str) -> str:
    """Return the wording for whoever reads it.

    Args:
        python: For code: calls and arguments.
        command: For a terminal: verbs and options.
    """
    return command if _AT_COMMAND_LINE.get() else python


@contextmanager
def at_command_line() -> Iterator[None]:
    """Give advice as verbs and options inside the block."""
    token = _AT_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _AT_COMMAND_LINE.reset(token)
