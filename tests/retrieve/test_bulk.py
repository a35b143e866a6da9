"""Many questions at once are ranked as they are one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.retrieve.bulk import rank_many
from memoryfield.retrieve.embedding import embed_questions
from memoryfield.retrieve.search import RETRIEVERS, SearchTarget, search

HARBOR = Path(__file__).parents[2] / "data" / "harbor"
QUESTIONS = [
    "how do I anchor the boat",
    "flour and water for bread",
    "boat",
    "ENGINE-oil, filter_season",
    "",
    "?!",
    "nothing of this kind xylophone",
    "knead the dough until smooth",
]


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> PageDirectory:
    """Return the harbor's pages, some of them twice: equal pages tie in both halves."""
    folder = tmp_path_factory.mktemp("harbor")
    for number, path in enumerate(sorted(HARBOR.glob("*.md"))):
        (folder / path.name).write_bytes(path.read_bytes())
        if number % 3 == 0:
            (folder / f"again-{path.name}").write_bytes(path.read_bytes())
            (folder / f"zz-{path.name}").write_bytes(path.read_bytes())
    return PageDirectory(folder)


def assert_same(target: SearchTarget, questions: list[str], retriever: str, depth: int) -> None:
    found = rank_many(target, questions, retriever, depth)
    for number, question in enumerate(questions):
        alone = search([target], question, k=depth, retriever=retriever)
        ranked = found.ranked(number)
        assert [name for name, _ in ranked] == alone.names, question
        assert [score for _, score in ranked] == pytest.approx([hit.score for hit in alone], rel=1e-6)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_small_field(target: SearchTarget, retriever: str) -> None:
    assert_same(target, QUESTIONS, retriever, 10)
    assert_same(target, QUESTIONS, retriever, 2)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_ties_of_equal_pages(harbor: PageDirectory, targets_of: Callable[..., SearchTarget], retriever: str) -> None:
    target = targets_of(harbor, load_model("hashing-1024"))
    titles = [harbor.read(name).title for name in harbor.names()][::9]
    assert_same(target, [*titles, "the tide box", "when is the slip usable", "who has the key"], retriever, 20)


def test_search_sees_equal_pages_as_equal(harbor: PageDirectory, targets_of: Callable[..., SearchTarget]) -> None:
    found = rank_many(targets_of(harbor, load_model("hashing-1024")), ["varnish bloomed white"], "vector", 9)
    names = [name for name, _ in found.ranked(0)]
    scores = [score for _, score in found.ranked(0)]
    assert sorted(scores, reverse=True) == scores
    for name, score in found.ranked(0):
        if f"again-{name}" in names:
            assert scores[names.index(f"again-{name}")] == score


def test_changed_pages_are_seen(target: SearchTarget, field: PageDirectory) -> None:
    rank_many(target, ["boat"], "keyword")
    (field.path / "lantern.md").write_text("---\ntitle: Lantern\n---\nA lantern at the masthead.\n", encoding="utf-8")
    (field.path / "bread.md").unlink()
    found = rank_many(target, ["lantern masthead", "flour bread"], "keyword")
    assert found.ranked(0)[0][0] == "lantern"
    assert "bread" not in found.names
    assert rank_many(target, ["lantern"], "vector").names == found.names


def test_shape_and_progress(target: SearchTarget) -> None:
    seen: list[tuple[int, int]] = []
    found = rank_many(target, QUESTIONS, "hybrid", 3, progress=lambda done, total: seen.append((done, total)))
    assert found.order.shape == found.scores.shape == (len(QUESTIONS), 3)
    assert (found.order.dtype.name, found.scores.dtype.name) == ("int32", "float32")
    assert found.ranked(4) == []
    assert (found.order[4] == -1).all()
    assert found.embedding_seconds.shape == found.search_seconds.shape == (len(QUESTIONS),)
    assert seen[0] == (0, len(QUESTIONS)) and seen[-1] == (len(QUESTIONS), len(QUESTIONS))
    frame = found.to_frame()
    assert len(frame) == (found.order >= 0).sum()
    assert frame[frame["question"] == "boat"]["name"].tolist() == [name for name, _ in found.ranked(2)]
    assert repr(found) == "<Rankings: 8 questions over 5 pages, the first 3 kept (hybrid, toy-model)>"


def test_nothing_to_rank(
    tmp_path: Path, targets_of: Callable[..., SearchTarget], toy_model: Callable[..., Any]
) -> None:
    (tmp_path / "empty").mkdir()
    target = targets_of(PageDirectory(tmp_path / "empty"), toy_model())
    for retriever in RETRIEVERS:
        assert rank_many(target, ["boat"], retriever).ranked(0) == []
        assert rank_many(target, [], retriever).order.shape == (0, 100)


def test_bad_input(target: SearchTarget) -> None:
    with pytest.raises(QueryError, match="one text"):
        rank_many(target, "boat")
    with pytest.raises(QueryError, match="k=0"):
        rank_many(target, ["boat"], depth=0)
    with pytest.raises(QueryError, match="no retriever 'fuzzy'"):
        rank_many(target, [], "fuzzy")
    with pytest.raises(QueryError, match="it has to be text"):
        rank_many(target, ["boat", None])  # type: ignore[list-item]


def test_questions_get_the_query_prefix(toy_model: Callable[..., Any]) -> None:
    model = toy_model()
    rows = embed_questions(model, QUESTIONS)
    assert rows.shape == (len(QUESTIONS), model.dimensions)
    assert not rows[4].any()
    for question, row in zip(QUESTIONS, rows, strict=True):
        if row.any():
            alone = model.embed_query(question)
            np.testing.assert_allclose(row, alone / np.linalg.norm(alone), atol=1e-6)
