"""Moments as text: what is written, what is understood."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryfield.format.dates import date_text, parse_date


def test_moments_are_written_in_utc_P7() -> None:
    assert date_text(datetime(2026, 3, 1, 9, 0, 0, 123, tzinfo=UTC)) == "2026-03-01T09:00:00Z"
    assert date_text(datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == "2026-02-28T23:00:00Z"
    assert date_text(date(2026, 3, 1)) == "2026-03-01T00:00:00Z"
    with pytest.raises(ValueError, match="time zone"):
        date_text(datetime(2026, 3, 1))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T09:00:00Z", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        (" 2026-03-01 13:03 ", datetime(2026, 3, 1, 13, 3, tzinfo=UTC)),
        ("2026-03-01T13:03:00", datetime(2026, 3, 1, 13, 3, tzinfo=UTC)),
        ("2026-03-01 02:12:52 +0200", datetime(2026, 3, 1, 0, 12, 52, tzinfo=UTC)),
        ("2026-03-01T02:12:52+02:00", datetime(2026, 3, 1, 0, 12, 52, tzinfo=UTC)),
        ("2026-03-01T02:12:52.25-08", datetime(2026, 3, 1, 10, 12, 52, 250_000, tzinfo=UTC)),
        ("2026-13-45", None),
        ("2026-02-30T25:61:00Z", None),
        ("0001-01-01T00:00:00+02:00", None),
        ("yesterday", None),
        ("1772355600", None),
        ("20260301", None),
        ("2026-W10", None),
        ("2026", None),
        ("２０２６-03-01", None),
        ("", None),
    ],
)
def test_what_is_a_date_P7(text: str, moment: datetime | None) -> None:
    assert parse_date(text) == moment
    assert moment is None or parse_date(text).tzinfo is UTC  # type: ignore[union-attr]


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_written_is_read_P7(moment: datetime) -> None:
    assert parse_date(date_text(moment)) == moment.replace(microsecond=0)


@given(st.text(alphabet="0129-:TZ +.", max_size=25))
def test_nothing_raises_P7(text: str) -> None:
    parse_date(text)
