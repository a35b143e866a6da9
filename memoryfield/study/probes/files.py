"""Files of probes: JSON lines and CSV, from strangers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryfield.errors import InvalidName, QueryError, RowError
from memoryfield.format.targets import check_target, write_target
from memoryfield.study.probes.probe import Probe, Probes, filename_of
from memoryfield.study.rows import csv_rows, json_rows, read_text

_COLUMNS = ("id", "question", "gold", "category", "answerable", "family_gold")
_BETWEEN_NAMES = re.compile(r"[;,|\s]+")  # none of them can stand in the name of a page
_YES = frozenset(["true", "yes", "1", "y"])
_NO = frozenset(["false", "no", "0", "n"])


def read_probes(path: str | os.PathLike[str]) -> Probes:
    """Read probes from a file.

    JSON lines hold one object each with ``question`` and, as far as known, ``id``, ``gold`` (a list of page names or
    one, with or without ``.md``), ``category``, ``answerable`` and ``family_gold``; CSV the same columns, with blanks,
    commas or semicolons between page names. Without ``answerable`` a question is answerable if it has gold pages.
    Other keys and columns are passed over. A probe without an id gets one made from its question.

    Args:
        path: The file; one that ends in ``.csv`` is read as CSV, any other as JSON lines.

    Raises:
        RowError: The file cannot be read, or a row cannot be used; has file and line.
    """
    name, text = read_text(path)
    is_csv = Path(path).suffix.lower() == ".csv"
    rows: Iterator[tuple[int, dict[str, Any]]] = (
        csv_rows(name, text, ("question",)) if is_csv else json_rows(name, text)
    )
    probes: list[Probe] = []
    lines: dict[str, int] = {}
    for line, row in rows:
        try:
            probe = _probe(_from_cells(row) if is_csv else row)
        except (QueryError, InvalidName) as error:
            raise RowError(str(error), file=name, line=line) from None
        if probe.id in lines:
            raise RowError(f"the id {probe.id!r} stands in line {lines[probe.id]} already", file=name, line=line)
        lines[probe.id] = line
        probes.append(probe)
    return Probes(probes)


def _from_cells(row: dict[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {key: row[key] for key in ("id", "question", "category") if key in row}
    for key in ("gold", "family_gold"):
        values[key] = [name for name in _BETWEEN_NAMES.split(row.get(key, "")) if name]
    said = row.get("answerable", "").strip().lower()
    if said:
        if said not in _YES | _NO:
            raise QueryError(f"answerable is {said[:40]!r}; it is true or false")
        values["answerable"] = said in _YES
    return values


def _probe(row: dict[str, Any]) -> Probe:
    question = row.get("question")
    if question is None:
        raise QueryError("there is no question; each row has a key 'question'")
    gold = _listed(row.get("gold"))
    answerable = row.get("answerable")
    category = row.get("category")
    return Probe(
        id=_id(row.get("id"), question),
        question=question,
        gold=gold,
        category="" if category is None else category,
        answerable=bool(gold) if answerable is None else answerable,
        family_gold=_listed(row.get("family_gold")),
    )


def _listed(value: Any) -> Any:
    """Return page names as a set; what is no list of them is refused by the probe itself."""
    if value is None:
        return frozenset()
    return [value] if isinstance(value, str) else value


def _id(value: Any, question: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise QueryError(f"the id is {value!r}; it has to be text")
    if isinstance(value, (int, float)):
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return "q-" + hashlib.sha256(str(question).encode("utf-8", "replace")).hexdigest()[:10]
    return value


def save_probes(probes: Probes, path: str | os.PathLike[str]) -> None:
    """Write probes to a file; see ``Probes.save``.

    Raises:
        QueryError: The file has another ending than ``.jsonl`` or ``.csv``, or something else stands there.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".jsonl", ".csv"):
        raise QueryError(f"probes are written to .jsonl or .csv files, not to {Path(path).name!r}")
    starts = (b"id,", b"question,") if ending == ".csv" else (b'{"id"', b'{"question"')
    goal = check_target(path, starts, what="file of probes", error=QueryError)
    write_target(goal, (_csv(probes) if ending == ".csv" else _json(probes)).encode())


def _json(probes: Probes) -> str:
    lines = []
    for probe in probes:
        row = probe.to_dict()
        for key in ("gold", "family_gold"):
            if key in row:
                row[key] = [filename_of(name) for name in row[key]]
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def _csv(probes: Probes) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)  # lines end in CR LF as RFC 4180 has it, so that a CR in a cell is quoted
    writer.writerow(_COLUMNS)
    for probe in probes:
        gold, family = (
            " ".join(filename_of(name) for name in sorted(names)) for names in (probe.gold, probe.family_gold)
        )
        answerable = "true" if probe.answerable else "false"
        writer.writerow((probe.id, probe.question, gold, probe.category, answerable, family))
    return out.getvalue()
