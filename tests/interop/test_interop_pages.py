"""Pages written by either program are the same pages to the other."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf

pytestmark = pytest.mark.interop

# Texts that YAML would take for something else, or that need quotes: each is a title and a summary below.
AWKWARD_TEXTS = [
    'Release: how: "x" #1',
    "it's 'quoted' \"twice\"",
    "No",
    "null",
    "~",
    "=",
    "<<",
    "12:30",
    "1.10",
    "0o17",
    "1_000",
    "1e3",
    ".inf",
    "2026-03-01",
    "2026-03-01T10:00:00Z",
    "- a dash in front",
    "# a comment?",
    "@home & *star !bang %percent `tick`",
    "{braces}, [brackets]",
    "ends with a colon:",
    "--- three dashes",
    "back\\slash \\n stays",
    "tab\there",
    "Ærøskøbing, 東京, Ελλάδα",
    "emoji \U0001f9f0 beyond the first plane",
    "a very long line " + "that goes on and on " * 20 + "to its end",
]


@pytest.fixture
def field(tmp_path: Path, tool: Any) -> mf.MemoryField:
    opened = mf.open_field(tmp_path / "field", create=True)
    tool.connect(opened.path)
    return opened


def test_pages_that_we_create_are_read_by_the_tool_P3_P11(field: mf.MemoryField, tool: Any) -> None:
    pages = [
        field.write(f"page-{number:02}", title=text, summary=text, body=f"# About\n\nNumber {number}.\n")
        for number, text in enumerate(AWKWARD_TEXTS)
    ]
    rows = tool.catalog()
    assert len(rows) == len(AWKWARD_TEXTS)
    for page, text in zip(pages, AWKWARD_TEXTS, strict=True):
        row = rows[page.filename]
        assert (row["title"], row["summary"]) == (text.strip(), text.strip())
        assert (row["title"], row["summary"]) == (page.title, page.summary)
        assert (row["created"], row["updated"]) == (page.created, page.updated)
    assert tool.read(pages[0].filename) == pages[0].text
    # `validate --fix` rewrites pages whose dates are not quoted: none of ours
    before = {page.filename: page.raw for page in field.pages()}
    tool("validate", "--fix", "--field", "field")
    assert {page.filename: page.raw for page in field.pages()} == before


def test_pages_that_we_edit_are_read_by_the_tool_P9_P12(field: mf.MemoryField, tool: Any) -> None:
    for number, text in enumerate(AWKWARD_TEXTS):
        field.write(f"page-{number:02}", title="Before", summary="Before.", body="Body.\n")
        field.edit(f"page-{number:02}", title=text, summary=text, keys={"source": text})
    rows = tool.catalog()
    for number, text in enumerate(AWKWARD_TEXTS):
        row, page = rows[f"page-{number:02}.md"], field.read(f"page-{number:02}")
        assert (row["title"], row["summary"]) == (text.strip(), text.strip())
        assert page.frontmatter["source"] == text
        assert row["updated"] == page.updated


def test_edits_of_single_parts_are_what_the_tool_prints_P9(field: mf.MemoryField, tool: Any) -> None:
    field.write(
        "saw", title="Saw", summary="Cuts.", body="# Saw\n\nIntro.\n\n## Blades\n\nOld blades.\n\n## Oil\n\nRarely.\n"
    )
    field.edit("saw", append="Appended line.")
    field.edit("saw", section=("Blades", "New blades: 東京.\n"))
    page = field.edit("saw", keys={"tags": ["wood", "loud: very"], "checked": True})
    assert tool.read("saw.md").splitlines() == page.text.splitlines()
    assert "New blades: 東京." in page.text
    assert "Old blades." not in page.text
    field.edit("saw", body="Only this.\n")
    assert tool.read("saw.md").endswith("---\n\nOnly this.\n") or tool.read("saw.md").endswith("---\nOnly this.\n")


def test_the_tool_finds_nothing_wrong_with_what_we_write_P7_P11_P13(field: mf.MemoryField, tool: Any) -> None:
    field.write(
        "index", title="A workshop", summary="Introduction.", body="See [the saw](saw.md) and [oil](oil.md#when).\n"
    )
    field.write("saw", title="Saw", summary="Cuts.", body="Needs [oil](./oil.md).\n")
    field.write(title="Oil", summary="x" * 1000, body="For the [saw][1].\n\n[1]: saw.md\n")
    field.write(title="Con", body="Device name.\n", name="con-air")
    field.write(title="Ünïcödé & more: a title", summary="Slug.")
    field.edit("saw", summary="Cuts wood.", keys={"reviewed": "2026-01-02"})
    field.rename("oil", "machine-oil")
    assert tool.validate() == []
    assert sorted(tool.catalog()) == sorted(page.filename for page in field.pages())


def test_renamed_pages_keep_uuid_and_links_for_the_tool_P12(field: mf.MemoryField, tool: Any) -> None:
    before = field.write("glue", title="Glue", body="Sticks.\n")
    field.write("wood", title="Wood", body="Take [glue](glue.md), see [glue](glue.md#drying).\n")
    field.rename("glue", "hide-glue")
    assert sorted(tool.catalog()) == ["hide-glue.md", "wood.md"]
    assert tool.validate() == []
    # the tool's own overwrite keeps the uuid that stands in the page, and would refuse another one
    tool("write", "--field", "field", "--force", "hide-glue.md", stdin=b"Still sticks.\n")
    after = field.read("hide-glue")
    assert (after.uuid, after.title, after.created) == (before.uuid, "Glue", before.created)


def test_pages_that_the_tool_writes_are_read_by_us_P3_P12(field: mf.MemoryField, tool: Any) -> None:
    for number, text in enumerate(AWKWARD_TEXTS):
        name = f"page-{number:02}.md"
        tool("new", "--field", "field", "--name", name, "--summary", text, "--", text, stdin=b"# Heading\n\nBody.\n")
    rows = tool.catalog()
    pages = {page.filename: page for page in field.pages()}
    assert sorted(pages) == sorted(rows)
    for number, text in enumerate(AWKWARD_TEXTS):
        page = pages[f"page-{number:02}.md"]
        assert (page.frontmatter["title"], page.frontmatter["summary"]) == (text, text)
        assert (page.created, page.updated) == (rows[page.filename]["created"], rows[page.filename]["updated"])
        assert page.warnings == ()
        assert page.body.endswith("# Heading\n\nBody.\n")
    assert [finding for finding in field.validate() if finding.level == "error"] == []


def test_uuids_survive_edits_by_both_in_turn_P9_P12(field: mf.MemoryField, tool: Any, tmp_path: Path) -> None:
    tool("new", "--field", "field", "Vice", "--summary", "Holds.", stdin=b"Holds things.\n")
    first = field.read("vice")
    assert first.uuid is not None

    ours = field.edit("vice", summary="Holds: firmly.", append="Grease the screw.")
    assert ours.uuid == first.uuid
    tool("write", "--field", "field", "--append", "vice.md", stdin=b"Appended by the tool.\n")
    appended = field.read("vice")
    assert (appended.uuid, appended.summary, appended.created) == (first.uuid, "Holds: firmly.", first.created)
    assert "Grease the screw." in appended.body
    assert appended.body.endswith("Appended by the tool.\n")

    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "path.write_bytes(path.read_bytes().replace(b'Holds things.', b'Holds pipes.'))\n",
        encoding="utf-8",
    )
    tool(
        "edit", "--field", "field", "--editor", f'"{Path(sys.executable).as_posix()}" "{script.as_posix()}"', "vice.md"
    )
    edited = field.read("vice")
    assert (edited.uuid, edited.summary) == (first.uuid, "Holds: firmly.")
    assert "Holds pipes." in edited.body

    tool("rename", "--field", "field", "vice.md", "bench-vice.md")
    renamed = field.read("bench-vice")
    assert (renamed.uuid, renamed.created, renamed.body) == (first.uuid, first.created, edited.body)
    assert "vice" not in field
    last = field.edit("bench-vice", title="Bench vice")
    assert (last.uuid, tool.catalog()["bench-vice.md"]["title"]) == (first.uuid, "Bench vice")


def test_another_uuid_is_a_conflict_for_both_P12(field: mf.MemoryField, tool: Any) -> None:
    page = field.write("clamp", title="Clamp", body="Clamps.\n")
    foreign = b"---\ntitle: Clamp\nuuid: 00000000-0000-4000-8000-000000000000\n---\n\nOther.\n"
    refused = tool("write", "--field", "field", "--force", "clamp.md", stdin=foreign, fails=True)
    assert "uuid conflict" in refused.err
    with pytest.raises(mf.errors.NotEditable):
        field.edit("clamp", keys={"uuid": "00000000-0000-4000-8000-000000000000"})
    assert field.read("clamp").raw == page.raw


def test_a_page_changed_by_the_tool_is_not_overwritten_P14(field: mf.MemoryField, tool: Any) -> None:
    seen = field.write("plane", title="Plane", body="Shaves.\n")
    tool("write", "--field", "field", "--append", "plane.md", stdin=b"Sharpen it.\n")
    with pytest.raises(mf.errors.PageChanged):
        field.edit("plane", summary="Mine.", if_sha256=seen.sha256)
    assert field.read("plane").body.endswith("Sharpen it.\n")


def test_what_the_tool_deletes_is_gone_for_us(field: mf.MemoryField, tool: Any) -> None:
    field.write("one", title="One")
    field.write("two", title="Two")
    tool("delete", "--field", "field", "one.md")
    assert field.names() == ["two"]
    field.delete("two")
    assert tool.catalog() == {}


def test_a_field_that_the_tool_creates_is_ours_P5(tool: Any, tmp_path: Path) -> None:
    tool("create", "made", "--location", str(tmp_path / "made"))
    field = mf.open_field(tmp_path / "made")
    page = field.read("index")
    assert (field.names(), page.title, page.is_special) == (["index"], "made", True)
    assert [finding for finding in field.validate() if finding.level == "error"] == []
    with pytest.raises(mf.errors.NotEditable):
        field.delete("index")
    tool("delete", "--field", "made", "index.md", fails=True)
    shutil.rmtree(tmp_path / "made")
