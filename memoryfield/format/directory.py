"""A field that is a directory: read its pages, write them under a lock.

The verbs create, edit, rename and delete are in ``verbs.py``, how changes reach the disk in ``changes.py``, how files
are opened without following links in ``files.py``.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from memoryfield.advice import advice
from memoryfield.errors import FieldNotFound, PageNotFound
from memoryfield.format.changes import Change, apply_changes
from memoryfield.format.dates import moment_of
from memoryfield.format.files import LEFTOVER_AGE, Folder, Unreadable, flat, write_errors
from memoryfield.format.journaling import Journal
from memoryfield.format.lock import LOCK_TIMEOUT, field_lock
from memoryfield.format.names import PAGE_SUFFIX, check_name_type, page_name
from memoryfield.format.page import Page
from memoryfield.format.snapshot import LARGEST_PAGE, Entry, Snapshot, survey, take_snapshot
from memoryfield.format.verbs import PageVerbs


class PageDirectory(PageVerbs):
    """The pages of a directory.

    Args:
        path: The directory.
        create: Make it, with its parents, when it is missing.

    Attributes:
        journal: Keeps every change, so that it can be undone; None keeps nothing.

    Raises:
        FieldNotFound: No such directory.
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = False) -> None:
        self.path = Path(os.path.abspath(Path(path).expanduser()))
        if create:
            with write_errors(self.path.parent):
                try:
                    self.path.mkdir(parents=True, exist_ok=True)
                except (FileExistsError, NotADirectoryError) as error:
                    raise FieldNotFound(f"{self.path} cannot be made a directory: a file stands there") from error
        if not self.path.is_dir():
            found = "it is a file" if self.path.exists() else "nothing is there"
            remedy = advice(
                python="create=True makes one",
                command="memoryfield init makes one",
                magic="%field --create PATH makes one",
            )
            raise FieldNotFound(f"{self.path} is no directory of pages: {found}; {remedy}")
        self._swept = -LEFTOVER_AGE
        self.journal: Journal | None = None

    def __repr__(self) -> str:
        return f"<PageDirectory {str(self.path)!r}>"

    @property
    def read_only(self) -> bool:
        """Whether the system forbids this user to write files here."""
        return not os.access(self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    # Reading

    def snapshot(self, known: Snapshot | Mapping[str, Entry] | None = None, verify: bool = True) -> Snapshot:
        """Return what stands in the directory now; see ``take_snapshot``."""
        with Folder(self.path) as folder:
            return take_snapshot(folder, known, verify)

    def names(self) -> list[str]:
        """Return the names of all pages, sorted, without opening them."""
        with Folder(self.path) as folder:
            return [filename.removesuffix(PAGE_SUFFIX) for filename in survey(folder)[0]]

    def other_files(self) -> list[str]:
        """Return the filenames of what is kept beside the pages, indexes included."""
        with Folder(self.path) as folder:
            return survey(folder)[2]

    def read(self, name: str) -> Page:
        """Return one page as it is now.

        Raises:
            InvalidName: No page may have that name.
            PageNotFound: No such page, or one that is not read (a link, a directory, no permission).
        """
        with Folder(self.path) as folder:
            return _read(folder, page_name(name))

    def read_bytes(self, filename: str) -> bytes:
        """Return the bytes of a page or of another file directly in the directory.

        Raises:
            InvalidName: That names no file directly in the directory.
            PageNotFound: No such file, or one that is not read.
        """
        check_name_type(filename)
        with Folder(self.path) as folder:
            return _read_raw(folder, flat(filename))[0]

    def pages(self) -> Iterator[Page]:
        """Yield every page that can be read, sorted by name."""
        with Folder(self.path) as folder:
            for filename in survey(folder)[0]:
                with suppress(PageNotFound):
                    yield _read(folder, filename.removesuffix(PAGE_SUFFIX))

    # Writing

    @contextmanager
    def lock(self, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
        """Hold the field's lock in a ``with`` statement; a thread that holds it may take it again.

        What a killed process left half done is finished or taken back first, where there is a journal.

        Args:
            timeout: Seconds to wait for another writer before ``FieldLocked``.
        """
        with field_lock(self.path, timeout):
            if self.journal is not None:
                self.journal.ready()
            yield

    def apply(self, changes: Sequence[Change], *, verb: str = "write", note: str = "") -> None:
        """Write and delete pages: all of them, or none when a condition does not hold.

        Every condition is checked before the first byte is written. New pages come first, then changed ones, deletions
        last, so that a process killed in between loses no page; each page is replaced as a whole.

        Args:
            changes: At most one for each page.
            verb: What is done, in one word, for the journal.
            note: What else the journal should say of it.

        Raises:
            PageChanged: A page is not the one that ``if_sha256`` names.
            PageExists: Something has a name that was to be new.
            PageNotFound: A page to delete is not there.
            InvalidName: A name that no page, or no new page, may have.
            NotEditable: A link, a directory, a write-protected page, or more than 16 MiB.
            QueryError: An ``if_sha256`` that is no sha256, or a content that is not bytes.
            FieldLocked: Another process is writing for too long.
            ReadOnlyField: The directory cannot be written.
            HistoryError: The journal cannot keep the change.
        """
        with self.lock(), Folder(self.path) as folder, write_errors(self.path):
            if time.monotonic() - self._swept >= LEFTOVER_AGE:
                folder.sweep()
                self._swept = time.monotonic()
            apply_changes(folder, changes, self.journal, verb, note)

    def moved(self, page: Page, new: str, raw: bytes) -> Change:
        """Return the change that gives *page* another name; it keeps its file's time and permissions."""
        with Folder(self.path) as folder:
            try:
                status = folder.status(page.filename)
            except FileNotFoundError:
                raise PageNotFound(f"there is no {page.filename} in {self.path}") from None
        return Change(new, raw, absent=True, modified_ns=status.st_mtime_ns, mode=stat.S_IMODE(status.st_mode))

    def taken(self) -> set[str]:
        """Names that nothing new can have, in lower case: a file system may not tell upper from lower."""
        with Folder(self.path) as folder:
            return {item.name.lower().removesuffix(PAGE_SUFFIX) for item in folder.scan()}


def _read_raw(folder: Folder, filename: str, limit: int | None = None) -> tuple[bytes, os.stat_result]:
    try:
        return folder.read(filename, limit)
    except FileNotFoundError:
        raise PageNotFound(f"there is no {filename} in {folder.path}") from None
    except Unreadable as error:
        raise PageNotFound(f"{filename} in {folder.path} is not read: {error}") from None


def _read_with_status(folder: Folder, name: str) -> tuple[Page, os.stat_result]:
    raw, status = _read_raw(folder, name + PAGE_SUFFIX, LARGEST_PAGE)
    return Page(name, raw, file_time(status)), status


def _read(folder: Folder, name: str) -> Page:
    return _read_with_status(folder, name)[0]


def file_time(status: os.stat_result) -> datetime | None:
    """Return the modification time of a file in UTC, or None where no date can say it."""
    return moment_of(status.st_mtime)
