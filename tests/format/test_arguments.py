"""Wrong arguments are refused with what was expected, before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryfield.errors import InvalidName, PageChanged, QueryError
from memoryfield.format.pages import Change, PageDirectory


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    field.create("a", title="A", body="# One\n\ntext\n")
    return field


def content(field: PageDirectory) -> dict[str, bytes]:
    return {name: (field.path / name).read_bytes() for name in sorted(os.listdir(field.path)) if name[0] != "."}


@pytest.mark.parametrize("digest", ["", " ", "0", "0" * 63, "0" * 65, "g" * 64, "0" * 64 + "\n", b"0" * 64, 0, False])
def test_a_condition_that_is_no_sha256_is_refused_P14(field: PageDirectory, digest: Any) -> None:
    before = content(field)
    calls: list[Callable[[], object]] = [
        lambda: field.delete("a", if_sha256=digest),
        lambda: field.edit("a", append="x", if_sha256=digest),
        lambda: field.write("a", b"x", if_sha256=digest),
        lambda: field.write("missing", b"x", if_sha256=digest),
        lambda: field.apply([Change("a", b"x", digest)]),
        lambda: field.apply([Change("a", None, digest)]),
        lambda: field.apply([Change("missing", b"x", digest)]),
    ]
    for call in calls:
        with pytest.raises(QueryError, match="64 hexadecimal digits"):
            call()
    assert content(field) == before


def test_a_condition_that_does_not_hold_still_stops_P14(field: PageDirectory) -> None:
    with pytest.raises(PageChanged):
        field.delete("a", if_sha256="0" * 64)
    assert field.delete("a", if_sha256=field.read("a").sha256.upper()).name == "a"


@pytest.mark.parametrize("name", [None, 5, b"a", Path("a"), ["a"], {"a": 1}, object])
def test_a_name_that_is_no_text_is_refused_P1(field: PageDirectory, name: Any) -> None:
    before = content(field)
    calls: list[Callable[[], object]] = [
        lambda: field.read(name),
        lambda: field.read_bytes(name),
        lambda: field.write(name, b"x"),
        lambda: field.edit(name, append="x"),
        lambda: field.delete(name),
        lambda: field.rename(name, "b"),
        lambda: field.rename("a", name),
        lambda: field.apply([Change(name, b"x")]),
    ]
    if name is not None:
        calls.append(lambda: field.create(name, title="B"))
    for call in calls:
        with pytest.raises(InvalidName, match="a name is a text such as"):
            call()
    assert content(field) == before


@pytest.mark.parametrize("raw", ["text", None, 5, bytearray(b"x"), ["x"]])
def test_a_content_that_is_not_bytes_is_refused(field: PageDirectory, raw: Any) -> None:
    before = content(field)
    with pytest.raises(QueryError, match="must be bytes, not"):
        field.write("a", raw)
    if raw is not None:
        with pytest.raises(QueryError, match="must be bytes, not"):
            field.apply([Change("b", b"x"), Change("a", raw)])
    assert content(field) == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"append": 5},
        {"append": b"x"},
        {"body": b"x"},
        {"body": ["x"]},
        {"section": "One"},
        {"section": ("One",)},
        {"section": ("One", "text", "more")},
        {"section": ("One", None)},
        {"section": (b"One", "text")},
        {"section": {"One": "text"}},
        {"keys": "status"},
        {"keys": [("status", "done")]},
    ],
)
def test_an_edit_with_a_wrong_type_is_refused(field: PageDirectory, arguments: Any) -> None:
    before = content(field)
    (name,) = arguments
    with pytest.raises(QueryError, match=f"^{name} must be"):
        field.edit("a", **arguments)
    assert content(field) == before


@pytest.mark.parametrize("arguments", [{"title": 5}, {"summary": b"x"}, {"body": b"x"}, {"title": ["x"]}])
def test_a_new_page_with_a_wrong_type_is_refused(field: PageDirectory, arguments: Any) -> None:
    before = content(field)
    (name,) = arguments
    with pytest.raises(QueryError, match=f"^{name} must be text"):
        field.create("new", **arguments)
    assert content(field) == before
