"""A snapshot: every page of a directory with its hash and stat data, and every other thing with why it is left out.

Reading and hashing every byte costs little more than asking for the stat data, so that is the rule; trusting stat data
is for slow disks (FORMAT X10).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memoryfield.display import counted
from memoryfield.format.dates import clamped_ns
from memoryfield.format.files import READ_BLOCK, READ_FLAGS, Folder, Unreadable, kind, read_all, refusal
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, skip_reason

RACY_WINDOW_NS = 3_000_000_000
_FAR_NS = 2**63 - 1  # a file system may hold times far beyond; indexes cannot
_FEW = 100  # names that are looked at one by one
# `is_page_filename` for many names at once, which takes a third of the time; a name cannot hold a slash.
_ONLY_PAGES = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.md(?:/|\Z))+")
LARGEST_PAGE = 16 * 2**20  # bytes; what is larger is no page that anybody reads


class Entry(NamedTuple):
    """One page at one moment.

    Attributes:
        sha256: 32 bytes over the file's bytes.
        size: Bytes.
        mtime_ns: Modification time in nanoseconds since 1970, at most what 64 bits hold.
        ctime_ns: Time of the last change of content or attributes; on Windows that of creation.
        inode: Number of the file.
    """

    sha256: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Skipped(NamedTuple):
    """Something in a field that is no page, with the reason in a few words.

    Attributes:
        filename: Its name as the system gives it; bytes that are no text come as lone surrogates.
        reason: Why it is left out.
    """

    filename: str
    reason: str


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The pages of a field at one moment.

    Attributes:
        entries: By filename, sorted by page name.
        skipped: What was left out, sorted by filename.
        taken_ns: When the snapshot was begun, in nanoseconds since 1970.
    """

    entries: dict[str, Entry]
    skipped: tuple[Skipped, ...] = ()
    taken_ns: int = 0

    def __repr__(self) -> str:
        return f"<Snapshot: {counted(len(self.entries), 'page')}, {len(self.skipped)} skipped>"


def by_name(filenames: Iterable[str]) -> list[str]:
    """Return filenames of pages sorted by page name (``a.md`` before ``a-b.md``, which plain sorting would turn)."""
    return [name + PAGE_SUFFIX for name in sorted([filename[:-3] for filename in filenames])]


def survey(folder: Folder, known: Collection[str] = ()) -> tuple[list[str], list[Skipped], list[str]]:
    """Look at the names in a directory, without opening anything.

    Args:
        folder: The directory.
        known: Filenames of pages as they were before. What has such a name now is taken for a page unseen, which saves
            a third of the time: whoever opens it looks.

    Returns:
        Filenames of pages, sorted by name; what is left out; filenames of other files that are kept.
    """
    pages: list[str] = []
    others: list[str] = []
    skipped: list[Skipped] = []
    names = folder.names() if known else []
    rest = [name for name in names if name not in known]
    if names and len(rest) <= _FEW:
        pages = [name for name in names if name in known]
        looked = [(name, _kind(folder, name)) for name in rest]
    if not pages or not _ONLY_PAGES.fullmatch("/".join(pages)):
        pages = []
        looked = [(item.name, _entry_kind(folder, item)) for item in folder.scan()]
    for filename, words in looked:
        if words is None and is_page_filename(filename):
            pages.append(filename)
            continue
        reason = _why_left_out(filename, words)
        if reason is None:
            others.append(filename)
        elif reason:
            skipped.append(Skipped(filename, reason))
    return by_name(pages), sorted(skipped), sorted(others)


def _why_left_out(filename: str, words: str | None) -> str | None:
    """Return why a file that is no page is left out; None for one that is kept, an empty text for what is gone."""
    if words == "symbolic link" or (words is not None and not filename.startswith(".")):
        return words
    return skip_reason(filename)


def _entry_kind(folder: Folder, item: os.DirEntry[str]) -> str | None:
    """Return what ``kind`` says of an entry, as far as possible without asking for its stat data."""
    if item.is_file(follow_symlinks=False):
        return None
    if item.is_symlink():
        return "symbolic link"
    return _kind(folder, item.name)


def _kind(folder: Folder, filename: str) -> str | None:
    """Return what a name is, in words; None for a regular file, an empty text for what is gone."""
    try:
        return kind(folder.status(filename).st_mode)
    except OSError:
        return ""


