"""Exports of assistants as people get them: zips, folders, numbered files, memories, projects, tools and speech."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.cli import main

_ID = "3f2a5c10-0000-4000-8000-00000000000"


def node(number: int, role: str, parts: list[Any], **words: Any) -> dict[str, Any]:
    content = {"content_type": words.pop("type", "text"), "parts": parts}
    message = {"author": {"role": role}, "content": content, "create_time": 1.75e9 + number, **words}
    return {"id": str(number), "message": message, "parent": str(number - 1), "children": [str(number + 1)]}


def chatgpt(name: str, *nodes: dict[str, Any], known: str = f"{_ID}1") -> dict[str, Any]:
    mapping = {"0": {"id": "0", "message": None, "parent": None, "children": ["1"]}}
    mapping |= {item["id"]: item for item in nodes}
    times = {"create_time": 1.75e9, "update_time": 1.75e9 + len(nodes)}
    return {"title": name, "conversation_id": known, "mapping": mapping, "current_node": nodes[-1]["id"], **times}


def claude(name: str, *messages: dict[str, Any], known: str = f"{_ID}2") -> dict[str, Any]:
    return {"uuid": known, "name": name, "created_at": "2026-05-01T10:00:00Z", "chat_messages": list(messages)}


HOIST = chatgpt(
    "Hoist slow in frost",
    node(1, "user", ["Secret profile"], metadata={"is_visually_hidden_from_conversation": True}),
    node(
        2, "user", [{"content_type": "audio_transcription", "text": "Why is the hoist slow?"}], type="multimodal_text"
    ),
    node(3, "assistant", ["search('hoist oil')"], recipient="web", type="code"),
    node(4, "tool", ["a page of results"]),
    node(5, "assistant", ["The oil is stiff \ue200cite\ue202turn0search1\ue201 below zero."], recipient="all"),
)
LABELS = claude(
    "Labels come out blank",
    {
        "sender": "human",
        "text": "",
        "content": [],
        "attachments": [{"file_name": "printer.log", "extracted_content": "gap 0"}],
        "files": [{"file_name": "photo.jpg"}],
    },
    {
        "sender": "assistant",
        "text": "This block is not supported\n\nCalibrate the gap.",
        "content": [
            {"type": "thinking", "thinking": "hmm"},
            {"type": "tool_use", "name": "search", "input": {}},
            {"type": "tool_result", "content": [{"type": "text", "text": "found"}]},
            {"type": "text", "text": "Calibrate the gap."},
        ],
    },
)
MEMORIES = [{"conversations_memory": "Runs a yard.", "project_memories": {f"{_ID}5": "Tide box."}, "account_uuid": "a"}]
PROJECT = {
    "uuid": f"{_ID}5",
    "name": "Website",
    "description": "The yard's pages.",
    "prompt_template": "Answer briefly.",
    "docs": [{"uuid": f"{_ID}6", "filename": "tides.txt", "content": "High at four."}],
}


def test_speech_is_kept_and_what_nobody_saw_is_not(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([HOIST]))
    mf.import_field(tmp_path / "conversations.json", tmp_path / "field")
    (page,) = mf.open_field(tmp_path / "field").pages()
    assert "Why is the hoist slow?" in page.body and "The oil is stiff  below zero." in page.body
    assert not any(word in page.body for word in ("Secret", "search(", "results", "cite"))
    assert page.title == "Hoist slow in frost" and page.frontmatter["turns"] == "2"


def test_blocks_of_tools_and_thoughts_are_left_out_and_attachments_named(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([LABELS]))
    plan = mf.import_field(tmp_path / "conversations.json", tmp_path / "field")
    (page,) = mf.open_field(tmp_path / "field").pages()
    assert "printer.log, photo.jpg" in page.body and "Calibrate the gap." in page.body
    assert not any(word in page.body for word in ("hmm", "found", "not supported", "gap 0"))
    assert "attached files are named, not taken in" in plan[0].notes


@pytest.mark.parametrize("packed", [True, False])
def test_a_whole_export_is_read_zipped_and_unpacked(tmp_path: Path, packed: bool) -> None:
    files = {
        "conversations-000.json": [HOIST],
        "conversations-001.json": [LABELS],
        "memories.json": MEMORIES,
        f"projects/{_ID}5.json": PROJECT,
        "users.json": [{"uuid": "a", "full_name": "Nobody"}],
    }
    source = tmp_path / ("data.zip" if packed else "data")
    if packed:
        with zipfile.ZipFile(source, "w") as archive:
            for name, value in files.items():
                archive.writestr(f"export/{name}", json.dumps(value))
            archive.writestr("__MACOSX/export/._conversations.json", "junk")
    else:
        for name, value in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(json.dumps(value))
    for turn in range(2):
        plan = mf.import_field(source, tmp_path / "field")
        assert plan.counts["add"] == (0 if turn else 6) and plan.counts["conflict"] == 0, plan
    bodies = "\n".join(page.body for page in mf.open_field(tmp_path / "field").pages())
    for said in ("oil is stiff", "Calibrate", "Runs a yard.", "Tide box.", "Answer briefly.", "High at four."):
        assert said in bodies
    assert "Nobody" not in bodies and plan.kind == "conversations"


def test_next_months_export_of_another_name_updates_the_same_pages(tmp_path: Path) -> None:
    (tmp_path / "may.json").write_text(json.dumps([HOIST, LABELS]))
    mf.import_field(tmp_path / "may.json", tmp_path / "field")
    longer = chatgpt("Hoist slow in frost", *list(HOIST["mapping"].values())[1:], node(6, "user", ["Thank you."]))
    (tmp_path / "june.json").write_text(
        json.dumps([longer, LABELS, chatgpt("New", node(1, "user", ["Hi"]), known=_ID + "9")])
    )
    plan = mf.import_field(tmp_path / "june.json", tmp_path / "field")
    assert plan.counts == {"add": 1, "update": 1, "unchanged": 1, "conflict": 0}
    assert "Thank you." in mf.open_field(tmp_path / "field")["hoist-slow-in-frost"].body


def test_a_vault_with_such_a_file_in_it_is_still_a_vault(tmp_path: Path) -> None:
    (tmp_path / "vault" / "sub").mkdir(parents=True)
    (tmp_path / "vault" / "conversations.json").write_text(json.dumps([HOIST]))
    (tmp_path / "vault" / "note.md").write_text("x\n")
    report = mf.import_field(tmp_path / "vault", tmp_path / "field")
    assert report.added == ("note",)


def test_a_broken_file_of_an_export_is_named_with_its_line_and_the_rest_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "conversations-000.json").write_text(json.dumps([HOIST])[:-40])
    (tmp_path / "data" / "conversations-001.json").write_text(f"[\n{json.dumps(LABELS)},\n{{broken}},\n1]")
    (tmp_path / "data" / "memories.json").write_text("[]")
    assert main(["import", str(tmp_path / "data"), str(tmp_path / "field")]) == 0
    said = capsys.readouterr().out
    assert "conversations-000.json, line 1" in said and "conversations-001.json, line 3" in said
    assert "memories.json" in said and mf.open_field(tmp_path / "field").names() == ["labels-come-out-blank"]
