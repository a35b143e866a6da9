"""The pages of a store: one listing a sync, only what changed is read, conditions, the last state when it is silent."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import (
    NotEditable,
    PageChanged,
    PageExists,
    PageNotFound,
    ReadOnlyField,
    StoreError,
    StoreRefused,
    StoreUnreachable,
)
from memoryfield.format.changes import Change
from memoryfield.format.pages import PageSource
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.places import cache_directory
from memoryfield.stores.pages import StorePages
from memoryfield.stores.protocol import MOST_ENTRIES, Listed, sorted_out


@pytest.fixture
def pages(memory: Any) -> StorePages:
    return StorePages(memory)


def reads(memory: Any) -> list[str]:
    return [call for call in memory.calls if call.startswith("read")]


def test_it_is_a_source_of_pages(pages: StorePages, memory: Any) -> None:
    assert isinstance(pages, PageSource)
    assert pages.names() == ["dock", "tea"]
    assert [page.name for page in pages.pages()] == ["dock", "tea"]
    assert pages.read("tea.md").raw == memory.files["tea.md"] == pages.read_bytes("tea.md")
    assert pages.read("tea").modified is not None and not pages.path.exists()
    with pytest.raises(PageNotFound, match=r"no coal\.md in test://memory"):
        pages.read("coal")


def test_one_listing_and_only_what_changed(pages: StorePages, memory: Any) -> None:
    first = pages.snapshot()
    assert first.entries["tea.md"].sha256 == hashlib.sha256(memory.files["tea.md"]).digest()
    memory.calls.clear()
    assert pages.snapshot(verify=True).entries is first.entries and memory.calls == ["list"]
    memory.files["dock.md"] = b"deeper\n"
    memory.files["pier.md"] = b"new\n"
    del memory.files["tea.md"]
    memory.calls.clear()
    assert list(pages.snapshot().entries) == ["dock.md", "pier.md"]
    assert sorted(memory.calls) == ["list", "read dock.md", "read pier.md"]


def test_a_new_process_reads_nothing_again(pages: StorePages, memory: Any) -> None:
    pages.snapshot()
    memory.calls.clear()
    again = StorePages(memory)
    assert again.read("tea").raw == memory.files["tea.md"] and memory.calls == ["list"]


def test_an_interrupted_sync_goes_on(memory: Any) -> None:
    memory.files = {f"page-{i}.md": b"text %d\n" % i for i in range(200)}
    pages = StorePages(memory)
    memory.fails = lambda call: len(memory.calls) == 150
    with pytest.raises(StoreUnreachable):
        pages.snapshot()
    memory.fails = lambda call: False
    memory.calls.clear()
    assert len(StorePages(memory).snapshot().entries) == 200
    assert len(reads(memory)) == 200 - 148


def test_a_sync_that_somebody_stops_goes_on_and_tells_how_far_it_is(memory: Any) -> None:
    memory.files = {f"page-{i}.md": b"text %d\n" % i for i in range(200)}
    field = mf.MemoryField(StorePages(memory, fresh_seconds=60.0), model="hashing-1024")
    told: list[tuple[int, int]] = []

    def stopped(done: int, total: int) -> None:
        told.append((done, total))
        if done == 150:
            raise KeyboardInterrupt  # as Ctrl-C does, here in the middle

    with pytest.raises(KeyboardInterrupt):
        field.sync(progress=stopped)
    assert told == [(i, 200) for i in range(1, 151)]
    memory.calls.clear()
    told.clear()
    assert len(field.sync(progress=lambda *numbers: told.append(numbers)).added) == 200
    assert len(reads(memory)) == 51, "the page that was under way is read again, the others are not"
    assert told[:51] == [(i, 51) for i in range(1, 52)]
    told.clear()
    field.sync(progress=lambda *numbers: told.append(numbers))
    assert told == []


def test_a_bar_is_shown_while_pages_come(memory: Any, capsys: pytest.CaptureFixture[str]) -> None:
    mf.MemoryField(StorePages(memory), model="hashing-1024").sync(progress=True)
    assert "fetching" in capsys.readouterr().err
    mf.MemoryField(StorePages(memory), model="hashing-1024").sync(progress=False)
    assert capsys.readouterr() == ("", "")


def test_each_thread_is_told_of_what_it_fetches_itself_and_nobody_afterwards(pages: StorePages, memory: Any) -> None:
    told: list[str] = []
    inside, outside = threading.Event(), threading.Event()

    def first() -> None:
        with pages.reporting(lambda *_: told.append("first")):
            inside.set()
            assert outside.wait(30)

    thread = threading.Thread(target=first)
    with pages.reporting(lambda *_: told.append("second")):
        thread.start()
        assert inside.wait(30)
        pages.refresh()
    outside.set()
    thread.join()
    assert told == ["second", "second"]
    memory.files["new.md"] = b"new\n"
    pages.refresh()
    assert told == ["second", "second"]


def test_a_failed_sync_changes_nothing_and_says_so(pages: StorePages, memory: Any) -> None:
    before = pages.snapshot()
    memory.files.update({"dock.md": b"deeper\n", "tea.md": b"black tea\n"})
    memory.fails = lambda call: call == "read tea.md"
    with pytest.raises(StoreUnreachable):
        pages.refresh()
    assert pages.snapshot().entries == before.entries  # not half of each
    (note,) = pages.notes()
    assert note.startswith("offline: the pages are those of 20") and "cannot be reached" in note
    assert pages.read("dock").raw != b"deeper\n"
    memory.fails = lambda call: False
    assert pages.refresh().entries != before.entries and pages.notes() == []


def test_offline_from_the_start(memory: Any) -> None:
    field = mf.MemoryField(StorePages(memory), model="hashing-1024")
    assert [hit.name for hit in field.search("green tea", k=1, progress=False)] == ["tea"]
    memory.fails = lambda call: True
    later = mf.MemoryField(StorePages(memory), model="hashing-1024")
    found = later.search("green tea", k=1, progress=False)
    assert [hit.name for hit in found] == ["tea"]
    assert any("offline" in note for note in found.notes) and "offline" in repr(later)
    assert any("offline" in note for note in later.sync(progress=False).notes)
    with pytest.raises(StoreUnreachable):
        later.write("coal", title="Coal")
    with pytest.raises(StoreUnreachable):
        StorePages(type(memory)(place="test://never-seen", fails=lambda call: True)).names()


def test_a_search_costs_one_listing(memory: Any) -> None:
    field = mf.MemoryField(StorePages(memory, fresh_seconds=60.0), model="hashing-1024")
    field.sync(progress=False)
    memory.calls.clear()
    assert field.sync(progress=False).unchanged == ("dock", "tea") and memory.calls == ["list"]
    field.search("tea", progress=False)  # learns once how much the vectors count
    memory.calls.clear()
    field.search("tea", progress=False)
    assert memory.calls == ["list"]


def test_edits(memory: Any) -> None:
    field = mf.MemoryField(StorePages(memory), model="hashing-1024")
    page = field.write("coal", title="Coal", body="black\n")
    assert memory.files["coal.md"] == page.raw
    field.edit("coal", append="and hard\n")
    assert memory.files["coal.md"].endswith(b"and hard\n")
    renamed = field.rename("dock", "deep-dock")
    assert "dock.md" not in memory.files and memory.files["deep-dock.md"] == renamed.raw
    assert b"[dock](deep-dock.md)" in memory.files["tea.md"]
    field.delete("coal")
    assert sorted(field.names()) == ["deep-dock", "tea"] == sorted(n[:-3] for n in memory.files)
    plan = field.plan_edit("tea", title="Green tea")
    plan.apply()
    assert field["tea"].title == "Green tea"
    with pytest.raises(PageExists):
        field.write("tea", title="Tea")
    with pytest.raises(PageChanged):
        field.edit("tea", title="x", if_sha256="0" * 64)
    with pytest.raises(NotEditable, match="uuid"):
        field.put("tea", b"no uuid", replace=True)
    with pytest.raises(ReadOnlyField, match="lives elsewhere"):
        field.plan_fixes()


def test_a_writer_elsewhere_is_never_overwritten(pages: StorePages, memory: Any) -> None:
    def someone_else(call: str) -> None:
        if call == "write tea.md":
            memory.files["tea.md"] = b"theirs\n"

    pages.snapshot()
    memory.before = someone_else
    changes = [Change("coal", b"new\n", absent=True), Change("tea", b"ours\n"), Change("dock", None)]
    with pytest.raises(PageChanged):
        pages.apply(changes)
    assert memory.files["tea.md"] == b"theirs\n" and "dock.md" in memory.files
    assert "coal.md" not in memory.files, "what was written before is taken back"
    assert pages.refresh().entries.keys() == {"dock.md", "tea.md"}


def test_conditions_are_checked_before_the_first_write(pages: StorePages, memory: Any) -> None:
    for bad in (Change("coal", None), Change("tea", b"x", if_sha256="0" * 64), Change("dock", b"x", absent=True)):
        memory.calls.clear()
        with pytest.raises((PageNotFound, PageChanged, PageExists)):
            pages.apply([Change("pier", b"new\n", absent=True), bad])
        assert not [call for call in memory.calls if call.startswith("write")]
    with pytest.raises(NotEditable, match="16,777,216"):
        pages.apply([Change("pier", b"x" * (LARGEST_PAGE + 1))])


def test_a_lost_answer_is_looked_up(pages: StorePages, memory: Any) -> None:
    def lost(call: str) -> bool:
        if call == "write coal.md" and "coal.md" not in memory.files:
            memory.files["coal.md"] = b"written\n"
            return True
        return call == "write pier.md"

    memory.fails = lost
    assert pages.write("coal", b"written\n", absent=True).raw == b"written\n"
    with pytest.raises(StoreUnreachable):
        pages.write("pier", b"never\n", absent=True)
    assert pages.names() == ["coal", "dock", "tea"]


def test_a_store_that_keeps_promises_badly(pages: StorePages, memory: Any) -> None:
    pages.snapshot()
    memory.files["pier.md"] = b"x\n"
    memory.read_many = lambda wanted: iter(())
    with pytest.raises(StoreRefused, match=r"lists pier\.md but does not hand it over"):
        pages.refresh()
    assert pages.names() == ["dock", "tea"]


def test_a_page_that_goes_during_a_sync_is_gone_and_one_that_is_still_listed_is_refused(
    pages: StorePages, memory: Any
) -> None:
    pages.snapshot()
    memory.files.update({"pier.md": b"x\n", "coal.md": b"y\n"})
    listing = memory.list()
    memory.before = lambda call: call == "read coal.md" and memory.files.pop("coal.md", None)
    assert list(pages.snapshot().entries) == ["dock.md", "pier.md", "tea.md"]
    memory.list = lambda: listing
    with pytest.raises(StoreRefused, match=r"lists coal\.md but does not hand it over"):
        pages.refresh()


def test_hostile_listings() -> None:
    names = [
        "../../etc/passwd.md",
        "a/b.md",
        ".hidden.md",
        "Bad Name.md",
        "ok.md",
        "x\\y.md",
        "z\0.md",
        "n" * 999 + ".md",
    ]
    found = sorted_out([Listed(name, "t", 1) for name in names] + [Listed("big.md", "t", LARGEST_PAGE + 1)], "test://x")
    assert list(found.pages) == ["ok.md"] and found.others == ()
    assert {item.reason for item in found.skipped} == {
        "not directly in the field",
        "hidden",
        "not a valid page name",
        "name too long",
        "larger than 16 MiB",
    }
    endless = (Listed(f"p{i}.md", "t", 1) for i in range(10**6))
    with pytest.raises(StoreRefused, match="more than 100,000"):
        sorted_out(endless, "test://x")
    assert next(endless).filename == f"p{MOST_ENTRIES + 1}.md", "no more is read than was needed to refuse"
    with pytest.raises(StoreRefused, match="tag"):
        sorted_out([Listed("a.md", "t" * 5000)], "test://x")


def test_a_page_that_grows_beyond_the_limit(pages: StorePages, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.snapshot()
    monkeypatch.setattr("memoryfield.stores.pages.LARGEST_PAGE", 1000)
    memory.files["tea.md"] = b"x" * 1001
    found = pages.snapshot()
    assert list(found.entries) == ["dock.md"] and [item.filename for item in found.skipped] == ["tea.md"]


@pytest.mark.parametrize("damage", ["text", "rows", "version"])
def test_a_damaged_copy_is_read_again(memory: Any, damage: str) -> None:
    StorePages(memory).snapshot()
    (file,) = (cache_directory() / "stores").glob("*.sqlite3")
    if damage == "text":
        file.write_bytes(b"not a database at all" * 100)
    else:
        with sqlite3.connect(file) as connection:
            connection.execute("DELETE FROM contents" if damage == "rows" else "PRAGMA user_version = 99")
        connection.close()
    assert StorePages(memory).read("tea").raw == memory.files["tea.md"]


def test_bytes_that_changed_in_the_copy_are_fetched_again(memory: Any) -> None:
    StorePages(memory).snapshot()
    (file,) = (cache_directory() / "stores").glob("*.sqlite3")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE contents SET raw = ?", (b"forged",))
    connection.close()
    assert StorePages(memory).read("tea").raw == memory.files["tea.md"]


def test_other_files_and_read_only(memory: Any) -> None:
    memory.files["photo.png"] = b"\x89PNG"
    memory.read_only = True
    pages = StorePages(memory)
    assert pages.other_files() == ["photo.png"] and pages.read_bytes("photo.png") == b"\x89PNG"
    with pytest.raises(PageNotFound):
        pages.read_bytes("other.png")
    with pytest.raises(ReadOnlyField, match="test://memory is read only"):
        pages.apply([Change("tea", b"x")])
    with pytest.raises(ReadOnlyField):
        mf.MemoryField(pages).write("coal", title="Coal")


def test_nothing_is_made_in_the_working_directory(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = set(tmp_path.iterdir())
    field = mf.MemoryField(StorePages(memory), model="hashing-1024")
    field.sync(progress=False)
    assert field.name == "memory" and field.place == "test://memory" and not field.path.exists()
    assert {p for p in set(tmp_path.iterdir()) - seen if p.name not in ("cache", "state")} == set()
    assert issubclass(StoreUnreachable, StoreError)
