"""MemoryField: what a researcher writes, on real files with a real model without weights."""

from __future__ import annotations

import html
import json
import os
import re
import threading
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.errors import (
    FieldNotFound,
    PageChanged,
    PageExists,
    PageNotFound,
    QueryError,
    ReadOnlyField,
)

PAGES = {
    "winch-brake": ("Winch brake slips", "The brake lining of the winch was worn; a new one holds again."),
    "tide-limit": ("Tide limit of the slip", "Boats over two metres of draught need four metres of tide on the slip."),
    "label-printer": ("Label printer skips", "Calibrate the gap after every new roll, then blank labels stop."),
    "brake-again": (
        "Winch brake slips again",
        "The brake lining of the winch was worn; a new one holds again, as before.",
    ),
}


def _field(path: Path, count: int = 4) -> mf.MemoryField:
    field = mf.open_field(path, create=True, model="hashing-1024")
    for name, (title, body) in list(PAGES.items())[:count]:
        field.write(name, title=title, body=body, tags=["yard", name[:1]])
    return field


def test_open_write_read_edit_rename_delete(tmp_path: Path) -> None:
    field = _field(tmp_path / "notes")
    assert field.name == "notes" and not field.read_only
    assert len(field) == 4 and "tide-limit" in field and "tide-limit.md" in field and list(field) == sorted(PAGES)
    page = field["winch-brake.md"]
    assert page.title == "Winch brake slips" and page.uuid
    edited = field.edit("winch-brake", summary="Worn lining.", keys={"status": "done"}, if_sha256=page.sha256)
    assert edited.summary == "Worn lining." and edited.frontmatter["status"] == "done" and edited.uuid == page.uuid
    with pytest.raises(PageChanged, match="winch-brake"):
        field.edit("winch-brake", append="late", if_sha256=page.sha256)
    field.edit("tide-limit", append="See [the brake](winch-brake.md).")
    assert field.rename("winch-brake", "slip-winch-brake").uuid == page.uuid
    assert "(slip-winch-brake.md)" in field["tide-limit"].body
    assert field.delete("slip-winch-brake").uuid == page.uuid
    with pytest.raises(PageNotFound):
        field.read("slip-winch-brake")


def test_write_never_replaces_a_page(tmp_path: Path) -> None:
    field = _field(tmp_path)
    before = field["tide-limit"].raw
    with pytest.raises(PageExists):
        field.write("tide-limit", title="Other", body="Other")
    with pytest.raises(PageExists):
        field.put("tide-limit", b"other\n")
    assert field["tide-limit"].raw == before
    assert field.write(title="Tide limit", body="A second page").name == "tide-limit-2"
    assert field.put("raw-page", b"plain\n").raw == b"plain\n"
    page = field.put("raw-page", b"other\n", if_sha256=field["raw-page"].sha256)
    assert page.raw == b"other\n"
    assert field.put("raw-page", b"third\n", replace=True).raw == b"third\n"


def test_sync_search_near_and_layout(tmp_path: Path) -> None:
    field = _field(tmp_path)
    report = field.sync(progress=False)
    assert set(report.added) == set(PAGES)
    assert set(field.sync(progress=False).unchanged) == set(PAGES)
    for retriever in ("vector", "keyword", "hybrid"):
        results = field.search("calibrate the gap of the label printer after every new roll", k=2, retriever=retriever)
        assert results[0].name == "label-printer", retriever
    pairs = field.near_duplicates(0.6)
    assert (pairs[0].first, pairs[0].second) == ("brake-again", "winch-brake")
    layout = field.layout()
    assert layout.names == tuple(sorted(PAGES)) and layout.method == "pca"
    assert "Winch brake slips" in layout.to_svg()


