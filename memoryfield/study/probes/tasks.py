"""An agent's finished tasks, read from a SQLite table or from JSON lines that strangers may have filled."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoryfield.display import plain
from memoryfield.errors import QueryError, RowError
from memoryfield.format.dates import moment_of, parse_date
from memoryfield.format.normal import normalized
from memoryfield.study.rows import json_object, read_text

FINISHED = ("done", "completed", "complete", "finished", "success", "succeeded", "successful", "ok")
LONGEST_REQUEST = 100_000  # characters
LONGEST_RESULT = 500_000
MOST_TASKS = 1_000_000
# What the parts of a task are called by those who store them; the first that is there is taken.
NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "task_id", "uuid"),
    "request": ("request", "prompt", "task", "question", "input"),
    "result": ("result", "answer", "output", "response"),
    "status": ("status", "state"),
    "started": ("started", "started_at", "created", "created_at"),
    "finished": ("finished", "finished_at", "completed_at", "ended_at", "updated_at"),
}
_MILLISECONDS = 1e11  # a larger number of seconds is past the year 5138
_SQLITE = b"SQLite format 3\x00"
_LARGEST_VALUE = 16 * 2**20  # bytes


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        id: What it is called; one task each.
        request: What was asked for.
        result: What came of it.
        status: As stored.
        started: When it began, in UTC, where that is known.
        finished: When it ended.
    """

    id: str
    request: str
    result: str
    status: str = ""
    started: datetime | None = None
    finished: datetime | None = None


@dataclass(frozen=True)
class RefusedRow:
    """A row that is no task.

    Attributes:
        where: The line, or the row of the table.
        problem: Why.
    """

    where: str
    problem: str


@dataclass(frozen=True)
class ReadTasks:
    """What a source holds.

    Attributes:
        finished: Tasks that are done, in the order of their times and ids.
        unfinished: Ids of the others.
        refused: Rows that cannot be used.
    """

    finished: tuple[Task, ...]
    unfinished: tuple[str, ...]
    refused: tuple[RefusedRow, ...]


def read_tasks(
    source: str | os.PathLike[str],
    *,
    table: str = "tasks",
    columns: Mapping[str, str] | None = None,
    statuses: Sequence[str] | None = FINISHED,
) -> ReadTasks:
    """Read tasks; rows that cannot be used are listed, not raised.

    Args:
        source: A SQLite database or a file of JSON lines; its first bytes tell which.
        table: Table of the database.
        columns: What the parts of a task (``id, request, result, status, started, finished``) are called there, where
            it is none of the usual names.
        statuses: Which count as done, in any case; None for all. Without a status a task with a result is done.

    Raises:
        RowError: The source cannot be read at all, or has no column for the request.
        QueryError: *columns* names a part that there is not.
    """
    unknown = sorted(set(columns or {}) - set(NAMES))
    if unknown:
        raise QueryError(f"a task has no part {unknown[0]!r}; there are: {', '.join(NAMES)}")
    names = {part: (columns[part],) if columns and part in columns else usual for part, usual in NAMES.items()}
    done = None if statuses is None else frozenset(status.casefold() for status in statuses)
    tasks: dict[str, Task] = {}
    unfinished: dict[str, None] = {}
    refused: list[RefusedRow] = []
    rows = _database_rows(source, table, names) if _is_database(source) else _line_rows(source, refused)
    for where, row in rows:
        try:
            task = _task(row, names)
            if task.id in tasks or task.id in unfinished:
                raise QueryError(f"the id {plain(task.id, 60)!r} stands in an earlier row already")
        except QueryError as error:
            refused.append(RefusedRow(where, str(error)))
            continue
        is_done = bool(task.result) if not task.status else done is None or task.status.casefold() in done
        if is_done:
            tasks[task.id] = task
        else:
            unfinished[task.id] = None
        if len(tasks) + len(unfinished) > MOST_TASKS:
            raise RowError(f"has more than {MOST_TASKS:,} tasks", file=Path(source).name)
    ordered = sorted(tasks.values(), key=lambda task: (str(task.started or task.finished or ""), task.id))
    return ReadTasks(tuple(ordered), tuple(sorted(unfinished)), tuple(refused))


def _is_database(source: str | os.PathLike[str]) -> bool:
    try:
        place = Path(source).expanduser()
        if not place.is_file():
            return False
        with place.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


def _line_rows(source: str | os.PathLike[str], refused: list[RefusedRow]) -> Iterator[tuple[str, dict[str, Any]]]:
    name, text = read_text(source)
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            yield f"line {line}", json_object(name, line, content)
        except RowError as error:
            refused.append(RefusedRow(f"line {line}", error.problem))


