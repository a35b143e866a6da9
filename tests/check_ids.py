"""Compare the rule ids that tests name with the list in rules.txt.

A test names a rule in its own name (``test_edit_keeps_comments_P9``) or in its docstring, or in that of its class.
Run as a script: prints what is wrong and exits with 1, or prints one line and exits with 0.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
RULES = TESTS / "rules.txt"

# "_P9" in a name and "P9" in a sentence, but not the P9 of "UTP9" or "P9x".
_ID = re.compile(r"(?<![A-Za-z0-9])[PXA][0-9]{1,2}(?![A-Za-z0-9])")


def known_ids(text: str) -> list[str]:
    """Return the ids that a list of rules holds, in its order."""
    return [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]


def named_ids(source: str) -> set[str]:
    """Return the ids that the tests in one file's source name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        is_named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_named and node.name.lower().startswith("test"):
            found.update(_ID.findall(node.name), _ID.findall(ast.get_docstring(node) or ""))
    return found


def problems(rules: Path, tests: Path) -> Iterator[str]:
    """Yield a sentence for each rule without a test and each id without a rule."""
    known = known_ids(rules.read_text(encoding="utf-8"))
    files = {path: named_ids(path.read_text(encoding="utf-8")) for path in sorted(tests.rglob("test_*.py"))}
    proven = set().union(*files.values())
    for rule in known:
        if rule not in proven:
            yield f"{rule}: no test names it; put the id into the name or docstring of the test that proves it"
    for path, named in files.items():
        for rule in sorted(named - set(known)):
            yield f"{path.relative_to(tests.parent)}: names {rule}, which is not in {rules.relative_to(tests.parent)}"


def main() -> int:
    wrong = list(problems(RULES, TESTS))
    for sentence in wrong:
        print(sentence)
    if not wrong:
        print(f"ids: each of the {len(known_ids(RULES.read_text(encoding='utf-8')))} rules is named by a test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
