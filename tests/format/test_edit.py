"""Edits by example: what changes, what stays byte for byte, what is refused and why."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
import yaml

from memoryfield.errors import FrontmatterError, NotEditable
from memoryfield.format.edit import append, new_page, replace_section, set_body, set_keys
from memoryfield.format.frontmatter import read_frontmatter

NOW = datetime(2026, 11, 1, 10, 0, 0, tzinfo=UTC)
UUID = "5f0e4c52-1d7e-4a55-9a2f-0c3a6f1b2d10"


def edited(text: str, **changes: Any) -> str:
    return set_keys(text.encode(), changes).decode()


def page(inner: str, body: str = "body\n") -> str:
    return f"---\n{inner}---\n{body}"


# -- setting keys: the cases that other tools get wrong ------------------------------------------------------------


def test_touching_a_page_with_a_nested_map_adds_one_line_P9() -> None:
    """P9: one block stays one block, and its description stays readable."""
    inner = (
        "name: deploy-notes\ndescription: how we deploy\nmetadata:\n  owner: infra\n  tags:\n    - ci\n    - release\n"
    )
    body = "\nRun the pipeline, then tag.\n"
    result = edited(page(inner, body), updated="2026-11-01T10:00:00Z")
    assert result == page(inner + "updated: '2026-11-01T10:00:00Z'\n", body)
    assert read_frontmatter(result.encode()).fields["description"] == "how we deploy"


def test_comments_and_unquoted_dates_stay_P9() -> None:
    before = "---\n# keep me\ndate: 2026-06-29   # the day\ntags: [a]\n---\nText\n"
    assert edited(before, tags=["a", "b"]) == before.replace("[a]", "[a, b]")
    assert edited(before, date="2026-06-30") == before.replace("2026-06-29 ", "'2026-06-30' ")


def test_key_order_stays_P9() -> None:
    before = "---\nzeta: 1\ntitle: old\nalpha: 2\n---\nbody\n\n\n"
    assert edited(before, title="new") == before.replace("old", "new")


def test_a_bom_stays_first_P6_P9() -> None:
    before = b"\xef\xbb\xbf---\ntitle: With BOM\n---\nBody\n"
    assert set_keys(before, {"summary": "s"}) == b"\xef\xbb\xbf---\ntitle: With BOM\nsummary: s\n---\nBody\n"
    assert set_keys(b"\xef\xbb\xbfBody\n", {"title": "t"}) == b"\xef\xbb\xbf---\ntitle: t\n---\nBody\n"


def test_line_ends_stay_P9() -> None:
    assert set_keys(b"---\r\ntitle: x\r\n---\r\nb\r\n", {"title": "w"}) == b"---\r\ntitle: w\r\n---\r\nb\r\n"
    assert set_keys(b"---\r\ntitle: x\r\n---\r\nb\r\n", {"a": "w"}) == b"---\r\ntitle: x\r\na: w\r\n---\r\nb\r\n"
    assert set_keys(b"---\ra: x\r---\rb\r", {"b": "w"}) == b"---\ra: x\rb: w\r---\rb\r"
    assert set_keys(b"b\r\n", {"a": "w"}) == b"---\r\na: w\r\n---\r\nb\r\n"


def test_a_fence_at_the_end_of_the_file_stays_there_P6_P9() -> None:
    assert edited("---\ntitle: EOF\n---", summary="s") == "---\ntitle: EOF\nsummary: s\n---"


def test_an_equal_value_changes_nothing_P9_P12() -> None:
    before = page('title: "x"   # c\ncreated: 2026-03-01\ndraft: true\nn: 1.10\ntags: [ a,b ]\nmap: {k: v}\n')
    changes = {"title": "x", "created": "2026-03-01", "draft": True, "n": "1.10", "tags": ["a", "b"], "map": {"k": "v"}}
    assert set_keys(before.encode(), changes) == before.encode()
    assert set_keys(before.encode(), {"missing": None}) == before.encode()
    assert set_keys(b"no block\n", {"missing": None}) == b"no block\n"


# -- setting keys: forms of values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ("k: old\n", "new", "k: new\n"),
        ("k: old\n", "a: b", "k: 'a: b'\n"),
        ("k: 'old'  # c\n", "it's", "k: 'it''s'  # c\n"),
        ('k: "old"\n', "new", 'k: "new"\n'),
        ("k: 'old'\n", "two\nlines", 'k: "two\\nlines"\n'),
        ("k   :   old\n", "new", "k   :   new\n"),
        ('"k": old\n', "new", '"k": new\n'),
        ("k:\n", "new", "k: new\n"),
        ("k:   # to do\n", "new", "k: new   # to do\n"),
        ("k: ~\n", "new", "k: new\n"),
        ("k: old\n  goes on\nz: 1\n", "new", "k: new\nz: 1\n"),
        ("k: 'old\n\n  goes on' # c\nz: 1\n", "new", "k: 'new' # c\nz: 1\n"),
        ("k: |\n  old\n\n  text\n\nz: 1\n", "new", "k: new\n\nz: 1\n"),
        ("k: |\n    old\n    text\nz: 1\n", "one\n\n  two\n", "k: |\n    one\n\n      two\nz: 1\n"),
        ("k: >-\n  old\n  text\nz: 1\n", "one\ntwo", "k: |-\n  one\n  two\nz: 1\n"),
        ("k: |+\n  old\n\n\nz: 1\n", " lead\n", 'k: " lead\\n"\n\n\nz: 1\n'),
        ("k: old\n", True, "k: true\n"),
        ("k: 'old'\n", 12, "k: 12\n"),
        ("k: old\n", 1e16, "k: 1.0e+16\n"),
        ("k: old\n", "12", "k: '12'\n"),
        ("k: old\n", ["a", "b, c", 1, None], "k: [a, 'b, c', 1, null]\n"),
        ("k: old\n", {"a": ["b"], "c d": ""}, "k: {a: [b], c d: ''}\n"),
        ("k: old\n", [], "k: []\n"),
        ("k: old\n", date(2026, 3, 1), "k: '2026-03-01T00:00:00Z'\n"),
        ("k: old\n", NOW, "k: '2026-11-01T10:00:00Z'\n"),
        ('k: "old"\n', datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))), 'k: "2026-03-01T10:00:00Z"\n'),
        ("k: !!str 12\n", "13", "k: '13'\n"),
        ("k: &anchor old\n", "new", "k: new\n"),
        ("a: &x old\nk: *x\n", "new", "a: &x old\nk: new\n"),
        ("k: 1\nother: x\nk: 2\n", "new", "k: 1\nother: x\nk: new\n"),
    ],
)
def test_a_scalar_is_replaced_in_its_place_P9(before: str, given: Any, after: str) -> None:
    assert edited(page(before), k=given) == page(after)


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ("k:\n  - a # one\n  # between\n  - b\n", ["a", "b", "c"], "k:\n  - a # one\n  # between\n  - b\n  - c\n"),
        ("k:\n- a\n- b # two\nz: 1\n", ["b"], "k:\n- b # two\nz: 1\n"),
        ("k:\n- a\n- b\n", ["x", "a", "b"], "k:\n- x\n- a\n- b\n"),
        ("k:\n- 'a'   # one\n- b\n", ["y", "b"], "k:\n- 'y'   # one\n- b\n"),
        ("k:\n\n-   a\n\n-   b\n# end\nz: 1\n", ["a", "c: d", "b"], "k:\n\n-   a\n- 'c: d'\n\n-   b\n# end\nz: 1\n"),
        ("k:\n  -\n  - b\n", ["a", "b"], "k:\n  - a\n  - b\n"),
        ("k: # mine\n  - a\n  - b\nz: 1\n", "text", "k: text # mine\nz: 1\n"),
        ("k:\n  - a\n  - b\nz: 1\n", [], "k: []\nz: 1\n"),
        ("k: ['a', \"b\",   c]  # c\n", ["a", "b", "d"], "k: ['a', \"b\",   d]  # c\n"),
        ("k: [a, b, c]\n", ["c"], "k: [c]\n"),
        ("k: [a, b, c]\n", ["a", "c", "d"], "k: [a, c, d]\n"),
        ("k: [a, b]\n", ["x", "a", "b"], "k: [x, a, b]\n"),
        ("k: [\n  a, # one\n  b,\n]\n", ["a", "b", "c"], "k: [\n  a, # one\n  b, c,\n]\n"),
        ("k: []\n", ["a"], "k: [a]\n"),
        ("k: [a]\n", [], "k: []\n"),
        ("k:\n  - - a\n    - b\n  - c\n", [["a", "x"], "c"], "k:\n  - - a\n    - x\n  - c\n"),
    ],
)
def test_a_list_is_changed_item_by_item_P9(before: str, given: Any, after: str) -> None:
    assert edited(page(before), k=given) == page(after)


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ("k:\n  a: 1 # one\n  b: 2\n", {"a": "1", "b": "3"}, "k:\n  a: 1 # one\n  b: '3'\n"),
        ("k:\n  a: 1\n  b: 2\nz: 1\n", {"a": "1", "c": "x"}, "k:\n  a: 1\n  c: x\nz: 1\n"),
        ("k:\n  a:\n    b: [c]\n  # end\n", {"a": {"b": ["c", "d"]}}, "k:\n  a:\n    b: [c, d]\n  # end\n"),
        ("k: {a: 1, b: 2}\n", {"a": "1", "b": "2", "c": "3"}, "k: {a: 1, b: 2, c: '3'}\n"),
        ("k: {a: 1, b: 2}\n", {"b": "2"}, "k: {b: 2}\n"),
        ("k: {}\n", {"a": "b"}, "k: {a: b}\n"),
        ("k:\n  a: 1\n", {}, "k: {}\n"),
        ("k:\n  a: 1\nz: 1\n", "text", "k: text\nz: 1\n"),
        (
            "k:\n  - n: a\n    v: 1\n  - n: b\n",
            [{"n": "a", "v": "2"}, {"n": "b"}],
            "k:\n  - n: a\n    v: '2'\n  - n: b\n",
        ),
    ],
)
def test_a_mapping_is_changed_key_by_key_P9(before: str, given: Any, after: str) -> None:
    assert edited(page(before), k=given) == page(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "updated: u\n"),
        ("# only a comment\n\n", "# only a comment\n\nupdated: u\n"),
        ("z: 1\n# end\n\n", "z: 1\n# end\n\nupdated: u\n"),
        ("a:\n  b: 1\n", "a:\n  b: 1\nupdated: u\n"),
        ("a: |\n  text\n", "a: |\n  text\nupdated: u\n"),
        ("a: |+\n  text\n\n\n", "a: |+\n  text\n\n\nupdated: u\n"),
        ("  a: 1\n  b: 2\n", "  a: 1\n  b: 2\n  updated: u\n"),
        ("a: b\n  goes on\n", "a: b\n  goes on\nupdated: u\n"),
        (
            "title: x # t\ncreated: y\n# about tags\ntags: []\n",
            "title: x # t\ncreated: y\nupdated: u\n# about tags\ntags: []\n",
        ),
        ("summary: |+\n  text\n\nz: 1\n", "summary: |+\n  text\n\nz: 1\nupdated: u\n"),
        ("{a: b}\n", "{a: b, updated: u}\n"),
        ("{a: b,\n c: [d],\n}\n", "{a: b,\n c: [d], updated: u,\n}\n"),
        ("{}\n", "{updated: u}\n"),
        ("? a\n: b\n", "? a\n: b\nupdated: u\n"),
    ],
)
def test_a_new_key_is_one_more_line_P9(before: str, after: str) -> None:
    assert edited(page(before), updated="u") == page(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\nk: x # c\nb: 2\n", "a: 1\nb: 2\n"),
        ("k:\n  - a\n\n  - b\n# about b\nb: 2\n", "# about b\nb: 2\n"),
        ("k: |\n  a\n\n  b\n\nb: 2\n", "\nb: 2\n"),
        ("k: 1\nb: 2\nk: 3\n", "b: 2\n"),
        ("k: 1\n", ""),
        ("k:\n", ""),
        ("{a: 1, k: 2, b: 3}\n", "{a: 1, b: 3}\n"),
        ("{k: 2}\n", "{}\n"),
    ],
)
def test_a_key_is_removed_with_its_lines_P9(before: str, after: str) -> None:
    assert edited(page(before), k=None) == page(after)


def test_several_keys_at_once_P9() -> None:
    before = page("title: a # t\nold: x\ntags: [a]\n")
    assert edited(before, title="b", old=None, summary="s", tags=[]) == page("title: b # t\nsummary: s\ntags: []\n")


def test_unknown_keys_and_types_survive_P3_P9() -> None:
    """P3, P9: what other programs wrote stays typed as it was."""
    inner = "date: 2026-06-29\nn: 3\ndraft: no\ndeep: {a: [1, 2.5, null]}\n"
    result = edited(page(inner), title="x")
    before, after = (yaml.safe_load(text) for text in (inner, result.split("---\n")[1]))
    assert after == {**before, "title": "x"}


# -- where a block is missing, broken or doubtful ------------------------------------------------------------------


def test_a_page_without_a_block_gets_one_P8_P11() -> None:
    assert edited("# Heading\n", created=NOW, zeta="z", title="T") == (
        "---\ntitle: T\ncreated: '2026-11-01T10:00:00Z'\nzeta: z\n---\n# Heading\n"
    )
    assert set_keys(b"", {"title": "T"}) == b"---\ntitle: T\n---\n"


@pytest.mark.parametrize(
    "before", ["---\n**ACME**\nCarmen O.\n---\nDear reader\n", "---\n- a\n---\n", "---\nprose\n---\n", "---\n\nx\n"]
)
def test_rules_that_are_body_stay_body_P6_P8(before: str) -> None:
    assert edited(before, title="T") == "---\ntitle: T\n---\n" + before


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("---\nkey: `C:\\agent`\n---\nbody one\n", 2),
        ("---\ntitle: *Italic*\n---\nbody two\n", 2),
        ("---\n- [[wiki]]suffix\n---\nbody three\n", 2),
        ("---\ntitle: [x\nsummary: open\n---\nbody four\n", 2),
        ("---\ntitle:\tTabbed: value\n---\nbody five\n", 2),
        ("---\ndate: {{date}}\ntitle: T\n---\nbody\n", 2),
        ("---\ntitle: &a [*a]\n---\nbody\n", 2),
        ("---\ntitle: x\n\nnever closed\n", 1),
        ("\n---\ntitle: late\n---\nbody\n", 2),
        ("<!-- c -->\n---\ntitle: late\n---\nbody\n", 2),
    ],
)
def test_a_broken_block_is_not_edited_and_gets_none_in_front_P8(before: str, line: int) -> None:
    with pytest.raises(FrontmatterError) as caught:
        edited(before, title="T")
    assert caught.value.line == line


def test_pages_that_are_not_utf8_are_not_edited_P10() -> None:
    raw = b"---\ntitle: Byte\n---\na \x96 b\n"
    for edit in (
        lambda: set_keys(raw, {"title": "x"}),
        lambda: set_body(raw, "x"),
        lambda: append(raw, "x"),
        lambda: replace_section(raw, "x", "y"),
    ):
        with pytest.raises(NotEditable, match=r"line 4: not valid UTF-8 \(byte 0x96\)"):
            edit()


@pytest.mark.parametrize(
    ("before", "given", "reason"),
    [
        ("k:\n  - a # why\n  - b\n", "text", "comments"),
        ("k: [a, # why\n  b]\n", [], "comment"),
        ("k: | # why\n  text\n", "text", "comments"),
        ("k: &x old\nz: *x\n", "new", "alias"),
        ("? k\n: old\n", None, "before the key"),
        ("base: &b {a: 1}\nk: *b\nz: *b\n", None, ""),
    ],
)
def test_what_cannot_be_kept_is_refused_P9(before: str, given: Any, reason: str) -> None:
    if reason:
        with pytest.raises(NotEditable, match=reason):
            edited(page(before), k=given)
    else:
        assert edited(page(before), k=given) == page(before.replace("k: *b\n", ""))


@pytest.mark.parametrize(
    "given",
    [
        {1},
        b"x",
        object(),
        datetime(2026, 1, 1),
        "\ud800",
        [[[b"x"]]],
        {"": "x"},
        {1: "x"},
        pytest.param(10**5000, id="huge"),
    ],
)
def test_values_without_a_place_are_refused_P9(given: Any) -> None:
    for raw in (b"---\nk: x\n---\n", b"body\n"):
        with pytest.raises(FrontmatterError):
            set_keys(raw, {"k": given})


@pytest.mark.parametrize("key", ["", " x", "a\nb", "x" * 201, "\x00", "\ud800"])
def test_keys_without_a_place_are_refused_P9(key: str) -> None:
    with pytest.raises(FrontmatterError):
        set_keys(b"body\n", {key: "x"})
    with pytest.raises(FrontmatterError):
        set_keys(b"---\na: b\n---\n", {key: "x"})


def test_odd_keys_are_quoted_P9() -> None:
    result = set_keys(b"---\na: b\n---\n", {"x: y": "1a", "yes": "no", "- d": "é", "12:30": "z"})
    assert result.decode() == page("a: b\n'x: y': '1a'\n'yes': 'no'\n'- d': é\n'12:30': z\n", "")
    assert yaml.safe_load(result.decode().split("---\n")[1]) == {
        "a": "b",
        "x: y": "1a",
        "yes": "no",
        "- d": "é",
        "12:30": "z",
    }


# -- new pages -----------------------------------------------------------------------------------------------------


def test_a_new_page_P11() -> None:
    raw = new_page(
        "Carbon fibre woks", "Light, and dear", "First line\r\nlast", now=NOW, uuid=UUID, tags=["a", "b"], draft=False
    )
    assert raw.decode() == (
        f"---\ntitle: Carbon fibre woks\nuuid: {UUID}\nsummary: Light, and dear\n"
        "created: '2026-11-01T10:00:00Z'\nupdated: '2026-11-01T10:00:00Z'\ntags: [a, b]\ndraft: false\n---\n"
        "First line\nlast\n"
    )


def test_a_new_page_without_anything_P11() -> None:
    fields = read_frontmatter(new_page()).fields
    assert list(fields) == ["uuid", "created", "updated"]
    assert new_page() != new_page()


@pytest.mark.parametrize(
    "title",
    [
        'Release: how: "x" #1 - it\'s 50% done {maybe} [ok] & *star* | é 漢',
        "No",
        "12:30",
        "2026-03-01",
        "1.10",
        "- dash",
        "# hash",
        "null",
        "'quoted'",
        "C:\\agent",
        "a: b",
        "🌱 x",
        "tab\there",
        "x" * 5000,
        "word " * 60 + "end",
    ],
)
def test_titles_read_back_equal_P11(title: str) -> None:
    text = new_page(title, now=NOW, uuid=UUID).decode()
    assert yaml.safe_load(text.split("---\n")[1])["title"] == title
    assert read_frontmatter(text.encode()).fields["title"] == title
    assert len(text.split("---\n")[1].splitlines()) == 4


def test_a_title_is_one_line_P11() -> None:
    fields = read_frontmatter(new_page(" two \r\n  lines\u2028and\x85more ", "a\nb", now=NOW, uuid=UUID)).fields
    assert (fields["title"], fields["summary"]) == ("two lines and more", "a b")


def test_a_body_with_a_block_of_its_own_is_refused_P8() -> None:
    with pytest.raises(NotEditable, match="block of its own"):
        new_page("T", body="---\ntitle: mine\n---\ntext\n")
    with pytest.raises(NotEditable, match="block of its own"):
        new_page("T", body="---\ntitle: [x\n---\ntext\n")
    assert new_page("T", body="---\n\nA rule first.\n").endswith(b"---\n---\n\nA rule first.\n")


# -- body ----------------------------------------------------------------------------------------------------------


def test_set_body_leaves_the_block_alone_P9() -> None:
    before = "\ufeff---\r\ntitle: 'x'  # c\r\n---\r\nold\r\n".encode()
    assert set_body(before, "new\nlines\n") == before.replace(b"old\r\n", b"new\r\nlines\r\n")
    assert set_body(before, "new\r\nlines") == before.replace(b"old\r\n", b"new\r\nlines")
    assert set_body(before, "old\n") == before
    assert set_body(b"---\na: b\n---", "text\n") == b"---\na: b\n---\ntext\n"
    assert set_body(b"---\na: b\n---", "") == b"---\na: b\n---"


def test_set_body_keeps_mixed_line_ends_of_equal_lines_P9() -> None:
    before = b"one\r\ntwo\nthree\rfour\n\n\n"
    assert set_body(before, "one\ntwo\nTHREE\nfour\n\n\n") == b"one\r\ntwo\nTHREE\r\nfour\n\n\n"
    assert set_body(before, "one\ntwo\nthree\nfour\n\n\n") == before


def test_set_body_of_a_broken_block_leaves_it_P8() -> None:
    assert set_body(b"---\na: [b\n---\nold\n", "new\n") == b"---\na: [b\n---\nnew\n"


@pytest.mark.parametrize("body", ["---\ntitle: x\n---\n", "---\na: [b\n---\n"])
def test_set_body_never_makes_frontmatter_P8(body: str) -> None:
    with pytest.raises(NotEditable, match="frontmatter"):
        set_body(b"text\n", body)


def test_append_does_not_glue_and_keeps_newlines_P9() -> None:
    assert append(b"body\n\n\n", "More.") == b"body\n\n\nMore.\n"
    assert append(b"body\n", "More.\n") == b"body\n\nMore.\n"
    assert append(b"body", "More.") == b"body\n\nMore.\n"
    assert append(b"body\r\n", "a\nb") == b"body\r\n\r\na\r\nb\r\n"
    assert append(b"---\na: b\n---\n", "First.") == b"---\na: b\n---\nFirst.\n"
    assert append(b"---\na: b\n---", "First.") == b"---\na: b\n---\nFirst.\n"
    assert append(b"", "First.") == b"First.\n"
    assert append(b"\xef\xbb\xbf", "First.") == b"\xef\xbb\xbfFirst.\n"
    assert append(b"body\n", "") == append(b"body\n", "\n") == b"body\n"


def test_append_never_closes_an_open_block_P8() -> None:
    for before in (b"---\ntitle: x\n", b"---\ntitle: x\n\nnever closed\n"):
        with pytest.raises(NotEditable, match="frontmatter"):
            append(before, "text\n\n---\n\nmore")
    with pytest.raises(NotEditable, match="frontmatter"):
        append(b"", "---\ntitle: x\n---\ntext")


# -- sections ------------------------------------------------------------------------------------------------------

SECTIONS = """\
---
title: x
---
Intro.

