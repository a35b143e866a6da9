"""Two sentences side by side: nearly the same, the same with other values, or neither.

"The same with other values" (another number, date, name, or a *not* more) is what a curator has to decide; a program
cannot know which one is true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from memoryfield.curate.sentences import word_bag, word_set, words

Likeness = Literal["near", "conflict"]

_DENIED = 0.9  # the same where one of them denies it
_NEAR = 0.8  # share of equal words
_SKELETON = 0.8  # share of equal words where values count as equal
_FEWEST_NEAR = 6  # words
_FEWEST_FIXED = 3  # equal words that are no values
_LONGEST = 200  # words of a sentence that is compared
_PAIR = re.compile(r"[^:\n]{2,60}?:\s+\S")

_NEGATIONS = word_set("""
    not no never none neither nor cannot can't don't doesn't didn't isn't aren't wasn't won't mustn't shouldn't without
    nicht kein keine keinen keiner nie niemals ohne ne pas jamais sans non mai nunca jamás sin niet geen nooit inte
    aldrig ikke aldri bez nigdy не нет никогда без 不 没 未 无
""")
_CALENDAR = word_set("""
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december today tomorrow yesterday montag dienstag mittwoch donnerstag freitag samstag sonntag
""")


def likeness(first: str, second: str, *, same_place: bool = False) -> Likeness | None:
    """Say how two different sentences relate.

    Args:
        first: A sentence.
        second: Another one, not equal to it.
        same_place: Both stand under the same heading: then ``Size: 50`` and ``Size: 40`` contradict each other too.

    Returns:
        ``near`` (few words differ), ``conflict`` (the same words around other values), or None.
    """
    bag, bag_two = word_bag(first), word_bag(second)
    if 3 * len(bag & bag_two) < max(len(bag), len(bag_two)) - 1 and not same_place:
        return None  # the quick answer, for nearly all pairs
    one, two = words(first), words(second)
    if not one or not two or max(len(one), len(two)) > _LONGEST:
        return None
    lower, upper = sorted((len(one), len(two)))
    if lower < 0.5 * upper:
        return None
    if same_place and _other_value(first, second):
        return "conflict"
    values, values_two = _values(one), _values(two)
    masked = ["\0" if i in values else folded for i, (_, folded) in enumerate(one)]
    masked_two = ["\0" if i in values_two else folded for i, (_, folded) in enumerate(two)]
    fixed = sum((_bag(masked) & _bag(masked_two)).values()) - min(len(values), len(values_two))
    if fixed >= _FEWEST_FIXED:
        denied = [[word for word in side if word not in _NEGATIONS] for side in (masked, masked_two)]
        negated = len(masked) - len(denied[0]) != len(masked_two) - len(denied[1])
        other = Counter(one[i][1] for i in values) != Counter(two[i][1] for i in values_two)
        # A "never ..." more at the end is an addition; a "never" more in the same sentence is a contradiction.
        wanted = _DENIED if negated else _SKELETON
        if (negated or (other and values and values_two)) and _ratio(*denied) >= wanted:
            return "conflict"
    plain, plain_two = [folded for _, folded in one], [folded for _, folded in two]
    return "near" if lower >= _FEWEST_NEAR and _ratio(plain, plain_two) >= _NEAR else None


def _other_value(first: str, second: str) -> bool:
    if not (_PAIR.match(first.lstrip("-*+ \t")) and _PAIR.match(second.lstrip("-*+ \t"))):
        return False
    sides = [[words(part) for part in text.split(":", 1)] for text in (first, second)]
    (name, value), (name_two, value_two) = sides
    same_name = [folded for _, folded in name] == [folded for _, folded in name_two]
    return same_name and any(_values(value, first=True)) and any(_values(value_two, first=True)) and value != value_two


def _values(found: Sequence[tuple[str, str]], first: bool = False) -> list[int]:
    """Return the positions of numbers, dates and names; a capital at the beginning of a sentence says nothing."""
    return [
        i + (1 if first else 0)
        for i, (raw, folded) in enumerate(found)
        if any(c.isdigit() for c in raw) or folded in _CALENDAR or ((i > 0 or first) and raw[:1].isupper())
    ]


def _bag(found: Sequence[str]) -> Counter[str]:
    return Counter(found)


def _ratio(one: Sequence[str], two: Sequence[str]) -> float:
    if 2 * sum((_bag(one) & _bag(two)).values()) < min(_NEAR, _SKELETON) * (len(one) + len(two)):
        return 0.0
    return SequenceMatcher(None, one, two, autojunk=False).ratio()
