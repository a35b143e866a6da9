"""Filters on frontmatter and dates."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.retrieve.filters import page_filter, passing_pages


def passing(field: PageDirectory, **conditions: Any) -> list[str]:
    return sorted(passing_pages(page_filter(**conditions), field, field.snapshot()))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"title": "Bread"}, ["bread"]),
        ({"title": "bread"}, []),
        ({"title": ["Bread", "Dough"]}, ["bread", "dough"]),
        ({"tags": "kitchen"}, ["bread", "dough"]),
        ({"tags": "boat"}, ["anchor"]),
        ({"tags": ["iron", "kitchen"]}, ["anchor", "bread", "dough"]),
        ({"draft": True}, ["anchor"]),
        ({"draft": False}, ["compass"]),
        ({"draft": "true"}, ["anchor"]),
        ({"draft": None}, ["bread", "dough", "engine"]),
        ({"draft": [None, False]}, ["bread", "compass", "dough", "engine"]),
        ({"portions": 4}, ["bread"]),
        ({"portions": 4.0}, []),
        ({"owner": "yard"}, []),
        pytest.param({"owner": lambda value: value["team"] == "yard"}, ["engine"], id="function of a mapping"),
        pytest.param({"title": lambda value: value.startswith("B")}, ["bread"], id="function of text"),
        pytest.param({"tags": lambda value: "boat" in value}, ["anchor"], id="function of a list"),
        ({"updated": date(2026, 3, 15)}, ["dough"]),
        ({"updated": date(2026, 2, 28)}, ["compass"]),
        ({"tags": "kitchen", "portions": "4"}, ["bread"]),
        ({"missing": "x"}, []),
        ({}, ["anchor", "bread", "compass", "dough", "engine"]),
    ],
    ids=repr,
)
def test_where(field: PageDirectory, where: dict[str, Any], expected: list[str]) -> None:
    assert passing(field, where=where) == expected


def test_text_is_compared_as_it_is_written_P7(field: PageDirectory) -> None:
    text = "---\nversion: 1.10\nstart: 12:30\nanswer: No\n---\nbody\n"
    (field.path / "looks.md").write_text(text)
    assert passing(field, where={"version": "1.10"}) == ["looks"]
    assert passing(field, where={"version": 1.1}) == []
    assert passing(field, where={"start": "12:30"}) == passing(field, where={"answer": "No"}) == ["looks"]
    assert passing(field, where={"answer": False}) == ["looks"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("2026-03-01", None, ["dough", "engine"]),
        ("2026-02-28", "2026-02-28", ["compass"]),  # 00:30 at +02:00 is still the day before in UTC
        ("2026-02", "2026-02", ["bread", "compass"]),
        (None, "2026-01", ["anchor"]),
        ("2026", "2026", ["anchor", "bread", "compass", "dough", "engine"]),
        (None, "2026-02-20", ["anchor", "bread"]),
        (None, "2026-02-20T23:30:00Z", ["anchor", "bread"]),
        (None, "2026-02-20T23:29:59Z", ["anchor"]),
        ("2026-02-21T00:30:00+01:00", "2026-02-21T00:30:00+01:00", ["bread"]),
        ("2026-02-20 23:30", "2026-02-20 23:30", ["bread"]),
        (date(2026, 3, 15), date(2026, 3, 15), ["dough"]),
        (datetime(2026, 3, 15), datetime(2026, 3, 15), ["dough"]),
        (datetime(2026, 3, 15, 2, tzinfo=timezone(timedelta(hours=2))), date(2026, 3, 31), ["dough"]),
        ("2027-01-01", None, []),
    ],
)
def test_dates(field: PageDirectory, since: Any, until: Any, expected: list[str]) -> None:
    assert passing(field, since=since, until=until) == expected


def test_date_of_a_page_is_updated_then_created_then_the_files(field: PageDirectory) -> None:
    files = {
        "both": "---\ncreated: 2020-01-01\nupdated: 2021-01-01\n---\n",
        "only-created": "---\ncreated: 2020-01-01\n---\n",
        "impossible": "---\nupdated: 2026-13-45\ncreated: 2019-05-05\n---\n",
        "none": "no frontmatter\n",
        "broken": "---\nupdated: [2021\n---\nx\n",
    }
    for name, text in files.items():
        path = field.path / f"{name}.md"
        path.write_text(text)
        os.utime(path, (1_500_000_000, 1_500_000_000))  # July 2017
    assert passing(field, since="2021-01-01", until="2021-12-31") == ["both"]
    assert passing(field, since="2020-01-01", until="2020-12-31") == ["only-created"]
    assert passing(field, since="2019-01-01", until="2019-12-31") == ["impossible"]
    assert passing(field, since="2017-01-01", until="2017-12-31") == ["broken", "none"]


NO_DATES = ["yesterday", "2026-13-01", "2026-02-30", "20260301", "01.03.2026", "", 2026, 1.5, "2026-00"]


@pytest.mark.parametrize("value", NO_DATES)
@pytest.mark.parametrize("name", ["since", "until"])
def test_what_is_no_date_says_what_is_possible(name: str, value: Any) -> None:
    with pytest.raises(QueryError, match=r"2026-03-01T08:00:00Z") as caught:
        page_filter(**{name: value})
    assert name in str(caught.value) and repr(value) in str(caught.value)


def test_dates_the_wrong_way_round() -> None:
    with pytest.raises(QueryError, match="later than"):
        page_filter(since="2026-02-01", until="2026-01-31")


@pytest.mark.parametrize("value", [object(), {"a": 1}, [["nested"]], [lambda v: True], b"bytes"])
def test_values_that_cannot_be_compared(value: Any) -> None:
    with pytest.raises(QueryError, match="where"):
        page_filter(where={"title": value})
    with pytest.raises(QueryError, match="key"):
        page_filter(where={3: "x"})


def test_function_that_fails_is_a_query_error_with_the_value(field: PageDirectory) -> None:
    with pytest.raises(QueryError, match=r"ValueError.*Values are text"):
        passing(field, where={"title": lambda value: int(value) > 3})


def test_frontmatter_is_read_once_for_each_content(field: PageDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = PageDirectory.read
    monkeypatch.setattr(PageDirectory, "read", lambda self, name: (read.append(name), original(self, name))[1])
    assert passing(field, where={"tags": "kitchen"}) == ["bread", "dough"]
    assert len(read) == 5
    (field.path / "bread.md").write_text("---\ntags: [other]\n---\n")
    assert passing(field, where={"tags": "kitchen"}) == ["dough"]
    assert passing(field, where={"tags": "other"}) == ["bread"]
    assert len(read) == 6
    os.utime(field.path / "bread.md", (0, 0))
    assert passing(field, until="1970-01-01") == ["bread"] and len(read) == 6


def test_same_filter_gives_the_same_set(field: PageDirectory) -> None:
    snapshot = field.snapshot()
    first = passing_pages(page_filter(where={"tags": ["kitchen"]}), field, snapshot)
    assert passing_pages(page_filter(where={"tags": ["kitchen"]}), field, field.snapshot(known=snapshot)) is first


def test_truth_of_a_filter() -> None:
    assert not page_filter() and not page_filter(where={})
    assert page_filter(where={"a": "b"}) and page_filter(since="2026")
    assert page_filter(until=datetime(2026, 1, 1, tzinfo=UTC))
