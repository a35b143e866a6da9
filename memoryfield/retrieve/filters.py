"""Which pages a search may return: by what their frontmatter says, and by their dates."""

from __future__ import annotations

import calendar
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from memoryfield.errors import PageNotFound, QueryError
from memoryfield.format.dates import clamped_ns, moment_of, parse_date
from memoryfield.format.names import PAGE_SUFFIX

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Entry, Snapshot
    from memoryfield.format.yamlread import Value

Where = Mapping[str, Any]
Moment = str | date | datetime

_YES = frozenset(["true", "yes", "on"])
_NO = frozenset(["false", "no", "off"])
_NOTHING = frozenset(["", "null", "~"])
_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?")
_DATE_FORM = "write a day (2026-03-01), a month (2026-03), a year (2026) or a moment (2026-03-01T08:00:00Z)"


@dataclass(frozen=True)
class Filter:
    """A condition on pages.

    Attributes:
        where: By frontmatter key, what it must say; see ``page_filter``.
        since: The earliest moment, or None.
        before: The first moment that is too late, or None.
    """

    where: Where
    since: datetime | None = None
    before: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.where) or self.since is not None or self.before is not None

    def passes(self, facts: _Facts, entry: Entry) -> bool:
        """Say whether a page may be returned."""
        if self.since is not None or self.before is not None:
            moment = facts.moment
            if moment is None:
                moment = moment_of(clamped_ns(entry.mtime_ns) / 1e9)
            if moment is None:
                return False
            if (self.since is not None and moment < self.since) or (self.before is not None and moment >= self.before):
                return False
        return all(_says(facts.fields.get(key), wanted, key) for key, wanted in self.where.items())

    @property
    def key(self) -> tuple[Any, ...] | None:
        """What makes two filters the same, or None if that cannot be told."""
        try:
            where = tuple(sorted((key, tuple(v) if isinstance(v, list) else v) for key, v in self.where.items()))
            hash(where)
        except TypeError:
            return None
        return (where, self.since, self.before)


@dataclass(frozen=True)
class _Facts:
    """What filters ask of a page's content."""

    fields: Mapping[str, Value]
    moment: datetime | None  # updated, else created


def page_filter(where: Where | None = None, since: Moment | None = None, until: Moment | None = None) -> Filter:
    """Return a filter, after a look whether it makes sense.

    Args:
        where: By frontmatter key, a value, a list of values any of which will do, or a function of what stands there.
            Values are compared as text, as they are written; ``True`` and ``False`` with what YAML reads so, ``None``
            with a missing or empty key. Of a list in the frontmatter one item is enough. A function is not called for
            pages without the key.
        since: The earliest date of ``updated``, else ``created``, else the file's time.
        until: The latest, a day with all its hours. Without a zone UTC is meant.

    Raises:
        QueryError: A value that cannot be compared, or a date that is none; the message says what is possible.
    """
    wanted = dict(where or {})
    for key, value in wanted.items():
        if not isinstance(key, str):
            raise QueryError(f"where has the key {key!r}; keys are the text of frontmatter keys.")
        values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        for one in values:
            if not (one is None or isinstance(one, (str, bool, int, float, date)) or (one is value and callable(one))):
                raise QueryError(
                    f"where[{key!r}] is a {type(one).__name__}; give text, a number, a date, True, False, None, "
                    "a list of these, or a function of the value."
                )
        if isinstance(value, (set, frozenset, tuple)):
            wanted[key] = list(value)
    earliest = None if since is None else _interval(since, "since")[0]
    before = None if until is None else _interval(until, "until")[1]
    if earliest is not None and before is not None and earliest >= before:
        raise QueryError(f"since={since!r} is later than until={until!r}: no page can pass.")
    return Filter(wanted, earliest, before)


