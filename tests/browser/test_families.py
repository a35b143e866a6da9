"""The review of families in JupyterLab: answers by key, a merge that is planned, applied and undone, hostile pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> $x$ [a](javascript:alert(1))"
)


def _open(notebook: Any, place: Path, **options: Any) -> Any:
    return notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import FamilyReview, State
        field = mf.open_field({str(place)!r}, model="hashing-1024")
        before = {{page.name: page.raw for page in field.pages()}}
        review = FamilyReview(field)
        review
        """,
        "1 + 1",
        **options,
    )


def _small(place: Path) -> Path:
    texts = {
        "slip": "The slip is usable two hours either side of high water, never with wind from the south-east.",
        "winch": "Grease the winch drum and the pawls with the blue tin before every haul-out of a heavy boat.",
        "paint": "Antifouling needs eight degrees and a dry hull; the second coat goes on the day after the first.",
        "keys": "Keys of the joinery hang in the office behind the door, the spare ones in the chandlery.",
    }
    place.mkdir()
    for name, text in texts.items():
        (place / f"{name}.md").write_text(
            f"---\ntitle: {text[:28]}\n---\n{text}\n\n{HOSTILE if name == 'slip' else ''}\n"
        )
    text = texts["slip"].replace("two hours", "three hours")
    (place / "slip-again.md").write_text(f"---\ntitle: {text[:28]} {HOSTILE}\n---\n{text} Ask Ines.\n\n{HOSTILE}\n")
    return place


def test_pairs_are_answered_by_keyboard_only(notebook: Any, harbor_copy: Path) -> None:
    book = _open(notebook, harbor_copy)
    panel = book.page.locator(".mf-families")
    panel.get_by_text("Do these two pages say the same?").wait_for()
    assert panel.get_by_text("more are worthwhile").is_visible()
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    body = panel.locator(".mf-review-body").first
    assert panel.locator("mark.mf-differs").count() > 0 and panel.locator(".mf-equal").count() > 0
    book.theme(dark=False)
    book.shot("families-review-light", panel)

    body.click()  # a click into the text is enough: the keys are heard
    asked = [book.ask("review.pair")]
    for number, key in enumerate(("s", "d", "u", "n", " "), start=2):
        book.page.keyboard.press(key)
        panel.get_by_text(f"Question {number}", exact=True).wait_for()
        asked.append(book.ask("review.pair"))
    assert len({tuple(pair) for pair in asked}) == len(asked)
    # a slow machine learns from an answer while the next question is shown
    book.until("[review.found.evidence(*p).answer for p in review._trail[:2]]", [True, False])
    book.until("len(review.found.reviews)", 2)
    for number in (5, 4, 3, 2):
        book.page.keyboard.press("b")
        panel.get_by_text(f"Question {number}", exact=True).wait_for()
    different = panel.get_by_role("button", name="Different")
    assert different.get_attribute("aria-pressed") == "true"
    book.page.keyboard.press("s")  # a change of mind
    panel.get_by_text("Question 3", exact=True).wait_for()
    book.until("review.found.evidence(*review._trail[1]).answer")
    assert book.page.evaluate(cells) == 2  # no key reached the notebook: "d" "d" would have deleted a cell
    assert book.page.evaluate("document.activeElement.closest('.mf-review') !== null")

    book.theme(dark=True)
    book.shot("families-review-dark", panel)
    # buttons do the same
    panel.get_by_role("button", name="Skip").click()
    panel.get_by_text("Question 4", exact=True).wait_for()
    panel.get_by_role("tab", name="Families (").click()
    assert panel.locator(".mf-groups > li").count() == book.ask("len(review.found)")
    book.shot("families-list-dark", panel)


