"""A report is one page without scripts; a part that fails says so and the others stand."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.cli import main
from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.study.report import Report, make_report

HOSTILE = "<script>alert(1)</script> & <img src=x onerror=alert(1)>"


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    field = mf.open_field(tmp_path / "yard", create=True, model="hashing-1024")
    words = ["winch", "rope", "dock", "tide", "crane", "paint", "hull", "keel", "oar", "sail", "mast", "deck"]
    for number, word in enumerate(words):
        others = " ".join(words[(number + step) % len(words)] for step in (1, 3, 5))
        field.write(word, title=f"{word} {HOSTILE}", summary=f"About {word}.", body=f"The {word} and {others}.\n")
    return field


def test_it_has_every_part_and_runs_nothing(field: mf.MemoryField, tmp_path: Path) -> None:
    probes = tmp_path / "probes.jsonl"
    probes.write_text(json.dumps({"id": "1", "question": "where is the winch", "gold": ["winch"]}) + "\n")
    seen: list[str] = []
    report = field.report(models=["hashing-1024"], probes=probes, told=lambda s: seen.append(s.heading), progress=False)
    assert seen == [section.heading for section in report]
    assert seen == ["Overview", "Health", "Map", "Families", "Models", "Retrieval"]
    assert not any(section.failed for section in report), [s.text for s in report if s.failed]
    page = report.save(tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"<(script|img|iframe|link)\b", page, re.IGNORECASE) and "default-src 'none'" in page
    assert "http" not in re.sub(r'xmlns="[^"]+"', "", page).replace("http-equiv", "")
    assert page.count("<section") == 6 and "<svg" in page


def test_a_part_that_fails_leaves_the_others(field: mf.MemoryField) -> None:
    report = field.report(model="no-such/model", models=(), progress=False)
    failed = {section.heading for section in report if section.failed}
    assert {"Map", "Families"} <= failed and "Overview" not in failed and "Health" not in failed
    assert "could not be made" in report.to_html() and "not made" in repr(report)


def test_the_smaller_numbers_of_pages_say_what_they_leave_out(field: mf.MemoryField) -> None:
    def told(report: Report) -> dict[str, str]:
        return {part.heading: f"{part.text} {part.about}" for part in report}

    before = told(field.report(models=["hashing-1024"], progress=False))
    assert "12 pages" in before["Overview"] and not any(".md" in text for text in before.values())
    field.write("index", title="Index", summary="All pages.", body="See [the winch](winch.md).")
    after = told(field.report(models=["hashing-1024"], progress=False))
    assert "13 pages" in after["Overview"] and "12 pages; index.md is not on it" in after["Map"]
    for heading in ("Families", "Models"):
        assert "12 pages" in after[heading] and "index.md, about the other pages, is not compared" in after[heading]


def test_its_tips_are_whole_commands_wherever_it_was_made(field: mf.MemoryField) -> None:
    for number in range(7):
        field.write(f"loose-{number}", title=f"Loose {number}", body=f"See [this](gone-{number}.md), shackle {number}.")
    page = html.unescape(field.report(models=(), progress=False).to_html())
    assert "memoryfield health FIELD --section broken-links lists them all" in page
    assert "memoryfield validate FIELD lists" in page
    for code in ("only('", "validate()", "sync()"):
        assert code not in page
    assert not re.search(r"(?<!FIELD )--section", page)


def test_another_file_is_never_overwritten(field: mf.MemoryField, tmp_path: Path) -> None:
    target = tmp_path / "thesis.html"
    target.write_text("not a page of HTML")
    with pytest.raises(QueryError):
        field.report(models=(), progress=False).save(target)
    assert target.read_text() == "not a page of HTML"


def test_the_command_writes_it(field: mf.MemoryField, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    words = ["report", str(field.path), "--model", "hashing-1024", "--models", "--out", str(target), "--quiet"]
    assert main(words) == 0
    assert target.is_file() and "written to" in capsys.readouterr().out


def test_it_names_no_directory_of_the_machine_and_has_the_index(field: mf.MemoryField, tmp_path: Path) -> None:
    probes = tmp_path / "private" / "probes.jsonl"
    probes.parent.mkdir()
    probes.write_text(json.dumps({"id": "1", "question": "where is the winch", "gold": ["winch"]}) + "\n")
    report = field.report(models=[str(tmp_path / "private" / "no-model")], probes=probes, progress=False)
    whole = report.to_html() + "".join(section.text for section in report)
    assert str(tmp_path) not in whole and str(Path.home()) not in whole
    overview = next(section for section in report if section.heading == "Overview")
    assert "yard" in overview.text and "hashing-1024" in overview.text and "no vector index" not in overview.text


def test_families_show_every_member_and_what_it_says_alone(field: mf.MemoryField) -> None:
    same = "The brake of the winch slips under load because its lining is worn. A new lining from the chandler holds."
    field.write("brake-one", title="Winch brake slips", body=same + "\n")
    field.write("brake-two", title="Winch brake slips again", body=same + " It took forty minutes.\n")
    report = field.report(models=(), progress=False)
    text = next(section.text for section in report if section.heading == "Families")
    assert "brake-one" in text and "brake-two" in text and "It took forty minutes." in text
    assert "the others are compared with this page" in text


def test_the_map_names_its_dense_places(field: mf.MemoryField) -> None:
    svg = field.layout(method="pca", progress=False).to_svg()
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert 2 <= len(shown) <= 16 and all(any(word in text for word in field.names()) for text in shown)
    assert "<script" not in svg


def test_a_secret_is_warned_of_before_it_is_mailed(field: mf.MemoryField, tmp_path: Path) -> None:
    from memoryfield.errors import SecretsFound
    from memoryfield.exchange.outward import SecretWarning

    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    field.write("key", title=f"The key is {token}", body="See the title.\n")
    report = field.report(models=(), progress=False)
    with pytest.warns(SecretWarning, match="GitHub"):
        report.save(tmp_path / "one.html")
    with pytest.raises(SecretsFound):
        report.save(tmp_path / "two.html", on_secrets="refuse")
    assert not (tmp_path / "two.html").exists()


def test_the_command_says_it_in_one_line(
    field: mf.MemoryField, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    field.write("key", title="The key is ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5", body="See the title.\n")
    words = ["report", str(field.path), "--model", "hashing-1024", "--models", "--out", str(tmp_path / "r.html")]
    assert main([*words, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err.count("memoryfield: this looks like secrets") == 1 and "Warning" not in said.err
    assert main([*words, "--quiet", "--on-secrets", "refuse"]) == 3
    assert "save(path)" not in said.out


@pytest.mark.parametrize(("home", "shown"), [("/", "/home/ann/x /home/anna"), ("/home/ann", "~/x /home/anna")])
def test_a_home_is_hidden_and_nothing_that_only_begins_like_it(
    home: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathlib.Path.home", lambda: Path(home))
    table = Table("Where", ("place",), [("/home/ann/x /home/anna",)], [])
    (section,) = make_report("Report", [("Where", "", lambda: table)], lambda _: None)
    assert shown in section.text and f"{shown}</td>" in section.html
