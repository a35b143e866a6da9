"""Probes put to retrievers: the figures, what they are made of, and what happens where there is little or nothing."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import memoryfield as mf
from memoryfield.errors import ModelNotReady, QueryError, RowError
from memoryfield.examples import example_field
from memoryfield.study.evaluation.differences import diff
from memoryfield.study.evaluation.evaluation import Evaluation
from memoryfield.study.evaluation.files import load_evaluation
from memoryfield.study.evaluation.misses import BY_ALL, KEYWORD_ONLY, SAME_FAMILY, VECTOR_ONLY, find_misses
from memoryfield.study.evaluation.outcomes import Run
from memoryfield.study.probes import Probe, Probes, read_probes

DATA = example_field("harbor").parent
ABOUT: dict[str, Any] = {
    "schema": 1,
    "field": "made-up",
    "pages": 9,
    "field_sha256": "0" * 64,
    "probes_sha256": "1" * 64,
    "ks": [1, 3],
    "depth": 100,
    "resamples": 500,
    "confidence": 0.95,
    "seed": 0,
    "versions": {},
}


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> mf.MemoryField:
    folder = tmp_path_factory.mktemp("evaluate") / "harbor"
    shutil.copytree(DATA / "harbor", folder)
    return mf.open_field(folder, model="hashing-1024")


@pytest.fixture(scope="module")
def found(harbor: mf.MemoryField) -> Evaluation:
    families = DATA / "harbor.families.csv"
    return harbor.evaluate(DATA / "harbor.probes.jsonl", families=families, timed=4, progress=False)


def small(tmp_path: Path, pages: dict[str, str]) -> mf.MemoryField:
    folder = tmp_path / "small"
    folder.mkdir()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(f"---\ntitle: {name}\n---\n{text}\n", encoding="utf-8")
    return mf.open_field(folder, model="hashing-1024")


def run(label: str, ranks: list[int], retriever: str = "vector", **more: Any) -> Run:
    own = tuple((rank,) if rank else () for rank in ranks)
    tops = more.pop("top", tuple(("x",) for _ in ranks))
    family = tuple(more.pop("family", ranks))
    scores = tuple(more.pop("scores", [0.5] * len(ranks)))
    return Run(label, retriever, None, None, own, family, tops, scores, **more)


def made_up(runs: list[Run], probes: list[Probe] | None = None, **about: Any) -> Evaluation:
    if probes is None:
        probes = [Probe(f"p{i}", f"question {i}", ["gold"]) for i in range(len(runs[0].gold_ranks))]
    return Evaluation(Probes(probes), tuple(runs), {**ABOUT, **about})


# ---- the figures of a real field


def test_ranks_are_those_of_search(harbor: mf.MemoryField, found: Evaluation) -> None:
    for number in (0, 17, 50, 90):
        probe = found.probes[number]
        for label in ("vector", "keyword", "hybrid"):
            hits = [hit.name for hit in harbor.search(probe.question, 100, label, progress=False)]
            expected = tuple(sorted(hits.index(name) + 1 for name in probe.gold if name in hits))
            assert found[label].gold_ranks[number] == expected
            assert found[label].top[number] == tuple(hits[:10])


def test_figures_follow_from_the_ranks(found: Evaluation) -> None:
    answerable = [i for i, probe in enumerate(found.probes) if probe.answerable]
    first = found["keyword"].first[answerable]
    assert found.estimate("recall@3", "keyword").value == pytest.approx(np.mean((first > 0) & (first <= 3)))
    assert found.estimate("mrr", "keyword").value == pytest.approx(np.mean([1 / r if r else 0 for r in first]))
    assert found.estimate("mrr", "keyword").n == 106
    for label in found.labels:
        for k in found.ks:
            own, family = found.estimate(f"recall@{k}", label), found.estimate(f"family_recall@{k}", label)
            assert own.low <= own.value <= own.high and own.value <= family.value
    assert found.metrics[:6] == ["recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@10"]


def test_the_hashed_baseline_and_settings_are_retrievers(harbor: mf.MemoryField, found: Evaluation) -> None:
    content = ("content", {"retriever": "vector", "recipe": "content", "model": "hashing-1024"})
    other = harbor.evaluate(found.probes, ["hashed", content], timed=0, progress=False)
    assert other.labels == ["hashed", "content"]
    assert other["hashed"].gold_ranks == found["vector"].gold_ranks  # this field's model is the same
    assert (other["content"].model_code, other["content"].recipe) == ("hashing-1024", "content")
    assert "search_ms" not in other.metrics


def test_categories_are_parts_of_the_whole(found: Evaluation) -> None:
    frame = found.by_category()
    parts = frame[(frame["metric"] == "mrr") & (frame["retriever"] == "hybrid")].dropna()
    whole = found.estimate("mrr", "hybrid")
    assert parts["n"].sum() == whole.n
    assert np.average(parts["value"], weights=parts["n"]) == pytest.approx(whole.value)
    with pytest.raises(QueryError, match="category 'none such'"):
        found.estimate("mrr", "hybrid", "none such")


def test_per_probe_says_what_stood_above(found: Evaluation) -> None:
    frame = found.per_probe()
    assert len(frame) == 130
    for probe, (_, row) in zip(found.probes, frame.iterrows(), strict=True):
        above, gold, rank = row["vector above"], set(row["gold"]), row["vector rank"]
        assert not gold & set(above)
        if not pd.isna(rank) and rank <= 10:
            assert len(above) == rank - 1
        if row["vector same family"]:
            assert row["vector top"] in probe.family_gold - gold
    assert list(frame["vector rank"].fillna(0)) == found["vector"].first.tolist()


def test_the_gate_keeps_what_it_says(found: Evaluation) -> None:
    for label in found.labels:
        assert found.estimate("answered", label).value >= 0.9
        curve = found.tradeoff(label)
        area = np.trapezoid(curve["answered"], curve["wrong_answers"])
        assert found.estimate("auc", label).value == pytest.approx(area)
        at = curve[curve["threshold"] >= found[label].threshold].iloc[-1]
        assert at["wrong_answers"] == pytest.approx(found.estimate("wrong_answers", label).value)


def test_gates_may_be_given(harbor: mf.MemoryField, found: Evaluation) -> None:
    class Gate:
        threshold = 0.5

        def scores(self, rankings: Any) -> Any:
            return np.where(np.arange(len(rankings)) < 106, 0.9, 0.1)

    given = harbor.evaluate(
        found.probes, ["vector", "keyword"], gate={"vector": Gate(), "keyword": 1e9}, timed=0, progress=False
    )
    assert given.estimate("answered", "keyword").value == given.estimate("wrong_answers", "keyword").value == 0.0
    right = [probe.answerable for probe in given.probes]
    assert [score > 0.5 for score in given["vector"].scores] == [i < 106 for i in range(130)]
    assert given.estimate("answered", "vector").n == sum(right)
    for wrong, said in (
        (math.nan, "give a number"),
        ("x", "gate of the field"),
        ({"none": 0.5}, "no retriever of that label"),
        (True, "gate of the field"),
    ):
        with pytest.raises(QueryError, match=said):
            harbor.evaluate(found.probes, ["keyword"], gate=wrong, timed=0, progress=False)  # type: ignore[arg-type]


def test_the_gate_of_the_field_is_one(harbor: mf.MemoryField, found: Evaluation) -> None:
    gate = harbor.gate(progress=False)
    gated = harbor.evaluate(found.probes, ["vector", "hybrid"], gate=gate, timed=0, progress=False)
    for label in gated.labels:
        assert gated[label].threshold == gate.threshold and gated[label].gate == "calibrated"
        passing = [gate.passes(probe.question) for probe in gated.probes[:5]]
        assert [score >= gate.threshold for score in gated[label].scores[:5]] == passing


def test_a_gate_that_is_open_lets_all_pass_also_from_a_file(tmp_path: Path) -> None:
    probes = [Probe("a", "q", ["gold"]), Probe("b", "p", answerable=False)]
    found = made_up([run("v", [1, 0], scores=[0.5, -math.inf], threshold=-math.inf, gate="calibrated")], probes)
    assert found.estimate("answered", "v").value == found.estimate("wrong_answers", "v").value == 1.0
    found.save(tmp_path / "open.json")
    assert Evaluation.load(tmp_path / "open.json") == found


def test_times_are_of_some_probes(found: Evaluation) -> None:
    assert len(found["hybrid"].search_ms) == len(found["hybrid"].embedding_ms) == 4
    assert all(ms > 0 for ms in found["vector"].embedding_ms) and set(found["keyword"].embedding_ms) == {0.0}
    assert found.estimate("search_ms", "hybrid").value <= found.estimate("search_ms_p95", "hybrid").value


def test_the_order_of_the_probes_changes_no_figure(harbor: mf.MemoryField, found: Evaluation) -> None:
    backwards = harbor.evaluate(list(found.probes)[::-1], ["keyword"], timed=0, progress=False)
    for metric in ("recall@1", "mrr", "auc", "wrong_answers"):
        assert backwards.estimate(metric, "keyword") == found.estimate(metric, "keyword")
    assert backwards.about["probes_sha256"] == found.about["probes_sha256"]


def test_it_shows_itself(found: Evaluation) -> None:
    text, html = repr(found), found._repr_html_()
    for part in ("106 probes with gold pages", "Families", "24 unanswerable", "Milliseconds", "2,000 resamples"):
        assert part in text and part in html
    frame = found.to_frame()
    assert set(frame.columns) == {"retriever", "metric", "value", "low", "high", "n"}
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["figures"]["vector"]["mrr"]["n"] == 106


@pytest.mark.parametrize("kind", ["figures", "ranks", "categories", "gate"])
def test_it_draws_itself(found: Evaluation, kind: str) -> None:
    figure = found.figure(kind)
    names = [trace.name or "" for trace in figure.data if trace.showlegend is not False]
    assert [name.split(",")[0] for name in names] == found.labels


def test_an_unknown_picture_is_refused(found: Evaluation) -> None:
    with pytest.raises(QueryError, match="figures, ranks"):
        found.figure("pie")


# ---- files


def test_what_is_saved_is_read_back(found: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    found.save(path)
    again = load_evaluation(path)
    assert again == found and repr(again) == repr(found)
    assert again.misses().counts == found.misses().counts
    about = json.loads(path.read_text())["about"]
    assert about["field_sha256"] and about["versions"]["python"] and about["seed"] == 0
    found.save(path)  # over itself
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(QueryError):
        found.save(tmp_path / "other.json")
    with pytest.raises(QueryError, match=r"\.json file"):
        found.save(tmp_path / "found.txt")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "other"}, "no evaluation"),
        ({"about": {"schema": 99}}, "newer version"),
        ({"about": {}}, "damaged"),
        ({"runs": []}, "damaged"),
        ({"runs": [5]}, "damaged"),
        ({"probes": [{"id": "a", "question": "q", "gold": ["A B"]}]}, "damaged"),
        ({"notes": 3}, "damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "made.json"
    made_up([run("vector", [1, 2])]).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RowError, match=said):
        load_evaluation(path)


@pytest.mark.parametrize("about", [{"resamples": 1_000_000}, {"depth": 10**9}, {"seed": -1}, {"ks": [101]}])
def test_a_file_of_a_stranger_cannot_ask_for_all_the_memory(tmp_path: Path, about: dict[str, Any]) -> None:
    path = tmp_path / "made.json"
    made_up([run("vector", [1] * 600)]).save(path)
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "about": {**written["about"], **about}}))
    with pytest.raises(RowError, match="damaged"):
        load_evaluation(path)


def test_the_two_groups_of_an_auc_are_drawn_apart() -> None:
    count = 40  # each answerable probe scores just above the unanswerable one of its number
    probes = [Probe(f"p{i:02}", "q", ["gold"]) for i in range(count)]
    probes += [Probe(f"u{i:02}", "q", answerable=False) for i in range(count)]
    scores = [float(i) + 0.5 for i in range(count)] + [float(i) for i in range(count)]
    found = made_up([run("vector", [1] * count + [0] * count, scores=scores)], probes).estimate("auc", "vector")
    # drawn together, all resamples would give nearly the same; Hanley and McNeil expect a standard error of .065
    assert found.value == pytest.approx(0.5125) and 0.2 < found.high - found.low < 0.32


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    made_up([run("vector", [1, 2])]).save(path)
    document = json.loads(path.read_text())
    for key, value in (("gold_ranks", [[0], [1]]), ("scores", [1]), ("top", [[1], []]), ("seconds", "x")):
        path.write_text(json.dumps({**document, "runs": [{**document["runs"][0], key: value}]}))
        with pytest.raises(RowError, match="damaged"):
            load_evaluation(path)
    path.write_text("[" * 100_000)
    with pytest.raises(RowError, match="no JSON"):
        load_evaluation(path)


# ---- misses and differences


def test_misses_are_sorted_by_kind() -> None:
    probes = [Probe(f"p{i}", f"q{i}", ["gold"], family_gold=["gold", "twin"]) for i in range(6)]
    twin, other = ("twin",), ("other",)
    runs = [
        run("v", [1, 2, 0, 0, 1, 2], "vector", top=(("gold",), twin, other, other, ("gold",), other)),
        run("k", [1, 3, 0, 1, 0, 1], "keyword", top=(("gold",), twin, (), ("gold",), other, ("gold",))),
    ]
    misses = made_up(runs, probes).misses()
    assert [(miss.probe, miss.kind) for miss in misses] == [
        ("p1", SAME_FAMILY),
        ("p2", BY_ALL),
        ("p3", KEYWORD_ONLY),
        ("p5", KEYWORD_ONLY),
        ("p4", VECTOR_ONLY),
    ]
    assert misses.counts[KEYWORD_ONLY] == 2 and len(misses.of_kind(BY_ALL)) == 1
    assert "5 of 6 probes" in repr(misses) and "<table>" in misses._repr_html_()
    assert misses.to_frame()["v rank"].isna().sum() == 2
    only = made_up(runs, probes).misses(labels=["k"])
    assert [miss.probe for miss in only] == ["p1", "p2", "p4"] and set(only[0].ranks) == {"k"}
    assert [miss.probe for miss in made_up(runs, probes).misses(3)] == ["p2", "p3", "p4"]
    for wrong in (0, True, 101, 1.5):
        with pytest.raises(QueryError, match="whole number"):
            find_misses(made_up(runs, probes), wrong)  # type: ignore[arg-type]


def test_a_clear_difference_is_sure_and_none_is_not() -> None:
    same = [1, 2, 0, 5] * 10
    better = made_up([run("old", same), run("new", [1] * 40), run("copy", list(same))])
    found = better.difference("old", "new")
    assert found.value == pytest.approx(np.mean([0, 0.5, 1, 0.8])) and found.low > 0.3 and found.p < 0.001
    assert (found.better, found.worse, found.n) == (30, 0, 40) and found.is_sure
    none = better.difference("old", "copy", "recall@1")
    assert (none.value, none.low, none.high, none.p) == (0, 0, 0, 1) and not none.is_sure
    reverse = better.difference("new", "old")
    assert (reverse.value, reverse.p) == (-found.value, found.p)


def test_many_differences_are_corrected() -> None:
    ranks = [[1, 2] * 10, [1] * 18 + [2, 2], [2] * 20]
    found = made_up([run(f"r{i}", own) for i, own in enumerate(ranks)])
    all_pairs = found.compare()
    assert len(all_pairs) == 9 and all(one.p_corrected >= one.p for one in all_pairs)
    assert "corrected for 9 differences" in repr(all_pairs)
    assert [one.second for one in found.compare(["mrr"], baseline="r0")] == ["r1", "r2"]
    assert len(all_pairs.to_frame()) == 9 and json.dumps(all_pairs.to_dict(), allow_nan=False)
    assert len(all_pairs.figure().data[0].x) == 9
    with pytest.raises(QueryError, match="no retriever is called"):
        found.compare(baseline="none")


def test_before_and_after_a_merge(tmp_path: Path) -> None:
    field = small(tmp_path, {"one": "the winch brake slips", "two": "winch brake slips again", "three": "bread dough"})
    probes = Probes([Probe("a", "brake of the winch", ["two"]), Probe("b", "dough", ["three"])])
    before = field.evaluate(probes, ["keyword"], timed=0, progress=False)
    plan = field.plan_merge(["one", "two"], into="one")
    plan.apply()
    after = field.evaluate(probes.with_gold_renamed({"two": "one"}), ["keyword"], timed=0, progress=False)
    found = diff(before, after, ["mrr"])
    assert before.diff(after, ["mrr"]).to_dict() == found.to_dict()
    assert found[0].n == 2 and found[0].after == 1.0
    assert "1 probe has other gold pages now" in found.notes
    assert "the field changed between the two: 3 to 2 pages" in found.notes
    stale = field.evaluate(probes, ["keyword"], timed=0, progress=False)
    assert "not in the field count as not found: two" in " ".join(stale.notes)


def test_diff_needs_something_in_common() -> None:
    one = made_up([run("v", [1])])
    with pytest.raises(QueryError, match="no retriever is in both"):
        diff(one, made_up([run("w", [1])]))
    with pytest.raises(QueryError, match="no probe"):
        diff(one, made_up([run("v", [1])], [Probe("z", "q", ["gold"])]))


# ---- little and nothing


def test_all_unanswerable_has_no_recall(tmp_path: Path) -> None:
    field = small(tmp_path, {"one": "winch", "two": "bread"})
    found = field.evaluate([Probe("a", "winch?", answerable=False)], timed=0, progress=False)
    estimate = found.estimate("mrr", "vector")
    assert math.isnan(estimate.value) and estimate.n == 0
    assert "recall, MRR and nDCG have no value" in " ".join(found.notes)
    assert math.isnan(found.estimate("auc", "vector").value)
    assert found.to_dict()["figures"]["vector"]["mrr"]["value"] is None
    assert "0 probes with gold pages" in repr(found)
    assert math.isnan(found.difference("vector", "keyword").value) and repr(found.compare())
    assert len(found.misses()) == 0 and len(found.by_category()) > 0
    for kind in ("figures", "gate"):
        with pytest.raises(QueryError):
            found.figure(kind)
    found.save(tmp_path / "found.json")
    assert load_evaluation(tmp_path / "found.json") == found


def test_one_page_and_k_above_the_field(tmp_path: Path) -> None:
    field = small(tmp_path, {"one": "winch"})
    found = field.evaluate(
        [Probe("a", "winch", ["one"]), Probe("b", "?!", ["one"])], ks=[1, 50], timed=1, progress=False
    )
    assert found.estimate("recall@50", "keyword").value == 0.5  # a question without words finds nothing
    assert found.estimate("recall@1", "vector").value == 0.5
    assert "the field has 1 page, fewer than k=50" in " ".join(found.notes)


def test_one_probe_has_figures_and_no_intervals(tmp_path: Path) -> None:
    field = small(tmp_path, {"salt": "The salt is in the red cup.", "rope": "The rope hangs behind the door."})
    asked = [Probe("q1", "where is the salt", frozenset(["salt"])), Probe("u1", "who won", answerable=False)]
    found = field.evaluate(asked, retrievers=("keyword", "vector"), timed=1, resamples=100, progress=False)
    frame = found.to_frame()
    counted = frame[frame["n"] > 0]
    assert {"recall@1", "mrr", "auc", "answered", "search_ms"} <= set(counted["metric"])
    assert counted["value"].notna().all() and counted[["low", "high"]].isna().all(axis=None)
    shown = repr(found) + found._repr_html_() + repr(found.compare())
    assert "[" not in shown and not re.search(r"\bnan\b", shown) and found.compare()[0].to_dict()["low"] is None
    pictures = [found.compare().figure(), *map(found.figure, ("figures", "ranks", "categories", "gate"))]
    told = [text for picture in pictures for trace in picture.data for text in (*(trace.text or ()), trace.name or "")]
    assert len(told) > 8 and not any("[" in text or "nan" in text for text in told)


def test_a_field_without_pages(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    field = mf.open_field(tmp_path / "empty", model="hashing-1024")
    found = field.evaluate([Probe("a", "winch", ["one"])], timed=1, progress=False)
    assert found.estimate("recall@10", "hybrid").value == 0.0 and found["vector"].top == ((),)


def test_probes_without_gold_count_nowhere(tmp_path: Path) -> None:
    field = small(tmp_path, {"one": "winch", "two": "bread"})
    found = field.evaluate([Probe("a", "winch", ["one"]), Probe("b", "bread")], ["keyword"], timed=0, progress=False)
    assert found.estimate("recall@1", "keyword").n == 1 and "1 probe without gold pages" in " ".join(found.notes)
    assert np.isnan(found.values("mrr", "keyword")).tolist() == [False, True]
    assert "1 probe with gold pages, 2 pages" in repr(found)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"probes": []}, "no probes"),
        ({"probes": [Probe("a", "q", ["x"]), Probe("a", "p", ["x"])]}, "id 'a'"),
        ({"probes": ["question"]}, "no Probe"),
        ({"retrievers": []}, "no retriever"),
        ({"retrievers": ["magic"]}, "magic"),
        ({"retrievers": ["keyword", "keyword"]}, "called 'keyword'"),
        ({"retrievers": [("x", {"engine": "vector"})]}, "'engine'"),
        ({"retrievers": [("x", "vector")]}, "a retriever is"),
        ({"retrievers": [5]}, "a retriever is"),
        ({"ks": [0]}, "k=0"),
        ({"ks": [1.5]}, "k=1.5"),
        ({"ks": [math.nan]}, "k=nan"),
        ({"ks": None}, "k=None"),
        ({"depth": 0}, "depth=0"),
        ({"timed": -1}, "timed=-1"),
        ({"resamples": 3}, "resamples=3"),
        ({"confidence": math.nan}, "confidence=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"families": 5}, "families are given"),
        ({"recipe": "magic", "retrievers": ["vector"]}, "no recipe 'magic'"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    field = small(tmp_path, {"one": "winch"})
    probes = settings.pop("probes", [Probe("a", "winch", ["one"])])
    with pytest.raises(QueryError, match=said):
        field.evaluate(probes, **{"retrievers": ["keyword"], "progress": False, **settings})


def test_unknown_figures_are_refused() -> None:
    found = made_up([run("v", [1, 2])])
    assert found.estimate("recall@2", "v").value == 1.0  # any k up to the depth
    for name in ("recall", "recall@0", "recall@101", "recall@x", "mrr@3", "nonsense", "recall@²"):
        with pytest.raises(QueryError, match="there is no figure"):
            found.estimate(name, "v")
    with pytest.raises(QueryError, match="no figure of single probes"):
        found.values("auc", "v")


def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    field = small(tmp_path, {"one": "winch"})
    with pytest.raises(ModelNotReady):
        field.evaluate([Probe("a", "winch", ["one"])], [("x", {"model": str(tmp_path / "none")})], progress=False)


def test_files_may_be_named(harbor: mf.MemoryField, tmp_path: Path) -> None:
    assert len(harbor.evaluate(str(DATA / "harbor.probes.jsonl"), ["keyword"], timed=0, progress=False).probes) == 130
    with pytest.raises(RowError, match="is not there"):
        harbor.evaluate(tmp_path / "none.jsonl", progress=False)
    assert read_probes(DATA / "harbor.probes.jsonl")[0].id == "harbor-0001"
