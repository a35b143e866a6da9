"""A sync embeds what changed and nothing else, and what it stores is right (FORMAT X2, X3, X4, X7, X9, X10)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import EmbeddingFailed
from memoryfield.format.pages import PageDirectory, ZipPages
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.vectors import VectorIndex

Model = Callable[..., Any]

PAGES_SQL = (
    "filename TEXT PRIMARY KEY, frontmatter JSON NOT NULL, last_modified DATETIME NOT NULL, "
    "sha256_hash BLOB NOT NULL, embedding BLOB NOT NULL"
)


def query(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql, values).fetchall()


# What is stored


def test_pages_is_exactly_the_table_of_the_specification_X2(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    index.sync()
    ((sql,),) = query(index.path, "SELECT sql FROM sqlite_master WHERE name = 'pages'")
    inside = " ".join(sql[sql.index("(") + 1 : sql.rindex(")")].split())
    assert inside == PAGES_SQL
    types = set(query(index.path, "SELECT typeof(frontmatter), typeof(last_modified), typeof(sha256_hash) FROM pages"))
    assert types == {("text", "text", "blob")}


def test_rows_hold_what_the_specification_says_X2_X3_X5(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    (field.path / "plain.md").write_text("no frontmatter\n")
    (field.path / "broken.md").write_text("---\ntitle: [x\nsummary: open\n---\nbody\n")
    (field.path / "odd.md").write_text(
        "---\ntitle: 2024-12-19\nsummary: No\nversion: 1.10\nratio: .nan\n2026-01-01: key\ntags: [a, b]\n漢: 字\n---\n",
        encoding="utf-8",
    )
    (field.path / "half.md").write_text('---\ntitle: "half a character: \\ud800"\n---\nbody\n')
    index = VectorIndex(field, model)
    index.sync()
    found = {row[0]: row[1:] for row in query(index.path, "SELECT * FROM pages")}
    assert set(found) == {f"{name}.md" for name in field.names()}
    for filename, (frontmatter, modified, sha256, embedding) in found.items():
        raw = (field.path / filename).read_bytes()
        assert sha256 == hashlib.sha256(raw).digest() and len(sha256) == 32
        mtime = (field.path / filename).stat().st_mtime
        assert modified == datetime.fromtimestamp(mtime, tz=UTC).isoformat()
        assert np.array_equal(np.frombuffer(embedding, "<f4"), model.vector(raw.decode()))
        json.loads(frontmatter, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert found["plain.md"][0] == "null" and found["broken.md"][0] == "null"
    odd = json.loads(found["odd.md"][0])
    assert odd["title"] == "2024-12-19" and odd["summary"] == "No" and odd["version"] == "1.10"
    assert odd["tags"] == ["a", "b"] and odd["2026-01-01"] == "key" and odd["漢"] == "字"


@pytest.mark.parametrize("nanoseconds", [1, 999_999_999, 123_456_789, 500_000_499, 500_000_501, 0])
def test_last_modified_is_that_of_the_systems_float_X3(
    field: PageDirectory, toy_model: Model, nanoseconds: int
) -> None:
    stamp = 1_772_000_000 * 10**9 + nanoseconds
    os.utime(field.path / "bread.md", ns=(stamp, stamp))
    index = VectorIndex(field, toy_model())
    index.sync()
    ((text,),) = query(index.path, "SELECT last_modified FROM pages WHERE filename = 'bread.md'")
    mtime = os.stat(field.path / "bread.md").st_mtime
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(mtime, tz=UTC)


def test_meta_says_whose_vectors_these_are_X4(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model("lab/one"), "content")
    index.sync()
    meta = dict(query(index.path, "SELECT key, value FROM meta"))
    assert meta["model_code"] == "lab/one" and meta["recipe"] == "content" and meta["dimensions"] == "96"
    assert meta["document_prefix"] == "search_document: " and meta["normalized"] == meta["schema_version"] == "1"
    assert meta["source"] == "tests/lab/one" and meta["tool_version"] and meta["generation"]
    revision = int(meta["revision"])
    (field.path / "new.md").write_text("new\n")
    index.sync()
    later = dict(query(index.path, "SELECT key, value FROM meta"))
    assert int(later["revision"]) > revision and later["generation"] == meta["generation"]
    index.delete()
    index.sync()
    assert dict(query(index.path, "SELECT key, value FROM meta"))["generation"] != meta["generation"]


def test_rollback_journal_and_no_side_files_X8(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    index.sync()
    KeywordIndex(field).sync()
    assert query(index.path, "PRAGMA journal_mode") == [("delete",)]
    assert {name for name in os.listdir(field.path) if not name.endswith(".md")} == {"toy-model.sqlite3"}


def test_file_in_wal_mode_is_read_without_side_files_and_then_turned_back_X8(
    field: PageDirectory, toy_model: Model
) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    stranger = sqlite3.connect(index.path)
    with closing(stranger):
        stranger.execute("PRAGMA journal_mode=WAL")
        stranger.execute("UPDATE pages SET embedding = zeroblob(384) WHERE filename = 'bread.md'")
        stranger.commit()
        files = set(os.listdir(field.path))
        reader = VectorIndex(field, model)
        assert set(reader.vectors().bad_rows) == {"bread"}  # what only stands in the side file is seen
        assert reader.state().state == "ok"
        assert set(os.listdir(field.path)) == files
    fresh = VectorIndex(field, model)
    assert fresh.sync().updated == ("bread",)
    assert query(index.path, "PRAGMA journal_mode") == [("delete",)]
    assert fresh.vectors().bad_rows == {} and VectorIndex(field, model).sync().changed is False
    assert {name for name in os.listdir(field.path) if not name.endswith(".md")} == {"toy-model.sqlite3"}


# What is embedded


def test_only_what_changed_is_embedded(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    first = index.sync()
    assert first.added == ("anchor", "bread", "compass", "dough", "engine") and first.embedded == 5
    assert index.sync().unchanged == first.added and len(model.texts) == 5
    model.texts.clear()
    (field.path / "bread.md").write_text("other bread\n")
    (field.path / "new.md").write_text("new\n")
    (field.path / "anchor.md").unlink()
    for fresh in (index, VectorIndex(field, model)):
        report = fresh.sync()
    assert sorted(model.texts) == ["new\n", "other bread\n"]
    assert report.unchanged == ("bread", "compass", "dough", "engine", "new")


def test_report_names_what_was_done(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    first = index.sync()
    assert "5 added" in repr(first) and "5 texts embedded" in repr(first)
    assert "anchor" not in repr(first) and "<table" not in first._repr_html_() and len(first.to_frame()) == 5
    (field.path / "bread.md").write_text("other bread\n")
    (field.path / "long.md").write_text("long " * 2000)
    (field.path / "anchor.md").unlink()
    report = index.sync()
    assert (report.added, report.updated, report.removed) == (("long",), ("bread",), ("anchor",))
    assert report.cut == ("long",) and report.changed and report.seconds > 0
    assert index.sync().cut == ("long",)
    text = repr(report)
    assert "1 added, 1 updated, 1 removed, 3 unchanged, 1 cut at 8192 bytes" in text
    assert "bread" in report._repr_html_()
    frame = report.to_frame()
    assert list(frame.columns) == ["what", "name", "detail"]
    assert set(frame["what"]) == {"added", "updated", "removed", "cut"}
    json.dumps(report.to_dict())


def test_renamed_page_keeps_its_vector(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    (field.path / "bread.md").rename(field.path / "loaf.md")
    shutil.copy(field.path / "dough.md", field.path / "dough-copy.md")
    model.texts.clear()
    report = index.sync()
    assert report.added == report.reused == ("dough-copy", "loaf") and report.removed == ("bread",)
    assert model.texts == []
    assert index.search(model.embed_query("flour water salt yeast"), 1)[0] == ["loaf"]
    assert VectorIndex(field, model).sync().changed is False


def test_pages_that_swap_contents_swap_vectors(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    bread, dough = (field.path / "bread.md").read_bytes(), (field.path / "dough.md").read_bytes()
    (field.path / "bread.md").write_bytes(dough)
    (field.path / "dough.md").write_bytes(bread)
    index.sync()
    vectors = index.vectors()
    for name in ("bread", "dough"):
        text = field.read(name).raw.decode()
        assert np.allclose(vectors.matrix[vectors.positions[name]], model.vector(text), atol=1e-6)


def test_equal_texts_are_embedded_once(tmp_path: Path, toy_model: Model) -> None:
    model = toy_model()
    for number in range(5):
        (tmp_path / f"same-{number}.md").write_text("the same text\n")
    report = VectorIndex(PageDirectory(tmp_path), model).sync()
    assert len(report.added) == 5 and model.texts == ["the same text\n"]


def test_touched_page_gets_its_time_without_the_model_X3_X4(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    os.utime(field.path / "bread.md", (1_700_000_000.25, 1_700_000_000.25))
    model.texts.clear()
    report = index.sync()
    assert not report.changed and model.texts == []
    ((text,),) = query(index.path, "SELECT last_modified FROM pages WHERE filename = 'bread.md'")
    assert text == "2023-11-14T22:13:20.250000+00:00"


def test_times_that_another_tool_wrote_are_accepted_X4(field: PageDirectory, toy_model: Model) -> None:
    """The other tool only sets ``last_modified`` after a touch, and knows nothing of our tables."""
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    os.utime(field.path / "bread.md", (1_700_000_000, 1_700_000_000))
    text = datetime.fromtimestamp(1_700_000_000, tz=UTC).isoformat()
    query(index.path, "UPDATE pages SET last_modified = ? WHERE filename = 'bread.md'", text)
    model.texts.clear()
    for fresh in (index, VectorIndex(field, model)):
        assert fresh.sync().changed is False
    assert model.texts == []
    assert query(index.path, "SELECT last_modified FROM pages WHERE filename = 'bread.md'") == [(text,)]


def test_row_that_another_tool_wrote_is_taken_X4(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    (field.path / "bread.md").write_text("rye bread\n")
    raw = (field.path / "bread.md").read_bytes()
    modified = datetime.fromtimestamp((field.path / "bread.md").stat().st_mtime, tz=UTC).isoformat()
    query(
        index.path,
        "UPDATE pages SET sha256_hash = ?, last_modified = ?, embedding = ?, frontmatter = 'null' WHERE filename = ?",
        hashlib.sha256(raw).digest(),
        modified,
        model.vector(raw.decode()).astype("<f4").tobytes(),
        "bread.md",
    )
    model.texts.clear()
    for fresh in (index, VectorIndex(field, model)):
        assert fresh.sync().changed is False
    assert model.texts == []


def test_progress_counts_pages_and_texts_come_sorted_by_length(tmp_path: Path, toy_model: Model) -> None:
    for number in range(100):
        (tmp_path / f"p-{number}.md").write_text("word " * (number * 37 % 50) + f"{number}\n")
    model = toy_model()
    seen: list[tuple[int, int]] = []
    VectorIndex(PageDirectory(tmp_path), model).sync(progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 100) and seen[-1] == (100, 100)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    first = [len(text) for text in model.texts[: seen[1][0]]]
    assert first == sorted(first)


# The disk moves


def test_deleted_and_edited_outside_X10(field: PageDirectory, toy_model: Model) -> None:
    """The case of that name, for the index: a ghost, an edit that keeps size and seconds, a new page."""
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync(verify=False)
    bread = field.path / "bread.md"
    status = bread.stat()
    bread.write_text(bread.read_text().replace("flour", "sugar"))
    os.utime(bread, ns=(status.st_atime_ns, status.st_mtime_ns // 10**9 * 10**9))
    assert bread.stat().st_size == status.st_size
    (field.path / "anchor.md").unlink()
    (field.path / "new.md").write_text("lighthouse\n")
    report = index.sync(verify=False)
    assert (report.added, report.updated, report.removed) == (("new",), ("bread",), ("anchor",))
    assert "anchor" not in index.search(model.embed_query("anchors hold a boat"), 99)[0]
    assert index.search(model.embed_query("lighthouse"), 1)[0] == ["new"]


def aged(field: PageDirectory, index: VectorIndex) -> None:
    """Make the pages look as if they and the last sync were long ago."""
    for page in field.path.glob("*.md"):
        os.utime(page, (1_700_000_000, 1_700_000_000))
    index.sync()
    for page in field.path.glob("*.md"):
        changed = page.stat().st_ctime_ns
        query(index.path, "UPDATE sync_state SET seen_ns = ? WHERE filename = ?", changed + 4 * 10**9, page.name)
    ((counter,),) = query(index.path, "SELECT value FROM meta WHERE key = 'counter'")
    query(index.path, "UPDATE meta SET value = ? WHERE key = 'counter'", str(int(counter) + 6))


def test_stat_data_in_the_file_spare_a_cold_process_the_reading_X10(
    field: PageDirectory, toy_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    aged(field, index)
    known: list[Any] = []
    take = PageDirectory.snapshot

    def spy(self: PageDirectory, known_now: Any = None, verify: bool = True, **more: Any) -> Any:
        known.append(more.get("known", known_now))
        return take(self, known=known[-1], verify=verify)

    monkeypatch.setattr(PageDirectory, "snapshot", spy)
    fresh = VectorIndex(field, model)
    assert fresh.sync(verify=False).changed is False
    assert set(known[0].entries) == {f"{name}.md" for name in field.names()}
    assert fresh.sync(verify=True).changed is False


def test_page_that_changes_while_it_is_embedded_waits_X9(field: PageDirectory, toy_model: Model) -> None:
    class Slow(toy_model):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            if any("yeast" in text for text in texts):
                (field.path / "bread.md").write_text("changed meanwhile\n")
                (field.path / "dough.md").unlink()
            return super().embed_documents(texts)  # type: ignore[no-any-return]

    index = VectorIndex(field, Slow())
    report = index.sync()
    assert report.waiting == ("bread", "dough") and report.added == ("anchor", "compass", "engine")
    assert "bread.md" not in {row[0] for row in query(index.path, "SELECT filename FROM pages")}
    report = index.sync()
    assert report.added == ("bread",) and report.waiting == ()
    assert VectorIndex(field, Slow()).sync().changed is False


def test_newer_row_of_another_sync_is_not_overwritten_X9(field: PageDirectory, toy_model: Model) -> None:
    """Another process edits the page and syncs while ours embeds the older content."""

    class Overtaken(toy_model):  # type: ignore[misc, valid-type]
        done = False

        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            if not self.done:
                self.done = True
                (field.path / "bread.md").write_text("the newer text\n")
                VectorIndex(field, toy_model()).sync()
                (field.path / "bread.md").write_text("the newest text\n")
            return super().embed_documents(texts)  # type: ignore[no-any-return]

    index = VectorIndex(field, toy_model())
    index.sync()
    (field.path / "bread.md").write_text("the older text\n")
    report = VectorIndex(field, Overtaken()).sync()
    assert report.waiting == ("bread",) and report.updated == ()
    ((sha256,),) = query(index.path, "SELECT sha256_hash FROM pages WHERE filename = 'bread.md'")
    assert sha256 == hashlib.sha256(b"the newer text\n").digest()
    assert index.sync().updated == ("bread",)


def test_no_write_transaction_while_embedding_X9(field: PageDirectory, toy_model: Model) -> None:
    class Looking(toy_model):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            if index.path.exists():
                with closing(sqlite3.connect(index.path, timeout=0)) as connection:
                    connection.execute("BEGIN EXCLUSIVE")
            return super().embed_documents(texts)  # type: ignore[no-any-return]

    index = VectorIndex(field, Looking())
    index.sync()
    (field.path / "new.md").write_text("new\n")
    (field.path / "anchor.md").unlink()
    report = index.sync()
    assert report.added == ("new",) and report.removed == ("anchor",)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interruption_keeps_what_was_embedded_X9(tmp_path: Path, toy_model: Model, error: type[BaseException]) -> None:
    class Stopped(toy_model):  # type: ignore[misc, valid-type]
        left = 25

        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            self.left -= len(texts)
            if self.left < 0:
                raise error
            return super().embed_documents(texts)  # type: ignore[no-any-return]

    for number in range(60):
        (tmp_path / f"p-{number}.md").write_text(f"page {number}\n")
    field = PageDirectory(tmp_path)
    model = Stopped(seconds=0.001)
    index = VectorIndex(field, model)
    with pytest.raises(error):
        index.sync()
    kept = len(model.texts)
    assert 0 < kept < 60
    model.left = 1000
    report = index.sync()
    assert len(report.unchanged) == kept and len(report.added) == 60 - kept
    assert len(model.texts) == 60


# Vectors that cannot be used


class Refusing:
    """Mixed into the small model: no usable vector for texts with certain words, and a word that makes it fail."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if any("unacceptable" in text for text in texts):
            raise EmbeddingFailed("the model refuses an unacceptable text")
        vectors = super().embed_documents(texts)  # type: ignore[misc]
        for number, text in enumerate(texts):
            if "nothing" in text:
                vectors[number] = 0
            if "notnumber" in text:
                vectors[number, 3] = np.nan
            if "endless" in text:
                vectors[number, 3] = np.inf
        return vectors  # type: ignore[no-any-return]


