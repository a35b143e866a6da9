"""Pages that a map does not know are placed without moving the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memoryfield as mf
from memoryfield.errors import QueryError
from memoryfield.study.layout import layout
from memoryfield.study.placing import placed, row_digests

SUBJECTS = ("winch brake lining oil", "sour dough starter flour", "night ferry timetable harbour")


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    place = tmp_path / "notes"
    place.mkdir()
    for number in range(18):
        subject = SUBJECTS[number % 3]
        text = f"---\ntitle: {subject} {number}\n---\n{subject} number {number}, looked at again.\n"
        (place / f"page-{number:02}.md").write_text(text, encoding="utf-8")
    return mf.open_field(place, model="hashing-1024")


def test_a_new_page_lands_among_its_like_and_nothing_else_moves(field: mf.MemoryField) -> None:
    before = field.layout(method="pca", progress=False)
    (field.path / "aaa-first.md").write_text("sour dough starter flour number 99\n", encoding="utf-8")
    after = field.layout(after=before, progress=False)
    assert after.names[0] == "aaa-first"
    assert np.array_equal(after.xy[1:], before.xy)
    own = [i for i, name in enumerate(before.names) if int(name[-2:]) % 3 == 1]
    low, high = before.xy[own].min(axis=0), before.xy[own].max(axis=0)
    assert np.all(after.xy[0] >= low - 1e-6) and np.all(after.xy[0] <= high + 1e-6)
    assert (after.method, after.parameters) == (before.method, before.parameters)


def test_a_changed_page_moves_alone_and_a_deleted_one_goes(field: mf.MemoryField) -> None:
    before = field.layout(method="pca", progress=False)
    field.edit("page-00", body="sour dough starter flour, nothing else", title="sour dough")
    field.delete("page-17")
    after = field.layout(after=before, progress=False)
    assert after.names == before.names[:-1]
    assert np.array_equal(after.xy[1:], before.xy[1:-1])
    assert not np.allclose(after.xy[0], before.xy[0])


def test_where_nothing_is_left_the_map_is_made_anew(field: mf.MemoryField) -> None:
    before = field.layout(method="pca", progress=False)
    other = layout(
        ["x", "y"], np.eye(2, 1024, dtype=np.float32), model_code=before.model_code, recipe=before.recipe, after=before
    )
    assert other.names == ("x", "y") and other.method == "pca"


def test_places_are_not_kept_across_models(field: mf.MemoryField) -> None:
    before = field.layout(method="pca", progress=False)
    with pytest.raises(QueryError, match="across models"):
        layout(["x"], np.ones((1, 3), np.float32), model_code="other", recipe=before.recipe, after=before)


def test_places_do_not_depend_on_the_order_of_rows() -> None:
    chance = np.random.default_rng(1)
    rows = chance.standard_normal((30, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    names = [f"n{i:02}" for i in range(30)]
    xy = chance.standard_normal((20, 2)).astype(np.float32)
    digests = row_digests(rows)
    found = placed(names, rows, digests, names[:20], xy, digests[:20])
    swap = chance.permutation(20)
    again = placed(names, rows, digests, [names[i] for i in swap], xy[swap], [digests[i] for i in swap])
    assert found is not None and again is not None
    assert np.array_equal(found, again)
    assert np.array_equal(found[:20], xy)


def test_many_rows_and_few_give_the_same_axes() -> None:
    chance = np.random.default_rng(2)
    rows = (chance.standard_normal((40, 12)) * np.linspace(3, 0.1, 12)).astype(np.float32)
    tall = layout([f"{i:02}" for i in range(40)], rows, model_code="m", recipe="page", method="pca").xy
    u, s, _ = np.linalg.svd((rows - rows.mean(axis=0)).astype(np.float64), full_matrices=False)
    assert np.allclose(np.abs(tall), np.abs(u[:, :2] * s[:2]), atol=1e-4)
    few = layout([f"{i}" for i in range(8)], rows[:8], model_code="m", recipe="page", method="pca").xy
    assert few.shape == (8, 2) and np.isfinite(few).all()


def test_without_descriptions_the_pages_are_not_read(field: mf.MemoryField) -> None:
    bare = field.layout(method="pca", describe=False, progress=False)
    assert all(not page for page in bare.pages)
    assert bare.to_frame()["title"].tolist() == list(bare.names)
