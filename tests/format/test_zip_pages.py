"""An archive opened in place: the same pages as a directory, never written, never stale (FORMAT A4)."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import os
import threading
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError, FieldNotFound, InvalidName, PageNotFound
from memoryfield.format.archive import export_archive
from memoryfield.format.pages import PageDirectory, ZipPages, open_pages


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    for number in range(5):
        field.create(f"page-{number}", title=f"Page {number}", body="text " * 50 * number)
    (field.path / "notes.txt").write_bytes(b"kept\n")
    (field.path / "Bad Name.md").write_bytes(b"x")
    return field


@pytest.fixture
def source(field: PageDirectory, tmp_path: Path) -> ZipPages:
    return ZipPages(export_archive(field, tmp_path / "x.memoryfield.zip").path)


def made(
    path: Path, members: dict[str, bytes], moment: tuple[int, int, int, int, int, int] = (2026, 3, 1, 9, 30, 2)
) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(zipfile.ZipInfo(name, moment), raw, zipfile.ZIP_DEFLATED)
    return path


def age(path: Path) -> None:
    """Make a file look as if it had been written long ago, for the stat data that can be set."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def old_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass: files written now are no longer young."""
    from memoryfield.format import zippages

    monkeypatch.setattr(zippages, "RACY_WINDOW_NS", -(10**12))


def test_it_reads_like_the_directory_A4(field: PageDirectory, source: ZipPages) -> None:
    assert source.names() == field.names()
    assert [page.raw for page in source.pages()] == [page.raw for page in field.pages()]
    assert source.read("page-3.md").raw == field.read("page-3").raw
    assert source.read_bytes("notes.txt") == b"kept\n"
    assert source.other_files() == field.other_files() == ["notes.txt"]
    inside, outside = source.snapshot(), field.snapshot()
    assert {n: (e.sha256, e.size) for n, e in inside.entries.items()} == {
        n: (e.sha256, e.size) for n, e in outside.entries.items()
    }
    assert list(inside.entries) == list(outside.entries)
    assert inside.skipped == outside.skipped


def test_nothing_is_unpacked_or_written_A4(source: ZipPages, tmp_path: Path) -> None:
    before = sorted(os.walk(tmp_path))
    raw = source.path.read_bytes()
    source.snapshot()
    list(source.pages())
    assert source.read_only
    assert sorted(os.walk(tmp_path)) == before
    assert source.path.read_bytes() == raw


def test_a_read_only_file_is_enough(source: ZipPages) -> None:
    source.path.chmod(0o444)
    assert len(open_pages(source.path).names()) == 5


def test_names_are_checked(source: ZipPages) -> None:
    for name in ("../x", "A", ""):
        with pytest.raises(InvalidName):
            source.read(name)
    with pytest.raises(PageNotFound, match="missing"):
        source.read("missing")
    with pytest.raises(PageNotFound, match=r"missing\.txt"):
        source.read_bytes("missing.txt")
    with pytest.raises(InvalidName):
        source.read_bytes("sub/a.md")


def test_times_of_members_are_utc_and_the_fixed_one_means_unknown(source: ZipPages, tmp_path: Path) -> None:
    dated = ZipPages(made(tmp_path / "y.zip", {"a.md": b"x"}))
    moment = datetime(2026, 3, 1, 9, 30, 2, tzinfo=UTC)
    assert dated.read("a").modified == moment
    assert dated.snapshot().entries["a.md"].mtime_ns == int(moment.timestamp()) * 10**9
    assert source.read("page-1").modified is None
    assert source.snapshot().entries["page-1.md"].mtime_ns == 0


def test_one_top_directory_is_stripped_A2(tmp_path: Path) -> None:
    members = {"top/a.md": b"a", "top/b.txt": b"b", "top/sub/c.md": b"c", "__MACOSX/top/._a.md": b"junk"}
    source = ZipPages(made(tmp_path / "x.zip", members))
    assert source.names() == ["a"]
    assert source.other_files() == ["b.txt"]
    assert {item.reason for item in source.snapshot().skipped} == {"in a sub-directory", "resource fork of macOS"}


