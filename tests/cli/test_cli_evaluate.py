"""The commands ``evaluate`` and ``probes check``, run as people run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memoryfield.cli import main
from memoryfield.examples import example_field

DATA = example_field("harbor").parent


@pytest.fixture
def bread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORYFIELD_MODEL", "hashing-1024")
    shutil.copytree(DATA / "bread", tmp_path / "bread")
    shutil.copy(DATA / "bread.probes.jsonl", tmp_path / "probes.jsonl")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_evaluate_prints_tables(bread: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--by-category", "--misses", "--compare", "--quiet")
    code, out, err = run(capsys, "evaluate", bread / "bread", "--probes", bread / "probes.jsonl", *more)
    assert code == 0 and not err
    for part in (
        "7 probes with gold pages, 12 pages",
        "recall@10",
        "Gate, 1 unanswerable",
        "how-to",
        "missed",
        "paired",
    ):
        assert part in out


def test_evaluate_prints_one_json_document(bread: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bread / "families.csv").write_text("page,family\nslow-rise-oven-lamp,a\nfeeding-rye-starter,a\n")
    words: list[Any] = ["evaluate", bread / "bread", "--probes", bread / "probes.jsonl", "--json"]
    words += ["--retriever", "keyword", "hashed", "-k", 1, 2, "--families", bread / "families.csv"]
    code, out, _ = run(capsys, *words, "--by-category", "--misses", "--compare")
    found = json.loads(out)
    assert code == 0 and set(found["figures"]) == {"keyword", "hashed"}
    assert {"recall@2", "mrr", "family_mrr", "auc", "answered"} <= set(found["figures"]["keyword"])
    assert found["categories"] and found["compare"]["differences"] and isinstance(found["misses"], list)


def test_evaluations_are_saved_and_compared(bread: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", bread / "bread", "--probes", bread / "probes.jsonl", "--retriever", "keyword", "--quiet"]
    code, _, err = run(capsys, *words, "--save", bread / "before.json")
    assert code == 0 and "written to" in err
    (bread / "bread" / "slow-rise-oven-lamp.md").unlink()
    code, out, _ = run(capsys, *words, "--against", bread / "before.json")
    assert code == 0 and "12 to 11 pages" in out and "paired differences" in out
    code, out, _ = run(capsys, *words, "--against", bread / "before.json", "--json")
    assert code == 0 and json.loads(out)["against"]["differences"][0]["metric"] == "recall@1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--probes", "none.jsonl"], "none.jsonl: is not there"),
        (["--probes", "bad.jsonl"], "bad.jsonl, line 2: is no JSON"),
        (["--probes", "probes.jsonl", "probes.jsonl"], "two probes have the id"),
        (["--probes", "probes.jsonl", "--retriever", "magic"], "magic"),
        (["--probes", "probes.jsonl", "-k", "0"], "k=0"),
        (["--probes", "probes.jsonl", "--families", "none.csv"], "none.csv: is not there"),
        (["--probes", "probes.jsonl", "--against", "probes.jsonl"], "is no"),
        (["--probes", "probes.jsonl", "--save", "bread/index.md"], ".json file"),
    ],
)
def test_bad_input_is_refused(
    bread: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(bread)
    (bread / "bad.jsonl").write_text('{"question": "a"}\n{')
    code, out, err = run(capsys, "evaluate", "bread", "--quiet", *words)
    assert code == 3 and said in err and not out


def test_probes_check_tells_findings_by_its_code(bread: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["probes", "check", bread / "bread", "--probes", bread / "probes.jsonl"]
    code, out, _ = run(capsys, *words)
    assert code == 0 and "no findings" in out
    (bread / "more.jsonl").write_text('{"id": "x", "question": "what?", "gold": ["gone"]}\n')
    code, out, _ = run(capsys, *words, bread / "more.jsonl")
    assert code == 1 and "missing gold" in out
    code, out, _ = run(capsys, *words, bread / "more.jsonl", "--json")
    assert code == 1 and json.loads(out)[0]["kind"] == "missing gold"


def test_categories_of_strangers_do_not_act_on_the_terminal(bread: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "x", "question": "rye?", "gold": ["feeding-rye-starter"], "category": "c\x1b[2J\u202e"}
    (bread / "bad.jsonl").write_text(json.dumps(row))
    words = ("--retriever", "keyword", "--by-category", "--quiet")
    _, out, _ = run(capsys, "evaluate", bread / "bread", "--probes", bread / "bad.jsonl", *words)
    assert "c\\x1b[2J\\u202e" in out and "\x1b" not in out and "\u202e" not in out
