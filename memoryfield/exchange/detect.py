"""Which kind of memory a source is, and reading it."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Any

from memoryfield.errors import ArchiveError, FieldNotFound, QueryError
from memoryfield.exchange.accounts import is_account, read_account
from memoryfield.exchange.conversations import is_conversation, read_conversations
from memoryfield.exchange.jsonstream import elements
from memoryfield.exchange.memory_file import split_memory_file
from memoryfield.exchange.parts import LARGEST_FILE, Part, Reading, Unread, without_halves
from memoryfield.exchange.records import read_records
from memoryfield.exchange.vault import MARKDOWN, read_vault
from memoryfield.format.names import is_page_filename, skip_reason

KINDS = ("vault", "memory-file", "records", "conversations")
MEMORY_FILES = ("MEMORY.md", "CLAUDE.md", "AGENTS.md", "memory.md")
# what an assistant's export holds: one file, several with numbers, or a folder of them
_IN_EXPORTS = re.compile(
    r"(?:.*/)?(?:(?:conversations|memories|projects)(?:-\d+)?\.json|(?:projects|memories)/[^/]+\.json)"
)
_JSON = (".json", ".jsonl", ".ndjson")
_MOST_IN_EXPORT = 10_000  # files
_NO_NOTES = frozenset(
    ["README.md", "LICENSE.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"]
)
_BAD_NAME = "not a valid page name"
_DEEPEST = 8  # folders that are looked into to say that there is Markdown in them
_LARGEST_RATIO = 200  # a text packs 5 to 20 times

_Reader = Callable[[str, str], tuple[list[Part], list[Unread]]]


def read_source(source: str | os.PathLike[str], kind: str = "auto") -> Reading:
    """Read a source of memories.

    Args:
        source: A folder, a Markdown file, a ``.json`` or ``.jsonl`` file, or the zip that a service exported.
        kind: One of ``KINDS``, or ``auto``, which looks.

    Raises:
        FieldNotFound: Nothing is there.
        QueryError: It is of no known kind; the message lists those that there are.
        ArchiveError: A zip that is damaged, or far larger unpacked than a text can be.
    """
    path = Path(os.path.abspath(Path(source).expanduser()))
    if kind != "auto" and kind not in KINDS:
        raise QueryError(f"kind is {kind!r}; expected auto or one of {', '.join(KINDS)}")
    if not path.exists():
        raise FieldNotFound(f"{path} is not there")
    if path.is_dir():
        if kind in ("auto", "conversations") and (exported := _export_files(path)):
            return _joined(path.name, ((name, (path / name).read_bytes()) for name in exported), "auto")
        if kind not in ("auto", "vault"):
            raise QueryError(f"{path.name} is a folder; the kind {kind} is read from a file")
        return _folder(path)
    lower = path.name.lower()
    if kind == "memory-file" or (kind == "auto" and lower.endswith(MARKDOWN)):
        raw = path.read_bytes() if _small(path) else b""
        return Reading(
            "memory-file", path.stem, tuple(split_memory_file(_text(raw), path.name)), _garbled(raw, path.name)
        )
    if lower.endswith(".zip"):
        return _joined(path.stem, _from_zip(path), kind)
    return _joined(path.stem, [(path.name, path.read_bytes() if _small(path) else b"")], kind)


def is_field(path: Path) -> bool:
    """Say whether a source is an archive of a field, or a folder that is one: flat, and all its names page names."""
    if path.is_dir():
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") or entry.is_symlink():
                    continue
                if name in MEMORY_FILES or (name.lower().endswith(MARKDOWN) and not is_page_filename(name)):
                    return False
                if entry.is_dir(follow_symlinks=False) and _holds_markdown(Path(entry.path)):
                    return False
        return not _export_files(path)
    if not path.name.lower().endswith(".zip"):
        return not path.exists()  # whoever opens it says what is missing
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, UnicodeDecodeError):
        return True
    return not any(_IN_EXPORTS.fullmatch(name) for name in names)


def other_markdown(folder: Path, most: int = 1000) -> tuple[tuple[str, ...], bool]:
    """Return Markdown files of a directory that cannot be pages: their names, or where they lie in folders.

    Files that stand in many folders for another reason (``README.md`` and the like), hidden ones and links are left
    out.

    Args:
        folder: The directory; anything else gives none.
        most: Most files to name.

    Returns:
        The paths, sorted, and whether these are all.
    """
    found: list[str] = []
    if not folder.is_dir():
        return (), True
    for place, folders, files in os.walk(folder):
        inside = os.path.relpath(place, folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if inside.count(os.sep) > _DEEPEST:
            folders.clear()
        for name in sorted(files):
            if name.startswith(".") or not name.lower().endswith(MARKDOWN) or os.path.islink(os.path.join(place, name)):
                continue
            if inside != ".":
                found.append(f"{inside}/{name}".replace(os.sep, "/"))
            elif not is_page_filename(name) and name not in _NO_NOTES and skip_reason(name) == _BAD_NAME:
                found.append(name)
            if len(found) > most:
                return tuple(sorted(found[:most])), False
    return tuple(sorted(found)), True


def _holds_markdown(folder: Path) -> bool:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if (
            any(name.lower().endswith(MARKDOWN) for name in files)
            or place.count(os.sep) - str(folder).count(os.sep) > 32
        ):
            return True
    return False


def _folder(path: Path) -> Reading:
    """Read a folder; a memory file at its top is cut into pages."""
    special = [name for name in MEMORY_FILES if (path / name).is_file() and not (path / name).is_symlink()]
    on_disk = {entry.name for entry in os.scandir(path)}
    special = [name for name in special if name in on_disk]  # a disk may take memory.md for MEMORY.md
    parts: list[Part] = []
    garbled: tuple[Unread, ...] = ()
    for name in special[:1]:
        if _small(path / name):
            raw = (path / name).read_bytes()
            parts, garbled = split_memory_file(_text(raw), name), _garbled(raw, name)
    found, unread = read_vault(path, skip=special[:1] if parts else (), beside=parts)
    return Reading("vault", path.name, tuple(found), (*garbled, *unread))


def _export_files(folder: Path) -> list[str]:
    """Return the files of an unpacked export; none where the folder is none, or holds notes as well."""
    found = []
    if any(name.lower().endswith(MARKDOWN) for name in os.listdir(folder)):
        return []
    for inside in ("", "projects", "memories"):
        place = folder / inside
        if place.is_dir() and not place.is_symlink():
            with os.scandir(place) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            found += [f"{inside}/{name}" if inside else name for name in names]
    chosen = sorted(name for name in found if _IN_EXPORTS.fullmatch(name))
    return [name for name in chosen if _small(folder / name)] if any("/" not in name for name in chosen) else []


def _joined(label: str, files: Iterable[tuple[str, bytes]], kind: str) -> Reading:
    """Read the JSON files of one source; one that cannot be read is named, and the others stand."""
    given = list(files)
    parts: list[Part] = []
    unread: list[Unread] = []
    kinds: list[str] = []
    for name, raw in given:
        unread += _garbled(raw, name)
        try:
            reading = _json(label, name, _text(raw), kind)
        except QueryError as error:
            if len(given) == 1:
                raise
            unread.append(Unread(name, str(error)))
            continue
        kinds.append(reading.kind)
        parts += map(without_halves, reading.parts)
        unread += reading.unread
    return Reading(kinds[0] if len(set(kinds)) == 1 else "conversations", label, tuple(parts), tuple(unread))


def _json(label: str, name: str, text: str, kind: str) -> Reading:
    reader: _Reader
    if kind == "auto":
        if name.lower().endswith(_JSON) and (not text.strip() or text.strip() in ("[]", "{}")):
            raise QueryError(f"{name} holds nothing")
        first: Any = next((e.value for e in elements(text, ("conversations",)) if e.problem is None), None)
        named = first is None and PurePath(name).name.startswith("conversations")
        kind = "conversations" if named or is_conversation(first) or is_account(first) else "records"
        if not name.lower().endswith(_JSON):
            raise QueryError(
                f"{name} is of no known kind: a folder, Markdown, or JSON (one record a line, or a list) can be read"
            )
        if is_account(first):
            parts, unread = read_account(text, name)
            return Reading(kind, label, tuple(parts), tuple(unread))
    reader = read_conversations if kind == "conversations" else read_records
    parts, unread = reader(text, name)
    return Reading(kind, label, tuple(parts), tuple(unread))


def _small(path: Path) -> bool:
    if not path.is_file():
        raise QueryError(f"{path} is no regular file")
    if path.stat().st_size > LARGEST_FILE:
        raise QueryError(f"{path.name} is larger than {LARGEST_FILE >> 20:,} MiB: cut it first")
    return True


def _text(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    return raw.decode("utf-8-sig", errors="replace")


def _garbled(raw: bytes, name: str) -> tuple[Unread, ...]:
    """Return what to say of a text whose bytes cannot all be read."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ()
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        where = f"{name}, line {line}"
        return (Unread(where, "bytes here are not UTF-8 and become \ufffd: save the file as UTF-8 first"),)
    return ()


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """Return the bytes of a member; each way of packing has damage of its own kind, LZMA's of no common one."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RuntimeError(f"{info.filename!r} is packed in a way that exports do not use; pack it again")
    with archive.open(info) as handle:
        return handle.read(most)


def _from_zip(path: Path) -> list[tuple[str, bytes]]:
    """Return the files of an export that are read, unpacked."""
    found: list[tuple[str, bytes]] = []
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                if not _IN_EXPORTS.fullmatch(info.filename) or info.filename.startswith("__MACOSX/"):
                    continue
                name = info.filename.rsplit("/", 1)[-1]
                size, packed = info.file_size, max(info.compress_size, 1)
                total += size
                if total > LARGEST_FILE or size / packed > _LARGEST_RATIO or len(found) >= _MOST_IN_EXPORT:
                    raise ArchiveError(f"{name} in {path.name} would be {size:,} bytes from {packed:,}: refused")
                raw = _unpacked(archive, info, size + 1)
                if len(raw) > size:
                    raise ArchiveError(f"{name} in {path.name} is larger than the archive says: refused")
                found.append((name, raw))
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, ValueError, EOFError) as error:
        raise ArchiveError(f"{path.name} cannot be read as an archive: {error}") from error
    if not found:
        raise QueryError(
            f"{path.name} holds no conversations.json, memories.json or projects.json; a .memoryfield.zip is read "
            "without a kind, and other files are read unpacked"
        )
    return found
