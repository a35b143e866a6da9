"""What an import would change in a field, shown first; running it again changes nothing.

``imported`` remembers which page was made of which piece of a source. So a second run knows which pages are its own:
an unchanged piece is left alone, a changed one updates a page that nobody edited, and a page that somebody edited is a
conflict.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.advice import advice
from memoryfield.curate.history import keep_history
from memoryfield.curate.secrets import find_secrets
from memoryfield.display import Table, counted
from memoryfield.errors import InvalidName, MemoryfieldError
from memoryfield.exchange.detect import read_source
from memoryfield.exchange.imported import Made, load_made, origin_of, page_of, store_made, uuid_of, written_digest
from memoryfield.exchange.parts import Part, Reading, Unread
from memoryfield.format import edit
from memoryfield.format.changes import Change
from memoryfield.format.directory import PageDirectory
from memoryfield.format.names import new_page_name, slug
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.format.yamlwrite import Settable

if TYPE_CHECKING:
    import pandas

_SHOWN = 20
_LASTING = re.compile(r"id:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?:/|\Z)")
_NOT_SAID = ("uuid", "created", "updated")  # differ though two pages say the same
_MOST_TRIED = 50  # pages of one name with a number behind it
ACTIONS = ("add", "update", "unchanged", "conflict")


@dataclass(frozen=True)
class ImportItem:
    """What an import does with one piece of its source.

    Attributes:
        name: Page name.
        action: ``add``, ``update``, ``unchanged`` or ``conflict`` (left alone).
        where: The piece: file, and line where there is one.
        notes: What was changed on the way in, or why nothing is done.
    """

    name: str
    action: str
    where: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class ImportPlan(Sequence[ImportItem]):
    """An import: look at it, then ``apply()``, which returns it as the report of what was done.

    Attributes:
        kind: Kind of the source.
        source: Where it is.
        path: The field.
        items: One for each piece of the source, in its order.
        unread: What of the source becomes no page, with the reason.
        secrets: Places that look like keys or passwords, in words; they are imported as they are.
        applied: Whether it was carried out.
    """

    kind: str
    source: Path
    path: Path
    items: tuple[ImportItem, ...]
    unread: tuple[Unread, ...]
    secrets: tuple[str, ...]
    _changes: tuple[Change, ...] = field(compare=False)
    _made: Mapping[str, Made] = field(compare=False)
    applied: bool = False

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def counts(self) -> dict[str, int]:
        """How many pieces get which action."""
        found = Counter(item.action for item in self.items)
        return {action: found[action] for action in ACTIONS}

    def apply(self) -> ImportPlan:
        """Write the pages in one step of the history, and return the plan as the report of what was done.

        Raises:
            PageChanged: A page was changed, or one of a planned name made, since the plan was.
            ReadOnlyField: The field cannot be written.
        """
        if self._changes:
            directory = PageDirectory(self.path, create=True)
            keep_history(directory)
            directory.apply(self._changes, verb="import", note=f"from {self.source.name}")
        if self._made and self.path.is_dir():
            store_made(self.path, self._made)
        return replace(self, applied=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can hold."""
        return {
            "kind": self.kind,
            "source": str(self.source),
            "path": str(self.path),
            **self.counts,
            "items": [
                {"name": i.name, "action": i.action, "where": i.where, "notes": list(i.notes)} for i in self.items
            ],
            "unread": [{"where": item.where, "reason": item.reason} for item in self.unread],
            "secrets": list(self.secrets),
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a piece: ``name, action, where, notes``."""
        import pandas

        rows = [(item.name, item.action, item.where, "; ".join(item.notes)) for item in self.items]
        return pandas.DataFrame(rows, columns=["name", "action", "where", "notes"])

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        counts = self.counts
        words = [(word, word) for word in ("added", "updated", "unchanged")] + [("conflict", "conflicts")]
        if not self.applied:
            words[:2] = [("to add", "to add"), ("to update", "to update")]
        heading = f"{self.source.name} ({self.kind}) -> {self.path.name}: " + ", ".join(
            counted(counts[action], *word)
            for action, word in zip(ACTIONS, words, strict=True)
            if counts[action] or action == "add"
        )
        worth = [item for item in self.items if item.action != "unchanged" or item.notes]
        worth.sort(key=lambda item: (item.action != "conflict", not item.notes))  # what is to be read comes first
        rows = [(item.name, item.action, item.where, "; ".join(item.notes)) for item in worth[:_SHOWN]]
        notes = _more("... and", len(worth), python="to_frame() lists")
        files = [f"left out: {item.where}: {item.reason}" for item in self.unread if not item.is_link]
        dead = [f"in {item.where}, {item.reason}" for item in self.unread if item.is_link]
        for lines, before in ((files, "left out:"), (dead, "links that lead to no page:")):
            notes += [*lines[:_SHOWN], *_more(before, len(lines), python="unread lists")]
        notes += [f"looks like a secret: {place}" for place in self.secrets[:_SHOWN]]
        notes += _more("looks like a secret:", len(self.secrets), python="secrets lists")
        return Table(heading, ("page", "action", "from", "notes"), rows, notes)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def _more(before: str, count: int, *, python: str) -> list[str]:
    """Return how many of *count* are not shown and where all of them are; nothing where none is missing."""
    if count <= _SHOWN:
        return []
    how = advice(python=python, command="--json lists")
    return [f"{before} {count - _SHOWN:,} more; {how} them all"]


def plan_import(source: str | os.PathLike[str], target: str | os.PathLike[str], kind: str = "auto") -> ImportPlan:
    """Return what an import would do; nothing is written, and a target that is missing is not made yet.

    Args:
        source: A folder, a Markdown file, JSON, JSON lines, or the zip that a service exported.
        target: The field.
        kind: One of ``detect.KINDS``, or ``auto``.

    Raises:
        QueryError: The source is of no known kind.
        FieldNotFound: The source is missing, or the target is a file.
        ArchiveError: The source is a zip that cannot be used.
    """
    reading = read_source(source, kind)
    goal = Path(os.path.abspath(Path(target).expanduser()))
    directory = PageDirectory(goal) if goal.exists() else None
    return plan_reading(reading, Path(source).expanduser(), goal, directory)


def plan_reading(reading: Reading, source: Path, goal: Path, directory: PageDirectory | None) -> ImportPlan:
    """Return what the parts of a source would change in a field."""
    present = {page.name: page for page in directory.pages()} if directory is not None else {}
    by_uuid = {page.uuid: page for page in present.values() if page.uuid is not None}
    known = load_made(goal) if directory is not None else {}
    taken = {name.lower() for name in present} | set(SPECIAL_NAMES)
    items: list[ImportItem] = []
    changes: list[Change] = []
    secrets: list[str] = []
    seen: set[str] = set()
    told: dict[tuple[str, str], str] = {}
    numbers: Counter[str] = Counter()
    kept: dict[str, Made] = {}
    place = origin_of(source)

    @cache
    def by_written() -> dict[str, Page]:
        # made once, and only where a page is missed: one after the other would read the field again for each
        return {written_digest(page): page for page in reversed(present.values())}

    for part in reading.parts:
        # an id that is the same everywhere tells a piece also in a later export of another name and place
        lasting = _LASTING.match(part.key) is not None
        label = first = f"{reading.kind}:{part.key}" if lasting else f"{reading.kind}:{reading.label}/{part.key}"
        if (first, part.sha256) in told:
            items.append(ImportItem(told[first, part.sha256], "unchanged", part.where, ("the source has it twice",)))
            continue
        numbers[first] += 1
        while label in seen:  # one id, another text: a piece of its own
            label = f"{first} ({numbers[first]})"
            numbers[first] += label in seen
        origin = "" if lasting else place
        made = known.get(label)
        own = page_of(made, present, by_uuid, by_written)
        page: Page | None
        try:
            if own is None:
                made, own = _recognised(part, label, present, by_uuid)
            name = own.name if own is not None else _name(part, present, taken)
            item, change, page = _item(part, name, label, origin, made, own, present.get(name))
        except MemoryfieldError as error:
            name = own.name if own is not None else (part.name or part.title)
            item, change, page = ImportItem(name, "conflict", part.where, (str(error),)), None, None
        seen.add(label)
        told[first, part.sha256] = item.name
        taken.add(item.name.lower())
        items.append(item)
        if change is not None and page is not None:
            changes.append(change)
            secrets += [f"{page.name}, line {found.line}: {found.kind} {found.shown}" for found in find_secrets(page)]
        there = page if change is not None else own
        if there is not None and item.action != "conflict" and not _cannot_say(part):
            written = made.written if change is None and made is not None and made.written else written_digest(there)
            kept[label] = Made(there.name, there.uuid or "", part.sha256, written, origin)
    return ImportPlan(reading.kind, source, goal, tuple(items), reading.unread, tuple(secrets), tuple(changes), kept)


def _recognised(
    part: Part, label: str, present: Mapping[str, Page], by_uuid: Mapping[str, Page]
) -> tuple[Made | None, Page | None]:
    """Return the page that says what a part says, where nothing is known of an earlier import."""
    page = by_uuid.get(uuid_of(label))
    if page is not None:
        said = written_digest(page, _NOT_SAID) == written_digest(_page(part, page.name, label, page)[0], _NOT_SAID)
        return Made(page.name, page.uuid or "", part.sha256 if said else "", "", ""), page
    if part.raw is None:
        return None, None
    try:
        base = slug(part.name or part.title)
    except InvalidName:
        return None, None
    for number in range(1, _MOST_TRIED):
        page = present.get(base if number == 1 else f"{base}-{number}")
        if page is None:
            break
        if page.raw == part.raw or page.raw == _page(part, page.name, label, None)[0].raw:
            return Made(page.name, page.uuid or "", part.sha256, "", ""), page
    return None, None


def _name(part: Part, present: Mapping[str, Page], taken: set[str]) -> str:
    if part.name is not None and part.raw is not None:
        there = present.get(part.name)
        if there is not None and there.raw == part.raw:
            return part.name  # the page itself, byte for byte
        if part.name.lower() not in taken or part.name in SPECIAL_NAMES or _cannot_say(part):
            return part.name
    try:
        return slug(part.name or part.title, taken)
    except InvalidName:
        return slug(f"page {part.sha256[:8]}", taken)


def _item(
    part: Part, name: str, label: str, origin: str, made: Made | None, own: Page | None, there: Page | None
) -> tuple[ImportItem, Change | None, Page | None]:
    if there is not None and part.raw is not None and there.raw == part.raw:
        return ImportItem(name, "unchanged", part.where), None, None
    bare = _cannot_say(part)
    if own is not None and made is not None:
        if made.read == part.sha256:
            return ImportItem(own.name, "unchanged", part.where), None, None
        if made.origin and made.origin != origin:
            why = "the page is from another source of the same name: import it from there, or into another field"
            return ImportItem(own.name, "conflict", part.where, (why,)), None, None
        if made.written != written_digest(own):
            why = "the source changed, and the page was edited here: merge them by hand"
            return ImportItem(own.name, "conflict", part.where, (why,)), None, None
        page, notes = _page(part, own.name, label, own)
        return ImportItem(own.name, "update", part.where, notes), Change(own.name, page.raw, own.sha256), page
    if there is not None:
        why = "a page of that name is there, which may be this one, repaired" if bare else "another page has that name"
        return ImportItem(name, "conflict", part.where, (why,)), None, None
    new_page_name(name)
    page, notes = _page(part, name, label, None)
    return ImportItem(name, "add", part.where, notes), Change(name, page.raw, absent=True), page


def _cannot_say(part: Part) -> str:
    """Return why the keys of a page cannot be set; empty where they can."""
    if part.raw is None:
        return ""
    page = Page(part.name or "page", part.raw)
    if not page.is_utf8:
        return "it is not UTF-8"
    return "its frontmatter is broken" if page.frontmatter_error is not None else ""


def _page(part: Part, name: str, label: str, own: Page | None) -> tuple[Page, tuple[str, ...]]:
    """Return the page that a part becomes, and what there is to say of it."""
    notes = list(part.changes)
    keys: dict[str, Settable] = dict(part.keys)
    if part.raw is None:
        moment = part.created or part.updated or datetime.now(UTC)
        raw = edit.new_page(
            title=part.title,
            summary=part.summary,
            body=part.body,
            now=moment,
            uuid=own.uuid if own is not None else uuid_of(label),
        )
        keys = {"updated": part.updated or moment, **keys}
        if own is not None and own.created is not None and part.created is None:
            keys["created"] = own.created
    else:
        page = Page(name, part.raw)
        why = _cannot_say(part)
        if why:
            return page, (f"{why}: taken as it is; validate says more", *notes)
        if own is not None and own.uuid is not None and page.uuid is None:
            keys["uuid"] = own.uuid
        raw = part.raw
    page = Page(name, edit.set_keys(raw, keys) if keys else raw)
    if page.cut_bytes:
        notes.append(f"{page.cut_bytes:,} bytes longer than a page should be")
    return page, tuple(notes)
