"""Names of pages: what is one, what is left alone, and how a title becomes one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryfield.errors import InvalidName
from memoryfield.format.names import (
    LONGEST_NEW_NAME,
    LONGEST_SLUG,
    is_page_filename,
    new_page_name,
    page_name,
    skip_reason,
    slug,
)

RULE = re.compile(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?\.md$")


@pytest.mark.parametrize("filename", ["a.md", "7.md", "slipway-rules.md", "a--b.md", "con.md", f"{'a' * 240}.md"])
def test_page_filenames_P1(filename: str) -> None:
    assert is_page_filename(filename)


@pytest.mark.parametrize(
    "filename",
    [
        "a.md\n",
        "a.MD",
        "A.md",
        "-a.md",
        "a-.md",
        ".md",
        "a",
        "a.md.md",
        "a_b.md",
        "a b.md",
        "é.md",
        "a.md ",
        "",
        "x/y.md",
    ],
)
def test_other_filenames_P1(filename: str) -> None:
    assert not is_page_filename(filename)


@given(st.text(alphabet="abz019-.mdMD\n é_", max_size=12))
def test_the_rule_is_the_specifications_P1(filename: str) -> None:
    """P1: the whole name must match, which `$` before a final newline would not ask for."""
    assert is_page_filename(filename) == (RULE.match(filename) is not None and not filename.endswith("\n"))


def test_names_with_and_without_ending_mean_the_same_P1() -> None:
    assert page_name("slipway-rules") == page_name("slipway-rules.md") == "slipway-rules"
    assert page_name("md.md") == page_name("md") == "md"
    assert page_name("a--b") == "a--b"


@pytest.mark.parametrize(
    ("text", "reason", "proposal"),
    [
        ("", "empty", None),
        ("Slipway Rules", "not ' '", "slipway-rules"),
        ("README", "capital letters", "readme"),
        ("seed_order", "'_'", "seed-order"),
        ("-x-", "begin and end", "x"),
        ("a.md.md", "'.'", "a-md"),
        ("../a", "'.', '/'", "a"),
        ("a\n", "line ends", "a"),
        ("漢字", "only a-z", None),
        ("café", "'é'", "cafe"),
    ],
)
def test_invalid_names_say_why_and_what_would_do_P1(text: str, reason: str, proposal: str | None) -> None:
    with pytest.raises(InvalidName) as caught:
        page_name(text)
    assert reason in str(caught.value)
    assert ("Try" in str(caught.value)) == (proposal is not None)
    if proposal is not None:
        assert f"Try {proposal!r}" in str(caught.value)


@pytest.mark.parametrize("text", ["a--b", "con", "nul.md", "lpt1", "a" * (LONGEST_NEW_NAME + 1)])
def test_names_that_can_be_read_but_not_created_P1_P13(text: str) -> None:
    page_name(text)
    with pytest.raises(InvalidName, match="new page"):
        new_page_name(text)


def test_names_that_can_be_created_P1() -> None:
    assert new_page_name("index.md") == "index"
    assert new_page_name("console") == "console"
    assert new_page_name("a" * LONGEST_NEW_NAME) == "a" * LONGEST_NEW_NAME


@pytest.mark.parametrize(
    ("filename", "reason"),
    [
        ("a.md", None),
        ("a--b.md", None),
        ("plan.png", None),
        ("nomic-embed-text-v1.5.sqlite3", None),
        ("README", None),
        (".hidden-bed.md", "hidden"),
        (".git", "hidden"),
        ("plain.sync-conflict-20260301-090000-ABCDEFG.md", "sync conflict copy"),
        ("plan.sync-conflict-20260301-090000-ABCDEFG.png", "sync conflict copy"),
        ("plain-page.md~", "editor backup"),
        ("#plain-page.md#", "editor backup"),
        (".DS_Store", "desktop debris"),
        ("desktop.ini", "desktop debris"),
        ("Thumbs.db", "desktop debris"),
        ("SHED.MD", "not a valid page name"),
        ("seed_order.md", "not a valid page name"),
        ("펌프.md", "not a valid page name"),
        ("what-now?.md", "not a valid page name"),
        ("a.md\n", "not a valid page name"),
        ("100%# beds [draft]+.md", "not a valid page name"),
    ],
)
def test_why_files_are_left_out_P2(filename: str, reason: str | None) -> None:
    assert skip_reason(filename) == reason


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Slipway rules", "slipway-rules"),
        ("  Crème brûlée — à la carte!  ", "creme-brulee-a-la-carte"),
        ("Straße nach Łódź", "strasse-nach-lodz"),
        ("ＦＵＬＬ ｗｉｄｔｈ ３", "full-width-3"),
        ("步2 重跑gen-itgc后50条", "2-gen-itgc-50"),
        ("a_b/c\\d.e", "a-b-c-d-e"),
        ("İstanbul", "istanbul"),
        ("½ cup", "1-2-cup"),
        ("console", "console"),
    ],
)
def test_slugs_P13(title: str, expected: str) -> None:
    assert slug(title) == expected


def test_slugs_are_cut_at_a_word_P13() -> None:
    assert slug("carbon fibre " * 10) == "carbon-fibre-carbon-fibre-carbon-fibre-carbon-fibre-carbon"
    assert slug("a" * 59 + " bc") == "a" * 59
    assert slug("a" * 60 + " bc") == "a" * 60
    assert slug("a" * 100) == "a" * 60


@pytest.mark.parametrize("title", ["", "!!!", "漢字", "🌱", "\n"])
def test_an_empty_slug_asks_for_a_name_P13(title: str) -> None:
    with pytest.raises(InvalidName, match="give a name"):
        slug(title)


@pytest.mark.parametrize("title", ["CON", "nul", "Aux", "com1", "LPT9", "prn!"])
def test_device_names_are_refused_P13(title: str) -> None:
    with pytest.raises(InvalidName, match="device"):
        slug(title)


def test_clashes_get_a_number_P13() -> None:
    assert slug("Rules", ["rules"]) == "rules-2"
    assert slug("Rules", ["rules.md", "rules-2.md"]) == "rules-3"
    long = slug("b" * 80, ["b" * 60])
    assert long == "b" * 58 + "-2"


@given(st.text(max_size=200), st.lists(st.sampled_from(["a", "a-2", "1", "x.md"])))
def test_a_slug_is_always_a_name_for_a_new_page_P13(title: str, taken: list[str]) -> None:
    try:
        name = slug(title, taken)
    except InvalidName:
        return
    assert new_page_name(name) == name
    assert len(name) <= LONGEST_SLUG
    assert name not in {other.removesuffix(".md") for other in taken}
    assert slug(name.replace("-", " ")) == name


def test_a_name_that_clashes_thousands_of_times_is_found_soon() -> None:
    taken: set[str] = {"other"}
    for _ in range(3000):
        name = slug("Note!", taken)
        assert name not in taken
        taken.add(name)
    assert {f"note-{number}" for number in range(2, 100)} < taken and len(taken) == 3001
    assert slug("Note", {f"note-{number}.md" for number in range(2, 50)} | {"note"}) == "note-50"
    assert slug("Note", {"note": 1, "note-3": 2}) == "note-2"
