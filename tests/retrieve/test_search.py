"""Searching: retrievers, several fields, in step with the disk, and reasons for finding nothing."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ModelMismatch, QueryError
from memoryfield.format.pages import PageDirectory, ZipPages
from memoryfield.retrieve.search import SearchTarget, search

Make = Callable[..., SearchTarget]
Model = Callable[..., Any]
RETRIEVERS = ("vector", "keyword", "hybrid")


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_best_page_comes_first_with_all_that_is_known_of_it(target: SearchTarget, retriever: str) -> None:
    results = search([target], "knead the dough and let it rest", k=3, retriever=retriever)
    assert results[0].name == "dough" and len(results) <= 3
    assert [hit.rank for hit in results] == list(range(1, len(results) + 1))
    hit = results[0]
    assert (hit.title, hit.summary, hit.field) == ("Dough", "About dough", "harbor")
    assert hit.score == hit.scores[retriever] and hit.ranks[retriever] == 1
    expected = {"vector", "keyword", "hybrid"} if retriever == "hybrid" else {retriever}
    assert set(hit.ranks) == set(hit.scores) == expected
    assert "dough" in [hit.snippet.text[start:end].lower() for start, end in hit.snippet.spans]
    assert results.retriever == retriever and results.reason == ""
    assert results.model_code == (None if retriever == "keyword" else "toy-model")
    scores = [hit.score for hit in results]
    assert scores == sorted(scores, reverse=True)


def test_hybrid_finds_what_only_one_half_finds(target: SearchTarget) -> None:
    results = search([target], "flour", retriever="hybrid")
    assert results.names[0] == "bread" and len(results) == 5
    assert set(results[0].ranks) == {"vector", "keyword", "hybrid"}
    assert set(results[4].ranks) == {"vector", "hybrid"}
    assert results[0].score > results[4].score
    fused = search([target], "flour", retriever="rrf")
    assert fused[0].score == pytest.approx(1 / 61 + 1 / (60 + fused[0].ranks["vector"]))


def test_results_are_a_sequence_a_table_and_a_frame(target: SearchTarget) -> None:
    results = search([target], "boat <b> $x$", k=2)
    assert len(list(results)) == len(results[0:2]) == 2 and results[-1].rank == 2
    assert "boat" in repr(results) and "<b>" in repr(results)
    html = results._repr_html_()
    assert "<b>" not in html and "$" not in html and results[0].name in html
    frame = results.to_frame()
    assert list(frame["name"]) == results.names
    assert {"rank_vector", "score_vector", "rank_keyword", "score_keyword", "snippet", "field"} <= set(frame.columns)
    json.dumps(results.to_dict())
    empty = search([target], "zzzz", retriever="keyword")
    assert list(empty.to_frame().columns) and empty.to_frame().empty and empty.reason in repr(empty)


# In step with the disk (FORMAT X10)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_deleted_and_edited_outside_X10(target: SearchTarget, retriever: str) -> None:
    """The case of that name: another program deletes, edits keeping size and seconds, and adds; then a search."""
    folder = target.source.path
    search([target], "boat", retriever=retriever)
    (folder / "anchor.md").unlink()
    page = folder / "bread.md"
    status = page.stat()
    page.write_text(page.read_text().replace("flour", "sugar"))
    os.utime(page, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert page.stat().st_size == status.st_size
    (folder / "lighthouse.md").write_text("A lighthouse blinks at night\n")
    assert "anchor" not in search([target], "Anchors hold a boat", k=99, retriever=retriever).names
    assert search([target], "lighthouse blinks", retriever=retriever).names[0] == "lighthouse"
    assert search([target], "sugar water salt yeast", retriever=retriever).names[0] == "bread"
    if retriever == "keyword":
        assert search([target], "flour", retriever=retriever).names == []


def test_verify_finds_an_edit_that_kept_size_and_all_time_stamps_X10(
    target: SearchTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other half of the case; the clock is turned on so that the snapshot takes the stat data for old."""
    import time

    folder = target.source.path
    search([target], "boat", verify=True)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10 * 10**9)
    search([target], "boat", verify=True)  # pages are old enough by now
    page = folder / "bread.md"
    status = page.stat()
    page.write_text(page.read_text().replace("flour", "sugar"))
    # No program can set the time of the last change; a snapshot that claims the new one stands for such a disk.
    for index in (target.vectors, target.keywords):
        assert index is not None and index.snapshot is not None
        entry = index.snapshot.entries["bread.md"]
        forged = page.stat()
        entries = {**index.snapshot.entries}
        entries["bread.md"] = entry._replace(
            mtime_ns=forged.st_mtime_ns, ctime_ns=forged.st_ctime_ns, inode=forged.st_ino
        )
        index._snapshot = replace(index.snapshot, entries=entries, taken_ns=now + 20 * 10**9)
    assert status.st_size == page.stat().st_size
    assert search([target], "sugar", retriever="keyword").names == []
    assert search([target], "sugar", retriever="keyword", verify=True).names == ["bread"]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_without_sync_no_ghost_is_returned_either_X10(target: SearchTarget, retriever: str) -> None:
    search([target], "boat", retriever=retriever)
    for name in ("anchor", "compass"):
        (target.source.path / f"{name}.md").unlink()
    (target.source.path / "new.md").write_text("a new boat\n")
    results = search([target], "boat", k=99, retriever=retriever, sync=False)
    assert results.names and not {"anchor", "compass", "new"} & set(results.names)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_many_ghosts_do_not_hide_the_pages_behind_them_X10(
    tmp_path: Path, toy_model: Model, targets_of: Make, retriever: str
) -> None:
    for number in range(400):
        (tmp_path / f"p-{number:03}.md").write_text("boat " * (1 + number // 4) + f"word{number}\n")
    target = targets_of(PageDirectory(tmp_path), toy_model())
    first = search([target], "boat", k=395, retriever=retriever).names
    for name in first[:-5]:
        (tmp_path / f"{name}.md").unlink()
    left = {path.stem for path in tmp_path.glob("*.md")}
    assert len(left) == 10
    assert set(search([target], "boat", k=20, retriever=retriever, sync=False).names) == left
    assert set(search([target], "boat", k=20, retriever=retriever).names) == left


def test_page_that_vanishes_meanwhile_is_left_out(target: SearchTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    search([target], "boat")
    original = PageDirectory.read

    def read(self: PageDirectory, name: str) -> Any:
        (target.source.path / "engine.md").unlink(missing_ok=True)
        return original(self, name)

    monkeypatch.setattr(PageDirectory, "read", read)
    assert "engine" not in search([target], "engine of the boat", k=2).names


# Filters


def test_filters_apply_to_every_retriever(target: SearchTarget) -> None:
    for retriever in RETRIEVERS:
        names = search([target], "boat water dough", k=9, retriever=retriever, where={"tags": "kitchen"}).names
        assert set(names) <= {"bread", "dough"} and names
        assert search([target], "boat", retriever=retriever, since="2026-03-20").names == ["engine"]
        assert search([target], "boat", retriever=retriever, since="2026-03-20", sync=False).names == ["engine"]


def test_filter_sees_an_edit(target: SearchTarget) -> None:
    assert search([target], "boat", where={"owner": "me"}).reason == "none of the 5 pages passes the filter"
    (target.source.path / "bread.md").write_text("---\nowner: me\n---\nbread\n")
    assert search([target], "boat", where={"owner": "me"}).names == ["bread"]


def test_min_score_is_the_retrievers_own(target: SearchTarget) -> None:
    results = search([target], "the engine of the boat needs oil", k=9, retriever="vector")
    limit = results[1].score
    assert len(search([target], results.query, k=9, retriever="vector", min_score=limit)) == 2
    nothing = search([target], results.query, retriever="vector", min_score=1.5)
    assert list(nothing) == [] and nothing.reason.startswith("nothing above min_score=1.5: the best page has 0.")
    words = search([target], "boat", retriever="keyword")
    assert len(search([target], "boat", retriever="keyword", min_score=words[0].score)) >= 1
    assert len(search([target], "boat", min_score=0.02)) < 5


# Nothing found


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_nothing_saved_yet_differs_from_nothing_above(
    tmp_path: Path, toy_model: Model, targets_of: Make, retriever: str
) -> None:
    """The case empty-and-tiny, for searches."""
    target = targets_of(PageDirectory(tmp_path), toy_model())
    empty = search([target], "boat", retriever=retriever)
    assert len(empty) == 0 and empty.reason.startswith("nothing saved yet")
    assert search([target], "boat", retriever=retriever, sync=False).reason.startswith("nothing saved yet")
    assert os.listdir(tmp_path) == []
    for count in (1, 2, 3):
        (tmp_path / f"p-{count}.md").write_text(f"boat number {count}\n")
        assert len(search([target], "boat", retriever=retriever)) == count
    assert "nothing above" in search([target], "boat", retriever=retriever, min_score=1e9).reason


def test_reasons(target: SearchTarget) -> None:
    assert search([target], "  \n").reason == "the question is empty"
    assert search([target], "?! ...", retriever="keyword").reason == "no words to search for in the question"
    assert search([target], "zzzz", retriever="keyword").reason == "none of the 5 pages holds any of the words"
    assert len(search([target], "?!", retriever="hybrid")) == 0  # the small model knows no such words either
    assert "passes the filter" in search([target], "boat", where={"title": "none"}).reason


def test_question_without_a_vector_still_searches_words(target: SearchTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    assert target.vectors is not None
    monkeypatch.setattr(target.vectors.embedder, "embed_query", lambda text: np.zeros(96, np.float32))
    assert search([target], "flour").names == ["bread"]
    assert "no vector for this question" in search([target], "flour", retriever="vector").reason


def test_refused_pages_are_found_by_keyword_and_noted(field: PageDirectory, toy_model: Model, targets_of: Make) -> None:
    class Refusing(toy_model):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            vectors = super().embed_documents(texts)
            vectors[[number for number, text in enumerate(texts) if "flour" in text]] = 0
            return vectors  # type: ignore[no-any-return]

    target = targets_of(field, Refusing())
    assert "bread" not in search([target], "flour water", k=9, retriever="vector").names
    results = search([target], "flour water", k=9)
    assert "bread" in results.names and results.notes[0] == "harbor: 1 page without a vector, found by keyword only"


# What makes no sense


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": -3}, "at least 1"),
        ({"k": 2.5}, "whole number"),
        ({"k": True}, "whole number"),
        ({"retriever": "bm25"}, "hybrid, vector, keyword"),
        ({"min_score": "high"}, "number"),
        ({"min_score": float("nan")}, "number"),
        ({"since": "soon"}, "since='soon' is no date"),
        pytest.param({"where": {"a": object()}}, "where", id="where an object"),
    ],
    ids=repr,
)
def test_bad_options_say_what_is_possible(target: SearchTarget, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        search([target], "boat", **options)


def test_bad_questions_and_targets(target: SearchTarget, field: PageDirectory) -> None:
    with pytest.raises(QueryError, match="text"):
        search([target], 7)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="no field"):
        search([], "boat")
    with pytest.raises(QueryError, match="no vector index"):
        search([SearchTarget("x", field, None, target.keywords)], "boat")
    with pytest.raises(QueryError, match="no keyword index"):
        search([SearchTarget("x", field, target.vectors, None)], "boat")
    assert search([SearchTarget("x", field, target.vectors, None)], "boat", retriever="vector").names
    assert search([SearchTarget("x", field, None, target.keywords)], "boat", retriever="keyword").names


def test_mismatch_is_raised_and_not_searched_around(field: PageDirectory, toy_model: Model, targets_of: Make) -> None:
    search([targets_of(field, toy_model("lab/one"))], "boat")
    with pytest.raises(ModelMismatch, match=r"lab/one.*lab-one"):
        search([targets_of(field, toy_model("lab-one"))], "boat")


# Several fields


@pytest.fixture
def two(field: PageDirectory, tmp_path: Path, toy_model: Model, targets_of: Make) -> list[SearchTarget]:
    other = tmp_path / "kitchen"
    other.mkdir()
    (other / "bread.md").write_text("---\ntitle: Rye bread\n---\nRye bread needs sourdough, flour and water.\n")
    (other / "soup.md").write_text("Soup needs water and salt.\n")
    model = toy_model()
    return [targets_of(field, model), targets_of(PageDirectory(other), model)]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_several_fields_in_one_list(two: list[SearchTarget], retriever: str) -> None:
    results = search(two, "rye bread needs sourdough, flour and water", k=4, retriever=retriever)
    assert (results[0].field, results[0].name, results[0].title) == ("kitchen", "bread", "Rye bread")
    assert ("harbor", "bread") in [(hit.field, hit.name) for hit in results]
    assert len(results) == 4 and "kitchen" in repr(results)
    scores = [hit.score for hit in results]
    assert scores == sorted(scores, reverse=True)


def test_one_field_may_be_empty_or_filtered_out(two: list[SearchTarget]) -> None:
    results = search(two, "flour and water", where={"title": "Rye bread"})
    assert [(hit.field, hit.name) for hit in results] == [("kitchen", "bread")]
    for page in two[1].source.path.glob("*.md"):
        page.unlink()
    assert {hit.field for hit in search(two, "flour and water")} == {"harbor"}


def test_fields_of_different_models_are_not_mixed(two: list[SearchTarget], toy_model: Model, targets_of: Make) -> None:
    mixed = [two[0], targets_of(two[1].source, toy_model("other"))]
    with pytest.raises(QueryError, match=r"other \(page\), toy-model \(page\)"):
        search(mixed, "boat")
    assert search(mixed, "water", retriever="keyword").names


def test_archive_is_searched_in_place_A4(
    field: PageDirectory, tmp_path: Path, toy_model: Model, targets_of: Make
) -> None:
    path = tmp_path / "harbor.memoryfield.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for page in field.path.glob("*.md"):
            archive.write(page, page.name)
    before = sorted(os.listdir(tmp_path))
    target = targets_of(ZipPages(path), toy_model())
    for retriever in RETRIEVERS:
        assert search([target], "knead the dough and let it rest", retriever=retriever).names[0] == "dough"
        assert search([target], "boat", retriever=retriever, where={"draft": True}).names == ["anchor"]
    assert sorted(os.listdir(tmp_path)) == before


class WithoutExtensions(sqlite3.Connection):
    """A connection as Pythons have it that were built without loadable extensions."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("enable_load_extension", "load_extension"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_no_loadable_extensions(target: SearchTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case of that name."""
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=WithoutExtensions))
    for retriever in RETRIEVERS:
        assert search([target], "knead the dough and let it rest", retriever=retriever).names[0] == "dough"
    assert target.vectors is not None and target.vectors.state().rows == 5


def test_exact_and_more_than_there_are(target: SearchTarget) -> None:
    assert search([target], "boat", k=1000, retriever="vector", exact=True).names == (
        search([target], "boat", k=1000, retriever="vector").names
    )
    assert len(search([target], "boat", k=1000)) == 5


def test_progress_is_told_while_pages_are_embedded(target: SearchTarget) -> None:
    seen: list[tuple[int, int]] = []
    search([target], "boat", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 5), (5, 5)]
    search([target], "boat", progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 2
