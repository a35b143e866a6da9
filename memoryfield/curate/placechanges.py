"""What changed between two places of a field, by content: a commit and now, a bucket and a directory, two archives.

Nothing is written. Pages are told apart by their hash; those that are equal are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from memoryfield.advice import advice
from memoryfield.curate.textdiff import unified_diff
from memoryfield.display import Table, counted, escape
from memoryfield.errors import PageNotFound
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import Page
from memoryfield.format.pages import PageSource
from memoryfield.format.snapshot import Snapshot
from memoryfield.stores.pages import source_notes
from memoryfield.stores.transfer import place_of

if TYPE_CHECKING:
    import pandas

What = Literal["added", "deleted", "changed", "renamed"]
_SHOWN = 50  # pages of a table
_LINES = 400  # of a diff in HTML


@dataclass(frozen=True, repr=False)
class PageDifference:
    """One page that is not the same in both places.

    Attributes:
        name: Its name; the later one of a page that was renamed.
        what: ``added``, ``deleted``, ``changed`` or ``renamed`` (its text may have changed too).
        before: The page in the earlier place; None where it was not there.
        after: The page in the later place; None where it is not there any more.
    """

    name: str
    what: What
    before: Page | None
    after: Page | None

    @property
    def old_name(self) -> str | None:
        """Its name in the earlier place; None where it was not there."""
        return None if self.before is None else self.before.name

    @property
    def lines(self) -> tuple[int, int]:
        """How many lines came and went."""
        _, _, changed = self.diff().partition("\n@@")  # what is above names the page, with the same signs
        signs = Counter(line[:1] for line in changed.split("\n"))
        return signs["+"], signs["-"]

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = (None if page is None else page.raw for page in (self.before, self.after))
        return unified_diff(f"{self.old_name or self.name}{PAGE_SUFFIX}", before, after, self.name + PAGE_SUFFIX)

    def __repr__(self) -> str:
        return self.diff()

    def _repr_html_(self) -> str:
        lines = self.diff().splitlines()
        more = [f"... and {counted(len(lines) - _LINES, 'more line')}"] if len(lines) > _LINES else []
        shown = "\n".join(_escaped_line(line) for line in [*lines[:_LINES], *more])
        return f'<pre style="overflow-x:auto">{shown}</pre>'


@dataclass(frozen=True, repr=False)
class FieldDifference(Sequence[PageDifference]):
    """What changed between two places, by page name.

    Attributes:
        earlier: The one place, without credentials.
        later: The other.
        pages: What is not the same.
        same: How many pages are.
        notes: What a reader should know, for instance that a place did not answer and an earlier copy was compared.
    """

    earlier: str
    later: str
    pages: tuple[PageDifference, ...]
    same: int
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int | str) -> PageDifference: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PageDifference]: ...
    def __getitem__(self, index: int | str | slice) -> PageDifference | Sequence[PageDifference]:
        """Return a page by its place or by its name, before or after."""
        if not isinstance(index, str):
            return self.pages[index]
        name = index.removesuffix(PAGE_SUFFIX)
        for page in sorted(self.pages, key=lambda page: page.name != name):
            if name in (page.name, page.old_name):
                return page
        raise PageNotFound(f"{name} is the same in both places, or in neither")

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the pages that are new."""
        return self._named("added")

    @property
    def deleted(self) -> tuple[str, ...]:
        """Names of the pages that are gone."""
        return self._named("deleted")

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the pages that have another text."""
        return self._named("changed")

    @property
    def renamed(self) -> dict[str, str]:
        """Old names of the pages that have another name, with the new ones."""
        return {page.old_name or "": page.name for page in self.pages if page.what == "renamed"}

    def _named(self, what: What) -> tuple[str, ...]:
        return tuple(page.name for page in self.pages if page.what == what)

    def diff(self) -> str:
        """Return every change as one unified diff."""
        return "".join(page.diff() for page in self.pages)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``name, what, old_name, lines_added, lines_removed, diff``."""
        import pandas

        rows = [(p.name, p.what, p.old_name, *p.lines, p.diff()) for p in self.pages]
        return pandas.DataFrame(rows, columns=["name", "what", "old_name", "lines_added", "lines_removed", "diff"])

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as values that JSON can hold."""
        rows = [{"name": p.name, "what": p.what, "old_name": p.old_name, "diff": p.diff()} for p in self.pages]
        places = {"earlier": self.earlier, "later": self.later}
        return {**places, "same": self.same, "pages": rows, "notes": list(self.notes)}

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        counts = Counter(page.what for page in self.pages)
        told = ", ".join(
            f"{counts[what]} {what}" for what in ("added", "deleted", "changed", "renamed") if counts[what]
        )
        rows = []
        for page in self.pages[:_SHOWN]:
            came, went = page.lines
            was = f"was {page.old_name}" if page.what == "renamed" else ""
            rows.append((page.name, page.what, f"+{came} -{went}", was))
        how = advice(python="diff() shows the lines", command="--diff shows the lines")
        notes = [f"{counted(self.same, 'page is', 'pages are')} the same", *([how] if rows else []), *self.notes]
        heading = f"From {self.earlier} to {self.later}: {told or 'nothing changed'}"
        more = max(len(self.pages) - _SHOWN, 0)
        return Table(heading, ("page", "what", "lines", "name"), rows, notes, frozenset({"lines"}), more=more)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        shown = [
            f"<details><summary>{escape(page.name)} ({page.what})</summary>{page._repr_html_()}</details>"
            for page in self.pages[:_SHOWN]
        ]
        return self.table().html() + "".join(shown)


def place_changes(earlier: PageSource, later: PageSource) -> FieldDifference:
    """Return what changed from one place to another.

    A page that is gone and one that is new are one page with another name where they have one uuid, or the same bytes.

    Raises:
        StoreError: A place elsewhere does not answer and has never answered.
    """
    old, new = _hashes(earlier.snapshot()), _hashes(later.snapshot())
    same = sum(new.get(name) == digest for name, digest in old.items())
    gone = dict(_read(earlier, sorted(old.keys() - new.keys())))
    came = dict(_read(later, sorted(new.keys() - old.keys())))
    found: list[PageDifference] = []
    for was, now in _renames(gone, came):
        found.append(PageDifference(now.name, "renamed", gone.pop(was.name), came.pop(now.name)))
    both = [name for name in old.keys() & new.keys() if old[name] != new[name]]
    after = dict(_read(later, both))
    for name, page in _read(earlier, both):
        if name in after:
            found.append(PageDifference(name, "changed", page, after[name]))
    found += [PageDifference(name, "deleted", page, None) for name, page in gone.items()]
    found += [PageDifference(name, "added", None, page) for name, page in came.items()]
    notes = tuple(f"{place_of(place)}: {note}" for place in (earlier, later) for note in source_notes(place))
    found.sort(key=lambda page: (page.name, page.what))
    return FieldDifference(place_of(earlier), place_of(later), tuple(found), same, notes)


def _hashes(snapshot: Snapshot) -> dict[str, bytes]:
    return {filename.removesuffix(PAGE_SUFFIX): entry.sha256 for filename, entry in snapshot.entries.items()}


def _read(source: PageSource, names: Sequence[str]) -> Iterator[tuple[str, Page]]:
    for name in names:
        try:
            yield name, source.read(name)
        except PageNotFound:  # gone in this moment
            continue


def _renames(gone: Mapping[str, Page], came: Mapping[str, Page]) -> Iterator[tuple[Page, Page]]:
    """Yield the pages that are one page with two names."""
    left = dict(came)
    for key in (_uuid, _content):
        waiting: dict[str, list[Page]] = {}
        for page in left.values():
            mark = key(page)
            if mark is not None:
                waiting.setdefault(mark, []).append(page)
        for page in list(gone.values()):
            mark = key(page)
            candidates = waiting.get(mark, []) if mark is not None else []
            if candidates and page.name in gone:
                now = candidates.pop(0)
                del left[now.name]
                yield page, now


def _uuid(page: Page) -> str | None:
    return page.uuid.lower() if page.uuid else None


def _content(page: Page) -> str | None:
    return page.sha256 if page.raw.strip() else None


def _escaped_line(line: str) -> str:
    # the diff has made control characters visible; escaping folds blanks, and those at the start mean something
    sign, rest = line[:1], line[1:]
    bare = rest.lstrip(" ")
    return escape(sign).ljust(1) + " " * (len(rest) - len(bare)) + escape(bare)
