"""What to do next, in the words of the place where it is read: a call in Python, an option at the command line.

Messages are made deep down, where nobody knows who will read them. The command line, and each magic of a notebook, says
once that it is the reader; whatever gives advice has the wordings beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

_READER: ContextVar[str] = ContextVar("memoryfield_reader", default="python")


class MemoryfieldWarning(UserWarning):
    """Something to heed; nothing was refused. The command line shows it as one line."""


def advice(*, python: str, command: str, magic: str | None = None) -> str:
    """Return the wording for whoever reads it.

    Args:
        python: For code: calls and arguments.
        command: For a terminal: verbs and options.
        magic: For a magic of a notebook, where its own way is another than that of code.
    """
    reader = _READER.get()
    if reader == "magic" and magic is not None:
        return magic
    return command if reader == "command" else python


@contextmanager
def _read_by(reader: str) -> Iterator[None]:
    token = _READER.set(reader)
    try:
        yield
    finally:
        _READER.reset(token)


def at_command_line() -> AbstractContextManager[None]:
    """Give advice as verbs and options inside the block."""
    return _read_by("command")


def in_a_magic() -> AbstractContextManager[None]:
    """Give advice as options of a magic inside the block."""
    return _read_by("magic")