def test_a_family_is_merged_and_the_merge_undone(notebook: Any, harbor_copy: Path) -> None:
    book = _open(notebook, harbor_copy)
    page, panel = book.page, book.page.locator(".mf-families")
    panel.get_by_text("Do these two pages say the same?").wait_for()
    panel.get_by_role("tab", name="Families (").click()
    names = book.ask("list(review.found[-1])")
    panel.locator(".mf-groups > li").last.get_by_role("button", name="Plan the merge").click()
    title = panel.get_by_role("heading", name="Merge 2 pages into")
    title.wait_for()
    assert page.evaluate("document.activeElement.textContent").startswith("Merge 2 pages")
    survivor = book.ask("review.desk.plan.survivor")
    other = next(name for name in names if name != survivor)
    panel.get_by_role("radio", name=other).check()
    panel.get_by_role("heading", name=f"into {other}").wait_for()
    book.theme(dark=False)
    book.shot("families-merge-light", panel)

    # one sentence is dropped, the text is edited; until it is taken over nothing else can be done
    drop = panel.get_by_role("button", name="Drop:").first
    drop.click()
    panel.get_by_text("dropped by you").first.wait_for(state="attached")
    text = panel.get_by_role("textbox", name="Merged text")
    text.press("Control+End")
    text.press_sequentially("\nAdded by hand.\n")
    panel.get_by_label("Title", exact=True).fill("A title by hand")
    apply = panel.get_by_role("button", name="Apply the merge")
    assert apply.is_disabled()
    panel.get_by_role("button", name="Take over this text").click()
    panel.locator(".mf-diff-new", has_text="Added by hand.").wait_for()
    panel.locator(".mf-diff-new", has_text="A title by hand").wait_for()
    assert apply.is_enabled()
    book.theme(dark=True)
    book.shot("families-merge-dark", panel)
    apply.focus()
    page.keyboard.press("Enter")
    panel.get_by_text(f"{survivor} merged into {other}").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Undo"
    assert book.ask(f"[{survivor!r} in field, b'Added by hand.' in field.read({other!r}).raw]") == [False, True]
    book.shot("families-merged-dark", panel)
    page.keyboard.press("Enter")
    panel.get_by_text(f"Undone: {survivor} merged into {other}").wait_for()
    assert book.ask("{page.name: page.raw for page in field.pages()} == before")
    book.until("not review.state.busy")
    assert book.ask("review.state.error") == ""


def test_hostile_pages_stay_text_and_a_stale_plan_says_so(notebook: Any, tmp_path: Path) -> None:
    place = _small(tmp_path / "notes")
    book = _open(notebook, place, size=(800, 900))
    panel = book.page.locator(".mf-families")
    panel.get_by_text("Do these two pages say the same?").wait_for()
    panel.get_by_role("tab", name="Families (1)").click()
    panel.get_by_role("button", name="Plan the merge").click()
    panel.get_by_role("heading", name="Merge 2 pages").wait_for()
    page = place / "slip.md"
    page.write_text(page.read_text() + "\nAnother hand.\n")
    panel.get_by_role("button", name="Apply the merge").click()
    panel.locator(".mf-desk-stale", has_text="slip.md was changed since the plan was made").wait_for()
    assert panel.get_by_role("button", name="Apply the merge").is_disabled()
    book.shot("families-stale-800", panel)
    panel.get_by_role("button", name="Make a new plan").first.click()
    panel.locator(".mf-diff").get_by_text("Another hand.").first.wait_for()
    assert panel.locator(".mf-desk-stale").count() == 0
    assert panel.locator("img, script, a").count() == 0
    panel.locator(".mf-diff").get_by_text("<img src=x").first.wait_for()
    assert "owned" not in book.page.title()
    overflow = "el => el.scrollWidth - el.clientWidth"
    assert panel.evaluate(overflow) <= 0
    panel.get_by_role("button", name="Leave without merging").click()
    panel.get_by_role("tab", name="Families (1)").wait_for()
    assert book.ask("sorted(field)") == ["keys", "paint", "slip", "slip-again", "winch"]
    # the cell runs again: the same families, no question twice, nothing left behind that fails
    assert book.run_all()
    panel.get_by_text("Do these two pages say the same?").wait_for()


def test_an_archive_shows_families_and_merges_none(notebook: Any, tmp_path: Path) -> None:
    import memoryfield as mf

    place = _small(tmp_path / "notes")
    archive = mf.open_field(place, model="hashing-1024").export(tmp_path / "notes.memoryfield.zip").path
    book = _open(notebook, archive)
    panel = book.page.locator(".mf-families")
    panel.get_by_text("Do these two pages say the same?").wait_for()
    panel.get_by_role("tab", name="Families (1)").click()
    assert panel.get_by_role("button", name="Plan the merge").is_disabled()
    panel.get_by_text("This field is read only").wait_for()
