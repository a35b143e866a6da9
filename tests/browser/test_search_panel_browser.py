"""The search panel in JupyterLab: typing, keys, mouse, settings, and pages that would like to run scripts."""

from __future__ import annotations

from typing import Any

OPEN = """
import memoryfield as mf
from memoryfield_widgets import SearchBox, State
field = mf.open_field({path!r}, model="hashing-1024")
state = State.of(field)
field.search("anything", progress=False)  # models load here, however slow the machine
SearchBox(field)
"""


def settled(book: Any, query: str) -> None:
    """Wait until the kernel has answered a question, and the window lists what it found."""
    book.until("state.hits is not None and state.hits.query", query)
    book.page.wait_for_function(
        "(names) => names.join() === [...document.querySelectorAll('.mf-search [role=option]')]"
        ".map((option) => option.dataset.name).join()",
        arg=book.ask("state.hits.names"),
    )


def test_typing_arrows_enter_and_escape(notebook: Any, harbor_copy: Any) -> None:
    book = notebook(OPEN.format(path=str(harbor_copy)), "1 + 1")
    box = book.page.get_by_role("region", name="Search")
    question = box.get_by_role("combobox", name="Question")
    assert question.get_attribute("aria-expanded") == "false"
    assert question.evaluate("field => getComputedStyle(field).paddingInlineEnd") == "32px"  # room for the cross
    question.focus()
    book.page.keyboard.type("why did the backup stop", delay=20)
    settled(book, "why did the backup stop")
    options = box.get_by_role("option")
    options.first.wait_for()
    names = book.ask("state.hits.names")
    assert [option.get_attribute("data-name") for option in options.all()] == names
    assert question.get_attribute("aria-expanded") == "true"
    assert box.locator("mark", has_text="backup").count() > 0

    for _ in range(2):
        book.page.keyboard.press("ArrowDown")
    assert question.get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    book.page.keyboard.press("Enter")
    book.until("state.active", names[1])
    book.until("list(state.selected)", [names[1]])
    box.locator(f'[role=option][data-name="{names[1]}"][aria-selected=true]').wait_for()
    assert options.nth(0).get_attribute("aria-selected") == "false"
    book.page.keyboard.press("ArrowUp")
    book.page.keyboard.press("Shift+Enter")
    book.until("sorted(state.selected)", sorted(names[:2]))
    book.shot("search-light", box)
    book.theme(dark=True)
    book.shot("search-dark", box)

    book.page.keyboard.press("Escape")  # first the place in the list, then the question
    assert question.get_attribute("aria-activedescendant") is None
    assert question.input_value() == "why did the backup stop"
    book.page.keyboard.press("Escape")
    assert question.input_value() == ""
    book.until("state.hits is None")
    options.first.wait_for(state="detached")
    # letters that are commands of the notebook stayed here
    assert book.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length") == 2


def test_mouse_settings_and_what_others_ask(notebook: Any, harbor_copy: Any) -> None:
    book = notebook(OPEN.format(path=str(harbor_copy)))
    box = book.page.get_by_role("region", name="Search")
    question = box.get_by_role("combobox", name="Question")
    question.fill("paint")
    settled(book, "paint")
    third = box.get_by_role("option").nth(2)
    third.click()
    book.until("state.active", third.get_attribute("data-name"))
    box.get_by_role("button", name="Select all on the map").click()
    book.until("list(state.selected) == state.hits.names")

    box.get_by_role("button", name="Settings").click()
    box.get_by_label("Look for").select_option("keyword")
    book.until("state.hits.retriever", "keyword")
    box.get_by_label("Most pages").fill("3")
    box.get_by_label("Most pages").press("Tab")
    book.until("len(state.hits)", 3)
    box.get_by_label("Since").fill("some day")
    box.get_by_label("Since").press("Tab")
    box.get_by_text("'some day' is no date").wait_for()
    assert box.get_by_label("Since").get_attribute("aria-invalid") == "true"
    book.shot("search-settings", box)

    # the kernel asks, from a second thread; the box follows
    book.do("import threading; t = threading.Thread(target=lambda: state.ask('crane', delay=0)); t.start(); t.join()")
    settled(book, "crane")
    book.page.wait_for_function("document.querySelector('.mf-search [role=combobox]').value === 'crane'")
    # nothing good enough is not the same as nothing there
    book.do("state.ask(delay=0, retriever='vector', filters={'min_score': 0.999})")
    box.locator(".mf-heading", has_text="Nothing good enough.").wait_for()


def test_fast_typing_loses_no_letter_and_late_answers_are_dropped(notebook: Any, harbor_copy: Any) -> None:
    book = notebook(OPEN.format(path=str(harbor_copy)))
    question = book.page.get_by_role("combobox", name="Question")
    question.focus()
    long = "how do we launch a heavy boat when the crane is out of order"
    for pause, text in ((0, long), (40, long), (160, long[:20]), (0, long)):  # faster and slower than the box waits
        question.fill("")
        book.page.keyboard.type(text, delay=pause)
        settled(book, text)
        assert question.input_value() == text
    assert book.page.locator(".mf-search .mf-heading").inner_text().startswith("10 pages")


def test_pages_run_no_script(notebook: Any, tmp_path: Any) -> None:
    place = tmp_path / "hostile"
    place.mkdir()
    attack = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>"
    (place / "trap.md").write_text(f"---\ntitle: '{attack}'\nsummary: '{attack}'\n---\nzyzzyva {attack}\n")
    book = notebook(OPEN.format(path=str(place)))
    box = book.page.get_by_role("region", name="Search")
    box.get_by_role("combobox").fill("zyzzyva <img src=x onerror=window.hacked=3>")
    box.get_by_role("option").first.wait_for()
    assert box.locator("img, script").count() == 0
    assert "<script>" in box.get_by_role("option").first.inner_text()
    assert book.page.evaluate("window.hacked") is None