# One

one

## Sub

sub

```
# not a heading
```

## Other ##
other
# Two
two
"""


@pytest.mark.parametrize("heading", ["Sub", "## Sub", " sub ", "## sub"])
def test_a_section_is_replaced_to_the_next_heading_P9(heading: str) -> None:
    old = SECTIONS[SECTIONS.index("sub\n") : SECTIONS.index("\n## Other")]
    assert (
        replace_section(SECTIONS.encode(), heading, "new\n\ntext\n") == SECTIONS.replace(old, "new\n\ntext\n").encode()
    )


def test_a_section_includes_its_subsections_P9() -> None:
    result = replace_section(SECTIONS.encode(), "# One", "all new").decode()
    assert result == SECTIONS[: SECTIONS.index("one\n")] + "all new\n" + SECTIONS[SECTIONS.index("# Two") :]


def test_a_section_may_be_given_with_its_heading_P9() -> None:
    assert replace_section(b"# A\n\nx\n\n## B\ny\n", "A", "# A\n\nnew\n") == b"# A\n\nnew\n"
    assert replace_section(b"# A\n\nx\n", "A", "# A\n\nx") == b"# A\n\nx\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A\n# B\n", "# A\n\nnew\n\n# B\n"),
        ("# A\n\n\n# B\n", "# A\n\nnew\n\n\n# B\n"),
        ("# A", "# A\n\nnew\n"),
        ("# A\n", "# A\n\nnew\n"),
        ("# A\nx", "# A\nnew"),
        ("# A\nx\n\n\n", "# A\nnew\n\n\n"),
        ("A\n=\r\n\r\nx\r\n\r\nB\r\n-\r\n", "A\n=\r\n\r\nnew\n"),
        ("A\r\n=\r\n\r\nx\r\n\r\nB\r\n=\r\n", "A\r\n=\r\n\r\nnew\r\n\r\nB\r\n=\r\n"),
    ],
)
def test_blank_lines_around_a_section_stay_P9(before: str, after: str) -> None:
    result = replace_section(before.encode(), "A", "new")
    assert result.decode().replace("\r\n", "\n") == after.replace("\r\n", "\n")


def test_an_emptied_section_keeps_its_heading_P9() -> None:
    assert replace_section(b"# A\n\nx\n\n# B\n", "A", "") == b"# A\n\n# B\n"


def test_headings_that_are_missing_or_double_are_named_P9() -> None:
    with pytest.raises(NotEditable, match=r"'# One', '## Sub', '## Other', '# Two'"):
        replace_section(SECTIONS.encode(), "Three", "x")
    with pytest.raises(NotEditable, match="2 times"):
        replace_section(b"# A\n\n## A\n", "A", "x")
    assert replace_section(b"# A\n\n## A\n", "## A", "x") == b"# A\n\n## A\n\nx\n"
    with pytest.raises(NotEditable, match="the headings are: none"):
        replace_section(b"text\n", "A", "x")


def test_an_open_fence_never_swallows_what_follows_P9() -> None:
    with pytest.raises(NotEditable, match="swallow"):
        replace_section(SECTIONS.encode(), "Sub", "```\nopen")
    assert b"open" in replace_section(SECTIONS.encode(), "Two", "```\nopen")
