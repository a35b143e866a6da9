"""Links between pages: which are found, how a rename changes them, and that code and other bytes stay."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryfield.errors import InvalidName, NotEditable
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.links import links, rewrite_links


@pytest.mark.parametrize(
    "form",
    [
        "[text](old.md)",
        "[text](old.md#part)",
        '[text](./old.md "title")',
        "[text](<old.md>)",
        "[text]( old.md )",
        "[text](old.md 'title')",
        "[text](\nold.md)",
        "[a [nested] text](old.md)",
        "![image](old.md)",
        "[![x](plan.png)](old.md)",
        "<old.md>",
        "<./old.md#part>",
        "[ref]: old.md",
        '   [ref]: <old.md> "title"',
        "[[old]]",
        "[[old|text]]",
        "[[old#part]]",
        "[[old#part|text]]",
        "[[old.md]]",
        "![[old]]",
        "| [[old\\|text]] |",
        "> - [text](old.md)",
        "# [text](old.md)",
        "é漢🌱 [[old]] é",
        "`code` [text](old.md) `code`",
        "an `open tick [text](old.md)",
        "\\\\[text](old.md)",
        "[text](old.md?raw=1)",
    ],
)
def test_links_are_rewritten_P12(form: str) -> None:
    """P12: a rename changes links in other pages, and the rest of them not."""
    for before, after in (("", ""), ("line\r\n\r\n", "\r\n\n\n"), ("\ufeff---\ntitle: x\n---\n", "\nlast")):
        raw = f"{before}{form}{after}".encode()
        assert rewrite_links(raw, "old", "new-1.md") == f"{before}{form.replace('old', 'new-1')}{after}".encode()
        assert rewrite_links(raw, "older", "x") == rewrite_links(raw, "ol", "x") == raw
        assert [link.page for link in links(raw) if link.page] == ["old"]


@pytest.mark.parametrize(
    "form",
    [
        "`[text](old.md)`",
        "`` ` [text](old.md) ` ``",
        "```\n[text](old.md)\n```",
        "~~~ md\n[[old]]\n~~~\n",
        "````\n```\n[[old]]\n````",
        "> ```\n> [[old]]\n> ```",
        "- item\n\n  ```\n  [[old]]\n  ```\n",
        "```\n[[old]]\nnever closed",
        "\\[text](old.md)",
        "\\[[old]] is escaped",
        "text](old.md)",
        "[text](older.md)",
        "[text](old)",
        "[text](old.txt)",
        "[text](sub/old.md)",
        "[text](../old.md)",
        "[text](https://example.org/old.md)",
        "[text] (old.md)",
        "[text](old.md",
        "[[older]]",
        "[[sub/old]]",
        "[[old",
        "old.md",
        "<old.md",
        "[Old](Old.md)",
        "[]()",
        "",
    ],
)
def test_what_is_no_link_stays_P12(form: str) -> None:
    raw = form.encode()
    assert rewrite_links(raw, "old", "new") == raw


def test_wiki_links_are_found_whatever_their_case_P12() -> None:
    """P12: as in the tools that have wiki links; a path with another case is another file."""
    assert rewrite_links(b"[[Old]] [[OLD|x]] [x](Old.md)", "old", "new") == b"[[new]] [[new|x]] [x](Old.md)"


def test_fences_end_where_they_end_P12() -> None:
    raw = b"> ```\n> [[old]]\nafter the quotation [[old]]\n\n```\n[[old]]\n```\n[[old]]\n"
    assert rewrite_links(raw, "old", "new") == (
        b"> ```\n> [[old]]\nafter the quotation [[new]]\n\n```\n[[old]]\n```\n[[new]]\n"
    )


def test_links_in_the_frontmatter_P9_P12() -> None:
    raw = b'---\nrelated: [[old]]\nsource: "[[old|the old]]"  # see [[old]]\ntitle: old\n---\n[[old]]\n'
    result = rewrite_links(raw, "old", "new")
    assert result == raw.replace(b"[[old", b"[[new")
    assert read_frontmatter(result).fields["related"] == [["new"]]
    broken = b"---\nrelated: [[old]] x\n---\n[[old]]\n"
    assert rewrite_links(broken, "old", "new") == broken.replace(b"---\n[[old]]\n", b"---\n[[new]]\n")


def test_invalid_bytes_P10() -> None:
    """P10: links of such a page are found, but it is not edited; without a link to change it is left alone."""
    raw = b"\xff [x](old.md) \xe9"
    assert [(link.page, raw[slice(*link.span)]) for link in links(raw)] == [("old", b"old")]
    with pytest.raises(NotEditable, match="re-encode"):
        rewrite_links(raw, "old", "new")
    assert rewrite_links(raw, "other", "new") == raw


def test_names_are_checked_P1() -> None:
    for old, new in (("Old", "new"), ("old", "../new"), ("old", "")):
        with pytest.raises(InvalidName):
            rewrite_links(b"[[old]]", old, new)


def test_other_targets_are_listed_too() -> None:
    raw = "é [a](https://x.y/z(1)) ![b](plan.png) [c](mailto:d@e) [[#part]] [f](g%2Dh.md)".encode()
    found = links(raw)
    assert [(link.target, link.page) for link in found] == [
        ("https://x.y/z(1)", None),
        ("plan.png", None),
        ("mailto:d@e", None),
        ("g%2Dh.md", "g-h"),
    ]
    assert [raw[slice(*link.span)].decode() for link in found] == [
        "https://x.y/z(1)",
        "plan.png",
        "mailto:d@e",
        "g%2Dh",
    ]


PARTS = st.sampled_from(
    [
        "[",
        "]",
        "(",
        ")",
        "old.md",
        "old",
        "[[",
        "]]",
        "|",
        "#",
        "`",
        "```",
        "\n",
        "\n\n",
        "\\",
        "<",
        ">",
        " ",
        "é",
        "~~~",
        ": ",
        "](",
        "\r\n",
    ]
)


@settings(deadline=None, max_examples=500)
@given(st.lists(PARTS, max_size=25).map("".join))
def test_renaming_there_and_back_P9_P12(text: str) -> None:
    """P9, P12: only names of links change, and the way back gives the same bytes."""
    raw = text.encode()
    there = rewrite_links(raw, "old", "a-new-one")
    assert there.replace(b"a-new-one", b"old") == raw
    assert rewrite_links(there, "a-new-one", "old") == raw
    assert [link.page for link in links(there)] == [
        "a-new-one" if link.page == "old" else link.page for link in links(raw)
    ]


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80), st.binary(max_size=80))
def test_any_bytes_have_links_or_none(before: bytes, after: bytes) -> None:
    raw = before + b"[x](old.md)" + after
    for link in links(raw):
        assert 0 <= link.span[0] < link.span[1] <= len(raw)


HOSTILE = {
    "open brackets": "[" * 100_000,
    "wiki brackets": "[[" * 50_000,
    "half links": "](" * 100_000,
    "empty links": "[](" * 60_000,
    "backticks": "`" * 200_000,
    "backticks of each length": "".join("`" * i + " " for i in range(1, 600)),
    "one line": "a" * 200_000,
    "angles": "<" * 200_000,
    "angles and names": "<a.md" * 40_000,
    "backslashes": "\\" * 200_000,
    "wiki names": "[[a" * 60_000,
    "blanks after a bracket": "[a](" + " " * 200_000,
    "brackets on lines": "[\n" * 100_000,
    "parentheses": "[a](" + "(a)" * 60_000,
    "quotations": ">" * 200_000,
    "fences": "```\n" * 50_000,
    "links": "[a](old.md) " * 16_000,
    "references": "[a]: old.md\n" * 16_000,
    "labels": ("[" + "a" * 999 + "\n") * 200,
    "newlines": "\n" * 200_000,
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_bodies_take_linear_time(name: str) -> None:
    """CPU time with much room; a quadratic scan of these takes minutes."""
    raw = (HOSTILE[name] + " old").encode()
    begun = time.process_time()
    rewrite_links(raw, "old", "new")
    assert time.process_time() - begun < 4.0


def test_many_links_in_a_long_page_are_found_in_place() -> None:
    chance = random.Random(3)
    words = ["é漢🌱", "text", "[a](old.md)", "[[old]]", "`[a](old.md)`", "\n\n", "[b](b.md)"]
    text = " ".join(chance.choice(words) for _ in range(3000))
    raw = text.encode()
    found = links(raw)
    assert len(found) > 1000
    assert all(raw[slice(*link.span)] in (b"old", b"b") for link in found)
