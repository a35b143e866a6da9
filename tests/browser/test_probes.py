"""The annotator of probes in JupyterLab: a question is asked, judged and saved without a mouse, and judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_questions_are_written_and_judged_by_keyboard_only(notebook: Any, harbor_copy: Path) -> None:
    hostile = harbor_copy / "hostile.md"
    attack = "<img src=x onerror=\"document.title='owned'\"> <script>document.title='owned'</script>"
    hostile.write_text(f"---\ntitle: Winch brake {attack}\nsummary: {attack}\n---\nWinch brake lining. {attack}\n")
    book = notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import ProbeAnnotator
        field = mf.open_field({str(harbor_copy)!r}, model="hashing-1024")
        annotator = ProbeAnnotator(field)
        annotator
        """,
        "1 + 1",
    )
    page, panel = book.page, book.page.locator(".mf-probes")
    book.theme(dark=False)
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    panel.get_by_role("textbox", name="Question").focus()
    page.keyboard.type("how is the winch brake looked after")
    page.keyboard.press("Enter")
    pool = panel.locator(".mf-pool > li")
    pool.first.wait_for()
    assert page.evaluate("document.activeElement.classList.contains('mf-pool')")  # ready to judge
    names = book.ask("annotator._draft['pool']")
    assert pool.count() == len(names) and "hostile" in names
    assert panel.locator("img, script").count() == 0 and "owned" not in page.title()

    for key in ("j", "j", "g", "5", "k", "t"):
        page.keyboard.press(key)
    book.until("sorted(annotator._draft['gold'])", sorted([names[2], names[4]]))
    assert panel.locator(".mf-pool > li.mf-at details").get_attribute("open") is not None
    book.shot("probes-light", panel)
    book.theme(dark=True)
    book.shot("probes-dark", panel)
    page.keyboard.press("5")
    book.until("annotator._draft['gold']", [names[2]])
    page.keyboard.press("s")
    panel.get_by_text("1 probe saved").wait_for()
    saved = json.loads((harbor_copy.parent / "harbor.probes.jsonl").read_text())
    assert saved["gold"] == [f"{names[2]}.md"] and saved["id"] == "harbor-0001"

    # at once the next one: no page answers it
    page.wait_for_function("document.activeElement.classList.contains('mf-probes-question')")
    page.keyboard.type("who won the chess match")
    page.keyboard.press("Enter")
    book.until("annotator._draft['pool'] != []")
    page.wait_for_function("document.activeElement.classList.contains('mf-pool')")
    page.keyboard.press("x")
    panel.get_by_text("No page answers it.").wait_for()
    page.keyboard.press("s")
    panel.get_by_text("2 probes saved").wait_for()
    assert book.ask("[p.answerable for p in mf.read_probes(annotator.path)]") == [True, False]
    assert page.evaluate(cells) == 2  # no key reached the notebook

    # judged again, with the mouse, and a page added by its name
    panel.locator(".mf-saved button", has_text="winch brake").click()
    panel.locator(".mf-pool > li.mf-gold").wait_for()
    another = panel.get_by_role("textbox", name="Name of another page")
    another.fill("no-such-page")
    another.press("Enter")
    panel.get_by_role("alert").get_by_text("no-such-page").wait_for()
    panel.get_by_role("button", name="Dismiss").click()
    panel.locator(".mf-fault").wait_for(state="hidden")
    another.fill("autumn-haul-out-log")
    panel.get_by_role("button", name="Add as gold").click()
    panel.locator(".mf-probes-state", has_text="2 pages of").wait_for()
    panel.get_by_role("button", name="Save harbor-0001 again").click()
    book.until("len(mf.read_probes(annotator.path)[0].gold)", 2)
    panel.get_by_role("button", name="Delete harbor-0002").click()
    panel.get_by_role("button", name="Really delete harbor-0002?").click()
    panel.get_by_text("1 probe saved").wait_for()
    # the cell runs again: what is in the file is there
    assert book.run_all()
    panel.get_by_text("1 probe saved").wait_for()
    assert book.ask("annotator.state.error") == ""