def _database_rows(
    source: str | os.PathLike[str], table: str, names: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    place = Path(source).expanduser().absolute()
    try:
        # read only, and nothing that the schema of a stranger's file may want to run
        with contextlib.closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            plain_tables = [name for name, sql in found if not str(sql or "").upper().startswith("CREATE VIRTUAL")]
            if table not in plain_tables:
                shown = ", ".join(plain(name, 40) for name in plain_tables[:10]) or "none"
                raise RowError(f"has no table {table!r}; there are: {shown}", file=place.name)
            there = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
            wanted = [column for usual in names.values() for column in usual if column in there]
            if not any(column in there for column in names["request"]):
                shown = ", ".join(plain(name, 40) for name in there[:20])
                problem = f"table {table!r} has no column for the request; name it with columns=; there are: {shown}"
                raise RowError(problem, file=place.name)
            sql = f"SELECT {', '.join(map(_quoted, wanted))} FROM {_quoted(table)}"
            for number, row in enumerate(connection.execute(sql), start=1):
                yield f"row {number}", dict(zip(wanted, row, strict=True))
    except (sqlite3.Error, OverflowError, ValueError) as error:
        raise RowError(f"cannot be read as a database: {plain(str(error), 200)}", file=place.name) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _task(row: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> Task:
    part = {key: next((row[name] for name in usual if row.get(name) is not None), None) for key, usual in names.items()}
    if part["request"] is None:
        raise QueryError("there is no request")
    request = _text("the request", part["request"], LONGEST_REQUEST)
    if not request.strip():
        raise QueryError("the request is empty")
    result = "" if part["result"] is None else _text("the result", part["result"], LONGEST_RESULT)
    status = "" if part["status"] is None else _text("the status", part["status"], 200).strip()
    started, finished = _moment("started", part["started"]), _moment("finished", part["finished"])
    given = part["id"]
    if given is None or given == "":
        given = "t-" + hashlib.sha256(f"{request}\0{started}".encode()).hexdigest()[:16]
    elif isinstance(given, (bool, float)) or not isinstance(given, (str, int)):
        raise QueryError(f"the id is {plain(repr(given), 60)}; it has to be text or a whole number")
    return Task(_text("the id", str(given), 200).strip(), request, result, status, started, finished)


def _text(what: str, value: Any, longest: int) -> str:
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            raise QueryError(f"{what} is no text but bytes") from None
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, indent=1)
    if not isinstance(value, str):
        raise QueryError(f"{what} is {plain(repr(value), 60)}; it has to be text")
    if len(value) > longest:
        raise QueryError(f"{what} has {len(value):,} characters; at most {longest:,} are taken")
    text = value.encode("utf-8", "replace").decode()  # without halves of characters
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c in "\n\t" or c >= " " else "\ufffd" for c in text)


def _moment(what: str, value: Any) -> datetime | None:
    if value is None or value == "":
        return None
    moment = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) < 1e18:  # not so for NaN, nor for integers that no float can hold
            moment = moment_of(value / 1000 if abs(value) >= _MILLISECONDS else value)
    elif isinstance(value, str):
        moment = parse_date(re.sub(r"(\.\d{6})\d+", r"\1", value))
    if moment is None or not 1900 <= moment.year <= 9999:
        raise QueryError(f"{what} is {plain(repr(value), 60)}; a time is seconds since 1970 or an ISO 8601 date")
    return moment.astimezone(UTC).replace(microsecond=0)


# ---- the normalised request

_PLACEHOLDERS = (
    (re.compile(r"```.*?```", re.DOTALL), " code "),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+"), " url "),
    (re.compile(r"[^\s@]{1,64}@[^\s@]{1,255}"), " address "),
    (
        re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|`[^`\n]{1,300}`|(?<!\w)'[^'\n]{1,300}'(?!\w)"),
        " text ",
    ),
    (re.compile(r"(?:[\w.~-]*[/\\]){1,20}[\w.~-]+"), " path "),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), " id "),
    (re.compile(r"\d+(?:[.,:/-]\d+)*"), " number "),
)
_NOT_WORDS = re.compile(r"[\W_]+")


def normal_request(request: str) -> str:
    """Return a request without what changes from one time to the next: quoted text, addresses, paths, ids, numbers.

    Requests with the same normal form are one family: the same task, asked again.
    """
    text = normalized("NFKC", request[:4000]).casefold()
    for pattern, placeholder in _PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return _NOT_WORDS.sub(" ", text).strip() or normalized("NFKC", request[:4000]).casefold().strip()
