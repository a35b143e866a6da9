"""One index file for both programs: what one has embedded, the other does not embed again."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf

pytestmark = pytest.mark.interop

INDEX = "nomic-embed-text-v1.5.sqlite3"
UP_TO_DATE = "field: all files up to date"
QUESTIONS = {
    "oil spindle bearings": "lathe",
    "soak overnight cold water": "glue",
    "dust extractor filter bag": "plain",
    "putty hardens weeks": "windows",
}


def rows(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Return what the table of the specification holds, by file name."""
    with closing(sqlite3.connect(directory / INDEX)) as database:
        return {row[0]: row for row in database.execute("SELECT * FROM pages ORDER BY filename")}


def found(field: mf.MemoryField, question: str) -> list[str]:
    return [hit.name for hit in field.search(question, k=20, retriever="vector", progress=False)]


def agrees(directory: Path) -> bool:
    """Say whether every row is of the page that is on the disk now, and no page lacks a row."""
    pages = {path.name: hashlib.sha256(path.read_bytes()).digest() for path in directory.glob("*.md")}
    return pages == {name: row[3] for name, row in rows(directory).items()}


def later(path: Path, seconds: float = 5.0) -> None:
    """Move a file's time on, as a later write would."""
    status = path.stat()
    moved = status.st_mtime_ns + int(seconds * 1e9) + 123_456_789
    os.utime(path, ns=(moved, moved))


class TestOneIndexesForTheOther:
    def test_our_index_is_up_to_date_for_the_tool_X1_X2_X3_X4(
        self, directory: Path, tool: Any, server: Any, ours: Any
    ) -> None:
        report = ours(directory).sync(progress=False)
        assert len(report.added) == 6
        before = rows(directory)
        server.reset()
        tool.connect(directory)
        assert tool.index() == UP_TO_DATE
        assert server.calls == []
        assert rows(directory) == before
        assert sorted(path.name for path in directory.iterdir() if path.suffix != ".md") == [INDEX]
        for question, name in QUESTIONS.items():
            assert tool.search(question)[0]["filename"] == f"{name}.md"
        assert server.texts == [f"search_query: {question}" for question in QUESTIONS]
        summaries = {hit["filename"]: hit["summary"] for hit in tool.search("wood")}
        assert summaries["glue.md"] == "Smells, but holds."
        assert summaries["plain.md"] == ""

    def test_its_index_is_up_to_date_for_us_X2_X4(self, directory: Path, tool: Any, server: Any, ours: Any) -> None:
        tool.connect(directory)
        assert tool.index() == "field: indexed 6 files"
        before = rows(directory)
        server.reset()
        field = ours(directory)
        (state,) = field.indexes()
        assert (state.state, state.rows, state.dimensions, state.has_meta) == ("ok", 6, 768, False)
        report = field.sync(progress=False)
        assert server.calls == []
        assert report.embedded == 0
        assert report.unchanged == ("glue", "index", "lathe", "long", "plain", "windows")
        assert (report.added, report.updated, report.removed, dict(report.bad_rows)) == ((), (), (), {})
        assert rows(directory) == before
        for question, name in QUESTIONS.items():
            assert found(field, question)[0] == name
        assert server.texts == [f"search_query: {question}" for question in QUESTIONS]
        # and what of ours may stand in the file by now is no matter to the tool
        field.sync(progress=False)
        server.reset()
        assert tool.index() == UP_TO_DATE
        assert server.calls == []
        assert rows(directory) == before

    def test_both_rank_alike_X2_X5(self, directory: Path, tool: Any, server: Any, ours: Any) -> None:
        field = ours(directory)
        field.sync(progress=False)
        tool.connect(directory)
        for question in QUESTIONS:
            theirs = {hit["filename"]: 1 - hit["distance"] for hit in tool.search(question)}
            hits = field.search(question, k=20, retriever="vector", progress=False)
            assert {f"{hit.name}.md": hit.score for hit in hits} == pytest.approx(theirs, abs=1e-5)
            assert f"{hits[0].name}.md" == max(theirs, key=lambda name: theirs[name])

    def test_both_write_the_same_rows_X2_X3_X7(
        self, directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
    ) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(directory, copy)  # keeps the times
        tool.connect(copy)
        tool.index()
        ours(directory).sync(progress=False)
        theirs, our_rows = rows(copy), rows(directory)
        assert list(our_rows) == list(theirs)
        for filename, (_, frontmatter, modified, digest, vector) in theirs.items():
            assert our_rows[filename][2:5] == (modified, digest, vector)
            if filename != "windows.md":  # with CRLF the tool sees no frontmatter
                assert our_rows[filename][1] == frontmatter
        with closing(sqlite3.connect(directory / INDEX)) as mine, closing(sqlite3.connect(copy / INDEX)) as other:
            columns = [database.execute("PRAGMA table_info(pages)").fetchall() for database in (mine, other)]
            assert columns[0] == columns[1]
            assert mine.execute("PRAGMA journal_mode").fetchone() == ("delete",)

    def test_times_are_written_alike_X3(self, directory: Path, tool: Any, server: Any, ours: Any) -> None:
        """Whole seconds, halves of microseconds, times before 1970 and after 2038."""
        moments = [
            0,
            -86_400_500_000_000,
            999_999_999_999_999_999,
            4_102_444_800_000_000_500,
            1_772_359_200_000_000_000,
        ]
        moments.append(1_772_359_200_123_456_500)
        for path, moment in zip(sorted(directory.glob("*.md")), moments, strict=True):
            os.utime(path, ns=(moment, moment))
        ours(directory).sync(progress=False)
        before = rows(directory)
        tool.connect(directory)
        assert tool.index() == UP_TO_DATE
        assert rows(directory) == before, "the tool did not recognise a time, and wrote its own"
        for filename, row in before.items():
            modified = (directory / filename).stat().st_mtime
            assert row[2] == datetime.fromtimestamp(modified, tz=UTC).isoformat()

    def test_another_recipe_is_no_matter_to_the_tool_X1_X5(
        self, directory: Path, tool: Any, server: Any, ours: Any
    ) -> None:
        field = ours(directory)
        field.sync(progress=False, recipe="content")
        content = (directory / "nomic-embed-text-v1.5.content.sqlite3").read_bytes()
        tool.connect(directory)
        server.reset()
        assert tool.index() == "field: indexed 6 files"
        assert len(server.documents) == 6
        assert (directory / "nomic-embed-text-v1.5.content.sqlite3").read_bytes() == content
        assert not [line for line in tool.validate() if "sqlite3" in line]
        assert field.sync(progress=False).embedded == 0
        assert field.sync(progress=False, recipe="content").embedded == 0
        assert len(server.documents) == 6

    def test_a_deleted_index_is_made_anew_by_either_X1(
        self, directory: Path, tool: Any, server: Any, ours: Any
    ) -> None:
        field = ours(directory)
        field.sync(progress=False)
        tool.connect(directory)
        (directory / INDEX).unlink()
        assert tool.index() == "field: indexed 6 files"
        server.reset()
        assert len(field.sync(progress=False).unchanged) == 6
        assert server.calls == []
        (directory / INDEX).unlink()
        assert len(field.sync(progress=False).added) == 6
        assert len(server.texts) == 6
        assert tool.index() == UP_TO_DATE


