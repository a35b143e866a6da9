"""What a place has to be able to do so that a field can live there: five calls, and the values that go through them.

A *tag* is whatever a store gives to a version of a file (an ETag, the id of a blob): equal tags, equal bytes. Nothing
else is ever read out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol

from memoryfield.display import counted
from memoryfield.errors import StoreRefused
from memoryfield.format.names import is_page_filename, skip_reason
from memoryfield.format.snapshot import LARGEST_PAGE, Skipped

MOST_ENTRIES = 100_000  # of a listing; a place with more is no field, or hostile
LONGEST_FILENAME = 255
LONGEST_TAG = 1024


class Listed(NamedTuple):
    """A file as a listing shows it.

    Attributes:
        filename: Its name.
        tag: Version; an empty text where the store knows none, and then it is read each time.
        size: Bytes; None where the listing does not say.
        modified_ns: When it was last written, in nanoseconds since 1970; 0 where that is not known.
    """

    filename: str
    tag: str
    size: int | None = None
    modified_ns: int = 0


@dataclass(frozen=True, repr=False)
class Listing:
    """What is in a place.

    Attributes:
        pages: The pages by filename.
        others: Filenames of what is kept beside them.
        skipped: What is left out, with the reason.
        writes: Whether the store says that it takes changes; None where it does not say.
    """

    pages: dict[str, Listed] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    writes: bool | None = None

    def __repr__(self) -> str:
        held = f"{counted(len(self.pages), 'page')}, {counted(len(self.others), 'other file')}"
        return f"<Listing: {held}, {len(self.skipped)} skipped>"


class Fetched(NamedTuple):
    """A file as it was read.

    Attributes:
        filename: Its name.
        raw: Its bytes; None where it is not there any more.
        tag: Version of these bytes.
        modified_ns: When it was last written, in nanoseconds since 1970; 0 where that is not known.
    """

    filename: str
    raw: bytes | None
    tag: str
    modified_ns: int = 0


class Store(Protocol):
    """A place where the files of one field live.

    A store may also have an ``identity`` (where one address can mean two places, it says which) and a ``close()``.

    Every call may raise ``StoreUnreachable`` (try again later) or ``StoreRefused`` (it will not help). No message and
    no ``repr`` holds a credential.
    """

    @property
    def place(self) -> str:
        """The address to show, without credentials; two stores of one address are the same field."""

    @property
    def read_only(self) -> bool:
        """Whether it can be written at all."""

    def list(self) -> Listing:
        """Return what is there now."""

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        """Yield files as they are now, in any order."""

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        """Write a file if it has *tag* now, or if there is none and *tag* is None; return the new tag.

        An empty text is returned where the store does not tell the tag of what it stored.

        Raises:
            PageChanged: The file has another tag, or is gone.
            PageExists: *tag* is None and there is one.
            ReadOnlyField: The store takes no changes.
        """

    def delete_if(self, filename: str, tag: str) -> None:
        """Delete a file if it has *tag* now.

        Raises:
            PageChanged: The file has another tag, or is gone.
            ReadOnlyField: The store takes no changes.
        """

    def open_zip(self) -> BinaryIO | None:
        """Return the whole field as an archive, open for reading; None where the store makes none."""


def sorted_out(entries: Iterable[Listed], place: str, writes: bool | None = None) -> Listing:
    """Return a listing made of what a store names, which is believed in nothing.

    Raises:
        StoreRefused: There are too many entries, or a tag is too long.
    """
    pages: dict[str, Listed] = {}
    others: list[str] = []
    skipped: set[Skipped] = set()
    for count, entry in enumerate(entries):
        if count >= MOST_ENTRIES:
            raise StoreRefused(f"{place} lists more than {MOST_ENTRIES:,} files: that is no field; open a part of it")
        name = entry.filename
        if len(name) > LONGEST_FILENAME:
            skipped.add(Skipped(name[:40] + "...", "name too long"))
        elif any(c in name for c in "/\\\0") or name in ("", ".", ".."):
            skipped.add(Skipped(name.split("/")[0].replace("\0", "") or "/", "not directly in the field"))
        elif len(entry.tag) > LONGEST_TAG:
            raise StoreRefused(f"{place} gives {name} a tag of {len(entry.tag):,} characters: that is no tag")
        elif not is_page_filename(name):
            reason = skip_reason(name)
            if reason is None:
                others.append(name)
            else:
                skipped.add(Skipped(name, reason))
        elif entry.size is not None and entry.size > LARGEST_PAGE:
            skipped.add(Skipped(name, f"larger than {LARGEST_PAGE // 2**20} MiB"))
        else:
            pages[name] = entry
    return Listing(dict(sorted(pages.items())), tuple(sorted(set(others))), tuple(sorted(skipped)), writes)
