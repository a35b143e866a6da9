"""What the map knows of pages besides their vectors: read once, column by column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_DATE = re.compile(r"\s*(\d{4})-(\d\d)(?:-(\d\d))?")
_FEW_PAGES = 2  # a key that fewer pages have says nothing on a map
_OWN = frozenset({"title", "summary", "created", "updated", "uuid"})


@dataclass(frozen=True)
class Facts:
    """What is shown of pages.

    Attributes:
        names: Page names, as the pages came.
        titles: Their titles.
        summaries: Their summaries.
        created: ``created`` as it is written there, else an empty text.
        updated: ``updated`` likewise.
        sizes: Their bytes.
        modified: When the files were last written, None where that is not known.
        keys: By frontmatter key, what stands there, None where the key is missing.
        row: By name, the position in all of these.
    """

    names: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    modified: list[datetime | None] = field(default_factory=list)
    keys: dict[str, dict[int, Any]] = field(default_factory=dict)
    row: dict[str, int] = field(default_factory=dict)

    def value(self, key: str, name: str) -> Any:
        """Return what a frontmatter key says in a page, None where it is missing."""
        return self.keys.get(key, {}).get(self.row.get(name, -1))

    def choices(self) -> list[str]:
        """Return the frontmatter keys that can colour a map: several pages have them, with more than one value."""
        found = []
        for key, column in self.keys.items():
            if key in _OWN or len(column) < _FEW_PAGES:
                continue
            values = {text for value in column.values() for text in texts_of(value)}
            if 1 < len(values) <= max(len(column) * 0.8, 8):
                found.append(key)
        return sorted(found)

    def texts(self, key: str, names: Iterable[str]) -> list[str | None]:
        """Return one text for each page: what the key says there; of a list its most frequent item."""
        column = self.keys.get(key, {})
        counts = Counter(text for value in column.values() for text in texts_of(value))
        found: list[str | None] = []
        for name in names:
            texts = texts_of(column.get(self.row.get(name, -1)))
            found.append(max(texts, key=lambda text: (counts[text], text)) if texts else None)
        return found

    def days(self, which: str, names: Iterable[str]) -> list[float]:
        """Return a date of each page in days since 1970, ``nan`` where there is none.

        Args:
            which: ``created`` or ``updated``; either falls back to the other, then to the file's time.
            names: The pages.
        """
        first, second = (self.created, self.updated) if which == "created" else (self.updated, self.created)
        found = []
        for name in names:
            row = self.row.get(name)
            if row is None:
                found.append(float("nan"))
                continue
            moment = _moment(first[row]) or _moment(second[row]) or self.modified[row]
            found.append(float("nan") if moment is None else moment.timestamp() / 86_400)
        return found


def texts_of(value: Any) -> list[str]:
    """Return a frontmatter value as texts: itself, or the items of a list; nothing of an empty one or a mapping."""
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, list | tuple):
        return [item.strip() for item in value if isinstance(item, str) and item.strip()]
    return []


def read_facts(pages: Iterable[Any], check: Callable[[], None] = lambda: None) -> Facts:
    """Read what the map shows of pages.

    Args:
        pages: The pages.
        check: Called between pages; may raise to end the reading.
    """
    facts = Facts()
    for row, page in enumerate(pages):
        if row % 200 == 0:
            check()
        facts.row[page.name] = row
        facts.names.append(page.name)
        facts.titles.append(page.title)
        facts.summaries.append(page.summary)
        facts.created.append(page.created or "")
        facts.updated.append(page.updated or "")
        facts.sizes.append(page.size)
        facts.modified.append(page.modified)
        front: Mapping[str, Any] = page.frontmatter
        for key, value in front.items():
            if isinstance(key, str):
                facts.keys.setdefault(key, {})[row] = value
    return facts


def _moment(text: str) -> datetime | None:
    """Return the day that a date begins with."""
    found = _DATE.match(text)
    if found is None:
        return None
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3] or 1), tzinfo=UTC)
    except ValueError:
        return None
