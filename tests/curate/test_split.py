"""Splits of pages: two pages hold what one held, each with an identity of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoryfield import open_field
from memoryfield.curate.split import plan_split
from memoryfield.errors import InvalidName, NotEditable, PageChanged, PageExists, QueryError
from memoryfield.format.directory import PageDirectory

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
RAW = (
    "---\ntitle: Both\nuuid: 11111111-1111-4111-8111-111111111111\ncreated: '2025-01-01T00:00:00Z'\ntags: [a, b]\n---\n"
    "Intro.\n\n## One\n\nFirst fact.\n\n### Deep\n\nDeeper fact.\n\n## Two\n\nSecond fact.\n"
)


def _directory(folder: Path, raw: str = RAW) -> PageDirectory:
    (folder / "both.md").write_bytes(raw.encode())
    return PageDirectory(folder)


def test_a_section_gets_a_page_and_a_uuid_of_its_own_P12(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    plan = plan_split(directory.read("both"), "## One", directory=directory, now=NOW)
    assert plan.account().complete and "+++ b/one.md" in plan.diff() and "nothing" not in repr(plan)
    done = plan.apply()
    assert done.page.uuid == "11111111-1111-4111-8111-111111111111" and done.new.uuid not in (None, done.page.uuid)
    assert done.new.name == "one" and done.new.title == "One" and done.new.created == "2025-01-01T00:00:00Z"
    assert done.new.frontmatter["tags"] == ["a", "b"]
    assert done.new.frontmatter["split_from"] == "both 11111111-1111-4111-8111-111111111111"
    assert done.new.body == "First fact.\n\n### Deep\n\nDeeper fact.\n\nSee also: [Both](both.md).\n"
    assert done.page.body == "Intro.\n\n## Two\n\nSecond fact.\n\nSee also: [One](one.md).\n"


def test_at_a_character_with_a_name(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    page = directory.read("both")
    plan = plan_split(page, page.body.index("## Two"), directory=directory, new_name="second-half", now=NOW)
    done = plan.apply()
    assert done.new.title == "Both, part 2" and done.new.body.startswith("## Two\n\nSecond fact.")
    assert "Second fact." not in done.page.body


def test_line_ends_and_pages_without_frontmatter(tmp_path: Path) -> None:
    directory = _directory(tmp_path, "Intro.\r\n\r\n# A\r\n\r\nText.\r\n")
    done = plan_split(directory.read("both"), "A", directory=directory, now=NOW).apply()
    assert done.page.raw == b"Intro.\r\n\r\nSee also: [A](a.md).\r\n" and b"\r" not in done.new.raw


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    page = directory.read("both")
    for at in ("Nowhere", 0, len(page.body), -3):
        with pytest.raises(QueryError):
            plan_split(page, at, directory=directory)
    strange: Any
    for strange in (None, 1.5, True):
        with pytest.raises(QueryError, match="text of a heading"):
            plan_split(page, strange, directory=directory)
    with pytest.raises(InvalidName):
        plan_split(page, "One", directory=directory, new_name="No Name")
    (tmp_path / "index.md").write_text("# A\n\nx\n\n# B\n\ny\n")
    with pytest.raises(NotEditable, match="index"):
        plan_split(directory.read("index"), "B", directory=directory)
    plan = plan_split(page, "One", directory=directory)
    (tmp_path / "one.md").write_text("There.\n")
    with pytest.raises(PageExists, match=r"one\.md"):
        plan.apply()
    (tmp_path / "one.md").unlink()
    (tmp_path / "both.md").write_text("Other.\n")
    with pytest.raises(PageChanged, match=r"both\.md"):
        plan.apply()
    assert directory.names() == ["both", "index"]


def test_the_field_splits_at_once_and_takes_it_back(tmp_path: Path) -> None:
    _directory(tmp_path)
    field = open_field(tmp_path)
    done = field.split("both", at="Two", new_name="second")
    assert done.new.name == "second" and "Second fact." in done.new.body and "Second fact." not in done.page.body
    assert field.history()[0].verb == "split"
    field.undo()
    assert field["both"].raw == RAW.encode() and "second" not in field
