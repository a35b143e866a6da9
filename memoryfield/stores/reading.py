"""Reading many pages of a store: from one archive where that is offered and most are needed, else several at a time."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, TypeVar

from memoryfield.errors import ArchiveError, StoreError
from memoryfield.format.names import is_page_filename
from memoryfield.format.zipread import Limits, chunks, read_listing
from memoryfield.stores.protocol import Fetched, Listed, Store

_MANY = 32  # pages; below that an archive costs the store more than it saves
_DIGEST_TAG = re.compile(r'"[0-9a-f]{64}"')

Asked = TypeVar("Asked")
Got = TypeVar("Got")


def digest_tag(raw: bytes) -> str:
    """Return the tag that our own server and an archive give to a page: its sha256 as an ETag."""
    return f'"{hashlib.sha256(raw).hexdigest()}"'


def is_digest_tag(tag: str) -> bool:
    """Say whether a tag has the form of a sha256, so that bytes can be checked against it."""
    return _DIGEST_TAG.fullmatch(tag) is not None


def read_wanted(store: Store, wanted: Mapping[str, Listed], total: int) -> Iterator[Fetched]:
    """Yield pages as they are now.

    Args:
        store: The place.
        wanted: The pages, as they were listed.
        total: How many pages the field has.
    """
    left = dict(wanted)
    if len(left) >= _MANY and len(left) * 4 >= total and all(is_digest_tag(item.tag) for item in left.values()):
        archive: BinaryIO | None = None
        with contextlib.suppress(StoreError):  # the pages can still be had one by one
            archive = store.open_zip()
        if archive is not None:
            with archive, contextlib.suppress(ArchiveError):
                for filename, raw, _ in archived_pages(archive, store.place):
                    tag = digest_tag(raw)
                    if filename in left and left[filename].tag == tag:
                        yield Fetched(filename, raw, tag, left.pop(filename).modified_ns)
    if not left:
        return
    asked = dict(left)
    for fetched in store.read_many(list(asked.values())):
        if left.pop(fetched.filename, None) is not None:
            yield fetched


def at_once(work: Callable[[Asked], Got], items: Sequence[Asked], most: int) -> Iterator[Got]:
    """Yield what *work* makes of each item, in their order, with up to *most* under way and little held.

    An error, or a caller that stops, ends the rest: what waits is not begun, and what is under way not waited for.
    """
    if len(items) <= 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(min(most, len(items)), thread_name_prefix="memoryfield-store")
    waiting: deque[Future[Got]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= 4 * most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=not waiting, cancel_futures=True)


def archived_pages(archive: BinaryIO, name: str) -> Iterator[tuple[str, bytes, int]]:
    """Yield filename, bytes and time (ns) of every page of an archive.

    Raises:
        ArchiveError: The archive, or a page of it, is damaged or hostile.
    """
    listing = read_listing(archive, Limits(), name)
    for filename in sorted(filter(is_page_filename, listing.members)):
        member = listing.members[filename]
        moment = 0 if member.modified is None else int(member.modified.timestamp()) * 1_000_000_000
        yield filename, b"".join(chunks(archive, filename, member, listing, name)), moment
