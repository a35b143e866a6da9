"""The workbench: all panels of a field in one layout on one state."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any

import ipywidgets
import traitlets

import memoryfield as mf
import memoryfield_widgets
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.map import MemoryMap
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State
from memoryfield_widgets.watching import Watch

MAKERS = {
    "search": "SearchBox",
    "map": "MemoryMap",
    "status": "StatusBar",
    "page": "PageEditor",
    "families": "FamilyReview",
    "models": "ModelComparison",
    "probes": "ProbeAnnotator",
}  # names in the package, which loads what is asked for: a tab that stays closed costs nothing
TABS = ("page", "families", "models", "probes")
_SHOWN_AT_ONCE = ("search", "map", "status", "page")  # the others are made when their tab is first opened


class Workbench(Panel):
    """Search, map, editor, families, models and probes of a field side by side.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own, so that two workbenches of one field show the same.
        tab: Which tab is open at first: ``page``, ``families``, ``models`` or ``probes``.
    """

    _esm = script("workbench.js")
    _css = style("workbench.css")
    _shows_faults = False
    parts = traitlets.Dict().tag(sync=True, **ipywidgets.widget_serialization)
    tab = traitlets.Unicode("page").tag(sync=True)
    active = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    hint = traitlets.Unicode("").tag(sync=True)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None, tab: str = "page") -> None:
        self._panels: dict[str, Panel] = {}
        super().__init__(field, state=state, label="Workbench")
        _check_tab(tab)
        _take_the_place_of_the_last(self)
        self._watch = Watch(self.field.path)
        for name in _SHOWN_AT_ONCE:
            self.panel(name)
        self.panel(tab)
        self.follow(self._show, "active", "revision")
        self._show()
        self.parts = dict(self._panels)
        self.tab = tab

    def panel(self, name: str) -> Panel:
        """Return one of the panels, made when it is first asked for.

        Args:
            name: ``search``, ``map``, ``status``, ``page``, ``families``, ``models`` or ``probes``.
        """
        if name not in MAKERS:
            raise mf.errors.QueryError(f"there is no panel {name!r}; there are {', '.join(MAKERS)}")
        found = self._panels.get(name)
        if found is None:
            found = self._panels[name] = getattr(memoryfield_widgets, MAKERS[name])(self.state)
        return found

    # --- down ---------------------------------------------------------------------------------------------------------

    def _show(self, changed: frozenset[str] = frozenset()) -> None:
        if "revision" in changed:
            self._watch.look()  # what was changed here is no news
        count = len(self.field)
        with self.hold_sync():
            self.active = self.state.active or ""
            self.title = f"{self.field.name}: {count:,} {'page' if count == 1 else 'pages'}"
            self.hint = "read only" if self.field.read_only else ""

    # --- up -----------------------------------------------------------------------------------------------------------

    def heard_tab(self, content: Mapping[str, Any]) -> None:
        """Open a tab; its panel is made now if it was not there yet."""
        name = content.get("name")
        if isinstance(name, str) and name in TABS:
            self.show(name)

    def show(self, tab: str) -> None:
        """Open a tab."""
        _check_tab(tab)
        self.panel(tab)
        self.parts = dict(self._panels)
        self.tab = tab

    def heard_look(self, _content: Mapping[str, Any]) -> None:
        """Someone is back, or some time has gone by: see whether another program has changed the field."""
        self.state.jobs.start(f"look {self.model_id}", self._look, self._saw)

    def _look(self, _job: Job) -> tuple[str, ...]:
        return self._watch.look()

    def _saw(self, names: tuple[str, ...]) -> None:
        if names:
            count = len(names)
            named = ", ".join(names[:3]) + (f" and {count - 3} more" if count > 3 else "")
            self.state.wrote(f"changed by another program: {named}")

    # --- for Python ---------------------------------------------------------------------------------------------------

    @property
    def map(self) -> MemoryMap:
        """The map, with ``select`` and ``selected``."""
        found = self.panel("map")
        assert isinstance(found, MemoryMap)
        return found

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selected pages."""
        return self.state.selected

    @property
    def hits(self) -> Any:
        """The results of the last search (``SearchResults``), or None."""
        return self.state.hits

    def ask(self, query: str, **settings: Any) -> None:
        """Search as if it had been typed; see ``State.ask``."""
        self.state.ask(query, delay=0.0, **settings)

    def close(self) -> None:
        """Take the workbench and its panels away; drafts and the state stay."""
        for panel in self._panels.values():
            panel.close()
        self._panels.clear()
        super().close()

    def twin(self) -> str:
        """Return the static parts of the panels that have any, map first."""
        order = ["map", "search", *TABS]
        shown = [self._panels[name].twin() for name in order if name in self._panels]
        closed = [name for name in TABS if name not in self._panels]
        if closed:
            calls = ", ".join(f"{MAKERS[name]}(field)" for name in closed)
            shown.append(
                self.not_yet(
                    f"the tabs {', '.join(closed)} had not been opened. {calls} show them in a cell of their own."
                )
            )
        return "".join(shown)


def _check_tab(tab: str) -> None:
    if tab not in TABS:
        raise mf.errors.QueryError(f"there is no tab {tab!r}; there are {', '.join(TABS)}")


# --- one cell, one workbench ------------------------------------------------------------------------------------------

_last: dict[tuple[str, str], tuple[str, weakref.ref[Workbench]]] = {}


def _take_the_place_of_the_last(made: Workbench) -> None:
    """Close the workbench that an earlier run of the same cell made: its view is gone, but it would go on working."""
    cell, run = _cell_and_run()
    if not cell:
        return
    key = (cell, str(made.field.path.absolute()))
    former_run, former = _last.get(key, ("", lambda: None))
    old = former()
    if old is not None and former_run != run:
        old.close()
    _last[key] = (run, weakref.ref(made))


def _cell_and_run() -> tuple[str, str]:
    """Return the id of the cell that runs and of this run of it; empty texts outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    try:
        parent = shell.get_parent() if shell is not None else {}
        return str(parent["metadata"].get("cellId") or ""), str(parent["header"]["msg_id"])
    except (AttributeError, KeyError, TypeError, LookupError):
        return "", ""