def test_zero_vector_is_refused_and_the_page_found_by_keyword_X7(field: PageDirectory, toy_model: Model) -> None:
    """The case zero-vector, and its neighbours."""
    model = type("Model", (Refusing, toy_model), {})()
    for name in ("nothing", "notnumber", "endless", "unacceptable"):
        (field.path / f"{name}.md").write_text(f"a page with {name} in it\n")
    index = VectorIndex(field, model)
    report = index.sync()
    assert set(report.refused) == {"nothing", "notnumber", "endless", "unacceptable"}
    assert "zero" in report.refused["nothing"] and "not finite" in report.refused["notnumber"]
    assert "unacceptable text" in report.refused["unacceptable"]
    assert report.added == ("anchor", "bread", "compass", "dough", "engine")
    assert index.search(model.embed_query("knead the dough and let it rest"), 9)[0][0] == "dough"
    assert set(index.vectors().names) == set(report.added)
    keywords = KeywordIndex(field)
    keywords.sync()
    for name in report.refused:
        assert keywords.search(name, 3)[0][0] == name


def test_refused_page_is_not_tried_again_until_it_changes_X7(field: PageDirectory, toy_model: Model) -> None:
    model = type("Model", (Refusing, toy_model), {})()
    (field.path / "nothing.md").write_text("nothing\n")
    VectorIndex(field, model).sync()
    model.texts.clear()
    for fresh in (index := VectorIndex(field, model), index, VectorIndex(field, model)):
        report = fresh.sync()
        assert set(report.refused) == {"nothing"} and "nothing" not in report.unchanged
    assert model.texts == []
    os.utime(field.path / "nothing.md", (1, 1))
    assert set(index.sync().refused) == {"nothing"} and model.texts == []
    assert set(index.sync(retry_refused=True).refused) == {"nothing"} and model.texts == ["nothing\n"]
    (field.path / "nothing.md").write_text("something\n")
    report = index.sync()
    assert report.added == ("nothing",) and report.refused == {}
    (field.path / "nothing.md").write_text("nothing at all\n")
    report = index.sync()
    assert set(report.refused) == {"nothing"} and "nothing" not in index.vectors().names
    (field.path / "nothing.md").unlink()
    assert index.sync().refused == {}
    assert query(index.path, "SELECT count(*) FROM refused") == [(0,)]


