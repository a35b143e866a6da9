"""The gate says that nothing here answers a question."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.vectors import VectorIndex
from memoryfield.retrieve import gate as gates
from memoryfield.retrieve.bulk import rank_many
from memoryfield.retrieve.gate import calibrated_gate, gate_from_probes, thrown_together
from memoryfield.retrieve.knownitems import known_items
from memoryfield.retrieve.search import SearchTarget, search

HARBOR = Path(__file__).parents[2] / "data" / "harbor"
ELSEWHERE = [
    "how many moons does the planet Jupiter have",
    "who wrote the opera about a hunchback",
    "which desert is the driest on earth",
    "what is the rarest blood group",
    "when did women get the vote in Switzerland",
    "how is silk made from cocoons",
]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> PageDirectory:
    folder = tmp_path_factory.mktemp("yard")
    for path in sorted(HARBOR.glob("*.md"))[:40]:
        shutil.copyfile(path, folder / path.name)
    return PageDirectory(folder)


@pytest.fixture(scope="module")
def target(yard: PageDirectory) -> SearchTarget:
    vectors, words = VectorIndex(yard, load_model("all-MiniLM-L6-v2")), KeywordIndex(yard)
    vectors.sync()
    words.sync()
    return SearchTarget("yard", yard, vectors, words)


def summaries(yard: PageDirectory) -> list[str]:
    return [yard.read(name).summary for name in yard.names() if yard.read(name).summary]


def test_keeps_the_fields_own_questions_and_not_those_from_elsewhere(target: SearchTarget, yard: PageDirectory) -> None:
    gate = calibrated_gate(target)
    assert 0.0 < gate.threshold < 1.0
    assert (gate.scores(summaries(yard)) >= gate.threshold).mean() >= 0.9
    assert (gate.scores(ELSEWHERE) >= gate.threshold).mean() <= 0.25
    assert "learned from the words of" in repr(gate) and "90%" in repr(gate)
    assert json.dumps(gate.to_dict())


def test_search_says_so(target: SearchTarget) -> None:
    found = search([target], ELSEWHERE[0], gate=True)
    assert not found and found.passed_gate is False
    assert found.reason.startswith("nothing above the gate: the nearest page has ")
    assert "nothing above the gate" in repr(found)
    assert found.to_dict()["passed_gate"] is False
    own = search([target], "reaching the owner who only takes phone calls", gate=True)
    assert own and own.passed_gate is True
    assert search([target], ELSEWHERE[0]).passed_gate is None


def test_nothing_saved_yet_is_another_answer(tmp_path: Path, toy_model: Callable[..., Any]) -> None:
    (tmp_path / "empty").mkdir()
    source = PageDirectory(tmp_path / "empty")
    target = SearchTarget("empty", source, VectorIndex(source, toy_model()), KeywordIndex(source))
    found = search([target], "boat", gate=True)
    assert found.reason == "nothing saved yet: no pages"
    (source.path / "one.md").write_text("---\ntitle: One\n---\nA single page about boats.\n", encoding="utf-8")
    found = search([target], "boat", gate=True)
    assert found.names == ["one"] and found.passed_gate is True
    assert repr(calibrated_gate(target)).startswith("<Gate open")


def test_one_score_alone_in_bulk_and_from_rankings(target: SearchTarget) -> None:
    gate = calibrated_gate(target)
    questions = [*ELSEWHERE, "which pump needs a new impeller", ""]
    scores = gate.scores(questions)
    assert scores[-1] == -1.0 and not gate.passes("")
    for retriever in ("vector", "hybrid", "keyword", "rrf"):
        np.testing.assert_allclose(gate.scores(rank_many(target, questions, retriever)), scores, atol=1e-5)
    assert gate.score(questions[6]) == pytest.approx(scores[6], abs=1e-5)
    assert gate.passes(search([target], questions[6])) == gate.passes(questions[6]) == (scores[6] >= gate.threshold)


def test_learned_once(yard: PageDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    index = VectorIndex(yard, load_model("hashing-1024"))
    index.sync()
    first = calibrated_gate(SearchTarget("yard", yard, index))
    monkeypatch.setattr(gates, "thrown_together", lambda items: pytest.fail("learned again"))
    assert calibrated_gate(SearchTarget("yard", yard, index)) is first
    again = VectorIndex(yard, load_model("hashing-1024"))  # as the next process would
    assert calibrated_gate(SearchTarget("yard", yard, again)).threshold == first.threshold


def test_questions_thrown_together_use_words_of_many_pages(yard: PageDirectory) -> None:
    items = known_items(yard, yard.snapshot())
    made = thrown_together(items)
    assert made == thrown_together(items) and 10 < len(made) <= len(items)
    assert not set(made) & {item.question for item in items}


def test_from_probes(target: SearchTarget, yard: PageDirectory) -> None:
    asked = summaries(yard)
    gate = gate_from_probes(target, asked, ELSEWHERE, keep=0.8)
    assert gate.kept == pytest.approx(0.8, abs=0.05)
    assert gate.passed == 0.0
    assert gate_from_probes(target, asked, keep=1.0).kept == 1.0
    assert search([target], ELSEWHERE[1], gate=gate).passed_gate is False
    for keep in (0.0, 1.5, True, "all"):
        with pytest.raises(QueryError, match="keep="):
            gate_from_probes(target, asked, keep=keep)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="there are none"):
        gate_from_probes(target, [])


def test_filter_and_gate(target: SearchTarget) -> None:
    gate = calibrated_gate(target)
    question = "reaching the owner who only takes phone calls"
    found = search([target], question, gate=gate)
    none_of_these = search([target], question, gate=gate, until="2000", since="1999")
    assert found.passed_gate is True and not none_of_these


def test_bad_gates(target: SearchTarget, yard: PageDirectory, toy_model: Callable[..., Any]) -> None:
    gate = calibrated_gate(target)
    with pytest.raises(QueryError, match="'keyword' uses none"):
        search([target], "x", retriever="keyword", gate=True)
    with pytest.raises(QueryError, match="one field"):
        search([target, target], "x", gate=True)
    with pytest.raises(QueryError, match="or a Gate"):
        search([target], "x", gate=0.5)  # type: ignore[arg-type]
    other = SearchTarget("yard", yard, VectorIndex(yard, toy_model()), KeywordIndex(yard))
    with pytest.raises(QueryError, match="the gate is for vectors of"):
        search([other], "x", gate=gate)
    with pytest.raises(QueryError, match="choose a model"):
        calibrated_gate(SearchTarget("yard", yard, None, KeywordIndex(yard)))
    with pytest.raises(QueryError, match="one text"):
        gate.scores("x")
