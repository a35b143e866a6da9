"""The little Markdown that is read: code, headings, the first line of prose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryfield.format.markdown import first_heading, first_prose, headings, line_end, lines


def found(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in headings(text)]


def test_headings() -> None:
    assert found("# A\n##B\n### C ###\n#\n   ###### D #x\n    # code\n####### seven\n") == [
        (1, "A"),
        (3, "C"),
        (1, ""),
        (6, "D #x"),
    ]
    assert found("A\n===\nB\n---\n\nC\nmore\n=\n") == [(1, "A"), (2, "B"), (1, "C more")]
    assert found("---\n\n- item\n---\n> quote\n---\n| a |\n---\n\n    code\n---\n***\n") == []
    assert found("```\n# no\n```\n# yes\n~~~\n# no\n```\n# no\n~~~\n# yes\n") == [(1, "yes"), (1, "yes")]
    assert found("<!-- # no\n# no\n-->\n# yes\n<!-- one line -->\n# yes\n") == [(1, "yes"), (1, "yes")]
    assert found("- ```\n  # no\n  ```\n# yes\r\n\r\n# yes\r# yes") == [(1, "yes")] * 3


def test_places_of_headings() -> None:
    text = "x\r\n\r\nA\r\n===\r\nb\n# C\n"
    for heading, expected in zip(headings(text), ["A\r\n===\r\n", "# C\n"], strict=True):
        assert text[heading.start : heading.end] == expected


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("", ""),
        ("#\n# A\n", "A"),
        ("text\n\n## B\n", "B"),
        ("title: x\n---\n# A\n", "A"),
        ("one\ntwo\n---\n# A\n", "A"),
        ("Title\n=====\n", "Title"),
        ("\u200b# no\n# A\n", "A"),
    ],
)
def test_the_first_heading(text: str, heading: str) -> None:
    assert first_heading(text) == heading


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("", ""),
        ("# A\n\nProse.\nMore.\n", "Prose."),
        ("Title\n=====\n\nProse.\n", "Prose."),
        ("```\ncode\n```\n<div>\n![x](y.png)\n| a |\n[r]: x\n***\nProse.", "Prose."),
        ("<!-- a\nb -->\nProse.", "Prose."),
        ("- item\n- other\n\nProse.", "Prose."),
        ("- [ ] item\n- other\n", "item"),
        ("> 1. quoted\n", "quoted"),
        ("**Bold** start", "**Bold** start"),
        ("[link](x.md) first", "[link](x.md) first"),
        ("```\nnever closed\n", ""),
        ("# only a heading", ""),
    ],
)
def test_the_first_prose(text: str, prose: str) -> None:
    assert first_prose(text) == prose


@given(st.text(alphabet="a\r\n`~>-# \u2028", max_size=60))
def test_lines_are_the_whole_text(text: str) -> None:
    assert "".join(text[line.start : line.end] for line in lines(text)) == text
    assert all("\n" not in line.text and "\r" not in line.text for line in lines(text))
    first_heading(text)
    first_prose(text)


def test_line_ends_P6() -> None:
    assert line_end(b"") == line_end(b"a") == line_end(b"a\nb\r\n") == "\n"
    assert line_end(b"a\r\nb\n") == "\r\n"
    assert line_end(b"a\rb") == "\r"
    assert line_end(b"a\rb\n") == line_end(b"\n") == "\n"


@pytest.mark.parametrize(
    "text", ["\n" * 200_000, "a\n=" * 60_000, "> " * 100_000 + "```", "- " * 100_000 + "```x`", "# " + " #" * 100_000]
)
def test_hostile_bodies_take_linear_time(text: str) -> None:
    begun = time.process_time()
    first_heading(text)
    first_prose(text)
    assert time.process_time() - begun < 4.0
