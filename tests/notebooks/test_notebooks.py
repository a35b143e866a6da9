"""Every notebook is executed from top to bottom in a fresh kernel; what its text claims, its cells assert."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def _read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


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
    assert not any(output.output_type == "error" for cell in notebook.cells for output in cell.get("outputs", []))


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
    solutions = [cell for cell in code if "solution" in cell.metadata.get("tags", [])]
    assert solutions and all(cell.metadata["jupyter"]["source_hidden"] for cell in solutions)
    assert sum(cell.source.count("assert ") for cell in code) >= 5, "claims of the text are assertions"
    assert all(not cell.get("outputs") for cell in code), "stored without outputs"
    link = re.findall(r"\]\(([^)]+\.ipynb)\)", texts[-1])
    assert (link == [] and path == NOTEBOOKS[-1]) or (path.parent / link[0]).suffix == ".ipynb"
