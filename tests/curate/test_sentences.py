"""Where sentences end, and which count as the same."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryfield.curate.contradictions import likeness
from memoryfield.curate.sentences import sentence_key, split_sentences


def _split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Onslow pays 4.1 m, e.g. on Friday.", "She left."],
        ["Der Wagen kommt am 7. April.", "Das gilt z.B. hier.", "Ja."],
        ["See https://example.org/a.b?c=1. for it.", "Then stop."],
        ["Run `a. B` first.", "Then `c`!", "Really?", "Yes…"],
        ["今天下雨。", "明天晴！", "好吗？"],
        ["यह ठीक है।", "अच्छा।"],
        ['He said "No."', 'Then "Stop!" he cried.'],
        ["**Who signs? And when?**", "Maud."],
        ["Wait 5 s.", "Then let go."],
        ["J. R. Smith wrote p. 4 and Fig. 3.", "It is no. 5.", "No.", "Yes."],
        ["See [a. B](x.md) there.", "End"],
    ],
)
def test_sentences_are_cut_where_a_reader_would(sentences: list[str]) -> None:
    glue = "" if sentences[0].endswith("。") else " "
    assert _split(glue.join(sentences)) == sentences


def test_a_wrapped_line_goes_on_and_a_short_line_ends() -> None:
    wrapped = "This is a line of prose that somebody wrapped at the margin of\nseventy characters or so. Next one."
    assert _split(wrapped) == [wrapped[: wrapped.index(" Next")], "Next one."]
    assert _split("labour: 14.5 h\nmaterials: 212.40\nlift: 180.00") == [
        "labour: 14.5 h",
        "materials: 212.40",
        "lift: 180.00",
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Sam likes tea.", "sam  likes\ntea"),
        ("- **Sam** likes *tea*!", "Sam likes tea"),
        ("“Quoted” – it’s so", '"Quoted" - it\'s so'),
        ("Café", "Cafe\u0301"),
        ("跨行\n文本。", "跨行文本"),
        ("> a quoted line\n> goes on", "a quoted line goes on"),
    ],
)
def test_equal_but_for_case_space_punctuation_markup(one: str, two: str) -> None:
    assert sentence_key(one) == sentence_key(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Height 4.1", "Height 41"),
        ("It is -5 C", "It is 5 C"),
        ("Use C++.", "Use C."),
        ("Is it on?", "It is on."),
        ("It works?", "It works."),
        ("See [a](b.md)", "See [a](c.md)"),
        ("[x] done", "[ ] done"),
        ("10² m", "102 m"),
        ("run `Foo`", "run `foo`"),
        ("6' long", '6" long'),
        ("delete *.py", "delete py"),
        ("the .env file", "the env file"),
    ],
)
def test_what_changes_the_meaning_counts(one: str, two: str) -> None:
    assert sentence_key(one) != sentence_key(two)


@given(st.text(max_size=300))
def test_no_character_but_blanks_is_left_out(text: str) -> None:
    spans = split_sentences(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(a < b for a, b in spans) and all(x[1] <= y[0] for x, y in pairwise(spans))
    assert all(sentence_key(text[a:b]) for a, b in spans)


@pytest.mark.parametrize("piece", ["*a ", "`x", "[a](", "<a ", "a. ", "_x ", "http://a", "**b", "> - "])
def test_long_hostile_lines_take_linear_time(piece: str) -> None:
    text = piece * 20_000
    begin = time.perf_counter()
    for start, end in split_sentences(text):
        sentence_key(text[start:end])
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("The slip is used above 4.1 m only.", "The slip is used above 4.0 m only.", "conflict"),
        ("Sam works at Northwind as an analyst.", "Sam works at Brackwater as an analyst.", "conflict"),
        ("The pump is switched on at night.", "The pump is not switched on at night.", "conflict"),
        ("Neaps are never used for hauling boats out.", "Neaps are never used for hauling boats.", "near"),
        ("Sam likes tea.", "The tide box was an hour early.", None),
        ("Old mats: Greywell bin, lid closed, never the yard skip", "Old mats: Greywell bin, lid closed.", None),
        ("Rings: 3", "Rings: 4", None),
    ],
)
def test_likeness(one: str, two: str, expected: str | None) -> None:
    assert likeness(one, two) == expected and likeness(two, one) == expected


def test_a_label_with_another_value_contradicts_under_one_heading() -> None:
    assert likeness("Rings: 3", "- Rings: 4", same_place=True) == "conflict"
    assert likeness("Rings: 3", "Packing: 4", same_place=True) is None
