"""The harness itself: a notebook runs, the kernel answers, and leaks of keys, scripts and requests are seen."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_panel_lives_in_jupyterlab(notebook: Any, harbor_copy: Any) -> None:
    book = notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import StatusBar, State
        field = mf.open_field({str(harbor_copy)!r}, model="hashing-1024")
        state = State.of(field)
        StatusBar(field)
        """,
    )
    bar = book.page.locator(".mf-status")
    bar.get_by_text("Ready").wait_for()
    assert book.ask("len(field)") == 180

    # a message from the kernel, from the main thread and from a worker
    book.do("state.say('hello from the kernel')")
    bar.get_by_text("hello from the kernel").wait_for()
    book.do("state.jobs.start('greet', lambda job: state.say('hello from a thread'))")
    bar.get_by_text("hello from a thread").wait_for()

    # a job with progress, cancelled by keyboard only
    book.do(
        "import threading; go = threading.Event()\n"
        "def work(job):\n"
        "    job.progress(3, 10)\n"
        "    go.wait(60)\n"
        "    job.progress(4, 10)\n"
        "state.jobs.start('index', work, title='embedding pages', long=True)"
    )
    bar.get_by_text("embedding pages, 3 of 10 pages").wait_for()
    cancel = bar.get_by_role("button", name="Cancel: embedding pages")
    cancel.focus()
    book.page.keyboard.press("Enter")
    bar.get_by_text("cancelled").wait_for()
    book.do("go.set()")
    assert book.ask("state.busy") == []

    # an error is said in words, and taken away
    book.do("state.fail(mf.errors.QueryError('<img src=x onerror=alert(1)> is no question'))")
    bar.get_by_role("alert").get_by_text("<img src=x onerror=alert(1)> is no question").wait_for()
    assert bar.locator("img").count() == 0
    book.shot("status-light", bar)
    book.theme(dark=True)
    assert "mf-dark" in bar.get_attribute("class")
    book.shot("status-dark", bar)
    bar.get_by_role("button", name="Dismiss").click()
    bar.locator(".mf-error").wait_for(state="detached")


def test_keys_in_a_panel_do_not_reach_the_notebook(notebook: Any, tmp_path: Any) -> None:
    book = notebook(
        f"""
        import memoryfield as mf
        from memoryfield_widgets import StatusBar
        field = mf.open_field({str(tmp_path / "new")!r}, create=True, model="hashing-1024")
        StatusBar(field)
        """,
        "1 + 1",
    )
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    book.do("from memoryfield_widgets import State; State.of(field).fail('something to dismiss')")
    button = book.page.get_by_role("button", name="Dismiss")
    button.focus()
    for key in ("a", "b", "d", "d", "x", "m", "Escape"):  # in command mode: insert, insert, delete, cut, to Markdown
        book.page.keyboard.press(key)
    assert book.page.evaluate(cells) == 2
    assert book.page.evaluate("document.activeElement.textContent") == "Dismiss"


def test_the_harness_sees_what_goes_wrong(notebook: Any) -> None:
    book = notebook("value = 41")
    assert book.ask("value + 1") == 42
    with pytest.raises(AssertionError, match="NameError"):
        book.ask("no_such_name")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        book.do("1 / 0")
    with pytest.raises(AssertionError, match="is 41, not 42"):
        book.until("value", 42, seconds=0.2)
    book.page.evaluate("() => { setTimeout(() => { throw new Error('for the test') }, 0) }")
    book.page.evaluate("() => fetch('http://127.0.0.1:9/elsewhere').catch(() => null)")
    book.page.wait_for_timeout(0)
    assert any("for the test" in problem for problem in book.problems)
    assert book.outside == ["http://127.0.0.1:9/elsewhere"]
    book.problems.clear()
    book.outside.clear()
