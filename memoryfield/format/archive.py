"""Making archives, ``NAME.memoryfield.zip`` with its ``.sha256`` file beside it, and checking them (FORMAT A1).

An archive of equal content is equal byte for byte, whoever makes it and when: members are sorted and all carry
1980-01-01, the earliest time that a zip can hold. A file's own time differs between two copies of one field, and the
dates that mean something stand in the frontmatter. (Equal compression needs the same zlib.) Pages are deflated, indexes
stored: vectors do not compress. Reading archives is in ``zipread.py``, unpacking in ``importing.py``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memoryfield.display import Table, counted
from memoryfield.errors import ArchiveError, PageNotFound
from memoryfield.format.checksums import (
    SIDECAR_SUFFIX,
    checked_digest,
    digest_of,
    open_archive,
    read_sidecar,
    sidecar_line,
    sidecar_path,
)
from memoryfield.format.directory import PageDirectory
from memoryfield.format.files import Folder, Unreadable, is_temporary, write_errors
from memoryfield.format.findings import shown_name
from memoryfield.format.importing import ImportReport, import_archive, import_pages, shown_skipped
from memoryfield.format.indexcopy import index_copy
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, page_name, skip_reason
from memoryfield.format.snapshot import LARGEST_PAGE, Skipped, survey
from memoryfield.format.targets import check_sidecar, check_target, replacing
from memoryfield.format.zipread import LONGEST_NAME, Limits, chunks, name_problem, read_listing, twins

__all__ = [
    "ARCHIVE_SUFFIX",
    "ArchiveReport",
    "ImportReport",
    "export_archive",
    "import_archive",
    "import_pages",
    "read_sidecar",
    "sidecar_path",
    "verify_archive",
]

ARCHIVE_SUFFIX = ".memoryfield.zip"
_INDEX_SUFFIX = ".sqlite3"
_INDEX_FILE = re.compile(r".*\.sqlite3?(?:-journal|-wal|-shm)?", re.DOTALL)
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


@dataclass(frozen=True, repr=False)
class ArchiveReport:
    """What an archive holds.

    Attributes:
        path: The archive.
        sha256: Of its bytes, in hexadecimal digits.
        members: Filenames, sorted.
        bytes: Its size.
        skipped: What of the field is not in it, with the reason.
    """

    path: Path
    sha256: str
    members: tuple[str, ...]
    bytes: int
    skipped: tuple[Skipped, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {
            "path": str(self.path),
            "sha256": self.sha256,
            "members": list(self.members),
            "bytes": self.bytes,
            "skipped": shown_skipped(self.skipped),
        }

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        pages = sum(is_page_filename(name) for name in self.members)
        sizes = [counted(pages, "page"), counted(len(self.members) - pages, "other file"), counted(self.bytes, "byte")]
        heading = f"{self.path.name}: {', '.join(sizes)}"
        notes = [f"sha256 {self.sha256}", str(self.path)]
        rows = [(shown_name(item.filename), item.reason) for item in self.skipped]
        return Table(heading, ("left out", "why"), rows[:20], notes, more=max(len(rows) - 20, 0))

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def export_archive(
    directory: PageDirectory,
    target: str | os.PathLike[str],
    *,
    pages: Sequence[str] | None = None,
    indexes: Sequence[str] = (),
    other_files: bool | Sequence[str] = True,
    sidecar: bool = True,
) -> ArchiveReport:
    """Write a field as an archive. An archive that is there already is replaced in one step, any other file never.

    Args:
        directory: The field.
        target: File to write, by custom ``NAME.memoryfield.zip``.
        pages: Names of the pages to take; all by default.
        indexes: Filenames of the index files to take, as consistent copies that hold nothing of other pages, nor of
            these with another content, nor the place that a model came from.
        other_files: Take other files too: all that are no index and no archive, none, or those named. Files that have
            a page's ending and no page's name count as such.
        sidecar: Write the sha256 to a file beside the archive. Without it, one left from before is removed.

    Raises:
        PageNotFound: A page or file that was asked for is not there.
        ArchiveError: Two names that some file systems cannot keep apart, an index that cannot be copied, or a target
            where something else than an archive stands, or beside which something else than its side file does.
    """
    goal = check_target(target)
    check_sidecar(goal)
    asked = {page_name(name) + PAGE_SUFFIX for name in pages or ()} | set(indexes)
    asked |= set() if isinstance(other_files, bool) else set(other_files)
    with directory.lock(), Folder(directory.path) as folder:
        chosen, skipped = _choice(folder, goal, pages, indexes, other_files)
        for one, other in twins(chosen):
            raise ArchiveError(
                f"{directory.path} holds {one!r} and {other!r}, which many file systems cannot keep apart: rename one"
            )
        with write_errors(goal.parent), replacing(goal, lambda: _make_way(goal)) as handle:
            members = _write_members(handle, folder, chosen, frozenset(indexes), skipped, asked)
            digest = digest_of(handle)
            size = handle.seek(0, os.SEEK_END)
        # The old side file went before the new archive came: at no moment does one stand beside the other's archive.
        if sidecar:
            with write_errors(goal.parent), replacing(sidecar_path(goal), lambda: check_sidecar(goal)) as handle:
                handle.write(sidecar_line(digest, goal.name).encode("utf-8", "surrogateescape"))
    return ArchiveReport(goal, digest, tuple(members), size, tuple(sorted(skipped)))


def verify_archive(
    source: str | os.PathLike[str], *, sha256: str | None = None, limits: Limits | None = None
) -> ArchiveReport:
    """Check an archive without unpacking it: its sha256 and everything that an import checks.

    Args:
        source: The archive.
        sha256: Digest that it must have; by default that of its side file, where there is one.
        limits: What is refused.

    Raises:
        ChecksumMismatch: It has another digest.
        ArchiveError: It is damaged or hostile.
    """
    path = Path(source).expanduser()
    with open_archive(path) as handle:
        digest = checked_digest(handle, path, sha256)
        listing = read_listing(handle, limits or Limits(), path.name)
        for name, member in listing.members.items():
            for _ in chunks(handle, name, member, listing, path.name):
                pass
        size = handle.seek(0, os.SEEK_END)
    return ArchiveReport(path, digest, tuple(sorted(listing.members)), size, listing.skipped)


def _choice(
    folder: Folder,
    goal: Path,
    pages: Sequence[str] | None,
    indexes: Sequence[str],
    other_files: bool | Sequence[str],
) -> tuple[list[str], list[Skipped]]:
    """Return the filenames to take, sorted, and what is left out."""
    present, skipped, others = survey(folder)
    misnamed = [item.filename for item in skipped if item.reason == skip_reason("A.md")]
    skipped = [item for item in skipped if item.filename not in misnamed and not is_temporary(item.filename)]
    chosen = set(present) if pages is None else {page_name(name) + PAGE_SUFFIX for name in pages}
    extra = [name for name in [*others, *misnamed] if not _INDEX_FILE.fullmatch(name)]
    if other_files is True:
        for name in extra:
            reason = _unfit(name) or ("an archive" if _is_archive(name, folder, goal) else None)
            if reason is None:
                chosen.add(name)
            else:
                skipped.append(Skipped(name, reason))
    elif other_files is not False:
        chosen.update(other_files)
    chosen.update(indexes)
    missing = sorted(chosen - {*present, *others, *misnamed})
    if missing:
        raise PageNotFound(
            f"{', '.join(missing[:5])} cannot be exported: not in {folder.path}, or not a file of the field"
        )
    skipped += [
        Skipped(name, "index not asked for") for name in others if name.endswith(_INDEX_SUFFIX) and name not in chosen
    ]
    return sorted(chosen), skipped


def _unfit(filename: str) -> str | None:
    """Return why a file's name cannot stand in an archive, or None."""
    try:
        size = len(filename.encode("utf-8"))
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return "its name is too long" if size > LONGEST_NAME else name_problem(filename)


