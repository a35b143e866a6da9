"""Exports of strangers, and a tampered memory of imports: an answer in words, in time, and nothing is lost."""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryfield.errors import ArchiveError
from memoryfield.exchange.detect import read_source
from memoryfield.exchange.imported import written_digest
from memoryfield.exchange.plan import plan_import
from memoryfield.exchange.records import read_records
from memoryfield.format.page import Page
from memoryfield.places import field_key, state_directory


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_is_damaged_anywhere_says_so(tmp_path: Path, packing: int) -> None:
    path = tmp_path / "export.zip"
    told = [{"chat_messages": [{"sender": "human", "text": " ".join(str(n * n * n) for n in range(99))}]}]
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("conversations.json", json.dumps(told))
    raw = path.read_bytes()
    refused = 0
    for place in range(0, len(raw), 3):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0xFF]) + raw[place + 1 :])
        try:
            read_source(path, "conversations")
        except Exception as error:
            assert type(error).__module__ == "memoryfield.errors", f"byte {place}: {error!r}"
            refused += isinstance(error, ArchiveError)
    assert refused > len(raw) / 12


def _records(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_text("[" * 100_000), id="nested"),
        pytest.param(lambda path: path.write_text('{"schema_version": 1, "pieces": {"a": []}}'), id="another form"),
        pytest.param(lambda path: path.mkdir(), id="directory"),
        pytest.param(_pipe, id="pipe", marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")),
    ],
)
def test_a_damaged_memory_of_imports_costs_that_memory_and_no_more(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    source = _records(tmp_path / "facts.jsonl", [{"id": n, "text": f"The pier has {n} lamps."} for n in range(5)])
    field = tmp_path / "field"
    plan_import(source, field).apply()
    known = state_directory() / "imports" / f"{field_key(field)}.json"
    known.unlink()
    damage(known)
    assert plan_import(source, field).apply().counts["unchanged"] == 5
    _records(source, [{"id": 9, "text": "The pier has a new lamp."}])
    assert plan_import(source, field).apply().counts["add"] == 1, "what is written is written"
    assert len(list(field.glob("*.md"))) == 6


def test_many_records_of_one_id_and_one_title_are_all_kept_in_time(tmp_path: Path) -> None:
    count = 4000
    source = _records(tmp_path / "same.jsonl", [{"id": 1, "title": "Note", "text": f"Lamp {n}"} for n in range(count)])
    begun = time.process_time()
    plan = plan_import(source, tmp_path / "field")
    assert time.process_time() - begun < 10, "looking for a free number takes time that grows with the square"
    assert plan.counts["add"] == count == len({item.name for item in plan})


def test_an_id_that_says_several_things_keeps_them_apart_on_every_run(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": "a", "text": text} for text in ("red", "green", "red", "blue", "green")]
    source = _records(tmp_path / "facts.jsonl", rows)
    field = tmp_path / "field"
    assert plan_import(source, field).apply().counts == {"add": 3, "update": 0, "unchanged": 2, "conflict": 0}
    assert plan_import(source, field).apply().counts == {"add": 0, "update": 0, "unchanged": 5, "conflict": 0}


def test_pages_that_were_deleted_are_missed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _records(tmp_path / "many.jsonl", [{"id": n, "text": f"The pier has {n} lamps."} for n in range(200)])
    field = tmp_path / "field"
    plan_import(source, field).apply()
    for path in sorted(field.glob("*.md"))[:100]:
        path.unlink()
    asked: list[str] = []

    def counting(page: Page, *more: Any) -> str:
        asked.append(page.name)
        return written_digest(page, *more)

    monkeypatch.setattr("memoryfield.exchange.imported.written_digest", counting)
    monkeypatch.setattr("memoryfield.exchange.plan.written_digest", counting)
    assert plan_import(source, field).counts == {"add": 100, "update": 0, "unchanged": 100, "conflict": 0}
    assert 0 < len(asked) < 1000, "each missing page reads the whole field again"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":' + " " * 60_000 + "}", id="blanks after a colon"),
        pytest.param('{"a":1' + "," + " " * 60_000 + "}", id="blanks after a comma"),
        pytest.param('{"a":' + ", " * 60_000 + "}", id="commas"),
        pytest.param("{" + " " * 60_000, id="blanks after a brace"),
        pytest.param('{"results"' + " " * 60_000 + ":" + " " * 60_000, id="blanks around a colon"),
        pytest.param('{"' + "a" * 60_000, id="a key without an end"),
        pytest.param("[" + '{"a":' * 60_000, id="nested"),
    ],
)
def test_what_is_no_json_is_told_in_time(text: str) -> None:
    begun = time.process_time()
    parts, unread = read_records(text, "facts.json")
    assert not parts and unread
    assert time.process_time() - begun < 1, "looking for the list takes time that grows with the square"


@pytest.mark.parametrize("given", [5, True, "tea", {"from": "a"}, {"from": [1], "to": {}}, [None, 3, []]])
@pytest.mark.parametrize("key", ["relations", "entities", "results", "observations", "metadata", "created_at", "id"])
def test_a_key_of_another_type_costs_nothing_else(key: str, given: Any) -> None:
    good = {"name": "Tea", "text": "It is green.", "observations": ["It is green."]}
    text = json.dumps([{"entities": [good], key: given}, {**good, key: given}, {"text": "The last one."}])
    parts, _ = read_records(text, "facts.json")
    assert any("The last one." in part.body for part in parts)
    assert key in ("entities", "observations") or sum("green" in part.body for part in parts) == 2


HALF = "\ud83d"


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([f"It is late {HALF}"], id="text"),
        pytest.param(
            [{"text": f"It is late {HALF}", "title": HALF, "tags": [HALF], "mood": HALF, HALF: 1}], id="record"
        ),
        pytest.param([{"id": HALF, "text": "It is late"}], id="id"),
        pytest.param({"entities": [{"name": HALF, "entityType": HALF, "observations": ["It is late"]}]}, id="entity"),
        pytest.param([{"uuid": HALF, "chat_messages": [{"sender": "human", "text": f"It is late {HALF}"}]}], id="talk"),
        pytest.param([{"conversations_memory": f"It is late {HALF}", "account_uuid": HALF}], id="account"),
    ],
)
def test_half_an_emoji_costs_that_half_and_nothing_else(tmp_path: Path, held: Any) -> None:
    source = tmp_path / "export.json"
    source.write_text(json.dumps(held), encoding="utf-8")
    field = tmp_path / "field"
    done = plan_import(source, field).apply()
    assert done.counts["add"] == 1 and "became \ufffd" in str(done[0].notes)
    assert "It is late" in next(field.glob("*.md")).read_text(encoding="utf-8")
    json.dumps(done.to_dict(), ensure_ascii=False).encode("utf-8")
    assert plan_import(source, field).counts["unchanged"] == 1
