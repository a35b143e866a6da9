"""Snapshots: what counts as a page, what is left out and why, and when stat data are trusted."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryfield.errors import FieldNotFound
from memoryfield.format.files import CAN_BE_RELATIVE, Folder
from memoryfield.format.findings import shown_name
from memoryfield.format.pages import PageDirectory
from memoryfield.format.snapshot import LARGEST_PAGE, Entry, Snapshot, by_name, take_snapshot

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows cannot make such files")
WAYS = [True, False] if CAN_BE_RELATIVE else [False]


@pytest.fixture(params=WAYS, ids=["relative" if way else "portable" for way in WAYS])
def relative(request: pytest.FixtureRequest) -> bool:
    """Both ways in which files are opened, so that the one for Windows is tested elsewhere too."""
    return bool(request.param)


def snapshot(
    path: Path, known: Snapshot | None = None, verify: bool = True, *, relative: bool = CAN_BE_RELATIVE
) -> Snapshot:
    with Folder(path, relative=relative) as folder:
        return take_snapshot(folder, known, verify)


def reasons(found: Snapshot) -> dict[str, str]:
    return {item.filename: item.reason for item in found.skipped}


def aged(found: Snapshot) -> Snapshot:
    """The same snapshot, as if it had been taken long after the last write."""
    return dataclasses.replace(found, taken_ns=found.taken_ns + 10**10)


def test_entry_holds_hash_and_stat_data(tmp_path: Path, relative: bool) -> None:
    (tmp_path / "a.md").write_bytes(b"text\n")
    status = os.stat(tmp_path / "a.md")
    entry = snapshot(tmp_path, relative=relative).entries["a.md"]
    assert entry == Entry(hashlib.sha256(b"text\n").digest(), 5, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def test_sorted_by_name_and_not_by_filename(tmp_path: Path) -> None:
    for name in ("a-b", "a", "b", "a0"):
        (tmp_path / f"{name}.md").touch()
    assert list(snapshot(tmp_path).entries) == ["a.md", "a-b.md", "a0.md", "b.md"]
    assert by_name(["a-b.md", "a.md"]) == ["a.md", "a-b.md"]


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
def test_every_byte_is_hashed_whatever_the_size(tmp_path: Path, size: int) -> None:
    raw = os.urandom(size)
    (tmp_path / "a.md").write_bytes(raw)
    entry = snapshot(tmp_path).entries["a.md"]
    assert (entry.sha256, entry.size) == (hashlib.sha256(raw).digest(), size)


def test_what_is_left_out_and_what_is_kept_P1_P2(tmp_path: Path, relative: bool) -> None:
    """P1, P2: the name decides what is a page; debris is reported, other files are neither."""
    for name in (
        "good.md",
        "a--b.md",
        "SHED.MD",
        "Bad.md",
        "bad_name.md",
        ".hidden.md",
        ".git-keep",
        "x.md~",
        ".DS_Store",
    ):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "page.sync-conflict-20260301-090000-ABCDEFG.md").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "model.sqlite3").touch()
    (tmp_path / "archive").mkdir()
    (tmp_path / "folder.md").mkdir()
    found = snapshot(tmp_path, relative=relative)
    assert list(found.entries) == ["a--b.md", "good.md"]
    assert reasons(found) == {
        "SHED.MD": "not a valid page name",
        "Bad.md": "not a valid page name",
        "bad_name.md": "not a valid page name",
        ".hidden.md": "hidden",
        ".git-keep": "hidden",
        "x.md~": "editor backup",
        ".DS_Store": "desktop debris",
        "page.sync-conflict-20260301-090000-ABCDEFG.md": "sync conflict copy",
        "archive": "sub-directory",
        "folder.md": "sub-directory",
    }
    assert [item.filename for item in found.skipped] == sorted(reasons(found))
    assert PageDirectory(tmp_path).other_files() == ["model.sqlite3", "notes.txt"]


@needs_posix
def test_links_are_reported_and_never_followed_P2(tmp_path: Path, relative: bool) -> None:
    field = tmp_path / "field"
    field.mkdir()
    (tmp_path / "outside.md").write_bytes(b"secret")
    (field / "inside.md").write_bytes(b"inside")
    (field / "to-outside.md").symlink_to(tmp_path / "outside.md")
    (field / "to-inside.md").symlink_to("inside.md")
    (field / "dangling.md").symlink_to("nowhere.md")
    (field / "notes.txt").symlink_to("inside.md")
    (field / "sub").symlink_to(tmp_path, target_is_directory=True)
    found = snapshot(field, relative=relative)
    assert list(found.entries) == ["inside.md"]
    names = ["dangling.md", "notes.txt", "sub", "to-inside.md", "to-outside.md"]
    assert reasons(found) == dict.fromkeys(names, "symbolic link")


@needs_posix
@pytest.mark.timeout(20)
def test_pipes_and_sockets_are_not_opened_P2(tmp_path: Path, relative: bool) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "good.md").write_bytes(b"x")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket must be short
        try:
            server.bind("socket.md")
        finally:
            os.chdir(here)
        found = snapshot(tmp_path, relative=relative)
    assert list(found.entries) == ["good.md"]
    assert reasons(found) == {"pipe.md": "named pipe", "socket.md": "socket"}


@needs_posix
def test_devices_are_left_out_P2(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "zero.md", 0o020666, os.makedev(1, 5))
    except OSError:
        pytest.skip("only root may make devices")
    assert reasons(snapshot(tmp_path)) == {"zero.md": "device"}


@needs_posix
def test_hard_links_are_ordinary_pages(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_bytes(b"shared")
    os.link(tmp_path / "elsewhere.txt", tmp_path / "linked.md")
    assert list(snapshot(tmp_path).entries) == ["linked.md"]


@needs_posix
def test_names_of_any_bytes_neither_crash_nor_get_lost(tmp_path: Path) -> None:
    try:
        for raw in (b"caf\xe9.md", b"\xff\xfe.txt", b"new\nline.md", b"\x1b[31mred.md"):
            (Path(os.fsdecode(bytes(tmp_path))) / os.fsdecode(raw)).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    found = snapshot(tmp_path)
    assert repr(found) == "<Snapshot: 0 pages, 3 skipped>"
    shown = sorted(shown_name(item.filename) for item in found.skipped)
    assert shown == ["\\x1b[31mred.md", "caf\\xe9.md", "new\\nline.md"]
    json.dumps(shown, ensure_ascii=False).encode("utf-8")
    assert PageDirectory(tmp_path).names() == []
    assert [shown_name(name) for name in PageDirectory(tmp_path).other_files()] == ["\\xff\\xfe.txt"]


UNREADABLE = """
import json, os, sys
from pathlib import Path
from memoryfield.format.pages import PageDirectory
if os.geteuid() == 0:  # root reads everything: be somebody else
    os.setegid(65534)
    os.seteuid(65534)
