"""The magics in a real notebook: results as tables, a page that names the notebook, errors in words, completion."""

from __future__ import annotations

from typing import Any


def test_a_notebook_recalls_and_remembers(notebook: Any, tmp_path: Any) -> None:
    place = tmp_path / "notes"
    place.mkdir()
    (place / "winch.md").write_text("---\ntitle: Winch\n---\nOil the pawls in April.\n")
    book = notebook(
        "%load_ext memoryfield",
        f"%field --model hashing-1024 {place}",
        "%recall when do we oil the pawls?",
        "%%remember --tags rope Rope for the halyard\nTen mm, **not** eight.\n",
        "field.names()",
    )
    shown = ["".join(output.get("data", {}).get("text/html", "")) for output in book.outputs()]
    assert any("notes: 1 page" in html for html in shown)
    assert any("<mark>pawls</mark>" in html for html in shown)
    assert book.ask("field.names()") == ["rope-for-the-halyard", "winch"]
    assert book.ask("field.read('rope-for-the-halyard').frontmatter['source']") == "test.ipynb"

    # run again: the same page
    assert book.run_all()
    assert book.ask("len(field)") == 2

    # what is wrong is said in one line, without a traceback
    reply = book.page.evaluate(
        """async () => {
          const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
          const said = [];
          const future = kernel.requestExecute({code: '%recall -k many pawls'});
          future.onIOPub = (message) => said.push([message.header.msg_type, message.content.text ?? '']);
          const done = await future.done;
          return [done.content.status, said.filter(([type]) => type === 'stream' || type === 'error')];
        }"""
    )
    assert reply[0] == "error"
    assert [kind for kind, _ in reply[1]] == ["stream"]
    assert "whole number" in reply[1][0][1]

    # completion as the editor of a cell asks for it
    matches = book.page.evaluate(
        """async () => {
          const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
          const code = '%recall --retriever ve';
          return (await kernel.requestComplete({code, cursor_pos: code.length})).content.matches;
        }"""
    )
    assert matches == ["vector"]
