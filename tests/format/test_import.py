"""Bringing pages in: an archive into a new directory, the pages of one field into another (FORMAT A2)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError, ChecksumMismatch, FieldLocked, MemoryfieldError
from memoryfield.format import importing
from memoryfield.format.archive import export_archive, import_archive, import_pages, sidecar_path
from memoryfield.format.files import write_errors
from memoryfield.format.importing import unfit_here
from memoryfield.format.pages import PageDirectory, open_pages


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    for number in range(4):
        field.create(f"page-{number}", title=f"Page {number}", body="text " * number)
    (field.path / "notes.txt").write_bytes(b"kept\n")
    return field


@pytest.fixture
def archive(field: PageDirectory, tmp_path: Path) -> Path:
    return export_archive(field, tmp_path / "x.memoryfield.zip").path


def content(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in sorted(os.listdir(path))}


# Archives


def test_an_imported_field_is_the_exported_one_A2(field: PageDirectory, archive: Path, tmp_path: Path) -> None:
    report = import_archive(archive, tmp_path / "new" / "where" / "copy")
    assert content(report.path) == content(field.path)
    assert report.path == tmp_path / "new" / "where" / "copy"
    assert report.added == ("page-0", "page-1", "page-2", "page-3")
    assert report.files == ("notes.txt",)
    assert report.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert report.bytes == sum(len(raw) for raw in content(field.path).values())
    assert sorted(os.listdir(tmp_path / "new" / "where")) == ["copy"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_rights_follow_the_umask_and_not_the_archive(archive: Path, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        report = import_archive(archive, tmp_path / "copy")
    finally:
        os.umask(old)
    assert stat.S_IMODE(report.path.stat().st_mode) == 0o750
    assert stat.S_IMODE((report.path / "page-0.md").stat().st_mode) == 0o640


def test_the_checksum_is_checked_first_A2(archive: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert import_archive(archive, tmp_path / "one", sha256=digest.upper() + "\n").sha256 == digest
    with pytest.raises(ChecksumMismatch, match="the given sha256"):
        import_archive(archive, tmp_path / "two", sha256="0" * 64)
    archive.write_bytes(b"not even a zip")
    with pytest.raises(ChecksumMismatch, match=r"memoryfield\.zip\.sha256"):
        import_archive(archive, tmp_path / "two")
    sidecar_path(archive).unlink()
    with pytest.raises(ArchiveError, match="not a zip archive"):
        import_archive(archive, tmp_path / "two")
    assert not (tmp_path / "two").exists()


def test_a_given_checksum_counts_more_than_the_side_file(archive: Path, tmp_path: Path) -> None:
    sidecar_path(archive).write_text("nonsense")
    with pytest.raises(ArchiveError, match="line of the form"):
        import_archive(archive, tmp_path / "copy")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert import_archive(archive, tmp_path / "copy", sha256=digest).sha256 == digest


def test_the_target_must_be_new_or_empty(field: PageDirectory, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert len(import_archive(archive, tmp_path / "empty").added) == 4
    (tmp_path / "file").touch()
    before = content(field.path)
    for target in (field.path, tmp_path / "empty", tmp_path / "file"):
        with pytest.raises(ArchiveError, match="give a new name"):
            import_archive(archive, target)
    assert content(field.path) == before


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_target_that_is_a_link_is_refused(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere", target_is_directory=True)
    (tmp_path / "dangling").symlink_to("nowhere", target_is_directory=True)
    for name in ("link", "dangling"):
        with pytest.raises(ArchiveError, match="give a new name"):
            import_archive(archive, tmp_path / name)
    assert os.listdir(tmp_path / "elsewhere") == []
    assert not (tmp_path / "nowhere").exists()


def test_a_target_that_appears_meanwhile_is_not_overwritten(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_disk = importing._to_disk

    def slow(*arguments: object) -> None:
        to_disk(*arguments)  # type: ignore[arg-type]
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / "theirs.md").write_bytes(b"theirs")

    monkeypatch.setattr(importing, "_to_disk", slow)
    with pytest.raises(ArchiveError, match="copy"):
        import_archive(archive, tmp_path / "copy")
    assert content(tmp_path / "copy") == {"theirs.md": b"theirs"}
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_goes_wrong_nothing_stays_A2(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(importing, "_to_disk", fail)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises((MemoryfieldError, KeyboardInterrupt)):
        import_archive(archive, tmp_path / "new" / "copy")
    assert sorted(os.listdir(tmp_path)) == before


def test_what_killed_imports_left_is_removed_when_old(archive: Path, tmp_path: Path) -> None:
    old, young = (tmp_path / f".memoryfield-import-{digit * 16}" for digit in "12")
    foreign = tmp_path / ".memoryfield-import-mine"
    nested = tmp_path / f".memoryfield-import-{'3' * 16}"
    for path in (old, young, foreign, nested):
        path.mkdir()
        (path / "a.md").write_bytes(b"x")
    (nested / "sub").mkdir()
    (nested / "sub" / "precious").write_bytes(b"x")
    past = time.time() - 4000
    for path in (old, foreign, nested):
        os.utime(path, (past, past))
    import_archive(archive, tmp_path / "copy")
    assert not old.exists()
    assert young.exists() and foreign.exists()
    assert (nested / "sub" / "precious").exists()


def test_names_that_windows_cannot_hold() -> None:
    bad = ["what?.md", "a:b.txt", "con.md", "NUL", "com1.txt", "trailing.", "trailing ", 'quo"te', "a<b", "tab\t.md"]
    good = ["a.md", "conference.md", "computer.txt", "größe.txt", ".hidden", "nullable.md"]
    assert all(importing._FOREIGN_TO_WINDOWS.search(name) for name in bad)
    assert not any(importing._FOREIGN_TO_WINDOWS.search(name) for name in good)
    assert all((unfit_here(name) is None) == (os.name != "nt") for name in bad)


# Pages of another field


def test_importing_three_times_adds_nothing_the_second_and_third_time(field: PageDirectory, tmp_path: Path) -> None:
    target = PageDirectory(tmp_path / "target", create=True)
    reports = [import_pages(open_pages(field.path), target) for _ in range(3)]
    assert [len(report.added) for report in reports] == [4, 0, 0]
    assert [len(report.unchanged) for report in reports] == [0, 4, 4]
    assert repr(reports[1]).startswith(f"{target.path}: 0 pages added, 4 there already")
    assert content(target.path) == {name: raw for name, raw in content(field.path).items() if name.endswith(".md")}


def test_importing_pages_from_an_archive_in_place(archive: Path, tmp_path: Path) -> None:
    target = PageDirectory(tmp_path / "target", create=True)
    assert len(import_pages(open_pages(archive), target).added) == 4


def test_another_page_of_the_same_name_is_a_conflict_and_stays(field: PageDirectory, tmp_path: Path) -> None:
    target = PageDirectory(tmp_path / "target", create=True)
    target.create("page-1", title="My own")
    mine = target.read("page-1").raw
    report = import_pages(field, target)
    assert report.added == ("page-0", "page-2", "page-3")
    assert [tuple(item) for item in report.conflicts] == [("page-1.md", "another page has that name")]
    assert target.read("page-1").raw == mine


def test_a_page_that_was_renamed_here_does_not_come_again_P12(field: PageDirectory, tmp_path: Path) -> None:
    """P12: the uuid says that it is the same page."""
    target = PageDirectory(tmp_path / "target", create=True)
    import_pages(field, target)
    target.rename("page-1", "better-name")
    report = import_pages(field, target)
    assert report.added == ()
    assert [tuple(item) for item in report.conflicts] == [("page-1.md", "better-name.md has the same uuid")]


def test_two_incoming_pages_with_one_uuid_P12(tmp_path: Path) -> None:
    source = PageDirectory(tmp_path / "source", create=True)
    for name in ("a", "b"):
        (source.path / f"{name}.md").write_bytes(
            b"---\nuuid: 00000000-0000-4000-8000-000000000001\n---\n" + name.encode()
        )
    report = import_pages(source, PageDirectory(tmp_path / "target", create=True))
    assert report.added == ("a",)
    assert [tuple(item) for item in report.conflicts] == [("b.md", "a.md has the same uuid")]


def test_two_pages_with_equal_text_are_two_pages(tmp_path: Path) -> None:
    source = PageDirectory(tmp_path / "source", create=True)
    for name in ("a", "b"):
        (source.path / f"{name}.md").write_bytes(b"same\n")
    assert import_pages(source, PageDirectory(tmp_path / "target", create=True)).added == ("a", "b")


def test_names_that_are_not_created_are_conflicts_P1_P13(tmp_path: Path) -> None:
    source = PageDirectory(tmp_path / "source", create=True)
    for name in ("a--b.md", "con.md", "Bad Name.md", "fine.md", ".hidden.md"):
        (source.path / name).write_bytes(b"x\n")
    report = import_pages(source, PageDirectory(tmp_path / "target", create=True))
    assert report.added == ("fine",)
    assert [item.filename for item in report.conflicts] == ["a--b.md", "con.md"]
    assert [item.filename for item in report.skipped] == [".hidden.md", "Bad Name.md"]
    assert json.loads(json.dumps(report.to_dict()))["added"] == ["fine"]


def test_a_field_imported_into_itself_is_all_there(field: PageDirectory) -> None:
    assert import_pages(field, field).added == ()


def test_the_whole_import_is_one_locked_step(field: PageDirectory, tmp_path: Path) -> None:
    import threading

    target = PageDirectory(tmp_path / "target", create=True)
    errors: list[Exception] = []

    class Slow:
        path, read_only = field.path, False
        snapshot, names, other_files, read, read_bytes = (
            field.snapshot,
            field.names,
            field.other_files,
            field.read,
            field.read_bytes,
        )

        def pages(self):  # type: ignore[no-untyped-def]
            for page in field.pages():
                yield page
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()

    def other() -> None:
        try:
            with target.lock(timeout=0.01):
                pass
        except FieldLocked as error:
            errors.append(error)

    assert len(import_pages(Slow(), target).added) == 4
    assert len(errors) == 4


def test_system_errors_become_ours(tmp_path: Path) -> None:
    for number, name in ((errno.EACCES, "ReadOnlyField"), (errno.EROFS, "ReadOnlyField"), (errno.ENOSPC, "FieldError")):
        with pytest.raises(MemoryfieldError) as caught, write_errors(tmp_path):
            raise OSError(number, os.strerror(number))
        assert type(caught.value).__name__ == name
        assert str(tmp_path) in str(caught.value)