def test_search_sees_what_others_write_at_once_X10(tmp_path: Path) -> None:
    field = _field(tmp_path)
    assert field.search("brake", k=1).names
    (tmp_path / "sauna.md").write_bytes("---\ntitle: Sauna stove\n---\nThe löyly needs birch wood.\n".encode())
    (tmp_path / "winch-brake.md").unlink()
    for retriever in ("vector", "keyword", "hybrid"):
        assert field.search("birch wood for the sauna stove", k=1, retriever=retriever)[0].name == "sauna"
        assert "winch-brake" not in field.search("winch brake lining worn", k=5, retriever=retriever).names


def test_filters_and_several_fields(tmp_path: Path) -> None:
    one = _field(tmp_path / "one")
    two = mf.open_field(tmp_path / "two", create=True, model="hashing-1024")
    two.write("other-brake", title="Bicycle brake", body="The brake lining of the bicycle was worn.")
    found = mf.search_fields([one, two], "worn brake lining", k=5)
    assert {(hit.field, hit.name) for hit in found} >= {("one", "winch-brake"), ("two", "other-brake")}
    assert one.search("brake", where={"tags": "b"}).names == ["brake-again"]
    assert one.select({"tags": ["l", "t"]}) == ["label-printer", "tide-limit"]
    assert one.select(since="2999-01-01") == []
    assert "filter" in one.search("brake", where={"tags": "none"}).reason
    assert "min_score" in one.search("brake", min_score=99).reason


def test_special_pages_are_found_but_never_near_duplicates_P5(tmp_path: Path) -> None:
    field = _field(tmp_path)
    text = field["tide-limit"].raw
    (tmp_path / "index.md").write_bytes(text)
    assert "index" in field.search("tide limit slip draught", k=3).names
    assert all("index" not in (pair.first, pair.second) for pair in field.near_duplicates(0.5))
    assert "index" not in field.layout().names


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_empty_and_tiny_fields(tmp_path: Path, count: int) -> None:
    field = _field(tmp_path, count)
    assert len(field.sync(progress=False).added) == count
    results = field.search("brake")
    assert len(results) <= count and (count or "nothing saved yet" in results.reason)
    assert len(field.near_duplicates()) == 0
    assert len(field.layout()) == count
    assert f"{count} page" in repr(field)
    assert len(field.validate().by_level("error")) == 0
    field.export(tmp_path / "out.memoryfield.zip")


def test_repr_and_html_say_the_same_and_nothing_runs(tmp_path: Path) -> None:
    field = _field(tmp_path)
    field.write(
        "evil", title="<img src=x onerror=alert(1)>", summary="$x$ </textarea><script>", body="<script>1</script>"
    )
    field.sync(progress=False)
    for shown in (field, field["evil"], field.search("alert onerror"), field.validate(), field.sync(progress=False)):
        text, markup = repr(shown), shown._repr_html_()
        assert "<script" not in markup and "<img" not in markup and "$x$" not in markup
        assert text
    text, seen = repr(field), html.unescape(re.sub("<[^>]+>", " ", field._repr_html_()))
    for part in ("5 pages", "hashing-1024", "1024", "up to date", "findings"):
        assert part in text and part in seen
    (tmp_path / "late.md").write_text("late\n")
    assert "1 page behind" in repr(field)


def test_a_field_without_index_says_how_to_make_one(tmp_path: Path) -> None:
    assert "sync()" in repr(_field(tmp_path))


def test_archive_is_searched_in_place_and_read_only_A4(tmp_path: Path) -> None:
    field = _field(tmp_path / "notes")
    field.sync(progress=False)
    report = field.export(tmp_path, indexes=True)
    assert report.path.name == "notes.memoryfield.zip"
    before = report.path.read_bytes()
    archive = mf.open_field(report.path, model="hashing-1024")
    assert archive.read_only and archive.name == "notes" and len(archive) == 4
    assert archive.search("blank labels", k=1).names == ["label-printer"]
    assert len(archive.validate()) >= 0 and "read only" in repr(archive)
    for act in (
        lambda: archive.write("x", body="y"),
        lambda: archive.edit("tide-limit", append="y"),
        lambda: archive.rename("tide-limit", "z"),
        lambda: archive.delete("tide-limit"),
        lambda: archive.put("x", b"y"),
        lambda: archive.plan_fixes(),
    ):
        with pytest.raises(ReadOnlyField, match="import"):
            act()
    assert report.path.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == [
        "notes",
        "notes.memoryfield.zip",
        "notes.memoryfield.zip.sha256",
    ]


