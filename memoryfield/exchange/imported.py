"""What earlier imports made of a source, kept in the user's state directory and not in the pages.

A page's whole file is what the format embeds, so that a line of bookkeeping in its frontmatter would pull all imported
pages together. Where this file is missing (another machine, a field that was moved), pages are recognised by what they
say; a page that was edited meanwhile is then taken for another one.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memoryfield.errors import FieldError, NewerSchema
from memoryfield.format.page import Page
from memoryfield.format.targets import write_target
from memoryfield.places import field_key, private_directory, state_directory

SCHEMA_VERSION = 1
_LARGEST = 1 << 28  # bytes
_DIGITS = 16
_NAMESPACE = uuid.UUID("6f0c5a4e-5f0b-4b0a-9a3f-0d9a8c1e7b52")


@dataclass(frozen=True)
class Made:
    """One page that an import made.

    Attributes:
        page: Its name then.
        uuid: Its uuid, empty where it has none.
        read: Digest of the piece of the source.
        written: Digest of what was written, see ``written_digest``.
        origin: Digest of the source's place.
    """

    page: str
    uuid: str
    read: str
    written: str
    origin: str


def load_made(field: Path) -> dict[str, Made]:
    """Return what earlier imports made in a field, by what the piece is called; empty where that is not known.

    Raises:
        NewerSchema: The file was written by a newer version of this library.
    """
    path = _path(field)
    try:
        status = path.stat()
        if status.st_size > _LARGEST or not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            return {}
        held = json.loads(path.read_text(encoding="utf-8"))
        version, pieces = held["schema_version"], held["pieces"]
        if version > SCHEMA_VERSION:
            raise NewerSchema(f"{path} has schema version {version}, this library knows {SCHEMA_VERSION}: update it")
        return {str(label): Made(**{key: str(value) for key, value in made.items()}) for label, made in pieces.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # missing or damaged: pages are recognised by what they say


def store_made(field: Path, made: Mapping[str, Made]) -> None:
    """Add to what is known of a field; a disk that cannot be written costs the next import its memory, no more."""
    with suppress(OSError, FieldError):
        path = _path(field)
        private_directory(path.parent)
        pieces = {label: asdict(piece) for label, piece in {**load_made(field), **made}.items()}
        text = json.dumps({"schema_version": SCHEMA_VERSION, "pieces": pieces}, ensure_ascii=False, indent=0)
        write_target(path, text.encode("utf-8", "surrogatepass"))


def page_of(
    made: Made | None,
    present: Mapping[str, Page],
    by_uuid: Mapping[str, Page],
    by_written: Callable[[], Mapping[str, Page]],
) -> Page | None:
    """Return the page that an import made, where it is still there under its uuid, its name or another name."""
    if made is None:
        return None
    if made.uuid and made.uuid in by_uuid:
        return by_uuid[made.uuid]
    page = present.get(made.page)
    if page is not None and (not made.uuid or not page.uuid):
        return page
    return by_written().get(made.written)


def uuid_of(label: str) -> str:
    """Return the uuid of the page that is made of a piece, the same wherever it is made."""
    return str(uuid.uuid5(_NAMESPACE, label))


def origin_of(source: Path) -> str:
    """Return a digest of a source's place."""
    return hashlib.sha256(os.fsencode(os.path.normcase(os.path.realpath(source)))).hexdigest()[:_DIGITS]


def written_digest(page: Page, without: Iterable[str] = ("updated",)) -> str:
    """Return a digest of what a person would edit: body and frontmatter, some keys apart."""
    left_out = frozenset(without)
    front = sorted((key, repr(value)) for key, value in page.frontmatter.items() if key not in left_out)
    whole = hashlib.sha256(repr(front).encode() + b"\0" + page.body.encode("utf-8", errors="replace"))
    return whole.hexdigest()[:_DIGITS]


def _path(field: Path) -> Path:
    return state_directory() / "imports" / f"{field_key(field)}.json"
