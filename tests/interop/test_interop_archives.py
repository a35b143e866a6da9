"""Archives: ours unpacked for the tool, its own imported and opened by us; vectors in them count only by hash."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.format.archive import read_sidecar, verify_archive
from memoryfield.format.importing import import_archive

pytestmark = pytest.mark.interop

INDEX = "nomic-embed-text-v1.5.sqlite3"


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.md")}


def found(field: mf.MemoryField, question: str) -> list[str]:
    return [hit.name for hit in field.search(question, k=20, retriever="vector", progress=False)]


def test_our_archive_unpacked_serves_the_tool_A1(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    """The tool has no import: an archive is unpacked by any program and connected."""
    field = ours(directory)
    field.sync(progress=False)
    tool.connect(directory, "before")
    target = tmp_path / "shop.memoryfield.zip"
    report = field.export(target, indexes=True)
    assert report.members == tuple(sorted([*contents(directory), INDEX]))
    place = tmp_path / "unpacked"
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        archive.extractall(place)
    assert contents(place) == contents(directory)
    tool.connect(place, "after")
    server.reset()
    assert tool.index("after") == "after: all files up to date"
    assert server.calls == []
    assert tool.search("oil spindle bearings", "after")[0]["filename"] == "lathe.md"
    before, after = tool.catalog("before"), tool.catalog("after")
    assert after == {name: {**row, "field": "after"} for name, row in before.items()}
    assert tool.validate("after") == [line.replace("before/", "after/") for line in tool.validate("before")]


def test_the_side_file_is_what_sha256sum_writes_A1(directory: Path, ours: Any, tmp_path: Path) -> None:
    target = tmp_path / "the shop.memoryfield.zip"
    report = ours(directory).export(target)
    side = tmp_path / "the shop.memoryfield.zip.sha256"
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    assert report.sha256 == digest
    assert side.read_bytes() == f"{digest}  the shop.memoryfield.zip\n".encode()
    program = shutil.which("sha256sum")
    if program is not None:
        done = subprocess.run([program, "--check", side.name], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "the shop.memoryfield.zip: OK\n")
        made = subprocess.run([program, target.name], cwd=tmp_path, capture_output=True)
        assert made.stdout == side.read_bytes()


def test_its_archive_is_imported_whole_A2_A3(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    tool.connect(directory)
    tool.index()
    target = tmp_path / "field.memoryfield.zip"
    tool("export", "--field", "field", "--output", str(target))
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    with pytest.raises(mf.errors.ChecksumMismatch):
        import_archive(target, tmp_path / "refused", sha256="0" * 64)
    assert not (tmp_path / "refused").exists()
    # a side file made by sha256sum is read
    (tmp_path / "field.memoryfield.zip.sha256").write_text(f"{digest} *field.memoryfield.zip\n", encoding="utf-8")
    assert read_sidecar(target) == digest
    assert verify_archive(target).sha256 == digest
    report = import_archive(target, tmp_path / "imported")
    assert (report.sha256, report.files, report.skipped) == (digest, (INDEX,), ())
    assert contents(tmp_path / "imported") == contents(directory)
    server.reset()
    field = ours(tmp_path / "imported")
    result = field.sync(progress=False)
    assert (len(result.unchanged), result.embedded) == (6, 0)
    assert server.calls == []
    assert found(field, "soak overnight cold water")[0] == "glue"


def test_what_the_tool_packs_beyond_pages_is_left_out_A2_P2(
    directory: Path, tool: Any, ours: Any, tmp_path: Path
) -> None:
    """The tool packs every file below the field: hidden ones, sub-directories, debris."""
    (directory / ".git").mkdir()
    (directory / ".git" / "config").write_bytes(b"[core]\n")
    (directory / "drafts").mkdir()
    (directory / "drafts" / "draft.md").write_bytes(b"Not a page of this field.\n")
    for name in (".secret.md", "glue.md~", ".DS_Store", "glue.sync-conflict-20260301-101010-ABCDEFG.md", "photo.jpg"):
        (directory / name).write_bytes(b"other")
    tool.connect(directory)
    target = tmp_path / "field.memoryfield.zip"
    tool("export", "--field", "field", "--output", str(target))
    with zipfile.ZipFile(target) as archive:
        assert {".git/config", "drafts/draft.md", ".secret.md", ".DS_Store", "photo.jpg"} <= set(archive.namelist())
    names = sorted(path.name.removesuffix(".md") for path in directory.glob("[a-z]*.md") if "sync" not in path.name)
    with mf.open_field(target) as packed:
        assert packed.names() == names
    import_archive(target, tmp_path / "imported")
    imported = {path.name for path in (tmp_path / "imported").rglob("*")}
    assert {f"{name}.md" for name in names} | {"photo.jpg"} == imported


def stale_archive(directory: Path, tool: Any, target: Path) -> None:
    """Export a field by the tool in which one page changed, one came and one went after the tool's index was made."""
    tool.connect(directory)
    tool.index()
    (directory / "glue.md").write_bytes(b"# Glue\n\nNow about rivets and copper.\n")
    (directory / "new.md").write_bytes(b"# New\n\nThe kiln cools for two days.\n")
    (directory / "plain.md").unlink()
    tool("export", "--field", "field", "--output", str(target))


