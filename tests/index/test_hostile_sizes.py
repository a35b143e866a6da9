"""Pages, files and models that go to extremes: marks and words without end, times of no calendar, pipes, odd arrays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import EmbeddingFailed, ForeignIndex, IndexFileError
from memoryfield.format.page import Page
from memoryfield.format.pages import PageDirectory
from memoryfield.format.snapshot import Entry, Snapshot
from memoryfield.index.comparison import compare, modified_text
from memoryfield.index.files import inspect_index
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.matrix import as_float32
from memoryfield.index.snippets import page_snippets
from memoryfield.index.store import State, storable
from memoryfield.index.vectors import VectorIndex
from memoryfield.index.words import display_text, query_terms

Model = Callable[..., Any]
FAR = (10**12, -(10**12))  # seconds; some 30,000 years either way
SIDES = ("-journal", "-wal", "-shm")


# Words and snippets


def test_marks_without_end_take_no_time_P10() -> None:
    text = "a" + "\u0301\u0316" * 120_000 + " boat"
    started = time.perf_counter()
    assert len(display_text(text)) < 100
    assert query_terms(text)[-1] == '"boat"'
    assert page_snippets("boat", [Page("x", text.encode())])["x"].spans
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("text", ["[[oar " * 200_000, "步" * 500_000])
def test_a_word_repeated_without_end_takes_no_time(text: str) -> None:
    started = time.perf_counter()
    snippet = page_snippets("oar 步", [Page("x", text.encode())])["x"]
    assert snippet.spans and len(snippet.text) < 300
    assert time.perf_counter() - started < 2.5  # all at once: 17 s


@pytest.mark.parametrize("before", [0, 5_000, 8_180, 8_192, 70_000, 700_000])
@pytest.mark.parametrize("filler", ["all is quiet ", "все тихо ", "悬空引用"])
def test_snippet_shows_words_wherever_they_stand(before: int, filler: str) -> None:
    start = (filler * (before // len(filler) + 1))[:before]
    page = Page("x", f"{start} the Café anchor 重跑 holds {filler * 3000}".encode())
    for query, shown in {"anchors": "anchor", "cafe": "Café", "重跑": "重跑"}.items():
        snippet = page_snippets(query, [page])["x"]
        assert [snippet.text[a:b] for a, b in snippet.spans] == [shown]


def test_snippet_finds_a_term_that_two_pieces_share() -> None:
    page = Page("x", ("空" * 8191 + "步跑" + "空" * 9000).encode())
    snippet = page_snippets("步跑", [page])["x"]
    assert [snippet.text[a:b] for a, b in snippet.spans] == ["步跑"]


def test_snippet_of_a_long_page_has_most_of_the_words() -> None:
    page = Page("x", ("an anchor " + "calm " * 4000 + "mud holds the anchor " + "calm " * 4000).encode())
    snippet = page_snippets("anchor mud", [page])["x"]
    assert {snippet.text[a:b] for a, b in snippet.spans} == {"anchor", "mud"}


# Times


@pytest.mark.parametrize("seconds", FAR)
def test_far_file_times_are_synced_and_shown(field: PageDirectory, toy_model: Model, seconds: int) -> None:
    path = field.path / "anchor.md"
    try:
        os.utime(path, (seconds, seconds))
    except (OSError, OverflowError):
        pytest.skip("the file system has no such times")
    if os.stat(path).st_mtime != seconds:
        pytest.skip("the file system has no such times")
    index = VectorIndex(field, toy_model())
    assert len(index.sync().added) == 5
    assert KeywordIndex(field).sync().pages == 5
    again = VectorIndex(field, toy_model()).sync()
    assert len(again.unchanged) == 5 and not again.embedded
    os.utime(field.path / "bread.md", (seconds, seconds))
    (field.path / "copy.md").write_bytes(path.read_bytes())
    os.utime(field.path / "copy.md", (seconds, seconds))
    assert index.sync().reused == ("copy",)
    os.utime(index.path, (seconds, seconds))
    state = inspect_index(index.path)
    assert state.state == "ok" and state.modified is None
    assert "toy-model" in repr(state) and state.to_dict()["modified"] is None


@pytest.mark.parametrize("nanoseconds", [10**21, -(10**21), 2**63, -(2**63) - 1])
def test_times_beyond_sqlite_do_not_look_changed_for_ever(nanoseconds: int) -> None:
    far = Entry(b"x" * 32, 5, nanoseconds, nanoseconds, 2**64 - 1)
    assert all(-(2**63) <= number < 2**63 for number in storable(far)[1:])
    found = compare(State(entries={"a.md": storable(far)}), Snapshot({"a.md": far}, (), 0))
    assert (found.unchanged, found.touched, found.seen) == (["a.md"], [], [])
    assert modified_text(nanoseconds)


# Pipes and directories beside a database


def obstruct(path: Path, kind: str) -> None:
    if kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no pipes here")
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("kind", ["pipe", "directory", "symlink"])
@pytest.mark.parametrize("ending", SIDES)
@pytest.mark.parametrize("there", [True, False])
def test_what_is_no_file_beside_an_index_is_refused_X11(
    field: PageDirectory, toy_model: Model, kind: str, ending: str, there: bool
) -> None:
    index = VectorIndex(field, toy_model())
    if there:
        index.sync()
        before = index.path.read_bytes()
    side = Path(f"{index.path}{ending}")
    obstruct(side, kind)
    other = VectorIndex(field, toy_model())
    if there:
        assert inspect_index(index.path).state == "foreign"
        assert side.name in inspect_index(index.path).problem
        with pytest.raises(ForeignIndex, match="not a regular file"):
            other.vectors()
        with pytest.raises(ForeignIndex):
            other.delete()
        assert index.path.read_bytes() == before
    (field.path / "new.md").write_text("a new page\n")
    with pytest.raises(ForeignIndex, match="not a regular file"):
        other.sync()
    assert os.path.lexists(side)


@pytest.mark.parametrize("kind", ["pipe", "symlink"])
@pytest.mark.parametrize("ending", SIDES)
def test_what_is_no_file_beside_the_keyword_cache_is_thrown_away(field: PageDirectory, kind: str, ending: str) -> None:
    index = KeywordIndex(field)
    index.sync()
    obstruct(Path(f"{index.path}{ending}"), kind)
    assert [name for name, _ in index.search("flour", 5)] == ["bread"]
    assert not os.path.lexists(f"{index.path}{ending}")


@pytest.mark.parametrize("ending", ["", *SIDES])
def test_a_directory_in_place_of_the_keyword_cache_is_named(field: PageDirectory, ending: str) -> None:
    index = KeywordIndex(field)
    index.path.parent.mkdir(parents=True)
    Path(f"{index.path}{ending}").mkdir()
    with pytest.raises(IndexFileError, match="cannot be deleted"):
        index.sync()


# How many, and what models give


def test_any_number_of_pages_can_be_asked_for(field: PageDirectory, toy_model: Model) -> None:
    words, vectors = KeywordIndex(field), VectorIndex(field, toy_model())
    words.sync()
    vectors.sync()
    for k in (10**18, 10**30):
        assert len(words.search("boat", k)) == 3
        assert len(words.search("boat", k, ["anchor"])) == 1
        assert len(vectors.search(toy_model().vector("boat"), k)[0]) == 5


ODD: dict[str, Callable[[Any], Any]] = {
    "text": lambda vectors: vectors.astype(str),
    "complex": lambda vectors: vectors.astype(complex),
    "objects": lambda vectors: vectors.astype(object),
    "nothing": lambda vectors: None,
    "rows of different lengths": lambda vectors: [[1.0], [1.0, 2.0]],
    "yes and no": lambda vectors: vectors > 0,
    "dates": lambda vectors: vectors.astype("datetime64[s]"),
    "too large": lambda vectors: np.full(vectors.shape, 1e300),
}


@pytest.mark.parametrize("case", [case for case in ODD if case != "too large"])
def test_what_is_no_array_of_numbers_is_refused_X7(field: PageDirectory, toy_model: Model, case: str) -> None:
    model = toy_model()
    good = model.embed_documents
    model.embed_documents = lambda texts: ODD[case](good(texts))
    index = VectorIndex(field, model)
    with pytest.raises(EmbeddingFailed, match="toy-model gave"):
        index.sync()
    assert not len(index.vectors())
    with pytest.raises(EmbeddingFailed):
        index.search(ODD[case](model.vector("boat")), 3)


def test_numbers_of_any_kind_are_taken_and_too_large_ones_refused_X7(field: PageDirectory, toy_model: Model) -> None:
    assert as_float32([[1, 2], [3, 4]], "m").dtype == np.float32
    assert as_float32(np.array([0.5], np.float16), "m").tolist() == [0.5]
    model = toy_model()
    good = model.embed_documents
    model.embed_documents = lambda texts: ODD["too large"](good(texts))
    report = VectorIndex(field, model).sync()
    assert len(report.refused) == 5 and "not finite" in report.refused["anchor"]
