"""Links among the pages of a merge become words or anchors; no link of the merged page points to the page itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryfield.curate.merge import plan_merge
from memoryfield.curate.selflinks import without_self_links
from memoryfield.format.directory import PageDirectory
from memoryfield.format.links import links
from memoryfield.format.page import Page


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("See [two](two.md).", "See two."),
        ("See [two](./two.md 'A title'), twice.", "See two, twice."),
        ("See [the *steps*](<two.md#steps>).", "See [the *steps*](#steps)."),
        ("[a [b] c](two.md) and [d](two.md#)", "a [b] c and d"),
        ("[broken\nover lines](\ntwo.md\n) on", "broken\nover lines on"),
        ("[[two]] and [[ two|the second ]] and [[two#The steps|steps]]", "two and the second and [steps](#the-steps)"),
        ("<two.md> or <./two.md#x>", "two or two"),
        ("Ünïcödé 漢字 [zwei](two.md) 漢", "Ünïcödé 漢字 zwei 漢"),
        ("![picture](two.md)", "![picture](one.md)"),
        ("[two][t]\n\n[t]: two.md", "[two][t]\n\n[t]: one.md"),
        (
            "`[two](two.md)` and [x](three.md) stay, as does two.md",
            "`[two](two.md)` and [x](three.md) stay, as does two.md",
        ),
        (r"\[not](two.md) [a \] b](two.md)", r"\[not](two.md) a \] b"),
    ],
)
def test_a_link_to_an_absorbed_page(before: str, after: str) -> None:
    assert without_self_links(Page("one", before.encode()), ["two"], "one").decode() == after


def test_the_merged_page_has_no_link_to_itself(tmp_path: Path) -> None:
    directory = PageDirectory(tmp_path, create=True)
    pages = {
        "one": "---\ntitle: One\nsee: '[[two]]'\n---\nThe first says [more](two.md), see [[three#Late part]].\n",
        "two": "---\ntitle: Two\n---\nThe second says what [the first](one.md) does not. "
        "[Here](two.md#steps) it goes.\n"
        "\n## Steps\n\n1. Read [the third](three.md).\n",
        "three": "Nothing but [two](two.md).\n\n## Late part\n\nHere it ends, with [others](other.md).\n",
        "other": "See [two](two.md#steps).\n",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.md").write_text(text)
    plan = plan_merge([directory.read(name) for name in ("one", "two", "three")], "one", directory=directory)
    assert plan.account().complete
    body = plan.result.body
    assert "The first says more, see [three](#late-part)." in body
    assert "what the first does not. [Here](#steps) it goes." in body
    assert "Read the third." in body and "Nothing but two." in body
    assert {link.page for link in links(body.encode()) if link.page} == {"other"}
    assert plan.result.frontmatter["see"] == "[[one]]"  # a key is for machines: its value stays a link
    plan.apply()
    assert directory.read("other").body == "See [two](one.md#steps).\n"


_PIECES = [
    "[a](two.md)",
    "[[two]]",
    "](two.md)",
    "[",
    "]",
    "(",
    ")",
    "\\",
    "<two.md>",
    "`",
    "two.md",
    "\n",
    " x",
    "!",
    "漢",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
@settings(max_examples=300)
def test_no_text_keeps_a_link_to_an_absorbed_page(text: str) -> None:
    result = without_self_links(Page("one", text.encode()), ["two"], "one")
    assert "two" not in {link.page for link in links(result)}
    assert without_self_links(Page("one", result), ["two"], "one") == result
