"""Files with one row a line, from strangers: JSON lines and CSV, read with the line that each row stands in."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoryfield.errors import RowError

LARGEST_FILE = 256 * 2**20  # bytes


def read_text(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE) -> tuple[str, str]:
    """Return the name of a file for messages, and its text without a BOM.

    Raises:
        RowError: There is no such file, it is no regular file, too large, or not UTF-8; says which line.
    """
    place = Path(path).expanduser()
    name = place.name or str(place)
    try:
        status = place.stat()
        if not stat.S_ISREG(status.st_mode):
            raise RowError("is no file; give the path of a file", file=name)
        if status.st_size > largest:
            raise RowError(f"has {status.st_size:,} bytes; at most {largest:,} are read", file=name)
        raw = place.read_bytes()
    except FileNotFoundError:
        raise RowError(f"is not there (looked at {place})", file=name) from None
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        raise RowError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=name) from None
    try:
        return name, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RowError("is not UTF-8; save the file as UTF-8", file=name, line=line) from None


def json_rows(name: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line and object of each line that is not empty.

    Raises:
        RowError: A line that is no JSON object.
    """
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            yield line, json_object(name, line, content)


def json_object(name: str, line: int, content: str) -> dict[str, Any]:
    """Return the JSON object that a line holds.

    Raises:
        RowError: It holds something else.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise RowError("is nested too deeply", file=name, line=line) from None
    except ValueError as error:
        said = error.msg if isinstance(error, json.JSONDecodeError) else "a number that is too long"
        raise RowError(f"is no JSON ({said}); each line holds one object", file=name, line=line) from None
    if not isinstance(value, dict):
        raise RowError(f"holds a {type(value).__name__}; each line holds one JSON object", file=name, line=line)
    return value


def csv_rows(name: str, text: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and columns of each row below the heading.

    Args:
        name: The file, for messages.
        text: Its text.
        needed: Columns that there must be.

    Raises:
        RowError: A column is missing or named twice, or a row has more or fewer cells than the heading.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    heading: list[str] | None = None
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise RowError(f"is no CSV: {error}", file=name, line=line) from None
        if not any(cell.strip() for cell in cells):
            pass
        elif heading is None:
            heading = [cell.strip().lower() for cell in cells]
            missing = [column for column in needed if column not in heading]
            if missing:
                problem = f"the first line names no column {missing[0]!r}; expected {', '.join(needed)}"
                raise RowError(problem, file=name, line=line)
            if len(set(heading)) < len(heading):
                raise RowError("the first line names a column twice", file=name, line=line)
        elif len(cells) != len(heading):
            problem = f"has {len(cells)} cells where the first line has {len(heading)}"
            raise RowError(problem, file=name, line=line)
        else:
            yield line, dict(zip(heading, cells, strict=True))
        line = reader.line_num + 1
    if heading is None:
        raise RowError(f"is empty; expected a first line with {', '.join(needed)}", file=name)
