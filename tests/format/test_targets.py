"""Files that are written because somebody named them: only missing files and files of the same kind."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError, QueryError, ReadOnlyField
from memoryfield.format.archive import export_archive, read_sidecar, sidecar_path, verify_archive
from memoryfield.format.pages import PageDirectory
from memoryfield.format.targets import HTML_STARTS, check_target, write_target

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows cannot make such files")


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    field.create("a", title="A")
    field.create("b", title="B")
    return field


def everything(path: Path) -> dict[str, bytes | None]:
    return {
        str(item.relative_to(path)): item.read_bytes() if item.is_file() else None for item in sorted(path.rglob("*"))
    }


@pytest.mark.parametrize("content", [b"precious", b"", b"PKI for beginners", b"---\ntitle: x\n---\n", b"%PDF-1.7"])
def test_a_file_that_is_no_archive_is_never_replaced_A1(field: PageDirectory, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "thesis.txt").write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=r"thesis\.txt is no archive but"):
        export_archive(field, tmp_path / "thesis.txt")
    assert everything(tmp_path) == before


def test_a_page_is_never_a_target_A1(field: PageDirectory, tmp_path: Path) -> None:
    before = everything(tmp_path)
    for target in (field.path / "a.md", field.path / "new.md", field.path / "A.MD", tmp_path / "other.md"):
        with pytest.raises(ArchiveError, match="name of a page"):
            export_archive(field, target)
        with pytest.raises(QueryError, match="name of a page"):
            check_target(target, HTML_STARTS, what="HTML page", error=QueryError)
    assert everything(tmp_path) == before


@needs_posix
def test_links_directories_and_special_files_are_never_targets_A1(field: PageDirectory, tmp_path: Path) -> None:
    good = export_archive(field, tmp_path / "good.zip").path
    (tmp_path / "link.zip").symlink_to(good)
    (tmp_path / "dangling.zip").symlink_to("nothing")
    (tmp_path / "dir.zip").mkdir()
    os.mkfifo(tmp_path / "pipe.zip")
    before = everything(tmp_path)
    for name, words in {
        "link.zip": "a symbolic link",
        "dangling.zip": "a symbolic link",
        "dir.zip": "a directory",
        "pipe.zip": "a named pipe",
    }.items():
        with pytest.raises(ArchiveError, match=f"{name} is {words}"):
            export_archive(field, tmp_path / name)
    with pytest.raises(ArchiveError, match="is a device"):
        check_target("/dev/null")
    assert everything(tmp_path) == before


@needs_posix
def test_a_socket_is_never_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(ArchiveError, match="is a socket"):
            check_target(tmp_path / "s")


@pytest.mark.parametrize("name", ["nul\0byte.zip", "x" * 300])
def test_names_that_no_system_takes(field: PageDirectory, tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError):
        export_archive(field, tmp_path / name)


def test_an_archive_is_replaced_also_an_empty_one_A1(field: PageDirectory, tmp_path: Path) -> None:
    goal = tmp_path / "x.zip"
    export_archive(PageDirectory(tmp_path / "empty", create=True), goal)
    assert export_archive(field, goal).members == ("a.md", "b.md")
    assert export_archive(field, goal, pages=["a"]).members == ("a.md",)
    assert verify_archive(goal).members == ("a.md",)


@pytest.mark.parametrize("sidecar", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"precious\n",
        b"0" * 64 + b"  other.zip\n",
        b"0" * 63 + b"  x.zip\n",
        b"0" * 64 + b"  other.zip\n" + b"0" * 64 + b"  x.zip\n",
    ],
)
def test_a_side_file_of_something_else_is_never_touched_A1(
    field: PageDirectory, tmp_path: Path, content: bytes, sidecar: bool
) -> None:
    sidecar_path(tmp_path / "x.zip").write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=r"x\.zip\.sha256 is not the one line"):
        export_archive(field, tmp_path / "x.zip", sidecar=sidecar)
    assert everything(tmp_path) == before


@needs_posix
def test_a_side_file_that_is_a_link_or_a_directory_is_never_touched_A1(field: PageDirectory, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"0" * 64 + b"  x.zip\n")
    sidecar_path(tmp_path / "x.zip").symlink_to("precious")
    sidecar_path(tmp_path / "y.zip").mkdir()
    before = everything(tmp_path)
    for name, words in {"x.zip": "a symbolic link", "y.zip": "a directory"}.items():
        with pytest.raises(ArchiveError, match=f"is {words}"):
            export_archive(field, tmp_path / name)
    assert everything(tmp_path) == before


@needs_posix
@pytest.mark.parametrize("name", ["x.zip", "back\\slash.zip", "new\nline.zip"])
def test_an_old_side_file_in_any_form_is_replaced_A1(field: PageDirectory, tmp_path: Path, name: str) -> None:
    first = export_archive(field, tmp_path / name)
    side = sidecar_path(first.path)
    side.write_bytes(side.read_bytes().replace(b"  ", b" *").rstrip(b"\n").replace(first.sha256.encode(), b"AB" * 32))
    second = export_archive(field, tmp_path / name)
    assert read_sidecar(second.path) == second.sha256 == first.sha256


def test_a_target_that_appears_during_the_export_is_not_replaced(field: PageDirectory, tmp_path: Path) -> None:
    from memoryfield.format.targets import replacing

    goal = tmp_path / "x.zip"
    with pytest.raises(ArchiveError), replacing(goal, lambda: check_target(goal)) as handle:
        handle.write(b"PK\x05\x06")
        goal.write_bytes(b"precious")
    assert goal.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["field", "x.zip"]


def test_html_targets(tmp_path: Path) -> None:
    goal = tmp_path / "map.html"
    assert check_target(goal, HTML_STARTS, what="HTML page", error=QueryError) == goal
    for old in (b"<!DOCTYPE html><p>", b"<html lang=en>", b"\xef\xbb\xbf\n <HTML>"):
        goal.write_bytes(old)
        check_target(goal, HTML_STARTS, what="HTML page", error=QueryError)
    for old in (b"PK\x03\x04", b"", b"# Notes\n", b"<svg>"):
        goal.write_bytes(old)
        with pytest.raises(QueryError, match="is no HTML page but"):
            check_target(goal, HTML_STARTS, what="HTML page", error=QueryError)
    with pytest.raises(QueryError, match="no directory"):
        check_target(tmp_path / "missing" / "map.html", HTML_STARTS, what="HTML page", error=QueryError)


def test_a_target_is_written_in_one_step(tmp_path: Path) -> None:
    goal = tmp_path / "map.html"
    for data in (b"<html>1", b"<html>2"):
        assert write_target(goal, data) == goal
        assert goal.read_bytes() == data
    assert os.listdir(tmp_path) == ["map.html"]
    with pytest.raises(TypeError):
        write_target(goal, None)  # type: ignore[arg-type]
    assert goal.read_bytes() == b"<html>2"
    assert os.listdir(tmp_path) == ["map.html"]


@needs_posix
def test_a_target_in_a_directory_without_permission(tmp_path: Path) -> None:
    place = tmp_path / "locked"
    place.mkdir()
    place.chmod(0o500)
    try:
        if os.access(place, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(ReadOnlyField):
            write_target(place / "map.html", b"<html>")
    finally:
        place.chmod(0o700)
