"""The search panel without a browser: what it asks, shows, refuses and shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield_widgets import SearchBox, State
from memoryfield_widgets.search import MOST_HITS, read_conditions, segments, why

Hear = Callable[..., None]


@pytest.fixture
def box(state: State) -> SearchBox:
    return SearchBox(state)


def ask(box: SearchBox, hear: Hear, query: str) -> dict[str, Any]:
    hear(box, "ask", query=query)
    assert box.state.jobs.wait()
    assert not box.state.error
    return dict(box.outcome)


def test_a_question_shows_hits_with_marked_words_scores_and_why(box: SearchBox, hear: Hear) -> None:
    shown = ask(box, hear, "sour dough")
    assert shown["kind"] == "found"
    first = shown["rows"][0]
    assert "Sour Dough" in first["title"]
    assert {text.lower() for text, marked in first["text"] if marked} >= {"sour", "dough"}
    assert "".join(text for text, _ in first["text"])
    assert "by meaning (cosine 0." in first["why"] and "by words (BM25 " in first["why"]
    assert float(first["score"]) > 0
    assert [row["rank"] for row in shown["rows"]] == list(range(1, len(shown["rows"]) + 1))
    assert box.results.names == [row["name"] for row in shown["rows"]]
    assert not box.searching


def test_hits_are_opened_and_selected_in_one_step(box: SearchBox, hear: Hear) -> None:
    names = [row["name"] for row in ask(box, hear, "winch brake")["rows"]]
    seen: list[tuple[Any, ...]] = []
    end = box.state.follow(lambda _: seen.append((box.state.active, box.state.selected)), "active", "selected")
    hear(box, "open", name=names[0])
    assert seen == [(names[0], (names[0],))]
    assert (box.active, box.selected) == (names[0], [names[0]])
    hear(box, "open", name=names[1], add=True)
    assert box.state.selected == (names[0], names[1])
    hear(box, "open", name=names[0])  # one of the selection: the others stay
    assert (box.state.active, box.state.selected) == (names[0], (names[0], names[1]))
    hear(box, "open", name=names[0], add=True)
    assert box.state.selected == (names[1],)
    hear(box, "select")
    assert list(box.state.selected) == names
    end()


def test_a_view_opens_only_what_was_found(box: SearchBox, hear: Hear) -> None:
    hear(box, "open", name="../../etc/passwd")
    hear(box, "open", name=7)
    hear(box, "ask", query=None)
    hear(box, "set", name="field", value="x")
    assert (box.state.active, box.state.error, box.state.query) == (None, "", "")


def test_only_the_last_question_is_answered(box: SearchBox, hear: Hear) -> None:
    for query in ("n", "ni", "nigh", "night ferry"):
        hear(box, "ask", query=query)
    assert box.state.jobs.wait()
    assert box.results.query == "night ferry"
    assert box.query == "night ferry"


def test_an_empty_question_empties_the_list(box: SearchBox, hear: Hear) -> None:
    ask(box, hear, "rope")
    assert ask(box, hear, "  ")["kind"] == "idle"
    assert box.results is None


@pytest.mark.parametrize("retriever", ["vector", "keyword", "hybrid"])
def test_settings_search_anew(box: SearchBox, hear: Hear, retriever: str) -> None:
    ask(box, hear, "ferry")
    hear(box, "set", name="retriever", value=retriever)
    hear(box, "set", name="recipe", value="content")
    hear(box, "set", name="k", value=2)
    assert box.state.jobs.wait()
    assert (box.results.retriever, len(box.results)) == (retriever, 2)
    assert box.settings["k"] == 2
    if retriever != "keyword":
        assert box.results.recipe == "content"


def test_filters_are_read_kept_and_shown(box: SearchBox, hear: Hear) -> None:
    hear(box, "set", name="where", value="topic=winch")
    hear(box, "set", name="since", value="2026-01-05")
    shown = ask(box, hear, "looked at")
    assert {row["name"] for row in shown["rows"]} == {"page-04", "page-08"}
    assert box.settings["where"] == "topic=winch"
    hear(box, "set", name="where", value="")
    assert box.state.filters == {"since": "2026-01-05"}


def test_a_filter_that_makes_no_sense_is_said_beside_it_and_not_searched(box: SearchBox, hear: Hear) -> None:
    before = ask(box, hear, "ferry")
    hear(box, "set", name="since", value="yesterday")
    hear(box, "set", name="where", value="topic")
    hear(box, "set", name="k", value=MOST_HITS + 1)
    assert "'yesterday' is no date" in box.trouble["since"]
    assert "key=value" in box.trouble["where"]
    assert "whole number" in box.trouble["k"]
    assert box.outcome == before and box.state.filters == {}
    hear(box, "set", name="since", value="2026")
    assert set(box.trouble) == {"where", "k"}


def test_filters_set_in_python_are_shown_and_survive_typing(state: State, hear: Hear) -> None:
    state.filters = {"where": {"topic": ["winch", "night"]}, "min_score": 0.0}
    box = SearchBox(state)
    assert box.settings["where"] == "topic=winch, topic=night"
    hear(box, "set", name="until", value="2026-01-06")
    assert state.filters == {"where": {"topic": ["winch", "night"]}, "min_score": 0.0, "until": "2026-01-06"}


def test_nothing_saved_differs_from_nothing_good_enough(tmp_path: Path, box: SearchBox, hear: Hear) -> None:
    empty = SearchBox(mf.open_field(tmp_path / "new", create=True, model="hashing-1024"))
    assert ask(empty, hear, "anything")["kind"] == "empty"
    box.state.filters = {"min_score": 0.99}
    box.state.retriever = "vector"
    shown = ask(box, hear, "ferry")
    assert shown["kind"] == "gate"
    assert "0.99" in shown["heading"]
    box.state.filters = {}
    box.state.retriever = "keyword"
    assert ask(box, hear, "zeppelin")["kind"] == "nothing"


def test_the_gate_says_that_nothing_answers(box: SearchBox, hear: Hear) -> None:
    hear(box, "set", name="gate", value=True)
    assert box.settings["gate"] is True
    shown = ask(box, hear, "quantum chromodynamics of gluons")
    assert shown["kind"] == "gate" and "nothing above the gate" in shown["heading"]
    assert ask(box, hear, "the sour dough starter was looked at")["kind"] == "found"
    hear(box, "set", name="retriever", value="keyword")  # has no gate
    assert ask(box, hear, "sour dough")["kind"] == "found"
    hear(box, "set", name="gate", value=False)
    hear(box, "set", name="retriever", value="hybrid")
    assert ask(box, hear, "quantum chromodynamics of gluons")["kind"] in ("found", "nothing")
    assert "gate" not in box.state.filters


def test_two_boxes_of_one_field_share_the_question(state: State, hear: Hear) -> None:
    one, two = SearchBox(state.field), SearchBox(state.field)
    ask(one, hear, "crane")
    assert two.query == "crane" and two.outcome == one.outcome


def test_a_model_that_is_not_ready_is_said_in_words(box: SearchBox, hear: Hear) -> None:
    hear(box, "ask", query="ferry")
    hear(box, "set", name="model", value="all-mpnet-base-v2")
    assert box.state.jobs.wait()
    assert "all-mpnet-base-v2" in box.state.error
    assert "Traceback" not in box.state.error


def test_models_are_listed_once_a_view_asks(box: SearchBox, hear: Hear) -> None:
    assert box.models == []
    hear(box, "hello")
    assert box.state.jobs.wait()
    known = {model["code"]: model for model in box.models}
    assert known["hashing-1024"]["ready"]
    assert known["all-mpnet-base-v2"]["note"]


def test_the_twin_is_the_table_of_results(box: SearchBox, hear: Hear, field: mf.MemoryField) -> None:
    assert box.twin() == ""
    field.write("evil", title="<script>alert(1)</script>", body="zyzzyva <img src=x onerror=alert(2)>")
    ask(box, hear, "zyzzyva")
    assert "evil" in box.twin()
    assert "<script" not in box.twin() and "<img" not in box.twin()


def test_the_stored_state_is_small(box: SearchBox, hear: Hear, field: mf.MemoryField) -> None:
    import json

    for number in range(60):
        field.write(f"long-{number}", title="T" * 3000, body="quokka " * 900, on_similar="ignore")
    box.state.k = MOST_HITS
    ask(box, hear, "quokka")
    assert len(box.outcome["rows"]) == MOST_HITS
    assert len(json.dumps(box.get_state(drop_defaults=True), default=str)) < 100_000


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", {}),
        (" , ", {}),
        ("tags=ci", {"tags": "ci"}),
        ("tags=ci, status = done now", {"tags": "ci", "status": "done now"}),
        ("tags=ci, tags=cd", {"tags": ["ci", "cd"]}),
        ('title="a, b"', {"title": "a, b"}),
        ("url=a=b", {"url": "a=b"}),
        ("key=", {"key": ""}),
    ],
)
def test_conditions(text: str, where: dict[str, Any]) -> None:
    assert read_conditions(text) == where


@pytest.mark.parametrize("text", ["tags", "=ci", "tags=ci, rest"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(mf.errors.QueryError, match="key=value"):
        read_conditions(text)


def test_segments_give_the_text_again_whatever_the_spans() -> None:
    text = "a 𝔘nicode word"
    for spans in ([(2, 9)], [(0, 14)], [], [(5, 3)], [(2, 99)], [(2, 9), (4, 6)]):
        assert "".join(part for part, _ in segments(text, spans)) == text
    assert segments(text, [(2, 9)]) == [("a ", False), ("𝔘nicode", True), (" word", False)]


def test_why_names_the_half_that_did_not_find_it(box: SearchBox, hear: Hear) -> None:
    box.state.k = 12
    ask(box, hear, "timetable")
    words = [why(hit, "hybrid") for hit in box.results]
    assert any("not by words" in text for text in words)
    assert any("1st by words" in text for text in words)


def test_hits_follow_changes_of_pages_and_what_was_said_stays(
    box: SearchBox, hear: Hear, field: mf.MemoryField
) -> None:
    ask(box, hear, "zeppelin timetable")
    field.write("zeppelin", title="Zeppelin", body="The zeppelin timetable.", on_similar="ignore")
    box.state.wrote("zeppelin saved")
    assert box.state.jobs.wait()
    assert box.results.names[0] == "zeppelin"
    assert box.state.message == "zeppelin saved"
