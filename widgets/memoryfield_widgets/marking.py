"""Two texts side by side: which words of each the other has too, in whatever order it says them.

A word counts as equal where the two texts, read in order, agree on it, or where it stands in a phrase of three words
that the other has anywhere: pages that repeat a task often say the same sentences in another order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby

NEUTRAL, EQUAL, DIFFERENT = 0, 1, 2
Run = tuple[str, int]

_WORD = re.compile(r"\w+(?:['’.,:/-]\w+)*")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts without blanks: sign by sign
_PHRASE = 3
_MOST_MATCHES = 200_000  # pairs of equal words; more would make the comparison in order slow


def marked(first: Sequence[str], second: Sequence[str]) -> tuple[list[list[Run]], list[list[Run]]]:
    """Return both pages as runs of text that are equal, different or neither (what stands between words).

    Args:
        first: The parts of one page, such as title, summary and body.
        second: The parts of the other; words are compared across all parts.

    Returns:
        For each part of each page its runs; joined they give the part again.
    """
    places = [[_words(part) for part in page] for page in (first, second)]
    words = [
        [part[start:end].casefold() for part, spans in zip(page, found, strict=True) for start, end in spans]
        for page, found in zip((first, second), places, strict=True)
    ]
    equal = _equal(*words)
    return _runs(first, places[0], equal[0]), _runs(second, places[1], equal[1])


def _words(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        if _WIDE.search(match[0]):
            spans += [(at, at + 1) for at in range(*match.span())]
        else:
            spans.append(match.span())
    return spans


def _equal(first: list[str], second: list[str]) -> tuple[list[bool], list[bool]]:
    """Return for each word of each side whether the other has it."""
    found = ([False] * len(first), [False] * len(second))
    for mine, theirs, equal in ((first, second, found[0]), (second, first, found[1])):
        phrases = {tuple(theirs[at : at + _PHRASE]) for at in range(len(theirs) - _PHRASE + 1)}
        for at in range(len(mine) - _PHRASE + 1):
            if tuple(mine[at : at + _PHRASE]) in phrases:
                equal[at : at + _PHRASE] = [True] * _PHRASE
    counts = Counter(second)
    if sum(counts[word] for word in first) <= _MOST_MATCHES:
        for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
            found[0][block.a : block.a + block.size] = [True] * block.size
            found[1][block.b : block.b + block.size] = [True] * block.size
    return found


def _runs(parts: Sequence[str], places: Sequence[list[tuple[int, int]]], equal: list[bool]) -> list[list[Run]]:
    states = iter(EQUAL if same else DIFFERENT for same in equal)
    return [_part_runs(part, spans, [next(states) for _ in spans]) for part, spans in zip(parts, places, strict=True)]


def _part_runs(text: str, spans: list[tuple[int, int]], states: list[int]) -> list[Run]:
    """Return a part as runs; what stands between two words of one state belongs to their run."""
    runs: list[Run] = []
    at = 0
    for state, group in groupby(zip(spans, states, strict=True), key=lambda pair: pair[1]):
        members = list(group)
        start, end = members[0][0][0], members[-1][0][1]
        if start > at:
            runs.append((text[at:start], NEUTRAL))
        runs.append((text[start:end], state))
        at = end
    if at < len(text):
        runs.append((text[at:], NEUTRAL))
    return runs
