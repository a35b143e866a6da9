"""Reading frontmatter: text first, never an exception, within limits. ``golden/`` tests the whole reader."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryfield.format import yamlread
from memoryfield.format.frontmatter import LONGEST_BLOCK, Frontmatter, _read_plain, read_frontmatter
from memoryfield.format.page import Page
from memoryfield.format.yamlread import DEEPEST, MOST_ALIASES, MOST_VALUES, BlockError, read_tree

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.md"))


def front(text: str | bytes) -> Frontmatter:
    return read_frontmatter(text.encode() if isinstance(text, str) else text)


def block(inner: str) -> Frontmatter:
    return front(f"---\n{inner}---\nbody\n")


@pytest.mark.parametrize("name", NAMES)
def test_golden_pages_P3_P6_P7_P8_P10(name: str) -> None:
    """P3, P6, P7, P8, P10: ``x.md`` is read as ``x.json`` says."""
    expected = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    page = Page(name, (GOLDEN / f"{name}.md").read_bytes())
    error = page.frontmatter_error
    assert {
        "present": page.has_frontmatter,
        "frontmatter": dict(page.frontmatter),
        "error": [error.line, error.rule, error.message] if error else None,
        "warnings": [[warning.line, warning.rule, warning.message] for warning in page.warnings],
        "title": page.title,
        "summary": page.summary,
        "body": page.body,
        "is_utf8": page.is_utf8,
        "newline": page.newline,
    } == expected


def test_golden_pages_come_in_pairs() -> None:
    assert len(NAMES) > 50
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == NAMES


# -- where the block stands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("blanks", ["", " ", "\t \t"])
@pytest.mark.parametrize("tail", ["", "body"])
def test_fences_P6(newline: str, bom: bytes, blanks: str, tail: str) -> None:
    raw = bom + f"---{blanks}\ntitle: x\n---{blanks}".replace("\n", newline).encode()
    raw += (newline + tail).encode() if tail else b""
    found = read_frontmatter(raw)
    assert dict(found.fields) == {"title": "x"}
    assert found.present and found.error is None and found.warnings == ()
    assert raw[found.body_start :] == tail.encode()
    assert raw[found.span[0] : found.span[1]] == raw[len(bom) : len(raw) - len(tail)]
    assert raw[found.inner[0] : found.inner[1]] == f"title: x{newline}".encode()


def test_only_the_first_line_opens_a_block_P6() -> None:
    """P6: what stands a little too late is body, and said to be."""
    for text in ("\n---\ntitle: x\n---\n", "----\ntitle: x\n----\n", "<!-- c -->\n---\ntitle: x\n---\n"):
        found = front(text)
        assert not found.present and not found.fields and found.body_start == 0
        assert [warning.rule for warning in found.warnings] == ["P6"]
    for text in (
        "text\n---\ntitle: x\n---\n",
        "- - -\ntitle: x\n",
        "--- # x\n",
        "---x\ntitle: x\n---\n",
        "***\na: b\n***\n",
    ):
        assert front(text) == Frontmatter()


def test_the_first_closing_line_counts_P6() -> None:
    found = front("---\na: b\n---\nc: d\n---\n")
    assert dict(found.fields) == {"a": "b"}
    assert front("---\na: |\n  ---\n  b\n---\n").fields["a"] == "---\nb\n"
    assert not front("---\na: b\n----\n").present


def test_dots_close_a_mapping_only_P6() -> None:
    """P6: `...` ends a YAML document; it closes the block where a mapping or nothing stands before it."""
    assert dict(front("---\na: b\n...\nbody").fields) == {"a": "b"}
    assert front("---\n...\nbody").present
    assert not front("---\nprose\n...\nmore\n---\n").present
    broken = front("---\na: [b\n...\nc: d\n---\nbody")
    assert broken.error is not None and broken.body_start == len("---\na: [b\n...\nc: d\n---\n")
    assert not front("---\na: [b\n...\nbody").present


def test_an_open_block_is_body_with_a_warning_P6() -> None:
    found = front("---\ntitle: x\n\nbody\n")
    assert not found.present and found.body_start == 0
    assert [(warning.line, warning.rule) for warning in found.warnings] == [(1, "P6")]
    assert front("---\n\nprose after a rule\n").warnings == ()
    assert front("---").warnings == front("---\n").warnings == ()


def test_rules_around_prose_are_body_P6() -> None:
    """P6: a letterhead between two rules is no frontmatter, whether YAML can read it or not."""
    for inner in ("**ACME Partners**\nCarmen O.\n", "just prose\n", "- a\n- list\n", "[a, b]\n", "'text'\n", "~\n"):
        found = block(inner)
        assert not found.present and found.error is None and found.body_start == 0, inner


# -- what it says -------------------------------------------------------------------------------------------------


def test_values_are_the_text_that_stands_there_P7() -> None:
    texts = [
        "2026-03-01",
        "12:30",
        "No",
        "1.10",
        "0x1F",
        "017",
        "1e3",
        ".nan",
        "null",
        "~",
        "true",
        "1_000",
        "2026-13-45",
    ]
    found = block("".join(f"k{i}: {text}\n" for i, text in enumerate(texts)))
    assert list(found.fields.values()) == texts
    assert dict(block("1: a\ntrue: b\n2026-01-01: c\n~: d\n").fields) == {
        "1": "a",
        "true": "b",
        "2026-01-01": "c",
        "~": "d",
    }


def test_tags_are_ignored_P7() -> None:
    found = block("a: !!int 7\nb: !!python/object/apply:os.system [echo]\nc: !mine {x: y}\n")
    assert dict(found.fields) == {"a": "7", "b": ["echo"], "c": {"x": "y"}}


def test_a_date_that_does_not_exist_is_text_with_a_warning_P7() -> None:
    found = block("title: x\ncreated: 2026-13-45\nupdated: '2026-03-01T09:00:00Z'\n")
    assert found.fields["created"] == "2026-13-45"
    assert [(warning.line, warning.rule) for warning in found.warnings] == [(3, "P7")]
    assert "2026-13-45" in found.warnings[0].message
    assert block("created:\nupdated: ''\n").warnings == ()


def test_duplicate_keys_P7() -> None:
    found = block("title: First\nother: x\ntitle: Second\ntitle: Third\nmap:\n  a: 1\n  a: 2\n")
    assert found.fields["title"] == "Third"
    assert [(warning.line, warning.rule) for warning in found.warnings] == [(5, "P7"), (8, "P7")]
    assert "title" in found.warnings[0].message


def test_few_aliases_are_followed_and_many_refused_P7() -> None:
    names = "".join(f"k{i}: *a\n" for i in range(MOST_ALIASES))
    assert set(block("base: &a x\n" + names).fields.values()) == {"x"}
    found = block("base: &a x\n" + names + "more: *a\n")
    assert found.error is not None and "aliases" in found.error.message
    assert found.error.line == 3 + MOST_ALIASES
    assert dict(block("? &k key\n: v\nother: *k\n").fields) == {"key": "v", "other": "key"}


@pytest.mark.parametrize(
    "inner",
    [
        "title: &a [*a]\n",
        "&a title: x\nmap: &b {c: *b}\n",
        "&root\na: *root\n",
        "a: *nothing\n",
    ],
)
def test_aliases_that_lead_nowhere_or_back_P7(inner: str) -> None:
    found = block(inner)
    assert found.present and not found.fields
    assert found.error is not None and "alias" in found.error.message


def test_aliases_cannot_blow_a_block_up_P7() -> None:
    """P7: three aliases a level stay below the count, so the size is bounded too."""
    rows = ["a: &a [" + "x, " * 9000 + "x]"] + [
        f"{n}: &{n} [*{p}, *{p}, *{p}]" for p, n in zip("abcd", "bcde", strict=True)
    ]
    found = block("\n".join(rows) + "\n")
    assert found.error is not None and "blow" in found.error.message


def test_nesting_is_limited_P8() -> None:
    assert block("a: " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + "\n").error is None
    for inner in (
        "a: " + "[" * DEEPEST + "]" * DEEPEST,
        "a: " + "[" * 30_000,
        "a: " + "{" * 30_000,
        "- " * 30_000 + "x",
    ):
        found = block(inner + "\n")
        assert found.error is not None and "nest" in found.error.message
    deep = "".join(" " * i + "k:\n" for i in range(DEEPEST + 1))
    assert "nested" in str(block(deep).error)
    through = block("a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 20 + "*a" + "]" * 20 + "\n")
    assert "nested" in str(through.error)


def test_size_is_limited_P8() -> None:
    assert block("title: " + "x" * (LONGEST_BLOCK - 8) + "\n").error is None
    found = block("title: x\n" + "# comment\n" * (LONGEST_BLOCK // 10))
    assert found.present and not found.fields and "at most" in str(found.error)
    prose = block("Only prose stands here.\n" * 4000)
    assert not prose.present and prose.error is None
    many = block("a: [" + "b," * MOST_VALUES + "]\n")
    assert "keys and values" in str(many.error)


@pytest.mark.parametrize(
    ("inner", "line", "word"),
    [
        ("ok: 1\nkey: `C:\\agent`\n", 3, "quotes"),
        ("title: *Italic*\n", 2, "quotes"),
        ("title: *Italic\n", 2, "alias"),
        ("- [[wiki]]suffix\n", 2, "quotes"),
        ("\n\ntitle: [x\nsummary: open\n", 4, "bracket"),
        ("title: [Pump] repair steps\n", 2, "quotes"),
        ('a: "open\nb: c\n', 2, "quotation mark"),
        ("title:\tTabbed: value\n", 2, "colon"),
        ("a:\n\t- b\n", 3, "tab"),
        ("title: {{title}}\n", 2, "placeholder"),
        ("a: b\n<<<<<<< HEAD\ntitle: x\n", 3, "conflict"),
        ("title: a\x07b\n", 2, "U+0007"),
        ("a: b\r\nc: d\r\ne: f: g\r\n", 4, "colon"),
        ("a: b\n--- c\n", 3, "second YAML document"),
        ("%TAG ! tag:x\na: b\n", 2, "directive"),
        ("? [a]\n: b\n", 2, "key"),
        ('a: "\\U99999999"\n', 2, "escape"),
    ],
)
def test_broken_blocks_say_where_and_why_P8(inner: str, line: int, word: str) -> None:
    found = block(inner)
    assert found.present and not found.fields
    assert found.error is not None
    assert (found.error.line, found.error.rule) == (line, "P8")
    assert word in found.error.message
    assert found.body_start == len(f"---\n{inner}---\n".encode())


def test_invalid_bytes_are_replaced_P10() -> None:
    found = front(b"---\ntitle: G\xe4rtnerei\ntags: [\xff]\n---\n\xfe\n")
    assert dict(found.fields) == {"title": "G\ufffdrtnerei", "tags": ["\ufffd"]}


def test_fields_are_read_only() -> None:
    with pytest.raises(TypeError):
        front("---\na: b\n---\n").fields["a"] = "c"  # type: ignore[index]


# -- the two loaders and the fast path agree ----------------------------------------------------------------------

_ODD = ["\t", "\n", "\r\n", "\r", "\x85", "\u2028", "\xa0", "\ufeff", "\ufffe", "\x00", "\x7f", "\u3000", "\u200b"]
_PARTS = ["---", "...", "null", "true", " ", "  ", ": ", " #", "- ", "x: y", "[a, b]", "[a, , b]", "2026-01-01"]
PIECES = st.sampled_from([*"aB0-_./():#'\"\\,[]{}&*!|>%@`?~=<é漢🌱", *_ODD, *_PARTS])
VALUES = st.tuples(
    st.sampled_from(["", "'", '"', "["]), st.lists(PIECES, max_size=5), st.sampled_from(["", "'", '"', "]", "  "])
).map(lambda parts: parts[0] + "".join(parts[1]) + parts[2])
LINES = st.tuples(
    st.sampled_from(["a", "title", "b-c", "_x", "D9"]),
    st.sampled_from([":", ": ", ":  "]),
    VALUES,
    st.sampled_from(["\n", "\r\n"]),
).map("".join)


@settings(deadline=None, max_examples=800)
@given(st.lists(LINES, min_size=1, max_size=3).map("".join))
@example("title: 'it''s'\n")
@example("tags: [a, b c, d-e]\nurl: http://x/y#z  \n")
@example('a:\nb: ""\nc: x # y\n')
def test_the_fast_path_says_what_yaml_says_P7(text: str) -> None:
    """P7: where plain lines are read without YAML, both of PyYAML's loaders say the same."""
    fields = _read_plain(text)
    if fields is None:
        return
    for loader in (yaml.BaseLoader, getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
        assert yaml.load(text, Loader=loader) == fields
    tree = read_tree(text)
    assert tree.root is not None and tree.root.value == fields and not tree.duplicates


def test_the_fast_path_takes_plain_pages_P7() -> None:
    """P7: the pages that most fields are made of do not need YAML at all."""
    plain = (
        "title: It's 50% done - C# (draft)\nuuid: 5f0e4c52-1d7e-4a55-9a2f-0c3a6f1b2d10\ntags: [a, b c]\n"
        "created: '2026-03-01T09:00:00Z'\nempty:\n"
    )
    assert _read_plain(plain) is not None
    for text in (
        "a: b\na: c\n",
        "a: b: c\n",
        "a: |\n  x\n",
        "a: 'it''s'\n",
        '"a": b\n',
        "a: b\n  c\n",
        "- a\n",
        "# c\n",
    ):
        assert _read_plain(text) is None


SCALARS = st.text(alphabet="ab \n:#-'\"é🌱0", max_size=8)


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text("abc ", min_size=1, max_size=3), inner, max_size=3)


