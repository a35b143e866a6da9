"""A memory file is cut into pages: no line is lost, the order stays, and the file can be written again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoryfield as mf
from memoryfield.exchange.memory_file import split_memory_file
from memoryfield.exchange.outward import memory_file


def _long_file() -> str:
    lines = ["# Memory", "", "What I should know."]
    for section in range(29):
        lines += ["", f"## Section {section % 20}", ""]
        lines += [f"- fact {section}.{fact}" for fact in range(4)]
        lines += ["```", "# not a heading", "```"] if section == 7 else []
    lines += ["Last line"] * (238 - len(lines))
    return "\n".join(lines) + "\n"


def test_none_of_238_lines_is_lost_and_the_order_is_kept(tmp_path: Path) -> None:
    text = _long_file()
    assert len(text.splitlines()) == 238
    (tmp_path / "MEMORY.md").write_text(text)
    plan = mf.import_field(tmp_path / "MEMORY.md", tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    assert len(field) == len(plan) == 30
    assert field["section-3-2"].title == "Section 3"  # two sections of one name are two pages
    target = field.export_as("memory-file", tmp_path / "again.md")
    assert target.read_text() == text
    for word in ("fact 0.0", "fact 28.3", "not a heading", "What I should know."):
        assert sum(word in page.body for page in field.pages()) == 1


@given(st.lists(st.sampled_from(["# A", "## B", "### C", "text", "", "```", "- item", "Title\n====="]), max_size=40))
def test_the_pieces_joined_are_the_file(pieces: list[str]) -> None:
    text = "\n".join(pieces) + "\n"
    parts = split_memory_file(text, "MEMORY.md")
    joined = "".join(part.body for part in parts)
    assert joined.strip() == text.strip() and joined in text
    assert [part.keys["position"] for part in parts] == list(range(1, len(parts) + 1))
    assert len({part.key for part in parts}) == len(parts)


def test_a_file_with_keys_of_its_own_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("---\nowner: me\n---\nintro\n\n# One\na\n\n# Two\nb\n")
    mf.import_field(tmp_path / "MEMORY.md", tmp_path / "field")
    field = mf.open_field(tmp_path / "field")
    assert field["memory"].frontmatter["owner"] == "me" and field["memory"].body.strip() == "intro"
    assert memory_file(field.pages()).split() == ["intro", "#", "One", "a", "#", "Two", "b"]


@pytest.mark.parametrize("text", ["", "\n\n", "no heading at all\n", "# only a heading"])
def test_small_files_have_a_defined_outcome(tmp_path: Path, text: str) -> None:
    (tmp_path / "MEMORY.md").write_text(text)
    plan = mf.import_field(tmp_path / "MEMORY.md", tmp_path / "field")
    assert len(plan) == (1 if text.strip() else 0)
