"""Text and HTML of results: control characters are made visible, markup stays text."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from memoryfield.display import Marked, Table, escape, plain


def test_plain_makes_controls_and_direction_marks_visible() -> None:
    assert plain("a\x1b[31mred\x07") == "a\\x1b[31mred\\x07"
    assert plain("ab\u202ecd") == "ab\\u202ecd"
    assert plain("two\r\nlines\u2028three") == "two lines three"
    assert plain(None) == ""


def test_plain_cuts_with_an_ellipsis() -> None:
    assert plain("abcdef", 4) == "abc…"
    assert plain("abcd", 4) == "abcd"
    assert len(plain("word " * 100_000, 50)) <= 50


def test_escape_leaves_nothing_to_execute_or_typeset() -> None:
    shown = escape("<script>alert(1)</script> $x^2$ `code` \\(y\\) \" '")
    assert "<" not in shown and "$" not in shown and "`" not in shown and '"' not in shown and "\\(" not in shown
    assert html.unescape(shown) == "<script>alert(1)</script> $x^2$ `code` \\(y\\) \" '"


@given(st.text())
def test_plain_is_one_printable_line(text: str) -> None:
    assert "\n" not in plain(text) and "\x1b" not in plain(text) and "\u202e" not in plain(text)


def test_both_forms_of_a_table_say_the_same() -> None:
    table = Table("3 <b>things</b>", ["name", "n"], [["a & b", 1], ["漢字", 22]], ["note"], frozenset({"n"}), more=4)
    text, markup = table.text(), table.html()
    seen = html.unescape(re.sub(r"<[^>]+>", " ", markup))
    for part in ("3 <b>things</b>", "name", "a & b", "漢字", "22", "... and 4 more", "note"):
        assert part in text and part in seen
    assert "<b>" not in markup


def test_columns_line_up_with_wide_characters() -> None:
    lines = Table("t", ["name", "n"], [["漢字", 1], ["ab", 2]], right=frozenset({"n"})).text().splitlines()
    assert lines[2].index("1") + 2 == lines[3].index("2")


def test_marked_words_are_in_brackets_or_highlighted() -> None:
    cell = Marked("a <i>word</i> & more\nwords", ((5, 9), (21, 26)))
    assert cell.text() == "a <i>[word]</i> & more [words]"
    assert cell.html() == "a &lt;i&gt;<mark>word</mark>&lt;/i&gt; &amp; more <mark>words</mark>"
    table = Table("1 thing", ["what"], [[cell]], widths={"what": 9})
    assert table.text() == "1 thing\n  what\n  a <i>[wo…"
    assert '<td style="text-align:left">a &lt;i&gt;<mark>wo…</mark></td>' in table.html()


@given(st.text(), st.integers(0, 20), st.integers(1, 20), st.integers(0, 30))
def test_both_forms_of_marked_words_say_the_same(text: str, start: int, length: int, limit: int) -> None:
    text = text.replace("[", "(").replace("]", ")")
    spans = ((start, min(start + length, len(text))),) if start < len(text) else ()
    cell = Marked(text, spans)
    markup = cell.html(limit)
    assert markup.count("<mark>") == markup.count("</mark>") <= 1
    assert re.sub("</?mark>", "", markup).count("<") == 0
    shown = html.unescape(re.sub("</?mark>", "", markup))
    assert shown == cell.text(limit).replace("[", "").replace("]", "")


def test_a_page_cannot_bring_marks_of_its_own() -> None:
    assert "<mark>" not in Marked("\ufdd0evil\ufdd1").html()
