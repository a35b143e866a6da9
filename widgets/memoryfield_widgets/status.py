"""The status line: what runs and for how long still, what was done, what went wrong. Nothing is silent.

Below it, on demand, the vector indexes of the field: how far each is behind, to be built, updated or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State


class StatusBar(Panel):
    """One line under the panels of a field, and its indexes on demand.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own.
    """

    _esm = script("status.js")
    _css = style("status.css")
    _shows_faults = False
    jobs: traitlets.List[Any] = traitlets.List().tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None) -> None:
        super().__init__(field, state=state, label="Status")
        self._is_open = False
        self.follow(self._show, "busy", "message", "error")
        self.follow(self._look, "revision")
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

    # --- indexes ------------------------------------------------------------------------------------------------------

    def heard_indexes(self, content: Mapping[str, Any]) -> None:
        """The list of indexes was opened or closed."""
        self._is_open = bool(content.get("open"))
        self._look()

    def _look(self, _changed: frozenset[str] = frozenset()) -> None:
        """Find out how the indexes are; on the worker thread, for it reads the pages' stamps."""
        if self._is_open:
            self.state.jobs.start(f"indexes {id(self)}", self._states, self._tell_indexes)

    def _states(self, _job: Job) -> tuple[list[dict[str, Any]], list[str]]:
        table = self.field.overview()
        problems = {state.path.name: state.problem for state in self.field.indexes()}
        names = ("file", "model", "recipe", "dimensions", "rows", "state", "written")
        rows = [dict(zip(names, row, strict=True)) for row in table.rows]
        for row in rows:
            row["problem"] = problems.get(row["file"], "")
        ready = [model.code for model in mf.models() if model.ready]
        return rows, ready

    def _tell_indexes(self, found: tuple[list[dict[str, Any]], list[str]]) -> None:
        rows, ready = found
        built = {row["model"] for row in rows}
        self.tell("indexes", {"rows": rows, "models": [code for code in ready if code not in built]})

    def heard_build(self, content: Mapping[str, Any]) -> None:
        """Build an index, or bring it up to date."""
        self.state.index(str(content["model"]), str(content["recipe"]) if content.get("recipe") else None)

    def heard_delete(self, content: Mapping[str, Any]) -> None:
        """Delete an index; the script asked whether that is meant."""
        name = str(content["file"])

        def done(_state: Any) -> None:
            self.state.say(f"deleted the index {name}")
            self._look()

        self.state.jobs.start("delete index", lambda job: self.field.delete_index(name), done, title=f"deleting {name}")