def test_a_damaged_page_is_left_out_and_the_rest_works_A4(field: PageDirectory, source: ZipPages) -> None:
    raw = bytearray(source.path.read_bytes())
    place = raw.index(b"page-2.md") + len(b"page-2.md") + 3
    raw[place] ^= 0xFF
    source.path.write_bytes(raw)
    found = source.snapshot()
    assert list(found.entries) == [f"page-{n}.md" for n in (0, 1, 3, 4)]
    assert [item.filename for item in found.skipped if item.reason.startswith("damaged")] == ["page-2.md"]
    assert [page.name for page in source.pages()] == [f"page-{n}" for n in (0, 1, 3, 4)]
    with pytest.raises(ArchiveError, match=r"page-2\.md"):
        source.read("page-2")
    assert source.read("page-3").raw == field.read("page-3").raw


def test_an_archive_that_is_replaced_is_noticed_A4(source: ZipPages, tmp_path: Path) -> None:
    made(tmp_path / "other.zip", {"new.md": b"new"})
    os.replace(tmp_path / "other.zip", source.path)
    assert source.names() == ["new"]
    assert source.read("new").raw == b"new"
    with pytest.raises(PageNotFound):
        source.read("page-1")


def test_an_archive_that_is_overwritten_in_place_is_noticed_A4(tmp_path: Path) -> None:
    path = made(tmp_path / "x.zip", {"a.md": b"one"})
    source = ZipPages(path)
    other = made(tmp_path / "y.zip", {"a.md": b"two"}).read_bytes()
    assert len(other) == path.stat().st_size
    path.write_bytes(other)
    assert source.read("a").raw == b"two"
    assert source.snapshot(verify=False).entries["a.md"].sha256 == hashlib.sha256(b"two").digest()


def test_an_archive_that_is_gone_is_named(source: ZipPages) -> None:
    source.path.unlink()
    for call in (source.names, source.snapshot, lambda: source.read("page-1"), lambda: list(source.pages())):
        with pytest.raises(FieldNotFound, match=r"x\.memoryfield\.zip"):
            call()


def test_snapshots_of_an_unchanged_archive_are_not_made_twice(
    source: ZipPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.snapshot()
    again = source.snapshot(first)
    assert all(again.entries[name] is entry for name, entry in first.entries.items())
    old_archive(monkeypatch)
    second = source.snapshot(verify=False)
    assert source.snapshot(verify=False) is second
    assert source.snapshot(verify=True) is not second
    elsewhere = ZipPages(source.path)
    known = dataclasses.replace(first, entries={n: e._replace(sha256=b"\0" * 32) for n, e in first.entries.items()})
    assert elsewhere.snapshot(known, verify=False).entries == known.entries
    assert elsewhere.snapshot(known, verify=True).entries == first.entries


def test_a_young_archive_is_read_again_although_stat_data_agree(source: ZipPages) -> None:
    first = source.snapshot()
    known = dataclasses.replace(first, entries={n: e._replace(sha256=b"\0" * 32) for n, e in first.entries.items()})
    assert source.snapshot(known, verify=False).entries == first.entries


def test_many_threads_read_at_once(field: PageDirectory, source: ZipPages) -> None:
    expected = [page.raw for page in field.pages()]
    errors: list[object] = []

    def work() -> None:
        for _ in range(10):
            if [page.raw for page in source.pages()] != expected or source.read("page-4").raw != expected[4]:
                errors.append("mixed up")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_nothing_stays_open(source: ZipPages) -> None:
    iterator = source.pages()
    next(iterator)
    del iterator  # a ResourceWarning would be an error here
    gc.collect()
    source.path.unlink()


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_an_archive_may_be_reached_through_a_link(source: ZipPages, tmp_path: Path) -> None:
    (tmp_path / "link.zip").symlink_to(source.path)
    assert open_pages(tmp_path / "link.zip").names() == source.names()


@pytest.mark.parametrize("name", ["what?", "num#ber", "per%20cent", "größe"])
def test_archives_with_awkward_names_X12(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and "?" in name:
        pytest.skip("Windows cannot hold that name")
    assert open_pages(made(tmp_path / f"{name}.memoryfield.zip", {"a.md": b"x"})).names() == ["a"]
