"""Values as YAML: every reader gets back the text that was given."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryfield.errors import FrontmatterError
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.yamlread import DEEPEST
from memoryfield.format.yamlwrite import as_value, dump_frontmatter, dump_key, dump_literal, dump_value

TEXTS = st.text(max_size=30) | st.text(
    alphabet="ab09 -:#'\"\\\t\n{}[],&*!|>%@`?~=.é🌱\u2028\ufeff\x07\x85", max_size=12
)
# Words of YAML 1.2's core schema, which is not PyYAML's.
CORE = re.compile(
    r"|~|null|Null|NULL|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


@settings(deadline=None, max_examples=600)
@given(TEXTS, st.sampled_from(["", "'", '"']))
@example("No", "")
@example("1e3", "")
@example("=", "")
@example("<<", "")
@example("\U0010ffff\ufffe\u007f\x9f", "")
def test_texts_read_back_equal_P7_P11(text: str, style: str) -> None:
    """P7, P11: alone, in a list and as a key; with PyYAML's loaders and with ours."""
    value = dump_value(text, style=style)
    inner = f"k: {value}\nl: [{dump_value(text, flow=True)}, x]\nm: {{a: {dump_value(text, flow=True)}}}\n"
    assert len(re.split("[\n\r\x85\u2028\u2029]", inner)) == 4
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(inner, Loader=loader) == {"k": text, "l": [text, "x"], "m": {"a": text}}
    fields = read_frontmatter(f"---\n{inner}---\n".encode()).fields
    assert fields == {"k": text, "l": [text, "x"], "m": {"a": text}}


@given(TEXTS)
def test_no_reader_takes_a_plain_text_for_something_else_P7(text: str) -> None:
    for flow in (False, True):
        if dump_value(text, flow=flow) == text:
            assert CORE.fullmatch(text) is None
            assert text.lower() not in ("y", "n", "yes", "no", "on", "off")
            assert not re.fullmatch(r"[\d:._,+-]*", text)


@given(TEXTS)
def test_keys_read_back_equal_P3(text: str) -> None:
    try:
        key = dump_key(text)
    except FrontmatterError:
        return
    assert yaml.safe_load(f"{key}: x\n") == {text: "x"}
    assert yaml.safe_load(f"{{{dump_key(text, flow=True)}: x}}\n") == {text: "x"}


def test_plain_where_it_can_be_P11() -> None:
    for text in (
        "Carbon fibre woks",
        "it's 50% done",
        "5f0e4c52-1d7e-4a55-9a2f-0c3a6f1b2d10",
        "3D printing",
        "http://x/y#z",
        "é漢",
    ):
        assert dump_value(text) == text
    for text in (
        "12",
        "2026-03-01",
        "yes",
        "1e5",
        "0xff",
        "- a",
        "a: b",
        "a #b",
        "",
        " a",
        "a ",
        "a:",
        "12:30",
        "[x]",
        "🌱",
    ):
        assert dump_value(text) == "'" + text + "'"


FINITE = st.floats(allow_nan=False)
JSON = st.none() | st.booleans() | st.integers() | FINITE | st.text(alphabet="ab 1:#é\n", max_size=6)


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["a", "b c", "yes", "1", "x: y"]), inner, max_size=3
    )


@settings(deadline=None)
@given(st.recursive(JSON, _branches))
def test_values_keep_their_type_P9(value: Any) -> None:
    """P9: numbers, booleans and nothing are written so that PyYAML has their type back."""
    text = dump_value(value)
    assert yaml.safe_load(f"k: {text}\n") == {"k": value}
    assert "\n" not in text
    fields = read_frontmatter(f"---\nk: {text}\n---\n".encode()).fields
    assert fields == {"k": as_value(value)}
    json.dumps(as_value(value), allow_nan=False)


def test_numbers_that_are_none() -> None:
    assert [dump_value(number) for number in (float("nan"), float("inf"), float("-inf"))] == [".nan", ".inf", "-.inf"]


@settings(deadline=None)
@given(st.text(alphabet="ab #:-\n\t'é", max_size=30))
def test_literal_blocks_read_back_equal_P9(text: str) -> None:
    written = dump_literal(text, "  ", "\n")
    if written is not None:
        assert yaml.safe_load(f"k: {written}\nz: 1\n") == {"k": text, "z": 1}


def test_depth_is_limited() -> None:
    value: Any = "x"
    for _ in range(DEEPEST - 1):
        value = [value]
    assert read_frontmatter(f"---\nk: {dump_value(value)}\n---\n".encode()).error is None
    with pytest.raises(FrontmatterError, match="deeper"):
        dump_value([value])
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(FrontmatterError, match="deeper"):
        dump_value(endless)


def test_a_whole_block_P11() -> None:
    fields = {"zeta": 1, "updated": "u", "title": "t", "gone": None, "alpha": ["x"]}
    assert dump_frontmatter(fields) == "---\ntitle: t\nupdated: u\nzeta: 1\nalpha: [x]\n---\n"
    assert dump_frontmatter({"a": "b"}, "\r\n") == "---\r\na: b\r\n---\r\n"
    assert dump_frontmatter({}) == "---\n---\n"
