"""JSON of facts and conversations: the sound ones are imported, each damaged one is named with file and line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.errors import ArchiveError
from memoryfield.exchange.jsonstream import elements
from memoryfield.exchange.records import moment, read_records

FACTS = [
    {"id": "a1", "memory": "Likes green tea", "created_at": "2026-01-02T03:04:05Z", "user_id": "u", "score": 0.3},
    {"id": "a2", "memory": "Works on cranes", "categories": ["work"], "metadata": {"place": "yard", "uuid": "no"}},
]


def test_json_lines_with_damage_give_all_sound_records(tmp_path: Path) -> None:
    lines = [json.dumps(FACTS[0]), '{"id": "x", "memory": "cut', json.dumps(FACTS[1]), '"just text"', '{"n": 1}', "[]"]
    (tmp_path / "facts.jsonl").write_text("\n".join(lines))
    plan = mf.import_field(tmp_path / "facts.jsonl", tmp_path / "field")
    assert [item.name for item in plan] == ["likes-green-tea", "works-on-cranes", "just-text"]
    assert [item.where for item in plan.unread] == ["facts.jsonl, line 2", "facts.jsonl, line 5"]
    field = mf.open_field(tmp_path / "field")
    tea, cranes = field["likes-green-tea"], field["works-on-cranes"]
    assert (
        tea.created == "2026-01-02T03:04:05Z" and tea.frontmatter["user_id"] == "u" and "score" not in tea.frontmatter
    )
    assert cranes.frontmatter["tags"] == ["work"] and cranes.frontmatter["place"] == "yard"
    assert len(cranes.uuid or "") == 36  # never a uuid that a stranger chose
    assert mf.import_field(tmp_path / "facts.jsonl", tmp_path / "field").counts["unchanged"] == 3


@pytest.mark.parametrize("shape", ["list", "results", "one-a-line", "pretty"])
def test_the_same_facts_in_every_shape(tmp_path: Path, shape: str) -> None:
    text = {
        "list": json.dumps(FACTS),
        "results": json.dumps({"results": FACTS}),
        "one-a-line": "\n".join(json.dumps(fact) for fact in FACTS),
        "pretty": json.dumps({"total": 2, "results": FACTS}, indent=2),
    }[shape]
    parts, unread = read_records(text, "f.json")
    assert [part.key for part in parts] == ["id:a1", "id:a2"] and not unread


def test_entities_keep_observations_and_relations() -> None:
    lines = [
        {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["rows", "sings"]},
        {"type": "relation", "from": "Ann", "to": "Boat", "relationType": "owns"},
        {"type": "relation", "from": "Nobody", "to": "Boat"},
    ]
    parts, unread = read_records("\n".join(json.dumps(line) for line in lines), "graph.jsonl")
    assert parts[0].body == "- rows\n- sings\n\n## Relations\n\n- owns: Boat\n" and parts[0].keys == {"kind": "person"}
    assert len(unread) == 1 and "Nobody" in unread[0].reason


def _chat(number: int, turns: int = 2) -> dict[str, object]:
    said = [
        {"sender": ("human", "assistant")[i % 2], "text": f"turn {i} of {number}\n# heading\n```\n# code\n```"}
        for i in range(turns)
    ]
    return {"uuid": f"c{number}", "name": f"Talk {number}", "created_at": "2026-02-03T04:05:06Z", "chat_messages": said}


def _tree() -> dict[str, object]:
    def node(role: str, text: str, parent: str | None, children: list[str]) -> dict[str, object]:
        return {
            "message": {"author": {"role": role}, "content": {"parts": [text]}},
            "parent": parent,
            "children": children,
        }

    nodes = {
        "root": {"message": None, "parent": None, "children": ["q", "old"]},
        "old": node("user", "first wording", "root", []),
        "q": node("user", "How deep is the dock?", "root", ["a"]),
        "a": node("assistant", "Nine metres.", "q", []),
    }
    return {"title": "Dock", "create_time": 1.7e9, "mapping": nodes, "current_node": "a", "conversation_id": "g1"}


def test_a_broken_export_of_conversations_gives_the_rest(tmp_path: Path) -> None:
    whole = [json.dumps(_chat(1)), '{"uuid": "c2", "name": broken}', json.dumps(_tree()), '{"uuid": "c4", "chat']
    (tmp_path / "conversations.json").write_text("[\n" + ",\n".join(whole))
    plan = mf.import_field(tmp_path / "conversations.json", tmp_path / "field")
    assert [item.name for item in plan] == ["talk-1", "dock"]
    assert [item.where.rpartition(" ")[2] for item in plan.unread] == ["3", "5"]
    field = mf.open_field(tmp_path / "field")
    assert "How deep is the dock?" in field["dock"].body and "first wording" not in field["dock"].body
    assert field["dock"].created == "2023-11-14T22:13:20Z"
    talk = field["talk-1"].body
    assert "\n### heading\n" in talk and "\n# code\n" in talk  # headings of a message stay below its own


def test_a_long_conversation_says_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([_chat(1, turns=600)]))
    plan = mf.import_field(tmp_path / "conversations.json", tmp_path / "field")
    page = mf.open_field(tmp_path / "field")["talk-1"]
    assert page.frontmatter["left_out"] == "299" and "299 answers" in plan[0].notes[0]
    assert page.body.count("## Asked") == 300 and "turn 599 of 1" in page.body and "*299 answers" in page.body


def test_the_zip_of_an_export_is_read_and_a_bomb_is_not(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data/conversations.json", json.dumps([_chat(1)]))
    assert len(mf.import_field(tmp_path / "export.zip", tmp_path / "field")) == 1
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * 50_000_000)
    with pytest.raises(ArchiveError, match="refused"):
        mf.import_field(tmp_path / "bomb.zip", tmp_path / "field")


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": "' + "x" * 10_000,
        "[" * 100_000,
        '[1, "a", null, true, {"b": [1, {"c": "]}"}]}]',
        "{",
        "",
        "\ufeff[]",
        "[,,,]",
    ],
)
def test_no_text_stops_the_reader(text: str) -> None:
    found = list(elements(text))
    assert all(element.line == 1 for element in found)
    read_records(text, "x")


def test_dates_in_every_form() -> None:
    expected = moment("2023-11-14T22:13:20Z")
    assert expected is not None
    assert moment(1.7e9) == moment(1_700_000_000_000) == expected
    assert moment(True) is None and moment("soon") is None and moment(float("inf")) is None and moment([]) is None


def test_a_field_as_records_and_back(tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "one", create=True)
    field.write("boat", title="Boat", body="Floats.\n", tags=["sea"])
    path = field.export_as("records", tmp_path / "out.jsonl")
    assert json.loads(path.read_text())["memory"] == "Floats."
    mf.import_field(path, tmp_path / "two")
    again = mf.open_field(tmp_path / "two")["boat"]
    assert again.body == "Floats.\n" and again.frontmatter["tags"] == ["sea"]
    with pytest.raises(ArchiveError, match="there already"):
        field.export_as("records", path)


def test_a_block_that_cannot_be_read_goes_along_as_it_stands(tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "one", create=True)
    block = '---\ntitle: "Boat\nowner: Ann\n---\n'
    (field.path / "boat.md").write_text(f"{block}Floats.\n")
    path = field.export_as("records", tmp_path / "out.jsonl")
    assert json.loads(path.read_text())["metadata"]["frontmatter"] == block


def test_the_command_imports_and_exports_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from memoryfield.cli import main

    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    source, goal = tmp_path / "facts.jsonl", tmp_path / "field"
    source.write_text(json.dumps({"id": 1, "memory": f"The token is token: {secret}"}))
    assert main(["import", str(source), str(goal), "--dry-run"]) == 0
    assert "looks like a secret" in capsys.readouterr().out and not goal.exists()
    assert main(["import", str(source), str(goal), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["add"] == 1
    assert main(["export", str(goal), str(tmp_path / "out.md"), "--form", "memory-file"]) == 0
    said = capsys.readouterr()
    assert "GitHub" in said.err and secret not in said.err + said.out
    assert main(["export", str(goal), str(tmp_path / "out.zip"), "--on-secrets", "refuse"]) != 0
    assert "nothing left the house" in capsys.readouterr().err and not (tmp_path / "out.zip").exists()
    assert main(["export", str(goal), str(tmp_path / "out"), "--form", "vault", "--on-secrets", "ignore"]) == 0
    assert capsys.readouterr().err == "" and (tmp_path / "out").is_dir()


def test_what_a_record_says_beside_its_text_is_kept_or_named(tmp_path: Path) -> None:
    record = {"memory": "Likes tea.", "note": "Green.", "title": "Tea", "topic": "drinks", "summary": "Tea, green."}
    record |= {"date": "2020-01-01", "created_at": "2021-01-01", "deep": {"x": "lost"}, "mixed": [{"y": 1}]}  # type: ignore[dict-item]
    (tmp_path / "facts.jsonl").write_text(json.dumps(record))
    plan = mf.import_field(tmp_path / "facts.jsonl", tmp_path / "field")
    page = mf.open_field(tmp_path / "field")["tea"]
    assert page.summary == "Tea, green." and page.created == "2021-01-01T00:00:00Z"
    kept = {key: page.frontmatter[key] for key in ("note", "topic", "date")}
    assert kept == {"note": "Green.", "topic": "drinks", "date": "2020-01-01"}
    assert plan.items[0].notes == ("keys left out: deep, mixed",)
    assert "keys left out: deep, mixed" in repr(plan)


def test_a_moment_of_hundreds_of_digits_stops_nothing(tmp_path: Path) -> None:
    for number in ("1" + "0" * 400, "-1" + "0" * 400, "1e300"):
        (tmp_path / "facts.jsonl").write_text(f'{{"memory": "a", "created_at": {number}}}\n{{"memory": "b"}}\n')
        parts, _ = read_records((tmp_path / "facts.jsonl").read_text(), "facts.jsonl")
        assert [part.created for part in parts] == [None, None]
    assert moment(1_700_000_000) == moment(1_700_000_000_000) and moment(10**400) is None


def test_bytes_that_are_not_utf8_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(b"# Fine\n\ntext\n\n# Bad\n\ncaf\xe9\n")
    plan = mf.import_field(tmp_path / "MEMORY.md", tmp_path / "field")
    assert [item.where for item in plan.unread] == ["MEMORY.md, line 7"] and "not UTF-8" in plan.unread[0].reason


def test_lines_of_a_list_are_counted() -> None:
    found = list(elements('[\n{"a": 1},\n\n{"a":\n 2}, 3,\n{"b'))
    assert [element.line for element in found] == [2, 4, 5, 6] and found[-1].problem is not None


def test_one_id_with_two_texts_is_two_pages_and_one_piece_twice_is_one(tmp_path: Path) -> None:
    lines = [{"id": 1, "memory": "A"}, {"id": 1, "memory": "B is another text"}, {"id": 1, "memory": "A"}]
    (tmp_path / "facts.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    plan = mf.import_field(tmp_path / "facts.jsonl", tmp_path / "field")
    assert [item.action for item in plan] == ["add", "add", "unchanged"]
    assert mf.open_field(tmp_path / "field").names() == ["a", "b-is-another-text"]
    assert mf.import_field(tmp_path / "facts.jsonl", tmp_path / "field").counts["unchanged"] == 3


def test_a_secret_does_not_become_a_title_or_a_name(tmp_path: Path) -> None:
    from memoryfield.exchange.plan import plan_import

    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    (tmp_path / "facts.jsonl").write_text(json.dumps({"memory": f"The deploy token {secret} is in use"}))
    plan = plan_import(tmp_path / "facts.jsonl", tmp_path / "field")
    assert plan.secrets and secret.lower() not in plan[0].name.replace("-", "").lower() + repr(plan).lower()
    assert plan[0].name == "the-deploy-token-is-in-use"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("first", ["results", "relations"])
def test_what_stands_beside_the_records_is_named(first: str, indent: int | None) -> None:
    whole = {"results": FACTS, "relations": [{"source": "u", "relationship": "owns", "target": "boat"}], "total": 2}
    text = json.dumps(dict(sorted(whole.items(), key=lambda item: item[0] != first)), indent=indent)
    parts, unread = read_records(text, "mem0.json")
    assert [part.key for part in parts] == ["id:a1", "id:a2"]
    assert [item.reason for item in unread] == ["1 item under 'relations', beside the records"]


@pytest.mark.parametrize(
    "first", ["[1, 2]", '{"results": [{"memory": "first"}]}', '{"results": [{"memory": "first"}], "n": 1}']
)
def test_lines_after_a_first_line_with_a_list_are_read(first: str) -> None:
    lines = [first, json.dumps(FACTS[0]), '{"id": "x", "memory": "cut', json.dumps({"results": FACTS[1:]})]
    parts, unread = read_records("\n".join(lines), "facts.jsonl")
    assert [part.where.rpartition(" ")[2] for part in parts[-2:]] == ["2", "4"]
    assert "facts.jsonl, line 3" in [item.where for item in unread]


def test_a_record_without_text_is_named_once_and_says_which_key_is_empty() -> None:
    lines = ["[1, 2, 3]", '{"id": "x", "fact": ""}', '{"n": 1}', json.dumps(FACTS[0])]
    parts, unread = read_records("\n".join(lines), "facts.jsonl")
    assert len(parts) == 1 and [item.where.rpartition(" ")[2] for item in unread] == ["1", "2", "3"]
    assert "its 'fact' is empty" in unread[1].reason and "none of the keys" in unread[2].reason


def test_branches_of_a_conversation_are_counted_and_an_empty_one_is_called_by_its_title(tmp_path: Path) -> None:
    empty = {"title": "Broken one", "mapping": {"x": {"message": {"author": None, "content": "oops"}}}}
    damaged = _tree()
    damaged["mapping"] |= {"y": {"message": {"author": "who"}}, "z": None}  # type: ignore[operator]  # its values are of several kinds
    damaged |= {"title": "Dock again", "conversation_id": "g2"}
    (tmp_path / "conversations.json").write_text(json.dumps([empty, _tree(), damaged]))
    plan = mf.import_field(tmp_path / "conversations.json", tmp_path / "field")
    said = "1 turn of other branches left out: the branch shown last is the page"
    assert [item.notes for item in plan] == [(said,), (said,)]
    assert "'Broken one' holds no text" in plan.unread[0].reason
