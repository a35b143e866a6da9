"""What a hit shows of its page, kept while the page stays as it is: reading ten pages anew takes longer than ranking.

A page is recognised by what a snapshot says of it: hash, size, times and inode. The snapshot is the one that the hits
were ranked on, taken after the question came; a page that was gone by then is not shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memoryfield.errors import PageNotFound
from memoryfield.field import MemoryField
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import Page
from memoryfield.format.snapshot import Entry, Snapshot

_MOST_BYTES = 64 << 20  # of kept text, about
_OVERHEAD = 2000  # bytes that a small page takes beside its text


@dataclass(frozen=True)
class Glimpse:
    """What search shows of a page.

    Attributes:
        filename: Its filename.
        frontmatter: Its keys; None where it has no block.
        title: Its title.
        folded: Filename, title and summary in one case, to look for a part of a word.
    """

    filename: str
    frontmatter: Mapping[str, Any] | None
    title: str
    folded: tuple[str, str, str]


class Glimpses:
    """Reads pages for search and remembers what it shows of them; for several threads.

    Args:
        field: The field.
        most_bytes: About how much is kept; what was not asked for longest goes first.
    """

    def __init__(self, field: MemoryField, most_bytes: int = _MOST_BYTES) -> None:
        self._field = field
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Entry, Glimpse, int]] = OrderedDict()

    def of(self, name: str, snapshot: Snapshot | None) -> Glimpse | None:
        """Return what to show of a page; None where it is gone.

        Args:
            name: Its name.
            snapshot: The pages at the moment that is asked about; None reads the page.
        """
        filename = name + PAGE_SUFFIX
        entry = None if snapshot is None else snapshot.entries.get(filename)
        if entry is None and snapshot is not None:
            return None
        with self._lock:
            kept = self._kept.get(filename)
            if kept is not None and kept[0] == entry:
                self._kept.move_to_end(filename)
                return kept[1]
        try:
            page = self._field.read(name)
        except PageNotFound:
            return None
        seen = _glimpse(page)
        if entry is not None and bytes.fromhex(page.sha256) == entry.sha256:
            self._keep(filename, entry, seen)
        return seen

    def containing(self, text: str, snapshot: Snapshot | None) -> Iterator[Glimpse]:
        """Yield pages that have a text in filename, title or summary, as where there is no index."""
        wanted = text.casefold().strip()
        if not wanted:
            return
        names = (
            self._field.names() if snapshot is None else [name.removesuffix(PAGE_SUFFIX) for name in snapshot.entries]
        )
        for name in names:
            seen = self.of(name, snapshot)
            if seen is not None and any(wanted in part for part in seen.folded):
                yield seen

    def _keep(self, filename: str, entry: Entry, seen: Glimpse) -> None:
        size = _OVERHEAD + sum(map(len, seen.folded)) + len(repr(seen.frontmatter))
        with self._lock:
            old = self._kept.pop(filename, None)
            self._bytes += size - (old[2] if old is not None else 0)
            self._kept[filename] = (entry, seen, size)
            while self._bytes > self._most and self._kept:
                self._bytes -= self._kept.popitem(last=False)[1][2]


def _glimpse(page: Page) -> Glimpse:
    front = dict(page.frontmatter) if page.has_frontmatter else None
    folded = (page.filename.casefold(), page.title.casefold(), page.summary.casefold())
    return Glimpse(page.filename, front, page.title, folded)
