"""The editor in JupyterLab: form and raw, diff and save, conflicts, drafts that survive, hostile pages."""

from __future__ import annotations

from typing import Any

import pytest

OPEN = """
import memoryfield as mf
from memoryfield_widgets import PageEditor, State, StatusBar
field = mf.open_field({path!r}, model="hashing-1024")
state = State.of(field)
field.sync(progress=False)
PageEditor(field, {name!r})
"""
NAME = "winch"
ROPE = (
    "The crane has a rope of steel that was made at Tolv and is changed every second year. See [the winch](winch.md)."
)
ATTACK = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>"


@pytest.fixture
def notes(tmp_path: Any) -> Any:
    place = tmp_path / "notes"
    place.mkdir()
    text = "---\ntitle: Winch\nsummary: How to oil it.\nmaker: Tolv\n---\n# Winch\n\nOil **it** in April.\n"
    (place / f"{NAME}.md").write_text(text)
    (place / "crane.md").write_text(f"---\ntitle: Crane\n---\n{ROPE}\n")
    return place


def test_edit_preview_diff_save_and_undo_with_the_mouse(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes), name=NAME))
    panel = book.page.get_by_role("region", name="Page")
    panel.locator(".mf-preview strong", has_text="it").wait_for()
    panel.get_by_label("Title").fill("Winch on deck")
    panel.get_by_label("Tags").fill("deck, oil")
    panel.get_by_label("Text, Markdown").fill("# Winch\n\nOil it *twice*.\n")
    panel.locator(".mf-preview em", has_text="twice").wait_for()
    panel.locator(".mf-dirty", has_text="Not saved").wait_for()
    book.until("list(state.drafts)", [NAME])
    assert "of 8,192 bytes" in panel.locator(".mf-size").inner_text()

    panel.get_by_role("button", name="Save…").click()
    dialog = panel.get_by_role("dialog", name="Save winch?")
    dialog.locator(".mf-added", has_text="Oil it *twice*.").wait_for()
    assert dialog.locator(".mf-removed", has_text="Oil **it** in April.").count() == 1
    assert "twice" not in (notes / "winch.md").read_text()
    book.shot("editor-diff-light", panel)
    dialog.get_by_role("button", name="Save").click()
    book.until("state.message", "winch saved")
    text = (notes / "winch.md").read_text()
    assert "title: Winch on deck" in text and "maker: Tolv" in text and "tags: [deck, oil]" in text
    panel.locator(".mf-dirty", has_text="Not saved").wait_for(state="detached")

    panel.get_by_role("button", name="Undo", exact=True).click()
    book.page.wait_for_function("document.querySelector('.mf-editor .mf-field-title input').value === 'Winch'")
    assert "in April" in (notes / "winch.md").read_text()
    panel.get_by_role("button", name="Redo", exact=True).click()
    book.page.wait_for_function("document.querySelector('.mf-editor .mf-field-title input').value === 'Winch on deck'")
    panel.locator("summary", has_text="History").click()
    panel.get_by_role("button", name="Undo step 1", exact=True).wait_for()
    book.shot("editor-light", panel)
    book.theme(dark=True)
    book.shot("editor-dark", panel)


def test_by_keyboard_alone(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes), name=NAME), "1 + 1")
    keys = book.page.keyboard
    panel = book.page.get_by_role("region", name="Page")
    panel.get_by_label("Title").focus()
    keys.press("Control+A")
    keys.type("dd xx mm")  # commands of the notebook, were they to leak
    keys.press("Control+S")
    panel.get_by_role("dialog", name="Save winch?").wait_for()
    keys.press("Escape")
    panel.get_by_role("dialog").wait_for(state="hidden")
    assert book.page.evaluate("document.activeElement.value") == "dd xx mm"
    keys.press("Control+S")
    panel.get_by_role("dialog", name="Save winch?").wait_for()
    keys.press("Enter")
    book.until("field.read('winch').title", "dd xx mm")
    assert book.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length") == 2

    # to the raw view, and a key that the form does not know
    panel.get_by_role("button", name="Raw").focus()
    keys.press("Enter")
    raw = panel.get_by_label("Raw page")
    raw.wait_for()
    raw.focus()
    keys.press("Control+Home")
    keys.press("ArrowDown")
    keys.type("weight: 80 kg\n")
    keys.press("Control+S")
    panel.get_by_role("dialog", name="Save winch?").wait_for()
    keys.press("Enter")
    book.until("field.read('winch').frontmatter.get('weight')", "80 kg")
    book.until("list(state.drafts)", [])  # until then there is something to save before a rename
    # rename, then delete, then undo
    panel.get_by_role("button", name="Rename…").focus()
    keys.press("Enter")
    keys.type("deck-winch")
    keys.press("Enter")
    book.until("state.active", "deck-winch")
    panel.locator(".mf-name", has_text="deck-winch").wait_for()
    assert "deck-winch.md" in (notes / "crane.md").read_text()
    panel.get_by_role("button", name="Delete…").focus()
    keys.press("Enter")
    panel.get_by_role("dialog", name="Delete deck-winch?").wait_for()
    keys.press("Enter")
    book.until("'deck-winch' in field", False)
    panel.get_by_role("button", name="Undo", exact=True).focus()
    keys.press("Enter")
    book.until("'deck-winch' in field")


