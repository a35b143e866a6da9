"""Maps: same input, same map; small fields; hostile page text in figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memoryfield import places
from memoryfield.errors import QueryError
from memoryfield.study.layout import layout, nearest_neighbors


def _rows(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 12)) * 3
    rows = centres[np.arange(count) % 3] + rng.normal(size=(count, 12))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _layout(count: int, **options: object) -> object:
    return layout([f"p{i:03d}" for i in range(count)], _rows(count), model_code="m", recipe="page", **options)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 14])
def test_small_fields_get_pca(count: int) -> None:
    made = _layout(count)
    assert made.method == "pca" and made.xy.shape == (count, 2) and np.isfinite(made.xy).all()
    assert len(made.to_frame()) == count
    assert made.to_svg().count("<circle") == count
    assert str(count) in repr(made)


def test_pca_of_equal_vectors_is_one_point() -> None:
    made = layout(["a", "b", "c"], np.ones((3, 4), dtype=np.float32) / 2, model_code="m", recipe="page")
    assert np.allclose(made.xy, 0)
    assert "nan" not in made.to_svg()


def test_umap_repeats_itself_whatever_the_order_of_rows() -> None:
    names, rows = [f"p{i:03d}" for i in range(40)], _rows(40)
    order = np.random.default_rng(1).permutation(40)
    first = layout(names, rows, model_code="m", recipe="page")
    cached = list((places.cache_directory() / "layouts").glob("*.npy"))
    assert first.method == "umap" and len(cached) == 1
    cached[0].unlink()
    second = layout([names[i] for i in order], rows[order], model_code="m", recipe="page")
    assert first.names == second.names
    assert np.array_equal(first.xy, second.xy)
    # groups that lie apart in the vectors lie apart on the map
    group = np.arange(40) % 3
    inside = np.mean(
        [np.linalg.norm(first.xy[group == g] - first.xy[group == g].mean(axis=0), axis=1).mean() for g in range(3)]
    )
    assert inside < np.linalg.norm(first.xy - first.xy.mean(axis=0), axis=1).mean()


def test_cached_coordinates_are_used_and_a_damaged_cache_is_made_again() -> None:
    first = _layout(20)
    (cached,) = (places.cache_directory() / "layouts").glob("*.npy")
    np.save(cached, np.full((20, 2), 7, dtype=np.float32))
    assert (_layout(20).xy == 7).all()
    cached.write_bytes(b"\x93NUMPY broken")
    assert np.array_equal(_layout(20).xy, first.xy)


def test_other_vectors_make_another_map(tmp_path: Path) -> None:
    one = layout([f"p{i}" for i in range(20)], _rows(20, 0), model_code="m", recipe="page")
    two = layout([f"p{i}" for i in range(20)], _rows(20, 1), model_code="m", recipe="page")
    assert not np.array_equal(one.xy, two.xy)


def test_neighbours_are_exact_and_start_with_the_row_itself() -> None:
    rows = _rows(50)
    rows[7] = rows[3]
    indices, distances = nearest_neighbors(rows, 6)
    assert (indices[:, 0] == np.arange(50)).all()
    expected = np.sort(1 - rows @ rows.T, axis=1)[:, 1:6]
    assert np.allclose(distances[:, 1:], np.maximum(expected, 0), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "tsne"}, "method"),
        ({"engine": "x"}, "engine"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"min_dist": 2.0}, "min_dist"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        _layout(20, **options)


def test_umap_of_three_pages_is_refused_with_the_way_out() -> None:
    with pytest.raises(QueryError, match="pca"):
        _layout(3, method="umap")
    assert _layout(4, method="umap").xy.shape == (4, 2)


def test_figure_and_svg_show_hostile_text_as_text() -> None:
    evil = "<img src=x onerror=alert(1)> <a href='javascript:x'>y</a> $\\alpha$"
    made = layout(
        ["a", "b"],
        _rows(2),
        model_code="<b>m</b>",
        recipe="page",
        pages={"a": {"title": evil, "summary": evil * 20, "kind": evil}},
    )
    figure = made.figure(color="kind")
    texts = json.loads(figure.to_json())
    for trace in texts["data"]:
        for text in trace["text"]:
            assert "<img" not in text and "<a " not in text and "$" not in text
        assert "<" not in trace["name"]
    assert "<b>" not in texts["layout"]["title"]["text"]
    assert "<img" not in made.to_svg() and "<img" not in made._repr_html_()


def test_colours_come_with_symbols_and_the_rest_is_grey() -> None:
    pages = {f"p{i:03d}": {"kind": f"k{i % 10}"} for i in range(30)}
    made = layout(list(pages), _rows(30), model_code="m", recipe="page", method="pca", pages=pages)
    traces = made.figure(color="kind").data
    assert len(traces) == 9 and traces[-1].name == "other"
    assert len({t.marker.symbol for t in traces}) == 9


def test_a_figure_by_a_key_that_no_page_has_says_which_there_are() -> None:
    names = ["a", "b", "c"]
    rows = np.eye(3, 8, dtype=np.float32)
    pages = {name: {"title": name, "kind": "note", "empty": ""} for name in names}
    made = layout(names, rows, model_code="toy", recipe="page", pages=pages)
    assert len(made.figure(color="kind").data) == 1
    for key in ("knid", "empty"):
        with pytest.raises(QueryError, match=r"there are: kind, title"):
            made.figure(color=key)


def _drawn(svg: str, tag: str, x: str = "x", y: str = "y") -> np.ndarray:
    found = re.findall(rf'<{tag} {x}="([\d.-]+)" {y}="([\d.-]+)"', svg)
    return np.array([[float(a), float(b)] for a, b in found])


def test_the_picture_is_filled_and_not_stretched() -> None:
    made = _layout(60, method="pca")
    slanted = replace(made, xy=(made.xy * [3, 0.5]) @ np.array([[0.5, 0.866], [-0.866, 0.5]]))  # long and at 60 degrees
    for one in (made, slanted):
        points = _drawn(one.to_svg(900, 500), "circle", "cx", "cy")
        span = points.max(axis=0) - points.min(axis=0)
        assert (span / [900 - 48, 500 - 48]).max() == pytest.approx(1, abs=0.01)
        ratio = np.linalg.norm(points[1:] - points[0], axis=1) / np.linalg.norm(one.xy[1:] - one.xy[0], axis=1)
        assert np.ptp(ratio) < 0.02 * ratio.mean()
    assert span[0] > 800  # it was turned to lie


def test_names_stand_inside_and_off_the_points() -> None:
    rng = np.random.default_rng(3)
    names = [f"a page with a long name {i:03d}" for i in range(90)]
    made = layout(names, _rows(90), model_code="m", recipe="page", method="pca")
    crowded = replace(made, xy=np.vstack([rng.normal(size=(45, 2)) * 0.2, rng.normal(size=(45, 2)) + 1]))
    svg = crowded.to_svg()
    points, words = _drawn(svg, "circle", "cx", "cy"), _drawn(svg, "text")
    assert 8 <= len(words) <= 16
    half = 26 * 5.5 / 2
    assert (words[:, 0] > half - 1).all() and (words[:, 0] < 960 - half + 1).all()
    hidden = [int((np.abs(points - [x, y - 4]) < [half, 6]).all(axis=1).sum()) for x, y in words]
    assert sum(hidden) <= len(words) // 2 and max(hidden) <= 2
