"""The history of a field: every change is a step that a crash cannot leave half done, and that can be undone.

A step is in the journal, durably, before its first page changes. What a killed process left half done is finished where
that overwrites nobody's work, else taken back, by whoever takes the field's lock next. An undo is a step of its own.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memoryfield.curate import journalrows as rows
from memoryfield.curate.asking import chosen, diff_of, newest, step_value, with_git
from memoryfield.curate.ground import ground_of
from memoryfield.curate.journal import LARGEST, OLDEST, JournalFile, journal_path
from memoryfield.curate.journalrows import DONE, UNDONE, Row
from memoryfield.curate.restore import mend, reverse, take_back
from memoryfield.curate.steps import PruneReport, Step, Steps
from memoryfield.errors import DamagedJournal, FieldError, HistoryError, MemoryfieldError, QueryError
from memoryfield.format.directory import PageDirectory
from memoryfield.format.journaling import Recorded
from memoryfield.format.lock import LOCK_TIMEOUT, field_lock
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.pages import PageSource
from memoryfield.stores.pages import StorePages

_MOST_DAYS = 100_000  # nothing in a journal is older

__all__ = ["History", "PruneReport", "Step", "Steps", "history_of", "keep_history"]


def keep_history(directory: PageDirectory | StorePages, *, who: str | None = None) -> History:
    """Keep every change that is made through *directory* from now on, and mend what a crash left half done.

    Args:
        directory: The field; in a store nothing is mended before its lock is taken, since nothing is asked of it yet.
        who: Who makes the changes; by default the name of the user.

    Returns:
        The history. Opening a field never fails for its history: what cannot be mended now, since another process is
        writing in the field or it is read only, is mended when its lock is taken next.
    """
    history = History(directory, who=who)
    directory.journal = history
    if isinstance(directory, PageDirectory):
        with contextlib.suppress(MemoryfieldError):
            history.recover(timeout=1.0)
    return history


def history_of(source: PageSource, *, who: str | None = None) -> History | None:
    """Keep the history of a field that can be written; None for one that never can."""
    if isinstance(source, PageDirectory) or (isinstance(source, StorePages) and not source.store.read_only):
        return keep_history(source, who=who)
    return None


class History:
    """The steps of one field.

    It can be used from several threads and processes; no connection is kept.

    Args:
        directory: The field.
        who: Who makes the changes; by default the name of the user.
        largest: Size in bytes that the journal is kept within: the oldest steps go.
        oldest: Age at which a step goes.
    """

    def __init__(
        self,
        directory: PageDirectory | StorePages,
        *,
        who: str | None = None,
        largest: int = LARGEST,
        oldest: timedelta = timedelta(microseconds=OLDEST // 1000),
    ) -> None:
        self.directory = directory
        self.who = who or _user()
        self.largest = largest
        self.oldest = oldest
        self._ground = ground_of(directory)
        self._file = JournalFile(self._ground.journal, directory.path)

    @property
    def path(self) -> Path:
        """The journal's file."""
        return self._file.path

    def __repr__(self) -> str:
        return f"<History of {self._ground.place!r}: {str(self.path)!r}>"

    # What the page directory calls, with the field's lock held

    def ready(self) -> None:
        """Mend what a crash left half done. A damaged journal is left for ``begin`` to set aside."""
        with contextlib.suppress(DamagedJournal):
            mend(self._file, self._ground)

    def begin(self, verb: str, changes: Sequence[Recorded], note: str, target: int | None = None) -> int:
        """Keep a set of changes before it is made and return the id of its step.

        Args:
            verb: What is done, in one word.
            changes: The files.
            note: What else is said of it.
            target: The step that is undone or redone.
        """
        age = int(self.oldest.total_seconds() * 1e9)
        for attempt in (1, 2):
            try:
                return self._file.begin(verb, changes, note, self.who, target, self.largest, age)
            except DamagedJournal:
                # Pages matter more than their history: the damaged file is kept, and told of in ``steps``.
                if attempt == 2 or target is not None or self._file.set_aside() is None:
                    raise
        raise AssertionError("not reached")

    def done(self, token: int) -> None:
        """Note that a step was made. Where even that fails, the next look at the field finds that it was."""
        with contextlib.suppress(MemoryfieldError):
            self._file.settle(token, DONE)

    def failed(self, token: int) -> None:
        """Take back what a step did before it failed, and forget it."""
        try:
            take_back(self._file, self._ground, token)
            self._file.drop(token)
        except (MemoryfieldError, OSError) as error:
            raise HistoryError(
                f"step {token} is half done and cannot be taken back now ({error}); "
                "that is tried again whenever the field is opened or written"
            ) from error

    # What transfers leave

    def agreed(self, place: str) -> dict[str, tuple[bytes, int | None]]:
        """Return what this field and another place both held after the last transfer; see ``Agreements``."""
        if not self._file.exists():
            return {}
        with self._file.reading() as connection:
            return {name: (sha256, gone_ns) for name, sha256, gone_ns in rows.agreed(connection, place)}

    def agree(self, place: str, pages: Mapping[str, bytes]) -> None:
        """Keep what this field and another place both hold now; see ``Agreements``."""
        now = time.time_ns()
        oldest = now - int(self.oldest.total_seconds() * 1e9)
        for attempt in (1, 2):
            try:
                with self._file.writing() as connection:
                    rows.agree(connection, place, pages, now, oldest)
                return
            except DamagedJournal:
                if attempt == 2:
                    raise
                with self._ground.lock(LOCK_TIMEOUT):
                    self._file.set_aside()

    # Looking

    def steps(self, page: str | None = None, limit: int | None = None, *, git: bool = True) -> Steps:
        """Return the steps, the newest first.

        Args:
            page: Only those that changed this page, also under the names that it had before a rename.
            limit: At most so many.
            git: Say of each step whether git has committed it, where the field is in a git work tree.

        Raises:
            DamagedJournal: The journal cannot be read; the next change begins a new one.
            NewerSchema: A newer version of this library wrote it.
        """
        notes: list[str] = []
        try:
            self.recover(timeout=1.0)
        except (FieldError, HistoryError) as error:
            notes.append(f"a step is pending: {error}")
        found: list[Step] = []
        if self._file.exists():
            filename = None if page is None else _filename(page)
            with self._file.reading() as connection:
                found = [step_value(connection, row) for row in rows.step_rows(connection, filename, limit)]
                said = rows.about(connection)
                if git and found and isinstance(self.directory, PageDirectory):
                    found = with_git(connection, self.directory, found)
            if "pruned_steps" in said:
                size = int(said.get("pruned_bytes", "0"))
                notes.append(
                    f"{int(said['pruned_steps']):,} older steps ({size:,} bytes) outgrew the limits and were removed"
                )
        else:
            notes += [f"a journal of {place} is there; history.adopt takes it over" for place in self.elsewhere()]
        notes += [f"a damaged journal was set aside: {path}" for path in self._file.aside()]
        return Steps(tuple(found), self.path, tuple(notes), page)

    def step(self, step: int | Step) -> Step:
        """Return one step as the journal holds it now.

        Raises:
            HistoryError: There is no such step.
        """
        with self._reading() as connection:
            return step_value(connection, chosen(connection, step))

    def content(self, step: int | Step, page: str, *, before: bool = False) -> bytes | None:
        """Return the bytes of a page after a step, or before it; None where there was no page.

        Raises:
            HistoryError: There is no such step, it did not change that page, or the content is damaged.
        """
        with self._reading() as connection:
            row = chosen(connection, step)
            for change in rows.change_rows(connection, row.id):
                if change.filename in (page, _filename(page)):
                    digest = change.before if before else change.after
                    return None if digest is None else rows.content(connection, digest)
        raise HistoryError(f"step {row.id} did not change a page {page!r}")

    def diff(self, step: int | Step | None = None) -> str:
        """Return what a step changed as unified diffs; by default the last step.

        Raises:
            HistoryError: There is no such step, or a content is damaged.
        """
        with self._reading() as connection:
            row = newest(connection) if step is None else chosen(connection, step)
            return diff_of(connection, row)

    # Undoing

    def undo(self, step: int | Step | None = None) -> Step:
        """Give every page of a step the bytes that it had before, and return the step that did so.

        Args:
            step: The step; by default the last one that stands. To undo an undo is the same as ``redo``.

        Raises:
            PageChanged: A later change would be lost; the message names pages and steps. Nothing was written.
            HistoryError: There is nothing to undo, or the step does not stand.
            ReadOnlyField: The field cannot be written.
        """
        with self._locked():
            with self._reading() as connection:
                row = rows.last_undoable(connection) if step is None else chosen(connection, step)
            if row is None:
                raise HistoryError(f"there is nothing to undo in {self._ground.place}")
            if row.target is not None and row.state == DONE:
                return self.redo(row.target) if row.verb == "undo" else self.undo(row.target)
            if row.state != DONE:
                raise HistoryError(f"step {row.id} ({row.verb}) cannot be undone: it is {row.state}")
            return self._reverse(row, forward=False)

    def redo(self, step: int | Step | None = None) -> Step:
        """Make a step again that was undone, and return the step that did so.

        Args:
            step: The step; by default the one that was undone last.

        Raises:
            PageChanged: A later change would be lost; the message names pages and steps. Nothing was written.
            HistoryError: There is nothing to redo, or the step was not undone.
            ReadOnlyField: The field cannot be written.
        """
        with self._locked():
            with self._reading() as connection:
                if step is None:
                    undo = rows.standing_undo(connection)
                    if undo is None or undo.target is None:
                        raise HistoryError(f"there is nothing to redo in {self._ground.place}")
                    step = undo.target
                row = chosen(connection, step)
            if row.target is not None:
                return self.redo(row.target)
            if row.state != UNDONE:
                raise HistoryError(f"step {row.id} ({row.verb}) cannot be redone: it is {row.state}")
            return self._reverse(row, forward=True)

    def recover(self, timeout: float = LOCK_TIMEOUT) -> tuple[Step, ...]:
        """Finish or take back what a killed process left half done, and return those steps.

        A step is finished where each of its pages is as it was before or after; where another program has changed one
        of them since, the other pages of a step that is half done are taken back, and that page is left alone.

        Args:
            timeout: Seconds to wait for another writer.

        Raises:
            FieldLocked: Another process is writing for too long; then the step may be its own.
            ReadOnlyField: The field cannot be written.
        """
        if not self._file.exists():
            return ()
        with self._file.reading() as connection:
            if not rows.pending(connection):
                return ()
        with self._ground.lock(timeout):
            mended = mend(self._file, self._ground)
        with self._reading() as connection:
            return tuple(step_value(connection, chosen(connection, number)) for number in mended)

    # Keeping house

    def prune(
        self, older_than: float | timedelta | datetime | None = None, *, keep_bytes: int | None = None
    ) -> PruneReport:
        """Forget the oldest steps for good, and give their space back to the disk.

        Args:
            older_than: Days, an age, or a moment: steps from before it go; 0 forgets all.
            keep_bytes: Size in bytes for the journal: the oldest steps go until it is within.
                With neither argument the limits of this history hold.

        Raises:
            HistoryError: The journal cannot be written.
        """
        if older_than is None and keep_bytes is None:
            older_than, keep_bytes = self.oldest, self.largest
        moment = _moment_ns(older_than)
        if not self._file.exists():
            return PruneReport(0, 0, 0, 0, 0, self.path)
        with self._locked():
            with self._file.writing() as connection:
                gone = rows.prune(connection, moment, keep_bytes)
                (kept,) = connection.execute("SELECT count(*) FROM steps").fetchone()
            size = self._file.compact()
        return PruneReport(gone.steps, gone.contents, gone.bytes, kept, size, self.path)

    def elsewhere(self) -> list[Path]:
        """Return fields of this one's name that have a journal and are gone: it may be this field, moved."""
        found: list[Path] = []
        if isinstance(self.directory, StorePages):
            return found
        beginning = self.path.parent.name.rpartition("-")[0]
        for path in sorted(self.path.parent.parent.glob(f"{beginning}-*/{self.path.name}")):
            if path == self.path:
                continue
            with contextlib.suppress(MemoryfieldError), JournalFile(path, path).reading() as connection:
                place = Path(rows.about(connection).get("field", ""))
                if place.name == self.directory.path.name and not os.path.lexists(place):
                    found.append(place)
        return found

    def adopt(self, old: str | os.PathLike[str]) -> Steps:
        """Take over the journal of a field that stood at *old* and was moved here, and return its steps.

        Args:
            old: Where the directory was.

        Raises:
            HistoryError: There is no such journal, the old directory is still there, or this field has steps already.
        """
        if isinstance(self.directory, StorePages):
            raise HistoryError(f"{self._ground.place} is an address: only a directory is moved with its history")
        place = Path(os.path.abspath(Path(old).expanduser()))
        source = journal_path(place)
        if os.path.lexists(place):
            raise HistoryError(f"{place} is still there and keeps its history; adopt is for a field that was moved")
        if not source.is_file():
            raise HistoryError(f"there is no journal of {place} (looked for {source})")
        with field_lock(place), self._locked():
            if self._file.exists():
                raise HistoryError(f"{self.directory.path} has a history already, which would be lost: {self.path}")
            self._file.receive(source)
        return self.steps()

    # Within the lock

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._ground.lock(LOCK_TIMEOUT):
            mend(self._file, self._ground)
            yield

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self._file.exists():
            raise HistoryError(f"{self._ground.place} has no history yet: no change was made through this library")
        with self._file.reading() as connection:
            yield connection

    def _reverse(self, row: Row, *, forward: bool) -> Step:
        keeper = _Keeper(self, row.id)
        reverse(self._file, self._ground, row, keeper, forward=forward)
        return self.step(keeper.token)


@dataclass
class _Keeper:
    """Keeps the step that undoes or redoes another one."""

    history: History
    target: int
    token: int = 0

    def ready(self) -> None:
        self.history.ready()

    def begin(self, verb: str, changes: Sequence[Recorded], note: str) -> int:
        self.token = self.history.begin(verb, changes, note, self.target)
        return self.token

    def done(self, token: int) -> None:
        self.history.done(token)

    def failed(self, token: int) -> None:
        self.history.failed(token)


def _filename(page: str) -> str:
    return page if page.lower().endswith(PAGE_SUFFIX) else page + PAGE_SUFFIX


def _moment_ns(older_than: float | timedelta | datetime | None) -> int | None:
    if older_than is None:
        return None
    if isinstance(older_than, datetime):
        return int(older_than.timestamp() * 1e9)
    days = older_than / timedelta(days=1) if isinstance(older_than, timedelta) else older_than
    if not 0 <= days < _MOST_DAYS:  # nor NaN
        raise QueryError(f"older_than is {days:g} days; an age is at least 0, and below {_MOST_DAYS:,}")
    return time.time_ns() - int(days * 86400e9)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no such user in the system's list
        return "unknown"
