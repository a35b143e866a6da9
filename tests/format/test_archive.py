"""Making archives: what is in them, byte for byte the same, replaced as a whole (FORMAT A1)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import time
import unicodedata
import zipfile
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError, ChecksumMismatch, InvalidName, PageNotFound
from memoryfield.format.archive import (
    ArchiveReport,
    export_archive,
    import_archive,
    read_sidecar,
    sidecar_path,
    verify_archive,
)
from memoryfield.format.pages import PageDirectory, open_pages

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows cannot make such files")


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    for name in ("b", "a", "a-b", "index"):
        (field.path / f"{name}.md").write_bytes(f"text of {name}\n".encode() * 20)
    (field.path / "notes.txt").write_bytes(b"kept\n")
    return field


def index_file(path: Path) -> None:
    """Make an index of the pages beside it."""
    rows = [
        (page.name, "null", "2020-01-01T00:00:00+00:00", hashlib.sha256(page.read_bytes()).digest(), os.urandom(3000))
        for page in sorted(path.parent.glob("*.md"))
    ]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE pages (filename TEXT PRIMARY KEY, frontmatter JSON NOT NULL, last_modified DATETIME NOT NULL,"
            " sha256_hash BLOB NOT NULL, embedding BLOB NOT NULL)"
        )
        connection.executemany("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", rows)


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {member.filename: member for member in archive.infolist()}


def test_members_sorted_plain_and_dated_1980_A1(field: PageDirectory, tmp_path: Path) -> None:
    report = export_archive(field, tmp_path / "x.memoryfield.zip")
    found = members(report.path)
    assert tuple(found) == report.members == ("a-b.md", "a.md", "b.md", "index.md", "notes.txt")
    for member in found.values():
        assert member.external_attr >> 16 == stat.S_IFREG | 0o644
        assert member.date_time == (1980, 1, 1, 0, 0, 0)
        assert member.compress_type == zipfile.ZIP_DEFLATED
        assert (member.extra, member.comment) == (b"", b"")
    with zipfile.ZipFile(report.path) as archive:
        assert archive.read("a.md") == field.read("a").raw
    assert report.bytes == report.path.stat().st_size
    assert report.sha256 == hashlib.sha256(report.path.read_bytes()).hexdigest()


def test_equal_content_gives_equal_bytes_A1(field: PageDirectory, tmp_path: Path) -> None:
    index_file(field.path / "model.sqlite3")
    first = export_archive(field, tmp_path / "x.zip", indexes=["model.sqlite3"])
    copy = tmp_path / "elsewhere"
    shutil.copytree(field.path, copy)
    for number, path in enumerate(sorted(copy.iterdir())):
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
        path.chmod(0o600)
    time.sleep(0.01)
    second = export_archive(PageDirectory(copy), tmp_path / "y.zip", indexes=["model.sqlite3"])
    assert first.path.read_bytes() == second.path.read_bytes()
    again = import_archive(first.path, tmp_path / "again")
    third = export_archive(PageDirectory(again.path), tmp_path / "z.zip", indexes=["model.sqlite3"])
    assert third.sha256 == first.sha256


def test_what_stays_out_A1(field: PageDirectory, tmp_path: Path) -> None:
    for name in (".hidden.md", ".DS_Store", "a.md~", "#a.md#", "a.sync-conflict-1.md", "old.memoryfield.zip"):
        (field.path / name).write_bytes(b"x")
    (field.path / "old.memoryfield.zip.sha256").write_bytes(b"x")
    (field.path / "sub").mkdir()
    (field.path / "sub" / "c.md").write_bytes(b"x")
    index_file(field.path / "model.sqlite3")
    for name in ("model.sqlite3-journal", "model.sqlite3-wal", "model.sqlite3-shm"):
        (field.path / name).write_bytes(b"")
    report = export_archive(field, tmp_path / "x.zip")
    assert report.members == ("a-b.md", "a.md", "b.md", "index.md", "notes.txt")
    assert {item.filename: item.reason for item in report.skipped} == {
        ".hidden.md": "hidden",
        ".DS_Store": "desktop debris",
        "a.md~": "editor backup",
        "#a.md#": "editor backup",
        "a.sync-conflict-1.md": "sync conflict copy",
        "sub": "sub-directory",
        "old.memoryfield.zip": "an archive",
        "old.memoryfield.zip.sha256": "an archive",
        "model.sqlite3": "index not asked for",
    }


@needs_posix
def test_links_pipes_and_unreadable_files_stay_out_A1(field: PageDirectory, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    (field.path / "link.md").symlink_to(tmp_path / "secret.txt")
    (field.path / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(field.path / "pipe.md")
    report = export_archive(field, tmp_path / "x.zip")
    assert report.members == ("a-b.md", "a.md", "b.md", "index.md", "notes.txt")
    assert b"secret" not in report.path.read_bytes()
    with pytest.raises(PageNotFound, match=r"link\.md"):
        export_archive(field, tmp_path / "y.zip", pages=["link"])


def test_chosen_pages_and_files(field: PageDirectory, tmp_path: Path) -> None:
    (field.path / "more.txt").write_bytes(b"x")
    report = export_archive(field, tmp_path / "x.zip", pages=["b.md", "a"], other_files=["more.txt"])
    assert report.members == ("a.md", "b.md", "more.txt")
    assert export_archive(field, tmp_path / "x.zip", pages=[], other_files=False).members == ()
    for keywords in ({"pages": ["missing"]}, {"other_files": ["missing.txt"]}, {"indexes": ["missing.sqlite3"]}):
        with pytest.raises(PageNotFound, match="missing"):
            export_archive(field, tmp_path / "y.zip", **keywords)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        export_archive(field, tmp_path / "y.zip", pages=["../a"])
    assert not (tmp_path / "y.zip").exists()


def test_an_empty_field(tmp_path: Path) -> None:
    report = export_archive(PageDirectory(tmp_path / "f", create=True), tmp_path / "x.zip")
    assert report.members == ()
    assert open_pages(report.path).names() == []
    assert import_archive(report.path, tmp_path / "again").added == ()


# Indexes


def test_indexes_are_stored_copies_A1(field: PageDirectory, tmp_path: Path) -> None:
    for number in range(196):
        (field.path / f"page-{number}.md").write_bytes(b"x")
    index_file(field.path / "model.sqlite3")
    before = (field.path / "model.sqlite3").read_bytes()
    report = export_archive(field, tmp_path / "x.zip", indexes=["model.sqlite3"])
    member = members(report.path)["model.sqlite3"]
    assert member.compress_type == zipfile.ZIP_STORED
    assert (field.path / "model.sqlite3").read_bytes() == before
    assert not [name for name in os.listdir(field.path) if name.startswith("model") and "-" in name]
    (tmp_path / "copy.sqlite3").write_bytes(open_pages(report.path).read_bytes("model.sqlite3"))
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM pages").fetchone() == (200,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_index_in_the_middle_of_a_write_is_copied_as_it_was_before_A1(field: PageDirectory, tmp_path: Path) -> None:
    index_file(field.path / "model.sqlite3")
    with contextlib.closing(sqlite3.connect(field.path / "model.sqlite3", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO pages VALUES ('new.md', 'null', '', x'00', x'00')")
        report = export_archive(field, tmp_path / "x.zip", indexes=["model.sqlite3"])
        writer.execute("COMMIT")
    (tmp_path / "copy.sqlite3").write_bytes(open_pages(report.path).read_bytes("model.sqlite3"))
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM pages").fetchone() == (4,)


def test_an_index_in_wal_mode_arrives_without_it_and_leaves_no_side_files_X8(
    field: PageDirectory, tmp_path: Path
) -> None:
    path = field.path / "model.sqlite3"
    index_file(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    report = export_archive(field, tmp_path / "x.zip", indexes=["model.sqlite3"])
    assert sorted(name for name in os.listdir(field.path) if "sqlite" in name) == ["model.sqlite3"]
    raw = open_pages(report.path).read_bytes("model.sqlite3")
    assert raw[18:20] == b"\x01\x01"


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + bytes(84)])
def test_a_file_that_is_no_index_cannot_be_exported_as_one(
    field: PageDirectory, tmp_path: Path, content: bytes
) -> None:
    (field.path / "bad.sqlite3").write_bytes(content)
    with pytest.raises(ArchiveError, match=r"bad\.sqlite3"):
        export_archive(field, tmp_path / "x.zip", indexes=["bad.sqlite3"])
    assert os.listdir(tmp_path) == ["field"]
    assert (field.path / "bad.sqlite3").read_bytes() == content


@needs_posix
def test_a_link_is_not_exported_as_an_index(field: PageDirectory, tmp_path: Path) -> None:
    index_file(tmp_path / "elsewhere.sqlite3")
    (field.path / "model.sqlite3").symlink_to(tmp_path / "elsewhere.sqlite3")
    with pytest.raises(PageNotFound, match=r"model\.sqlite3"):
        export_archive(field, tmp_path / "x.zip", indexes=["model.sqlite3"])


# Names


def test_twins_are_refused_with_both_names_A1(field: PageDirectory, tmp_path: Path) -> None:
    nfc = unicodedata.normalize("NFC", "Café.md")
    pairs = [("Config.md", "config.md"), (nfc, unicodedata.normalize("NFD", nfc))]
    for one, other in pairs:
        for name in (one, other):
            (field.path / name).write_bytes(b"x")
        if len({one, other} & set(os.listdir(field.path))) < 2:
            pytest.skip("this file system holds no twins")
        with pytest.raises(ArchiveError, match="cannot keep apart") as caught:
            export_archive(field, tmp_path / "x.zip")
        assert repr(one) in str(caught.value) and repr(other) in str(caught.value)
        assert not (tmp_path / "x.zip").exists()
        (field.path / one).unlink()
        export_archive(field, tmp_path / "x.zip")
        (tmp_path / "x.zip").unlink()


def test_badly_named_pages_travel_as_other_files(field: PageDirectory, tmp_path: Path) -> None:
    for name in ("Meeting Notes.md", "café.md", "SHED.MD"):
        (field.path / name).write_bytes(name.encode())
    report = export_archive(field, tmp_path / "x.zip")
    assert {"Meeting Notes.md", "café.md", "SHED.MD"} <= set(report.members)
    assert members(report.path)["café.md"].flag_bits & 0x800
    source = open_pages(report.path)
    assert source.names() == field.names()
    assert {item.filename for item in source.snapshot().skipped} == {"Meeting Notes.md", "café.md", "SHED.MD"}
    again = PageDirectory(import_archive(report.path, tmp_path / "again").path)
    assert {n: (again.path / n).read_bytes() for n in os.listdir(again.path)} == {
        n: (field.path / n).read_bytes() for n in os.listdir(field.path)
    }
    assert export_archive(field, tmp_path / "y.zip", other_files=False).members == tuple(
        f"{n}.md" for n in sorted(["a-b", "a", "b", "index"], key=lambda n: n + ".md")
    )


@needs_posix
def test_names_that_an_archive_cannot_hold_stay_out_A1(field: PageDirectory, tmp_path: Path) -> None:
    try:
        (Path(os.fsdecode(os.path.join(os.fsencode(field.path), b"caf\xe9.txt")))).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (field.path / "back\\slash.txt").write_bytes(b"x")
    (field.path / "C: drive.txt").write_bytes(b"x")
    report = export_archive(field, tmp_path / "x.zip")
    assert report.members == ("a-b.md", "a.md", "b.md", "index.md", "notes.txt")
    assert {item.reason for item in report.skipped} == {
        "its name is not UTF-8",
        "it holds a backslash",
        "it begins with a drive letter",
    }
    verify_archive(report.path)
    json.dumps(report.to_dict(), ensure_ascii=False).encode()
    assert "caf\\xe9.txt" in repr(report) and "caf\\xe9.txt" in report._repr_html_()


@pytest.mark.parametrize("name", ["what?", "num#ber", "per%20cent", "two words", "größe"])
def test_fields_and_targets_with_awkward_names_X12(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and "?" in name:
        pytest.skip("Windows cannot hold that name")
    field = PageDirectory(tmp_path / name, create=True)
    field.create("a", title="A")
    index_file(field.path / "model.sqlite3")
    report = export_archive(field, tmp_path / f"{name}.memoryfield.zip", indexes=["model.sqlite3"])
    assert report.members == ("a.md", "model.sqlite3")
    assert read_sidecar(report.path) == report.sha256
    assert import_archive(report.path, tmp_path / f"{name} again").added == ("a",)


# The target and its side file


def test_the_side_file_is_what_sha256sum_writes_A1(field: PageDirectory, tmp_path: Path) -> None:
    report = export_archive(field, tmp_path / "x.memoryfield.zip")
    side = tmp_path / "x.memoryfield.zip.sha256"
    assert sidecar_path(report.path) == side
    assert side.read_bytes() == f"{report.sha256}  x.memoryfield.zip\n".encode()
    assert read_sidecar(report.path) == report.sha256
    if shutil.which("sha256sum"):
        command = ["sha256sum", "-c", side.name]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=30).returncode == 0


@needs_posix
@pytest.mark.parametrize("name", ["back\\slash.zip", "new\nline.zip"])
def test_the_side_file_of_an_awkward_name_A1(field: PageDirectory, tmp_path: Path, name: str) -> None:
    report = export_archive(field, tmp_path / name)
    assert read_sidecar(report.path) == report.sha256
    if shutil.which("sha256sum"):
        command = ["sha256sum", "-c", sidecar_path(report.path).name]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=30).returncode == 0


def test_side_files_in_the_forms_that_people_have(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    assert read_sidecar(path) is None
    digest = "ab" * 32
    for text in (f"{digest} *x.zip\n", f"{digest.upper()}  x.zip", f"{'0' * 64}  other.zip\r\n{digest}  x.zip\r\n"):
        sidecar_path(path).write_text(text, newline="")
        assert read_sidecar(path) == digest
    for text in ("", digest, f"{digest}  other.zip\n", f"{digest[:-1]}  x.zip\n"):
        sidecar_path(path).write_text(text)
        with pytest.raises(ArchiveError, match=r"x\.zip\.sha256"):
            read_sidecar(path)


def test_an_old_side_file_never_stands_beside_a_new_archive(field: PageDirectory, tmp_path: Path) -> None:
    first = export_archive(field, tmp_path / "x.zip")
    field.edit("a", append="more")
    second = export_archive(field, tmp_path / "x.zip", sidecar=False)
    assert second.sha256 != first.sha256
    assert read_sidecar(second.path) is None
    assert sorted(os.listdir(tmp_path)) == ["field", "x.zip"]


def test_an_export_that_fails_leaves_the_old_archive(field: PageDirectory, tmp_path: Path) -> None:
    report = export_archive(field, tmp_path / "x.zip")
    (field.path / "bad.sqlite3").write_bytes(b"no database" * 100)
    with pytest.raises(ArchiveError):
        export_archive(field, tmp_path / "x.zip", indexes=["bad.sqlite3"])
    assert verify_archive(report.path).sha256 == report.sha256
    assert sorted(os.listdir(tmp_path)) == ["field", "x.zip", "x.zip.sha256"]


def test_targets_that_make_no_sense(field: PageDirectory, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is a directory"):
        export_archive(field, tmp_path)
    with pytest.raises(ArchiveError, match="no directory"):
        export_archive(field, tmp_path / "missing" / "x.zip")


def test_a_target_in_the_field_itself(field: PageDirectory) -> None:
    first = export_archive(field, field.path / "self.zip")
    second = export_archive(field, field.path / "self.zip")
    assert first.sha256 == second.sha256
    assert "self.zip" not in second.members and "self.zip.sha256" not in second.members


# Checking


def test_verify_checks_digest_and_members(field: PageDirectory, tmp_path: Path) -> None:
    report = export_archive(field, tmp_path / "x.zip")
    checked = verify_archive(report.path)
    assert (checked.members, checked.sha256, checked.bytes) == (report.members, report.sha256, report.bytes)
    assert verify_archive(report.path, sha256=report.sha256.upper()).sha256 == report.sha256
    with pytest.raises(ChecksumMismatch, match="the given sha256"):
        verify_archive(report.path, sha256="0" * 64)
    raw = bytearray(report.path.read_bytes())
    raw[40] ^= 1
    report.path.write_bytes(raw)
    with pytest.raises(ChecksumMismatch, match=r"x\.zip\.sha256"):
        verify_archive(report.path)
    sidecar_path(report.path).unlink()
    with pytest.raises(ArchiveError):
        verify_archive(report.path)
    with pytest.raises(ArchiveError, match="cannot be opened"):
        verify_archive(tmp_path / "missing.zip")


def test_reports_show_themselves(field: PageDirectory, tmp_path: Path) -> None:
    (field.path / "<b>.sync-conflict-1.md").write_bytes(b"x")
    report = export_archive(field, tmp_path / "x.zip")
    assert repr(report).startswith("x.zip: 4 pages, 1 other file")
    assert report.sha256 in repr(report)
    assert "&lt;b&gt;" in report._repr_html_() and "<b>.sync" not in report._repr_html_()
    assert isinstance(report, ArchiveReport)
    assert json.loads(json.dumps(report.to_dict()))["members"] == list(report.members)


def test_other_programs_read_the_archive(field: PageDirectory, tmp_path: Path) -> None:
    report = export_archive(field, tmp_path / "x.zip")
    if not shutil.which("unzip"):
        pytest.skip("no unzip here")
    assert subprocess.run(["unzip", "-tq", str(report.path)], capture_output=True, timeout=30).returncode == 0
