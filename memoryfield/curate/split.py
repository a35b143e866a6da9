"""Splitting a page in two: a plan like that of a merge, one undoable step.

What goes gets a page, a name and a uuid of its own (FORMAT P12); each half points to the other, and no character of
the body is lost.
"""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from memoryfield.curate.account import Account, Source, take_account
from memoryfield.curate.textdiff import unified_diff
from memoryfield.display import Table
from memoryfield.errors import FrontmatterError, InvalidName, NotEditable, PageChanged, QueryError
from memoryfield.format.changes import Change
from memoryfield.format.edit import append, new_page, one_line, set_body, set_keys
from memoryfield.format.markdown import Heading, headings
from memoryfield.format.names import PAGE_SUFFIX, new_page_name, page_name, slug
from memoryfield.format.page import Page, as_text
from memoryfield.format.verbs import PageVerbs
from memoryfield.format.yamlwrite import Settable

SPLIT_FROM = "split_from"
_SHARED_KEYS = ("created", "tags")


@dataclass(frozen=True)
class SplitResult:
    """What a split did: the page that was there and the new one, as they are now."""

    page: Page
    new: Page


@dataclass(frozen=True, repr=False)
class SplitPlan:
    """A proposed split; nothing is written before ``apply``.

    Attributes:
        directory: The pages.
        page: The page as it was read.
        raw: Its bytes after the split.
        new_name: Name of the new page.
        new_raw: Bytes of the new page.
    """

    directory: PageVerbs = field(compare=False)
    page: Page
    raw: bytes
    new_name: str
    new_raw: bytes

    @cached_property
    def _account(self) -> Account:
        pages = (Page(self.page.name, self.raw), Page(self.new_name, self.new_raw))
        return take_account([_source(self.page)], [_source(page) for page in pages])

    def account(self) -> Account:
        """Return where every sentence of the page is now."""
        return self._account

    def diff(self) -> str:
        """Return both changes as a unified diff."""
        new = unified_diff(self.new_name + PAGE_SUFFIX, None, self.new_raw)
        return unified_diff(self.page.filename, self.page.raw, self.raw) + new

    def apply(self, *, verb: str = "split", note: str | None = None) -> SplitResult:
        """Write both pages in one step.

        Args:
            verb: Word for the journal.
            note: Remark for the journal; by default the names of the two pages.

        Raises:
            PageChanged: The page is not the one that the plan was made from; nothing was written.
            PageExists: Something has the new name meanwhile.
            NotEditable: A sentence is in neither page.
            MemoryfieldError: As ``PageDirectory.apply``.
        """
        if not self.account().complete:
            raise NotEditable(f"{self.page.filename}: {self.account().lost[0].text[:80]!r} would be in neither page")
        changes = [
            Change(self.new_name, self.new_raw, absent=True),
            Change(self.page.name, self.raw, self.page.sha256),
        ]
        try:
            self.directory.apply(changes, verb=verb, note=note or f"{self.new_name} from {self.page.name}")
        except PageChanged as error:
            raise PageChanged(f"{error} (the plan of the split was made from an older one)") from error
        return SplitResult(self.directory.read(self.page.name), self.directory.read(self.new_name))

    def _table(self) -> Table:
        rows = [(self.page.name, "stays", len(self.raw)), (self.new_name, "new", len(self.new_raw))]
        heading = f"Split {self.page.name} ({self.page.size:,} bytes) in two"
        return Table(heading, ("page", "", "bytes"), rows, [f"account: {self.account()}"], right=frozenset({"bytes"}))

    def __repr__(self) -> str:
        return self._table().text()

    def __str__(self) -> str:
        return self._table().text() + "\n\n" + self.diff()

    def _repr_html_(self) -> str:
        return self._table().html()


