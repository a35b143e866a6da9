"""Where pages come from: one protocol, a directory or an archive behind it, and the function that opens either."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from memoryfield.errors import FieldNotFound
from memoryfield.format.changes import Change
from memoryfield.format.directory import PageDirectory
from memoryfield.format.page import Page
from memoryfield.format.snapshot import Entry, Skipped, Snapshot
from memoryfield.format.zippages import ZipPages

__all__ = ["Change", "Entry", "PageDirectory", "PageSource", "Skipped", "Snapshot", "ZipPages", "open_pages"]


@runtime_checkable
class PageSource(Protocol):
    """The reading half of a field.

    Names are sorted. A page that cannot be read is left out and told in ``snapshot().skipped``; only asking for it by
    name is an error.
    """

    @property
    def path(self) -> Path:
        """The directory or the archive."""

    @property
    def read_only(self) -> bool:
        """Whether every edit is refused."""

    def snapshot(self, known: Snapshot | Mapping[str, Entry] | None = None, verify: bool = True) -> Snapshot:
        """Return every page with hash and stat data, and what is left out."""

    def names(self) -> list[str]:
        """Return the names of all pages."""

    def other_files(self) -> list[str]:
        """Return the filenames of what is kept beside the pages, indexes included."""

    def read(self, name: str) -> Page:
        """Return one page, or raise ``PageNotFound``."""

    def read_bytes(self, filename: str) -> bytes:
        """Return the bytes of a page or another file, or raise ``PageNotFound``."""

    def pages(self) -> Iterator[Page]:
        """Yield every page that can be read."""


def open_pages(path: str | os.PathLike[str], create: bool = False) -> PageDirectory | ZipPages:
    """Open a directory, or an archive in place.

    Args:
        path: A directory or a ``.memoryfield.zip``.
        create: Make the directory when it is missing.

    Raises:
        FieldNotFound: Nothing is there, or neither a directory nor an archive.
        ArchiveError: The archive is damaged or hostile.
    """
    place = Path(path).expanduser()
    if place.is_file():
        return ZipPages(place)
    if create and place.suffix == ".zip":
        raise FieldNotFound(f"{place} is not there: an archive is made by exporting a field, not by opening it")
    return PageDirectory(place, create)