@pytest.mark.parametrize("first", ["ours", "theirs"])
class TestOnlyWhatChangedIsEmbedded:
    """A page is touched, edited, added or deleted by one program; the other does only what is needed."""

    @pytest.fixture
    def field(self, first: str, directory: Path, tool: Any, server: Any, ours: Any) -> mf.MemoryField:
        """The field, indexed by one of the two and known to both."""
        opened = ours(directory)
        tool.connect(directory)
        if first == "ours":
            opened.sync(progress=False)
            tool.index()
        else:
            tool.index()
            opened.sync(progress=False)
        server.reset()
        return opened

    def test_a_touch_X3_X10(self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str) -> None:
        before = rows(directory)
        later(directory / "glue.md")
        if first == "ours":
            assert field.sync(progress=False).unchanged == tuple(field.names())
        else:
            assert tool.index() == UP_TO_DATE
        after = rows(directory)
        moved = datetime.fromtimestamp((directory / "glue.md").stat().st_mtime, tz=UTC).isoformat()
        assert after["glue.md"] == (*before["glue.md"][:2], moved, *before["glue.md"][3:])
        assert {name: row for name, row in after.items() if name != "glue.md"} == {
            name: row for name, row in before.items() if name != "glue.md"
        }
        assert tool.index() == UP_TO_DATE
        assert field.sync(progress=False).embedded == 0
        assert rows(directory) == after
        assert server.calls == []

    def test_an_edit_by_us(self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str) -> None:
        """X4, X10: the page is embedded by whoever comes first, and only it."""
        page = field.edit("lathe", append="Chuck keys hang beside the clock.")
        if first == "ours":
            assert field.sync(progress=False).updated == ("lathe",)
            assert tool.index() == UP_TO_DATE
        else:
            assert tool.index() == "field: indexed 1 files"
            assert field.sync(progress=False).embedded == 0
        assert server.documents == ["search_document: " + page.text]
        assert agrees(directory)
        assert tool.search("chuck keys clock")[0]["filename"] == "lathe.md"
        assert found(field, "chuck keys clock")[0] == "lathe"

    def test_an_edit_by_the_tool(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        """X4, X10: with the index that the tool starts on its own after a write, and with ours before it could."""
        background = "skip" if first == "ours" else "wait"
        tool("write", "--field", "field", "--append", "glue.md", stdin=b"Chuck keys, clock.\n", background=background)
        assert found(field, "chuck keys clock")[0] == "glue"
        assert server.documents == ["search_document: " + field.read("glue").text]
        assert tool.index() == UP_TO_DATE
        assert field.sync(progress=False).embedded == 0
        assert len(server.documents) == 1
        assert agrees(directory)

    def test_an_addition_by_us(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        """X4, X10: the page is embedded by whoever comes first, and both find it."""
        field.write("drill", title="Drill press", summary="Bores.", body="Clamp the work.\n", on_similar="ignore")
        if first == "ours":
            assert field.sync(progress=False).added == ("drill",)
            assert tool.index() == UP_TO_DATE
        else:
            assert tool.index() == "field: indexed 1 files"
            assert field.sync(progress=False).embedded == 0
        assert len(server.documents) == 1
        assert agrees(directory)
        hit = tool.search("clamp work always")[0]
        assert (hit["filename"], hit["summary"]) == ("drill.md", "Bores.")

    def test_an_addition_by_the_tool(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        """X4, X10: a search of ours finds it, also before the tool has indexed it."""
        tool("new", "--field", "field", "Drill press", stdin=b"Clamp the work, always.\n")
        if first == "theirs":
            assert tool.index() == "field: indexed 1 files"
        assert found(field, "clamp work always")[0] == "drill-press"
        assert len(server.documents) == 1
        assert tool.index() == UP_TO_DATE
        assert len(server.documents) == 1
        assert agrees(directory)

    def test_a_deletion_by_us_X10(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        field.delete("plain")
        if first == "ours":
            assert field.sync(progress=False).removed == ("plain",)
            assert tool.index() == UP_TO_DATE
        else:
            assert tool.index() == "field: removed 1 stale entries"
            assert field.sync(progress=False).removed == ()
        assert server.calls == []
        assert agrees(directory)
        assert "plain" not in found(field, "dust extractor")

    def test_a_deletion_by_the_tool_X10(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        assert "plain" in found(field, "dust extractor")  # so that our vectors are in memory
        tool("delete", "--field", "field", "plain.md")
        assert "plain" not in found(field, "dust extractor")
        assert field.sync(progress=False).embedded == 0
        assert tool.index() == UP_TO_DATE
        assert server.documents == []
        assert agrees(directory)

    def test_a_rename_by_us(self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str) -> None:
        """X10: the vector moves with the page where we sync first; the tool embeds the page under its new name."""
        field.rename("plain", "dust")
        if first == "ours":
            report = field.sync(progress=False)
            assert (report.added, report.removed, report.reused) == (("dust",), ("plain",), ("dust",))
            assert tool.index() == UP_TO_DATE
            assert server.calls == []
        else:
            assert tool.index() == "field: indexed 1 files, removed 1 stale entries"
            assert field.sync(progress=False).embedded == 0
            assert len(server.documents) == 1
        assert agrees(directory)

    def test_a_rename_by_the_tool(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str
    ) -> None:
        """X10: it also sets `updated`, so that the page is embedded once more."""
        tool("rename", "--field", "field", "lathe.md", "bowl-lathe.md")
        if first == "theirs":
            assert tool.index() == "field: indexed 1 files"
        assert found(field, "oil spindle bearings")[0] == "bowl-lathe"
        assert tool.index() == UP_TO_DATE
        assert len(server.documents) == 1
        assert agrees(directory)

    def test_a_page_put_back_from_a_backup_X10(
        self, field: mf.MemoryField, directory: Path, tool: Any, server: Any, first: str, tmp_path: Path
    ) -> None:
        """The row is of another content than our notes about the file: the row counts."""
        shutil.copy2(directory / "glue.md", tmp_path / "backup.md")
        tool("write", "--field", "field", "--append", "glue.md", stdin=b"Chuck keys, clock.\n")
        assert tool.index() == "field: indexed 1 files"
        shutil.copy2(tmp_path / "backup.md", directory / "glue.md")
        server.reset()
        if first == "ours":
            assert field.sync(progress=False).updated == ("glue",)
            assert tool.index() == UP_TO_DATE
        else:
            assert tool.index() == "field: indexed 1 files"
            assert field.sync(progress=False).embedded == 0
        assert len(server.documents) == 1
        assert agrees(directory)
        assert found(field, "soak overnight cold water")[0] == "glue"
