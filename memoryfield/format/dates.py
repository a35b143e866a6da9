"""Moments in frontmatter: how they are written, and what a text that should be one means."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

# Narrower than datetime.fromisoformat, which also takes week dates and bare digits such as 20260301.
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)? ?(?:Z|[+-]\d\d(?::?\d\d)?)?)?")
_MOST_NS = 2**63 - 1


def date_text(moment: datetime | date) -> str:
    """Return the text of a moment as the format writes it: ``YYYY-MM-DDTHH:MM:SSZ``.

    Args:
        moment: A date (its midnight in UTC is meant), or a datetime with a time zone.

    Raises:
        ValueError: A datetime without a time zone, whose moment nobody can know.
    """
    if not isinstance(moment, datetime):
        return f"{moment.isoformat()}T00:00:00Z"
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: use an aware datetime, for example datetime.now(UTC)")
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def moment_of(seconds: float) -> datetime | None:
    """Return the moment of a file's time, or None where no calendar has it.

    Args:
        seconds: Since 1970; some file systems hold times of a million years.
    """
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def clamped_ns(nanoseconds: int) -> int:
    """Return a file's time as an integer of 64 bits can hold it, such as SQLite's: the years 1677 to 2262."""
    return max(-_MOST_NS, min(nanoseconds, _MOST_NS))


def parse_date(text: str) -> datetime | None:
    """Return the moment that *text* names, aware and in UTC, or None where it names none.

    Args:
        text: ISO 8601 as frontmatter has it: a day, or a day and a time. Without an offset UTC is meant.
    """
    text = text.strip()
    if _ISO.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
