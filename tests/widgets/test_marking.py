"""Which words of two texts are equal: runs give the text again, order does not matter, hostile texts cost little."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from memoryfield_widgets.marking import DIFFERENT, EQUAL, Run, marked


def _of(runs: list[Run], state: int) -> list[str]:
    return [text for text, found in runs if found == state]


def test_other_words_are_different_and_the_rest_is_equal() -> None:
    one, other = marked(
        ["The ferry leaves at nine from the east pier."], ["The ferry leaves at ten from the east pier."]
    )
    assert _of(one[0], DIFFERENT) == ["nine"] and _of(other[0], DIFFERENT) == ["ten"]
    assert _of(one[0], EQUAL) == ["The ferry leaves at", "from the east pier"]


def test_sentences_in_another_order_are_equal() -> None:
    first = "Grease the drum first. Never haul a wet boat. "
    second = "Never haul a wet boat. Grease the drum first."
    one, other = marked([first], [second])
    assert _of(one[0], DIFFERENT) == _of(other[0], DIFFERENT) == []


def test_words_are_compared_across_parts_whatever_their_case() -> None:
    one, _ = marked(["Winch brake", "", "lining worn"], ["other", "WINCH BRAKE LINING", "new"])
    assert [_of(runs, EQUAL) for runs in one] == [["Winch brake"], [], ["lining"]]
    assert [_of(runs, DIFFERENT) for runs in one] == [[], [], ["worn"]]


def test_scripts_without_blanks_are_compared_sign_by_sign() -> None:
    one, _ = marked(["船は九時に出る"], ["船は十時に出る"])
    assert _of(one[0], DIFFERENT) == ["九"]


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_runs_give_the_text_again(first: list[str], second: list[str]) -> None:
    for page, parts in zip(marked(first, second), (first, second), strict=True):
        assert ["".join(text for text, _ in runs) for runs in page] == parts


def test_repeated_words_cost_no_square() -> None:
    first, second = "a b " * 20_000, "b a " * 20_000
    begun = time.process_time()
    one, _ = marked([first], [second])
    assert time.process_time() - begun < 2
    assert _of(one[0], DIFFERENT) == []
