"""Texts with their values taken out: titles and lines that are one form filled in twice, statements and their opposite.

Two invoices, two inspections or two seasons share every word but a few, and just these few make them two pages. Words
of a contrast and of negation are English; in other languages numbers and identifiers still speak.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TITLE_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LABEL = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*)?([^\s:*][^:*\n]{0,38})(?:\*\*)?:(?:\*\*)?[ \t]+(\S.*)")
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
_CONTRACTED = re.compile(r"\b(\w+?)n['’]t\b")
_STATEMENT_WORD = re.compile(r"\w+")
_NEGATIONS = frozenset({"not", "no", "never", "neither", "nor", "none", "cannot", "without"})
_EMPTY_VERBS = frozenset({"do", "does", "did", "doing"})
_FEWEST_IN_STATEMENT = 3
_FEWEST_FILLED = 2
_SHOWN_VALUES = 3
_LONGEST_SHOWN = 60

# Words of which a title has one or the other: the pages are siblings, not repetitions.
_CONTRASTS = (
    "january february march april may june july august september october november december",
    "monday tuesday wednesday thursday friday saturday sunday",
    "spring summer autumn winter fall",
    "left right",
    "port starboard",
    "north south east west",
    "first second third fourth",
    "morning evening afternoon",
    "old new",
    "enable disable",
    "start stop",
    "import export",
    "upload download",
    "install uninstall",
    "increase decrease",
    "before after",
    "minimum maximum",
    "open close",
    "lock unlock",
    "add remove",
    "with without",
)
_CONTRAST = {word: group for group, words in enumerate(_CONTRASTS) for word in words.split()}


@dataclass(frozen=True, slots=True)
class TitleForm:
    """A title with its values taken out.

    Attributes:
        form: Its words, numbers and identifiers and words of a contrast masked.
        values: What was masked.
        slots: What each place holds that can be named.
    """

    form: tuple[str, ...]
    values: tuple[str, ...]
    slots: dict[tuple[str, str], str]


def title_form(title: str) -> TitleForm:
    """Take a title apart into its form and the values that fill it."""
    words = _TITLE_WORD.findall(title)
    form: list[str] = []
    values: list[str] = []
    slots: dict[tuple[str, str], str] = {}
    for place, word in enumerate(words):
        low = word.lower()
        if _is_identifier(word) and not (place == 0 and len(word) == 1):
            before = words[place - 1].lower() if place and not _is_identifier(words[place - 1]) else ""
            form.append("#")
            values.append(low)
            slots["id", before] = low
        elif low in _CONTRAST:
            group = str(_CONTRAST[low])
            form.append("@" + group)
            values.append(low)
            slots["contrast", group] = slots.get(("contrast", group), "") + " " + low
        else:
            form.append(low)
    return TitleForm(tuple(form), tuple(values), slots)


def _is_identifier(word: str) -> bool:
    return any(c.isdigit() for c in word) or (len(word) == 1 and word.isalpha() and word.isupper() and word != "I")


def body_forms(body: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the forms of the lines of a body and what fills each: what follows a label, else numbers and the like.

    A line without anything that can be filled in is a form without values. Of two lines of one form the values are
    put together.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for line in body.splitlines():
        if label := _LABEL.fullmatch(line):
            found.setdefault((label[1].casefold().strip(), ":"), []).append(" ".join(label[2].casefold().split()))
        elif (taken := title_form(line)).form:
            found.setdefault(taken.form, []).extend(taken.values)
    return {form: tuple(values) for form, values in found.items()}


def other_values(
    one: Mapping[tuple[str, ...], tuple[str, ...]], other: Mapping[tuple[str, ...], tuple[str, ...]]
) -> tuple[float, str]:
    """Return which part of the lines of the smaller page the other has with other values, and some of the values.

    One filled line is chance: it counts as none. So do two pages in which as many filled lines agree.
    """
    filled = [form for form in one if one[form] and other.get(form)]
    differ = [form for form in filled if one[form] != other[form]]
    if len(differ) < _FEWEST_FILLED or 2 * len(differ) <= len(filled):
        return 0.0, ""
    both = len(one.keys() & other.keys()) - len(filled) + len(differ)
    shown = [f"{_short(', '.join(one[form]))} / {_short(', '.join(other[form]))}" for form in differ[:_SHOWN_VALUES]]
    return both / min(len(one), len(other)), "; ".join(shown)


def statements(body: str) -> dict[frozenset[str], tuple[bool, frozenset[str], str]]:
    """Return the statements of a body: their words without negation; whether negated, words of a contrast, the text.

    What a body says both ways is left out.
    """
    found: dict[frozenset[str], tuple[bool, frozenset[str], str]] = {}
    twofold: set[frozenset[str]] = set()
    for sentence in _SENTENCE_END.split(body):
        words = _STATEMENT_WORD.findall(_CONTRACTED.sub(r"\1 not", sentence.lower().replace("can't", "can not")))
        negated = sum(word in _NEGATIONS for word in words) % 2 == 1
        plain = [_stem(word) for word in words if word not in _NEGATIONS and word not in _EMPTY_VERBS]
        contrast = frozenset(word for word in plain if word in _CONTRAST)
        key = frozenset(f"@{_CONTRAST[word]}" if word in contrast else word for word in plain)
        if len(key) < _FEWEST_IN_STATEMENT:
            continue
        if key in found and found[key][:2] != (negated, contrast):
            twofold.add(key)
        found[key] = negated, contrast, sentence.strip()
    return {key: value for key, value in found.items() if key not in twofold}


def opposed(
    one: Mapping[frozenset[str], tuple[bool, frozenset[str], str]],
    other: Mapping[frozenset[str], tuple[bool, frozenset[str], str]],
) -> tuple[str, str] | None:
    """Return a statement of the one page and its opposite in the other, said in the same words; None without any."""
    for key in one:
        if key in other and one[key][:2] != other[key][:2]:
            return _short(one[key][2]), _short(other[key][2])
    return None


def _stem(word: str) -> str:
    if word in _CONTRAST:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
