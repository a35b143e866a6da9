"""How close two pages are: what their vectors say, measured against the field around them, and what their words say.

What counts as near is taken from the field itself, for the model at hand. The level of a page is the mean cosine to its
6th to 15th nearest pages: what its topic gives away for nothing. The closeness of two pages is the part of the way from
their level to equality that they have gone, ``(cosine - level) / (1 - level)``, so it means the same in a field of one
narrow topic and in a wide one. Numbers speak against: pages of one form with other values are not the same page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memoryfield.format.normal import normalized
from memoryfield.format.page import Page
from memoryfield.index.recipes import CONTENT, recipe_text

FloatArray = npt.NDArray[np.float32]

_NUMBERS_WEIGHT = 0.4  # taken off where no number of the one page stands in the other
_FORM_WEIGHT = 1.0  # times the common wording, taken off besides: one form filled in with other values
_FEWEST_NUMBERS = 2  # a single number says too little
_FIRST_OTHER, _LAST_OTHER = 5, 15  # neighbours before the first may be of the family, those after the last far away
_FEWEST_PAGES = 5  # below, a field has no level of its own and only the wording counts
_HIGHEST_LEVEL = 0.999
_RUN = 4  # words in a row
_SAME_WORDING = 0.8  # part of the runs of words that two pages have in common
_FEWEST_RUNS = 8

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\w*\d\w*(?:[.,:/-]\w+){0,8}")
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,4}[.)](?=[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Marks:
    """What two texts are compared by besides their vectors.

    Attributes:
        words: The words, folded.
        numbers: Those with a digit, without the numbers of list items.
    """

    words: tuple[str, ...]
    numbers: frozenset[str]

    @classmethod
    def of(cls, page: Page) -> Marks:
        """Return those of a page."""
        text = normalized("NFKC", recipe_text(CONTENT, page)).casefold()
        text = _LIST_NUMBER.sub("", text)
        return cls(tuple(_WORD.findall(text)), frozenset(_NUMBER.findall(text)))

    def runs(self) -> set[tuple[str, ...]]:
        """Return every run of four words."""
        return {self.words[start : start + _RUN] for start in range(len(self.words) - _RUN + 1)}


def judged(cosine: float, level: float, one: Marks, other: Marks) -> tuple[float, str]:
    """Return the closeness of two pages and what it rests on: ``same text``, ``same wording`` or ``near meaning``.

    Args:
        cosine: Of their vectors.
        level: Mean of their levels; NaN where there is none.
        one: Marks of the one.
        other: Marks of the other.
    """
    if one.words and one.words == other.words:
        return 1.0, "same text"
    differing = _differing(one.numbers, other.numbers)
    shared = _shared_wording(one, other)
    if shared >= _SAME_WORDING and differing <= 1 - _SAME_WORDING:
        return shared, "same wording"
    if np.isnan(level):
        return 0.0, ""
    level = min(level, _HIGHEST_LEVEL)
    against = differing * (_NUMBERS_WEIGHT + _FORM_WEIGHT * shared)
    return (cosine - level) / (1 - level) - against, "near meaning"


def _differing(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which part of the numbers of the page that has fewer is missing in the other; 0 where there are few."""
    fewer = min(len(one), len(other))
    return 1 - len(one & other) / fewer if fewer >= _FEWEST_NUMBERS else 0.0


def _shared_wording(one: Marks, other: Marks) -> float:
    """Return which part of the runs of words the two have in common (Dice); 0 where a page has hardly any."""
    mine, theirs = one.runs(), other.runs()
    if min(len(mine), len(theirs)) < _FEWEST_RUNS:
        return 0.0
    return 2 * len(mine & theirs) / (len(mine) + len(theirs))


def level_of(cosines: FloatArray) -> float:
    """Return the level of a page from its cosines to all the others; NaN where there are too few of them."""
    count = len(cosines)
    if count < _FEWEST_PAGES - 1:
        return float("nan")
    first, last = min(_FIRST_OTHER, count // 3), min(_LAST_OTHER, count)  # fewer and nearer ones in a small field
    highest = -np.partition(-cosines, last - 1)[:last]
    return float(np.sort(highest)[::-1][first:].mean())
