"""Unicode normal forms in linear time."""

from __future__ import annotations

import sys
import time
import unicodedata
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryfield.format.names import slug
from memoryfield.format.normal import _BEGIN_WITH_MARKS, _FIRST, _LAST, MOST_MARKS, normalized
from memoryfield.format.zipread import twin_key

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: list[Form] = ["NFC", "NFD", "NFKC", "NFKD"]
RUNS = {
    "marks of two classes": "\u0301\u0316",
    "beyond the basic plane": "\U0001d165\U0001d16d",
    "marks that come apart": "\u0344\u0316",
    "no marks, but made of them": "\u0f73",
    "half-width voice marks": "\uff9e\u0301",
}


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(max_size=MOST_MARKS))
def test_short_texts_are_normalized_as_ever(form: Form, text: str) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_thirty_marks_stay_and_no_more(form: Form) -> None:
    text = "a" + "\u0323\u0301" * 15 + "b" + "\u0316" * 30
    assert normalized(form, text) == unicodedata.normalize(form, text)
    assert normalized(form, "o\u0316" + "\u0316" * 50 + "x") == unicodedata.normalize(form, "o" + "\u0316" * 30 + "x")


@pytest.mark.parametrize(
    "work",
    [*(lambda text, form=form: normalized(form, text) for form in FORMS), lambda text: slug("a " + text), twin_key],
)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_long_runs_take_no_time(run: str, work: Callable[[str], str]) -> None:
    start = time.process_time()
    work("x" + run * (400_000 // len(run)))
    assert time.process_time() - start < 2


def test_every_mark_is_known() -> None:
    """Of this Python's Unicode: a mark, or what comes apart into something that begins with one."""
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        if unicodedata.combining(c):
            assert _FIRST <= code <= _LAST
        elif unicodedata.combining(unicodedata.normalize("NFKD", c)[0]):
            assert c in _BEGIN_WITH_MARKS
