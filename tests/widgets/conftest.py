"""Fixtures for tests of the widgets without a browser: a small field, and a stand-in for the other end of the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

import memoryfield as mf
from memoryfield_widgets import Panel, State

MODEL = "hashing-1024"
TOPICS = ("winch brake lining", "sour dough starter", "harbour crane rope", "night ferry timetable")


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    """Twelve pages about four things."""
    place = tmp_path / "notes"
    place.mkdir()
    for number in range(12):
        topic = TOPICS[number % 4]
        lines = [
            "---",
            f"title: {topic.title()} {number}",
            f"summary: What we know of the {topic}.",
            f"created: 2026-01-{number + 1:02}",
            f"topic: {topic.split()[0]}",
            "---",
            f"The {topic} was looked at {number} times. " * (number % 3 + 1),
        ]
        (place / f"page-{number:02}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return mf.open_field(place, model=MODEL)


@pytest.fixture
def state(field: mf.MemoryField) -> Iterator[State]:
    made = State.of(field)
    yield made
    made.jobs.cancel()
    assert made.jobs.wait()


@pytest.fixture(autouse=True)
def _no_widgets_left() -> Iterator[None]:
    yield
    ipywidgets.Widget.close_all()


@pytest.fixture
def hear() -> Callable[..., None]:
    """Return what hands a panel a message as if its view had sent it."""

    def send(panel: Panel, kind: str, **content: Any) -> None:
        panel._handle_custom_msg({"kind": kind, **content}, [])

    return send


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[Panel], list[tuple[dict[str, Any], list[Any]]]]:
    """Return what records the messages that a panel sends to its views from now on."""

    def record(panel: Panel) -> list[tuple[dict[str, Any], list[Any]]]:
        sent: list[tuple[dict[str, Any], list[Any]]] = []
        panel.send = lambda content, buffers=None: sent.append((content, list(buffers or [])))  # type: ignore[method-assign]
        return sent

    return record
