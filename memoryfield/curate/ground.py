"""What a history stands on: a directory, or a store elsewhere. It says what the pages are now, and changes them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memoryfield import places
from memoryfield.curate.journal import journal_path
from memoryfield.format.changes import Change, apply_changes
from memoryfield.format.directory import PageDirectory
from memoryfield.format.files import Folder, Unreadable, write_errors
from memoryfield.format.journaling import Journal
from memoryfield.format.lock import field_lock
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.pages import StorePages

UNREAD = b""  # in place of a sha256: something is there that is not read


class OpenGround(Protocol):
    """A place whose pages are looked at and changed; its lock is held."""

    def digests(self, filenames: Sequence[str]) -> dict[str, bytes | None]:
        """Return the sha256 of files as they are now; None where there is none."""

    def apply(self, changes: Sequence[Change], journal: Journal | None = None, verb: str = "", note: str = "") -> None:
        """Make changes, and keep them in a journal where one is given."""


class Ground(Protocol):
    """A place that has a history."""

    @property
    def journal(self) -> Path:
        """Where its journal is or will be."""

    @property
    def place(self) -> str:
        """What to call it."""

    def lock(self, timeout: float) -> AbstractContextManager[None]:
        """Keep other writers out."""

    def opened(self) -> AbstractContextManager[OpenGround]:
        """Look at the pages and change them, in a ``with`` statement within the lock."""


def ground_of(source: PageDirectory | StorePages) -> Ground:
    """Return what the history of a field stands on."""
    return _Store(source) if isinstance(source, StorePages) else _Directory(source.path)


@dataclass(frozen=True)
class _Directory:
    path: Path

    @property
    def journal(self) -> Path:
        return journal_path(self.path)

    @property
    def place(self) -> str:
        return str(self.path)

    def lock(self, timeout: float) -> AbstractContextManager[None]:
        return field_lock(self.path, timeout)

    @contextlib.contextmanager
    def opened(self) -> Iterator[OpenGround]:
        with write_errors(self.path), Folder(self.path) as folder:
            yield _OpenFolder(folder)


@dataclass(frozen=True)
class _OpenFolder:
    folder: Folder

    def digests(self, filenames: Sequence[str]) -> dict[str, bytes | None]:
        # Compared with the names that are there: to some file systems `Foo.MD` is there when `foo.md` is.
        present = set(self.folder.names())
        return {name: self._digest(name) if name in present else None for name in filenames}

    def _digest(self, filename: str) -> bytes | None:
        try:
            raw, _ = self.folder.read(filename, LARGEST_PAGE)
        except FileNotFoundError:
            return None
        except Unreadable:
            return UNREAD
        return hashlib.sha256(raw).digest()

    def apply(self, changes: Sequence[Change], journal: Journal | None = None, verb: str = "", note: str = "") -> None:
        apply_changes(self.folder, changes, journal, verb, note)


@dataclass(frozen=True)
class _Store:
    pages: StorePages

    @property
    def journal(self) -> Path:
        # apart from those of directories, which are found again by name when a directory was moved
        key = f"{self.pages.path.name}-{self.pages.path.parent.name}"
        return places.state_directory() / "journals-elsewhere" / key / "history.sqlite3"

    @property
    def place(self) -> str:
        return self.pages.place

    def lock(self, timeout: float) -> AbstractContextManager[None]:
        return self.pages.lock(timeout)

    @contextlib.contextmanager
    def opened(self) -> Iterator[OpenGround]:
        snapshot = self.pages.refresh()
        known: dict[str, bytes | None] = {name: entry.sha256 for name, entry in snapshot.entries.items()}
        known |= {item.filename: UNREAD for item in snapshot.skipped}
        yield _OpenStore(self.pages, known)


@dataclass(frozen=True)
class _OpenStore:
    pages: StorePages
    known: dict[str, bytes | None]

    def digests(self, filenames: Sequence[str]) -> dict[str, bytes | None]:
        return {name: self.known.get(name) for name in filenames}

    def apply(self, changes: Sequence[Change], journal: Journal | None = None, verb: str = "", note: str = "") -> None:
        if changes:
            self.pages.apply_recorded(changes, journal, verb, note)
