"""Searches at the limits: very many pages asked for, files from no calendar, odd vectors, and marked words in HTML."""

from __future__ import annotations

import os
from typing import Any

import pytest

from memoryfield.errors import EmbeddingFailed
from memoryfield.format.pages import PageDirectory
from memoryfield.format.snapshot import Entry
from memoryfield.retrieve.filters import _Facts, page_filter
from memoryfield.retrieve.search import SearchTarget, search


@pytest.mark.parametrize("retriever", ["vector", "keyword", "hybrid"])
def test_any_number_of_pages_can_be_asked_for(target: SearchTarget, retriever: str) -> None:
    assert search([target], "boat", k=10**18, retriever=retriever).names == (
        search([target], "boat", k=5, retriever=retriever).names
    )
    assert len(search([target, target], "boat", k=10**18, retriever=retriever)) >= 6


@pytest.mark.parametrize("seconds", [10**12, -(10**12)])
def test_far_file_times_are_compared(field: PageDirectory, target: SearchTarget, seconds: int) -> None:
    path = field.path / "plain.md"
    path.write_text("a boat without dates\n")
    try:
        os.utime(path, (seconds, seconds))
    except (OSError, OverflowError):
        pytest.skip("the file system has no such times")
    late = search([target], "boat", retriever="keyword", since="2027").names
    early = search([target], "boat", retriever="keyword", until="1910").names
    assert (late, early) == ((["plain"], []) if seconds > 0 else ([], ["plain"]))


@pytest.mark.parametrize("nanoseconds", [10**21, -(10**21)])
def test_filter_takes_any_number_for_a_time(nanoseconds: int) -> None:
    entry = Entry(b"", 0, nanoseconds, 0, 0)
    assert page_filter(since="2026").passes(_Facts({}, None), entry) is (nanoseconds > 0)


@pytest.mark.parametrize("kind", [str, complex, object])
def test_a_question_without_a_vector_of_numbers_is_refused(target: SearchTarget, kind: Any) -> None:
    search([target], "boat")
    assert target.vectors is not None
    model: Any = target.vectors.embedder
    good = model.embed_query
    model.embed_query = lambda text: good(text).astype(kind)
    with pytest.raises(EmbeddingFailed, match="toy-model gave"):
        search([target], "boat")


def test_matched_words_are_marked_in_both_forms(field: PageDirectory, target: SearchTarget) -> None:
    (field.path / "odd.md").write_text("a <b>yacht</b> [here] & there\n")
    results = search([target], "yacht", k=1, retriever="keyword")
    assert "<b>[yacht]</b> [here] & there" in repr(results)
    assert "&lt;b&gt;<mark>yacht</mark>&lt;/b&gt; [here] &amp; there" in results._repr_html_()
