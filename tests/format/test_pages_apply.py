"""Sets of changes: all conditions first, all or nothing, whole pages, no leftovers (FORMAT P14)."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from memoryfield.errors import (
    FieldLocked,
    InvalidName,
    NotEditable,
    PageChanged,
    PageError,
    PageExists,
    PageNotFound,
)
from memoryfield.format.changes import Change, apply_changes
from memoryfield.format.files import CAN_BE_RELATIVE, LEFTOVER_AGE, Folder, is_temporary
from memoryfield.format.pages import PageDirectory

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other rights and links")


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    field = PageDirectory(tmp_path / "field", create=True)
    for name in ("a", "b", "c"):
        (field.path / f"{name}.md").write_bytes(name.encode())
    return field


def content(field: PageDirectory) -> dict[str, bytes]:
    return {name: (field.path / name).read_bytes() for name in sorted(os.listdir(field.path))}


ABC = {"a.md": b"a", "b.md": b"b", "c.md": b"c"}


@pytest.mark.parametrize("relative", [True, False] if CAN_BE_RELATIVE else [False])
def test_changes_of_every_kind_together(field: PageDirectory, relative: bool) -> None:
    with Folder(field.path, relative=relative) as folder:
        sha256 = field.read("b").sha256
        apply_changes(
            folder,
            [
                Change("a", b"A"),
                Change("b.md", None, if_sha256=sha256),
                Change("d", b"D", absent=True),
                Change("e", b"E"),
            ],
        )
    assert content(field) == {"a.md": b"A", "c.md": b"c", "d.md": b"D", "e.md": b"E"}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Change("b", b"B", if_sha256="0" * 64), PageChanged),
        (Change("b", None, if_sha256="0" * 64), PageChanged),
        (Change("missing", b"x", if_sha256="0" * 64), PageChanged),
        (Change("b", b"B", absent=True), PageExists),
        (Change("missing", None), PageNotFound),
        (Change("Bad Name", b"x"), InvalidName),
        (Change("con", b"x"), InvalidName),
        (Change("a", b"twice"), PageError),
        (Change("huge", bytes(2**24 + 1)), NotEditable),
    ],
)
def test_one_condition_that_does_not_hold_stops_all_P14(
    field: PageDirectory, bad: Change, error: type[Exception]
) -> None:
    for order in ([Change("a", b"A"), bad, Change("c", None)], [bad, Change("a", b"A")]):
        with pytest.raises(error):
            field.apply(order)
        assert content(field) == ABC


def test_errors_name_the_page(field: PageDirectory) -> None:
    for change in (Change("b", b"B", if_sha256="0" * 64), Change("b", b"B", absent=True)):
        with pytest.raises(PageError, match=r"b\.md"):
            field.apply([change])


def test_nothing_to_do_is_fine(field: PageDirectory) -> None:
    before = (field.path / "a.md").stat()
    field.apply([])
    field.apply([Change("a", b"a")])
    after = (field.path / "a.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@needs_posix
def test_mode_is_kept_and_new_pages_follow_the_umask(field: PageDirectory) -> None:
    (field.path / "a.md").chmod(0o640)
    old = os.umask(0o027)
    try:
        field.apply([Change("a", b"A"), Change("new", b"N")])
    finally:
        os.umask(old)
    assert stat.S_IMODE((field.path / "a.md").stat().st_mode) == 0o640
    assert stat.S_IMODE((field.path / "new.md").stat().st_mode) == 0o640
    assert (field.path / "new.md").stat().st_nlink == 1


@needs_posix
def test_a_private_page_is_private_while_it_is_written(field: PageDirectory) -> None:
    (field.path / "a.md").chmod(0o600)
    old = os.umask(0)
    try:
        with Folder(field.path) as folder:
            seen = []
            write = os.write

            def watched(descriptor: int, data: memoryview) -> int:
                seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
                return write(descriptor, data)

            os.write = watched  # type: ignore[assignment]
            try:
                apply_changes(folder, [Change("a", b"A")])
            finally:
                os.write = write
    finally:
        os.umask(old)
    assert seen == [0o600]
    assert stat.S_IMODE((field.path / "a.md").stat().st_mode) == 0o600


@needs_posix
def test_owner_is_kept_where_that_is_allowed(field: PageDirectory) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(field.path / "a.md", 12345, 54321)
    field.apply([Change("a", b"A")])
    status = (field.path / "a.md").stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)


def test_time_can_be_kept(field: PageDirectory) -> None:
    field.apply([Change("a", b"A", modified_ns=1_700_000_000_123_456_789)])
    if os.utime in os.supports_fd:
        assert (field.path / "a.md").stat().st_mtime_ns == 1_700_000_000_123_456_789


def test_leftovers_of_killed_writes_are_hidden_and_removed_when_old_P14(field: PageDirectory) -> None:
    young, old, foreign = (field.path / name for name in (".memoryfield-1.tmp", ".memoryfield-2.tmp", ".other.tmp"))
    for path in (young, old, foreign):
        path.write_bytes(b"half a pa")
    past = time.time() - LEFTOVER_AGE - 60
    for path in (old, foreign):
        os.utime(path, (past, past))
    assert is_temporary(young.name) and not is_temporary(foreign.name)
    assert field.names() == ["a", "b", "c"]
    assert list(field.snapshot().entries) == ["a.md", "b.md", "c.md"]
    field.apply([Change("a", b"A")])
    assert young.exists() and foreign.exists() and not old.exists()


@needs_posix
def test_a_link_with_the_name_of_a_leftover_is_not_followed(field: PageDirectory, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"x")
    past = time.time() - LEFTOVER_AGE - 60
    os.utime(target, (past, past))
    (field.path / ".memoryfield-3.tmp").symlink_to(target)
    field.apply([Change("a", b"A")])
    assert target.read_bytes() == b"x"


class Interfering(Folder):
    """A directory in which another program acts at the worst moment: after the check, before the page is replaced."""

    deed: str = ""

    def stage(self, data: bytes, **keywords: Any) -> str:
        name = super().stage(data, **keywords)
        page, new = self.path / "a.md", self.path / "new.md"
        if self.deed == "edit":
            page.write_bytes(b"theirs")
        elif self.deed == "delete":
            page.unlink(missing_ok=True)
        elif self.deed == "link":
            page.unlink(missing_ok=True)
            page.symlink_to(self.path.parent / "outside.md")
        elif self.deed == "create":
            new.write_bytes(b"theirs")
        elif self.deed == "link-new" and not new.is_symlink():
            new.symlink_to(self.path.parent / "outside.md")
        return name


@needs_posix
@pytest.mark.parametrize("deed", ["edit", "delete", "link"])
def test_a_page_changed_between_check_and_write_P14(field: PageDirectory, tmp_path: Path, deed: str) -> None:
    """P14, P2: what another program did at that moment stays, and a link it put there is not written through."""
    outside = tmp_path / "outside.md"
    outside.write_bytes(b"secret")
    for conditions in ({}, {"if_sha256": field.read("a").sha256}):
        (field.path / "a.md").unlink()
        (field.path / "a.md").write_bytes(b"a")
        with Interfering(field.path) as folder:
            folder.deed = deed
            with pytest.raises(PageChanged, match=r"a\.md"):
                apply_changes(folder, [Change("b", b"B"), Change("a", b"A", **conditions)])  # type: ignore[arg-type]
        found = {name: raw for name, raw in content(field).items() if name != "a.md"}
        assert found == {"b.md": b"b", "c.md": b"c"}
        if deed == "edit":
            assert (field.path / "a.md").read_bytes() == b"theirs"
        elif deed == "link":
            assert (field.path / "a.md").is_symlink()
        else:
            (field.path / "a.md").write_bytes(b"a")
    assert outside.read_bytes() == b"secret"


@needs_posix
@pytest.mark.parametrize("deed", ["create", "link-new"])
def test_a_page_that_appears_between_check_and_write_stays_P14(field: PageDirectory, tmp_path: Path, deed: str) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(b"secret")
    with Interfering(field.path) as folder:
        folder.deed = deed
        with pytest.raises(PageExists, match=r"new\.md"):
            apply_changes(folder, [Change("first", b"F"), Change("new", b"N")])
    (field.path / "new.md").unlink()
    assert content(field) == ABC
    assert outside.read_bytes() == b"secret"


class TooLate(Folder):
    """A directory in which a new page appears after the very last look."""

    def put_new(self, temporary: str, filename: str) -> None:
        if filename == "new.md":
            (self.path / filename).write_bytes(b"theirs")
        super().put_new(temporary, filename)


def test_new_pages_are_taken_back_when_one_name_is_taken_at_the_last_moment_P14(field: PageDirectory) -> None:
    with TooLate(field.path) as folder, pytest.raises(PageExists, match=r"new\.md"):
        apply_changes(folder, [Change("first", b"F"), Change("a", b"A"), Change("new", b"N")])
    assert content(field) == {**ABC, "new.md": b"theirs"}


class NoHardLinks(Folder):
    """A directory on a file system without hard links."""

    def put_new(self, temporary: str, filename: str) -> None:
        link = os.link
        try:
            os.link = _no_link
            super().put_new(temporary, filename)
        finally:
            os.link = link


def _no_link(*arguments: object, **keywords: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@needs_posix
def test_new_pages_on_a_file_system_without_hard_links(field: PageDirectory) -> None:
    with NoHardLinks(field.path) as folder:
        apply_changes(folder, [Change("new", b"N")])
        temporary = folder.stage(b"other")
        with pytest.raises(FileExistsError):
            folder.put_new(temporary, "new.md")
        folder.discard(temporary)
    assert content(field) == {**ABC, "new.md": b"N"}


class Full(Folder):
    """A disk that is full at the second page."""

    def stage(self, data: bytes, **keywords: Any) -> str:
        if data == b"second":
            raise OSError(28, "No space left on device")
        return super().stage(data, **keywords)


def test_a_full_disk_leaves_everything_as_it_was(field: PageDirectory) -> None:
    with Full(field.path) as folder, pytest.raises(OSError, match="No space"):
        apply_changes(folder, [Change("a", b"first"), Change("b", b"second")])
    assert content(field) == ABC


def test_the_lock_is_taken_for_the_whole_set(field: PageDirectory) -> None:
    from threading import Thread

    seen: list[Exception] = []

    def other() -> None:
        try:
            with field.lock(timeout=0.05):
                pass
        except FieldLocked as error:
            seen.append(error)

    with field.lock():
        field.apply([Change("a", b"A")])  # the thread that holds it may go on
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert len(seen) == 1
    assert "another thread" in str(seen[0])
