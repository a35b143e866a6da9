"""Vectors in memory: loading, searching, noticing changes (FORMAT X6, X7, X10)."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import EmbeddingFailed, ModelMismatch, QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.loaded import Vectors
from memoryfield.index.vectors import VectorIndex

Model = Callable[..., Any]


def rows(path: Path) -> dict[str, tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0]: row for row in connection.execute("SELECT * FROM pages")}


def execute(path: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


def test_search_gives_names_and_cosines_best_first(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model(unit=False)
    index = VectorIndex(field, model)
    index.sync()
    names, scores = index.search(model.embed_query("knead the dough and let it rest"), 3)
    assert names[0] == "dough"
    assert scores.dtype == np.float32
    assert list(scores) == sorted(scores, reverse=True)
    page = model.vector(field.read("dough").raw.decode())
    query = model.vector("knead the dough and let it rest")
    cosine = page @ query / np.linalg.norm(page) / np.linalg.norm(query)
    assert scores[0] == pytest.approx(cosine, abs=1e-6)


def test_names_are_sorted_as_names_and_rows_are_unit(field: PageDirectory, toy_model: Model) -> None:
    for name in ("a", "a-b", "a0"):
        (field.path / f"{name}.md").write_text(f"page {name}\n")
    index = VectorIndex(field, toy_model(unit=False))
    index.sync()
    vectors = index.vectors()
    assert list(vectors.names) == sorted(vectors.names)
    assert vectors.names[:3] == ("a", "a-b", "a0")
    assert np.allclose(np.linalg.norm(vectors.matrix, axis=1), 1.0, atol=1e-6)
    assert vectors.matrix.dtype == np.float32 and vectors.matrix.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0, 0] = 1.0


def test_among_takes_names_with_and_without_ending(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    query = model.embed_query("boat")
    assert set(index.search(query, 9, ["anchor.md", "bread", "nothing"])[0]) == {"anchor", "bread"}
    assert index.search(query, 9, [])[0] == []
    chosen = frozenset(["engine", "compass"])
    for _ in range(2):
        assert set(index.search(query, 9, chosen)[0]) == chosen


def test_equal_cosines_come_by_name(tmp_path: Path, toy_model: Model) -> None:
    model = toy_model()
    for name in ("zebra", "apple", "mango"):
        (tmp_path / f"{name}.md").write_text("the same words\n")
    index = VectorIndex(PageDirectory(tmp_path), model)
    assert index.sync().equal_vectors == ()  # equal content is no surprise
    assert index.search(model.embed_query("words"), 2)[0] == ["apple", "mango"]
    assert index.vectors().equal() == (("apple", "mango", "zebra"),)


def test_queries_that_cannot_be_placed(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    index.sync()
    with pytest.raises(QueryError, match=r"\(5,\).*\(96,\)"):
        index.search(np.ones(5), 3)
    with pytest.raises(EmbeddingFailed, match="zero"):
        index.search(np.zeros(96), 3)
    with pytest.raises(EmbeddingFailed, match="finite"):
        index.search(np.full(96, np.nan), 3)


def test_vectors_stay_in_memory_until_the_file_changes_X10(field: PageDirectory, toy_model: Model) -> None:
    index, other = VectorIndex(field, toy_model()), VectorIndex(field, toy_model())
    index.sync()
    first = index.vectors()
    assert index.vectors() is first
    other.sync()
    assert index.vectors() is first
    (field.path / "new.md").write_text("a new page\n")
    other.sync()
    second = index.vectors()
    assert second is not first and "new" in second.names and "new" not in first.names
    assert first.digest != second.digest


def test_a_write_in_the_same_instant_and_of_the_same_size_is_seen_X10(field: PageDirectory, toy_model: Model) -> None:
    """Time stamps alone would miss some of these: the change counter is read while they are young."""
    index = VectorIndex(field, toy_model())
    index.sync()
    for turn in range(50):
        expected = np.roll(np.eye(96, dtype="<f4")[0], turn)
        execute(index.path, "UPDATE pages SET embedding = ? WHERE filename = 'bread.md'", expected.tobytes())
        vectors = index.vectors()
        assert np.array_equal(vectors.matrix[vectors.positions["bread"]], expected)


def test_index_of_another_program_is_adopted_without_the_model_X4(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    made = VectorIndex(field, model)
    made.sync()
    for table in ("meta", "sync_state", "refused"):
        execute(made.path, f"DROP TABLE {table}")
    before = made.path.read_bytes()
    fresh = toy_model()
    index = VectorIndex(field, fresh)
    report = index.sync()
    assert len(report.unchanged) == 5 and not report.changed
    assert fresh.texts == [] and made.path.read_bytes() == before
    assert index.sync().unchanged == report.unchanged
    (field.path / "new.md").write_text("a new page\n")
    assert index.sync().added == ("new",)
    assert len(fresh.texts) == 1 and index.state().has_meta
    assert VectorIndex(field, fresh).sync().unchanged == (*report.unchanged, "new")
    assert len(fresh.texts) == 1


def test_bad_rows_are_left_out_reported_and_made_anew_X7(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    good = rows(index.path)
    nan = np.full(96, np.nan, "<f4").tobytes()
    infinite = np.full(96, np.inf, "<f4").tobytes()
    damage = {"anchor": b"", "bread": nan, "compass": np.zeros(96, "<f4").tobytes(), "dough": b"x" * 383}
    for name, blob in damage.items():
        execute(index.path, "UPDATE pages SET embedding = ? WHERE filename = ?", blob, f"{name}.md")
    for found in (index, VectorIndex(field, model)):
        vectors = found.vectors()
        assert vectors.names == ("engine",) and set(vectors.bad_rows) == set(damage)
        assert found.search(model.embed_query("boat"), 9)[0] == ["engine"]
    model.texts.clear()
    report = index.sync()
    assert set(report.bad_rows) == set(damage) == set(report.updated)
    assert "zero" in report.bad_rows["compass"] and "finite" in report.bad_rows["bread"]
    assert len(model.texts) == 4
    assert {name: row[4] for name, row in rows(index.path).items()} == {name: row[4] for name, row in good.items()}
    assert VectorIndex(field, model).sync().bad_rows == {}
    execute(index.path, "UPDATE pages SET embedding = 'text' WHERE filename = 'bread.md'")
    execute(index.path, "UPDATE pages SET embedding = ? WHERE filename = 'dough.md'", infinite)
    assert set(VectorIndex(field, model).sync().bad_rows) == {"bread", "dough"}


def test_bad_row_found_while_searching_is_made_anew_by_the_next_sync_X7(field: PageDirectory, toy_model: Model) -> None:
    """Even where our own tables claim that nothing changed since we wrote."""
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    with closing(sqlite3.connect(index.path)) as connection, connection:
        connection.execute("UPDATE pages SET embedding = zeroblob(384) WHERE filename = 'bread.md'")
        (counter,) = connection.execute("SELECT value FROM meta WHERE key = 'counter'").fetchone()
        connection.execute("UPDATE meta SET value = ? WHERE key = 'counter'", (str(int(counter) + 1),))
    fresh = VectorIndex(field, model)
    assert fresh.sync().updated == ()
    assert set(fresh.vectors().bad_rows) == {"bread"}
    assert fresh.sync().updated == ("bread",)
    assert fresh.vectors().bad_rows == {}


def test_rows_that_are_no_pages_are_not_searched_and_go_X11(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    blob = model.vector("boat").astype("<f4").tobytes()
    for name in ("../evil.md", "Bad Name.md", "x" * 5000 + ".md", "a\x00b.md", None, 7, b"anchor.md"):
        execute(index.path, "INSERT INTO pages VALUES (?, 'null', '2026-01-01', zeroblob(32), ?)", name, blob)
    fresh = VectorIndex(field, model)
    assert set(fresh.search(model.embed_query("boat"), 99)[0]) == {"anchor", "bread", "compass", "dough", "engine"}
    fresh.sync()
    assert len(rows(index.path)) == 5


MISMATCHES = {
    "another model": {"model_code": "other-model"},
    "another dimension": {"dimensions": 64},
    "another prefix": {"document_prefix": "passage: "},
}


@pytest.mark.parametrize("change", MISMATCHES.values(), ids=MISMATCHES)
def test_model_mismatch_names_both_and_alters_nothing_X6(
    field: PageDirectory, toy_model: Model, change: dict[str, Any]
) -> None:
    """The case model-mismatch."""
    made = VectorIndex(field, toy_model())
    made.sync()
    before = made.path.read_bytes()
    wrong = VectorIndex(field, toy_model(**change), path=made.path)
    for action in (wrong.sync, wrong.vectors):
        with pytest.raises(ModelMismatch, match="'toy-model'") as caught:
            action()
        assert repr(change.get("model_code", "toy-model")) in str(caught.value)
        assert str(change.get("dimensions", 96)) in str(caught.value)
    assert made.path.read_bytes() == before
    assert wrong.embedder.texts == []
    assert made.vectors().names


def test_two_codes_of_one_file_name_are_told_apart_X6(field: PageDirectory, toy_model: Model) -> None:
    first, second = VectorIndex(field, toy_model("lab/model")), VectorIndex(field, toy_model("lab-model"))
    assert first.path == second.path
    first.sync()
    with pytest.raises(ModelMismatch, match=r"'lab/model'.*'lab-model'"):
        second.sync()


def test_recipe_is_checked_too_X5_X6(field: PageDirectory, toy_model: Model) -> None:
    made = VectorIndex(field, toy_model())
    made.sync()
    with pytest.raises(ModelMismatch, match=r"recipe page.*recipe content"):
        VectorIndex(field, toy_model(), "content", path=made.path).sync()


def test_file_without_meta_is_known_by_name_and_dimension_X6(field: PageDirectory, toy_model: Model) -> None:
    made = VectorIndex(field, toy_model())
    made.sync()
    for table in ("meta", "sync_state", "refused"):
        execute(made.path, f"DROP TABLE {table}")
    before = made.path.read_bytes()
    for action in ("sync", "vectors"):
        with pytest.raises(ModelMismatch, match=r"'toy-model' \(96 dimensions\).*32 dimensions"):
            getattr(VectorIndex(field, toy_model(dimensions=32)), action)()
        with pytest.raises(ModelMismatch, match=r"unnamed model.*'other'"):
            getattr(VectorIndex(field, toy_model("other"), path=made.path), action)()
    assert made.path.read_bytes() == before


def test_no_file_is_no_vectors_and_makes_none(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    assert len(index.vectors()) == 0
    assert index.search(np.ones(96), 3)[0] == []
    assert not index.path.exists()


def test_many_rows_by_bits_and_exactly(toy_model: Model) -> None:
    random = np.random.default_rng(1)
    centres = random.standard_normal((100, 64))
    matrix = (centres[np.arange(30_000) % 100] + 0.5 * random.standard_normal((30_000, 64))).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    vectors = Vectors(tuple(f"p{i:05}" for i in range(30_000)), matrix)
    for row in range(0, 3000, 97):
        exact = vectors.search(matrix[row], 10, exact=True)
        found = vectors.search(matrix[row], 10)
        assert found[0] == exact[0] and found[0][0] == f"p{row:05}"
        some = frozenset(vectors.names[row::3])
        assert vectors.search(matrix[row], 10, some)[0] == vectors.search(matrix[row], 10, some, exact=True)[0]
    assert vectors._memo.bits is not None


def test_searching_from_threads_while_another_process_writes(field: PageDirectory, toy_model: Model) -> None:
    model = toy_model()
    index = VectorIndex(field, model)
    index.sync()
    problems: list[BaseException] = []

    def search() -> None:
        try:
            for number in range(60):
                names, scores = index.search(model.embed_query(f"boat {number}"), 5, frozenset(["anchor", "bread"]))
                assert set(names) == {"anchor", "bread"} and len(scores) == 2
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in range(20):
        (field.path / f"new-{number}.md").write_text(f"page {number}\n")
        index.sync()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(index.vectors()) == 25


def test_delete_removes_the_file_only(field: PageDirectory, toy_model: Model) -> None:
    index = VectorIndex(field, toy_model())
    index.sync()
    index.delete()
    assert not index.path.exists() and len(index.vectors()) == 0
    index.delete()
    assert len(index.sync().added) == 5
