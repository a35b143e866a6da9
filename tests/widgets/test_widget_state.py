"""The shared state: values, those who follow them, from any thread."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import memoryfield as mf
from memoryfield_widgets import State


def test_one_state_a_field(field: mf.MemoryField) -> None:
    assert State.of(field) is State.of(field)
    assert State.of(State.of(field)) is State.of(field)
    assert State(field) is not State.of(field)
    assert State.of(mf.open_field(field.path)) is not State.of(field)


def test_a_state_goes_with_the_last_that_holds_it(field: mf.MemoryField) -> None:
    gone = weakref.ref(State.of(field))
    gc.collect()
    assert gone() is None


def test_followers_are_called_once_and_only_for_their_names(state: State) -> None:
    seen: list[frozenset[str]] = []
    state.follow(seen.append, "query", "k")
    state.update(query="brake", k=3, active="page-01")
    state.update(query="brake", k=3)
    assert seen == [frozenset({"query", "k", "active"})]


def test_values_are_made_regular(state: State) -> None:
    state.selected = ["page-01.md", "page-01", "page-02"]  # type: ignore[assignment]
    assert state.selected == ("page-01", "page-02")
    state.active = "page-03.md"
    assert state.active == "page-03"
    state.active = ""
    assert state.active is None


def test_an_unknown_value_is_refused_with_its_name(state: State) -> None:
    with pytest.raises(AttributeError, match="no value 'colour'"):
        state.update(colour="red")
    with pytest.raises(AttributeError, match="colour"):
        state.follow(print, "colour")


def test_a_follower_can_set_values_and_end(state: State) -> None:
    def first(_changed: frozenset[str]) -> None:
        state.active = state.selected[0]

    end = state.follow(first, "selected")
    state.selected = ("page-05",)
    assert state.active == "page-05"
    end()
    state.selected = ("page-06",)
    assert state.active == "page-05"


def test_a_follower_that_fails_shows_as_an_error_and_stops_nobody(state: State) -> None:
    seen: list[str | None] = []

    def bad(_changed: frozenset[str]) -> None:
        raise ZeroDivisionError("for the test")

    state.follow(bad, "active", "error")
    state.follow(lambda _: seen.append(state.active), "active")
    state.active = "page-02"
    assert seen == ["page-02"]
    assert "ZeroDivisionError: for the test" in state.error
    assert "in bad" in state.trouble


def test_a_method_is_followed_weakly(state: State) -> None:
    class Panel:
        def look(self, _changed: frozenset[str]) -> None: ...

    panel = Panel()
    state.follow(panel.look, "active")
    gone = weakref.ref(panel)
    del panel
    gc.collect()
    assert gone() is None
    state.active = "page-01"


def test_threads_neither_lose_a_value_nor_run_a_follower_twice_at_a_time(state: State) -> None:
    inside = 0
    most = 0
    calls = 0

    def look(_changed: frozenset[str]) -> None:
        nonlocal inside, most, calls
        inside += 1
        most = max(most, inside)
        calls += 1
        inside -= 1

    state.follow(look, "revision", "selected")

    def work(number: int) -> None:
        for i in range(200):
            state.selected = (f"page-{number}-{i}",)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert calls == 800
    assert state.selected[0].endswith("-199")


def test_a_search_fills_hits_and_says_how_many(state: State) -> None:
    state.ask("winch brake", retriever="keyword", k=2, delay=0)
    assert state.jobs.wait()
    assert state.hits.names[0] in {"page-00", "page-04", "page-08"}
    assert len(state.hits) == 2
    assert state.message == "2 pages found"
    assert state.error == ""


def test_a_search_without_a_hit_says_why(state: State) -> None:
    state.ask("xylophone", retriever="keyword", delay=0)
    assert state.jobs.wait()
    assert len(state.hits) == 0
    assert "holds any of the words" in state.message


def test_an_empty_question_takes_the_hits_away(state: State) -> None:
    state.ask("winch", retriever="keyword", delay=0)
    assert state.jobs.wait()
    state.ask("  ", delay=0)
    assert state.jobs.wait()
    assert state.hits is None


def test_only_the_last_of_quick_questions_is_searched(state: State) -> None:
    seen: list[str] = []
    state.follow(lambda _: seen.append(state.hits.query), "hits")
    state.retriever = "keyword"
    for text in ("w", "wi", "win", "winc", "winch"):
        state.ask(text)
    assert state.jobs.wait()
    assert seen == ["winch"]


def test_a_question_that_cannot_be_searched_shows_why(state: State) -> None:
    state.ask("winch", retriever="telepathy", delay=0)
    assert state.jobs.wait()
    assert "telepathy" in state.error
    assert "should not happen" not in state.error
    state.ask("winch", retriever="keyword", delay=0)
    assert state.jobs.wait()
    assert state.error == ""


def test_drafts_outlive_the_field_object(field: mf.MemoryField) -> None:
    State.of(field).drafts["page-01"] = "half a sentence"
    again = mf.open_field(field.path, model="hashing-1024")
    assert State.of(again).drafts == {"page-01": "half a sentence"}


def test_writing_raises_the_revision_and_settles_the_error(state: State) -> None:
    state.fail("disk full")
    state.wrote("saved page-01", active="page-01")
    assert (state.revision, state.message, state.error, state.active) == (1, "saved page-01", "", "page-01")


def test_indexing_reports_progress_and_ends_with_words(state: State) -> None:
    seen: list[tuple[int, int]] = []
    state.follow(lambda _: seen.extend((job.done, job.total) for job in state.busy), "busy")
    state.index()
    assert state.jobs.wait()
    assert (12, 12) in seen
    assert state.busy == ()
    assert "12" in state.message
