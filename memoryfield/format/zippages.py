"""A field that is an archive: its pages are read in place, never written (FORMAT A4)."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from memoryfield.errors import ArchiveError, FieldNotFound, PageNotFound
from memoryfield.format.files import READ_FLAGS, flat
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, page_name, skip_reason
from memoryfield.format.page import Page
from memoryfield.format.snapshot import RACY_WINDOW_NS, Entry, Skipped, Snapshot, by_name
from memoryfield.format.zipread import Limits, Listing, Member, chunks, read_listing


class _Archive(NamedTuple):
    """An archive file at one moment."""

    status: tuple[int, int, int, int, int]  # device, inode, size, mtime_ns, ctime_ns
    listing: Listing


class ZipPages:
    """The pages of a ``.memoryfield.zip``, read only. Nothing stays open between calls.

    Each read checks the CRC. An archive that is replaced on disk is noticed by the next call.

    Args:
        path: The archive.
        limits: What is refused.

    Raises:
        FieldNotFound: No such file.
        ArchiveError: The file is no archive, or damaged or hostile.
    """

    read_only = True

    def __init__(self, path: str | os.PathLike[str], limits: Limits | None = None) -> None:
        self.path = Path(os.path.abspath(Path(path).expanduser()))
        self._limits = limits or Limits()
        self._archive: _Archive | None = None
        self._snapshot: tuple[_Archive, Snapshot] | None = None
        with self._opened():
            pass

    def __repr__(self) -> str:
        return f"<ZipPages {str(self.path)!r}>"

    def names(self) -> list[str]:
        """Return the names of all pages, sorted."""
        with self._opened() as (_, archive):
            return [filename.removesuffix(PAGE_SUFFIX) for filename in _pages(archive.listing)]

    def other_files(self) -> list[str]:
        """Return the filenames of what stands beside the pages, indexes included."""
        with self._opened() as (_, archive):
            return sorted(
                name for name in archive.listing.members if skip_reason(name) is None and not is_page_filename(name)
            )

    def read(self, name: str) -> Page:
        """Return one page.

        Raises:
            InvalidName: No page may have that name.
            PageNotFound: No such page.
            ArchiveError: The page is damaged.
        """
        name = page_name(name)
        with self._opened() as (handle, archive):
            member = self._member(archive, name + PAGE_SUFFIX)
            return Page(name, self._content(handle, archive, name + PAGE_SUFFIX), member.modified)

    def read_bytes(self, filename: str) -> bytes:
        """Return the bytes of a page or of another member of the field.

        Raises:
            PageNotFound: No such member.
            ArchiveError: The member is damaged.
        """
        with self._opened() as (handle, archive):
            return self._content(handle, archive, flat(filename))

    def pages(self) -> Iterator[Page]:
        """Yield every page that can be read, sorted by name."""
        with self._opened() as (handle, archive):
            for filename in _pages(archive.listing):
                try:
                    raw = self._content(handle, archive, filename)
                except ArchiveError:
                    continue
                yield Page(filename.removesuffix(PAGE_SUFFIX), raw, archive.listing.members[filename].modified)

    def snapshot(self, known: Snapshot | Mapping[str, Entry] | None = None, verify: bool = True) -> Snapshot:
        """Return the pages with hash and times, and what is left out.

        The entries' inode and ctime are those of the archive, their mtime is that of the member.

        Args:
            known: An earlier snapshot; entries that did not change are taken from it as the same objects.
            verify: Unpack and hash every page. Otherwise entries of an archive that did not change since the last
                snapshot, or since *known*, are taken over.
        """
        taken = time.time_ns()
        with self._opened() as (handle, archive):
            if not verify and self._snapshot is not None and self._snapshot[0] is archive:
                return self._snapshot[1]
            before: Mapping[str, Entry] = known.entries if isinstance(known, Snapshot) else known or {}
            trusted = not verify and isinstance(known, Snapshot) and _is_older(archive, known.taken_ns)
            entries: dict[str, Entry] = {}
            skipped = [*archive.listing.skipped]
            skipped += [Skipped(n, r) for n in archive.listing.members if (r := skip_reason(n)) is not None]
            for filename in _pages(archive.listing):
                member = archive.listing.members[filename]
                seen = (member.size, _nanoseconds(member), archive.status[4], archive.status[1])
                old = before.get(filename)
                if trusted and old is not None and old[1:] == seen:
                    entries[filename] = old
                    continue
                try:
                    digest = hashlib.sha256(self._content(handle, archive, filename)).digest()
                except ArchiveError as error:
                    skipped.append(Skipped(filename, f"damaged ({error})"))
                    continue
                entries[filename] = old if old is not None and old == (digest, *seen) else Entry(digest, *seen)
            found = Snapshot(entries, tuple(sorted(skipped)), taken)
        if _is_older(archive, taken):
            self._snapshot = (archive, found)
        return found

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, _Archive]]:
        """Open the archive for one operation, with its directory, which is read again when the file changed."""
        try:
            descriptor = os.open(self.path, READ_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
        except OSError as error:
            raise FieldNotFound(f"{self.path} cannot be opened: {error.strerror or error}") from error
        with os.fdopen(descriptor, "rb") as handle:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FieldNotFound(f"{self.path} is neither a directory nor an archive")
            key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            archive = self._archive
            if archive is None or archive.status != key:
                archive = _Archive(key, read_listing(handle, self._limits, self.path.name))
                # A file written a moment ago may be written again without a new time.
                self._archive = archive if _is_older(archive, time.time_ns()) else None
            yield handle, archive

    def _member(self, archive: _Archive, filename: str) -> Member:
        member = archive.listing.members.get(filename)
        if member is None:
            raise PageNotFound(f"there is no {filename} in {self.path}")
        return member

    def _content(self, handle: BinaryIO, archive: _Archive, filename: str) -> bytes:
        member = self._member(archive, filename)
        return b"".join(chunks(handle, filename, member, archive.listing, self.path.name))


def _pages(listing: Listing) -> list[str]:
    return by_name(filename for filename in listing.members if is_page_filename(filename))


def _nanoseconds(member: Member) -> int:
    return 0 if member.modified is None else int(member.modified.timestamp()) * 1_000_000_000


def _is_older(archive: _Archive, moment_ns: int) -> bool:
    return max(archive.status[3], archive.status[4]) < moment_ns - RACY_WINDOW_NS
