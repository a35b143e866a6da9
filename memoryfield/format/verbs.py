"""The verbs of a field that can be written, wherever it lives: write, create, edit, rename, delete.

What an edit does to the bytes of a page is in ``edit.py``; how changes get to a disk or a store is the field's own.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from memoryfield.advice import advice
from memoryfield.errors import FrontmatterError, NotEditable, PageChanged, PageNotFound
from memoryfield.format import edit as edits
from memoryfield.format.arguments import check_keys, check_raw, check_section, check_sha256, check_texts
from memoryfield.format.changes import Change
from memoryfield.format.links import rewrite_links
from memoryfield.format.lock import LOCK_TIMEOUT
from memoryfield.format.names import PAGE_SUFFIX, new_page_name, page_name, slug
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.format.yamlwrite import Settable


class PageVerbs(ABC):
    """What can be done to the pages of a field that can be written."""

    @abstractmethod
    def lock(self, timeout: float = LOCK_TIMEOUT) -> AbstractContextManager[None]:
        """Hold the field's lock in a ``with`` statement; a thread that holds it may take it again."""

    @abstractmethod
    def apply(self, changes: Sequence[Change], *, verb: str = "write", note: str = "") -> None:
        """Write and delete pages: all of them, or none when a condition does not hold."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all pages, sorted."""

    @abstractmethod
    def other_files(self) -> list[str]:
        """Return the filenames of what is kept beside the pages, indexes included."""

    @abstractmethod
    def read(self, name: str) -> Page:
        """Return one page as it is now."""

    @abstractmethod
    def pages(self) -> Iterator[Page]:
        """Yield every page that can be read, sorted by name."""

    @abstractmethod
    def taken(self) -> set[str]:
        """Names that nothing new can have, in lower case: a file system may not tell upper from lower."""

    def moved(self, page: Page, new: str, raw: bytes) -> Change:
        """Return the change that gives *page* the name *new* and the bytes *raw*."""
        return Change(new, raw, absent=True)

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
                name = new_page_name(slug(title or "", self.taken()))
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
            page = self.read(old)
            if old == new:
                return []
            changes = [self.moved(page, new, rewrite_links(page.raw, old, new))]
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


def _protect(name: str, verb: str, force: bool) -> None:
    if name in SPECIAL_NAMES and not force:
        how = advice(python="force=True", command="--force")
        raise NotEditable(f"{name}{PAGE_SUFFIX} has a meaning of its own and is not {verb} without {how}")


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