def test_two_who_write_and_a_cell_that_runs_again(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes), name=NAME))
    panel = book.page.get_by_role("region", name="Page")
    panel.get_by_label("Text, Markdown").fill("Mine.\n")
    book.until("list(state.drafts)", [NAME])
    # another program writes
    page = notes / "winch.md"
    page.write_text(page.read_text().replace("Oil **it** in April.", "Theirs."))
    panel.get_by_role("button", name="Save…").click()
    dialog = panel.get_by_role("dialog", name="winch was changed elsewhere")
    dialog.get_by_label("On disk now").get_by_text("Theirs.").wait_for()
    book.shot("editor-conflict", panel)
    dialog.get_by_role("button", name="Go on writing").click()

    assert book.run_all()  # the cell is run again: a new field, a new editor
    panel = book.page.get_by_role("region", name="Page")
    panel.locator(".mf-name", has_text=NAME).wait_for()
    panel.locator(".mf-dirty", has_text="Not saved").wait_for()
    assert panel.get_by_label("Text, Markdown").input_value() == "Mine.\n"
    panel.get_by_text("was changed elsewhere since you opened it").wait_for()
    panel.get_by_role("button", name="Save…").click()
    panel.get_by_role("button", name="Write mine over it").click()
    book.until("field.read('winch').body", "Mine.\n")
    assert "Theirs." in book.ask("field.diff()")


def test_similar_pages_while_one_writes_and_a_new_page(notebook: Any, notes: Any) -> None:
    book = notebook(OPEN.format(path=str(notes), name=NAME))
    panel = book.page.get_by_role("region", name="Page")
    panel.get_by_role("button", name="New page").click()
    panel.locator(".mf-name", has_text="New page").wait_for()  # until then it is the other page that is typed into
    assert book.page.evaluate("document.activeElement.labels[0].textContent") == "Title"
    panel.get_by_label("Title").fill("The crane again")
    panel.get_by_label("Text, Markdown").fill(ROPE)
    panel.locator(".mf-similar li", has_text="Crane").wait_for()
    panel.locator(".mf-preview a", has_text="the winch").click()  # the draft waits
    book.until("state.active", "winch")
    panel.locator(".mf-drafts").get_by_role("button", name="new page").click()
    panel.locator(".mf-name", has_text="New page").wait_for()
    assert panel.get_by_label("Text, Markdown").input_value() == ROPE
    panel.get_by_role("button", name="Save…").click()
    panel.get_by_role("dialog", name="Create the page the-crane-again?").get_by_role("button", name="Save").click()
    book.until("'the-crane-again' in field")
    book.until("state.active", "the-crane-again")


def test_hostile_pages_run_no_script_and_fetch_nothing(notebook: Any, notes: Any) -> None:
    image = "![x](http://127.0.0.1:9/track.png)"
    body = f"{ATTACK}\n\n{image}\n\n[x](javascript:window.hacked=3)\n\n<style>*{{display:none}}</style>"
    (notes / "trap.md").write_text(f"---\ntitle: '{ATTACK}'\ntags: ['{ATTACK}']\n---\n{body}\n")
    book = notebook(OPEN.format(path=str(notes), name="trap"))
    panel = book.page.get_by_role("region", name="Page")
    panel.locator(".mf-preview .mf-image").wait_for()
    assert panel.locator("img, script, style, iframe").count() == 0
    for link in panel.locator(".mf-preview a").all():
        assert link.get_attribute("href") is None
    panel.get_by_label("Title").fill(f"{ATTACK} again")
    panel.get_by_role("button", name="Save…").click()
    panel.get_by_role("dialog").get_by_role("button", name="Save").click()
    book.until("state.message", "trap saved")
    assert book.page.evaluate("window.hacked") is None
    assert book.outside == []


def test_a_read_only_archive(notebook: Any, notes: Any) -> None:
    book = notebook(
        f"import memoryfield as mf; archive = mf.open_field({str(notes)!r}).export({str(notes.parent / 'out')!r}).path",
        "from memoryfield_widgets import PageEditor\n"
        "field = mf.open_field(archive, model='hashing-1024')\n"
        "PageEditor(field, 'winch')",
    )
    panel = book.page.get_by_role("region", name="Page")
    panel.get_by_text("This field is read only").wait_for()
    assert panel.get_by_label("Title").get_attribute("readonly") is not None
    for name in ("Save…", "New page", "Delete…", "Undo"):
        assert panel.get_by_role("button", name=name, exact=True).is_disabled()
