"""The hypotheses: no chains, answers move the cut, blocks give what the whole gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memoryfield.curate import blocking
from memoryfield.curate.committee import Committee, Tile
from memoryfield.curate.families import families
from memoryfield.curate.linkage import Tree, constrained_average, neighbour_level, silhouettes
from memoryfield.curate.settings import Settings
from memoryfield.format.page import Page

_KINDS = ("content", "head", "words", "jaccard", "title", "lines", "numbers", "template", "slot", "same", "unlike")


def _committee(
    similarity: np.ndarray, blocks: list[np.ndarray] | None = None, settings: Settings | None = None
) -> Committee:
    def tile(block: np.ndarray) -> Tile:
        part = similarity[np.ix_(block, block)]
        none = np.zeros_like(part)
        return {
            kind: part.copy() if kind in ("content", "head", "words", "jaccard", "title") else none for kind in _KINDS
        }

    settings = settings or Settings()
    levels = {name: np.full(len(similarity), 0.3) for name in settings.views}
    return Committee(len(similarity), blocks or [np.arange(len(similarity))], tile, levels, settings)


def _grouped(near: float, groups: int = 6, size: int = 3, far: float = 0.3) -> np.ndarray:
    label = np.repeat(np.arange(groups), size)
    similarity = np.where(label[:, None] == label[None, :], near, far)
    noise = np.random.default_rng(1).normal(0, 0.01, similarity.shape)
    similarity = similarity + noise + noise.T
    np.fill_diagonal(similarity, 1)
    return similarity


def test_groups_are_found_and_asked_about_only_where_it_matters() -> None:
    committee = _committee(_grouped(0.8))
    labels = committee.labels()
    assert len(np.unique(labels)) == 6 and all(len(set(labels[i : i + 3])) == 1 for i in range(0, 18, 3))
    assert committee.precision(labels).estimate > 0.9
    assert len(committee.borderline(4)) == 4 and committee.borderline(0) == []


def test_a_chain_is_no_family() -> None:
    place = np.arange(12)
    similarity = np.where(np.abs(place[:, None] - place[None, :]) == 1, 0.75, 0.3)
    np.fill_diagonal(similarity, 1)
    labels = _committee(similarity).labels()
    assert max(np.unique(labels, return_counts=True)[1]) <= 2


def test_answers_teach_how_broad_a_family_is() -> None:
    loose = _committee(_grouped(0.46, groups=40))
    pairs = [(i, i + 1) for i in range(0, 12, 3)]
    yes, no = (loose.answered(dict.fromkeys(pairs, same)) for same in (True, False))
    rest = loose.position(60, 61)
    assert rest is not None
    assert no.probabilities()[rest] < loose.probabilities()[rest] < yes.probabilities()[rest]
    assert len(np.unique(yes.labels())) < len(np.unique(no.labels()))
    assert yes.labels()[0] == yes.labels()[1] and no.labels()[0] != no.labels()[1]
    more = loose.answered({(i, i + 1): True for i in range(0, 90, 3)})
    width = [p.high - p.low for p in (committee.precision(yes.labels()) for committee in (yes, more))]
    assert width[1] < width[0]


def test_where_hardly_any_pair_stands_clear_each_is_believed_less() -> None:
    """Among 70 pages whose nearest are all a little nearer than usual, and none said again."""
    alone = _committee(_grouped(0.5, groups=35, size=2))
    assert alone.rarity > 1 and len(np.unique(alone.labels())) > 65
    clear = _grouped(0.5, groups=35, size=2)
    clear[:20, :20] = np.maximum(clear[:20, :20], _grouped(0.9, groups=10, size=2))
    amid = _committee(clear)
    assert amid.rarity == 0 and len(np.unique(amid.labels())) < 45
    expected, found = alone.expected(), alone.probabilities()
    assert (expected <= found + 1e-12).all() and expected.sum() < found.sum()


def test_a_few_answers_move_less_than_their_likelihood() -> None:
    """One answer of twenty, or one alone: the first is believed less than half."""
    loose = _committee(_grouped(0.46, groups=40))
    rest = loose.position(60, 61)
    assert rest is not None
    one = loose.answered({(0, 1): True}).probabilities()[rest]
    full = loose.settings
    quick = _committee(_grouped(0.46, groups=40), settings=replace(full, calm=0.0)).answered({(0, 1): True})
    assert loose.probabilities()[rest] < one < quick.probabilities()[rest]


def test_answers_have_no_order_and_can_be_taken_back() -> None:
    committee = _committee(_grouped(0.5))
    one = committee.answered({(0, 1): True}).answered({(0, 1): True, (4, 9): False})
    other = committee.answered({(9, 4): False, (1, 0): True})
    assert (one.probabilities() == other.probabilities()).all()
    assert (one.answered({}).probabilities() == committee.probabilities()).all()
    assert set(one.borderline(500)).isdisjoint({(0, 1), (4, 9)})


def test_positions_and_pairs_are_inverse_in_blocks() -> None:
    blocks = [np.array([0, 3, 5, 9]), np.array([7]), np.array([1, 2])]
    committee = _committee(_grouped(0.8), blocks)
    places = np.arange(7)
    pairs = committee.pairs_at(places)
    assert pairs == [(0, 3), (0, 5), (0, 9), (3, 5), (3, 9), (5, 9), (1, 2)]
    assert [committee.position(b, a) for a, b in pairs] == places.tolist()
    assert committee.position(0, 1) is None and committee.position(7, 7) is None
    joined = committee.answered({(0, 17): True}).labels()  # in no common block
    assert joined[0] == joined[17]
    apart = committee.answered({(0, 16): True, (0, 17): True, (16, 17): False}).labels()
    assert len({int(apart[0]), int(apart[16]), int(apart[17])}) == 2


def test_must_and_cannot() -> None:
    p = np.full((4, 4), 0.6)
    barred = np.zeros((4, 4), dtype=bool)
    barred[0, 1] = barred[1, 0] = True
    labels = constrained_average(p, [(2, 3)], barred, 0.5)
    assert labels[2] == labels[3] and labels[0] != labels[1]
    assert len(np.unique(constrained_average(p, [], np.zeros_like(barred), 0.7))) == 4


def test_pieces_of_the_linkage() -> None:
    assert (silhouettes(np.zeros((3, 3)), np.zeros(3, dtype=np.int64)) == -1).all()
    tree = Tree(_grouped(0.8))
    assert len(np.unique(tree.labels(0.6))) == 6 and len(np.unique(tree.labels(2.0))) == 18
    assert (np.diff(tree.heights) <= 1e-12).all()
    assert neighbour_level(np.array([[-np.inf]]), 2, 10)[0] == pytest.approx(0.3)


def test_a_large_field_is_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    words = [f"word{i}" for i in range(400)]
    topics = [" ".join(rng.choice(words, 14, replace=False)) for _ in range(70)]
    pages = [Page(f"p{i:03}", f"# {topics[i % 60][:25]}\n\n{topics[i % 60]}\n".encode()) for i in range(70)]
    rows = rng.normal(size=(70, 32))
    rows[60:] = rows[:10] + rng.normal(size=(10, 32)) * 0.05
    whole = families(pages, rows, model_code="m")
    monkeypatch.setattr(blocking, "ALL_AT_ONCE", 20)
    monkeypatch.setattr(blocking, "_LARGEST_BLOCK", 12)
    monkeypatch.setattr(blocking, "_STRIP", 16)
    parted = families(pages, rows, model_code="m")
    assert [f.members for f in parted] == [f.members for f in whole]
    assert [set(f.members) for f in sorted(whole, key=lambda f: f.members)] == [
        {f"p{i:03}", f"p{i + 60:03}"} for i in range(10)
    ]
