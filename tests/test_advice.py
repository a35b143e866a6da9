"""Advice is worded for whoever reads it; a number agrees with its noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryfield.advice import advice, at_command_line
from memoryfield.display import counted

PACKAGE = Path(__file__).parents[1] / "memoryfield"
_CALL = re.compile(r"\b[a-z_][\w.]*\([^()*]*\)|\b[a-z_]+=(?:True|False|None|\[|')|\bon_[a-z]+=")
_SQL = re.compile(r"\b(?:SELECT|CREATE|INSERT|typeof)\b|var\(--")
# what only code can ask for: arguments of functions that no verb hands on
_FOR_CODE = (
    "figure() shows the trade",
    "without a field to write to",
    "datetime.now(UTC)",
    "text.encode()",
    "SentenceTransformer.save()",
    "embed_documents() takes",
    "an embedder made in Python",
    "get_ipython()",
    "or call score()",
    "read_probes(path) reads",
    "expected field.families()",
)


def _texts() -> Iterator[tuple[str, str]]:
    """Yield where each text of the package stands and the text, values as ``{}``; not docstrings, not what is code."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        passed: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                passed.add(id(node.value))
            called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call):  # of advice, or of what hands it on
                python = [keyword.value for keyword in node.keywords if keyword.arg == "python"]
                passed |= {id(inner) for value in python for inner in ast.walk(value)}
            if called in ("compile", "execute"):
                passed |= {id(inner) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if id(node) in passed:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", "".join(map(str, parts))
                passed |= {id(value) for value in node.values}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node.value


def test_advice_follows_its_reader_and_the_wording_ends_with_the_command() -> None:
    assert advice(python="force=True", command="--force") == "force=True"
    with at_command_line():
        assert advice(python="force=True", command="--force") == "--force"
    with pytest.raises(RuntimeError), at_command_line():
        raise RuntimeError
    assert advice(python="force=True", command="--force") == "force=True"


def test_no_message_words_its_advice_as_code_alone() -> None:
    found = [
        f"{where}: {text}"
        for where, text in _texts()
        if " " in text
        and _CALL.search(text)
        and not _SQL.search(text)
        and not any(known in text for known in _FOR_CODE)
    ]
    assert found == []


@pytest.mark.parametrize(("count", "shown"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1000, "1,000 pages")])
def test_a_number_agrees_with_its_noun(count: int, shown: str) -> None:
    assert counted(count, "page") == shown
    assert counted(count, "family", "families").endswith("family" if count == 1 else "families")
