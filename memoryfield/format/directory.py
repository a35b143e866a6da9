"""A field that is a directory: read its pages, write them under a lock, and the verbs create, edit, rename, delete.

What an edit does to the bytes of a page is in ``edit.py``, how changes reach the disk in ``changes.py``, how files are
opened without following links in ``files.py``.
"""

from __future__ import annotations

import os
import stat
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from memoryfield.errors import FieldNotFound, FrontmatterError, NotEditable, PageChanged, PageNotFound
from memoryfield.format import edit as edits
from memoryfield.format.arguments import check_keys, check_raw, check_section, check_sha256, check_texts
from memoryfield.format.changes import Change, apply_changes
from memoryfield.format.dates import moment_of
from memoryfield.format.files import LEFTOVER_AGE, Folder, Unreadable, flat, write_errors
from memoryfield.format.journaling import Journal
from memoryfield.format.links import rewrite_links
from memoryfield.format.lock import LOCK_TIMEOUT, field_lock
from memoryfield.format.names import PAGE_SUFFIX, check_name_type, new_page_name, page_name, slug
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.format.snapshot import LARGEST_PAGE, Entry, Snapshot, survey, take_snapshot
from memoryfield.format.yamlwrite import Settable


class PageDirectory:
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
            remedy = "create=True (memoryfield init) makes one"
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

    def write(self, name: str, raw: bytes, *, if_sha256: str | None = None, absent: bool = False) -> Page:
        """Write the whole content of a page, as it is given, and return the page.

        Args:
            name: Page name.
            raw: The bytes.
            if_sha256: Write only if the page has this sha256 now.
            absent: Write only if there is no such page.

        Raises:
            NotEditable: The page has a uuid and *raw* another one (FORMAT P12).
            MemoryfieldError: As ``apply``.
        """
        name = page_name(name)
        check_raw(raw)
        check_sha256(if_sha256)
        with self.lock():
            if not absent:
                with suppress(PageNotFound):
                    _refuse_other_uuid(self.read(name), Page(name, raw))
            self.apply([Change(name, raw, if_sha256, absent)])
            return self.read(name)

    def create(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        summary: str | None = None,
        body: str = "",
        now: datetime | None = None,
        **keys: Settable,
    ) -> Page:
        """Create a page with a fresh uuid and return it.

        Args:
            name: Page name; by default made from the title, with ``-2`` and so on where that is taken.
            title: Title.
            summary: One line that says what the page holds.
            body: Markdown.
            now: Moment for ``created`` and ``updated``; by default the present.
            keys: Further frontmatter keys.

        Raises:
            PageExists: Something of that name is there.
            InvalidName: No new page may have that name, or none is given and the title makes none.
            QueryError: A title, summary or body that is no text.
        """
        if name is not None:
            name = new_page_name(name)
        check_texts(title=title, summary=summary, body=body)
        moment = now or datetime.now(UTC)
        with self.lock():
            if name is None:
                name = new_page_name(slug(title or "", self._taken()))
            fresh = keys.pop("uuid", None) or str(uuid.uuid4())
            raw = edits.new_page(title=title, summary=summary, body=body, now=moment, uuid=str(fresh), **keys)
            self.apply([Change(name, raw, absent=True)])
            return self.read(name)

    def edit(
        self,
        name: str,
        *,
        title: str | None = None,
        summary: str | None = None,
        keys: Mapping[str, Settable] | None = None,
        body: str | None = None,
        append: str | None = None,
        section: tuple[str, str] | None = None,
        if_sha256: str | None = None,
        now: datetime | None = None,
    ) -> Page:
        """Change parts of a page, leave every other byte, and return the page.

        The page is read under the lock, so that edits of several processes follow one another. ``updated`` is set when
        something changed and the page has frontmatter.

        Args:
            name: Page name.
            title: New title.
            summary: New summary.
            keys: Frontmatter keys to set; None as a value removes the key.
            body: New body in place of all the old.
            append: Text to add at the end.
            section: Heading and new text of one section.
            if_sha256: Write only if the page has this sha256 now.
            now: Moment for ``updated``; by default the present.

        Raises:
            PageNotFound: No such page.
            PageChanged: The page is not the one that *if_sha256* names.
            FrontmatterError: The frontmatter is broken, or the edit would touch other bytes; says where and why.
            NotEditable: The bytes are not UTF-8, there is no such section, or the uuid would change.
            QueryError: An argument of another type than it should have, or an *if_sha256* that is no sha256.
        """
        name = page_name(name)
        check_sha256(if_sha256)
        check_texts(body=body, append=append)
        check_keys(keys)
        check_section(section)
        asked = dict(keys or {})
        for key, value in (("title", title), ("summary", summary)):
            if value is not None:
                asked[key] = value
        with self.lock():
            page = self.read(name)
            if if_sha256 is not None and page.sha256 != if_sha256.lower():
                raise PageChanged(f"{page.filename} was changed since it was read; nothing was written: read it again")
            try:
                raw = edited_bytes(page, asked, body, append, section, now or datetime.now(UTC))
            except FrontmatterError as error:
                if error.file:
                    raise
                raise FrontmatterError(error.problem, file=page.filename, line=error.line) from error
            if raw != page.raw:
                self.apply([Change(page.name, raw, page.sha256)], verb="edit")
            return self.read(page.name)

    def rename(self, old: str, new: str, *, force: bool = False) -> list[Page]:
        """Rename a page, rewrite the links to it, and return the pages that changed, the renamed one first.

        The page keeps its uuid and its file's time. Links are rewritten byte by byte and no page's ``updated`` is set.

        Args:
            old: Page name.
            new: New page name.
            force: Rename ``index`` or ``listing`` too.

        Raises:
            PageNotFound: No page *old*.
            PageExists: Something is named *new*.
            InvalidName: No new page may be named *new*.
            NotEditable: The page is ``index`` or ``listing``, or links in a page that is not UTF-8 would break.
        """
        old, new = page_name(old), new_page_name(new)
        _protect(old, "renamed", force)
        with self.lock():
            with Folder(self.path) as folder:
                page, status = _read_with_status(folder, old)
            if old == new:
                return []
            raw = rewrite_links(page.raw, old, new)
            mode = stat.S_IMODE(status.st_mode)
            changes = [Change(new, raw, absent=True, modified_ns=status.st_mtime_ns, mode=mode)]
            for other in self.pages():
                if other.name != old:
                    try:
                        raw = rewrite_links(other.raw, old, new)
                    except NotEditable as error:
                        raise NotEditable(f"{other.filename}: {error}") from error
                    if raw != other.raw:
                        changes.append(Change(other.name, raw, other.sha256))
            self.apply([*changes, Change(old, None, page.sha256)], verb="rename", note=f"{old} -> {new}")
            return [self.read(change.name) for change in changes]

    def delete(self, name: str, *, if_sha256: str | None = None, force: bool = False) -> Page:
        """Delete a page and return what it was.

        Args:
            name: Page name.
            if_sha256: Delete only if the page has this sha256 now.
            force: Delete ``index`` or ``listing`` too.

        Raises:
            PageNotFound: No such page.
            PageChanged: The page is not the one that *if_sha256* names.
            NotEditable: The page is ``index`` or ``listing``.
            QueryError: *if_sha256* is no sha256.
        """
        name = page_name(name)
        check_sha256(if_sha256)
        _protect(name, "deleted", force)
        with self.lock():
            page = self.read(name)
            self.apply([Change(name, None, if_sha256 if if_sha256 is not None else page.sha256)], verb="delete")
            return page

    def _taken(self) -> set[str]:
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


