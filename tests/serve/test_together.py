"""Questions that are ranked together, and what is remembered of pages between them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import QueryError
from memoryfield.serve.answers import FieldAnswers
from memoryfield.serve.glimpses import Glimpses
from memoryfield.serve.together import Together


class _Counted:
    """A real field that says which questions were ranked in one go, and takes its time."""

    def __init__(self, field: mf.MemoryField, seconds: float) -> None:
        self.field, self.seconds = field, seconds
        self.batches: list[list[str]] = []

    def rank_many(self, questions: Sequence[str], *given: Any, **named: Any) -> Any:
        self.batches.append(list(questions))
        time.sleep(self.seconds)
        return self.field.rank_many(questions, *given, **named)


def test_who_waits_is_served_together_and_nobody_works_for_others_without_end(field: mf.MemoryField) -> None:
    counted = _Counted(field, 0.05)
    together = Together(counted)  # type: ignore[arg-type]  # it has the one method that is called
    looks: dict[int, int] = {}

    def ask(number: int) -> None:
        time.sleep(number * 0.01)
        before = len(counted.batches)
        assert together.rank("tea", 3, "keyword")[0][0][0] == "tea"
        looks[number] = len(counted.batches) - before

    with ThreadPoolExecutor(40) as clients:
        list(clients.map(ask, range(40)))
    assert len(counted.batches) < 20  # many questions shared a look
    # a question waits for the look that is under way and for its own; whoever led does not go on for those that come
    assert len(looks) == 40 and max(looks.values()) <= 4


def test_a_question_that_cannot_be_ranked_fails_alone(field: mf.MemoryField) -> None:
    counted = _Counted(field, 0.1)
    together = Together(counted)  # type: ignore[arg-type]  # it has the one method that is called
    barrier = threading.Barrier(4)

    def ask(question: Any) -> Any:
        barrier.wait()
        try:
            return together.rank(question, 3, "keyword")[0]
        except QueryError as error:
            return error

    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(ask, ["tea", None, "dock", "green"]))
    assert isinstance(answers[1], QueryError)
    assert [answer[0][0] for answer in (answers[0], answers[2], answers[3])] == ["tea", "dock", "tea"]


@pytest.mark.parametrize("retriever", ["vector", "keyword", "hybrid"])
def test_hits_show_pages_as_they_are_now(field: mf.MemoryField, retriever: str) -> None:
    answers = FieldAnswers(field, 1 << 20)
    assert answers.hits("green tea", 2, retriever)[0]["title"] == "Tea"
    field.edit("tea", title="Tea, green")
    assert answers.hits("green tea", 2, retriever)[0]["frontmatter"]["title"] == "Tea, green"
    path = field.path / "tea.md"  # by another program, within the same second, with the same size
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Tea, green", b"Tea, white"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert answers.hits("green tea", 2, retriever)[0]["title"] == "Tea, white"
    path.unlink()
    assert "tea.md" not in [hit["filename"] for hit in answers.hits("green tea", 2, retriever)]


def test_a_part_of_a_word_is_found_in_titles_that_change(field: mf.MemoryField) -> None:
    answers = FieldAnswers(field, 1 << 20)
    assert [hit["filename"] for hit in answers.hits("ock", 5, "keyword")] == ["dock.md"]
    field.edit("tea", title="Stock of tea")
    assert {hit["filename"] for hit in answers.hits("ock", 5, "keyword")} == {"dock.md", "tea.md"}


def test_what_is_remembered_has_an_end(tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "many", create=True)
    for number in range(30):
        (field.path / f"page-{number:02}.md").write_text(f"---\ntitle: {'long ' * 400}{number}\n---\nx\n")
    glimpses = Glimpses(field, most_bytes=50_000)
    snapshot = field.keyword_index().source.snapshot()
    for _ in range(2):
        seen = [glimpses.of(name, snapshot) for name in field.names()]
        assert [one.title[-2:].strip() for one in seen if one is not None] == [str(number) for number in range(30)]
    assert 0 < len(glimpses._kept) < 10 and glimpses._bytes <= 50_000
    assert glimpses.of("absent", snapshot) is None and glimpses.of("absent", None) is None
