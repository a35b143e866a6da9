"""Each kind of evidence on two pages for itself; whole tiles and single pairs say the same."""

from __future__ import annotations

import numpy as np
import pytest

from memoryfield.curate.evidence import OTHER_NUMBERS, OTHER_WORD, SHARED_LINES, SHARED_NUMBERS, Evidence, title_form
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
