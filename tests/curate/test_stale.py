"""Pages grow stale by what they say of themselves, else by their files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoryfield.curate.stale import stale
from memoryfield.errors import QueryError
from memoryfield.format.page import Page

_NOW = datetime(2026, 11, 1, tzinfo=UTC)


def _page(name: str, keys: str, modified: datetime | None = None) -> Page:
    return Page(name, f"---\ntitle: {name.title()}\n{keys}---\nText.\n".encode(), modified)


def test_updated_before_created_before_the_file() -> None:
    fresh = _NOW - timedelta(days=1)
    pages = [
        _page("both", "created: '2020-01-01T00:00:00Z'\nupdated: '2026-10-30T00:00:00Z'\n"),
        _page("created", "created: 2024-11-01\n", fresh),
        _page("broken-date", "updated: 2026-13-45\ncreated: '2025-11-01T00:00:00Z'\n", fresh),
        _page("file", "", _NOW - timedelta(days=400)),
        _page("future", "updated: '2031-01-01T00:00:00Z'\n"),
        _page("unknown", ""),
    ]
    found = stale(pages, 365, _NOW)
    assert [(p.name, p.known_from) for p in found] == [
        ("created", "created"),
        ("file", "file"),
        ("broken-date", "created"),
    ]
    assert found.undated == ("unknown",) and found.pages == 6
    assert found[0].age == pytest.approx(730) and found[0].title == "Created"
    assert "3 of 6 pages" in repr(found) and "3 of 6 pages" in found._repr_html_()
    assert list(found.to_frame()["name"]) == ["created", "file", "broken-date"]
    assert found.to_dict()["stale"][0]["changed"] == "2024-11-01T00:00:00+00:00"


def test_index_and_listing_are_left_out_P5() -> None:
    old = "updated: '2001-01-01T00:00:00Z'\n"
    found = stale([_page("index", old), _page("listing", old)], 1, _NOW)
    assert len(found) == 0 and found.to_frame().empty and "0 of 0 pages" in repr(found)


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf")])
def test_senseless_ages_are_refused(days: float) -> None:
    with pytest.raises(QueryError, match="0 or more"):
        stale([], days, _NOW)
    with pytest.raises(QueryError, match="time zone"):
        stale([], 1, datetime(2026, 1, 1))