def test_model_that_fails_on_everything_raises_and_refuses_no_page_X7(field: PageDirectory, toy_model: Model) -> None:
    class Down(toy_model):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            raise EmbeddingFailed("the server answers nothing")

    with pytest.raises(EmbeddingFailed, match="answers nothing"):
        VectorIndex(field, Down()).sync()
    report = VectorIndex(field, toy_model()).sync()
    assert len(report.added) == 5 and report.refused == {}


@pytest.mark.parametrize("shape", [(5, 95), (4, 96), (5,), (5, 96, 1)])
def test_vectors_of_another_shape_are_never_stored_X7(
    field: PageDirectory, toy_model: Model, shape: tuple[int, ...]
) -> None:
    class Wrong(toy_model):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            return np.ones(shape, np.float32)

    index = VectorIndex(field, Wrong())
    with pytest.raises(EmbeddingFailed, match="shape"):
        index.sync()
    assert not index.path.exists()


def test_equal_vectors_of_different_contents_are_reported_X7(tmp_path: Path, toy_model: Model) -> None:
    class Short(toy_model):  # type: ignore[misc, valid-type]
        def vector(self, text: str) -> np.ndarray:
            return super().vector(text[:20])  # type: ignore[no-any-return]

    for number in range(3):
        (tmp_path / f"invoice-{number}.md").write_text(f"The same long opening, then {number}\n")
    (tmp_path / "other.md").write_text("Something else\n")
    index = VectorIndex(PageDirectory(tmp_path), Short())
    report = index.sync()
    assert report.equal_vectors == (("invoice-0", "invoice-1", "invoice-2"),)
    assert "the same vector as invoice-1, invoice-2" in repr(report)
    assert index.vectors().equal() == report.equal_vectors


