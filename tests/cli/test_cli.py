"""The command line, as a person types it: output, exit codes, JSON, errors."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryfield.cli import DONE, NOTHING, REFUSED, USAGE, main
from memoryfield.examples import example_field
from memoryfield.places import state_directory


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMORYFIELD_MODEL", "hashing-1024")
    path = tmp_path / "notes"
    shutil.copytree(example_field("bread"), path, ignore=shutil.ignore_patterns("*.sqlite3"))
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_list_show_and_json(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "list", notes)
    assert code == DONE and "12 pages" in out and "salt-in-red-cup" in out
    code, out, _ = _run(capsys, "list", notes, "--json")
    assert code == DONE and len(json.loads(out)) == 12
    code, out, _ = _run(capsys, "show", notes, "salt-in-red-cup")
    assert code == DONE and out.encode() == Path(notes, "salt-in-red-cup.md").read_bytes()
    code, out, _ = _run(capsys, "show", notes, "salt-in-red-cup", "--json")
    assert json.loads(out)["name"] == "salt-in-red-cup"


def test_index_search_near(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "index", notes, "--quiet")
    assert code == DONE and "12" in out
    code, out, _ = _run(capsys, "index", notes, "--json")
    assert code == DONE and json.loads(out)["unchanged"] == 12
    code, out, _ = _run(capsys, "index", notes, "--list", "--json")
    assert json.loads(out)[0]["model_code"] == "hashing-1024"
    for retriever in ("vector", "keyword", "hybrid"):
        code, out, _ = _run(capsys, "search", notes, "salt left out of the dough", "--retriever", retriever, "--json")
        assert code == DONE and json.loads(out)["hits"][0]["name"] == "salt-in-red-cup", retriever
    code, out, _ = _run(capsys, "search", notes, "zeppelin", "--retriever", "keyword")
    assert code == NOTHING and "words" in out
    code, out, _ = _run(capsys, "near", notes, "--threshold", "0.4")
    assert code == DONE and "bake-record-spelt-tin" in out
    code, out, _ = _run(capsys, "near", notes, "--threshold", "1", "--json")
    assert code == NOTHING and json.loads(out)["pairs"] == []
    code, out, _ = _run(capsys, "index", notes, "--delete")
    assert code == DONE and not list(Path(notes).glob("*.sqlite3"))


def test_new_edit_write_rename_delete(
    notes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(capsys, "new", notes, "--title", "Brown crust", "--body", "Longer.", "--set", "tags=[a, b]")[1] == (
        "brown-crust\n"
    )
    assert _run(capsys, "edit", notes, "brown-crust", "--append", "And hotter.", "--set", "status=done")[0] == DONE
    text = Path(notes, "brown-crust.md").read_text()
    assert "And hotter." in text and "status: done" in text and "tags:" in text
    assert _run(capsys, "edit", notes, "brown-crust", "--unset", "status")[0] == DONE
    assert "status" not in Path(notes, "brown-crust.md").read_text()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"whole file\n")))
    assert _run(capsys, "write", notes, "whole-file")[0] == DONE
    assert Path(notes, "whole-file.md").read_bytes() == b"whole file\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"other\n")))
    code, _, err = _run(capsys, "write", notes, "whole-file")
    assert code == REFUSED and "whole-file" in err and Path(notes, "whole-file.md").read_bytes() == b"whole file\n"
    assert _run(capsys, "rename", notes, "whole-file", "renamed-file")[0] == DONE
    code, _, err = _run(capsys, "delete", notes, "renamed-file", "--if-sha256", "0" * 64)
    assert code == REFUSED and "renamed-file" in err
    assert _run(capsys, "delete", notes, "renamed-file")[0] == DONE
    assert not Path(notes, "renamed-file.md").exists()


def _editor(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make a Python one-liner the editor; *p* is the draft. It takes longer than one that only opens a window."""
    code = f"import os, sys, time; time.sleep(1.1); p = sys.argv[1]; {script}"
    monkeypatch.setenv("VISUAL", f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}")