def _interval(value: Moment, name: str) -> tuple[datetime, datetime]:
    """Return the first moment that *value* means, and the first one after it."""
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment, moment + timedelta(microseconds=1)
    if isinstance(value, date):
        return _day(value.isoformat())
    if isinstance(value, str):
        text = value.strip()
        month = _MONTH.fullmatch(text)
        try:
            if month is not None:
                year, first, last = int(month[1]), int(month[2] or 1), int(month[2] or 12)
                return (
                    datetime(year, first, 1, tzinfo=UTC),
                    datetime(year, last, calendar.monthrange(year, last)[1], tzinfo=UTC) + timedelta(days=1),
                )
            found = parse_date(text)
            if found is not None:
                return _day(text) if len(text) == len("2026-03-01") else (found, found + timedelta(microseconds=1))
        except (ValueError, OverflowError):
            pass
    raise QueryError(f"{name}={value!r} is no date: {_DATE_FORM}.")


def _day(text: str) -> tuple[datetime, datetime]:
    start = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return start, start + timedelta(days=1)


def _says(value: Value | None, wanted: Any, key: str) -> bool:
    """Say whether a frontmatter value is as wanted."""
    if callable(wanted):
        return value is not None and _ask(wanted, value, key)
    if isinstance(wanted, list):
        return any(_says(value, one, key) for one in wanted)
    if wanted is None:
        return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING) or value == []
    if isinstance(value, list):
        return any(_says(item, wanted, key) for item in value)
    if not isinstance(value, str):
        return False
    text = value.strip()
    if isinstance(wanted, bool):
        return text.lower() in (_YES if wanted else _NO)
    if isinstance(wanted, date):
        start, end = _interval(wanted, key)
        moment = parse_date(text)
        return moment is not None and start <= moment < end
    return text == str(wanted).strip()


def _ask(function: Callable[[Any], Any], value: Value, key: str) -> bool:
    try:
        return bool(function(value))
    except Exception as error:
        raise QueryError(
            f"the function for where[{key!r}] failed on the value {value!r}: {type(error).__name__}: {error}. "
            "Values are text, or lists and mappings of text."
        ) from error


class _Known:
    """What is known of one source's pages: facts by sha256, and the answer to the last filter."""

    def __init__(self) -> None:
        self.facts: dict[bytes, _Facts] = {}
        self.last: tuple[tuple[Any, ...], dict[str, Entry], frozenset[str]] | None = None


_known: weakref.WeakKeyDictionary[PageSource, _Known] = weakref.WeakKeyDictionary()


def passing_pages(condition: Filter, source: PageSource, snapshot: Snapshot) -> frozenset[str]:
    """Return the names of pages that pass a filter.

    Frontmatter is read once for each content; the last answer is kept while neither the filter nor the pages change.
    """
    known = _known.setdefault(source, _Known())
    key, entries = condition.key, snapshot.entries
    if key is not None and known.last is not None and known.last[0] == key and known.last[1] == entries:
        return known.last[2]
    facts = _all_facts(known.facts, source, entries)
    passing = frozenset(
        filename.removesuffix(PAGE_SUFFIX)
        for filename, entry in entries.items()
        if entry.sha256 in facts and condition.passes(facts[entry.sha256], entry)
    )
    known.facts = facts
    if key is not None:
        known.last = (key, entries, passing)
    return passing


def _all_facts(known: Mapping[bytes, _Facts], source: PageSource, entries: Mapping[str, Entry]) -> dict[bytes, _Facts]:
    """Return facts for each content that there is, reading what is not known yet."""
    facts: dict[bytes, _Facts] = {}
    for filename, entry in entries.items():
        found = known.get(entry.sha256) or facts.get(entry.sha256)
        if found is None:
            try:
                found = _facts(source.read(filename))
            except PageNotFound:
                continue
        facts[entry.sha256] = found
    return facts


def _facts(page: Page) -> _Facts:
    dates: Iterable[str | None] = (page.updated, page.created)
    moments = (parse_date(text) for text in dates if text)
    return _Facts(page.frontmatter, next((moment for moment in moments if moment is not None), None))