TREES = st.recursive(SCALARS, _branches)


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(st.text("kxé1", min_size=1, max_size=4), TREES, max_size=4), st.sampled_from([None, True, False])
)
def test_whatever_pyyaml_writes_is_read_P3(data: dict[str, Any], flow: bool | None) -> None:
    text = yaml.safe_dump(data, allow_unicode=True, default_flow_style=flow, sort_keys=False)
    root = read_tree(text).root
    assert root is not None and root.value == yaml.load(text, Loader=yaml.BaseLoader)


@pytest.mark.parametrize("name", NAMES)
def test_without_libyaml_the_same_is_read_P7(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P7: PyYAML's own loader gives the same fields, and breaks on the same pages."""
    raw = (GOLDEN / f"{name}.md").read_bytes()
    fast = read_frontmatter(raw)
    monkeypatch.setattr(yamlread, "_LOADER", yaml.BaseLoader)
    slow = read_frontmatter(raw)
    assert (slow.present, slow.fields, slow.span, slow.warnings) == (
        fast.present,
        fast.fields,
        fast.span,
        fast.warnings,
    )
    assert (slow.error is None) == (fast.error is None)


def test_lone_surrogates_never_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamlread, "_LOADER", yaml.BaseLoader)
    root = read_tree('a: "\\ud800x"\n').root
    assert root is not None and root.value == {"a": "\ufffdx"}
    with pytest.raises(BlockError):
        read_tree('a: "\\U99999999"\n')


