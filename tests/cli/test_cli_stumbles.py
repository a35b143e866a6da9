"""What people stumbled over at the command line, and what it says now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.cli import main
from memoryfield.errors import FieldNotFound

TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(words)
    except SystemExit as end:
        code = int(str(end.code))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "sub dir").mkdir(parents=True)
    (tmp_path / "notes" / "boat.md").write_text("# Boat\n\nx\n")
    (tmp_path / "notes" / "My Note.md").write_text("x\n")
    (tmp_path / "notes" / "sub dir" / "a.md").write_text("x\n")
    (tmp_path / "notes" / "README.md").write_text("x\n")
    return tmp_path / "notes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serach", "x"), "there is no verb 'serach'; did you mean search?"),
        (("xyzzy",), "there is no verb 'xyzzy'; memoryfield --help lists all verbs"),
        (("search", "x", "y", "--modle", "auto"), "did you mean --model?"),
        (("list", "x", "--jsn"), "did you mean --json?"),
        (("search", "x", "y", "--retriever", "vektor"), "--retriever cannot be 'vektor'; did you mean vector?"),
        (("map", "x", "--method", "quux"), "there are: auto, pca, umap"),
        (("list", "x", "y"), "not understood: y"),
    ],
)
def test_a_misspelt_word_brings_up_the_one_that_was_meant(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *words)
    assert code == 2 and said in err


def test_the_help_shows_the_verbs_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    places = [shown.index(text) for text in ("  pages:\n    init", "  keeping a field clean:\n", "    search ")]
    assert places == sorted(places)


def test_no_word_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys)
    assert code == 2 and "examples:" in err


def test_the_name_of_an_example_and_of_a_field_nearby_are_brought_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "list", str(folder.parent / "harbor"))
    assert code == 3 and "the example of that name is" in err and "memoryfield init" in err
    assert "did you mean notes?" in run(capsys, "list", str(folder.parent / "note"))[2]
    with pytest.raises(FieldNotFound, match="create=True makes one; did you mean notes"):
        mf.open_field(folder.parent / "note")


@pytest.mark.parametrize("verb", ["list", "validate", "history", "index", "export", "push", "evaluate"])
def test_every_verb_says_what_cannot_be_a_page_and_names_the_way(
    verb: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = tmp_path / "probes.jsonl"
    probes.write_text(json.dumps({"id": "1", "question": "where is the boat", "gold": ["boat"]}) + "\n")
    rest = {
        "index": ["--model", "hashing-1024", "--quiet"],
        "export": [str(tmp_path / "x.memoryfield.zip")],
        "push": [str(tmp_path / "there"), "--create"],
        "evaluate": ["--probes", str(probes), "--retriever", "keyword", "--quiet"],
    }
    _, _, err = run(capsys, verb, str(folder), *rest.get(verb, []))
    assert "2 Markdown files here cannot be pages" in err and "My Note.md, sub dir/a.md" in err
    assert f"memoryfield import {folder} notes-field" in err and "README" not in err
    assert run(capsys, "import", str(folder), str(tmp_path / "notes-field"))[0] == 0
    assert "cannot be" not in run(capsys, verb, str(tmp_path / "notes-field"), *rest.get(verb, []))[2]


def test_a_repair_says_what_remains(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "latin.md").write_bytes(b"# Caf\xe9\n\nx\n")
    (folder / "twice.md").write_text("---\ntitle: a\ntitle: b\n---\nx\n")
    code, out, err = run(capsys, "validate", str(folder), "--fix", "--level", "error")
    assert code == 1 and "latin.md" in out and "--fix --reencode" in out and "2 findings remain" in err
    assert "plan_fixes" not in out + err
    code, out, err = run(capsys, "validate", str(folder), "--fix", "--reencode", "--level", "error")
    assert "error P10" not in out and "1 finding remains" in err
    code, out, err = run(capsys, "validate", str(folder), "--fix", "--reencode", "--yes", "--json", "--level", "error")
    told = json.loads(out)
    assert code == 1 and told["written"] and [item["filename"] for item in told["remaining"]] == ["twice.md"]
    assert (folder / "latin.md").read_text() == "# Café\n\nx\n"


def test_advice_can_be_followed_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write("index", title="The yard", body="x\n")
    code, _, err = run(capsys, "delete", str(field.path), "index")
    assert code == 3 and "without --force" in err
    assert run(capsys, "rename", str(field.path), "index", "start")[0] == 3
    assert run(capsys, "rename", str(field.path), "index", "start", "--force")[0] == 0
    field.write("listing", title="All", body="x\n")
    assert run(capsys, "delete", str(field.path), "listing", "--force")[0] == 0
    _, out, _ = run(capsys, "index", str(field.path), "--list")
    assert "memoryfield index FIELD --model auto makes one" in out and "sync()" not in out
    assert "force=True" not in run(capsys, "delete", str(field.path), "start")[2]


def test_a_number_agrees_with_its_noun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write("boat", body="x\n")
    source = mf.open_field(tmp_path / "other", create=True)
    source.write("boat", body="y\n")
    shown = run(capsys, "init", str(field.path))[1] + run(capsys, "list", str(field.path))[1]
    shown += "".join(run(capsys, "validate", str(field.path))[1:])
    shown += run(capsys, "import", str(source.path), str(field.path))[1]
    shown += run(capsys, "push", str(field.path), str(tmp_path / "copy"), "--create")[1]
    shown += run(capsys, "index", str(field.path), "--list")[1]
    for noun in ("pages", "conflicts", "findings", "pages are"):
        assert f" 1 {noun}" not in f" {shown}", noun
    assert "1 page\n" in shown and "1 conflict" in shown


@pytest.mark.parametrize("verb", ["export", "push", "report"])
def test_a_secret_is_told_of_in_one_line_or_refused(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write("key", title=f"Key {TOKEN}", body="x\n")
    target = tmp_path / ("there" if verb == "push" else "out.html" if verb == "report" else "out.zip")
    rest = {
        "export": [str(target)],
        "push": [str(target), "--create"],
        "report": ["--out", str(target), "--model", "hashing-1024", "--models", "--quiet"],
    }[verb]
    code, out, err = run(capsys, verb, str(field.path), *rest)
    assert code == 0 and err.count("memoryfield: this looks like secrets") == 1 and "GitHub" in err
    assert "Warning" not in err
    if verb != "report":  # which shows titles, and says so
        assert TOKEN not in out + err
    (tmp_path / "out.zip").unlink(missing_ok=True)
    code, _, err = run(capsys, verb, str(field.path), *rest, "--on-secrets", "refuse")
    assert code == 3 and "nothing left the house" in err
    assert "looks like" not in run(capsys, verb, str(field.path), *rest, "--on-secrets", "ignore")[2]


@pytest.mark.parametrize("verb", ["serve", "mcp"])
def test_what_serves_can_be_told_to_refuse_secrets(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write("key", body=f"token: {TOKEN}\n")
    code, out, err = run(capsys, verb, str(field.path), "--on-secrets", "refuse")
    assert code == 3 and "yard: key.md, line" in err and TOKEN not in out + err


@pytest.fixture
def yard(tmp_path: Path) -> str:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write("winch-brake", title="Winch brake", body="A new lining holds.\n")
    return str(field.path)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("export", "YARD", "x.txt"), 3, "an archive ends in .zip"),
        (("push", "YARD", "nowhere"), 3, "--create makes the directory"),
        (("merge", "YARD", "winch-brake"), 3, "two names of pages or more, or --family PAGE"),
        (("serve", "YARD", "--port", "99999"), 3, "expected 0 (any) to 65535"),
        (("report", "YARD", "--probes", "nope.jsonl", "--out", "r.html"), 3, "nope.jsonl"),
        (("index", "YARD", "--delete", "--model", "hashing-1024"), 1, "nothing was deleted"),
        (("map", "EMPTY", "--model", "hashing-1024", "--out", "m.html", "--quiet"), 1, "nothing was written"),
        (("import", "bad.json", "new"), 1, "bad.json, line 1"),
        (("import", "none.json", "new"), 3, "holds nothing"),
        (
            ("search", "YARD", "x", "--model", "no-such/model", "--quiet"),
            3,
            "memoryfield: no-such/model cannot be loaded",
        ),
        (("search", "YARD", "x", "--model", "no-such/model", "--quiet"), 3, "\nwhat to do: "),
    ],
)
def test_wrong_use_is_answered_with_the_next_step_and_leaves_nothing(
    words: tuple[str, ...],
    code: int,
    said: str,
    yard: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    mf.open_field(tmp_path / "empty", create=True)
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("no json\n")
    Path("none.json").write_text("\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    got, out, err = run(capsys, *({"YARD": yard, "EMPTY": "empty"}.get(word, word) for word in words))
    assert got == code and said in out + err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_only_page_of_a_field_is_the_best(yard: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "search", yard, "winch", "--model", "hashing-1024", "--quiet")
    assert "1.000" in out and "0.000" not in out


def test_an_archive_of_one_page_says_one_page(yard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "export", yard, str(tmp_path / "yard.memoryfield.zip"))
    assert "1 page, 0 other files" in out
    _, out, _ = run(capsys, "near", yard, "--model", "hashing-1024", "--quiet")
    assert "of 1 page with" in out
