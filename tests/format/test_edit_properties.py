"""Edits as properties: whatever the page, only what was asked for changes, or nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from memoryfield.errors import FrontmatterError, NotEditable, PageError
from memoryfield.format.edit import append, new_page, replace_section, set_body, set_keys
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.links import rewrite_links
from memoryfield.format.markdown import headings
from memoryfield.format.page import Page
from memoryfield.format.yamlwrite import as_value

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 1, 10, tzinfo=UTC)
UUID = "5f0e4c52-1d7e-4a55-9a2f-0c3a6f1b2d10"
THOROUGH = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])

TEXTS = st.text(alphabet="ab 01-:#'\"\n\\,[{é🌱*&|", max_size=10)


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["a", "b c", "ключ", "yes"]), inner, max_size=3
    )


VALUES = st.recursive(TEXTS, _branches, max_leaves=8)
KEYS = ["title", "uuid", "summary", "created", "tags", "meta", "x y"]


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    """Pages as PyYAML writes them in its many styles, with comments and blank lines between and behind."""
    data = draw(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=5))
    text = yaml.safe_dump(
        data,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=draw(st.sampled_from([False, None])),
        indent=draw(st.sampled_from([2, 4])),
        width=draw(st.sampled_from([20, 1000])),
        default_style=draw(st.sampled_from([None, None, "'", '"', "|", ">"])),
    )
    assume(not text.startswith("{"))  # all in braces on one line: see test_edit.py
    rows = text.split("\n")[:-1]
    for place in draw(st.lists(st.integers(0, len(rows) - 1), max_size=2)):
        if re.match(r"[\w'\"][^:]*: *[^|>]", rows[place]):
            candidate = [
                *rows[:place],
                draw(st.sampled_from(["# own line", ""])),
                rows[place] + "  # behind",
                *rows[place + 1 :],
            ]
            try:
                if yaml.safe_load("\n".join(candidate)) == data:
                    rows = candidate
            except yaml.YAMLError:
                pass
    body = draw(st.sampled_from(["", "body\n", "\n\nbody", "---\nno: block\n---\n"]))
    text = "---\n" + "\n".join(rows) + "\n---" + ("\n" + body if body else draw(st.sampled_from(["", "\n"])))
    raw = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + raw


def outside(raw: bytes, key: str) -> bytes:
    """Return a page without the lines of one key and without the blank lines of the block."""
    begin, end = read_frontmatter(raw).inner
    kept = []
    mine = False
    for line in raw[begin:end].decode().splitlines(keepends=True):
        if line[0] not in " -\r\n":  # a key at the left edge, in whatever quotes, or a comment
            mine = line.split(":")[0].strip(" \"'") == key
        if not mine and line.strip():
            kept.append(line)
    return raw[:begin] + "".join(kept).encode() + raw[end:]


@THOROUGH
@given(pages(), st.sampled_from(KEYS), VALUES)
def test_only_the_lines_of_the_key_change_P9(raw: bytes, key: str, value: Any) -> None:
    """P9: another value leaves every byte outside the key's lines, and the old one set again gives the old fields."""
    old = read_frontmatter(raw)
    assume(key in old.fields and old.error is None)
    try:
        result = set_keys(raw, {key: value})
    except NotEditable as refused:
        assert "comment" in str(refused)
        return
    new = read_frontmatter(result)
    assert dict(new.fields) == {**old.fields, key: value}
    assert list(new.fields) == list(old.fields)
    assert outside(raw, key) == outside(result, key)
    assert dict(read_frontmatter(set_keys(result, {key: old.fields[key]})).fields) == dict(old.fields)
    assert b"\r\n" not in raw or b"\n" not in result.replace(b"\r\n", b"")


@THOROUGH
@given(pages(), st.sampled_from(["updated", "zeta", "title"]), VALUES)
def test_a_new_key_adds_one_line_P9(raw: bytes, key: str, value: Any) -> None:
    old = read_frontmatter(raw)
    assume(key not in old.fields)
    result = set_keys(raw, {key: value})
    before, after = raw.splitlines(keepends=True), result.splitlines(keepends=True)
    added = next(i for i in range(len(after)) if i == len(before) or before[i] != after[i])
    assert after[:added] + after[added + 1 :] == before
    assert dict(read_frontmatter(result).fields) == {**old.fields, key: value}
    assert set_keys(result, {key: None}) == raw


@THOROUGH
@given(pages(), st.sampled_from(KEYS))
def test_a_removed_key_takes_its_lines_P9(raw: bytes, key: str) -> None:
    old = read_frontmatter(raw)
    assume(key in old.fields)
    result = set_keys(raw, {key: None})
    assert dict(read_frontmatter(result).fields) == {k: v for k, v in old.fields.items() if k != key}
    assert outside(raw, key) == outside(result, key)
    assert result[read_frontmatter(result).body_start :] == raw[old.body_start :]


@THOROUGH
@given(
    st.binary(max_size=60) | st.text(alphabet="-\n: atile#[]'\"|&*", max_size=40).map(str.encode),
    st.sampled_from(KEYS),
    TEXTS,
)
def test_any_bytes_are_edited_well_or_not_at_all_P8_P9_P10(inner: bytes, key: str, value: str) -> None:
    for raw in (inner, b"---\n" + inner + b"\n---\nbody\n", b"---\n" + inner):
        old = read_frontmatter(raw)
        try:
            result = set_keys(raw, {key: value})
        except (FrontmatterError, NotEditable):
            continue
        new = read_frontmatter(result)
        assert dict(new.fields) == {**old.fields, key: value}
        assert result[new.body_start :] == raw[old.body_start :]
        assert set_keys(result, {key: value}) == result
        if old.present:  # no second block in front of the first
            assert result[: old.inner[0]] == raw[: old.inner[0]]


