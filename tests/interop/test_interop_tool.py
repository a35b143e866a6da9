"""The tool's side alone: what these tests take for granted about memoryfield-tool 0.5.0."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.interop


def test_its_index_has_the_table_and_times_of_the_specification_X2_X3(tmp_path: Path, tool: Any, server: Any) -> None:
    page = b"---\ntitle: Lathe\nsummary: It turns.\n---\n\nOil it on Mondays.\n"
    field = tmp_path / "field"
    field.mkdir()
    (field / "lathe.md").write_bytes(page)
    (field / "plain.md").write_bytes(b"No frontmatter.\n")
    tool.connect(field)
    assert tool.index() == "field: indexed 2 files"
    with closing(sqlite3.connect(field / "nomic-embed-text-v1.5.sqlite3")) as database:
        names = [row[1:4] for row in database.execute("PRAGMA table_info(pages)")]
        rows = database.execute("SELECT * FROM pages ORDER BY filename").fetchall()
    assert names == [
        ("filename", "TEXT", 0),
        ("frontmatter", "JSON", 1),
        ("last_modified", "DATETIME", 1),
        ("sha256_hash", "BLOB", 1),
        ("embedding", "BLOB", 1),
    ]
    (name, frontmatter, modified, digest, vector), (_, nothing, *_) = rows
    assert (name, frontmatter, nothing) == ("lathe.md", '{"title": "Lathe", "summary": "It turns."}', "null")
    assert modified == datetime.fromtimestamp(os.stat(field / "lathe.md").st_mtime, tz=UTC).isoformat()
    assert digest == hashlib.sha256(page).digest()
    assert len(vector) == 4 * 768
    assert server.documents == ["search_document: " + page.decode(), "search_document: No frontmatter.\n"]
    assert tool.search("oil on mondays")[0]["filename"] == "lathe.md"
    assert tool.index() == "field: all files up to date"
