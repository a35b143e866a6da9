"""The pages of a field in a store, as a source of pages: a copy that is brought up to date by one listing.

Reading goes to the copy; what is older than a moment is first compared with the store. Where the store does not answer,
the last synced state is served, and ``notes`` says so. Writing always needs the store. Edits are in ``writing.py``.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from memoryfield.errors import PageNotFound, ReadOnlyField, StoreError, StoreRefused
from memoryfield.format.changes import Change
from memoryfield.format.dates import moment_of
from memoryfield.format.files import flat
from memoryfield.format.journaling import Journal
from memoryfield.format.lock import LOCK_TIMEOUT, field_lock
from memoryfield.format.names import PAGE_SUFFIX, check_name_type, is_page_filename, page_name
from memoryfield.format.page import Page
from memoryfield.format.snapshot import LARGEST_PAGE, Entry, Skipped, Snapshot
from memoryfield.format.verbs import PageVerbs
from memoryfield.places import cache_directory
from memoryfield.progress import ProgressBar
from memoryfield.stores.copy import Copy, Row, State, page_entry
from memoryfield.stores.protocol import Fetched, Listed, Listing, Store
from memoryfield.stores.reading import read_wanted

FRESH_SECONDS = 2.0
QUIET_SECONDS = 15.0  # a store that did not answer is left alone for so long, except by a write
_BATCH_PAGES = 128
_BATCH_BYTES = 8 * 2**20
_LARGEST_OTHER = 512 * 2**20  # bytes of a file beside the pages, for instance an index


class StorePages(PageVerbs):
    """The pages of a field in a store.

    Args:
        store: The place.
        fresh_seconds: How long a listing is taken for the present by ``read``, ``names`` and ``pages``.

    Attributes:
        store: The place.
        path: Stands for the field where a path is asked for; nothing is ever at it.
        journal: What keeps every change; None keeps none.
        identity: What tells this place from every other: the address, with the server where that is an option.
    """

    def __init__(self, store: Store, *, fresh_seconds: float = FRESH_SECONDS) -> None:
        self.store = store
        self.fresh_seconds = fresh_seconds
        self.identity: str = getattr(store, "identity", store.place)  # one address may mean two places
        digest = hashlib.sha256(self.identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self.path = cache_directory() / "stores" / digest / _readable(store.place)
        self._copy = Copy(cache_directory() / "stores" / f"{self.path.name}-{digest}.sqlite3")
        self._lock = threading.RLock()
        self._state: State | None = None
        self._entries: dict[str, Entry] = {}
        self._compared = float("-inf")  # monotonic
        self._failed = float("-inf")
        self._trouble: str = ""
        self._depth = threading.local()
        self._reports = threading.local()  # each thread's own: several may bring the copy up to date
        self.journal: Journal | None = None

    def __repr__(self) -> str:
        return f"<StorePages {self.store.place!r}>"

    def again(self) -> StorePages:
        """Return the same pages for another writer, with a journal of its own to come."""
        return StorePages(self.store, fresh_seconds=self.fresh_seconds)

    @property
    def place(self) -> str:
        """The address, without credentials."""
        return self.store.place

    @property
    def read_only(self) -> bool:
        """Whether every edit is refused, as far as the store has said."""
        return self.store.read_only or self._held().writes is False

    def notes(self) -> list[str]:
        """Return what a reader should know: that these are the pages of an earlier moment, and why."""
        if not self._trouble:
            return []
        moment = datetime.fromtimestamp(self._held().synced_ns / 1e9, UTC).isoformat(" ", "seconds")
        return [f"offline: the pages are those of {moment.removesuffix('+00:00')} UTC ({self._trouble})"]

    def close(self) -> None:
        """Close connections that the store holds; a later call opens new ones."""
        close = getattr(self.store, "close", None)
        if close is not None:
            close()

    # Bringing the copy up to date

    @contextmanager
    def reporting(self, report: Report | None) -> Iterator[None]:
        """Tell *report* in a ``with`` statement how many pages were carried, and how many there are to carry."""
        before = self._report
        self._reports.value = report
        try:
            yield
        finally:
            self._reports.value = before

    @property
    def _report(self) -> Report | None:
        report: Report | None = getattr(self._reports, "value", None)
        return report

    def refresh(self) -> Snapshot:
        """Bring the copy up to date and return what is there now; an interrupted call is gone on with by the next.

        Raises:
            StoreError: The store does not do its part; the copy is as it was, and what was read is kept for next time.
        """
        with self._lock:
            taken = time.time_ns()
            listing = self.store.list()
            held = self._held()
            if held.rows and not listing.pages:
                self._check_empty(next(iter(held.rows)))
            new = self._read_missing(listing, held, taken)
            if held.synced_ns and new == (held.rows, held.others, held.skipped, held.writes):
                self._state = replace(held, synced_ns=taken)
                self._copy.confirm(taken)
            else:
                self._take(State(*new, taken))
            self._compared, self._trouble, self._failed = time.monotonic(), "", float("-inf")
            assert self._state is not None
            return Snapshot(self._entries, self._state.skipped, taken)

    def _read_missing(self, listing: Listing, held: State, taken: int) -> _New:
        rows: dict[str, Row] = {}
        missing: dict[str, Listed] = {}
        for filename, item in listing.pages.items():
            old = held.rows.get(filename)
            if old is None or not item.tag or old.tag != item.tag:
                missing[filename] = item
            elif old.entry.mtime_ns == item.modified_ns:
                rows[filename] = old
            else:
                rows[filename] = Row(old.tag, page_entry(old.entry.sha256, old.entry.size, item.modified_ns))
        here = self._copy.known((f, item.tag) for f, item in missing.items() if item.tag)
        for (filename, tag), (sha256, size) in here.items():
            rows[filename] = Row(tag, page_entry(sha256, size, missing.pop(filename).modified_ns))
        skipped = set(listing.skipped)
        batch: list[Fetched] = []
        waiting = 0
        doubtful: dict[str, str] = {}  # what is not as it was listed, with its tag
        total = len(missing)
        try:
            for fetched in read_wanted(self.store, missing, len(listing.pages)):
                item = missing.pop(fetched.filename)
                if self._report is not None:
                    self._report(total - len(missing), total)
                if fetched.raw is None:
                    doubtful[fetched.filename] = ""
                    continue
                if len(fetched.raw) > LARGEST_PAGE:
                    skipped.add(Skipped(fetched.filename, f"larger than {LARGEST_PAGE // 2**20} MiB"))
                    continue
                digest = hashlib.sha256(fetched.raw)
                tag = fetched.tag or f"sha256-{digest.hexdigest()}"
                if item.tag and tag != item.tag:
                    doubtful[fetched.filename] = tag
                entry = page_entry(digest.digest(), len(fetched.raw), fetched.modified_ns or item.modified_ns)
                rows[fetched.filename] = Row(tag, entry)
                batch.append(fetched._replace(tag=tag))
                waiting += len(fetched.raw)
                if len(batch) >= _BATCH_PAGES or waiting >= _BATCH_BYTES:
                    self._copy.keep(batch)
                    batch, waiting = [], 0
        finally:
            if batch:
                self._copy.keep(batch)
        if missing:
            raise StoreRefused(f"{self.place} lists {min(missing)} but does not hand it over; nothing was changed")
        if doubtful:
            self._look_again(doubtful, rows)
        ordered = dict(sorted(rows.items(), key=lambda item: item[0][:-3]))
        return ordered, listing.others, tuple(sorted(skipped)), listing.writes

    def _check_empty(self, filename: str) -> None:
        """Refuse a listing of nothing where a page that was there still is: then the listing is not true."""
        for fetched in self.store.read_many([Listed(filename, "")]):
            if fetched.raw is not None:
                raise StoreRefused(f"{self.place} lists no page and still hands over {filename}; nothing was changed")

    def _look_again(self, doubtful: Mapping[str, str], rows: dict[str, Row]) -> None:
        """List once more: was a page changed or deleted in this moment, or is it not what the listing promises?"""
        listed = self.store.list().pages
        for filename, tag in sorted(doubtful.items()):
            item = listed.get(filename)
            if item is None:
                rows.pop(filename, None)
            elif tag == "":
                raise StoreRefused(f"{self.place} lists {filename} but does not hand it over; nothing was changed")
            elif item.tag != tag:
                raise StoreRefused(f"{filename} in {self.place} is not what is listed; nothing was changed: try again")

    def _take(self, state: State) -> None:
        """Make a state the last one."""
        self._copy.settle(state)
        self._state = state
        self._entries = {filename: row.entry for filename, row in state.rows.items()}

    def _held(self) -> State:
        with self._lock:
            if self._state is None:
                self._state = self._copy.load()
                self._entries = {filename: row.entry for filename, row in self._state.rows.items()}
            return self._state

    def _current(self) -> State:
        """Return the state, compared with the store a moment ago."""
        if time.monotonic() - self._compared > self.fresh_seconds:
            self.snapshot()
        return self._held()

    # Reading

    def snapshot(self, known: Snapshot | Mapping[str, Entry] | None = None, verify: bool = True) -> Snapshot:
        """Return what is there now, or the last synced state where the store does not answer; see ``notes``."""
        with self._lock:
            held = self._held()
            if held.synced_ns and time.monotonic() - self._failed < QUIET_SECONDS:
                return Snapshot(self._entries, held.skipped, held.synced_ns)
            try:
                return self.refresh()
            except StoreError as error:
                if not held.synced_ns:
                    raise
                self._trouble, self._failed = str(error), time.monotonic()
                self._compared = self._failed
                return Snapshot(self._entries, held.skipped, held.synced_ns)

    def names(self) -> list[str]:
        """Return the names of all pages, sorted."""
        return [filename.removesuffix(PAGE_SUFFIX) for filename in self._current().rows]

    def other_files(self) -> list[str]:
        """Return the filenames of what is kept beside the pages, indexes included."""
        return list(self._current().others)

    def read(self, name: str) -> Page:
        """Return one page.

        Raises:
            InvalidName: No page may have that name.
            PageNotFound: No such page.
            StoreError: It is not in the copy any more, and the store does not answer.
        """
        filename = page_name(name) + PAGE_SUFFIX
        row = self._current().rows.get(filename)
        if row is None:
            raise PageNotFound(f"there is no {filename} in {self.place}")
        return self._read_held(filename, row)

    def _read_held(self, filename: str, row: Row) -> Page:
        return self._page(filename, row, self._copy.raw(filename, row.tag))

    def read_bytes(self, filename: str) -> bytes:
        """Return the bytes of a page or of another file of the field.

        Raises:
            InvalidName: That names no file directly in the field.
            PageNotFound: No such file, or one that is too large.
            StoreError: The store does not answer.
        """
        check_name_type(filename)
        if is_page_filename(flat(filename)):
            return self.read(filename).raw
        if filename not in self._current().others:
            raise PageNotFound(f"there is no {filename} in {self.place}")
        for fetched in self.store.read_many([Listed(filename, "", _LARGEST_OTHER)]):
            if fetched.filename == filename and fetched.raw is not None:
                return fetched.raw
        raise PageNotFound(f"there is no {filename} in {self.place} any more")

    def pages(self) -> Iterator[Page]:
        """Yield every page that can be read, sorted by name."""
        rows = self._current().rows
        for filename, raw in self._copy.all_raw(rows):
            try:
                yield self._page(filename, rows[filename], raw)
            except (PageNotFound, StoreError):
                continue

    def _page(self, filename: str, row: Row, raw: bytes | None) -> Page:
        if raw is None:  # another process went on to a later state of the same copy
            with self._lock:
                item = Listed(filename, row.tag, None, row.entry.mtime_ns)
                raw = next((f.raw for f in self.store.read_many([item]) if f.filename == filename), None)
            if raw is None:
                raise PageNotFound(f"there is no {filename} in {self.place} any more")
        modified = row.entry.mtime_ns
        return Page(filename.removesuffix(PAGE_SUFFIX), raw, moment_of(modified / 1e9) if modified else None)

    # Writing

    @contextmanager
    def lock(self, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
        """Keep other writers of this machine out, and begin with the field as it is now.

        Raises:
            StoreError: The store does not answer.
        """
        with field_lock(self.path, timeout):
            depth = getattr(self._depth, "value", 0)
            if depth == 0:
                self.refresh()
            self._depth.value = depth + 1
            try:
                if depth == 0 and self.journal is not None:
                    self.journal.ready()
                yield
            finally:
                self._depth.value = depth

    def taken(self) -> set[str]:
        """Names that nothing new can have, in lower case."""
        held = self._held()
        filenames = [*held.rows, *held.others, *(item.filename for item in held.skipped)]
        return {filename.lower().removesuffix(PAGE_SUFFIX) for filename in filenames}

    def apply(self, changes: Sequence[Change], *, verb: str = "write", note: str = "") -> None:
        """Write and delete pages, each on the condition that it is the version that was seen.

        All conditions are checked before the first page is written: new pages first, deletions last. What another
        machine changes in the same moment is found by the store; then what was written is taken back.

        Raises:
            MemoryfieldError: As ``PageDirectory.apply``; ``StoreError`` where the store does not do its part.
        """
        self.apply_recorded(changes, self.journal, verb, note)

    def apply_recorded(self, changes: Sequence[Change], journal: Journal | None, verb: str, note: str) -> None:
        """Do what ``apply`` does, and keep the changes in *journal*; with None in none."""
        from memoryfield.stores.writing import apply_changes, filename_of

        if self.read_only:
            raise ReadOnlyField(f"{self.place} is read only")
        with self.lock():
            state = self._held()
            wanted = {filename_of(change) for change in changes} & state.rows.keys()
            before = {filename: self._read_held(filename, state.rows[filename]).raw for filename in sorted(wanted)}
            total, done = len(changes), 0

            def wrote(filename: str, fetched: Fetched | None) -> None:
                nonlocal done
                done += 1
                self._wrote(filename, fetched)
                if self._report is not None:
                    self._report(min(done, total), total)

            apply_changes(self.store, changes, state, before, wrote, journal, verb, note)

    def _wrote(self, filename: str, fetched: Fetched | None) -> None:
        """Take a page that was written, or None for one that was deleted, into the copy."""
        with self._lock:
            held = self._held()
            rows = {name: row for name, row in held.rows.items() if name != filename}
            if fetched is not None and fetched.raw is not None:
                self._copy.keep([fetched])
                entry = page_entry(hashlib.sha256(fetched.raw).digest(), len(fetched.raw), fetched.modified_ns)
                rows[filename] = Row(fetched.tag, entry)
                rows = dict(sorted(rows.items(), key=lambda item: item[0][:-3]))
            self._take(replace(held, rows=rows))


Report = Callable[[int, int], None]
_New = tuple[dict[str, Row], tuple[str, ...], tuple[Skipped, ...], bool | None]


def _readable(place: str) -> str:
    """Return the last part of an address that can stand in a file name; it is the field's name."""
    without = place.partition("://")[2] or place
    if place.startswith("git+"):  # the commit is no part of the name
        without = without.rpartition("@")[0] or without
    parts = [part for part in without.split("/") if part]
    chosen = re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1] if parts else "").strip(".-")
    return chosen[:60] or "field"


@contextmanager
def fetching(source: object, progress: bool | Report) -> Iterator[None]:
    """Show a bar in a ``with`` statement while pages of *source* come from elsewhere or go there.

    Args:
        source: Where the pages are; for a directory or an archive nothing is shown.
        progress: Whether to; or a function of pages done and pages to do.
    """
    if not isinstance(source, StorePages):
        yield
        return
    with ProgressBar(progress, "fetching") as report, source.reporting(report):
        yield


def source_notes(source: object) -> list[str]:
    """Return the notes of a source that has any; see ``StorePages.notes``."""
    return source.notes() if isinstance(source, StorePages) else []
