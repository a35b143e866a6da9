"""Each kind of evidence on two pages for itself; whole tiles and single pairs say the same."""

from __future__ import annotations

import numpy as np
import pytest

from memoryfield.curate.evidence import (
    LITTLE_SHARED,
    OPPOSITE,
    OTHER_NUMBERS,
    OTHER_VALUES,
    OTHER_WORD,
    SHARED_LINES,
    SHARED_NUMBERS,
    SHARED_RUNS,
    Evidence,
)
from memoryfield.curate.forms import body_forms, opposed, other_values, statements, title_form
from memoryfield.curate.runs import Runs
from memoryfield.format.page import Page


def _evidence(*pages: tuple[str, str]) -> Evidence:
    made = [Page(f"p{i}", f"---\ntitle: {title}\n---\n{body}\n".encode()) for i, (title, body) in enumerate(pages)]
    rows = np.eye(len(made), 8)
    return Evidence(made, rows, rows)


@pytest.mark.parametrize(
    ("one", "other", "form_equal", "values_equal"),
    [
        ("Invoice 1041", "Invoice 1042", True, False),
        ("Invoice 1041", "invoice 1041", True, True),
        ("Berth A, spring", "Berth B, autumn", True, False),
        ("A day out", "B day out", False, True),  # an article is no identifier
        ("Start the pump", "Stop the pump", True, False),
        ("Mooring M3 inspection", "Mooring M7 inspection", True, False),
        ("Mooring", "Slipway", False, True),
    ],
)
def test_titles_are_forms_with_values(one: str, other: str, form_equal: bool, values_equal: bool) -> None:
    first, second = title_form(one), title_form(other)
    assert (first.form == second.form) is form_equal and (first.values == second.values) is values_equal


def test_tiles_and_pairs_agree() -> None:
    evidence = _evidence(
        ("Invoice 31", "Total 1,210.00 on 2026-03-04\nPaid by post."),
        ("Invoice 58", "Total 845.00 on 2026-06-11\nPaid by post."),
        ("Pontoon A lamps", "Lamp 4 is dark; 3 fuses were blown."),
        ("Pontoon B water", "Lamp 4 is dark; 3 fuses were blown."),
        ("", ""),
    )
    everyone = np.arange(len(evidence))
    tile = evidence.tile(everyone, everyone)
    for kind, value in tile.items():
        assert value.shape == (5, 5) and np.isfinite(value).all() and np.allclose(value, value.T), kind
    a, b = np.triu_indices(5)
    pairs = evidence.of_pairs(a, b)
    for kind, value in tile.items():
        assert np.allclose(value[a, b], pairs[kind]), kind
    assert tile["template"][0, 1] == 1 and tile["template"][2, 3] == 0 and tile["slot"][2, 3] == 1
    assert tile["numbers"][0, 1] < 0 < tile["numbers"][2, 3]
    assert tile["lines"][2, 3] == 1 and np.allclose(evidence.content_cosines(everyone), np.eye(5))


def test_reasons_say_what_was_seen() -> None:
    evidence = _evidence(
        ("Pontoon A lamps", "Lamp 4 is dark; 13 fuses, 17 amperes."),
        ("Pontoon B water", "Also this.\nLamp 4 is dark; 13 fuses, 17 amperes."),
        ("Rope", "9 mm, 40 metres, 12 euros, bought 2026-01-02."),
    )
    values = evidence.of_pairs(np.array([0, 0]), np.array([1, 2]))
    found = [
        evidence.reasons(0, other, {kind: float(v[place]) for kind, v in values.items()}, 0.5)
        for place, other in enumerate((1, 2))
    ]
    kinds = {reason.kind: reason for reason in found[0]}
    assert "1 line," in kinds[SHARED_LINES].text and kinds[SHARED_NUMBERS].text == "3 of them"
    assert kinds[OTHER_WORD].against and kinds[OTHER_WORD].text == "a / b" and "(a / b)" in str(kinds[OTHER_WORD])
    assert [reason.kind for reason in found[1] if reason.against] == [OTHER_NUMBERS]


def test_many_pages_of_one_title_are_listed_with_the_first_only() -> None:
    assert len(_evidence(*[("Meeting", f"Note {'x' * i}.") for i in range(5)][:5]).certain_candidates) == 10
    many = [Page(f"p{i:03}", b"---\ntitle: Meeting\n---\n" + b"word " * i) for i in range(60)]
    rows = np.ones((60, 2))
    listed = Evidence(many, rows, rows).certain_candidates
    assert len(listed) == 59 and all(a == 0 for a, _ in listed)


