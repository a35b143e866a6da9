"""Putting pages back: what a killed process or an error left half done, and what somebody undoes or redoes.

Every function works while its caller holds the field's lock. A page is only written where it is exactly what a step
left or found, so that nobody's later work is lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from memoryfield.curate import journalrows as rows
from memoryfield.curate.ground import Ground, OpenGround
from memoryfield.curate.journal import JournalFile
from memoryfield.curate.journalrows import DONE, HALF_DONE, ROLLED_BACK, ChangeRow, Row
from memoryfield.errors import HistoryError, PageChanged, PageError
from memoryfield.format.changes import Change
from memoryfield.format.findings import shown_name
from memoryfield.format.journaling import Journal


class _Seen(NamedTuple):
    """The files of a step as they are now.

    Attributes:
        before: Those that are as before the step.
        after: Those that are as after it.
        strays: Those that are neither.
    """

    before: list[ChangeRow]
    after: list[ChangeRow]
    strays: list[ChangeRow]


def mend(file: JournalFile, ground: Ground) -> list[int]:
    """Finish or take back every step that a killed process left pending, and return their ids, the newest first.

    Raises:
        HistoryError: A page cannot be put right now.
        ReadOnlyField: The field cannot be written.
    """
    if not file.exists():
        return []
    with file.reading() as connection:
        pending = rows.pending(connection)
    for row in pending:
        state, remark = _mended(file, ground, row)
        file.settle(row.id, state, remark)
    return [row.id for row in pending]


def take_back(file: JournalFile, ground: Ground, step: int) -> None:
    """Give the pages that a step has changed already what they had before; leave those that somebody changed since."""
    with ground.opened() as place:
        with file.reading() as connection:
            seen = _look(place, rows.change_rows(connection, step))
            changes = [_back(connection, change) for change in seen.after]
        place.apply(changes)


def reverse(file: JournalFile, ground: Ground, row: Row, journal: Journal, *, forward: bool) -> None:
    """Undo a step, or make it again, as a step of its own.

    Args:
        file: The journal.
        ground: The directory or the store.
        row: The step.
        journal: What keeps the new step.
        forward: Make it again.

    Raises:
        PageChanged: A page is not what the step left (or found, to make it again); nothing was written.
    """
    verb = "redo" if forward else "undo"
    with ground.opened() as place:
        with file.reading() as connection:
            all_changes = rows.change_rows(connection, row.id)
            seen = _look(place, all_changes)
            wrong = [item for item in all_changes if item not in (seen.before if forward else seen.after)]
            if wrong:
                raise PageChanged(_refusal(connection, row, wrong, verb))
            make = _on if forward else _back
            changes = [make(connection, change) for change in all_changes]
        place.apply(changes, journal, verb, f"{row.verb}{f': {row.note}' if row.note else ''}")


def _mended(file: JournalFile, ground: Ground, row: Row) -> tuple[str, str]:
    """Put the pages of a pending step right; return its state and what to say of it."""
    with ground.opened() as place:
        with file.reading() as connection:
            seen = _look(place, rows.change_rows(connection, row.id))
            forward = not seen.strays
            try:
                if not (seen.before and seen.after):
                    changes = []
                elif forward:
                    changes = [_on(connection, change) for change in seen.before]
                else:
                    changes = [_back(connection, change) for change in seen.after]
            except HistoryError as error:  # nothing that is kept could be worse than refusing all writes for ever
                return HALF_DONE, f"a crash left it half done, and it stays so: {error}"
        try:
            place.apply(changes)
        except PageError as error:
            raise HistoryError(
                f"step {row.id} ({row.verb}) was left half done by a crash and cannot be put right: {error}"
            ) from error
    strays = f"; changed by another program: {_named(seen.strays)}" if seen.strays else ""
    if not seen.before:
        return DONE, strays.removeprefix("; ")
    if not seen.after:
        return ROLLED_BACK, f"stopped by a crash before a page was changed{strays}"
    if forward:
        return DONE, "finished after a crash"
    return ROLLED_BACK, f"taken back after a crash{strays}"


def _look(place: OpenGround, changes: Sequence[ChangeRow]) -> _Seen:
    digests = place.digests([change.filename for change in changes])
    seen = _Seen([], [], [])
    for change in changes:
        now = digests[change.filename]
        part = seen.before if now == change.before else seen.after if now == change.after else seen.strays
        part.append(change)
    return seen


def _back(connection: sqlite3.Connection, change: ChangeRow) -> Change:
    raw = None if change.before is None else rows.content(connection, change.before)
    if change.after is None:
        return Change(change.filename, raw, None, True, change.modified_ns, change.mode, as_before=True)
    return Change(change.filename, raw, change.after.hex(), as_before=True)


def _on(connection: sqlite3.Connection, change: ChangeRow) -> Change:
    raw = None if change.after is None else rows.content(connection, change.after)
    if change.before is None:
        return Change(change.filename, raw, None, True, change.new_modified_ns, change.new_mode, as_before=True)
    return Change(change.filename, raw, change.before.hex(), as_before=True, modified_ns=change.new_modified_ns)


def _refusal(connection: sqlite3.Connection, row: Row, wrong: Sequence[ChangeRow], verb: str) -> str:
    """Return why a step cannot be undone or redone: which pages changed since, and by which steps."""
    parts, by_steps = [], True
    for change in wrong[:5]:
        later = rows.later_steps(connection, change.filename, row.id)
        name = shown_name(change.filename)
        if later:
            steps = ", ".join(f"{step.id} ({step.verb})" for step in later[:5])
            steps += f" and {len(later) - 5} more" if len(later) > 5 else ""
            parts.append(f"{name} was changed by the later {'step' if len(later) == 1 else 'steps'} {steps}")
        else:
            by_steps = False
            parts.append(f"{name} was changed since by another program")
    if len(wrong) > 5:
        parts.append(f"{len(wrong) - 5} more pages")
    remedy = "undo the later steps first" if by_steps else "look at the pages first"
    return (
        f"step {row.id} ({row.verb}) cannot be {'undone' if verb == 'undo' else 'redone'} without losing later "
        f"changes: {'; '.join(parts)}. Nothing was written: {remedy}"
    )


def _named(changes: Sequence[ChangeRow]) -> str:
    shown = ", ".join(shown_name(change.filename) for change in changes[:5])
    return shown if len(changes) <= 5 else f"{shown} and {len(changes) - 5} more"