def _drafts() -> list[Path]:
    return sorted((state_directory() / "drafts").glob("*"))


ADD = "open(p, 'ab').write(b'by hand\\n')"


def test_edit_in_an_editor(notes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _editor(monkeypatch, ADD)
    assert _run(capsys, "edit", notes, "salt-in-red-cup")[0] == DONE
    assert Path(notes, "salt-in-red-cup.md").read_bytes().endswith(b"by hand\n") and not _drafts()
    monkeypatch.setenv("VISUAL", " ")
    monkeypatch.delenv("EDITOR", raising=False)
    assert _run(capsys, "edit", notes, "salt-in-red-cup")[0] == USAGE
    monkeypatch.setenv("VISUAL", "'")
    assert _run(capsys, "edit", notes, "salt-in-red-cup")[0] == REFUSED


@pytest.mark.parametrize(
    "then",
    [
        "sys.exit(1)",
        "open(os.environ['PAGE'], 'ab').write(b'meanwhile')",
        "q = p + '.x'; os.rename(p, q); open(q, 'ab').write(b'more'); os.symlink('/etc/hostname', p)",
    ],
)
def test_what_was_typed_is_kept_when_it_cannot_be_stored(
    notes: str, then: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(notes, "salt-in-red-cup.md")
    before = path.read_bytes()
    monkeypatch.setenv("PAGE", str(path))
    _editor(monkeypatch, f"{ADD}; {then}")
    for round_ in (1, 2):
        code, _, err = _run(capsys, "edit", notes, "salt-in-red-cup")
        assert code == REFUSED and "kept in" in err
        kept = [p for p in _drafts() if not p.is_symlink() and b"by hand" in p.read_bytes()]
        assert len(kept) == round_ and all(p.stat().st_mode & 0o077 == 0 for p in kept)
    assert path.read_bytes().startswith(before) and b"by hand" not in path.read_bytes()


def test_an_emptied_draft_does_not_empty_the_page(
    notes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(notes, "salt-in-red-cup.md").read_bytes()
    _editor(monkeypatch, "open(p, 'wb').close()")
    assert _run(capsys, "edit", notes, "salt-in-red-cup")[0] == REFUSED
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert _run(capsys, "write", notes, "salt-in-red-cup", "--replace")[0] == REFUSED
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert _run(capsys, "edit", notes, "salt-in-red-cup", "--body", "-")[0] == REFUSED
    assert Path(notes, "salt-in-red-cup.md").read_bytes() == before
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert _run(capsys, "edit", notes, "salt-in-red-cup", "--body", "-", "--allow-empty")[0] == DONE


def test_nothing_a_page_says_acts_on_the_terminal(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(notes, "codes.md").write_bytes("---\ntitle: a\x9b31m\u202eb\n---\n\x1b[2J\x07 text\n".encode())
    for arguments in (
        ["list", notes],
        ["list", notes, "--json"],
        ["show", notes, "codes", "--json"],
        ["search", notes, "text", "--json", "--retriever", "keyword"],
        ["search", notes, "text", "--retriever", "keyword"],
        ["validate", notes],
        ["show", notes, "no\x1b[2Jpage"],
    ):
        _, out, err = _run(capsys, *arguments)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out + err), arguments


def test_validate_and_fix(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(notes, "wide.md").write_bytes("---\ntitle: Ünï\n---\ntext\n".encode("utf-16"))
    before = Path(notes, "wide.md").read_bytes()
    code, out, _ = _run(capsys, "validate", notes)
    assert code == NOTHING and "wide.md" in out
    code, out, err = _run(capsys, "validate", notes, "--fix")
    assert code == NOTHING and "UTF-16 becomes UTF-8" in out and "--yes" in err
    assert Path(notes, "wide.md").read_bytes() == before
    code, out, _ = _run(capsys, "validate", notes, "--fix", "--yes")
    assert Path(notes, "wide.md").read_text(encoding="utf-8").startswith("---\ntitle: Ünï")
    code, out, _ = _run(capsys, "validate", notes, "--json", "--level", "error")
    assert code == DONE and json.loads(out) == []


def test_export_and_import(notes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "export", notes, str(tmp_path / "n.memoryfield.zip"), "--json")
    digest = json.loads(out)["sha256"]
    assert code == DONE and digest in (tmp_path / "n.memoryfield.zip.sha256").read_text()
    code, _, err = _run(
        capsys, "import", str(tmp_path / "n.memoryfield.zip"), str(tmp_path / "c"), "--sha256", "0" * 64
    )
    assert code == REFUSED and "sha256" in err and not (tmp_path / "c").exists()
    code, _, _ = _run(capsys, "import", str(tmp_path / "n.memoryfield.zip"), str(tmp_path / "c"), "--sha256", digest)
    assert code == DONE and len(list((tmp_path / "c").glob("*.md"))) == 12
    code, out, _ = _run(capsys, "import", notes, str(tmp_path / "c"), "--json")
    assert json.loads(out)["added"] == []


def test_history_undo_redo(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(notes, "salt-in-red-cup.md")
    before = path.read_bytes()
    code, _, _ = _run(capsys, "history", notes)
    assert code == NOTHING
    _run(capsys, "edit", notes, "salt-in-red-cup", "--append", "Again.")
    after = path.read_bytes()
    code, out, _ = _run(capsys, "history", notes, "--page", "salt-in-red-cup")
    assert code == DONE and "edit" in out
    code, out, _ = _run(capsys, "history", notes, "--json")
    step = json.loads(out)["steps"][0]["id"]
    code, out, _ = _run(capsys, "history", notes, "--diff", str(step))
    assert "+Again." in out
    assert _run(capsys, "undo", notes)[0] == DONE and path.read_bytes() == before
    assert _run(capsys, "redo", notes)[0] == DONE and path.read_bytes() == after
    path.write_bytes(after + b"by another program\n")
    code, _, err = _run(capsys, "undo", notes, "--step", str(step))
    assert code == REFUSED and "salt-in-red-cup" in err and path.read_bytes().endswith(b"by another program\n")
    assert _run(capsys, "history", notes, "--prune", "0", "--json")[0] == DONE


def test_merge_shows_then_does_and_undo_brings_back(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    pages = ["cold-baking-stone", "slab-preheating-for-underside"]
    before = {path.name: path.read_bytes() for path in Path(notes).glob("*.md")}
    code, out, err = _run(capsys, "merge", notes, *pages)
    assert code == DONE and "nothing is missing" in out and "--yes" in err
    assert {path.name: path.read_bytes() for path in Path(notes).glob("*.md")} == before
    code, out, _ = _run(capsys, "merge", notes, *pages, "--into", pages[0], "--yes")
    assert code == DONE and not Path(notes, f"{pages[1]}.md").exists()
    assert _run(capsys, "undo", notes)[0] == DONE
    assert {path.name: path.read_bytes() for path in Path(notes).glob("*.md")} == before
    assert _run(capsys, "merge", notes, pages[0])[0] == REFUSED


def test_families_and_review(notes: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = _run(capsys, "families", notes, "--json")
    assert code in (DONE, NOTHING) and "families" in json.loads(out)
    monkeypatch.setattr(sys, "stdin", io.StringIO("s\nn\ny\nq\n"))
    code, out, err = _run(capsys, "review", notes, "--quiet")
    assert code in (DONE, NOTHING) and err.count("do they say the same") == 4
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert _run(capsys, "review", notes, "--quiet")[0] in (DONE, NOTHING)


def test_health(notes: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(notes, "leak.md").write_text("See [gone](no-such-page.md).\n")
    code, out, _ = _run(capsys, "health", notes, "--quiet")
    assert code == NOTHING and "no-such-page" in out
    code, out, _ = _run(capsys, "health", notes, "--model", "nomic-embed-text-v1.5", "--json")
    assert code == NOTHING and "near-duplicates" in json.loads(out)["not_checked"]


def test_map_writes_one_file_that_needs_no_network(
    notes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out_file = tmp_path / "sub" / "map.html"
    code, out, _ = _run(capsys, "map", notes, "--out", str(out_file), "--quiet")
    assert code == DONE and "12 pages" in out
    page = out_file.read_text(encoding="utf-8")
    assert "cdn.plot.ly" not in page.split("<script")[1] and "salt-in-red-cup" in page
    code, out, _ = _run(capsys, "map", notes, "--json")
    assert len(json.loads(out)["pages"]) == 12


def test_models(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "models")
    assert code == DONE and "nomic-embed-text-v1.5" in out and "hashing-1024" in out
    code, out, _ = _run(capsys, "models", "--json")
    assert {row["code"] for row in json.loads(out)} >= {"nomic-embed-text-v1.5", "all-MiniLM-L6-v2", "hashing-1024"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "FIELD", "no-such-page"],
        ["show", "FIELD", "../etc/passwd"],
        ["list", "FIELD/none"],
        ["search", "FIELD", "x", "--model", "no-such-model"],
        ["search", "FIELD", "x", "--since", "yesterday-ish"],
        ["list", "FIELD", "--where", "noequals"],
        ["new", "FIELD", "--set", "body=x", "--body", "y"],
        ["new", "FIELD", "--set", "on_similar=x", "--body", "y"],
        ["write", "FIELD", "x", "--file", "/dev/null"],
        ["near", "FIELD", "--threshold", "7"],
        ["import", "FIELD/none.zip", "FIELD/x"],
        ["map", "FIELD", "--out", "FIELD/salt-in-red-cup.md"],
        ["map", "FIELD", "--out", "/dev/null"],
        ["demo", "--field", "FIELD", "--out", "FIELD/salt-in-red-cup.md"],
        ["export", "FIELD", "FIELD/salt-in-red-cup.md"],
        ["export", "FIELD", "/dev/null"],
    ],
)
def test_refusals_say_why_and_exit_3(notes: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in Path(notes).iterdir()}
    code, out, err = _run(capsys, *(argument.replace("FIELD", notes) for argument in arguments))
    assert {path.name: path.read_bytes() for path in Path(notes).iterdir() if path.suffix == ".md"} == before
    assert code == REFUSED and out == "" and err.startswith("memoryfield: ") and "Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["search"], ["near", "x", "--threshold", "high"]])
def test_wrong_use_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == USAGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "completion", shell)
    assert code == DONE and "search" in out and "validate" in out


def test_every_verb_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    from memoryfield.cli.parser import build_parser

    verbs = build_parser()._subparsers._group_actions[0].choices
    assert {"demo", "init", "new", "list", "show", "edit", "write", "rename", "delete", "validate"} <= set(verbs)
    assert {"index", "search", "near", "map", "export", "import", "models", "completion"} <= set(verbs)
    for name, verb in verbs.items():
        assert f"memoryfield {name}" in (verb.epilog or ""), name


def test_closed_pipe_is_no_error(notes: str) -> None:
    if os.name == "nt" or shutil.which("head") is None:
        pytest.skip("no head here")
    command = f'"{sys.executable}" -m memoryfield.cli list "{notes}" --json | head -c 1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.stdout == b"[" and done.stderr == b""


def test_a_process_of_its_own(notes: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memoryfield.cli", "search", notes, "salt", "--retriever", "keyword"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == DONE and "salt-in-red-cup" in done.stdout and done.stderr == ""


def test_demo_on_the_teaching_field(notes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_file = tmp_path / "demo.html"
    code, out, _ = _run(capsys, "demo", "--field", notes, "--model", "hashing-1024", "--out", str(out_file))
    assert code == DONE
    page = out_file.read_text(encoding="utf-8")
    for part in ("Embed what changed", "Health", "Map", "Families", "Models"):
        assert part in out and part in page
    embedding = page.partition("Embed what changed</h2>")[2].partition("</section>")[0]
    assert re.search(r"\d+ added", embedding) and re.search(r"\d+ texts? embedded", embedding)
    assert "<tr" not in embedding and "more" not in embedding


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == DONE and re.fullmatch(r"memoryfield \d+\.\d+\.\d+\n", capsys.readouterr().out)
