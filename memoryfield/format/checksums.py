"""Digests of archives and their side files, ``NAME.memoryfield.zip.sha256``, in the form that ``sha256sum`` reads."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO

from memoryfield.errors import ArchiveError, ChecksumMismatch

SIDECAR_SUFFIX = ".sha256"
_LINE = re.compile(r"(\\?)([0-9a-fA-F]{64}) [ *](.+)")
_BLOCK = 2**20


def sidecar_path(archive: str | os.PathLike[str]) -> Path:
    """Return where the side file of an archive stands."""
    path = Path(archive)
    return path.with_name(path.name + SIDECAR_SUFFIX)


def read_sidecar(archive: str | os.PathLike[str]) -> str | None:
    """Return the sha256 that the side file of an archive promises, or None without a side file.

    Raises:
        ArchiveError: The side file has no line for this archive.
    """
    path = Path(archive).expanduser()
    place = sidecar_path(path)
    try:
        with open(place, "rb") as handle:
            text = handle.read(65536).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArchiveError(f"{place} cannot be read: {error.strerror or error}") from error
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and (_unescaped(match[3]) if match[1] else match[3]) == path.name:
            return match[2].lower()
    raise ArchiveError(f"{place} holds no line of the form 'sha256  {path.name}': make it anew or remove it")


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading as an archive.

    Raises:
        ArchiveError: It is not there, or no regular file.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ArchiveError(f"{path} is no archive: it is not a regular file")
        handle = open(path, "rb")  # noqa: SIM115  # closed below; only opening is guarded
    except OSError as error:
        raise ArchiveError(f"{path} cannot be opened: {error.strerror or error}") from error
    with handle:
        yield handle


def checked_digest(handle: IO[bytes], path: Path, sha256: str | None) -> str:
    """Return the sha256 of an open archive.

    Raises:
        ChecksumMismatch: It is not the one given, or without one given not that of the side file.
    """
    promised = [("the given sha256", sha256)] if sha256 is not None else [(sidecar_path(path).name, read_sidecar(path))]
    digest = digest_of(handle)
    for origin, value in promised:
        if value is not None and value.strip().lower() != digest:
            raise ChecksumMismatch(f"{path.name} has the sha256 {digest}, {origin} says {value}: nothing was unpacked")
    return digest


def digest_of(handle: IO[bytes]) -> str:
    """Return the sha256 of a whole open file, in hexadecimal digits."""
    digest = hashlib.sha256()
    handle.seek(0)
    while block := handle.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def sidecar_line(digest: str, name: str) -> str:
    """Return a line as ``sha256sum`` writes it, which marks names with strange characters by a backslash in front."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n"


def _unescaped(name: str) -> str:
    return re.sub(r"\\([\\nr])", lambda match: {"\\": "\\", "n": "\n", "r": "\r"}[match[1]], name)
