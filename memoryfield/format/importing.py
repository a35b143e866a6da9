"""Bringing pages in: a whole archive into a new directory, or the pages of one field into another (FORMAT A2).

An archive is unpacked beside its goal, in a directory with a hidden name, and renamed into place when everything was
checked and is on the disk. Whatever goes wrong, nothing stays; what a killed process leaves, the next import removes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryfield.display import Table, counted
from memoryfield.errors import ArchiveError, InvalidName
from memoryfield.format.changes import Change
from memoryfield.format.checksums import checked_digest, open_archive
from memoryfield.format.directory import PageDirectory
from memoryfield.format.files import CREATE_FLAGS, LEFTOVER_AGE, write_errors
from memoryfield.format.findings import shown_name
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, new_page_name
from memoryfield.format.page import Page
from memoryfield.format.pages import PageSource
from memoryfield.format.snapshot import Skipped
from memoryfield.format.zipread import Limits, chunks, read_listing

_UNPACKING = re.compile(r"\.memoryfield-import-[0-9a-f]{16}")
_FOREIGN_TO_WINDOWS = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]\Z|(?i:(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z))')
_SYNC_THREADS = 8  # waiting for a disk, not computing


@dataclass(frozen=True, repr=False)
class ImportReport:
    """What an import brought.

    Attributes:
        path: The directory that received it.
        added: Names of new pages.
        unchanged: Names of pages that were there already, byte for byte.
        conflicts: Pages that were not taken, with the reason; nothing is ever overwritten.
        files: Filenames of other files that came along.
        skipped: What was left out, with the reason.
        bytes: Size of what was written.
        sha256: Of the archive, where it was one.
        dry_run: Whether it only says what would be brought; nothing was written.
    """

    path: Path
    added: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[Skipped, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    bytes: int = 0
    sha256: str | None = None
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {
            "path": str(self.path),
            "added": list(self.added),
            "unchanged": list(self.unchanged),
            "conflicts": shown_skipped(self.conflicts),
            "files": list(self.files),
            "skipped": shown_skipped(self.skipped),
            "bytes": self.bytes,
            "sha256": self.sha256,
            "dry_run": self.dry_run,
        }

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        added = counted(len(self.added), "page")
        parts = [f"{added} to add" if self.dry_run else f"{added} added", f"{len(self.unchanged)} there already"]
        parts += [counted(len(self.conflicts), "conflict")] if self.conflicts else []
        parts += [counted(len(self.files), "other file")] if self.files else []
        rows = [(shown_name(item.filename), item.reason) for item in (*self.conflicts, *self.skipped)]
        notes = [f"sha256 {self.sha256}"] if self.sha256 else []
        notes += ["nothing was written"] if self.dry_run else []
        more = max(len(rows) - 20, 0)
        return Table(f"{self.path}: {', '.join(parts)}", ("left out", "why"), rows[:20], notes, more=more)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def import_archive(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    limits: Limits | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """Unpack an archive into a new directory.

    Args:
        source: The archive.
        target: The directory to make; an empty one may be there.
        sha256: Digest that the archive must have; by default that of its side file, where there is one.
        limits: What is refused.
        dry_run: Check everything, write nothing.

    Raises:
        ChecksumMismatch: The archive has another digest.
        ArchiveError: It is damaged or hostile, or the target is in use.
        ReadOnlyField: The target cannot be made.
    """
    path, goal = Path(source).expanduser(), Path(os.path.abspath(Path(target).expanduser()))
    with write_errors(goal.parent):
        if goal.is_symlink() or (goal.exists() and not (goal.is_dir() and not any(goal.iterdir()))):
            raise ArchiveError(f"{goal} is there already and is not an empty directory: give a new name")
    with open_archive(path) as handle:
        digest = checked_digest(handle, path, sha256)
        listing = read_listing(handle, limits or Limits(), path.name)
        skipped = list(listing.skipped)
        names = []
        for name in listing.members:
            reason = unfit_here(name)
            if reason is None:
                names.append(name)
            else:
                skipped.append(Skipped(name, reason))
        members = ((name, chunks(handle, name, listing.members[name], listing, path.name)) for name in names)
        if dry_run:
            written = sum(len(piece) for _, content in members for piece in content)
        else:
            with write_errors(goal.parent), _parents(goal.parent), _unpacking(goal.parent) as place:
                written = sum(_unpack(place / name, content) for name, content in members)
                _to_disk(place, names)
                _rename(place, goal)
    return ImportReport(
        goal,
        added=tuple(name.removesuffix(PAGE_SUFFIX) for name in names if is_page_filename(name)),
        files=tuple(name for name in names if not is_page_filename(name)),
        skipped=tuple(sorted(skipped)),
        bytes=written,
        sha256=digest,
        dry_run=dry_run,
    )


def import_pages(source: PageSource, directory: PageDirectory) -> ImportReport:
    """Add the pages of one field to another: only those that are new, byte for byte.

    A page is there already when its name and its bytes are. Another page of the same name, or another name with the
    same uuid, is a conflict: it is reported and left alone. Other files are not taken.

    Args:
        source: Where the pages come from.
        directory: Where they go.

    Raises:
        FieldLocked: Another process is writing for too long.
        ReadOnlyField: The directory cannot be written.
    """
    with directory.lock():
        added, report = _compared(source, directory.pages(), directory.path)
        directory.apply(added, verb="import", note=f"from {source.path.name}")
    return report


def plan_pages(source: PageSource, target: str | os.PathLike[str]) -> ImportReport:
    """Return what :func:`import_pages` would do; nothing is written, and a target that is missing is not made."""
    goal = Path(os.path.abspath(Path(target).expanduser()))
    present = PageDirectory(goal).pages() if goal.exists() else ()
    return replace(_compared(source, present, goal)[1], dry_run=True)


def _compared(source: PageSource, there: Iterable[Page], goal: Path) -> tuple[list[Change], ImportReport]:
    added: list[Change] = []
    unchanged: list[str] = []
    conflicts: list[Skipped] = []
    present: dict[str, str] = {}
    uuids: dict[str, str] = {}
    for page in there:
        present[page.name] = page.sha256
        if page.uuid is not None:
            uuids.setdefault(page.uuid.lower(), page.name)
    for page in source.pages():
        owner = uuids.get(page.uuid.lower()) if page.uuid is not None else None
        reason = unfit_here(page.filename) or _unfit_as_new(page.name)
        if present.get(page.name) == page.sha256:
            unchanged.append(page.name)
        elif page.name in present:
            conflicts.append(Skipped(page.filename, "another page has that name"))
        elif owner is not None:
            conflicts.append(Skipped(page.filename, f"{owner}{PAGE_SUFFIX} has the same uuid"))
        elif reason is not None:
            conflicts.append(Skipped(page.filename, reason))
        else:
            added.append(Change(page.name, page.raw, absent=True))
            if page.uuid is not None:
                uuids[page.uuid.lower()] = page.name
    report = ImportReport(
        goal,
        added=tuple(change.name for change in added),
        unchanged=tuple(unchanged),
        conflicts=tuple(conflicts),
        skipped=source.snapshot().skipped,
        bytes=sum(len(change.after or b"") for change in added),
    )
    return added, report


def shown_skipped(skipped: Iterable[Skipped]) -> list[dict[str, str]]:
    """Return what was left out as values that JSON can hold."""
    return [{"filename": shown_name(item.filename), "reason": item.reason} for item in skipped]


def unfit_here(filename: str) -> str | None:
    """Return why this system cannot hold a file of that name, or None."""
    if os.name == "nt" and _FOREIGN_TO_WINDOWS.search(filename):
        return "Windows cannot hold a file of that name"
    return None


def _unfit_as_new(name: str) -> str | None:
    try:
        new_page_name(name)
    except InvalidName as error:
        return str(error)
    return None


@contextlib.contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make a directory and those above it; take away again what was made when something fails."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise


@contextlib.contextmanager
def _unpacking(parent: Path) -> Iterator[Path]:
    """Make a hidden directory that is gone at the end, unless it was renamed."""
    for entry in list(os.scandir(parent)):
        if _UNPACKING.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < time.time() - LEFTOVER_AGE:
                    _remove(Path(entry.path))
    place = parent / f".memoryfield-import-{secrets.token_hex(8)}"
    place.mkdir()
    try:
        yield place
    finally:
        if place.exists():
            _remove(place)


def _remove(place: Path) -> None:
    """Remove a directory of files; one that holds directories is not of our making and stays."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(place)):
            os.unlink(entry.path)
        place.rmdir()


def _unpack(goal: Path, content: Iterable[bytes]) -> int:
    size = 0
    with os.fdopen(os.open(goal, CREATE_FLAGS, 0o666), "wb") as handle:
        for piece in content:
            size += handle.write(piece)
    return size


def _to_disk(place: Path, names: Sequence[str]) -> None:
    """Bring all files of a new directory to the disk."""

    def sync(path: Path, flags: int) -> None:
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    with ThreadPoolExecutor(_SYNC_THREADS) as threads:
        for _ in threads.map(lambda name: sync(place / name, os.O_RDWR), names):
            pass
    if os.name != "nt":
        with contextlib.suppress(OSError):
            sync(place, os.O_RDONLY)


def _rename(place: Path, goal: Path) -> None:
    try:
        if os.name == "nt" and goal.exists():
            goal.rmdir()
        os.rename(place, goal)
    except OSError as error:
        raise ArchiveError(f"{goal} cannot be made of {place.name}: {error.strerror or error}") from error
    if os.name != "nt":
        descriptor = os.open(goal.parent, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