def _reasons(one: tuple[str, str], other: tuple[str, str]) -> dict[str, str]:
    evidence = _evidence(one, other, ("Rope", "9 mm of rope"))
    values = {kind: float(v[0]) for kind, v in evidence.of_pairs(np.array([0]), np.array([1])).items()}
    return {reason.kind: reason.text for reason in evidence.reasons(0, 1, values, 0.5)}


def test_one_form_filled_twice_is_seen_in_the_body_too() -> None:
    form = "Boat: {}\n\nThe engine has run {} hours.\n\n- oil: {}\n"
    found = _reasons(("Petrel", form.format("Petrel", 412, "15W-40")), ("Dunlin", form.format("Dunlin", 977, "10W-30")))
    assert found[OTHER_VALUES] == "petrel / dunlin; 412 / 977; 15w-40 / 10w-30"
    same = _reasons(
        ("Petrel", form.format("Petrel", 412, "15W-40")), ("On Petrel", form.format("Petrel", 412, "15W-40"))
    )
    assert OTHER_VALUES not in same
    apart = _reasons(("Petrel", form.format("Petrel", 412, "15W-40")), ("Slip", "Open: always\nClosed in 1999"))
    assert OTHER_VALUES not in apart


def test_a_single_other_value_or_as_many_equal_ones_are_no_other_form() -> None:
    one = body_forms("a: 1\nb: 2\nc: 3\nplain words")
    assert other_values(one, body_forms("a: 9\nb: 2\nc: 3"))[0] == 0
    assert other_values(one, body_forms("a: 9\nb: 8\nc: 3"))[0] == pytest.approx(2 / 3)
    assert other_values(one, body_forms("a: 9\nb: 8\nc: 3\nd: 1"))[0] == pytest.approx(0.5)
    assert other_values(one, {}) == (0.0, "") == other_values({}, one)
    assert body_forms("x: 1\nx: 2") == {("x", ":"): ("1", "2")}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("The pump starts on its own.", "The pump does not start on its own.", True),
        ("Never lift a boat by its rails", "Lift a boat by its rails", True),
        ("You can lift it by hand", "You can't lift it by hand", True),
        ("Enable the second breaker first", "Disable the second breaker first", True),
        ("Open the port valve", "Open the starboard valve", True),
        ("It is not that it never leaks", "It is that it leaks", False),
        ("The pump doesn't start on its own", "The pump never starts on its own", False),
        ("No.", "Yes.", False),
        ("The pump starts on its own. The pump does not start on its own.", "The pump starts on its own.", False),
    ],
)
def test_the_opposite_in_the_same_words_is_against(one: str, other: str, found: bool) -> None:
    assert (opposed(statements(one), statements(other)) is not None) is found
    assert (OPPOSITE in _reasons(("Pump", one), ("Pump", other))) is found


def test_shared_runs_are_estimated() -> None:
    words = [f"w{i}" for i in range(400)]
    texts = [" ".join(words), " ".join(words[200:] + [f"x{i}" for i in range(200)]), "of two", "", ""]
    for by_word in (True, False):
        runs = Runs(texts, by_word=by_word)
        zero, same = np.array([0, 3, 2]), np.array([1, 4, 3])
        assert runs.of_pairs(np.array([0]), np.array([0]))[0] == 1
        assert np.allclose(runs.of_pairs(zero, same), [1 / 3, 0, 0], atol=0.15)
        assert runs.near() == {(0, 1)}
    text = "Grease the drum and the pawls with the blue tin before every haul-out of a heavy boat."
    assert "of their runs of three words" in _reasons(("A", text), ("B", text + " Ask Ines."))[SHARED_RUNS]


def test_many_texts_of_one_form_make_no_crowd_of_pairs() -> None:
    runs = Runs(["the same words again and again"] * 300, by_word=True)
    assert 290 < len(runs.near()) < 300 * 20


def test_long_pages_that_share_little_are_told() -> None:
    one, other = (" ".join(f"{letter}{i}" for i in range(200)) for letter in "ab")
    assert LITTLE_SHARED in _reasons(("One", one), ("Other", other))
    assert LITTLE_SHARED not in _reasons(("One", one[:90]), ("Other", other[:90]))
