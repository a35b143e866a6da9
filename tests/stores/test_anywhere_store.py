"""A field in what fsspec reads: fsspec's own memory, read only, and no cached listing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest

import memoryfield as mf
from memoryfield.errors import FieldNotFound, QueryError, ReadOnlyField, StoreRefused
from memoryfield.stores.anywhere import FsspecStore
from memoryfield.stores.opening import is_address, open_store
from memoryfield.stores.pages import StorePages


@pytest.fixture
def system() -> Iterator[Any]:
    found = fsspec.filesystem("memory")
    found.pipe({"/notes/tea.md": b"green\n", "/notes/dock.md": b"deep\n", "/notes/old/x.md": b"x\n"})
    yield found
    found.rm("/notes", recursive=True)


def test_reading(system: Any) -> None:
    field = mf.open_field("memory://notes", model="hashing-1024")
    assert field.names() == ["dock", "tea"] and field["tea"].raw == b"green\n" and field.read_only
    with pytest.raises(ReadOnlyField):
        field.write("coal", title="Coal")
    with pytest.raises(ReadOnlyField):
        FsspecStore("memory://notes").delete_if("tea.md", "x")
    assert system.cat_file("/notes/tea.md") == b"green\n"


def test_what_others_write_is_seen(system: Any) -> None:
    pages = StorePages(open_store("memory://notes"), fresh_seconds=0.0)
    assert pages.read("tea").raw == b"green\n"
    system.pipe_file("/notes/tea.md", b"black\n")
    system.pipe_file("/notes/coal.md", b"hard\n")
    system.rm("/notes/dock.md")
    assert pages.names() == ["coal", "tea"] and pages.read("tea").raw == b"black\n"


def test_without_any_version_every_page_is_read(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryfield.stores.anywhere._TIMES", ())
    pages = StorePages(open_store("memory://notes"), fresh_seconds=0.0)
    assert pages.read("tea").raw == b"green\n"
    system.pipe_file("/notes/tea.md", b"black\n")
    assert pages.read("tea").raw == b"black\n"


def test_limits(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryfield.stores.anywhere.LARGEST_PAGE", 3)
    with pytest.raises(StoreRefused, match="larger than 3 bytes"):
        StorePages(open_store("memory://notes")).snapshot()


def test_addresses() -> None:
    for bad in (
        "file:///etc",
        "local:///etc",
        "simplecache::memory://x",
        "zip://a.zip::memory://x",
        "no-such-thing://x",
    ):
        with pytest.raises((QueryError, FieldNotFound)):
            open_store(bad) if is_address(bad) else FsspecStore(bad)
    with pytest.raises(FieldNotFound, match="no such directory"):
        mf.open_field("memory://nowhere").names()
    assert not is_address("C:\\notes") and not is_address("C:/notes") and not is_address("notes/x")
    with pytest.raises((QueryError, FieldNotFound)) as refused:
        open_store("sftp://ann:secret@127.0.0.1:1/notes")
    assert "secret" not in str(refused.value)
