"""Probes: values, files from strangers, and what a check says about them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memoryfield as mf
from memoryfield.errors import InvalidName, MemoryfieldError, QueryError, RowError
from memoryfield.examples import example_field
from memoryfield.format.directory import PageDirectory
from memoryfield.study.evaluation.groups import Groups
from memoryfield.study.probes import Probe, Probes, read_probes

DATA = example_field("harbor").parent


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    folder = tmp_path / "field"
    folder.mkdir()
    (folder / "anchor.md").write_text("---\ntitle: Anchors\n---\nDrop the anchor slowly into the soft grey mud.\n")
    (folder / "bread.md").write_text("---\ntitle: Bread\n---\nLet the dough rise overnight under a cloth.\n")
    return PageDirectory(folder)


def written(tmp_path: Path, text: str | bytes, name: str = "probes.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# ---- values


def test_the_face_has_them() -> None:
    assert mf.Probe is Probe
    assert mf.read_probes is read_probes


def test_gold_is_taken_with_or_without_the_ending() -> None:
    assert Probe("a", "q", frozenset(["anchor.md", "anchor"])).gold == {"anchor"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": 3},
        {"question": " \n"},
        {"question": None},
        {"question": "x" * 20_001},
        {"question": "half \ud800 of one"},
        {"gold": "anchor"},
        {"gold": 5},
        {"gold": ["../etc/passwd"]},
        {"gold": [None]},
        {"gold": ["anchor"], "answerable": False},
        {"answerable": "no"},
        {"category": 1},
    ],
)
def test_what_is_no_probe_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((QueryError, InvalidName)):
        Probe(**{"id": "a", "question": "q", **wrong})  # type: ignore[arg-type]


def test_probes_are_a_sequence_that_shows_itself() -> None:
    probes = Probes([Probe("a", "why <b>$x$</b>\x1b[31m?", ["anchor"]), Probe("b", "what", answerable=False)])
    assert len(probes) == 2 and probes[0].id == "a" and len(probes[:1]) == 1
    assert "1 of them unanswerable" in repr(probes) and "\x1b" not in repr(probes)
    html = probes._repr_html_()
    assert "<b>" not in html and "$x$" not in html and "(no page answers it)" in html
    assert list(probes.to_frame()["gold"]) == [["anchor"], []]
    assert (probes + Probes([Probe("c", "q", ["x"])])).categories == {"": 3}


def test_the_digest_does_not_depend_on_the_order() -> None:
    one, two = Probe("a", "q", ["x", "y"]), Probe("b", "p", ["y"])
    assert Probes([one, two]).digest == Probes([two, one]).digest != Probes([one]).digest


def test_gold_pages_follow_a_merge() -> None:
    probes = Probes([Probe("a", "q", ["old", "other"])]).with_gold_renamed({"old.md": "new"})
    assert probes[0].gold == {"new", "other"}


# ---- files


def test_the_example_files_are_read() -> None:
    probes = read_probes(DATA / "harbor.probes.jsonl")
    assert len(probes) == 130 and sum(not probe.answerable for probe in probes) == 24
    assert probes[0].gold == {"anselm-quire-phone-only", "reaching-mr-quire"}


def test_jsonl_says_what_it_means(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "question": "one", "gold": "anchor.md"},
        {"question": "two", "gold": [], "more": {"deep": [1]}},
        {"id": "c", "question": "three", "gold": ["a"], "answerable": True, "family_gold": ["a", "b.md"]},
        {"id": "d", "question": "four", "answerable": True},
    ]
    text = "\ufeff" + "\r\n\n".join(json.dumps(row) for row in rows)
    probes = read_probes(written(tmp_path, text))
    assert [probe.answerable for probe in probes] == [True, False, True, True]
    assert probes[0].id == "7" and probes[1].id.startswith("q-") and probes[2].family_gold == {"a", "b"}
    assert not probes[3].counts


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_what_is_saved_is_read_back(tmp_path: Path, ending: str) -> None:
    probes = read_probes(DATA / "harbor.probes.jsonl").with_families(DATA / "harbor.families.csv")
    odd = Probe("odd", 'a "quoted", text;\nwith lines | and = formulas', ["a", "b"], "ca,t", family_gold=["c"])
    probes += Probes([odd, Probe("open", "not labelled yet")])
    path = tmp_path / f"out{ending}"
    probes.save(path)
    assert read_probes(path) == probes
    probes[:2].save(path)  # a file of probes may be replaced
    assert len(read_probes(path)) == 2


@given(st.lists(st.tuples(st.text(min_size=1), st.booleans()), max_size=5))
@settings(max_examples=40, deadline=None)
def test_any_question_survives_both_forms(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("probes")
    probes = []
    for number, (question, answerable) in enumerate(rows):
        try:
            probes.append(Probe(f"p{number}", question, ["a"] if answerable else [], answerable=answerable))
        except QueryError:
            continue
    for ending in (".jsonl", ".csv"):
        Probes(probes).save(folder / f"x{ending}")
        if ending == ".jsonl" or probes:
            assert list(read_probes(folder / f"x{ending}")) == probes


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"question": "a"}\n{"question"', 2, "no JSON"),
        ('{"question": "a"}\n\n[1]', 3, "holds a list"),
        ('{"id": "a"}', 1, "no question"),
        ('{"question": ""}', 1, "empty"),
        ('{"question": 5}', 1, "has to be text"),
        ('{"question": "a", "gold": {"x": 1}}', 1, "cannot be a page name|list of page names"),
        ('{"question": "a", "gold": 4}', 1, "list of page names"),
        ('{"question": "a", "gold": ["A B"]}', 1, "cannot be a page name"),
        ('{"question": "a", "gold": [["x"]]}', 1, "name is a text"),
        ('{"question": "a", "gold": ["x"], "answerable": false}', 1, "one of the two is wrong"),
        ('{"question": "a", "answerable": NaN}', 1, "answerable"),
        ('{"id": NaN, "question": "a"}', 1, "the id is nan"),
        ('{"id": true, "question": "a"}', 1, "the id is True"),
        ('{"id": "a", "question": "x"}\n{"id": "a", "question": "y"}', 2, "stands in line 1"),
        ("[" * 100_000, 1, "nested too deeply|no JSON"),
        ('{"question": "a", "id": ' + "9" * 5000 + "}", 1, "too long|at most"),
        (b'{"question": "a"}\n{"question": "\xff"}', 2, "not UTF-8"),
        (b"\x00\x00", 1, "no JSON"),
    ],
)
def test_hostile_lines_name_file_and_line(tmp_path: Path, text: str | bytes, line: int, problem: str) -> None:
    with pytest.raises(RowError, match=problem) as caught:
        read_probes(written(tmp_path, text))
    assert (caught.value.file, caught.value.line) == ("probes.jsonl", line)
    assert f"probes.jsonl, line {line}: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "is empty"),
        ("id,gold\na,b", 1, "no column 'question'"),
        ("question,question\na,b", 1, "twice"),
        ("question,gold\na,b\nc", 3, "1 cells where"),
        ('question\n"a\nb"\nc,d', 4, "2 cells where"),
        ('question\n"a"b', 2, "no CSV"),
        ("question,answerable\na,perhaps", 2, "true or false"),
        ("question,gold\n" + "a" * 200_000 + ",x", 2, "no CSV|characters"),
    ],
)
def test_hostile_csv_names_file_and_line(tmp_path: Path, text: str, line: int | None, problem: str) -> None:
    with pytest.raises(RowError, match=problem) as caught:
        read_probes(written(tmp_path, text, "probes.csv"))
    assert caught.value.line == line


def test_no_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(RowError, match="is not there"):
        read_probes(tmp_path / "none.jsonl")
    with pytest.raises(RowError, match="is no file"):
        read_probes(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(RowError, match="is no file"):  # and does not wait for it
        read_probes(tmp_path / "pipe.jsonl")


def test_saving_never_replaces_something_else(tmp_path: Path) -> None:
    probes = Probes([Probe("a", "q", ["x"])])
    other = written(tmp_path, '{"name": "package"}', "package.jsonl")
    with pytest.raises(QueryError):
        probes.save(other)
    assert other.read_text() == '{"name": "package"}'
    with pytest.raises(QueryError, match=r"\.jsonl or \.csv"):
        probes.save(tmp_path / "probes.txt")


# ---- families


def test_families_come_in_every_form(tmp_path: Path) -> None:
    class Family:
        members = ("a", "b")

    path = written(tmp_path, "page,family\na.md,one\nb.md,one\nc,two\n", "families.csv")
    for form in (path, str(path), {"a": "one", "b.md": "one", "c": "two"}, [Family()], Groups({"a": "1", "b": "1"})):
        probes = Probes([Probe("p", "q", ["a", "z"])]).with_families(form)
        assert probes[0].family_gold == {"a", "b", "z"}
    assert Groups.of(path).same("a", "b") and not Groups.of(path).same("a", "c") and Groups.of(path).same("z", "z")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("page,family\na,\n", 2, "has no family"),
        ("page,family\nA B,x\n", 2, "cannot be a page name"),
        ("page,family\na,x\na.md,y\n", 3, "stands in line 2"),
        ("name,family\na,x\n", 1, "no column 'page'"),
    ],
)
def test_hostile_families_name_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(RowError, match=problem) as caught:
        Groups.of(written(tmp_path, text, "families.csv"))
    assert caught.value.line == line


def test_families_of_another_kind_are_refused() -> None:
    with pytest.raises(QueryError, match="families are given as"):
        Groups.of(5)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="families are given as"):
        Groups.of([("a", "b")])  # type: ignore[list-item]


# ---- checks


def test_good_probes_have_no_findings(field: PageDirectory) -> None:
    probes = Probes([Probe("a", "How do I lower the thing that holds the boat?", ["anchor"])])
    assert list(probes.check(field)) == [] and "no findings" in repr(probes.check(field))


def test_check_finds_what_is_wrong(field: PageDirectory) -> None:
    probes = Probes(
        [
            Probe("a", "What about anchors?", ["anchor"]),
            Probe("a", "What else?", ["bread", "gone"]),
            Probe("b", "what  about ANCHORS!", ["anchor"]),
            Probe("c", "Does one drop the anchor slowly into the soft grey mud?", ["anchor", "bread"]),
            Probe("d", "unlabelled"),
            Probe("e", "nobody knows", answerable=False),
        ]
    )
    found = probes.check(field)
    assert [(f.level, f.kind, f.probe) for f in found] == [
        ("error", "duplicate id", "a"),
        ("error", "missing gold", "a"),
        ("error", "no gold", "d"),
        ("warning", "copied", "c"),
        ("warning", "duplicate question", "b"),
    ]
    copied = found.of_kind("copied")[0]
    assert copied.overlap == round(9 / 11, 4) and "drop the anchor slowly into the soft grey mud" in copied.message
    assert list(found.to_frame().columns) == ["level", "probe", "kind", "message", "overlap"]
    assert "3 errors, 2 warnings" in repr(found) and "<table>" in found._repr_html_()


def test_copied_text_is_seen_in_scripts_without_spaces(field: PageDirectory) -> None:
    (field.path / "cjk.md").write_text("---\ntitle: 港\n---\n船が港に入る前に錨を下ろす。\n", encoding="utf-8")
    found = Probes([Probe("a", "船が港に入る前に何をする", ["cjk"])]).check(field)
    assert [f.kind for f in found] == ["copied"]


@pytest.mark.parametrize("probes", [Probes(), Probes([Probe("a", "q", answerable=False)])])
def test_nothing_answerable_is_an_error(field: PageDirectory, probes: Probes) -> None:
    assert [f.kind for f in probes.check(field)] == ["nothing answerable"]


def test_the_example_probes_fit_their_fields() -> None:
    for name in ("harbor", "bread"):
        probes = read_probes(DATA / f"{name}.probes.jsonl")
        assert list(probes.check(mf.open_field(DATA / name))) == []


def test_row_errors_are_errors_of_the_library() -> None:
    assert issubclass(RowError, MemoryfieldError) and issubclass(RowError, ValueError)
