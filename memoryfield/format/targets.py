"""Files that are written because somebody named them: what may be replaced there, and replacing it in one step.

A slip of the hand (``export notes.md``, a device, somebody's document) must not cost a file. Only a missing file is
made, and only a file of the same kind is replaced. Pages have their own way to the disk, ``changes.py``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from memoryfield.errors import ArchiveError, MemoryfieldError
from memoryfield.format.checksums import read_sidecar, sidecar_path
from memoryfield.format.files import READ_FLAGS, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, Folder, kind, write_errors
from memoryfield.format.names import is_page_filename

ARCHIVE_STARTS = (b"PK\x03\x04", b"PK\x05\x06")  # a zip, and one without members
HTML_STARTS = (b"<!doctype html", b"<html")
_LARGEST_SIDECAR = 65536


def check_target(
    path: str | os.PathLike[str],
    starts: tuple[bytes, ...] = ARCHIVE_STARTS,
    *,
    what: str = "archive",
    error: type[MemoryfieldError] = ArchiveError,
) -> Path:
    """Make sure that a file may be written: nothing is there yet, or a regular file of the same kind.

    Args:
        path: The file to write; ``~`` is expanded.
        starts: What a file that may be replaced begins with. A start that begins with ``<`` is compared without regard
            to case, and blanks before it are passed over.
        what: What such a file is called in errors.
        error: Class of the error.

    Returns:
        The absolute path.

    Raises:
        MemoryfieldError: Of the class *error*: a page's name, a link, a directory, a device, a file of another kind,
            or no directory to write in; says what stands there.
    """
    try:
        goal = Path(os.path.abspath(Path(path).expanduser()))
        if is_page_filename(goal.name.lower()):
            raise error(f"{goal} is the name of a page, and no {what} is written there: give another name")
        if not goal.parent.is_dir():
            raise error(f"{goal} cannot be made: there is no directory {goal.parent}")
        status = _status(goal)
        if status is None:
            return goal
        found = _seen(status.st_mode)
        if found is not None:
            raise error(f"{goal} is {found}, and no {what} is written there: give the name of a file")
        head = _head(goal, 256)
    except (OSError, ValueError, RuntimeError) as trouble:  # no permission, a NUL in the name, no home directory
        reason = getattr(trouble, "strerror", None) or trouble
        raise error(f"{os.fspath(path)!r} cannot be written: {reason}") from trouble
    if not _begins(head, starts):
        shown = f"a file that begins with {head[:20]!r}" if head else "an empty file"
        raise error(f"{goal} is no {what} but {shown}, which is not replaced: give another name or remove it")
    return goal


def check_sidecar(archive: Path) -> None:
    """Make sure that the side file of an archive may be written: nothing is there, or one line for this archive.

    Raises:
        ArchiveError: Something else is there.
    """
    place = sidecar_path(archive)
    try:
        status = _status(place)
        if status is None:
            return
        found = _seen(status.st_mode)
        if found is not None:
            raise ArchiveError(f"{place} is {found}, and no side file is written there: give another name")
        text = _head(place, _LARGEST_SIDECAR)
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{place} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    if len(text.splitlines()) != 1 or len(text) == _LARGEST_SIDECAR or not _promises(archive):
        raise ArchiveError(
            f"{place} is not the one line 'sha256  {archive.name}' and is not replaced: give another name or remove it"
        )


@contextlib.contextmanager
def replacing(goal: Path, before: Callable[[], object] | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the place of *goal* when all went well, and of nothing otherwise.

    Args:
        goal: The file.
        before: Called when all is on the disk, at the last moment before the replacement.
    """
    temporary = goal.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        with open(temporary, "x+b") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if before is not None:
            before()
        os.replace(temporary, goal)
    finally:
        temporary.unlink(missing_ok=True)
    with Folder(goal.parent) as folder:
        folder.sync()


def write_target(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file in one step, through to the disk, and return its absolute path; ``check_target`` comes before.

    Raises:
        ReadOnlyField: The directory cannot be written.
        FieldError: The disk is full, or the like.
    """
    goal = Path(os.path.abspath(Path(path).expanduser()))
    with write_errors(goal.parent), replacing(goal) as handle:
        handle.write(data)
    return goal


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _seen(mode: int) -> str | None:
    """Return what stands there, with its article; None for a regular file."""
    if stat.S_ISDIR(mode):
        return "a directory"
    words = kind(mode)
    return words if words is None or words.startswith("not ") else f"a {words}"


def _head(path: Path, size: int) -> bytes:
    """Return the beginning of a file, which no link may have replaced since it was looked at."""
    with open(os.open(path, READ_FLAGS), "rb") as handle:
        return handle.read(size)


def _begins(head: bytes, starts: tuple[bytes, ...]) -> bool:
    marks = tuple(start.lower() for start in starts if start.startswith(b"<"))
    return head.startswith(starts) or head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(marks)


def _promises(archive: Path) -> bool:
    try:
        return read_sidecar(archive) is not None
    except ArchiveError:
        return False