# Small, read only, somewhere else


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_empty_and_tiny_fields(tmp_path: Path, toy_model: Model, count: int) -> None:
    """The case empty-and-tiny, for the index."""
    for number in range(count):
        (tmp_path / f"p-{number}.md").write_text(f"page {number}\n")
    index = VectorIndex(PageDirectory(tmp_path), toy_model())
    report = index.sync()
    assert len(report.added) == count and len(index.sync().unchanged) == count
    assert len(index.search(np.ones(96), 10)[0]) == count
    assert index.path.exists() == bool(count)
    assert repr(report).startswith("Sync of toy-model: ")


def archive_of(field: PageDirectory, target: Path, *extra: Path) -> ZipPages:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [*sorted(field.path.glob("*.md")), *extra]:
            archive.write(path, path.name)
    return ZipPages(target)


def test_rows_of_an_archive_are_used_where_the_content_is_the_same_A3_A4(
    field: PageDirectory, toy_model: Model, tmp_path: Path
) -> None:
    made = VectorIndex(field, toy_model())
    made.sync()
    (field.path / "bread.md").write_text("changed after the index was made\n")
    query(made.path, "UPDATE pages SET embedding = zeroblob(384) WHERE filename = 'dough.md'")
    pages = archive_of(field, tmp_path / "field.memoryfield.zip", made.path)
    before = pages.path.read_bytes()
    model = toy_model()
    index = VectorIndex(pages, model)
    report = index.sync()
    assert report.reused == ("anchor", "compass", "engine") and len(report.added) == 5
    assert len(model.texts) == 2
    assert index.search(model.embed_query("knead the dough"), 1)[0] == ["dough"]
    assert pages.path.read_bytes() == before and not index.path.is_relative_to(tmp_path / "field")
    assert VectorIndex(pages, model).sync().unchanged == report.added
    assert len(model.texts) == 2


