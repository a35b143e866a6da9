"""Weighted score fusion, and the weight that is learned from the field."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoryfield as mf
from memoryfield.display import score_text
from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.termscores import TermScores
from memoryfield.index.vectors import VectorIndex
from memoryfield.retrieve import weights
from memoryfield.retrieve.bulk import rank_many
from memoryfield.retrieve.hybrid import LEAST_WEIGHT, MOST_WEIGHT, field_weight, question_weight, scaled, share_of_words
from memoryfield.retrieve.knownitems import known_items
from memoryfield.retrieve.search import SearchTarget, search
from memoryfield.retrieve.weights import USUAL_WEIGHT, learned_weight, weight_from_probes

HARBOR = Path(__file__).parents[2] / "data" / "harbor"
PROBES = HARBOR.with_name("harbor.probes.jsonl")
Make = Callable[..., SearchTarget]


@pytest.fixture
def harbor(tmp_path: Path) -> PageDirectory:
    folder = tmp_path / "harbor-field"
    folder.mkdir()
    for path in sorted(HARBOR.glob("*.md"))[:60]:
        shutil.copyfile(path, folder / path.name)
    return PageDirectory(folder)


@pytest.fixture
def hashed(harbor: PageDirectory) -> SearchTarget:
    return ready(harbor)


def ready(source: PageDirectory, model: Any = None) -> SearchTarget:
    """Return a field of which both indexes are in step."""
    vectors, words = VectorIndex(source, model or load_model("hashing-1024")), KeywordIndex(source)
    vectors.sync()
    words.sync()
    return SearchTarget(source.path.name, source, vectors, words)


# The formula


def test_scaled_scores() -> None:
    assert scaled(np.array([0.0, 1.0, 3.0]), 1.0, 3.0).tolist() == [-0.5, 0.0, 1.0]
    assert scaled(np.array([2.0, 2.0]), 2.0, 2.0).tolist() == [0.0, 0.0]


def test_weight_follows_known_items_within_bounds() -> None:
    ratios = [0.0, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0]
    found = [field_weight(ratio) for ratio in ratios]
    assert found == sorted(found)
    assert found[0] == LEAST_WEIGHT and found[-1] == MOST_WEIGHT


def test_literal_questions_leave_it_to_words() -> None:
    assert question_weight(0.7, 0.3) == question_weight(0.7, 0.8) == pytest.approx(0.7)
    assert question_weight(0.7, 1.0) < 0.1 < question_weight(0.7, 0.9) < 0.7


def test_share_of_words_counts_rare_ones_more() -> None:
    rows, scores = np.arange(9), np.ones(9)
    held = TermScores(tuple("abcdefghij"), {'"the"': (rows, scores), '"winch"': (rows[:1], scores[:1])})
    terms = ['"the"', '"winch"', '"the winch"']
    assert share_of_words(terms, held, 0) == pytest.approx(1.0)
    assert share_of_words(terms, held, 1) < 0.1
    assert share_of_words(terms, held, 9) == 0.0
    assert share_of_words([], held, 0) == 0.0


def test_extreme_weights_are_the_halves(hashed: SearchTarget) -> None:
    question = "which oil does the travel lift take"
    vector = search([hashed], question, retriever="vector").names
    assert search([hashed], question, weight=1.0).names[:5] == vector[:5]
    words = search([hashed], question, retriever="keyword").names
    assert search([hashed], question, weight=0.0).names == words
    assert search([hashed], question, weight=0.5).notes[-1] == "hybrid: 0.50 vector + 0.50 keyword, as given"


def test_first_pages_do_not_depend_on_k(hashed: SearchTarget) -> None:
    question = "spring hours and keys of the yard"
    assert search([hashed], question, k=3).names == search([hashed], question, k=50).names[:3]


def test_question_without_known_words_goes_by_vector(harbor: PageDirectory, toy_model: Callable[..., Any]) -> None:
    target = ready(harbor, toy_model())
    found = search([target], "zzxx qqyy", k=5)
    assert found.names == search([target], "zzxx qqyy", k=5, retriever="vector").names
    assert len(found) == 5


def test_question_without_vector_goes_by_words(hashed: SearchTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    model = hashed.vectors.embedder if hashed.vectors is not None else None
    monkeypatch.setattr(model, "embed_query", lambda text: np.zeros(1024, np.float32))
    found = search([hashed], "travel lift", k=5)
    assert found.names == search([hashed], "travel lift", k=5, retriever="keyword").names
    assert found[0].score == pytest.approx(1.0)


def test_filter_keeps_scores(hashed: SearchTarget) -> None:
    question = "travel lift"
    whole = {hit.name: hit.score for hit in search([hashed], question, k=60)}
    some = search([hashed], question, k=60, until="2025")
    assert 0 < len(some) < len(whole)
    assert {hit.name: hit.score for hit in some} == pytest.approx({name: whole[name] for name in some.names})


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), True, "half"])
def test_weight_that_is_none(hashed: SearchTarget, bad: Any) -> None:
    with pytest.raises(QueryError, match="weight="):
        search([hashed], "x", weight=bad)


# Two fields


def test_two_fields_are_ranked_as_one(tmp_path: Path) -> None:
    files = sorted(HARBOR.glob("*.md"))[:60]
    halves: list[SearchTarget] = []
    for number in range(2):
        folder = tmp_path / f"half-{number}"
        folder.mkdir()
        for path in files[number::2]:
            shutil.copyfile(path, folder / path.name)
        halves.append(ready(PageDirectory(folder)))
    whole = tmp_path / "whole"
    whole.mkdir()
    for path in files:
        shutil.copyfile(path, whole / path.name)
    together = search(halves, "travel lift hydraulic oil", weight=0.6)
    alone = search([ready(PageDirectory(whole))], "travel lift hydraulic oil", weight=0.6)
    # BM25 knows the mean length of pages field by field, so scores are near and not the same.
    assert set(together.names[:5]) == set(alone.names[:5])
    assert together[0].score == pytest.approx(alone[0].score, rel=0.1)
    assert "2 fields" in search(halves, "travel lift").notes[-1]


# Learning


def test_known_items_are_words_of_their_pages(harbor: PageDirectory) -> None:
    items = known_items(harbor, harbor.snapshot(), 20)
    assert len(items) == 20 and len({item.name for item in items}) == 20
    assert "index" not in {item.name for item in items}
    for item in items:
        text = harbor.read(item.name).text
        assert all(word in text for word in item.question.split())


def test_an_edit_changes_one_known_item_at_most(harbor: PageDirectory) -> None:
    before = {item.question for item in known_items(harbor, harbor.snapshot(), 20)}
    (harbor.path / "new-page.md").write_text("---\ntitle: New\n---\nA page that was not here a minute ago.\n")
    after = {item.question for item in known_items(harbor, harbor.snapshot(), 20)}
    assert len(before - after) <= 1


def test_learned_once_and_kept(hashed: SearchTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = weights.known_item_ratio

    def counted(target: SearchTarget, items: Any) -> float:
        calls.append(len(items))
        return original(target, items)

    monkeypatch.setattr(weights, "known_item_ratio", counted)
    first = learned_weight([hashed])
    assert first == learned_weight([hashed]) == learned_weight([ready(hashed.source)])  # type: ignore[arg-type]
    assert len(calls) == 1 and calls[0] > 40
    assert LEAST_WEIGHT <= first.vector <= MOST_WEIGHT
    assert first.note == f"hybrid: {first.vector:.2f} vector + {1 - first.vector:.2f} keyword, " + first.learned_from
    path = Path(os.environ["MEMORYFIELD_CACHE_DIR"]) / "learned"
    file = next(path.glob("*.json"))
    for rubbish in ("", "[]", '{"a": 1}', json.dumps({key: {"value": "x"} for key in json.loads(file.read_text())})):
        file.write_text(rubbish, encoding="utf-8")
        assert learned_weight([ready(hashed.source)]) == first  # type: ignore[arg-type]
    assert len(calls) == 5


def test_a_number_from_the_cache_is_not_believed_blindly(hashed: SearchTarget) -> None:
    first = learned_weight([hashed])
    file = next((Path(os.environ["MEMORYFIELD_CACHE_DIR"]) / "learned").glob("*.json"))
    kept = json.loads(file.read_text())
    for entry in kept.values():
        entry["value"] = 1e9
    file.write_text(json.dumps(kept))
    assert learned_weight([ready(hashed.source)]) == first  # type: ignore[arg-type]


def test_vectors_that_know_nothing_lose_weight(harbor: PageDirectory) -> None:
    class Blind:
        """A model that places every text at the same point, nearly."""

        def __getattr__(self, name: str) -> Any:
            return getattr(load_model("hashing-1024"), name)

        def embed_documents(self, texts: Any) -> Any:
            rows = np.random.default_rng(len(texts)).normal(size=(len(texts), 1024)).astype(np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        def embed_query(self, text: str) -> Any:
            return self.embed_documents([text])[0]

    blind = ready(harbor, Blind())
    assert learned_weight([blind]).vector < 0.3
    titles = [harbor.read(name).title for name in harbor.names()[:20]]
    found = rank_many(blind, titles, depth=1)
    by_words = rank_many(blind, titles, "keyword", depth=1)
    assert (found.order == by_words.order).mean() >= 0.9


def test_a_model_of_spellings_counts_for_little(hashed: SearchTarget) -> None:
    assert not weights.knows_meanings(load_model("hashing-1024"))
    assert weights.knows_meanings(load_model("all-MiniLM-L6-v2"))
    assert learned_weight([hashed]).vector < 0.3


def test_small_field_has_the_usual_weight(target: SearchTarget) -> None:
    assert search([target], "boat").notes == (USUAL_WEIGHT.note,)


def test_probes_move_the_weight(hashed: SearchTarget) -> None:
    probes = [json.loads(line) for line in PROBES.read_text(encoding="utf-8").splitlines()]
    pairs = [(probe["question"], probe["gold"]) for probe in probes]
    found = weight_from_probes(hashed, pairs)
    assert 0.0 <= found.vector <= 1.0 and "probes" in found.learned_from
    assert search([hashed], "travel lift", weight=found).notes[-1] == found.note
    literal = [(hashed.source.read(name).title, [name]) for name in hashed.source.names()]
    assert weight_from_probes(hashed, literal).vector <= 1.0
    with pytest.raises(QueryError, match="none of the probes"):
        weight_from_probes(hashed, [("who", ["not-here"])])


def test_the_scores_of_two_pages_are_what_the_documentation_says(tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "two", create=True, model="hashing-1024")
    field.write("salt", title="Salt", summary="Where the salt is", body="The salt is in the red cup.\n")
    field.write("rope", title="Rope", summary="Where the rope is", body="The rope hangs behind the door.\n")
    both = field.search("where is the salt", retriever="hybrid")
    assert [hit.name for hit in both] == ["salt", "rope"]
    assert [hit.score for hit in both] == [pytest.approx(1.0), pytest.approx(-1.0)]
    best = field.search("where is the salt", retriever="keyword")[0]
    assert best.name == "salt" and score_text(best.score) == "0.0000055"
    told = (Path(__file__).parents[2] / "docs" / "howto" / "search.md").read_text(encoding="utf-8")
    assert "-1.000" in told and score_text(best.score) in told
