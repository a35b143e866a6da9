"""Fields of an agent's tasks: every run makes them agree, and nothing else is touched."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import FieldError, QueryError, RowError
from memoryfield.study.evaluation.groups import Groups
from memoryfield.study.probes.corpora import from_tasks
from memoryfield.study.probes.tasks import normal_request, read_tasks

TASKS: list[dict[str, Any]] = [
    {
        "id": 1,
        "request": "Rename 'a.txt' to 'b.txt'",
        "result": "Done with mv.",
        "status": "done",
        "started": 1767225600,
    },
    {"id": 2, "request": "Rename 'c.txt' to 'd.txt'!", "result": "Done.", "status": "DONE", "started": 1767229200.5},
    {"id": "x", "request": "Why is the build red?\nSee log", "result": "# A test\nfails", "status": "success"},
    {"id": 4, "request": "Still going", "result": None, "status": "running"},
]


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def database(path: Path, rows: list[tuple[Any, ...]], schema: str = "") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(schema or "CREATE TABLE tasks (id, request, result, status, started_at, finished_at)")
        connection.executemany(f"INSERT INTO tasks VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
    return path


def test_tasks_become_pages(tmp_path: Path) -> None:
    report = from_tasks(jsonl(tmp_path / "agent.jsonl", TASKS), tmp_path / "field")
    assert report.added == ("rename-a-txt-to-b-txt", "rename-c-txt-to-d-txt", "why-is-the-build-red")
    assert report.unfinished == 1 and not report.refused
    field = mf.open_field(report.path)
    page = field["rename-a-txt-to-b-txt"]
    assert (page.title, page.summary, page.created) == (
        "Rename 'a.txt' to 'b.txt'",
        "Done with mv.",
        "2026-01-01T00:00:00Z",
    )
    assert page.body == "## Request\n\nRename 'a.txt' to 'b.txt'\n\n## Result\n\nDone with mv.\n"
    assert page.frontmatter["source"] == "tasks:agent" and page.frontmatter["task"] == "1"
    assert field["why-is-the-build-red"].created is None and field["why-is-the-build-red"].summary == "A test"
    assert [f for f in field.validate() if f.level == "error"] == []
    assert report.families["rename-a-txt-to-b-txt"] == report.families["rename-c-txt-to-d-txt"]
    assert "3 added" in repr(report) and "2 families" in repr(report) and "<table>" in report._repr_html_()
    assert json.dumps(report.to_dict()) and len(report.to_frame()) == 3


def test_a_second_run_changes_no_byte(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "agent.jsonl", TASKS)
    from_tasks(source, tmp_path / "field")
    before = contents(tmp_path / "field")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "field").iterdir()}
    jsonl(source, TASKS[::-1])  # the order of the rows means nothing
    report = from_tasks(source, tmp_path / "field")
    assert len(report.unchanged) == 3 and not report.added + report.updated + report.removed
    assert contents(tmp_path / "field") == before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "field").iterdir()} == stamps


def test_each_run_makes_the_field_agree(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "agent.jsonl", TASKS)
    folder = tmp_path / "field"
    from_tasks(source, folder)
    field = mf.open_field(folder)
    field.write("own-page", title="Rename 'a.txt' to 'b.txt'", body="Mine.")
    field.rename("why-is-the-build-red", "red-build")
    field.edit("rename-c-txt-to-d-txt", append="By hand.")
    own = (folder / "own-page.md").read_bytes()
    new = {"id": 9, "request": "Rename 'a.txt' to 'b.txt'", "result": "Again.", "status": "ok"}
    jsonl(
        source,
        [{**TASKS[2], "result": "It is green now"}, TASKS[1], {**TASKS[3], "status": "done", "result": "ok"}, new],
    )
    before = contents(folder)
    plan = from_tasks(source, folder, dry_run=True)
    assert contents(folder) == before and "dry run" in repr(plan)
    report = from_tasks(source, folder)
    assert {key: value for key, value in plan.to_dict().items() if key != "dry_run"} == {
        key: value for key, value in report.to_dict().items() if key != "dry_run"
    }
    assert report.added == ("rename-a-txt-to-b-txt-2", "still-going")
    assert report.updated == ("red-build", "rename-c-txt-to-d-txt") and report.removed == ("rename-a-txt-to-b-txt",)
    assert (folder / "own-page.md").read_bytes() == own and "By hand" not in field["rename-c-txt-to-d-txt"].body
    field.undo()  # all of it in one step
    assert contents(folder) == before


def test_sources_of_other_labels_stay(tmp_path: Path) -> None:
    one, other = jsonl(tmp_path / "one.jsonl", TASKS[:1]), jsonl(tmp_path / "other.jsonl", TASKS[:2])
    from_tasks(one, tmp_path / "field")
    report = from_tasks(other, tmp_path / "field")
    assert report.added == ("rename-a-txt-to-b-txt-2", "rename-c-txt-to-d-txt")
    assert from_tasks(one, tmp_path / "field").unchanged == ("rename-a-txt-to-b-txt",)
    assert len(from_tasks(jsonl(other, []), tmp_path / "field").removed) == 2


def test_a_database_is_read_and_never_written(tmp_path: Path) -> None:
    rows = [
        (1, "Rename 'a' to 'b'", "ok", "completed", "2026-01-01T10:00:00.123456789Z", 1767265200000),
        (2, "Find the pump", b"in the shed", "completed", None, None),
        (3, "Fails", "no", "failed", None, None),
    ]
    source = database(tmp_path / "agent.db", rows)
    raw = source.read_bytes()
    report = from_tasks(source, tmp_path / "field")
    page = mf.open_field(tmp_path / "field")["rename-a-to-b"]
    assert report.added == ("find-the-pump", "rename-a-to-b") and report.unfinished == 1
    assert (page.created, page.updated) == ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z")
    assert source.read_bytes() == raw and sorted(os.listdir(tmp_path)) == ["agent.db", "field"]


def test_columns_may_have_any_name(tmp_path: Path) -> None:
    schema = 'CREATE TABLE tasks (nr INTEGER, "what ""is"" asked" TEXT, said TEXT)'
    source = database(tmp_path / "agent.db", [(1, "Find the pump", "in the shed")], schema)
    with pytest.raises(RowError, match="no column for the request"):
        from_tasks(source, tmp_path / "field")
    columns = {"id": "nr", "request": 'what "is" asked', "result": "said"}
    assert from_tasks(source, tmp_path / "field", columns=columns).added == ("find-the-pump",)
    with pytest.raises(QueryError, match="no part 'prompt'"):
        from_tasks(source, tmp_path / "field", columns={"prompt": "nr"})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "holds a list"),
        ({"id": 5}, "no request"),
        ({"request": "  "}, "is empty"),
        ({"request": 5}, "has to be text"),
        ({"request": "a", "id": 1.5}, "the id is 1.5"),
        ({"request": "a", "id": True}, "the id is True"),
        ({"request": "a", "result": 5}, "the result is 5"),
        ({"request": "a", "started": math.nan}, "started is nan"),
        ({"request": "a", "started": 1e300}, "started is"),
        ({"request": "a", "started": 10**400}, "started is"),
        ({"request": "a", "finished": "yesterday"}, "finished is 'yesterday'"),
        ({"request": "x" * 100_001}, "100,001 characters"),
        ({"id": 1, "request": "again"}, "stands in an earlier row"),
    ],
)
def test_hostile_rows_are_refused_and_nothing_is_removed_for_them(tmp_path: Path, row: Any, problem: str) -> None:
    source = jsonl(tmp_path / "agent.jsonl", TASKS)
    from_tasks(source, tmp_path / "field")
    report = from_tasks(jsonl(source, [TASKS[0], row]), tmp_path / "field")
    assert [(one.where, problem in one.problem) for one in report.refused] == [("line 2", True)]
    assert report.held == ("rename-c-txt-to-d-txt", "why-is-the-build-red") and not report.removed
    assert "refused" in repr(report)


def test_hostile_texts_make_sound_pages(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "request": "---\ntitle: x\n---\nhow", "result": "---\nuuid: y\n---\n", "status": "ok"},
        {"id": "b", "request": "船が港に", "result": "\x00\x1b[31m\ud800 <script>", "status": "ok"},
        {"id": "c: [", "request": "index", "result": "a\r\nb", "status": "ok"},
        {"id": "d", "request": "con", "result": {"deep": [1]}, "status": "ok"},
        {"id": "../../e", "request": "../../etc/passwd", "result": "no", "status": "ok"},
    ]
    report = from_tasks(jsonl(tmp_path / "agent.jsonl", rows), tmp_path / "field")
    assert len(report.added) == 5 and not report.refused and "index" not in report.added
    field = mf.open_field(tmp_path / "field")
    assert [f for f in field.validate() if f.level == "error"] == []
    assert {str(page.frontmatter["task"]) for page in field.pages()} == {row["id"] for row in rows}
    assert all("\x00" not in page.text and "\x1b" not in page.text for page in field.pages())
    assert len(from_tasks(tmp_path / "agent.jsonl", tmp_path / "field").unchanged) == 5


def test_sources_that_cannot_be_read_leave_the_field_alone(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "agent.jsonl", TASKS)
    from_tasks(source, tmp_path / "field")
    before = contents(tmp_path / "field")
    broken = tmp_path / "agent.db"
    broken.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    view = database(tmp_path / "view.db", [(1,)], "CREATE TABLE tasks (id)")
    with closing(sqlite3.connect(view)) as connection:
        connection.execute("ALTER TABLE tasks RENAME TO other")
        connection.execute("CREATE VIEW tasks AS SELECT 1 AS id, 'q' AS request")
    for bad, said in (
        (tmp_path / "none.jsonl", "is not there"),
        (tmp_path, "is no file"),
        (broken, "cannot be read as a database"),
        (view, "has no table 'tasks'; there are: other"),
    ):
        with pytest.raises(RowError, match=said):
            from_tasks(bad, tmp_path / "field", label="agent")
    assert contents(tmp_path / "field") == before


def test_a_dry_run_makes_no_directory(tmp_path: Path) -> None:
    report = from_tasks(jsonl(tmp_path / "agent.jsonl", TASKS), tmp_path / "field", dry_run=True)
    assert len(report.added) == 3 and not (tmp_path / "field").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FieldError):
        from_tasks(tmp_path / "agent.jsonl", tmp_path / "file", dry_run=True)
    with pytest.raises(QueryError, match="label is empty"):
        from_tasks(tmp_path / "agent.jsonl", tmp_path / "field", label="")


def test_families_are_saved_for_evaluation(tmp_path: Path) -> None:
    report = from_tasks(jsonl(tmp_path / "agent.jsonl", TASKS), tmp_path / "field")
    report.save_families(tmp_path / "families.csv")
    assert Groups.of(tmp_path / "families.csv").same("rename-a-txt-to-b-txt", "rename-c-txt-to-d-txt")


def test_statuses_may_be_others(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "agent.jsonl", TASKS)
    assert len(read_tasks(source, statuses=None).finished) == 4
    assert [task.id for task in read_tasks(source, statuses=["Running"]).finished] == ["4"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Book a table for 4 at 19:30", "book a table for 12 at 8:00.", True),
        ("Open https://a.example/x?y=1", "open http://b.example", True),
        ("Delete /tmp/a.log", "delete ~/b/c.log", True),
        ("Mail bob@example.org", "Mail ann@example.com", True),
        ("Revert 3fa9c2e", "Revert 00aa11bb22", True),
        ('Search for "boat"', "Search for 'bread'", True),
        ("Search for boats", "Search for bread", False),
        ("?!", "!!", False),
    ],
)
def test_requests_that_differ_in_values_are_one_family(one: str, other: str, same: bool) -> None:
    assert (normal_request(one) == normal_request(other)) is same


def test_normal_forms_take_little_time_for_hostile_requests() -> None:
    for text in ("a/" * 2000, "'" * 4000, "@." * 2000, "1-" * 2000, "```" * 1300, "http://" * 500):
        assert isinstance(normal_request(text), str)
