"""Examples of the documentation run; it builds offline with warnings as errors; what it names exists."""

from __future__ import annotations

import ast
import contextlib
import io
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def _examples(path: Path) -> list[tuple[str, str]]:
    """The examples of a page in their order, each with the text below it that says what is seen, if there is one."""
    found = _BLOCK.findall(path.read_text(encoding="utf-8"))
    return [(code, shown) for skipped, code, shown in found if not skipped]


def _seen(code: str, names: dict[str, object]) -> str:
    """Run an example as a notebook does and return what it prints; the value of the last line included."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "example", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "example", "eval"), names)
            if value is not None:
                print(repr(value))
    return out.getvalue()


WITH_EXAMPLES = [path for path in PAGES if _examples(path)]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example fields with their vectors, made once for all pages."""
    import memoryfield as mf

    base = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "data", base / "data", ignore=shutil.ignore_patterns("*.sqlite3"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYFIELD_CACHE_DIR", str(base / "cache"))
        patch.setenv("MEMORYFIELD_STATE_DIR", str(base / "state"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        for name in ("harbor", "bread"):
            mf.open_field(base / "data" / name, model="all-MiniLM-L6-v2").sync(progress=False)
    return base / "data"


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::UserWarning")  # an example may warn as it would in a notebook
def test_the_examples_of_a_page_run(
    path: Path, embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(embedded, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for code, shown in _examples(path):
        seen = _seen(code, names)
        if shown:
            assert seen.strip() == shown.strip()


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 7


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as ``make docs`` builds it, with the notebooks' pages; those are not executed here."""
    base = tmp_path_factory.mktemp("documentation")
    shutil.copytree(ROOT / "docs", base / "docs", ignore=shutil.ignore_patterns("_build"))
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(base / "docs")]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("$(BIN)/jupyter nbconvert --execute ")[1]
    options = recipe.split("--output-dir")[0].replace("\\\n", " ").split()  # the Makefile's own
    notebooks = [sys.executable, "-m", "jupyter", "nbconvert", *options, "--output-dir", str(base / "out/notebooks")]
    for command in ([*sphinx, str(base / "out")], [*notebooks, *map(str, NOTEBOOKS)]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
    return base / "out"


@pytest.mark.slow
def test_it_builds_offline_with_warnings_as_errors(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        fetched = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)', page.read_text(encoding="utf-8"))
        assert fetched == [], f"{page.name} asks for {fetched}"
        if page.parent.name == "notebooks":  # an output may bring a script along; it is not fetched
            assert "default-src 'self'" in page.read_text(encoding="utf-8")
    verbs = (built / "reference" / "cli.html").read_text(encoding="utf-8")
    assert all(f'id="{verb}"' in verbs for verb in ("search", "merge", "evaluate", "serve", "mcp"))


@pytest.mark.slow
def test_every_link_in_the_build_leads_to_a_page_and_to_a_place_on_it(built: Path) -> None:
    """Also the links to the executed notebooks, from one to the next, and back."""
    targets = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text("utf-8"))) for page in built.rglob("*.html")}
    reached = set()
    for page in targets:
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            address, _, anchor = link.partition("#")
            goal = (page.parent / address).resolve() if address else page
            assert goal.is_file(), f"{page.name}: {link}"
            assert not anchor or goal not in targets or anchor in targets[goal], f"{page.name}: {link}"
            reached.add(goal)
    assert {built / "notebooks" / f"{path.stem}.html" for path in NOTEBOOKS} <= reached


@pytest.mark.slow
def test_a_solution_is_closed_on_the_page_of_a_notebook(built: Path) -> None:
    for path in NOTEBOOKS:
        page = (built / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        solution = next(cell for cell in nbformat.read(path, 4).cells if "solution" in cell.metadata.get("tags", []))
        (closed,) = re.findall(r'<details class="solution">(.*?)</details>', page, re.DOTALL)
        assert f'id="cell-id={solution.id}"' in closed and page.count(f'id="cell-id={solution.id}"') == 1


def test_every_command_that_is_named_exists() -> None:
    from memoryfield.cli.parser import build_parser

    verbs = set(build_parser()._subparsers._group_actions[0].choices)
    for path in PAGES:
        if path.name != "cli.md":
            for verb in re.findall(
                r"^(?:\S+=\S+ )?memoryfield ([a-z]+)|`memoryfield ([a-z]+)", path.read_text(), re.MULTILINE
            ):
                assert (verb[0] or verb[1]) in verbs, f"{path.name}: {verb}"


def test_every_name_with_dots_exists() -> None:
    """A module or a member of one, wherever a page names it."""
    for path in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = path.read_text(encoding="utf-8")
        for name in set(re.findall(r"(?<![\w/.-])memoryfield(?:_widgets)?(?:\.[a-z]\w*)+(?:\.[A-Z]\w*)?", text)):
            if name.endswith((".zip", ".sqlite3", ".ipynb", ".md")):
                continue
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError) as error:
                raise AssertionError(f"{path.name} names {name}") from error


def test_every_link_between_pages_leads_somewhere() -> None:
    for path in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        text = re.sub(
            r"```.*?```|`[^`\n]+`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )  # links that are shown
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            if path.name != "cli.md":
                assert (path.parent / target).exists() or target.endswith("cli.md"), f"{path.name}: {target}"


def _known_rules() -> list[str]:
    lines = (ROOT / "tests" / "rules.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if re.match(r"[A-Z]\d", line)]


def test_every_rule_has_a_place_of_its_own_in_the_documentation() -> None:
    """So that ``#p8`` leads to what P8 means; the glossary says where."""
    text = (ROOT / "docs" / "explanation" / "format.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^### (\S+)\n\n(.+?)(?=\n### |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(parts) == _known_rules()
    assert all(part.startswith("**") for part in parts.values()), "each begins with what it is about"
    assert "format.md#the-rules-by-their-ids" in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_no_other_rule_is_ever_printed() -> None:
    printed = set()
    for path in (ROOT / "memoryfield").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                printed |= {node.value} & {f"{letter}{number}" for letter in "PXAH" for number in range(1, 30)}
    assert {"P1", "P8", "P10", "X8"} <= printed <= set(_known_rules())


def test_the_picture_of_the_floors_is_the_one_that_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = next(one for one in project["tool"]["importlinter"]["contracts"] if one["id"] == "floors")["layers"]
    picture = (
        (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    )
    rows = re.split(r"^[┌├└].*\n", picture, flags=re.MULTILINE)[1:-1]
    assert [" ".join(re.findall(r"^│ ([^│]*[^│\s]) +│", row, re.MULTILINE)) for row in rows] == floors
    assert max(map(len, picture.splitlines())) <= 78, "it is seen whole on a page of 800 pixels"
