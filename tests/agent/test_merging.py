"""Hits of several fields in one order: by what the scores mean, not by how high they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoryfield as mf
from memoryfield.agent import merging
from memoryfield.agent.merging import merged_search
from memoryfield.index.embedders.hashing import HashingEmbedder

SEA = (
    "anchor",
    "buoy",
    "current",
    "dinghy",
    "estuary",
    "fathom",
    "gale",
    "halyard",
    "inlet",
    "jetty",
    "keel",
    "lagoon",
)
BREAD = ("barley", "crumb", "dough", "flour", "gluten", "hearth", "knead", "levain", "miller", "oven", "proof", "rye")


class Lifted:
    """A model whose cosines are all above 0.9: hashing, with one large direction that every text shares."""

    model_code = "lifted-1025"
    source = "tests"
    max_tokens: int | None = None
    document_prefix = query_prefix = ""
    normalized = True
    dimensions = 1025

    def __init__(self) -> None:
        self._inner = HashingEmbedder()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        found = np.asarray(self._inner.embed_documents(texts), np.float32)
        lifted = np.concatenate([found, np.full((len(found), 1), 3.0, np.float32)], axis=1)
        return lifted / np.linalg.norm(lifted, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def _field(path: Path, words: Sequence[str], pages: int, model: Any = "hashing-1024") -> mf.MemoryField:
    field = mf.open_field(path, create=True, model=model)
    for number in range(pages):
        chosen = [words[(number * step + step) % len(words)] for step in (1, 5, 7)]
        body = f"About the {chosen[0]} and the {chosen[1]}: the {chosen[2]} was seen to in week {number}.\n"
        page = f"---\ntitle: Of {chosen[0]} and {chosen[1]}\n---\n{body}"
        (path / f"{words[0]}-{number}.md").write_text(page, encoding="utf-8")
    return field


@pytest.fixture
def sea(tmp_path: Path) -> mf.MemoryField:
    return _field(tmp_path / "sea", SEA, 24)


@pytest.fixture(params=["same model", "lifted"])
def both(request: pytest.FixtureRequest, sea: mf.MemoryField, tmp_path: Path) -> Iterator[dict[str, mf.MemoryField]]:
    model = Lifted() if request.param == "lifted" else "hashing-1024"
    yield {"bread": _field(tmp_path / "bread", BREAD, 12, model), "sea": sea}


QUESTIONS = {
    "the anchor and the gale": "sea",
    "halyard near the jetty": "sea",
    "who was at the lagoon with the dinghy": "sea",
    "flour for the levain": "bread",
    "did they knead the dough by the hearth": "bread",
    "rye or barley": "bread",
}


def test_a_field_with_high_scores_does_not_drown_the_other(both: dict[str, mf.MemoryField]) -> None:
    for question, right in QUESTIONS.items():
        if both["bread"].embedder().model_code == "lifted-1025":  # even what has nothing to do with it is nearer there
            raw = {label: field.search(question, 1, "vector", progress=False)[0].score for label, field in both.items()}
            assert raw["bread"] > raw["sea"] and raw["bread"] > 0.9
        merged = merged_search(both, question, 6)
        assert [hit.field for hit in merged.hits[:2]] == [right] * 2, question
        assert [hit.rank for hit in merged.hits] == list(range(1, 7))
        scores = [hit.score for hit in merged.hits]
        assert scores == sorted(scores, reverse=True) and scores[-1] >= 0.0 and scores[0] <= 1.0
        alone = [hit.name for hit in both[right].search(question, 6, progress=False)]
        own = [hit.name for hit in merged.hits if hit.field == right]
        assert own == alone[: len(own)]  # the order within a field is that of its search
        other_way = merged_search(dict(reversed(both.items())), question, 6)
        assert [(hit.field, hit.name) for hit in other_way.hits] == [(hit.field, hit.name) for hit in merged.hits]


def test_a_question_for_both_is_answered_from_both(both: dict[str, mf.MemoryField]) -> None:
    merged = merged_search(both, "anchor and flour, keel and oven", 4)
    assert {hit.field for hit in merged.hits} == {"sea", "bread"}


def test_a_field_that_fails_and_one_without_a_model_take_nothing_with_them(sea: mf.MemoryField, tmp_path: Path) -> None:
    wordy = _field(tmp_path / "wordy", BREAD, 6, "no/such-model")
    gone = _field(tmp_path / "gone", BREAD, 1)
    for path in gone.path.iterdir():
        path.unlink()
    gone.path.rmdir()
    fields = {"sea": sea, "gone": gone, "wordy": wordy}
    merged = merged_search(fields, "flour for the levain", 3)
    assert merged.hits[0].field == "wordy" and set(merged.failed) == {"gone"} and set(merged.by_words) == {"wordy"}
    assert merged_search(fields, "the anchor in a gale", 3).hits[0].field == "sea"
    nothing = merged_search({"gone": gone}, "x", 3)
    assert nothing.hits == () and set(nothing.failed) == {"gone"}


def test_small_and_empty_fields_are_compared_too(sea: mf.MemoryField, tmp_path: Path) -> None:
    fields = {"one": _field(tmp_path / "one", BREAD, 1), "none": _field(tmp_path / "none", BREAD, 0), "sea": sea}
    merged = merged_search(fields, "about the crumb and the gluten", 3)
    assert merged.hits[0].field == "one" and "nothing saved yet" in merged.reasons["none"]
    assert merged_search(fields, "zyzzyva", 3).failed == {}


def test_the_yardstick_is_made_once_and_anew_when_a_field_grows(
    both: dict[str, mf.MemoryField], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    inner = merging._unrelated

    def counted(fields: Mapping[str, mf.MemoryField]) -> list[str]:
        made.append(1)
        return inner(fields)

    monkeypatch.setattr(merging, "_unrelated", counted)
    for _ in range(3):
        merged_search(both, "anchor and flour", 3)
    assert len(made) == 2
    for number in range(5):
        both["bread"].write(f"more-{number}", body=f"More flour, sack {number}.\n", on_similar="ignore")
    merged_search(both, "anchor and flour", 3)
    assert len(made) == 3


def test_one_field_alone_has_the_scores_of_its_search(sea: mf.MemoryField) -> None:
    alone = [(hit.name, hit.score) for hit in sea.search("anchor and gale", 5, progress=False)]
    merged = merged_search({"mine": sea}, "anchor and gale", 5).hits
    assert [(hit.name, hit.score) for hit in merged] == alone and {hit.field for hit in merged} == {"mine"}
