"""The map without a browser: selections, colours, layouts, what is told to a view and what stays in a notebook."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import memoryfield as mf
from memoryfield_widgets import MemoryMap, State

Told = list[tuple[dict[str, Any], list[Any]]]


@pytest.fixture
def map_(state: State) -> Iterator[MemoryMap]:
    made = MemoryMap(state)
    assert made.wait()
    yield made
    made.close()


def kinds(told: Told) -> list[str]:
    return [content["kind"] for content, _ in told]


def last(told: Told, kind: str) -> tuple[dict[str, Any], list[Any]]:
    return [message for message in told if message[0]["kind"] == kind][-1]


def test_it_shows_all_pages_and_selects_by_name(map_: MemoryMap) -> None:
    assert map_.positions.names == tuple(map_.field.names())
    assert map_.positions.method == "pca"  # twelve pages are too few for UMAP
    assert map_.select(["page-03", "page-01.md"]) == ("page-03", "page-01")
    assert map_.select("page-02", "add") == ("page-03", "page-01", "page-02")
    assert map_.select(["page-01"], "remove") == map_.selected == ("page-03", "page-02")
    map_.selected = "page-05"
    assert map_.state.selected == ("page-05",)


def test_wrong_arguments_say_what_is_right(map_: MemoryMap) -> None:
    with pytest.raises(mf.errors.PageNotFound, match="no page 'nobody'"):
        map_.select(["page-01", "nobody"])
    assert map_.selected == ()
    with pytest.raises(mf.errors.QueryError, match="replace, add, remove"):
        map_.select([], "toggle")
    with pytest.raises(mf.errors.QueryError, match="similarity"):
        map_.color_by = "no such key"
    with pytest.raises(mf.errors.QueryError, match="labels, families, pairs"):
        map_.show(everything=True)
    with pytest.raises(mf.errors.QueryError, match="auto, pca, umap"):
        MemoryMap(map_.state, method="tsne")


def test_a_view_that_appears_is_told_everything(
    map_: MemoryMap, hear: Callable[..., None], told: Callable[..., Told]
) -> None:
    sent = told(map_)
    hear(map_, "hello", view="v")
    assert kinds(sent)[:3] == ["options", "points", "texts"]
    assert {"labels", "selection", "active", "hits", "colors", "pairs"} <= set(kinds(sent))
    content, buffers = last(sent, "points")
    xy = np.frombuffer(buffers[0], dtype=np.float32).reshape(-1, 2)
    assert xy.shape == (12, 2) and np.abs(xy).max() == pytest.approx(1.0, abs=1e-5)
    assert content["version"] == last(sent, "texts")[0]["version"]


def test_a_selection_of_a_view_is_answered(
    map_: MemoryMap, hear: Callable[..., None], told: Callable[..., Told]
) -> None:
    sent = told(map_)

    def select(rows: list[int], how: str, seq: int, version: int | None = None) -> None:
        content = {"kind": "select", "how": how, "view": "v", "seq": seq, "version": version or map_._version}
        map_._handle_custom_msg(content, [memoryview(np.array(rows, dtype=np.int32).tobytes())])

    select([1, 2], "replace", 1)
    select([5], "add", 2)
    select([1], "remove", 3)
    select([2, 5], "replace", 4)  # the same again: answered all the same
    assert map_.selected == ("page-02", "page-05")
    assert [content["seq"] for content, _ in sent if content["kind"] == "selection"] == [1, 2, 3, 4]
    assert np.frombuffer(last(sent, "selection")[1][0], dtype=np.int32).tolist() == [2, 5]
    select([1], "replace", 5, version=99)
    assert "select again" in map_.state.error
    select([-1, 4000], "replace", 6)
    assert map_.selected == ()


def test_selections_from_several_threads_are_all_kept(map_: MemoryMap) -> None:
    names = map_.field.names()
    threads = [threading.Thread(target=map_.select, args=([name], "add")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map_.selected) == names


def test_a_click_opens_and_a_card_tells(map_: MemoryMap, hear: Callable[..., None], told: Callable[..., Told]) -> None:
    sent = told(map_)
    hear(map_, "open", version=map_._version, row=3)
    assert map_.state.active == "page-03"
    assert last(sent, "active")[0]["row"] == 3
    hear(map_, "card", version=map_._version, row=3)
    card = last(sent, "card")[0]
    assert card["summary"] == "What we know of the night ferry timetable."
    assert card["created"] == "2026-01-04"
    hear(map_, "card", version=map_._version, row=99)
    hear(map_, "open", version=map_._version, row=-5)
    assert map_.state.error == ""


@pytest.mark.parametrize("by", ["none", "region", "family", "created", "updated", "size", "topic", "similarity"])
def test_every_colouring_fits_the_points(map_: MemoryMap, told: Callable[..., Told], by: str) -> None:
    sent = told(map_)
    map_.state.query = "winch brake"
    map_.color_by = by
    assert map_.wait()
    content, buffers = last(sent, "colors")
    assert map_.state.error == ""
    sizes = {"none": [], "categories": [12, 12], "sequence": [48]}[content["scale"]]
    assert [len(buffer) for buffer in buffers] == sizes
    json.dumps(content, allow_nan=False)


def test_a_frontmatter_key_colours_by_value_and_shape(map_: MemoryMap) -> None:
    map_.color_by = "topic"
    assert map_.wait()
    assert [(entry.text, entry.count) for entry in map_.legend] == [
        ("harbour", 3),
        ("night", 3),
        ("sour", 3),
        ("winch", 3),
    ]
    assert len({(entry.color, entry.shape) for entry in map_.legend}) == 4


def test_a_question_recolours_and_numbers_the_hits(map_: MemoryMap, told: Callable[..., Told]) -> None:
    sent = told(map_)
    map_.state.ask("winch brake lining", retriever="vector", k=3, delay=0)
    assert map_.wait()
    content, buffers = last(sent, "colors")
    assert content["by"] == "similarity" and "winch brake lining" in content["title"]
    values = np.frombuffer(buffers[0], dtype=np.float32)
    best = [int(name[-2:]) for name in map_.state.hits.names]
    assert last(sent, "hits")[0]["rows"] == best
    assert set(np.argsort(-values)[:3].tolist()) == set(best)
    map_.state.ask("", delay=0)
    assert map_.wait()
    assert last(sent, "colors")[0]["by"] == "region"
    assert last(sent, "hits")[0]["rows"] == []


def test_an_edited_page_moves_alone_and_a_new_one_finds_its_place(map_: MemoryMap, told: Callable[..., Told]) -> None:
    before = map_.positions
    map_.select(["page-02", "page-09"])
    sent = told(map_)
    map_.field.edit("page-00", title="Sour dough starter", body="Sour dough starter, flour and water.")
    map_.field.write("page-99", title="Sour dough starter 99", body="Sour dough starter.", on_similar="ignore")
    map_.field.delete("page-11")
    map_.state.wrote("three changes")
    assert map_.wait()
    after = map_.positions
    stays = [name for name in before.names if name not in ("page-00", "page-11")]
    rows = [[layout.names.index(name) for name in stays] for layout in (before, after)]
    assert np.array_equal(before.xy[rows[0]], after.xy[rows[1]])
    content, buffers = last(sent, "points")
    assert content["kept"] is True and content["count"] == 12
    assert np.frombuffer(buffers[1], dtype=np.int32).tolist()[-1] == -1  # the new page comes from nowhere
    assert map_.selected == ("page-02", "page-09")
    assert np.frombuffer(last(sent, "selection")[1][0], dtype=np.int32).tolist() == [2, 9]


def test_families_and_pairs_on_demand(map_: MemoryMap, told: Callable[..., Told]) -> None:
    text = "The night watch counts the fenders at four in the morning and writes the number on the slate by the door."
    for number in range(2):
        map_.field.write(f"fenders-{number}", title="Counting fenders", body=text, on_similar="ignore")
    map_.state.wrote()
    assert map_.wait()
    sent = told(map_)
    map_.show(families=True, pairs=True)
    assert map_.wait()
    assert map_.state.error == ""
    assert {"fenders-0", "fenders-1"} <= set(map_._colorist.family_of("fenders-0"))
    groups = last(sent, "hulls")[0]["groups"]
    assert groups and all(len(group["rows"]) > 1 for group in groups)
    rows, strength = last(sent, "pairs")[1]
    assert len(rows) == 2 * len(strength) > 0
    map_.show(families=False, pairs=False)
    assert last(sent, "hulls")[0]["groups"] == []
    assert last(sent, "pairs")[1] == [b"", b""]


def test_labels_can_be_read(map_: MemoryMap) -> None:
    assert map_.labels
    assert {label.level for label in map_.labels} <= {1, 2}
    named = {name for label in map_.labels if label.level == 1 for name in label.names}
    assert named <= set(map_.field.names())


def test_the_saved_notebook_keeps_a_picture_and_little_state(map_: MemoryMap) -> None:
    data, _ = map_._repr_mimebundle_()
    twin = data["text/html"]
    assert twin.count("<svg") == 1 and "Map of notes: 12 pages" in twin
    assert "<script" not in twin and "onerror" not in twin
    state = map_.get_state()
    assert sum(len(value) if isinstance(value, bytes | str) else 0 for value in state.values()) < 120_000


def test_it_says_which_page_is_not_on_it(
    field: mf.MemoryField, hear: Callable[..., None], told: Callable[..., Told]
) -> None:
    field.write("index", title="Index", summary="All pages.", body="See [one](page-01.md).")
    map_ = MemoryMap(field)
    assert map_.wait() and len(field) == 13
    sent = told(map_)
    hear(map_, "hello", view="v")
    content, _ = last(sent, "points")
    assert content["count"] == 12 and content["caption"].startswith("12 pages; index.md is not on it. PCA of ")
    assert "Map of notes: 12 pages; index.md is not on it" in map_.twin()


def test_hostile_titles_stay_text(map_: MemoryMap) -> None:
    for number in range(4):
        map_.field.write(
            f"evil-{number}",
            title="<img src=x onerror=alert(1)> $x$ `y`",
            summary="</svg><script>alert(2)</script>",
            body=f"evil words {number} " * 5,
            on_similar="ignore",
        )
    map_.state.wrote()
    assert map_.wait()
    map_.color_by = "region"
    assert map_.wait()
    twin = map_.twin()
    assert "<img" not in twin and "<script" not in twin and "$" not in twin


def test_a_field_without_pages_and_with_one(tmp_path: Any) -> None:
    field = mf.open_field(tmp_path / "empty", create=True, model="hashing-1024")
    empty = MemoryMap(field)
    assert empty.wait()
    assert empty.state.error == ""
    assert "0 pages" in empty.twin()
    field.write("one", title="One", body="Only one page.")
    empty.state.wrote()
    assert empty.wait()
    assert empty.positions.names == ("one",)
    assert empty.state.error == ""
    empty.show(families=True, pairs=True)
    assert empty.wait()


def test_a_model_that_is_not_ready_says_so_in_the_status(field: mf.MemoryField) -> None:
    made = MemoryMap(mf.open_field(field.path, model="no-such/model-anywhere"))
    assert made.wait()
    assert "model-anywhere cannot be loaded" in made.state.error
    assert made.positions is None
    assert "still being made" in made.twin()


def test_a_map_that_nobody_sees_rests_until_it_is_seen_again(
    map_: MemoryMap, hear: Callable[..., None], told: Callable[..., Told]
) -> None:
    hear(map_, "hello", view="one")
    hear(map_, "hello", view="two")
    hear(map_, "bye", view="one")
    assert map_.wait()
    sent = told(map_)
    map_.state.wrote()
    assert map_.wait()
    assert "points" in kinds(sent)  # the other view is still there
    hear(map_, "bye", view="two")
    sent.clear()
    map_.field.write("page-50", title="Fifty", on_similar="ignore")
    map_.state.wrote()
    map_.state.ask("winch", retriever="keyword", delay=0)
    assert map_.wait()
    assert not {"points", "colors"} & set(kinds(sent))
    hear(map_, "hello", view="three")
    assert map_.wait()
    assert last(sent, "points")[0]["count"] == 13
    assert last(sent, "colors")[0]["by"] == "similarity"


def test_a_closed_map_leaves_no_work_behind(state: State) -> None:
    made = MemoryMap(state)
    made.show(pairs=True)
    made.close()
    assert state.jobs.wait()
    before = state.busy
    state.wrote()
    assert state.busy == before == ()


def test_an_edit_while_umap_runs_is_not_lost_with_it(field: mf.MemoryField) -> None:
    for number in range(12, 30):
        field.write(
            f"page-{number}", title=f"Anchor chain {number}", body="Links of chain. " * number, on_similar="ignore"
        )
    go, begun = threading.Event(), threading.Event()
    state = State.of(field)
    # the long lane is kept busy, so that UMAP waits with the pages as they are
    state.jobs.start("other", lambda job: (begun.set(), go.wait(60)), long=True)
    assert begun.wait(60)
    made = MemoryMap(state)
    while not state.jobs.has(f"umap {made._me}"):
        assert not state.error
        begun.wait(0.01)
    field.write("page-99", title="Later", on_similar="ignore")
    state.wrote()
    go.set()
    assert made.wait()
    assert "page-99" in made.positions.names
    assert made.positions.method == "umap"


def test_another_recipe_lays_the_map_out_anew(map_: MemoryMap) -> None:
    map_.state.recipe = "content"
    assert map_.wait()
    assert map_.positions.recipe == "content"
    map_.state.wrote()
    assert map_.wait()
    assert map_.state.error == ""
