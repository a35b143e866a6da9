"""The magics in a real IPython shell: what they do, what they say, what they complete."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import QueryError
from memoryfield.magics import complete, read_options, source_of

PAGES = {
    "disk-backup": "---\ntitle: Backup to the blue disk\n---\nThe backup stopped because the disk was full.\n",
    "winch": "---\ntitle: Winch\ntags: [deck]\n---\nOil the pawls in April.\n",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORYFIELD_MODEL", "hashing-1024")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "tour.ipynb"))
    return folder


@pytest.fixture(scope="module")
def ipython(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        from IPython.core.interactiveshell import InteractiveShell

        made = InteractiveShell()
        made.history_manager.enabled = False
        yield made
        made.history_manager.end_session()
        InteractiveShell.clear_instance()


@pytest.fixture
def shell(ipython: Any, place: Path) -> Iterator[Any]:
    ipython.reset(new_session=False)
    assert ipython.run_cell("%load_ext memoryfield").success
    yield ipython
    if "memoryfield" in ipython.extension_manager.loaded:
        ipython.run_cell("%unload_ext memoryfield")


def run(shell: Any, cell: str) -> Any:
    done = shell.run_cell(cell, store_history=False)
    assert done.success, done.error_in_exec or done.error_before_exec
    return done.result


def said(shell: Any, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a cell that is refused; return what a person sees."""
    capsys.readouterr()
    assert not shell.run_cell(cell, store_history=False).success
    seen = capsys.readouterr()
    assert "Traceback" not in seen.out + seen.err
    return (seen.out + seen.err).strip()


def test_a_field_is_opened_shown_and_bound(shell: Any, place: Path) -> None:
    opened = run(shell, f"%field {place}")
    assert isinstance(opened, mf.MemoryField) and opened.path == place
    assert shell.user_ns["field"] is opened
    assert run(shell, "%field") is opened


