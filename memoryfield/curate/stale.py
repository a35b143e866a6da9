"""Pages that nobody has changed for long, by what they say of themselves or else by their files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, overload

from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.format.dates import parse_date
from memoryfield.format.page import Page

if TYPE_CHECKING:
    import pandas

DAYS = 365.0
_DAY = 86_400.0  # seconds
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class StalePage:
    """A page that has not changed for long.

    Attributes:
        name: Its name.
        title: Its title.
        changed: When it last changed, in UTC.
        age: Days since then.
        known_from: ``updated``, ``created`` or ``file``: where that moment comes from.
    """

    name: str
    title: str
    changed: datetime
    age: float
    known_from: str


@dataclass(frozen=True)
class StalePages(Sequence[StalePage]):
    """Pages of at least an age, oldest first.

    Attributes:
        items: The pages.
        days: Smallest age in days.
        pages: How many pages were looked at.
        undated: Names of pages of which no moment is known.
    """

    items: tuple[StalePage, ...]
    days: float
    pages: int
    undated: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> StalePage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[StalePage]: ...
    def __getitem__(self, index: int | slice) -> StalePage | Sequence[StalePage]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[StalePage]:
        return iter(self.items)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``name, title, changed, age, known_from``."""
        import pandas

        columns = ["name", "title", "changed", "age", "known_from"]
        rows = [(i.name, i.title, i.changed, i.age, i.known_from) for i in self.items]
        frame = pandas.DataFrame(rows, columns=columns)
        return frame.assign(changed=pandas.to_datetime(frame["changed"], utc=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the pages as values that JSON can hold."""
        items = [
            {
                "name": i.name,
                "title": i.title,
                "changed": i.changed.isoformat(),
                "age": round(i.age, 2),
                "known_from": i.known_from,
            }
            for i in self.items
        ]
        return {"days": self.days, "pages": self.pages, "undated": list(self.undated), "stale": items}

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        count = len(self.items)
        notes = [f"no date is known of {len(self.undated)}: {', '.join(self.undated[:5])}"] if self.undated else []
        return Table(
            f"{count} of {self.pages} pages not changed for {self.days:g} days or more",
            ("days", "changed", "known from", "page", "title"),
            [(f"{i.age:.0f}", f"{i.changed:%Y-%m-%d}", i.known_from, i.name, i.title) for i in self.items[:_SHOWN]],
            notes,
            frozenset(["days"]),
            more=max(count - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def stale(pages: Iterable[Page], days: float = DAYS, now: datetime | None = None) -> StalePages:
    """Return the pages that have not changed for *days*, oldest first; ``index`` and ``listing`` are left out.

    A page's moment is its ``updated``, else its ``created``, else the time of its file. One that lies in the future is
    no sign of age.

    Args:
        pages: The pages.
        days: Smallest age, 0 or more.
        now: The moment that ages are counted from, with a time zone; the present by default.

    Raises:
        QueryError: *days* is negative or no number, or *now* has no time zone.
    """
    check_days(days)
    moment = now if now is not None else datetime.now(UTC)
    if moment.tzinfo is None:
        raise QueryError(f"now is {moment.isoformat()} without a time zone; use for example datetime.now(UTC)")
    found, undated, count = [], [], 0
    for page in pages:
        if page.is_special:
            continue
        count += 1
        changed, known_from = last_change(page)
        if changed is None:
            undated.append(page.name)
            continue
        age = (moment - changed).total_seconds() / _DAY
        if age >= days:
            found.append(StalePage(page.name, page.title, changed, age, known_from))
    found.sort(key=lambda item: (-item.age, item.name))
    return StalePages(tuple(found), days, count, tuple(undated))


def last_change(page: Page) -> tuple[datetime | None, str]:
    """Return when a page last changed, in UTC, and whether ``updated``, ``created`` or the ``file`` says so."""
    for key, text in (("updated", page.updated), ("created", page.created)):
        moment = parse_date(text) if text else None
        if moment is not None:
            return moment, key
    return page.modified, "file"


def check_days(days: float) -> None:
    """Raise QueryError unless *days* can be an age."""
    if not (math.isfinite(days) and days >= 0):
        raise QueryError(f"days is {days!r}; an age is 0 or more, a usual one is {DAYS:g}")
