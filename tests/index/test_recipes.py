"""Which text is embedded (FORMAT X5)."""

from __future__ import annotations

import pytest

from memoryfield.errors import QueryError
from memoryfield.format.page import Page
from memoryfield.index.recipes import CONTENT, PAGE, SPEC_LIMIT, check_recipe, cut_bytes, recipe_text


def page(raw: bytes) -> Page:
    return Page("some-page", raw)


def test_page_is_the_whole_file_with_frontmatter_X5() -> None:
    raw = b"---\ntitle: Tides\n---\nHigh water at noon.\n"
    assert recipe_text(PAGE, page(raw)) == raw.decode()


def test_page_keeps_bom_and_line_ends_X5() -> None:
    raw = b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\nb\r\n"
    assert recipe_text(PAGE, page(raw)) == raw.decode("utf-8")


def test_page_is_cut_at_8192_bytes_X5_P4() -> None:
    raw = b"a" * 9000
    assert recipe_text(PAGE, page(raw)) == "a" * SPEC_LIMIT
    assert cut_bytes(PAGE, page(raw)) == 9000 - SPEC_LIMIT
    assert cut_bytes(PAGE, page(b"a" * SPEC_LIMIT)) == 0


@pytest.mark.parametrize("character", ["é", "漢", "🚢"])
@pytest.mark.parametrize("before", range(1, 4))
def test_cut_inside_a_character_X5(character: str, before: int) -> None:
    """The case cut-inside-a-character: what is left of the character is dropped, and the rest is valid UTF-8."""
    raw = b"a" * (SPEC_LIMIT - before) + (character * 4).encode() + b" tail " * 200
    text = recipe_text(PAGE, page(raw))
    assert text == raw[:8192].decode("utf-8", errors="ignore")
    whole = before // len(character.encode())
    assert len(text.encode()) == SPEC_LIMIT - before + whole * len(character.encode())


def test_undecodable_bytes_are_dropped_P10_X5() -> None:
    assert recipe_text(PAGE, page(b"a \x96 b\n")) == "a  b\n"
    assert "\ufffd" in recipe_text(CONTENT, page(b"a \x96 b\n"))


def test_content_is_title_summary_and_body_X5() -> None:
    raw = b"---\ntitle: Tides\nuuid: 123\nsummary: When the water comes\ntags: [a, b]\n---\n\nHigh water at noon.\n"
    assert recipe_text(CONTENT, page(raw)) == "Tides\n\nWhen the water comes\n\nHigh water at noon."


def test_content_without_frontmatter_is_the_body() -> None:
    assert recipe_text(CONTENT, page(b"Only text.\n")) == "Only text."


def test_content_of_a_broken_block_is_the_body_P8() -> None:
    assert "body four" in recipe_text(CONTENT, page(b"---\ntitle: [x\nsummary: open\n---\nbody four\n"))


def test_content_is_cut_too() -> None:
    long = page(b"---\ntitle: T\n---\n" + "漢".encode() * 4000)
    assert len(recipe_text(CONTENT, long).encode()) in (8190, 8191, 8192)
    assert cut_bytes(CONTENT, long) > 0
    mostly_frontmatter = page(b"---\ntitle: T\nnotes: " + b"x" * 9000 + b"\n---\nshort\n")
    assert cut_bytes(CONTENT, mostly_frontmatter) == 0
    assert cut_bytes(PAGE, mostly_frontmatter) > 0


def test_text_does_not_depend_on_the_name() -> None:
    raw = b"no heading, no title\n"
    for recipe in (PAGE, CONTENT):
        assert recipe_text(recipe, Page("one", raw)) == recipe_text(recipe, Page("two", raw))


def test_unknown_recipe_lists_those_there_are() -> None:
    with pytest.raises(QueryError, match=r"chapters.*page, content, passages"):
        check_recipe("chapters")
