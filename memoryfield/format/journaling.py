"""What a set of changes tells a journal, so that it can be finished after a crash and undone later.

Only the agreement stands here; the journal itself lives on a higher floor and outside the field (FORMAT X8). Whoever
changes files holds the field's lock all the while.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memoryfield.errors import MemoryfieldError


@dataclass(frozen=True)
class Recorded:
    """One file before and after a change.

    Attributes:
        filename: The file, as the system names it.
        before: Its bytes before; None where there was no such file.
        after: Its bytes after; None where it is deleted.
        mode: Permission bits before.
        modified_ns: Modification time before, in nanoseconds since 1970.
        new_mode: Permission bits asked for a new file.
        new_modified_ns: Modification time asked for the file after the change.
    """

    filename: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    modified_ns: int | None = None
    new_mode: int | None = None
    new_modified_ns: int | None = None


class Journal(Protocol):
    """Keeps every set of changes of one field."""

    def ready(self) -> None:
        """Finish or take back what a killed process left half done; called when the lock was taken."""

    def begin(self, verb: str, changes: Sequence[Recorded], note: str) -> int:
        """Keep a set of changes durably, before the first of them is made, and return a token for it."""

    def done(self, token: int) -> None:
        """Note that all changes were made."""

    def failed(self, token: int) -> None:
        """Take back the changes that were made, since the others cannot be."""


@runtime_checkable
class Agreements(Protocol):
    """Keeps what a field and other places both held after the last transfer between them."""

    def agreed(self, place: str) -> dict[str, tuple[bytes, int | None]]:
        """Return by filename the sha256 of what both held, and when it was deleted; None where it was not."""

    def agree(self, place: str, pages: Mapping[str, bytes]) -> None:
        """Keep what both hold now, sha256 by filename; what they held before and hold no more gets a tombstone."""


@contextlib.contextmanager
def recorded(journal: Journal | None, verb: str, changes: Sequence[Recorded], note: str = "") -> Iterator[None]:
    """Keep a set of changes in *journal* around the block that makes them; without a journal do nothing."""
    if journal is None or not changes:
        yield
        return
    token = journal.begin(verb, changes, note)
    try:
        yield
    except BaseException as error:
        try:
            journal.failed(token)
        except MemoryfieldError as second:
            error.add_note(str(second))
        raise
    journal.done(token)