def test_equal_values_leave_any_page_alone_P9_P12() -> None:
    """P9, P12: setting what is there is no edit, on every golden page and on mutations of it."""
    chance = random.Random(11)
    seeds = [path.read_bytes() for path in sorted(GOLDEN.glob("*.md"))]
    spice = [b"# c\n", b"\n", b" ", b": ", b"- x\n", b"'", b'"', b"|\n", b"&a ", b"{}", b"[]", b"\r", b"k: v\n", b"\t"]
    edited = 0
    for _ in range(700):
        raw = chance.choice(seeds)
        for _ in range(chance.randrange(0, 4)):
            place = chance.randrange(min(len(raw), 150) + 1)
            raw = raw[:place] + chance.choice(spice) + raw[place + chance.choice([0, 0, 1, 4]) :]
        page = Page("x", raw)
        if not page.is_utf8:
            continue
        for key, value in page.frontmatter.items():
            try:
                assert set_keys(raw, {key: value}) == raw
                edited += 1
            except FrontmatterError as error:
                assert "cannot be a key" in error.problem  # an empty key, or one with a control character
        assert set_body(raw, page.body) == raw
        for change in (
            lambda raw=raw: append(raw, "More."),
            lambda raw=raw: set_body(raw, "Other.\n"),
            lambda raw=raw: rewrite_links(raw, "old", "new"),
        ):
            _keeps_front(raw, change)
    assert edited > 200


def _keeps_front(raw: bytes, change: Callable[[], bytes]) -> None:
    try:
        result = change()
    except PageError:
        return
    before, after = read_frontmatter(raw), read_frontmatter(result)
    assert (after.fields, after.present, after.inner) == (before.fields, before.present, before.inner)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60), st.text(max_size=40), st.text(max_size=60))
@example('Release: how: "x" #1 - it\'s 50% done {maybe} [ok] & *star* | é 漢', "No", "")
@example("\x00\x1b[31m\ufeff\ufffe", "\u2028", "\ufeff---\n")
def test_new_pages_read_back_P11(title: str, summary: str, body: str) -> None:
    """P11: PyYAML and we read the same title; line ends in it are gone, everything else is there."""
    try:
        raw = new_page(title, summary, body, now=NOW, uuid=UUID)
    except NotEditable:
        assert read_frontmatter(body.encode()).present
        return
    page = Page("x", raw)
    loaded = yaml.safe_load(raw.decode().split("\n---\n")[0].removeprefix("---\n"))
    assert loaded["title"] == page.frontmatter["title"]
    assert loaded["summary"] == page.frontmatter["summary"]
    assert loaded["created"] == "2026-11-01T10:00:00Z"
    squeezed = re.sub(r"\s+", "", title)
    assert re.sub(r"\s+", "", loaded["title"]) == squeezed
    if len(title.splitlines()) == 1 and title == title.strip():
        assert loaded["title"] == title
    assert page.body.rstrip("\n") == re.sub("\r\n|\r", "\n", body).rstrip("\n")
    assert b"\r" not in raw
    assert len(raw[: read_frontmatter(raw).body_start].splitlines()) == 7


BODIES = st.lists(
    st.sampled_from(["# A", "## B", "text", "", "```", "~~~", "B\n---", "- x", "<!-- c -->", "  "]), max_size=10
).map("\n".join)


@settings(deadline=None, max_examples=200)
@given(BODIES, BODIES, st.sampled_from(["# A", "## B", "A"]), st.sampled_from(["\n", "\r\n"]))
def test_sections_P9(body: str, new: str, heading: str, newline: str) -> None:
    """P9: what is before a section and behind it stays byte for byte, and so do the headings there."""
    raw = body.replace("\n", newline).encode()
    try:
        result = replace_section(raw, heading, new)
    except NotEditable:
        return
    before = list(headings(raw.decode()))
    section = next(h for h in before if h.text == heading.lstrip("# ") and h.level in (heading.count("#"), 1, 2))
    end = next((h.start for h in before if h.start > section.start and h.level <= section.level), len(raw))
    assert result.startswith(raw[: section.end])
    assert result.endswith(raw[end:])
    if "```" not in new and "~~~" not in new and not list(headings(new)):  # such a text would end the section early
        assert replace_section(result, heading, new) == result


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="ab\r\n- ", max_size=30), st.text(alphabet="ab\r\n- ", max_size=20))
def test_append_only_appends_P9(body: str, text: str) -> None:
    """P9: the old bytes are the beginning of the new ones, and an empty line stands between old and new text."""
    raw = body.encode()
    try:
        result = append(raw, text)
    except NotEditable:
        return
    assert result.startswith(raw)
    if body.strip() and text.strip("\r\n"):
        between = result[len(body.rstrip("\r\n").encode()) :].decode()
        assert re.match(r"(\r\n|\n|\r){2}", between)
        assert result.endswith((b"\n", b"\r"))


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="ab\r\n", max_size=20), st.text(alphabet="ab\r\n", max_size=20))
def test_set_body_says_the_new_text_P9(body: str, new: str) -> None:
    """P9: read with any line ends the result is the new body; equal lines at both ends keep their own."""
    raw = b"---\na: b\n---\n" + body.encode()
    result = Page("x", set_body(raw, new)).body
    assert re.sub("\r\n|\r", "\n", result) == re.sub("\r\n|\r", "\n", new)
    assert as_value(result) == result