def take_snapshot(folder: Folder, known: Snapshot | Mapping[str, Entry] | None = None, verify: bool = True) -> Snapshot:
    """Read and hash every page of an open directory.

    Args:
        folder: The directory.
        known: An earlier snapshot; entries that did not change are taken from it as the same objects.
        verify: Read every page. Otherwise a page whose size, times and inode are those of *known*, and were at least
            3 s old then, is taken to be unchanged; this needs a whole ``Snapshot``, which knows when it was taken.
    """
    taken = time.time_ns()
    before: Mapping[str, Entry] = known.entries if isinstance(known, Snapshot) else known or {}
    trusted: dict[str, Entry] = {}
    if verify and isinstance(known, Snapshot) and known.entries:
        trusted = _reread(folder, known)
        if trusted is known.entries:
            beside = _only_beside(folder, trusted)
            if beside is not None:
                return Snapshot(trusted, beside, taken)
    filenames, skipped, _ = survey(folder, before)
    if not verify and isinstance(known, Snapshot):
        trusted = _unchanged(folder, filenames, known)
    entries: dict[str, Entry] = {}
    # One loop with local names and no calls of our own: at 10,000 pages they would be a third of the time.
    open_file, directory, earlier = folder.opener(), folder.descriptor, before.get
    read, close, fstat, is_regular, sha256 = os.read, os.close, os.fstat, stat.S_ISREG, hashlib.sha256
    for filename in filenames:
        if filename in trusted:
            entries[filename] = trusted[filename]
            continue
        try:
            descriptor = open_file(filename, READ_FLAGS, dir_fd=directory)
            try:
                status = fstat(descriptor)
                data = read(descriptor, READ_BLOCK) if is_regular(status.st_mode) else b""
                size = len(data)
                if size != status.st_size or size == READ_BLOCK or not size:
                    data = read_all(descriptor, status, LARGEST_PAGE, data)
                    size = len(data)
            finally:
                close(descriptor)
        except Unreadable as error:
            skipped.append(Skipped(filename, str(error)))
            continue
        except OSError as error:
            trouble = refusal(error)
            if trouble is not None:
                skipped.append(Skipped(filename, str(trouble)))
            continue
        modified = status.st_mtime_ns
        if not -_FAR_NS < modified < _FAR_NS:
            modified = clamped_ns(modified)
        found = (sha256(data).digest(), size, modified, status.st_ctime_ns, status.st_ino)
        old = earlier(filename)
        entries[filename] = old if old is not None and old == found else Entry._make(found)
    return Snapshot(entries, tuple(sorted(skipped)), taken)


def _reread(folder: Folder, known: Snapshot) -> dict[str, Entry]:
    """Return the entries of *known* whose pages, read again now, are the same to the byte and in their stat data.

    The same object where that is true of all: nothing is made for a page that did not change.
    """
    open_file, directory = folder.opener(), folder.descriptor
    read, close, fstat, is_regular, sha256 = os.read, os.close, os.fstat, stat.S_ISREG, hashlib.sha256
    differing: set[str] = set()
    for filename, (digest, size, mtime_ns, ctime_ns, inode) in known.entries.items():
        try:
            descriptor = open_file(filename, READ_FLAGS, dir_fd=directory)
            try:
                status = fstat(descriptor)
                data = read(descriptor, READ_BLOCK) if is_regular(status.st_mode) else b""
            finally:
                close(descriptor)
        except (Unreadable, OSError):
            differing.add(filename)
            continue
        if (
            sha256(data).digest() != digest
            or status.st_size != size
            or status.st_mtime_ns != mtime_ns
            or status.st_ctime_ns != ctime_ns
            or status.st_ino != inode
            or size >= READ_BLOCK  # there may be more to read
        ):
            differing.add(filename)
    if not differing:
        return known.entries
    return {filename: entry for filename, entry in known.entries.items() if filename not in differing}


def _only_beside(folder: Folder, entries: Mapping[str, Entry]) -> tuple[Skipped, ...] | None:
    """Return what is left out beside these pages; None where a survey has to say what the pages are.

    The names are asked for although all pages could be opened: a disk that takes ``A.md`` for ``a.md`` opens both.
    """
    names = set(folder.names())
    rest = names - entries.keys()
    if len(rest) > _FEW or len(names) - len(rest) != len(entries) or not _ONLY_PAGES.fullmatch("/".join(entries)):
        return None
    left: list[Skipped] = []
    for filename in rest:
        words = _kind(folder, filename)
        if words is None and is_page_filename(filename):
            return None
        reason = _why_left_out(filename, words)
        if reason:
            left.append(Skipped(filename, reason))
    return tuple(sorted(left))


def _unchanged(folder: Folder, filenames: list[str], known: Snapshot) -> dict[str, Entry]:
    """Return the entries of *known* that stat data show to be current (FORMAT X10)."""
    newest = known.taken_ns - RACY_WINDOW_NS
    found: dict[str, Entry] = {}
    ask, is_regular, earlier = folder.asker(), stat.S_ISREG, known.entries.get
    for filename in filenames:
        entry = earlier(filename)
        if entry is None:
            continue
        _, size, mtime_ns, ctime_ns, inode = entry
        if mtime_ns >= newest or ctime_ns >= newest:
            continue
        try:
            status = ask(filename)
        except OSError:
            continue
        if (
            status.st_mtime_ns == mtime_ns
            and status.st_ctime_ns == ctime_ns
            and status.st_size == size
            and status.st_ino == inode
            and is_regular(status.st_mode)
        ):
            found[filename] = entry
    return found
