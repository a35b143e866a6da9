"""Models side by side in JupyterLab: two maps linked by page, by mouse and by keyboard, and the figures below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WHERE = """([row, side]) => {
  const twins = document.querySelector('.mf-models').twins;
  const box = twins.sides[side].stage.getBoundingClientRect();
  const [x, y] = twins.at(twins.sides[side], row);
  return [box.left + twins.sides[side].stage.clientLeft + x, box.top + twins.sides[side].stage.clientTop + y];
}"""


def test_two_spaces_are_compared_on_linked_maps(notebook: Any, harbor_copy: Path) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    (harbor_copy / "hostile.md").write_text(f"---\ntitle: {hostile}\n---\n{hostile}\n")
    probes = harbor_copy.parent / "probes.jsonl"
    probes.write_text('{"id": "a", "question": "when is the yard open in autumn", "gold": ["autumn-opening-hours"]}\n')
    book = notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import ModelComparison
        field = mf.open_field({str(harbor_copy)!r}, model="hashing-1024")
        models = ModelComparison(field, ["hashing-1024"], {str(probes)!r}, recipes=["page", "content"])
        models.draw("pca")
        models
        """,
        "1 + 1",
        size=(1500, 1500),
    )
    page, panel = book.page, book.page.locator(".mf-models")
    book.theme(dark=False)
    panel.locator(".mf-changed > li").first.wait_for()
    page.wait_for_function("document.querySelector('.mf-models').dataset.count === '180'")
    twins = "document.querySelector('.mf-models').twins"
    stages = panel.locator(".mf-twin-stage")
    stages.first.scroll_into_view_if_needed()

    # hover: the same page is lit in both, and how both see it is told
    row = page.evaluate(f"{twins}.numbered[0]")
    name = book.ask(f"list(models.comparison.pages)[{row}]")
    page.mouse.move(*page.evaluate(WHERE, [row, 1]))
    page.wait_for_function(f"{twins}.pointed === {row}")
    panel.locator(".mf-models-caption", has_text=name).wait_for()
    panel.locator(".mf-models-look", has_text=name).wait_for()
    panel.locator(".mf-models-caption.mf-hidden", has_text=name).wait_for()  # the heading says it: it is shown once
    page.wait_for_function(f"{twins}.focus.row === {row} && {twins}.focus.near[0].length > 0")
    # click: selected and opened everywhere
    page.mouse.click(*page.evaluate(WHERE, [row, 0]))
    book.until("models.state.active", name)
    assert book.ask("models.state.selected") == [name]
    # selected elsewhere: lit here
    book.do("models.state.selected = ['autumn-haul-out-log', 'autumn-opening-hours']")
    page.wait_for_function(f"{twins}.selection.size === 2")
    book.shot("models-light", panel)
    book.theme(dark=True)
    panel.get_by_label("Lines").select_option("all")
    book.shot("models-dark", panel)
    panel.get_by_label("Lines").select_option("selected")

    # one view for both: the wheel zooms both, a dragged box selects on either
    scale = page.evaluate(f"{twins}.view.scale")
    box = stages.nth(1).bounding_box()
    page.mouse.move(box["x"] + 150, box["y"] + 150)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"{twins}.view.scale > {scale * 1.2}")
    panel.get_by_role("button", name="Show all").click()
    page.wait_for_function(f"Math.abs({twins}.view.scale - {scale}) < 1e-6")
    book.do("models.state.selected = ()")
    page.wait_for_function(f"{twins}.selection.size === 0")
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] - 4, steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    book.until("len(models.state.selected)", 180)

    # keyboard only: step through what changed most, choose it, clear
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    stages.first.focus()
    page.keyboard.press("Escape")
    book.until("len(models.state.selected)", 0)
    for key in ("n", "n", "p", "Enter"):
        page.keyboard.press(key)
    book.until("models.state.active", book.ask("models.changed[0]['name']"))
    for key in ("+", "ArrowLeft", "-", "0", "d", "d"):
        page.keyboard.press(key)
    assert page.evaluate(cells) == 2

    # another pair, the figures, hostile text
    first, second = panel.get_by_label("First space"), panel.get_by_label("Second space")
    first.select_option("hashing-1024 (content)")
    book.until("models.shown_pair", ["hashing-1024 (content)", "hashing-1024"])
    page.wait_for_function("document.querySelector('[aria-label^=\"Second space\"]').value === 'hashing-1024'")
    assert second.input_value() == "hashing-1024"
    assert panel.locator(".mf-figures").count() >= 3
    panel.locator(".mf-figures td", has_text="[").first.wait_for()  # retrieval with intervals
    book.do("models.state.active = 'hostile'")
    panel.locator(".mf-models-look", has_text="<img src=x").wait_for()
    assert panel.locator("img, script").count() == 0 and "owned" not in page.title()
    assert book.ask("models.state.error") == ""
    page.set_viewport_size({"width": 800, "height": 1200})
    page.wait_for_function("document.querySelector('.mf-models').clientWidth < 700")
    assert panel.evaluate("el => el.scrollWidth - el.clientWidth") <= 0
    book.shot("models-800", panel)


def test_what_is_compared_is_chosen_in_the_panel(notebook: Any, tmp_path: Path) -> None:
    place = tmp_path / "notes"
    place.mkdir()
    for number in range(6):
        (place / f"page-{number}.md").write_text(f"---\ntitle: Page {number}\n---\nAbout thing {number * 7}.\n")
    book = notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import ModelComparison
        field = mf.open_field({str(place)!r}, model="hashing-1024")
        models = ModelComparison(field)
        models
        """
    )
    panel = book.page.locator(".mf-models")
    panel.get_by_role("checkbox", name="hashing-1024", exact=True).check()
    panel.get_by_role("checkbox", name="page", exact=True).check()
    panel.get_by_role("checkbox", name="content", exact=True).check()
    panel.get_by_role("button", name="Compare", exact=True).click()
    panel.locator(".mf-changed > li").first.wait_for()
    assert book.ask("models.labels") == ["hashing-1024", "hashing-1024 (content)"]
    book.do("field.edit('page-1', body='Other words.\\n'); models.state.wrote('edited')")
    panel.get_by_role("button", name="Compare again").click()
    book.until("models.stale", False)