def test_vectors_in_an_imported_archive_count_by_hash_A3(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    stale_archive(directory, tool, tmp_path / "field.memoryfield.zip")
    import_archive(tmp_path / "field.memoryfield.zip", tmp_path / "imported")
    server.reset()
    field = ours(tmp_path / "imported")
    report = field.sync(progress=False)
    assert (report.added, report.updated, report.removed) == (("new",), ("glue",), ("plain",))
    assert len(report.unchanged) == 4
    assert sorted(server.documents) == [
        "search_document: # Glue\n\nNow about rivets and copper.\n",
        "search_document: # New\n\nThe kiln cools for two days.\n",
    ]
    assert found(field, "rivets copper")[0] == "glue"
    tool.connect(tmp_path / "imported", "imported")
    assert tool.index("imported") == "imported: all files up to date"


def test_vectors_in_an_archive_searched_in_place_count_by_hash_A3_A4(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    target = tmp_path / "field.memoryfield.zip"
    stale_archive(directory, tool, target)
    content = target.read_bytes()
    server.reset()
    field = ours(target)
    assert field.read_only
    assert found(field, "rivets copper")[0] == "glue"
    assert sorted(server.documents) == [
        "search_document: # Glue\n\nNow about rivets and copper.\n",
        "search_document: # New\n\nThe kiln cools for two days.\n",
    ]
    names = found(field, "dust extractor hums")
    assert "plain" not in names
    assert sorted(names) == field.names()
    assert found(field, "oil spindle bearings")[0] == "lathe"
    assert len(server.documents) == 2
    assert target.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("field.")) == [target.name]


def test_a_foreign_row_with_the_right_name_and_wrong_vector_is_still_its_own_A3(
    directory: Path, tool: Any, server: Any, ours: Any, tmp_path: Path
) -> None:
    """Rows whose vector cannot be used are made anew though the hash agrees (X7)."""
    tool.connect(directory)
    tool.index()
    with closing(sqlite3.connect(directory / INDEX)) as database:
        database.execute("UPDATE pages SET embedding = zeroblob(3072) WHERE filename = 'lathe.md'")
        database.execute("UPDATE pages SET embedding = x'0000' WHERE filename = 'glue.md'")
        database.commit()
    target = tmp_path / "field.memoryfield.zip"
    tool("export", "--field", "field", "--output", str(target))
    server.reset()
    field = ours(target)
    assert found(field, "oil spindle bearings")[0] == "lathe"
    assert len(server.documents) == 2
    import_archive(target, tmp_path / "imported")
    report = ours(tmp_path / "imported").sync(progress=False)
    assert sorted(report.bad_rows) == ["glue", "lathe"]
    assert report.updated == ("glue", "lathe")
