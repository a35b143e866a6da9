"""What differs between an index and a field, worked out in bulk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryfield.errors import PageNotFound
from memoryfield.format.dates import clamped_ns, moment_of
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename
from memoryfield.index.recipes import SPEC_LIMIT, cut_bytes
from memoryfield.index.store import State, storable

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Entry, Snapshot

_NO_TIME = "1970-01-01T00:00:00+00:00"  # for what no calendar has


@dataclass(frozen=True)
class Comparison:
    """What differs between an index and a field; filenames.

    Attributes:
        unchanged: The row is current.
        to_embed: The model is needed.
        copies: By filename, another one whose row is of the same content.
        touched: Only the modification time differs.
        seen: Only what we noted of the file differs.
        gone: There is a row and no page.
    """

    unchanged: list[str]
    to_embed: list[str]
    copies: dict[str, str]
    touched: list[str]
    seen: list[str]
    gone: list[str]


def compare(state: State, snapshot: Snapshot, *, retry_refused: bool = False) -> Comparison:
    """Compare what an index holds with what a field holds."""
    found = Comparison([], [], {}, [], [], [])
    known, bad, refused, modified = state.entries, state.bad, state.refused, state.modified
    holders: dict[bytes, str] | None = None
    for filename, entry in snapshot.entries.items():
        old = known.get(filename)
        if old is not None and old.sha256 == entry.sha256 and filename not in bad:
            if filename in refused:
                if retry_refused:
                    found.to_embed.append(filename)
                elif _differs(old, entry):
                    found.seen.append(filename)
                continue
            found.unchanged.append(filename)
            if modified is None:
                if old is entry or old == entry:
                    continue
                if old.mtime_ns != clamped_ns(entry.mtime_ns):
                    found.touched.append(filename)
                elif _differs(old, entry):
                    found.seen.append(filename)
            elif modified.get(filename) != modified_text(entry.mtime_ns):
                found.touched.append(filename)
            elif _differs(old, entry):
                found.seen.append(filename)
            continue
        if holders is None:
            holders = {old.sha256: name for name, old in known.items() if name not in bad and name not in refused}
        like = holders.get(entry.sha256)
        if like is not None:
            found.copies[filename] = like
        else:
            found.to_embed.append(filename)
    missing = [filename for filename in known if filename not in snapshot.entries]
    if missing:
        # Files that are there but no pages to us may be pages to another tool, which would embed them again for ever.
        others = {skipped.filename for skipped in snapshot.skipped if not is_page_filename(skipped.filename)}
        found.gone.extend(filename for filename in missing if filename not in others)
    return found


def _differs(old: Entry, now: Entry) -> bool:
    return storable(old) != storable(now)


def cut_pages(source: PageSource, snapshot: Snapshot, recipe: str, known: dict[bytes, bool]) -> tuple[str, ...]:
    """Return the names of pages that are longer than what is embedded.

    Args:
        source: The pages.
        snapshot: What the field holds.
        recipe: Which text is embedded; it is never longer than the page.
        known: Answers by sha256, kept from sync to sync.
    """
    cut = []
    for filename, entry in snapshot.entries.items():
        if entry.size <= SPEC_LIMIT:
            continue
        if entry.sha256 not in known:
            try:
                known[entry.sha256] = cut_bytes(recipe, source.read(filename)) > 0
            except PageNotFound:
                continue
        if known[entry.sha256]:
            cut.append(filename)
    return page_names(cut)


def modified_text(mtime_ns: int) -> str:
    """Return a modification time as ``pages.last_modified`` has it, by way of the float that ``os.stat`` gives."""
    seconds, nanoseconds = divmod(mtime_ns, 1_000_000_000)
    moment = moment_of(seconds + 1e-9 * nanoseconds)
    return _NO_TIME if moment is None else moment.isoformat()


def page_names(filenames: Iterable[str]) -> tuple[str, ...]:
    """Return the names of pages, sorted."""
    return tuple(sorted([filename.removesuffix(PAGE_SUFFIX) for filename in filenames]))