def test_what_it_advises_can_be_typed_as_a_magic(
    shell: Any, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = said(shell, "%field missing", capsys)
    assert "%field --create PATH makes one" in seen and "create=True" not in seen
    assert run(shell, "%field --create missing").path == place.parent / "missing"
    seen = said(shell, f"%field --model no-such/model {place}\n%recall --retriever vector winch", capsys)
    assert "--model auto" in seen and "model='auto'" not in seen
    with pytest.raises(mf.errors.FieldNotFound, match="create=True"):  # code still reads of code
        mf.open_field(place.parent / "gone")


def test_a_path_with_blanks_needs_no_quotes_and_may_have_them(shell: Any, place: Path) -> None:
    wide = place.rename(place.parent / "my notes")
    assert run(shell, f"%field {wide}").path == wide
    assert run(shell, f'%field "{wide}"').path == wide


def test_another_variable_of_that_name_is_not_overwritten(shell: Any, place: Path) -> None:
    shell.user_ns["field"] = "mine"
    opened = run(shell, f"%field {place}")
    assert shell.user_ns["field"] == "mine"
    assert run(shell, "%field") is opened


def test_a_field_opened_by_hand_is_taken(shell: Any, place: Path) -> None:
    shell.user_ns["field"] = mf.open_field(place)
    assert run(shell, "%recall --retriever keyword backup").names == ["disk-backup"]


@pytest.mark.parametrize(
    "line",
    [
        "%recall why did the backup stop?",
        "found = %recall why did the backup stop?",
        "%recall what's the backup's stop",
    ],
)
def test_a_question_may_end_in_a_question_mark_and_hold_quotes(shell: Any, place: Path, line: str) -> None:
    run(shell, f"%field {place}")
    result = run(shell, line)
    found = shell.user_ns["found"] if line.startswith("found") else result
    assert found.names[0] == "disk-backup"
    assert found.query == line.partition("%recall ")[2]


def test_a_text_in_quotes_that_looks_like_a_question_stays(shell: Any, place: Path) -> None:
    run(shell, 'text = """\n%recall why?\n"""')
    assert shell.user_ns["text"] == "\n%recall why?\n"


def test_the_help_of_the_magic_itself_is_still_shown(shell: Any) -> None:
    assert "pinfo" in shell.transform_cell("%recall?")
    for name in ("field", "recall"):
        assert f"%{name}" in (shell.find_magic(name).__doc__ or "")
    assert "%%remember" in (shell.find_magic("remember", "cell").__doc__ or "")


def test_options_and_variables_reach_the_search(shell: Any, place: Path) -> None:
    run(shell, f"%field {place}")
    shell.user_ns["asked"] = "pawls in April"
    found = run(shell, "%recall -k 1 --retriever=keyword {asked}")
    assert (found.names, found.retriever, found.query) == (["winch"], "keyword", "pawls in April")


def test_a_cell_becomes_a_page_that_says_where_it_is_from(shell: Any, place: Path) -> None:
    run(shell, f"%field {place}")
    page = run(
        shell, '%%remember --tags rope,spring --summary "Which rope" Rope for the halyard\nTen mm.\n\nNot eight.\n'
    )
    assert page.name == "rope-for-the-halyard"
    on_disk = mf.open_field(place).read(page.name)
    assert on_disk.body == "Ten mm.\n\nNot eight.\n"
    assert on_disk.frontmatter["source"] == "tour.ipynb"
    assert on_disk.frontmatter["tags"] == ["rope", "spring"]
    assert on_disk.summary == "Which rope"


def test_a_cell_that_is_run_again_makes_no_second_page(shell: Any, place: Path) -> None:
    run(shell, f"%field {place}")
    first = run(shell, "%%remember Halyard\nTen mm.\n")
    same = run(shell, "%%remember Halyard\nTen mm.\n")
    assert same.sha256 == first.sha256
    changed = run(shell, "%%remember Halyard\nTwelve mm.\n")
    assert (changed.name, changed.body, changed.uuid) == ("halyard", "Twelve mm.\n", first.uuid)
    assert len(mf.open_field(place)) == 3
    shell.user_ns["field"].undo()
    assert mf.open_field(place).read("halyard").body == "Ten mm.\n"


def test_a_page_from_elsewhere_is_left_alone(shell: Any, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, f"%field {place}")
    before = (place / "winch.md").read_bytes()
    assert "not from this notebook" in said(shell, "%%remember Winch\nOther.\n", capsys)
    assert (place / "winch.md").read_bytes() == before
    assert run(shell, "%%remember --append Winch\nAnd the drum.\n").body.endswith("April.\n\nAnd the drum.\n")
    assert run(shell, "%%remember --replace Winch\nOther.\n").body == "Other.\n"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%recall why", "no field is open here"),
        ("%field nowhere/at-all", "nowhere/at-all"),
        ("%recall", "needs a question"),
        ("%recall --colour red why", "no option '--colour'"),
        ("%recall -k many why", "whole number"),
        ("%recall --retriever tarot why", "no retriever 'tarot'"),
        ("%recall --model", "needs a value"),
        ("%%remember\ntext", "needs a title"),
        ("%%remember Empty\n  \n", "nothing to remember"),
        ("%%remember --name Über Title\ntext", "cannot be a page name"),
    ],
)
def test_errors_are_one_line_of_words(
    shell: Any, place: Path, cell: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "no field" not in words:
        run(shell, f"%field {place}")
    shown = said(shell, cell, capsys)
    assert words in shown
    assert shown.count("\n") == 0


def test_an_archive_is_searched_and_refuses_to_remember(
    shell: Any, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = mf.open_field(place).export(place.parent / "out")
    run(shell, f"%field {report.path}")
    assert run(shell, "%recall --retriever keyword pawls").names == ["winch"]
    assert "read only" in said(shell, "%%remember New\ntext", capsys)


def test_completion_of_options_values_and_paths(shell: Any, place: Path) -> None:
    def offered(text: str) -> list[str]:
        with __import__("warnings").catch_warnings():
            __import__("warnings").simplefilter("ignore")  # IPython says that its new completions are provisional
            return [c.text for c in shell.Completer.completions(text, len(text))]

    (place.parent / "nothing.txt").touch()
    assert "notes/" in offered("%field no")
    assert "nothing.txt" not in offered("%field no")
    assert offered("%recall --retriever ve") == ["vector"]
    assert "--tags" in offered("%%remember --t")


def test_models_are_completed() -> None:
    assert "hashing-1024" in complete("field", "--model", "hash")
    assert complete("recall", "recall", "x") == []


def test_reading_options() -> None:
    known = ("-k", "--summary", "--append")
    assert read_options("-k 3 --append -- -5 degrees", known, "%x") == ({"-k": "3", "--append": "yes"}, "-5 degrees")
    assert read_options("""--summary='it is "so"' It's""", known, "%x") == ({"--summary": 'it is "so"'}, "It's")
    assert read_options("what -k means", known, "%x") == ({}, "what -k means")
    with pytest.raises(QueryError, match="no option '--where'"):
        read_options("--where x", known, "%x")


@pytest.mark.parametrize(
    ("named", "source"),
    [
        ("", "IPython session"),
        ("/elsewhere/of/someone/plan.ipynb", "plan.ipynb"),
        ("sub/plan.ipynb", "plan.ipynb"),
        ("console-1", "IPython session"),
    ],
)
def test_the_source_tells_no_path_of_a_home(shell: Any, named: str, source: str) -> None:
    assert source_of(shell, {"JPY_SESSION_NAME": named}) == source


def test_the_source_below_the_working_directory(shell: Any, place: Path) -> None:
    assert source_of(shell, {"JPY_SESSION_NAME": str(place.parent / "sub" / "plan.ipynb")}) == "sub/plan.ipynb"


def test_loading_twice_and_unloading(shell: Any) -> None:
    run(shell, "%load_ext memoryfield")
    run(shell, "%reload_ext memoryfield")
    transformers = shell.input_transformer_manager.token_transformers
    assert sum(one.__module__ == "memoryfield.magics" for one in transformers) == 1
    run(shell, "%unload_ext memoryfield")
    assert shell.find_magic("field") is None
    assert shell.find_magic("remember", "cell") is None


def test_the_recall_of_ipython_stays_as_rep_and_comes_back(shell: Any) -> None:
    own = shell.find_magic("rep")
    assert "Repeat a command" in own.__doc__
    run(shell, "%unload_ext memoryfield")
    assert "Repeat a command" in shell.find_magic("recall").__doc__


def test_the_extension_is_found_without_ipython() -> None:
    code = "import memoryfield as m, sys; m.load_ipython_extension; print('IPython' in sys.modules)"
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
