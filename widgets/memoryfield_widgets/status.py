"""The status line: what runs and for how long still, what was done, what went wrong. Nothing is silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

import memoryfield as mf
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State


class StatusBar(Panel):
    """One line under the panels of a field.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own.
    """

    _esm = script("status.js")
    _css = style("status.css")
    jobs: traitlets.List[Any] = traitlets.List().tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None) -> None:
        super().__init__(field, state=state, label="Status")
        self.follow(self._show, "busy", "message", "error")
        self._show()

    def _show(self, _changed: frozenset[str] = frozenset()) -> None:
        state = self.state
        with self.hold_sync():
            self.jobs = [
                {"id": job.id, "title": job.title, "done": job.done, "total": job.total, "left": job.seconds_left}
                for job in state.busy
            ]
            self.message = state.message
            self.error = state.error

    def heard_cancel(self, content: Mapping[str, Any]) -> None:
        """Cancel one job."""
        number = content.get("id")
        if isinstance(number, int) and self.state.jobs.cancel(number):
            self.state.say("cancelled")

    def heard_dismiss(self, _content: Mapping[str, Any]) -> None:
        """Take the error away."""
        self.state.error = ""
