"""Curating from a terminal: questions answered by key, families merged by the name of one page, names that are near."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from memoryfield import open_field
from memoryfield.cli import DONE, NOTHING, REFUSED, main
from memoryfield.curate.reviews import Reviews
from memoryfield.format.nearnames import near_names

_MODEL = ("--model", "hashing-1024")
_WINCH = "The brake of the winch slips when the lining is wet, so dry it before a boat hangs in the slings."


@pytest.fixture
def yard(tmp_path: Path) -> str:
    field = open_field(tmp_path / "yard", create=True, model="hashing-1024")
    for name, title, body in (
        ("winch-brake", "Winch brake slips", _WINCH),
        ("winch-brake-wet", "Wet lining of the winch brake", f"{_WINCH} A new lining holds."),
        ("winch-rope", "Rope of the winch", "The rope of the winch is changed each spring, before the first boat."),
        ("paint", "Paint in the shed", "Two pots of red lead stand in the shed behind the office."),
        (
            "keys",
            "Keys",
            "The key of the crane hangs in the office beside the tide table.\n\n" + "One more line.\n\n" * 12,
        ),
        ("crane-keys", "Keys of the crane", "The key of the crane hangs beside the tide table, in the office."),
    ):
        field.write(name, title=title, summary="One line.", body=body, on_similar="ignore")
    return str(field.path)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_family_is_merged_by_the_name_of_one_page(yard: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "families", yard, *_MODEL, "--quiet")
    assert code == DONE and "  winch-brake-wet  Wet lining of the winch brake" in out and "--family PAGE" in err
    code, out, err = _run(capsys, "merge", yard, "--family", "winch-brake-wet.md", *_MODEL, "--quiet")
    assert code == DONE and out.startswith("Merge 2 pages into winch-brake") and "nothing was written" in err
    code, out, _ = _run(capsys, "merge", yard, "--family", "winch-brake", *_MODEL, "--quiet", "--account")
    assert code == DONE and "nothing is missing" in out and "winch-brake-wet#" in out
    account = open_field(yard).plan_merge(["winch-brake", "winch-brake-wet"]).account()
    identity = [entry.id for entry in account if entry.text == "A new lining holds."]
    words = ["--family", "winch-brake", *_MODEL, "--quiet", "--yes"]
    code, out, _ = _run(capsys, "merge", yard, *words, "--drop", *identity)
    assert code == DONE and "undo takes it back" in out and len(identity) == 1
    assert not any("A new lining" in path.read_text() for path in Path(yard).glob("winch-*.md"))
    code, _, err = _run(capsys, "merge", yard, "--family", "paint", *_MODEL, "--quiet")
    assert code == REFUSED and "stands alone" in err
    code, _, err = _run(capsys, "merge", yard, "paint", "--family", "paint", *_MODEL)
    assert code == REFUSED and "not both" in err


def test_a_name_that_is_nearly_right_is_recognised(yard: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("show", yard, "winch"), ("merge", yard, "winch", "paint"), ("merge", yard, "--family", "winch")):
        code, _, err = _run(capsys, *words, *(_MODEL if words[0] == "merge" and "--family" in words else ()))
        assert code == REFUSED and "did you mean winch-brake or winch-brake-wet or winch-rope?" in err
    code, _, err = _run(capsys, "show", yard, "crane-kyes")
    assert code == REFUSED and "did you mean crane-keys?" in err
    assert "did you mean" not in _run(capsys, "show", yard, "zzz")[2]
    assert near_names("", ["a"]) == [] and near_names("Winch Brake.md", ["winch-brake"]) == ["winch-brake"]


def test_health_shows_a_section_whole_and_the_rest_in_short(yard: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(9):
        (Path(yard) / f"bare-{number}.md").write_text(f"Page {number} of {number * 7 + 1} says nothing {number}.\n")
    code, out, err = _run(capsys, "health", yard, *_MODEL, "--quiet")
    assert (
        code == NOTHING
        and out.count("no title and no heading") == 5
        and "untitled: 4 more" in out
        and "--section" in err
    )
    assert out.count("add title to the") == 1  # said once, not for each page
    code, out, _ = _run(capsys, "health", yard, *_MODEL, "--quiet", "--section", "untitled")
    assert code == NOTHING and out.count("no title and no heading") == 9 and "9 things" in out and "near-dup" not in out
    assert _run(capsys, "health", yard, *_MODEL, "--quiet", "--section", "secrets")[0] == DONE
    assert "near-duplicates" in _run(capsys, "health", yard, *_MODEL, "--quiet", "--section", "x")[2]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.flaky(reruns=2)  # a terminal forked from a process with many threads ended once before it said a word
def test_review_by_keyboard_alone(yard: str) -> None:
    """In a real terminal: yes, a slip of the finger, back, no, more of both pages, and the end of the input."""
    pexpect = pytest.importorskip("pexpect")
    words = ["-m", "memoryfield.cli", "review", yard, *_MODEL, "--quiet", "--questions", "5"]
    child = pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=120, dimensions=(40, 120))
    seen = []
    try:
        for key in ("b", "y", "wat", "b", "n", "m", "s", "\x04"):
            child.expect("q quit")
            seen.append(child.before)
            child.send(key if key == "\x04" else key + "\r")
        child.expect(pexpect.EOF)
        seen.append(child.before)
    finally:
        child.close()
    assert child.exitstatus in (DONE, NOTHING)
    text = "".join(seen)
    assert "question 1 of 5" in text and "no answer was given yet" in text and "'wat' is no answer" in text
    assert "is taken back" in text and text.count("question 2 of 5") >= 2 and "1 answer" in seen[-1]
    (kept,) = Reviews.load(Path(yard))
    assert not kept.same


def test_pairs_stand_below_the_families_in_a_table_that_can_be_read(
    yard: str, capsys: pytest.CaptureFixture[str]
) -> None:
    families = _run(capsys, "families", yard, *_MODEL, "--quiet")[1]
    code, out, _ = _run(capsys, "families", yard, *_MODEL, "--pairs", "--quiet")
    assert code == DONE and out.startswith(families)
    table = out.removeprefix(families).strip().splitlines()
    assert table[0].endswith((" pair", " pairs")) and table[1].split() == ["likely", "page", "other", "page", "why"]
    assert all("%" in line for line in table[2:] if not line.strip().startswith("...")) and len(table) > 2
    assert any("winch-brake-wet" in line and "winch-brake " in line for line in table)
    assert max(map(len, table)) <= 2 + 6 + 2 + 60 + 2 + 60 + 2 + 80
    listed = json.loads(_run(capsys, "families", yard, *_MODEL, "--pairs", "--json")[1])["pairs"]
    assert {"first", "second", "probability", "reasons"} <= listed[0].keys()
    assert "pairs" not in json.loads(_run(capsys, "families", yard, *_MODEL, "--json")[1])


def test_evidence_of_pairs_does_not_act_on_the_terminal(yard: str, capsys: pytest.CaptureFixture[str]) -> None:
    field = open_field(yard, model="hashing-1024")
    for name in ("bell", "bell-again"):
        field.write(name, title="Bell \x1b[2J\u202eof the yard", body="The bell rings at noon.", on_similar="ignore")
    _, out, _ = _run(capsys, "families", yard, *_MODEL, "--pairs", "--quiet")
    assert "same title" in out and "\\x1b[2J" in out and "\x1b" not in out and "\u202e" not in out
