"""What stands in the file of a history and how it is asked for: steps, changed files, contents; and pruning.

Every function works within a transaction that ``journal.py`` has opened.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memoryfield.errors import HistoryError

PENDING, DONE, UNDONE, ROLLED_BACK, HALF_DONE = "pending", "done", "undone", "rolled back", "half done"
_PLAIN, _ZLIB = 0, 1


class Row(NamedTuple):
    """A step as the file holds it.

    Attributes:
        id: Number of the step; a later one has a higher number.
        time_ns: When it was begun, in nanoseconds since 1970.
        verb: What was done, in one word.
        note: What else was said of it.
        who: Who did it.
        state: ``pending``, ``done``, ``undone``, ``rolled back`` or ``half done``.
        target: The step that was undone or redone; None for other verbs.
    """

    id: int
    time_ns: int
    verb: str
    note: str
    who: str
    state: str
    target: int | None


class ChangeRow(NamedTuple):
    """One file of a step as the file holds it.

    Attributes:
        filename: The file.
        before: sha256 of its content before; None where there was no such file.
        after: sha256 of its content after; None where it is deleted.
        mode: Permission bits before.
        modified_ns: Modification time before.
        new_mode: Permission bits asked for.
        new_modified_ns: Modification time asked for.
        strayed: The step that had touched the file last, where another program changed it since; else None.
    """

    filename: str
    before: bytes | None
    after: bytes | None
    mode: int | None
    modified_ns: int | None
    new_mode: int | None
    new_modified_ns: int | None
    strayed: int | None


@dataclass(frozen=True)
class Pruned:
    """What a pruning took away.

    Attributes:
        steps: How many steps.
        contents: How many contents that no other step needs.
        bytes: Size of those contents in the file.
    """

    steps: int = 0
    contents: int = 0
    bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.steps + other.steps, self.contents + other.contents, self.bytes + other.bytes)


_STEP = "SELECT id, time_ns, verb, note, who, state, target FROM steps"


def pending(connection: sqlite3.Connection) -> list[Row]:
    """Return the steps that were begun and not finished, the newest first."""
    return [Row(*row) for row in connection.execute(f"{_STEP} WHERE state = ? ORDER BY id DESC", (PENDING,))]


def step_row(connection: sqlite3.Connection, step: int) -> Row | None:
    """Return one step."""
    row = connection.execute(f"{_STEP} WHERE id = ?", (step,)).fetchone()
    return None if row is None else Row(*row)


def last_undoable(connection: sqlite3.Connection) -> Row | None:
    """Return the last step that stands and is no undo or redo."""
    found = connection.execute(f"{_STEP} WHERE state = ? AND target IS NULL ORDER BY id DESC LIMIT 1", (DONE,))
    row = found.fetchone()
    return None if row is None else Row(*row)


def standing_undo(connection: sqlite3.Connection, target: int | None = None) -> Row | None:
    """Return the last undo that stands, of one step or of any."""
    found = connection.execute(
        f"{_STEP} WHERE state = ? AND verb = 'undo' AND (? IS NULL OR target = ?) ORDER BY id DESC LIMIT 1",
        (DONE, target, target),
    ).fetchone()
    return None if found is None else Row(*found)


def step_rows(connection: sqlite3.Connection, filename: str | None, limit: int | None) -> list[Row]:
    """Return steps, the newest first: all, or those of a file under this and its earlier names."""
    most = -1 if limit is None else limit
    if filename is None:
        return [Row(*row) for row in connection.execute(f"{_STEP} ORDER BY id DESC LIMIT ?", (most,))]
    ids: list[int] = []
    name, below = filename, 2**62
    while most < 0 or len(ids) < most:
        found = connection.execute(
            "SELECT step, verb, before, after FROM changes JOIN steps ON id = step"
            " WHERE filename = ? AND step < ? ORDER BY step DESC LIMIT 1",
            (name, below),
        ).fetchone()
        if found is None:
            break
        below, verb, before, after = found
        ids.append(below)
        if verb == "rename" and before is None and after is not None:
            (name,) = connection.execute(
                "SELECT filename FROM changes WHERE step = ? AND after IS NULL LIMIT 1", (below,)
            ).fetchone() or (name,)
    rows = (step_row(connection, number) for number in ids)
    return [row for row in rows if row is not None]


def change_rows(connection: sqlite3.Connection, step: int) -> list[ChangeRow]:
    """Return the files of a step, sorted by filename."""
    found = connection.execute(
        "SELECT filename, before, after, mode, modified_ns, new_mode, new_modified_ns, strayed"
        " FROM changes WHERE step = ? ORDER BY filename",
        (step,),
    )
    return [ChangeRow(*row) for row in found]


def latest(connection: sqlite3.Connection, filename: str, below: int) -> tuple[int, bytes | None] | None:
    """Return the last step before *below* that changed a file, with the sha256 that it left."""
    found = connection.execute(
        "SELECT step, after FROM changes JOIN steps ON id = step"
        " WHERE filename = ? AND step < ? AND state IN (?, ?) ORDER BY step DESC LIMIT 1",
        (filename, below, DONE, UNDONE),
    ).fetchone()
    return None if found is None else (found[0], found[1])


def later_steps(connection: sqlite3.Connection, filename: str, step: int) -> list[Row]:
    """Return the steps after *step* that stand and changed a file, the oldest first; undone ones left out."""
    found = connection.execute(
        f"{_STEP} WHERE id > ? AND state = ? AND verb NOT IN ('undo', 'redo')"
        " AND id IN (SELECT step FROM changes WHERE filename = ?) ORDER BY id",
        (step, DONE, filename),
    )
    return [Row(*row) for row in found]


def results(connection: sqlite3.Connection, filename: str) -> list[tuple[int, bytes | None]]:
    """Return (step, sha256 that it left) for every step that was made and changed a file, the oldest first."""
    found = connection.execute(
        "SELECT step, after FROM changes JOIN steps ON id = step WHERE filename = ? AND state IN (?, ?) ORDER BY step",
        (filename, DONE, UNDONE),
    )
    return [(step, after) for step, after in found]


# What two places held after a transfer


def agreed(connection: sqlite3.Connection, place: str) -> list[tuple[str, bytes, int | None]]:
    """Return filename, sha256, and when it was deleted (None: it was not), of what another place held too."""
    found = connection.execute("SELECT filename, sha256, gone_ns FROM agreed WHERE place = ?", (place,))
    return [(filename, sha256, gone_ns) for filename, sha256, gone_ns in found]


def agree(connection: sqlite3.Connection, place: str, pages: Mapping[str, bytes], now_ns: int, oldest_ns: int) -> None:
    """Keep what another place holds too; what it held before and holds no more gets a tombstone.

    Args:
        connection: An open transaction.
        place: The other place.
        pages: sha256 by filename.
        now_ns: The present, in nanoseconds since 1970.
        oldest_ns: Tombstones from before go.
    """
    before = {filename: gone_ns for filename, _, gone_ns in agreed(connection, place)}
    gone = [name for name, gone_ns in before.items() if gone_ns is None and name not in pages]
    connection.executemany(
        "UPDATE agreed SET gone_ns = ? WHERE place = ? AND filename = ?", [(now_ns, place, name) for name in gone]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO agreed VALUES (?, ?, ?, NULL)", [(place, *item) for item in pages.items()]
    )
    connection.execute("DELETE FROM agreed WHERE gone_ns < ?", (oldest_ns,))


# Contents


def keep(connection: sqlite3.Connection, raw: bytes | None) -> bytes | None:
    """Keep a content, where it is not there yet, and return its sha256; None for None."""
    if raw is None:
        return None
    digest = hashlib.sha256(raw).digest()
    if connection.execute("SELECT 1 FROM contents WHERE sha256 = ?", (digest,)).fetchone() is None:
        packed = zlib.compress(raw, 6)
        codec = _ZLIB if len(packed) < len(raw) else _PLAIN
        connection.execute(
            "INSERT INTO contents VALUES (?, ?, ?, ?)", (digest, len(raw), codec, packed if codec == _ZLIB else raw)
        )
    return digest


def content(connection: sqlite3.Connection, digest: bytes) -> bytes:
    """Return a content by its sha256.

    Raises:
        HistoryError: It is not there, or is not what it was.
    """
    found = connection.execute("SELECT size, codec, packed FROM contents WHERE sha256 = ?", (digest,)).fetchone()
    if found is None:
        raise HistoryError(f"the journal does not hold the content {digest.hex()[:12]} any more")
    size, codec, packed = found
    try:
        raw = zlib.decompressobj().decompress(packed, max(size, 1)) if codec == _ZLIB else bytes(packed)
    except (zlib.error, TypeError) as error:
        raise HistoryError(f"the content {digest.hex()[:12]} in the journal is damaged: {error}") from error
    if hashlib.sha256(raw).digest() != digest:
        raise HistoryError(f"the content {digest.hex()[:12]} in the journal is damaged: it has another sha256")
    return raw


# Pruning


def prune(
    connection: sqlite3.Connection, before_ns: int | None, keep_bytes: int | None, *, automatic: bool = False
) -> Pruned:
    """Forget the oldest steps: those begun before a time, and more until the file is within a size.

    Args:
        connection: An open transaction.
        before_ns: Nanoseconds since 1970.
        keep_bytes: Largest size in bytes.
        automatic: Count it in the file, so that a reader sees that steps are missing.
    """
    total = Pruned()
    while True:
        found = connection.execute(
            "SELECT id, time_ns FROM steps WHERE state != ? ORDER BY id LIMIT 1", (PENDING,)
        ).fetchone()
        if found is None:
            break
        too_old = before_ns is not None and found[1] < before_ns
        if not too_old and (keep_bytes is None or used_bytes(connection) <= keep_bytes):
            break
        total += drop(connection, found[0])
    if automatic and total.steps:
        for key, number in (("pruned_steps", total.steps), ("pruned_bytes", total.bytes)):
            connection.execute("INSERT OR IGNORE INTO about VALUES (?, '0')", (key,))
            connection.execute("UPDATE about SET value = CAST(value AS INTEGER) + ? WHERE key = ?", (number, key))
    return total


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of what the file holds, without the space that is free in it."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def drop(connection: sqlite3.Connection, step: int) -> Pruned:
    """Forget a step, with the contents that no other one needs."""
    digests = {digest for row in change_rows(connection, step) for digest in row[1:3] if digest is not None}
    connection.execute("DELETE FROM changes WHERE step = ?", (step,))
    connection.execute("DELETE FROM steps WHERE id = ?", (step,))
    contents = size = 0
    for digest in digests:
        needed = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM changes WHERE before = ?) OR EXISTS (SELECT 1 FROM changes WHERE after = ?)",
            (digest, digest),
        ).fetchone()
        if not needed[0]:
            found = connection.execute("SELECT length(packed) FROM contents WHERE sha256 = ?", (digest,)).fetchone()
            connection.execute("DELETE FROM contents WHERE sha256 = ?", (digest,))
            contents += found is not None
            size += found[0] if found is not None else 0
    return Pruned(1, contents, size)


def about(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what the file says of itself: the field, and what was pruned by itself."""
    return {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM about")}
