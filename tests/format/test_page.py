"""A page as a value: what it shows of its bytes."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryfield.format.page import LONGEST_EMBEDDED, Page, as_text

RAW = b"---\ntitle: Woks\nuuid: u-1\nsummary: light\ncreated: 2026-03-01\ntags: [a, b]\n---\n# Heading\n\nProse.\n"


def test_what_a_page_says_P3() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    page = Page("carbon-fibre-woks", RAW, moment)
    assert (page.name, page.filename, page.size, page.modified) == (
        "carbon-fibre-woks",
        "carbon-fibre-woks.md",
        len(RAW),
        moment,
    )
    assert page.sha256 == hashlib.sha256(RAW).hexdigest()
    assert (page.title, page.summary, page.uuid, page.created, page.updated) == (
        "Woks",
        "light",
        "u-1",
        "2026-03-01",
        None,
    )
    assert page.frontmatter["tags"] == ["a", "b"]
    assert page.body == "# Heading\n\nProse.\n"
    assert page.text == RAW.decode()
    assert page.is_utf8 and page.has_frontmatter and page.frontmatter_error is None and page.warnings == ()


@pytest.mark.parametrize(
    ("raw", "title", "summary"),
    [
        (b"# Heading\n\nProse.\n", "Heading", "Prose."),
        (b"Prose only.\n", "x", "Prose only."),
        (b"", "x", ""),
        (b"---\ntitle: ''\nsummary:\n---\n# Heading\nProse.\n", "Heading", "Prose."),
        (b"---\ntitle: [Pump, Valve]\nsummary: {a: b}\n---\n", "Pump, Valve", '{"a": "b"}'),
        (b"---\ntitle: |\n  two\n  lines\nsummary: |\n  two\n  lines\n---\n", "two lines", "two\nlines"),
        (b"---\ntitle: [x\n---\n# Heading\n", "Heading", ""),
        (b"---\nTitle: capital\n---\nProse.\n", "x", "Prose."),
    ],
)
def test_titles_and_summaries_fall_back_P3(raw: bytes, title: str, summary: str) -> None:
    page = Page("x", raw)
    assert (page.title, page.summary) == (title, summary)


def test_the_limit_of_a_page_P4() -> None:
    assert Page("x", b"a" * LONGEST_EMBEDDED).cut_bytes == 0
    page = Page("x", b"a" * (LONGEST_EMBEDDED + 3))
    assert page.cut_bytes == 3
    assert "the last 3 bytes" in str(page)


def test_special_pages_P5() -> None:
    assert Page("index", b"").is_special and Page("listing", b"").is_special
    assert not Page("index-2", b"").is_special


def test_boms_and_bad_bytes_P6_P10() -> None:
    page = Page("x", b"\xef\xbb\xbfa \x96 b")
    assert (page.text, page.body, page.is_utf8) == ("a \ufffd b", "a \ufffd b", False)
    assert "not valid UTF-8" in str(page) and "not valid UTF-8" in page._repr_html_()
    assert Page("x", "\ufffd".encode()).is_utf8


def test_a_broken_block_hides_nothing_P8() -> None:
    page = Page("x", b"---\ntitle: [x\n---\nbody four\n")
    assert page.frontmatter_error is not None and page.frontmatter_error.line == 2
    assert page.has_frontmatter and page.body == "body four\n" and "title: [x" in page.text
    assert "line 2" in str(page)
    assert page.to_dict()["frontmatter_error"].startswith("line 2: ")


def test_a_page_is_a_value() -> None:
    page = Page("x", RAW)
    assert page == Page("x", RAW) and hash(page) == hash(Page("x", RAW))
    assert page != Page("y", RAW) and page != Page("x", RAW + b"\n")
    assert page.title == "Woks" and page.frontmatter["title"] == "Woks"
    assert pickle.loads(pickle.dumps(page)) == copy.deepcopy(page) == page
    with pytest.raises(FrozenInstanceError):
        page.name = "y"  # type: ignore[misc]
    assert repr(page) == f"Page('x', 'Woks', {len(RAW)} bytes)"


def test_html_and_text_show_the_same_and_no_markup() -> None:
    raw = b"---\ntitle: <b>T</b> $5$\nsummary: <i>s</i>\n---\n<script>alert(1)</script>\n\n$x$ \x1b[31m `code`\n"
    page = Page("x", raw)
    shown = page._repr_html_()
    for dangerous in ("<script", "<b>", "<i>", "$", "\x1b", "`"):
        assert dangerous not in shown
    text = str(page)
    assert "\x1b" not in text
    for part in ("title", "summary", "alert(1)", "31m"):
        assert part in shown and part in text


def test_long_bodies_are_cut_in_notebooks() -> None:
    shown = Page("x", b"word " * 10_000)._repr_html_()
    assert len(shown) < 25_000 and "more characters" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a", "a"),
        (["a", "b"], "a, b"),
        ([], ""),
        ([["Soil"]], '[["Soil"]]'),
        ({"k": ["é"]}, '{"k": ["é"]}'),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert as_text(value) == text  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.binary(max_size=120))
def test_any_bytes_make_a_page_P8_P10(raw: bytes) -> None:
    for candidate in (raw, b"---\ntitle: " + raw + b"\n---\n" + raw):
        page = Page("x", candidate)
        assert json.loads(json.dumps(page.to_dict(), allow_nan=False))["size"] == len(candidate)
        assert page.title and "\n" not in page.title
        repr(page), str(page), page._repr_html_()
