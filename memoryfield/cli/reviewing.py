"""Asking in a terminal whether two pages say the same; everything is typed, nothing needs a mouse."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memoryfield.cli.output import note, say
from memoryfield.display import counted, plain

if TYPE_CHECKING:
    from memoryfield import MemoryField
    from memoryfield.curate.families import Families
    from memoryfield.curate.family import PairEvidence

_LINES = 12  # of each page, before somebody asks for more
_WIDEST = 200  # characters of a line
_KEYS = "y yes, n no, s skip, m more of both pages, b back to the last answer, q quit"


def review(field: MemoryField, found: Families, questions: int) -> Families:
    """Ask up to so many questions, keep each answer at once, and return the families after the last one."""
    skipped: set[tuple[str, str]] = set()
    answered: list[PairEvidence] = []
    while len(answered) < questions:
        asked = found.borderline(len(skipped) + 1)
        pair = next((pair for pair in asked if (pair.first, pair.second) not in skipped), None)
        if pair is None:
            note("nothing more to ask: no other answer would teach anything about this field")
            break
        say(f"\nquestion {len(answered) + 1} of {questions}: {pair!r}")
        _show(field, pair, _LINES)
        answer = _answer(field, pair)
        if answer == "q":
            break
        if answer == "s":
            skipped.add((pair.first, pair.second))
        elif answer == "b":
            if not answered:
                note("no answer was given yet")
                continue
            last = answered.pop()
            found = _without(field, found, last)
            note(f"the answer on {last.first} and {last.second} is taken back")
        else:
            found = found.review(pair.first, pair.second, same=answer == "y")
            answered.append(pair)
    return found


def _answer(field: MemoryField, pair: PairEvidence) -> str:
    """Ask until one of the keys is typed; the end of the input means quit."""
    while True:
        note(f"do they say the same? {_KEYS}")
        line = sys.stdin.readline() if sys.stdin is not None else ""
        word = line.strip().lower()
        if not line or word in ("q", "quit"):
            return "q"
        if word in ("m", "more"):
            _show(field, pair, None)
        elif word in ("y", "yes", "n", "no", "s", "skip", "b", "back"):
            return word[0]
        else:
            note(f"{plain(word, 20)!r} is no answer" if word else "nothing was typed")


def _show(field: MemoryField, pair: PairEvidence, most: int | None) -> None:
    for name in (pair.first, pair.second):
        page = field.read(name)
        lines = page.body.strip().splitlines()
        say(f"--- {plain(page.title)} ({page.name})")
        say("\n".join(plain(line, None if most is None else _WIDEST) for line in lines[:most]))
        if most is not None and len(lines) > most:
            say(f"... {counted(len(lines) - most, 'more line')}")


def _without(field: MemoryField, found: Families, pair: PairEvidence) -> Families:
    found.reviews.withdraw(field.read(pair.first), field.read(pair.second))
    return field.families(model=None, progress=False)
