"""What a plan and a report of an import show: what is new, what is left out, said once, and where all of it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.cli import main


@pytest.fixture
def album(tmp_path: Path) -> Path:
    root = tmp_path / "album"
    (root / "files").mkdir(parents=True)
    (root / "files" / "Scan 1.png").write_bytes(b"\x89PNG")
    (root / "plan.pdf").write_bytes(b"%PDF")
    (root / "One.md").write_text("![[scan 1.png]] and again ![[Scan 1.png|200]], ![[lost.png]]\n")
    (root / "Two.md").write_text("![x](files/Scan%201.png) ![y](lost.png)\n")
    (root / "files" / "Three.md").write_text("![x](Scan%201.png) [[files/scan 1.png]] [[Nowhere]] [[Nowhere]]\n")
    return root


def test_a_file_that_is_no_page_is_one_line_with_how_many_pages_show_it(album: Path, tmp_path: Path) -> None:
    plan = mf.import_field(album, tmp_path / "field", dry_run=True)
    said = {(item.where, item.reason) for item in plan.unread if not item.is_link}
    assert said == {("files/Scan 1.png", "no Markdown; 3 pages show it"), ("plan.pdf", "no Markdown")}
    # a file that is not there is missed by each page that means it, and once
    dead = [(item.where, item.reason.split(" leads")[0]) for item in plan.unread if item.is_link]
    assert sorted(dead) == [("One.md", "the link to 'lost.png'"), ("files/Three.md", "the link to 'Nowhere'")]


def test_a_link_that_leads_nowhere_does_not_read_as_a_page_left_out(album: Path, tmp_path: Path) -> None:
    shown = repr(mf.import_field(album, tmp_path / "field"))
    assert "in One.md, the link to 'lost.png' leads to no page of the source" in shown
    assert "left out: One.md" not in shown and "left out: plan.pdf: no Markdown" in shown


def test_a_new_name_is_said_once_beside_where_it_is_from(album: Path, tmp_path: Path) -> None:
    plan = mf.import_field(album, tmp_path / "field", dry_run=True)
    assert {item.name: item.where for item in plan}["three"] == "files/Three.md"
    assert "renamed" not in repr(plan) and repr(plan).count("files/Three.md") == 2  # its row, and its link


def _memory(place: Path, sections: int) -> Path:
    path = place / "MEMORY.md"
    path.write_text("".join(f"## Section {n:02}\n\nText {n}.\n\n" for n in range(sections)))
    return path


def _records(place: Path, several: int) -> Path:
    path = place / "facts.jsonl"
    path.write_text("".join(json.dumps({"id": n, "memory": f"Section {n:02}"}) + "\n" for n in range(several)))
    return path


def _mem0(place: Path, several: int) -> Path:
    path = place / "mem0.json"
    path.write_text(json.dumps({"results": [{"id": n, "memory": f"Section {n:02}"} for n in range(several)]}))
    return path


@pytest.mark.parametrize("make", [_memory, _records, _mem0])
def test_a_dry_run_names_the_new_pages(make: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(make)
    source, goal = make(tmp_path, 23), tmp_path / "field"
    shown = repr(mf.import_field(source, goal, dry_run=True))
    assert "section-00" in shown and "section-19" in shown and "section-20" not in shown
    assert "... and 3 more; to_frame() lists them all" in shown
    assert main(["import", str(source), str(goal), "--dry-run"]) == 0
    assert "... and 3 more; --json lists them all" in capsys.readouterr().out
    assert main(["import", str(source), str(goal), "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 23
    mf.import_field(source, goal)
    assert "section-00" not in repr(mf.import_field(source, goal))  # nothing new, nothing listed


def test_what_is_to_be_read_comes_before_the_names(tmp_path: Path) -> None:
    root, goal = tmp_path / "vault", tmp_path / "field"
    (root / "in").mkdir(parents=True)
    (root / "in" / "zz.md").write_text("one\n")
    mf.import_field(root, goal)
    (goal / "zz.md").write_text("mine\n")
    (root / "in" / "zz.md").write_text("two\n")
    for number in range(25):
        (root / "in" / f"n{number:02}.md").write_text(f"Text {number}.\n")
    first = repr(mf.import_field(root, goal, dry_run=True)).splitlines()[2]
    assert first.split()[:2] == ["zz", "conflict"]


def test_each_list_that_is_cut_says_where_all_of_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "vault"
    (root / "in").mkdir(parents=True)
    (root / "in" / "page.md").write_text("".join(f"[[Gone {n}]]\n" for n in range(22)))
    for number in range(21):
        (root / f"{number}.png").touch()
    shown = repr(plan := mf.import_field(root, tmp_path / "field", dry_run=True))
    assert "left out: 1 more; unread lists them all" in shown
    assert "links that lead to no page: 2 more; unread lists them all" in shown
    assert len(plan.unread) == 43
    assert main(["import", str(root), str(tmp_path / "field"), "--dry-run"]) == 0
    assert capsys.readouterr().out.count("more; --json lists them all") == 2