@pytest.mark.parametrize("kind", ["text", "kiss", "other model"])
def test_unusable_index_in_an_archive_is_a_note_and_no_error_A3_X11(
    field: PageDirectory, toy_model: Model, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "toy-model.sqlite3"
    if kind == "text":
        path.write_text("this is no database")
    elif kind == "kiss":
        query(path, "CREATE TABLE pages (filename TEXT PRIMARY KEY, sha256 TEXT, mtime REAL, vector BLOB)")
    else:
        VectorIndex(field, toy_model("lab"), path=path).sync()
    index = VectorIndex(archive_of(field, tmp_path / "a.memoryfield.zip", path), toy_model())
    report = index.sync()
    assert len(report.added) == 5 and report.reused == ()
    assert "is not used" in report.notes[0] and report.notes[0] in repr(report)


class ReadOnlyDirectory(PageDirectory):
    """A directory that the system would not let us write."""

    read_only = True  # type: ignore[assignment]


def test_directory_that_cannot_be_written_uses_its_own_rows_and_the_cache(
    field: PageDirectory, toy_model: Model
) -> None:
    VectorIndex(field, toy_model()).sync()
    (field.path / "new.md").write_text("new\n")
    before = sorted(os.listdir(field.path))
    model = toy_model()
    report = VectorIndex(ReadOnlyDirectory(field.path), model).sync()
    assert len(report.reused) == 5 and model.texts == ["new\n"]
    assert sorted(os.listdir(field.path)) == before


def test_index_in_a_place_of_ones_own(field: PageDirectory, toy_model: Model, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "mine.sqlite3"
    index = VectorIndex(field, toy_model(), path=place)
    index.sync()
    assert place.exists() and not (field.path / "toy-model.sqlite3").exists()
    assert VectorIndex(field, toy_model(), path=place).sync().changed is False


def test_rows_of_files_that_are_pages_to_others_only_stay_P1_P2_X4(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    (field.path / "Bad Name.md").write_text("not a page to us\n")
    values = ("Bad Name.md", "null", "2026", hashlib.sha256(b"not a page to us\n").digest(), b"x" * 384)
    query(index.path, "INSERT INTO pages VALUES (?, ?, ?, ?, ?)", *values)
    for fresh in (index, VectorIndex(field, model)):
        assert fresh.sync().changed is False and len(fresh.vectors()) == 5
    before = index.path.read_bytes()
    assert index.sync().unchanged == index.vectors().names and index.path.read_bytes() == before
    (field.path / "Bad Name.md").rename(field.path / "good-name.md")
    report = index.sync()
    assert report.added == report.reused == ("good-name",) and report.removed == ("Bad Name",)


def test_report_of_an_idle_sync_follows_what_is_refused(field: PageDirectory, toy_model: Model) -> None:
    model = type("Model", (Refusing, toy_model), {})()
    (field.path / "nothing.md").write_text("nothing\n")
    index = VectorIndex(field, model)
    index.sync()
    assert set(index.sync().refused) == {"nothing"}
    VectorIndex(field, toy_model()).sync(retry_refused=True)
    assert index.sync().refused == {} and "nothing" in index.sync().unchanged