# -- nothing raises, nothing is slow ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=400)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_P8(raw: bytes) -> None:
    for candidate in (raw, b"---\n" + raw, b"---\n" + raw + b"\n---\n" + raw):
        found = read_frontmatter(candidate)
        assert 0 <= found.span[0] <= found.inner[0] <= found.inner[1] <= found.span[1] <= max(found.body_start, 0)
        assert found.body_start <= len(candidate)
        json.dumps(dict(found.fields), allow_nan=False)


def test_mutated_pages_are_read_P8() -> None:
    """P8: cut, doubled, swapped and sprinkled, the golden pages are still read."""
    chance = random.Random(7)
    seeds = [(GOLDEN / f"{name}.md").read_bytes() for name in NAMES]
    spice = [
        b"---\n",
        b"...\n",
        b": ",
        b"- ",
        b"[",
        b"}",
        b"'",
        b'"',
        b"|\n",
        b"&a ",
        b"*a",
        b"\t",
        b"\r",
        b"\xff",
        b"\xe2\x80\xa8",
    ]
    for _ in range(800):
        raw = chance.choice(seeds)
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(raw) + 1)
            cut = place + chance.choice([0, 0, 1, 5])
            raw = raw[:place] + chance.choice([*spice, chance.choice(seeds)[:40]]) + raw[cut:]
        page = Page("x", raw)
        json.dumps(page.to_dict(), allow_nan=False)