def _is_archive(filename: str, folder: Folder, goal: Path) -> bool:
    bare = filename.removesuffix(SIDECAR_SUFFIX)
    return bare.endswith(ARCHIVE_SUFFIX) or (bare == goal.name and os.path.samefile(folder.path, goal.parent))


def _write_members(
    handle: BinaryIO,
    folder: Folder,
    chosen: Sequence[str],
    indexes: frozenset[str],
    skipped: list[Skipped],
    asked: Container[str],
) -> list[str]:
    members = []
    exported: dict[str, bytes] = {}
    with zipfile.ZipFile(handle, "w", allowZip64=True) as archive:
        # Indexes last: only then it is known which pages they may tell of.
        for filename in sorted(chosen, key=lambda name: (name in indexes, name)):
            problem = _unfit(filename)
            if problem is not None:
                raise ArchiveError(f"{filename!r} cannot stand in an archive: {problem}")
            if filename in indexes:
                with index_copy(folder, filename, exported) as copy:
                    _add(archive, filename, copy, zipfile.ZIP_STORED)
            else:
                try:
                    raw, _ = folder.read(filename, LARGEST_PAGE if is_page_filename(filename) else None)
                except (FileNotFoundError, Unreadable) as error:
                    if filename in asked:
                        raise ArchiveError(f"{filename} cannot be exported: {error}") from error
                    skipped.append(Skipped(filename, str(error)))
                    continue
                _add(archive, filename, raw, zipfile.ZIP_DEFLATED)
                if is_page_filename(filename):
                    exported[filename] = hashlib.sha256(raw).digest()
            members.append(filename)
        archive.filelist.sort(key=lambda member: member.filename)
    return sorted(members)


def _make_way(goal: Path) -> None:
    """Look once more at what an archive is about to replace, and take its old side file away."""
    check_target(goal)
    check_sidecar(goal)
    sidecar_path(goal).unlink(missing_ok=True)


def _add(archive: zipfile.ZipFile, filename: str, content: bytes | Path, method: int) -> None:
    member = zipfile.ZipInfo(filename, _EARLIEST)
    member.compress_type = method
    member.create_system = _UNIX
    member.external_attr = (stat.S_IFREG | 0o644) << 16
    if isinstance(content, bytes):
        archive.writestr(member, content, compresslevel=6 if method == zipfile.ZIP_DEFLATED else None)
        return
    member.file_size = content.stat().st_size
    with open(content, "rb") as source, archive.open(member, "w") as goal:
        shutil.copyfileobj(source, goal, 2**20)