def _protect(name: str, verb: str, force: bool) -> None:
    if name in SPECIAL_NAMES and not force:
        raise NotEditable(f"{name}{PAGE_SUFFIX} has a meaning of its own and is not {verb} without force=True")


def _refuse_other_uuid(page: Page, incoming: Page) -> None:
    if page.uuid is not None and incoming.uuid != page.uuid:
        seen = f"has the uuid {incoming.uuid}" if incoming.uuid else "has none"
        raise NotEditable(
            f"{page.filename} has the uuid {page.uuid}, what is to be written {seen}: a uuid never changes"
        )


def edited_bytes(
    page: Page,
    asked: Mapping[str, Settable],
    body: str | None,
    append: str | None,
    section: tuple[str, str] | None,
    now: datetime,
) -> bytes:
    """Return the bytes of a page after an edit."""
    if not page.is_utf8:
        raise NotEditable(f"{page.filename} is not valid UTF-8 and can be edited after an explicit re-encode only")
    problem = page.frontmatter_error
    if problem is not None:
        raise FrontmatterError(f"{problem.message}; mend it before other edits", file=page.filename, line=problem.line)
    if "uuid" in asked and page.uuid is not None and asked["uuid"] != page.uuid:
        raise NotEditable(f"the uuid of {page.filename} is {page.uuid} and never changes")
    raw = edits.set_keys(page.raw, asked) if asked else page.raw
    if body is not None:
        raw = edits.set_body(raw, body)
    if section is not None:
        raw = edits.replace_section(raw, *section)
    if append is not None:
        raw = edits.append(raw, append)
    if raw != page.raw and "updated" not in asked and Page(page.name, raw).has_frontmatter:
        raw = edits.set_keys(raw, {"updated": now})
    return raw