HOSTILE = {
    "brackets": "a: " + "[" * 60_000,
    "dashes": "- " * 30_000,
    "anchors": "&a " * 20_000,
    "directives": "".join(f"%TAG !{i}! tag:{i}\n" for i in range(800)),
    "blanks before an error": "a: x" + " " * 60_000 + "\x01",
    "colons before an error": "a: " + "b:" * 30_000 + "\x01",
    "one key many times": "a: [b]\n" * 9_000,
    "question marks": "? a\n" * 15_000,
    "many keys": "".join(f"k{i}: v\n" for i in range(6000)),
    "long key": "a" * 60_000 + ": b",
    "newlines": "\n" * 60_000,
    "apostrophes": "a: '" + "''" * 30_000,
    "documents": "a: b\n" + "--- x\n" * 8_000,
    "commas": "a: [" + "b," * 30_000 + "]",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_blocks_take_no_time_P8(name: str) -> None:
    """P8: CPU time, with room for slow machines; a quadratic reader needs tens of seconds for these."""
    raw = f"---\n{HOSTILE[name]}\n---\nbody\n".encode()
    begun = time.process_time()
    found = read_frontmatter(raw)
    assert time.process_time() - begun < 1.0
    assert not found.present or found.error is not None or found.fields or name == "newlines"


def test_hostile_files_without_a_block_take_no_time_P8() -> None:
    rows = [b"---\n" + b"...\n" * 50_000, b"<!--" * 50_000, b" " * 300_000, b"\xef\xbb\xbf" * 100_000, b"-" * 300_000]
    rows += [b"---\n" + (b"---" + b" " * 2_000 + b"x\n") * 100, b"---\n" + b"x: y\n" * 60_000, b"\r\n" * 100_000]
    begun = time.process_time()
    for raw in rows:
        read_frontmatter(raw)
    assert time.process_time() - begun < 2.0