def plan_split(
    page: Page,
    at: str | int,
    *,
    directory: PageVerbs,
    new_name: str | None = None,
    title: str | None = None,
    now: datetime | None = None,
) -> SplitPlan:
    """Propose a split of a page; nothing is written.

    Args:
        page: The page.
        at: Text of a heading: that section goes, with its subsections. Or a character of the body, counted from 0:
            everything from there on goes.
        directory: Where the page is.
        new_name: Name of the new page; by default made from its title.
        title: Title of the new page; by default the heading's text, or the old title with ``part 2``.
        now: Moment for the dates; by default the present.

    Raises:
        QueryError: No such heading, several, or one of the two pages would be empty.
        InvalidName: The new page's name is invalid, or the title makes none.
        NotEditable: ``index`` or ``listing``, or a page that is not UTF-8.
        FrontmatterError: The frontmatter is broken.
    """
    _check(page)
    if isinstance(at, bool) or not isinstance(at, int | str):
        raise QueryError(f"at is {at!r}; give the text of a heading, or a place in the body as a whole number")
    body = page.body
    if isinstance(at, int):
        start, end, moved, heading = at, len(body), body[at:] if at > 0 else "", ""
    else:
        section, end = _section(body, at)
        start, moved, heading = section.start, body[section.end : end], section.text
    rest = body[:start] + body[end:]
    if not moved.strip() or not rest.strip():
        raise QueryError(f"{page.filename} cannot be split there: one of the two pages would be empty")
    new_title = one_line(title or heading or f"{page.title}, part 2")
    taken = [*directory.names(), *directory.other_files()]
    if new_name is not None:
        name = new_page_name(new_name)
    else:
        try:
            name = slug(new_title, taken)
        except InvalidName:
            name = slug(f"{page.name} part 2", taken)
    moment = now or datetime.now(UTC)
    keys: dict[str, Settable] = {SPLIT_FROM: f"{page.name} {page.uuid}" if page.uuid else page.name}
    tags = page.frontmatter.get("tags")
    if tags:
        keys["tags"] = tags if isinstance(tags, str) else [as_text(tag) for tag in tags]
    new_body = moved.lstrip("\r\n").rstrip() + f"\n\nSee also: {_link(page.title, page.name)}.\n"
    raw = append(set_body(page.raw, rest), f"See also: {_link(new_title, name)}.")
    if page.has_frontmatter:
        raw = set_keys(raw, {"updated": moment})
    new_raw = new_page(title=new_title, body=new_body, now=moment, uuid=str(uuids.uuid4()), summary=None, **keys)
    if page.created:
        new_raw = set_keys(new_raw, {"created": page.created})  # what it says is as old as it was
    return SplitPlan(directory, page, raw, name, new_raw)


def _check(page: Page) -> None:
    if page.is_special:
        raise NotEditable(f"{page.filename} has a meaning of its own and is not split")
    if not page.is_utf8:
        raise NotEditable(f"{page.filename} is not valid UTF-8; re-encode it before it is split")
    problem = page.frontmatter_error
    if problem is not None:
        raise FrontmatterError(f"{problem.message}; mend it before it is split", file=page.filename, line=problem.line)


def _section(body: str, at: str) -> tuple[Heading, int]:
    """Return a heading and the end of its section."""
    found = list(headings(body))
    asked = at.strip().lstrip("#").strip().casefold()
    matching = [heading for heading in found if heading.text.casefold() == asked]
    if len(matching) != 1:
        there = ", ".join(repr(heading.text) for heading in found[:40]) or "none"
        seen = f"stands there {len(matching)} times" if matching else "is not there"
        raise QueryError(f"the heading {at!r} {seen}; the headings are: {there}")
    heading = matching[0]
    after = found[found.index(heading) + 1 :]
    return heading, next((other.start for other in after if other.level <= heading.level), len(body))


def _link(title: str, name: str) -> str:
    return f"[{title.replace('[', '(').replace(']', ')')}]({page_name(name)}.md)"


def _source(page: Page) -> Source:
    title, summary = (as_text(page.frontmatter.get(key)).strip() for key in ("title", "summary"))
    return Source(page.name, page.body.replace("\r\n", "\n").replace("\r", "\n"), title, summary)
