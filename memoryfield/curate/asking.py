"""Steps read from the journal: as values, as diffs, and whether git has committed what they did."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memoryfield.curate import journalrows as rows
from memoryfield.curate.gitstate import committed_objects, is_object
from memoryfield.curate.journalrows import DONE, UNDONE, ChangeRow, Row
from memoryfield.curate.steps import PageChange, Step
from memoryfield.curate.textdiff import unified_diff
from memoryfield.errors import HistoryError, PageNotFound
from memoryfield.format.dates import moment_of
from memoryfield.format.directory import PageDirectory


def chosen(connection: sqlite3.Connection, step: int | Step) -> Row:
    """Return a step that a caller named.

    Raises:
        HistoryError: There is no such step.
    """
    number: Any = step.id if isinstance(step, Step) else step  # a notebook may hand in anything
    is_number = isinstance(number, int) and abs(number) < 2**63  # SQLite has no larger ones
    row = rows.step_row(connection, number) if is_number else None
    if row is None:
        raise HistoryError(f"there is no step {number}: it never was, or it was pruned")
    return row


def newest(connection: sqlite3.Connection) -> Row:
    """Return the last step.

    Raises:
        HistoryError: There is none.
    """
    found = rows.step_rows(connection, None, 1)
    if not found:
        raise HistoryError("the history holds no step")
    return found[0]


def step_value(connection: sqlite3.Connection, row: Row) -> Step:
    """Return a step as a value."""
    changes = tuple(
        PageChange(
            item.filename,
            None if item.before is None else item.before.hex(),
            None if item.after is None else item.after.hex(),
            item.strayed,
        )
        for item in rows.change_rows(connection, row.id)
    )
    # A clock that was far off, or a damaged number: the step itself can still be shown, undone and redone.
    moment = moment_of(row.time_ns / 1e9) or datetime.fromtimestamp(0, tz=UTC)
    return Step(row.id, moment, row.verb, row.note, row.who, row.state, row.target, changes)


def diff_of(connection: sqlite3.Connection, row: Row) -> str:
    """Return what a step changed as unified diffs; a page that got another name is shown as renamed.

    Raises:
        HistoryError: A content is damaged.
    """
    changes = rows.change_rows(connection, row.id)
    new_names = _renames(changes)
    parts = []
    for change in changes:
        if change in new_names.values():
            continue  # shown with the page that it was
        new = new_names.get(change.filename, change)
        before, after = (
            None if digest is None else rows.content(connection, digest) for digest in (change.before, new.after)
        )
        parts.append(unified_diff(change.filename, before, after, new.filename))
    return "".join(parts)


def _renames(changes: Sequence[ChangeRow]) -> dict[str, ChangeRow]:
    """Return the new pages that deleted ones became, by old filename: of equal content, or the only ones."""
    gone = [change for change in changes if change.after is None]
    new = [change for change in changes if change.before is None]
    if len(gone) == len(new) == 1:
        return {gone[0].filename: new[0]}
    by_content = {change.after: change for change in new}
    found: dict[str, ChangeRow] = {}
    for change in gone:
        match = by_content.pop(change.before, None)
        if match is not None:
            found[change.filename] = match
    return found


def with_git(connection: sqlite3.Connection, directory: PageDirectory, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with ``committed`` set, where the field is in a git work tree.

    A page's steps are committed up to the last one whose result the last commit holds, and all of them where it holds
    the page as it is now.
    """
    objects = committed_objects(directory.path)
    if objects is None:
        return list(steps)
    filenames = {change.filename for step in steps for change in step.changes}
    last = {name: _last_committed(connection, directory, name, objects.get(name)) for name in filenames}
    return [
        replace(step, committed=all(step.id <= last[change.filename] for change in step.changes))
        if step.state in (DONE, UNDONE)
        else step
        for step in steps
    ]


def _last_committed(connection: sqlite3.Connection, directory: PageDirectory, filename: str, name: str | None) -> float:
    """Return the last step whose result for a file git has committed; infinity where all is committed.

    Args:
        connection: The journal.
        directory: The field.
        filename: The file.
        name: What the last commit calls its content; None where it does not hold the file.
    """
    try:
        now: bytes | None = directory.read_bytes(filename)
    except PageNotFound:
        now = None
    if _is_committed(now, name):
        return float("inf")
    for step, after in reversed(rows.results(connection, filename)):
        with contextlib.suppress(HistoryError):
            if _is_committed(None if after is None else rows.content(connection, after), name):
                return step
    return 0


def _is_committed(raw: bytes | None, name: str | None) -> bool:
    return raw is None if name is None else raw is not None and is_object(raw, name)
