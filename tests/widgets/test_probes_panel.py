"""The annotator of probes without a browser: pools that say nothing of who found what, marks, the file, resuming."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield_widgets import ProbeAnnotator, State
from memoryfield_widgets import probes as module

Told = Callable[[Any], list[tuple[dict[str, Any], list[Any]]]]


@pytest.fixture(autouse=True)
def _no_drafts() -> None:
    module._drafts.clear()


@pytest.fixture
def panel(field: mf.MemoryField, state: State) -> ProbeAnnotator:
    return ProbeAnnotator(field)


def _settle(panel: ProbeAnnotator) -> None:
    assert panel.state.jobs.wait()
    assert panel.state.error == "", panel.state.trouble


def _last(sent: list[tuple[dict[str, Any], list[Any]]], kind: str) -> dict[str, Any]:
    return [content for content, _ in sent if content["kind"] == kind][-1]


def _names(pool: dict[str, Any]) -> list[str]:
    return [page["name"] for page in pool["pages"]]


def test_the_pool_holds_the_hits_of_all_and_says_nothing_of_who_found_them(
    panel: ProbeAnnotator, hear: Callable[..., None], told: Told
) -> None:
    sent = told(panel)
    panel.depth = 4
    hear(panel, "ask", question="when does the night ferry leave")
    _settle(panel)
    pool = _last(sent, "pool")
    found = {
        retriever: [hit.name for hit in panel.field.search(pool["question"], k=4, retriever=retriever, progress=False)]
        for retriever in ("vector", "keyword", "hybrid")
    }
    assert set(_names(pool)) == set().union(*found.values())
    assert set(pool["pages"][0]) == {"name", "title", "summary", "dates", "text", "more"}
    assert _names(pool) != sorted(_names(pool)) and all(_names(pool)[: len(f)] != f for f in found.values())
    assert pool["gold"] == [] and pool["answerable"] and not panel.asking


def test_the_order_is_the_same_for_the_same_question_and_seed(field: mf.MemoryField, hear: Callable[..., None]) -> None:
    orders = []
    for seed, question in ((0, "winch brake"), (0, "winch brake"), (1, "winch brake"), (0, "winch brake?")):
        panel = ProbeAnnotator(field, state=State(field), seed=seed)
        panel.ask(question)
        _settle(panel)
        orders.append(list(panel._draft["pool"]))
        panel.new()
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(orders[2]) and orders[0] != orders[2] and orders[0] != orders[3]


def test_a_judged_question_is_saved_and_the_next_begins(
    panel: ProbeAnnotator, hear: Callable[..., None], told: Told
) -> None:
    sent = told(panel)
    hear(panel, "ask", question="  which lining does the brake need ")
    _settle(panel)
    first, second = _names(_last(sent, "pool"))[:2]
    for name in (first, second, first):
        hear(panel, "mark", name=name, gold=True)
    hear(panel, "mark", name=second, gold=False)
    assert _last(sent, "marks")["gold"] == [first]
    hear(panel, "set", category=" repair ")
    hear(panel, "save")
    _settle(panel)
    assert panel.path == panel.field.path.parent / "notes.probes.jsonl"
    rows = [json.loads(line) for line in panel.path.read_text().splitlines()]
    question = "which lining does the brake need"
    assert rows == [{"id": "notes-0001", "question": question, "gold": [f"{first}.md"], "category": "repair"}]
    assert panel.rows[0]["gold"] == 1 and panel.categories == ["repair"]
    pool = _last(sent, "pool")
    assert pool["question"] == "" and pool["pages"] == [] and pool["category"] == "repair"  # the category stays
    assert "notes-0001" in panel.state.message and question in panel.twin()
    # what was saved is what an evaluation reads
    assert mf.read_probes(panel.path)[0].gold == {first}


def test_a_question_that_no_page_answers(panel: ProbeAnnotator, hear: Callable[..., None], told: Told) -> None:
    sent = told(panel)
    hear(panel, "ask", question="who won the chess match")
    _settle(panel)
    hear(panel, "save")
    assert "mark the pages" in panel.state.error and not panel.path.exists()
    hear(panel, "mark", name=_names(_last(sent, "pool"))[0], gold=True)
    hear(panel, "set", answerable=False)
    assert _last(sent, "marks")["gold"] == [] and _last(sent, "marks")["answerable"] is False
    hear(panel, "save")
    probe = mf.read_probes(panel.path)[0]
    assert not probe.answerable and not probe.gold
    hear(panel, "ask", question="another")
    _settle_quietly(panel)
    hear(panel, "set", answerable=False)
    hear(panel, "mark", name="page-03", gold=True)  # a page does, after all
    assert _last(sent, "marks")["answerable"] is True
    hear(panel, "new")
    hear(panel, "save")
    assert "there is no question yet" in panel.state.error


def _settle_quietly(panel: ProbeAnnotator) -> None:
    panel.state.error = ""
    _settle(panel)


def test_a_page_that_nothing_found_can_be_added(panel: ProbeAnnotator, hear: Callable[..., None], told: Told) -> None:
    sent = told(panel)
    panel.depth = 1
    hear(panel, "ask", question="night ferry")
    _settle(panel)
    other = next(name for name in panel.field if name not in _names(_last(sent, "pool")))
    hear(panel, "add", name=f" {other}.md ")
    pool = _last(sent, "pool")
    assert _names(pool)[-1] == other and pool["gold"] == [other]
    hear(panel, "add", name="no-such-page")
    assert "no-such-page" in panel.state.error and _last(sent, "pool")["gold"] == [other]


def test_what_was_not_saved_is_there_again_when_the_cell_runs_again(
    field: mf.MemoryField, hear: Callable[..., None], told: Told
) -> None:
    first = ProbeAnnotator(field)
    first.ask("sour dough")
    _settle(first)
    name = first._draft["pool"][0]
    first.mark(name)
    again = ProbeAnnotator(field)
    sent = told(again)
    hear(again, "hello")
    assert _last(sent, "pool")["question"] == "sour dough" and _last(sent, "pool")["gold"] == [name]
    other = ProbeAnnotator(field, field.path.parent / "other.jsonl")
    sent = told(other)
    hear(other, "hello")
    assert _last(sent, "pool")["question"] == ""


def test_a_file_is_resumed_judged_again_and_what_others_wrote_stays(
    field: mf.MemoryField, tmp_path: Path, hear: Callable[..., None], told: Told
) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"id": "a", "question": "crane rope?", "gold": ["page-02.md", "gone.md"], "category": "rope"},
        {"id": "b", "question": "ferry?", "gold": [], "answerable": True},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    panel = ProbeAnnotator(field, path)
    sent = told(panel)
    assert [row["id"] for row in panel.rows] == ["a", "b"]
    hear(panel, "next")
    _settle(panel)
    assert _last(sent, "pool")["id"] == "b"
    name = _names(_last(sent, "pool"))[0]
    hear(panel, "mark", name=name, gold=True)
    with path.open("a") as stream:  # another person, another probe
        stream.write(json.dumps({"id": "c", "question": "starter?", "gold": ["page-01"]}) + "\n")
    hear(panel, "save")
    _settle(panel)
    assert [(p.id, sorted(p.gold)) for p in mf.read_probes(path)] == [
        ("a", ["gone", "page-02"]),
        ("b", [name]),
        ("c", ["page-01"]),
    ]
    hear(panel, "next")
    assert "every probe" in panel.state.message
    hear(panel, "load", id="a")
    _settle(panel)
    assert _last(sent, "pool")["gold"] == ["page-02"] and "page-02" in _names(_last(sent, "pool"))
    assert _last(sent, "pool")["category"] == "rope"
    hear(panel, "delete", id="a")
    assert [p.id for p in mf.read_probes(path)] == ["b", "c"] and _last(sent, "marks")["id"] == ""
    hear(panel, "load", id="a")
    assert "holds no probe 'a'" in panel.state.error


def test_a_file_with_keys_that_would_be_lost_is_refused(field: mf.MemoryField, tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    path.write_text('{"id": "a", "question": "rope?", "gold": ["page-02"], "difficulty": 3}\n')
    with pytest.raises(mf.errors.QueryError, match="difficulty"):
        ProbeAnnotator(field, path)
    path.write_text("no json\n")
    with pytest.raises(mf.errors.RowError, match=r"theirs\.jsonl"):
        ProbeAnnotator(field, path)


def test_families_stay_only_with_the_gold_that_they_are_of(field: mf.MemoryField, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "a", "question": "rope?", "gold": ["page-02"], "family_gold": ["page-06"]}\n')
    panel = ProbeAnnotator(field, path)
    panel.load("a")
    _settle(panel)
    panel.set(category="rope")
    assert panel.save().family_gold == {"page-06"}
    panel.load("a")
    _settle(panel)
    panel.mark("page-10")
    assert panel.save().family_gold == frozenset()


def test_a_model_that_is_missing_leaves_the_others(
    field: mf.MemoryField, hear: Callable[..., None], told: Told
) -> None:
    panel = ProbeAnnotator(mf.open_field(field.path, model="nomic-embed-text-v1.5"))
    sent = told(panel)
    hear(panel, "ask", question="night ferry")
    _settle(panel)
    pool = _last(sent, "pool")
    assert "3 of 4 retrievers could not be asked" in pool["note"] and pool["pages"]


def test_a_newer_question_takes_the_place_of_an_older_one(panel: ProbeAnnotator, told: Told) -> None:
    sent = told(panel)
    panel.ask("winch brake")
    panel.ask("night ferry")
    _settle(panel)
    assert _last(sent, "pool")["question"] == "night ferry" and len([c for c, _ in sent if c["kind"] == "pool"]) == 1
    panel._take("winch brake", ["page-00"], "")  # late
    assert _last(sent, "pool")["question"] == "night ferry"


def test_acts_come_from_any_thread_and_odd_messages_do_nothing(
    panel: ProbeAnnotator, hear: Callable[..., None], told: Told
) -> None:
    sent = told(panel)
    for kind, content in (("ask", {"question": "crane rope"}), ("hello", {})):
        thread = threading.Thread(target=hear, args=(panel, kind), kwargs=content)
        thread.start()
        thread.join()
        _settle(panel)
    assert _names(_last(sent, "pool"))
    hear(panel, "ask", question=["no", "text"])
    hear(panel, "set", answerable="yes", category=3)
    assert panel.state.error == "" and _last(sent, "marks")["question"] == ""


def test_the_library_opens_the_panel(field: mf.MemoryField, tmp_path: Path) -> None:
    from memoryfield.study import probes

    panel = probes.annotate(field, tmp_path / "mine.jsonl", seed=3)
    assert isinstance(panel, ProbeAnnotator) and panel.seed == 3 and panel.path.name == "mine.jsonl"
