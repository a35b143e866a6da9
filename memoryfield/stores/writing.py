"""Changes to the pages of a store: checked all together first, then written one by one, each on its condition."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memoryfield.errors import (
    MemoryfieldError,
    NotEditable,
    PageChanged,
    PageError,
    PageExists,
    PageNotFound,
    StoreRefused,
    StoreUnreachable,
)
from memoryfield.format.arguments import check_raw, check_sha256
from memoryfield.format.changes import Change
from memoryfield.format.files import flat
from memoryfield.format.journaling import Journal, Recorded, recorded
from memoryfield.format.names import PAGE_SUFFIX, new_page_name, page_name
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.copy import State
from memoryfield.stores.protocol import Fetched, Listed, Store

Wrote = Callable[[str, Fetched | None], None]


@dataclass(frozen=True)
class _Step:
    """One page to write (``after``) or to delete (None), and what it is now."""

    filename: str
    tag: str | None  # None: there must be none
    before: bytes | None
    after: bytes | None


def filename_of(change: Change) -> str:
    """Return the file that a change is about."""
    return flat(change.name) if change.as_before else page_name(change.name) + PAGE_SUFFIX


def apply_changes(
    store: Store,
    changes: Sequence[Change],
    state: State,
    before: Mapping[str, bytes],
    wrote: Wrote,
    journal: Journal | None = None,
    verb: str = "write",
    note: str = "",
) -> None:
    """Check and write changes; see ``StorePages.apply`` for what is raised.

    Args:
        store: The place.
        changes: What is asked.
        state: The field as it is now.
        before: Bytes, by filename, of the pages that are to change.
        wrote: Called with each page that was written or deleted.
        journal: What keeps the changes, so that they can be undone.
        verb: What is done, in one word, for the journal.
        note: What else the journal should say of it.
    """
    steps = _checked(store.place, changes, state, before)
    kept = [Recorded(step.filename, step.before, step.after) for step in steps]
    with recorded(journal, verb, kept, note):
        _write(store, sorted(steps, key=lambda step: (step.after is None, step.tag is not None)), wrote)


def _write(store: Store, order: Sequence[_Step], wrote: Wrote) -> None:
    done: list[tuple[_Step, str]] = []
    for step in order:
        try:
            tag = _do(store, step, wrote)
        except BaseException as error:
            _take_back(store, done, wrote, error)
            raise
        done.append((step, tag))


def _checked(place: str, changes: Sequence[Change], state: State, before: Mapping[str, bytes]) -> list[_Step]:
    steps: dict[str, _Step] = {}
    beside = {name.lower() for name in (*state.others, *(item.filename for item in state.skipped))}
    for change in changes:
        check_sha256(change.if_sha256)
        if change.after is not None:
            check_raw(change.after)
        filename = filename_of(change)
        if filename in steps:
            raise PageError(f"{filename} stands twice in one set of changes: give each page once")
        if change.after is not None and len(change.after) > LARGEST_PAGE:
            raise NotEditable(f"{filename} would have {len(change.after):,} bytes; at most {LARGEST_PAGE:,} are read")
        row = state.rows.get(filename)
        if row is None:
            if change.if_sha256 is not None:
                raise PageChanged(f"{filename} was deleted meanwhile; nothing was written")
            if change.after is None:
                raise PageNotFound(f"{filename} cannot be deleted: there is no such page in {place}")
            if filename in beside:
                raise NotEditable(f"{filename} in {place} is left out of the field, so it is never written")
            if not change.as_before:
                new_page_name(change.name)
            steps[filename] = _Step(filename, None, None, change.after)
            continue
        if change.absent:
            message = f"a page of the name {filename} is there already: give another name or edit that page"
            raise PageExists(message)
        raw = before[filename]
        if change.if_sha256 is not None and hashlib.sha256(raw).hexdigest() != change.if_sha256.lower():
            raise PageChanged(f"{filename} was changed since it was read; nothing was written: read it again")
        if raw != change.after:
            steps[filename] = _Step(filename, row.tag, raw, change.after)
    return list(steps.values())


def _do(store: Store, step: _Step, wrote: Wrote) -> str:
    """Do a step and return the new tag. Where the answer is lost, a look says whether it was done."""
    if step.after is None:
        assert step.tag is not None
        try:
            store.delete_if(step.filename, step.tag)
        except StoreUnreachable as error:
            if _read(store, step.filename, error).raw is not None:
                raise
        wrote(step.filename, None)
        return ""
    try:
        tag = store.write_if(step.filename, step.after, step.tag)
        found = Fetched(step.filename, step.after, tag, time.time_ns())
        if not tag:  # a server that keeps a page's uuid stores other bytes than it was sent
            found = _read(store, step.filename, None)
    except StoreUnreachable as error:
        found = _read(store, step.filename, error)
        if found.raw != step.after:
            raise
    if found.raw is None:
        raise PageChanged(f"{step.filename} was deleted by another writer right after it was written")
    wrote(step.filename, found)
    return found.tag


def _read(store: Store, filename: str, lost: StoreUnreachable | None) -> Fetched:
    """Return a page as it is in the store now."""
    try:
        for fetched in store.read_many([Listed(filename, "")]):
            if fetched.filename == filename:
                return fetched
    except StoreUnreachable as error:
        told = str(lost or error)
        message = f"{told}; whether {filename} was written is not known: read it again before writing it again"
        raise StoreUnreachable(message) from None
    raise StoreRefused(f"{store.place} does not hand over {filename}")


def _take_back(store: Store, done: Sequence[tuple[_Step, str]], wrote: Wrote, error: BaseException) -> None:
    """Undo the steps that were done, the last one first; what cannot be undone is added to *error*."""
    for step, tag in reversed(done):
        try:
            if step.before is None:
                store.delete_if(step.filename, tag)
                wrote(step.filename, None)
            else:
                again = store.write_if(step.filename, step.before, None if step.after is None else tag)
                found = Fetched(step.filename, step.before, again, time.time_ns())
                wrote(step.filename, found if again else _read(store, step.filename, None))
        except MemoryfieldError as second:
            with contextlib.suppress(AttributeError):
                error.add_note(f"{step.filename} was already written and could not be taken back: {second}")