def test_import_field_of_archive_and_folder(tmp_path: Path) -> None:
    field = _field(tmp_path / "notes")
    archive = field.export(tmp_path / "n.memoryfield.zip").path
    assert len(mf.import_field(archive, tmp_path / "copy").added) == 4
    assert len(mf.import_field(tmp_path / "notes", tmp_path / "third").added) == 4
    for _ in range(2):
        again = mf.import_field(tmp_path / "notes", tmp_path / "third")
        assert not again.added and len(again.unchanged) == 4 and "0 pages added" in repr(again)
    with pytest.raises(QueryError):
        mf.import_field(tmp_path / "notes", tmp_path / "third", sha256="0" * 64)


def test_progress_is_a_function_of_done_and_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    _field(tmp_path).sync(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_progress_bar_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _field(tmp_path).sync()
    captured = capsys.readouterr()
    assert captured.out == "" and "pages" in captured.err


def test_calls_from_another_thread(tmp_path: Path) -> None:
    field = _field(tmp_path)
    field.search("brake")
    problems: list[BaseException] = []

    def work() -> None:
        try:
            field.write("from-thread", title="Thread", body="written in a thread about kelp")
            assert field.search("kelp", k=1)[0].name == "from-thread"
            field.near_duplicates()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_odd_directory_names_X12(tmp_path: Path) -> None:
    for name in ("a b", "q?#%20", 'it\'s "quoted"', "漢字-é"):
        field = _field(tmp_path / name)
        field.sync(progress=False)
        assert field.search("blank labels", k=1)[0].name == "label-printer"
        with field.export(tmp_path / f"{name}.memoryfield.zip").path.open("rb") as file:
            assert file.read(2) == b"PK"


def test_nothing_of_ours_but_the_index_in_the_directory_X8(tmp_path: Path) -> None:
    field = _field(tmp_path)
    field.search("brake")
    field.layout()
    field.validate()
    assert {p.name for p in tmp_path.iterdir()} == {f"{n}.md" for n in PAGES} | {"hashing-1024.sqlite3"}


def test_missing_place_and_unknown_model(tmp_path: Path) -> None:
    with pytest.raises(FieldNotFound):
        mf.open_field(tmp_path / "none")
    with pytest.raises(mf.MemoryfieldError, match="no-such-model"):
        mf.open_field(tmp_path, model="no-such-model").sync()


def test_model_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_MODEL", "hashing-1024")
    with mf.open_field(tmp_path, create=True) as field:
        field.write("a", body="words here")
        assert field.sync(progress=False).model_code == "hashing-1024"


def test_results_are_ready_for_json_and_frames(tmp_path: Path) -> None:
    field = _field(tmp_path)
    for result in (field.sync(progress=False), field.search("brake"), field.near_duplicates(0.5)):
        json.dumps(result.to_dict(), allow_nan=False)
        assert len(result.to_frame()) >= 1
    json.dumps([page.to_dict() for page in field.pages()] + [state.to_dict() for state in field.indexes()])


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permission bits do not bind this user")
def test_directory_without_write_permission_is_searched_from_the_cache(tmp_path: Path) -> None:
    field = _field(tmp_path)
    tmp_path.chmod(0o555)
    try:
        assert mf.open_field(tmp_path, model="hashing-1024").search("brake", k=1).names
        with pytest.raises(ReadOnlyField):
            field.write("x", body="y")
    finally:
        tmp_path.chmod(0o755)