source = PageDirectory(Path(sys.argv[1]))
found = source.snapshot()
print(json.dumps([list(found.entries), [list(item) for item in found.skipped], [page.name for page in source.pages()]]))
"""


@needs_posix
def test_a_page_without_permission_is_skipped_and_the_rest_works() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        (Path(place) / "open.md").write_bytes(b"x")
        (Path(place) / "shut.md").write_bytes(b"x")
        (Path(place) / "shut.md").chmod(0)
        root = Path(__file__).resolve().parents[2]
        command = [sys.executable, "-c", UNREADABLE, place]
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    expected = [["open.md"], [["shut.md", "not readable (Permission denied)"]], ["open"]]
    assert json.loads(run.stdout) == expected


def test_a_page_that_is_too_large_is_skipped_with_its_reason(tmp_path: Path, relative: bool) -> None:
    with open(tmp_path / "huge.md", "wb") as handle:
        handle.truncate(LARGEST_PAGE + 1)
    with open(tmp_path / "large.md", "wb") as handle:
        handle.truncate(LARGEST_PAGE)
    found = snapshot(tmp_path, relative=relative)
    assert list(found.entries) == ["large.md"]
    assert reasons(found) == {"huge.md": "larger than 16 MiB"}


def test_out_of_descriptors_is_an_error_and_not_an_empty_field(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    (tmp_path / "a.md").write_bytes(b"x")
    with Folder(tmp_path) as folder:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
        try:
            folder_entries = folder.scan()
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    taken.append(os.open(tmp_path, os.O_RDONLY))
            assert len(folder_entries) == 1
            os.close(taken.pop())  # one is left for listing, none while a page is open beside it

            def listed() -> list[os.DirEntry[str]]:
                taken.append(os.open(tmp_path, os.O_RDONLY))
                return folder_entries

            folder.scan = listed  # type: ignore[method-assign]
            with pytest.raises(OSError, match="Too many open files"):
                take_snapshot(folder)
        finally:
            for descriptor in taken:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_pages_that_vanish_during_a_scan_are_no_error(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"page-{number}.md").write_bytes(b"x")
    with Folder(tmp_path) as folder:
        items = folder.scan()
        for number in range(0, 50, 2):
            (tmp_path / f"page-{number}.md").unlink()
        folder.scan = lambda: items  # type: ignore[method-assign]  # the listing of a moment ago
        found = take_snapshot(folder)
    assert len(found.entries) == 25
    assert found.skipped == ()


@needs_posix
def test_a_page_replaced_by_a_link_during_a_scan_is_not_read_P2(tmp_path: Path, relative: bool) -> None:
    (tmp_path / "outside.txt").write_bytes(b"secret")
    field = tmp_path / "field"
    field.mkdir()
    (field / "a.md").write_bytes(b"x")
    with Folder(field, relative=relative) as folder:
        items = folder.scan()
        assert items[0].is_file(follow_symlinks=False)
        (field / "a.md").unlink()
        (field / "a.md").symlink_to(tmp_path / "outside.txt")
        folder.scan = lambda: items  # type: ignore[method-assign]
        found = take_snapshot(folder)
    assert found.entries == {}
    assert reasons(found) == {"a.md": "symbolic link"}


def test_entries_that_did_not_change_are_the_same_objects(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"a")
    (tmp_path / "b.md").write_bytes(b"b")
    first = snapshot(tmp_path)
    (tmp_path / "b.md").write_bytes(b"B")
    second = snapshot(tmp_path, first)
    assert second.entries["a.md"] is first.entries["a.md"]
    assert second.entries["b.md"] != first.entries["b.md"]
    mapping = PageDirectory(tmp_path).snapshot(first.entries)
    assert mapping.entries["a.md"] is first.entries["a.md"]


@needs_posix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("verify", [True, False])
def test_known_pages_that_became_something_else_P2(tmp_path: Path, relative: bool, verify: bool) -> None:
    field = tmp_path / "field"
    field.mkdir()
    (tmp_path / "outside.md").write_bytes(b"secret")
    for name in ("link", "pipe", "folder", "gone", "stays"):
        (field / f"{name}.md").write_bytes(b"x")
    (field / "notes.txt").touch()
    first = aged(snapshot(field))
    for name in ("link", "pipe", "folder", "gone"):
        (field / f"{name}.md").unlink()
    (field / "link.md").symlink_to(tmp_path / "outside.md")
    os.mkfifo(field / "pipe.md")
    (field / "folder.md").mkdir()
    second = snapshot(field, first, verify, relative=relative)
    assert list(second.entries) == ["stays.md"]
    assert reasons(second) == {"link.md": "symbolic link", "pipe.md": "named pipe", "folder.md": "sub-directory"}


@pytest.mark.parametrize("stranger", ["notes.txt", "Bad.md", "a\nb.md", "x.md\n", ".hidden.md", "a-.md", ".md"])
def test_a_known_name_that_is_no_page_name_makes_no_page_P1(tmp_path: Path, stranger: str) -> None:
    """P1: what is known may come from an index file, and so from a stranger."""
    if os.name == "nt" and "\n" in stranger:
        pytest.skip("Windows cannot hold that name")
    for name in (stranger, "a.md"):
        (tmp_path / name).write_bytes(b"x")
    plain = snapshot(tmp_path)
    entry = plain.entries["a.md"]
    known = Snapshot({stranger: entry, "a.md": entry}, (), 2**62)
    for verify in (True, False):
        found = snapshot(tmp_path, known, verify)
        assert (list(found.entries), found.skipped) == (["a.md"], plain.skipped)


def test_many_new_files_beside_known_pages(tmp_path: Path) -> None:
    (tmp_path / "known.md").write_bytes(b"x")
    first = snapshot(tmp_path)
    for number in range(150):
        (tmp_path / f"new-{number}.md").write_bytes(b"x")
        (tmp_path / f"Bad {number}.md").write_bytes(b"x")
    second = snapshot(tmp_path, first)
    assert (len(second.entries), len(second.skipped)) == (151, 150)
    assert second.entries["known.md"] is first.entries["known.md"]


def test_verify_finds_an_edit_that_kept_size_and_all_times_X10(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    first = snapshot(tmp_path)
    entry = first.entries["a.md"]
    path.write_bytes(b"two")
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))
    assert path.stat().st_mtime_ns == entry.mtime_ns
    # No program can set the ctime: play a file system that did not move it.
    status = path.stat()
    disguised = Snapshot({"a.md": Entry(entry.sha256, 3, entry.mtime_ns, status.st_ctime_ns, status.st_ino)}, (), 2**62)
    assert snapshot(tmp_path, disguised, verify=False).entries["a.md"].sha256 == entry.sha256
    assert snapshot(tmp_path, disguised, verify=True).entries["a.md"].sha256 == hashlib.sha256(b"two").digest()


def test_stat_data_are_trusted_only_when_all_agree_X10(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    real = snapshot(tmp_path).entries["a.md"]
    wrong = b"\0" * 32
    late = time.time_ns() + 10**10

    def trusts(entry: Entry, taken_ns: int = late) -> bool:
        found = snapshot(tmp_path, Snapshot({"a.md": entry}, (), taken_ns), verify=False)
        return found.entries["a.md"].sha256 == wrong

    known = real._replace(sha256=wrong)
    assert trusts(known)
    assert not trusts(known._replace(size=4))
    assert not trusts(known._replace(mtime_ns=known.mtime_ns + 1))
    assert not trusts(known._replace(ctime_ns=known.ctime_ns + 1))
    assert not trusts(known._replace(inode=known.inode + 1))


def test_a_page_younger_than_the_racy_window_is_read_X10(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"one")
    found = snapshot(tmp_path)
    wrong = {"a.md": found.entries["a.md"]._replace(sha256=b"\0" * 32)}
    changed = max(found.entries["a.md"].mtime_ns, found.entries["a.md"].ctime_ns)
    young = Snapshot(wrong, (), changed + 3_000_000_000)
    old = Snapshot(wrong, (), changed + 3_000_000_001)
    assert snapshot(tmp_path, young, verify=False).entries == found.entries
    assert snapshot(tmp_path, old, verify=False).entries == wrong
    # A mapping does not say when it was taken: nothing in it is trusted.
    assert PageDirectory(tmp_path).snapshot(wrong, verify=False).entries == found.entries


def test_without_verify_new_changed_and_deleted_pages_are_seen_X10(tmp_path: Path) -> None:
    for name in ("stays", "changes", "goes"):
        (tmp_path / f"{name}.md").write_bytes(name.encode())
    first = aged(snapshot(tmp_path))
    (tmp_path / "goes.md").unlink()
    (tmp_path / "changes.md").write_bytes(b"changed!")
    (tmp_path / "comes.md").write_bytes(b"new")
    second = snapshot(tmp_path, first, verify=False)
    assert list(second.entries) == ["changes.md", "comes.md", "stays.md"]
    assert second.entries == snapshot(tmp_path).entries
    assert second.entries["stays.md"] is first.entries["stays.md"]


@pytest.mark.parametrize("name", ["what?", "num#ber", "per%20cent", "two words", "it's", 'a "quote"', "größe-漢字"])
def test_directories_with_awkward_names_X12(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and set(name) & set('?"'):
        pytest.skip("Windows cannot hold that name")
    field = PageDirectory(tmp_path / name, create=True)
    field.create("a", title="A")
    assert list(field.snapshot().entries) == ["a.md"]


def test_a_missing_directory_is_told(tmp_path: Path, relative: bool) -> None:
    with pytest.raises(FieldNotFound, match="nowhere"):
        Folder(tmp_path / "nowhere", relative=relative)
    (tmp_path / "file").touch()
    with pytest.raises(FieldNotFound, match="Not a directory"):
        Folder(tmp_path / "file", relative=relative)


def _case_only_rename(folder: Path) -> None:
    (folder / "b.md").rename(folder / "B.MD")


MEANWHILE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "a page edited": lambda folder: (folder / "b.md").write_text("other\n"),
    "a page edited to the same size and times": lambda folder: _edit_behind_the_times(folder / "b.md"),
    "a page touched": lambda folder: os.utime(folder / "b.md", ns=(1, 1)),
    "a page replaced by an equal file": lambda folder: _replace_by_equal(folder / "b.md"),
    "a page deleted": lambda folder: (folder / "b.md").unlink(),
    "all pages deleted": lambda folder: [path.unlink() for path in folder.glob("*.md")],
    "a page added": lambda folder: (folder / "b-new.md").write_text("new\n"),
    "a page in a directory's place": lambda folder: ((folder / "b.md").unlink(), (folder / "b.md").mkdir()),
    "a page in a link's place": lambda folder: ((folder / "b.md").unlink(), (folder / "b.md").symlink_to("c.md")),
    "a bad name added": lambda folder: (folder / "Bad Name.md").write_text("bad\n"),
    "a hidden file added": lambda folder: (folder / ".hidden.md").write_text("hidden\n"),
    "a hidden directory added": lambda folder: (folder / ".git").mkdir(),
    "a directory added": lambda folder: (folder / "archive").mkdir(),
    "an index added": lambda folder: (folder / "model.sqlite3").write_bytes(b"x"),
    "a case-only rename": _case_only_rename,
    "a page grown beyond one read": lambda folder: (folder / "b.md").write_bytes(b"x" * 200_000),
    "a page emptied": lambda folder: (folder / "b.md").write_bytes(b""),
}


def _edit_behind_the_times(path: Path) -> None:
    status = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace_by_equal(path: Path) -> None:
    spare = path.with_suffix(".spare")
    spare.write_bytes(path.read_bytes())
    spare.replace(path)


@pytest.mark.parametrize("what", MEANWHILE)
def test_a_snapshot_that_knows_an_earlier_one_is_as_one_that_knows_none_X10(
    tmp_path: Path, what: str, relative: bool
) -> None:
    if os.name == "nt" and "link" in what:
        pytest.skip("links need a privilege on Windows")
    for name in ("a", "b", "c", "b-x"):
        (tmp_path / f"{name}.md").write_text(f"page {name}\n")
    (tmp_path / "long.md").write_bytes(b"long " * 40_000)
    known = snapshot(tmp_path, relative=relative)
    MEANWHILE[what](tmp_path)
    alone = snapshot(tmp_path, relative=relative)
    for verify in (True, False):
        later = snapshot(tmp_path, known, verify, relative=relative)
        assert (list(later.entries.items()), later.skipped) == (list(alone.entries.items()), alone.skipped)


def test_nothing_is_made_anew_for_a_field_that_did_not_change_X10(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"page {name}\n")
    field = PageDirectory(tmp_path)
    known = field.snapshot()
    assert field.snapshot(known).entries is known.entries
    (tmp_path / "b.md").write_text("other\n")
    changed = field.snapshot(known)
    assert changed.entries["a.md"] is known.entries["a.md"] and changed.entries["b.md"] != known.entries["b.md"]
    assert known.entries["b.md"].size == len("page b\n")
