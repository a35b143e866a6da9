"""Changes to pages: which pages get which bytes on which conditions, and how they reach the disk (FORMAT P14).

All conditions are checked first, then everything new is written beside the pages and brought to the disk, then the
names are given: new pages, changed pages, and last the deletions. A process killed anywhere in between leaves whole
pages, and at worst temporary files that later writes remove. The caller holds the field's lock.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryfield.errors import NotEditable, PageChanged, PageError, PageExists, PageNotFound
from memoryfield.format.arguments import check_raw, check_sha256
from memoryfield.format.files import Folder, Unreadable, flat, kind, same_file
from memoryfield.format.journaling import Journal, Recorded, recorded
from memoryfield.format.names import PAGE_SUFFIX, new_page_name, page_name
from memoryfield.format.snapshot import LARGEST_PAGE


@dataclass(frozen=True)
class Change:
    """One page to write or delete, and on which conditions.

    Attributes:
        name: Page name, with or without ``.md``.
        after: The whole new content; None deletes the page.
        if_sha256: The page must have this sha256 (hex) now.
        absent: There must be nothing of that name now.
        modified_ns: Modification time for the file, in nanoseconds since 1970; by default that of the write.
        mode: Permission bits for a new file; by default what the system gives.
        as_before: *name* is a filename that stood in the directory before, whether or not a page may be named so.
    """

    name: str
    after: bytes | None
    if_sha256: str | None = None
    absent: bool = False
    modified_ns: int | None = None
    mode: int | None = None
    as_before: bool = False


@dataclass
class _Step:
    """A change on its way to the disk."""

    change: Change
    filename: str
    before: os.stat_result | None  # None: nothing has that name
    raw: bytes | None = None  # what it held, where that was read
    temporary: str | None = None

    def recorded(self) -> Recorded:
        """Return what a journal keeps of it."""
        change, before = self.change, self.before
        return Recorded(
            self.filename,
            self.raw,
            change.after,
            None if before is None else stat.S_IMODE(before.st_mode),
            None if before is None else before.st_mtime_ns,
            change.mode,
            change.modified_ns,
        )


def apply_changes(
    folder: Folder, changes: Iterable[Change], journal: Journal | None = None, verb: str = "write", note: str = ""
) -> None:
    """Check, keep in the journal and write changes; see ``PageDirectory.apply`` for what is raised."""
    steps = _checked(folder, changes, keep=journal is not None)
    try:
        for step in steps:
            if step.change.after is not None:
                step.temporary = folder.stage(
                    step.change.after,
                    like=step.before,
                    modified_ns=step.change.modified_ns,
                    mode=step.change.mode,
                )
        with recorded(journal, verb, [step.recorded() for step in steps] if journal is not None else (), note):
            _write(folder, steps)
    finally:
        for step in steps:
            if step.temporary is not None:
                folder.discard(step.temporary)


def _write(folder: Folder, steps: Sequence[_Step]) -> None:
    """Give staged files their names and take away what is deleted."""
    # Other programs know no lock: look once more, as late as can be.
    for step in steps:
        _recheck(folder, step)
    _put_new([step for step in steps if step.temporary is not None and step.before is None], folder)
    for step in steps:
        if step.temporary is not None and step.before is not None:
            folder.replace(step.temporary, step.filename)
    deletions = [step for step in steps if step.change.after is None]
    if steps:
        folder.sync()
    for step in deletions:
        _recheck(folder, step)
        folder.remove(step.filename)
    if deletions:
        folder.sync()


def _checked(folder: Folder, changes: Iterable[Change], keep: bool) -> list[_Step]:
    """Return the steps to take, without changes that change nothing.

    Args:
        folder: The directory.
        changes: What is asked.
        keep: Read every page that will change, for a journal.

    Raises:
        PageError: A condition does not hold; nothing was written.
        QueryError: A condition or a content that is none.
    """
    steps: list[_Step] = []
    seen: set[str] = set()
    for change in changes:
        check_sha256(change.if_sha256)
        if change.after is not None:
            check_raw(change.after)
        filename = flat(change.name) if change.as_before else page_name(change.name) + PAGE_SUFFIX
        if filename in seen:
            raise PageError(f"{filename} stands twice in one set of changes: give each page once")
        seen.add(filename)
        if change.after is not None and len(change.after) > LARGEST_PAGE:
            raise NotEditable(f"{filename} would have {len(change.after):,} bytes; at most {LARGEST_PAGE:,} are read")
        step = _checked_one(folder, change, filename, keep)
        if step is not None:
            steps.append(step)
    return steps


def _checked_one(folder: Folder, change: Change, filename: str, keep: bool) -> _Step | None:
    try:
        before = folder.status(filename)
    except FileNotFoundError:
        if change.if_sha256 is not None:
            raise PageChanged(f"{filename} was deleted meanwhile; nothing was written") from None
        if change.after is None:
            raise PageNotFound(f"{filename} cannot be deleted: there is no such page") from None
        if not change.as_before:
            new_page_name(change.name)
        return _Step(change, filename, None)
    if change.absent:
        words = kind(before.st_mode)
        what = "a page" if words is None else f"a {words}"
        raise PageExists(f"{what} of the name {filename} is there already: give another name or edit that page")
    words = kind(before.st_mode)
    if words is not None:
        raise NotEditable(f"{filename} is a {words}, which is never written or deleted here")
    if not before.st_mode & stat.S_IWUSR:
        raise NotEditable(f"{filename} is write-protected: take the protection off to change it")
    if change.if_sha256 is None and change.after is None and not keep:
        return _Step(change, filename, before)
    try:
        raw, before = folder.read(filename, LARGEST_PAGE)
    except FileNotFoundError:
        raise PageChanged(f"{filename} was deleted meanwhile; nothing was written") from None
    except Unreadable as error:
        raise NotEditable(f"{filename} is not written, since what stands there is not read: {error}") from None
    if change.if_sha256 is not None and hashlib.sha256(raw).hexdigest() != change.if_sha256.lower():
        raise PageChanged(f"{filename} was changed since it was read; nothing was written: read it again")
    return None if raw == change.after else _Step(change, filename, before, raw)


def _recheck(folder: Folder, step: _Step) -> None:
    try:
        now = folder.status(step.filename)
    except FileNotFoundError:
        if step.before is None:
            return
        raise PageChanged(f"{step.filename} was deleted meanwhile; nothing was written") from None
    if step.before is None:
        raise PageExists(f"{step.filename} appeared meanwhile; nothing was written")
    if not same_file(step.before, now):
        raise PageChanged(f"{step.filename} was changed meanwhile; nothing was written: read it again")


def _put_new(steps: Sequence[_Step], folder: Folder) -> None:
    """Give new pages their names; take all back when one of them appears at this very moment."""
    done: list[str] = []
    for step in steps:
        assert step.temporary is not None
        try:
            folder.put_new(step.temporary, step.filename)
        except FileExistsError:
            for filename in done:
                folder.discard(filename)
            raise PageExists(f"{step.filename} appeared meanwhile; nothing was written") from None
        done.append(step.filename)
