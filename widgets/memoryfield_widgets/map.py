"""The map of a field: a point for each page, to look at, to search on and to select from.

``map.js`` draws it. What it draws goes there by messages with binary arrays, so that a saved notebook stays small; rows
of these arrays are pages, in the order of the layout that a message's ``version`` names. What people do comes back by
messages; the state is told, and the state's answer is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import memoryfield as mf
from memoryfield_widgets import palette
from memoryfield_widgets.coloring import CHOICES
from memoryfield_widgets.labels import Label
from memoryfield_widgets.mapviews import SHOWABLE, checked
from memoryfield_widgets.mapwork import MapWork
from memoryfield_widgets.state import State

METHODS = ("auto", "pca", "umap")


class MemoryMap(MapWork):
    """A map of the field's pages.

    PCA shows at once and gives way to UMAP when that is ready. A page that is edited or added finds its place without
    moving the others.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own.
        color: What colours the points: ``auto`` (similarity to the question where there is one, else the regions),
            ``none``, ``similarity``, ``region``, ``family``, ``created``, ``updated``, ``size``, or a frontmatter key.
        method: ``auto`` (PCA, then UMAP where the field has 15 to 20,000 pages), ``pca`` or ``umap``.
        show: Of ``labels``, ``families`` and ``pairs`` those that show at first.
        height: Of the map, in pixels.
    """

    def __init__(
        self,
        field: mf.MemoryField | State,
        *,
        state: State | None = None,
        color: str = "auto",
        method: str = "auto",
        show: Iterable[str] = ("labels",),
        height: int = 480,
    ) -> None:
        method = checked("method", method, METHODS)
        super().__init__(field, state, color, method, {checked("show", what, SHOWABLE) for what in show}, height)
        self._prepare()
        self.follow(self._show_selection, "selected")
        self.follow(self._show_active, "active")
        self.follow(self._show_hits, "hits")
        self.follow(self._asked, "query")
        self.follow(self._begin, "model", "recipe")
        self.follow(self._refresh, "revision")
        self._begin()

    # --- what a program does with it ----------------------------------------------------------------------------------

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selected pages."""
        return self.state.selected

    @selected.setter
    def selected(self, names: str | Iterable[str]) -> None:
        self.select(names)

    def select(self, names: str | Iterable[str], how: str = "replace") -> tuple[str, ...]:
        """Select pages and return what then is selected.

        Args:
            names: Page names.
            how: ``replace``, ``add`` or ``remove``.

        Raises:
            PageNotFound: The field has no page of one of the names.
        """
        checked("how", how, ("replace", "add", "remove"))
        given = [names] if isinstance(names, str) else list(names)
        wanted = list(dict.fromkeys(str(name).removesuffix(".md") for name in given))
        unknown = [name for name in wanted if name not in self._row]
        if unknown:
            known = set(self.field.names())
            unknown = [name for name in unknown if name not in known]
        if unknown:
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            raise mf.errors.PageNotFound(f"no page {', '.join(map(repr, unknown[:3]))}{more} in {self.field.name}")
        return self._select(wanted, how)

    def _select(self, names: Sequence[str], how: str) -> tuple[str, ...]:
        with self._guard:  # two selections at once: none is lost
            old = self.state.selected
            if how == "replace":
                new = tuple(names)
            elif how == "add":
                new = (*old, *names)
            else:
                gone = set(names)
                new = tuple(name for name in old if name not in gone)
            self.state.selected = new
            return self.state.selected

    @property
    def positions(self) -> Any:
        """The layout that is shown (``memoryfield``'s ``Layout``), None before the first."""
        return self._positions

    @property
    def labels(self) -> tuple[Label, ...]:
        """Names of the dense regions, the coarse level first, large regions first."""
        return self._labels

    @property
    def color_by(self) -> str:
        """What colours the points."""
        return self._color

    @color_by.setter
    def color_by(self, by: str) -> None:
        keys = self._facts.choices()
        if by not in CHOICES and by not in self._facts.keys and self._facts.names:
            raise mf.errors.QueryError(f"color is {by!r}; expected one of {', '.join([*CHOICES, *keys])}")
        self._color = by
        self._tell_options()
        self._recolor()

    @property
    def legend(self) -> tuple[palette.Entry, ...]:
        """What the colours and shapes mean, where they stand for categories."""
        return self._coloring.legend

    def show(self, **what: bool) -> None:
        """Show or hide ``labels``, ``families`` or ``pairs``: ``map.show(families=True)``."""
        for name, on in what.items():
            checked("show", name, SHOWABLE)
            (self._shown.add if on else self._shown.discard)(name)
        self._tell_options()
        if "families" in what:
            self._outline_families()
        if "pairs" in what:
            self._join_pairs()

    def lay_out(self, method: str = "auto") -> None:
        """Place all pages anew with ``auto``, ``pca`` or ``umap``."""
        self._method = checked("method", method, METHODS)
        self._tell_options()
        self._begin()

    def zoom_to(self, names: str | Iterable[str]) -> None:
        """Bring pages into view."""
        wanted = [names] if isinstance(names, str) else list(names)
        rows = [self._row[name] for name in wanted if name in self._row]
        self.tell("zoom", {"version": self._version, "rows": rows})

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until nothing runs any more for this field; return whether that came in time."""
        return self.state.jobs.wait(seconds)

    # --- what the views say -------------------------------------------------------------------------------------------

    def heard_hello(self, content: Mapping[str, Any]) -> None:
        """A view appeared: tell it everything."""
        self._views.add(str(content.get("view")))
        was_unseen, self._unseen = self._unseen, False
        if was_unseen and self._missed:
            self._missed = False
            self._refresh()
        elif was_unseen:
            self._recolor()
        self._tell_options()
        if self._positions is None:
            return
        self._tell_points()
        if self._facts.names:
            self._tell_texts()
        self._tell_labels()
        self._show_selection()
        self._show_active()
        self._show_hits()
        self._tell_colors()
        if "families" in self._shown:
            self._tell_hulls()
        self._tell_pairs()

    def heard_bye(self, content: Mapping[str, Any]) -> None:
        """A view is gone; without any the map does no work that only eyes need."""
        self._views.discard(str(content.get("view")))
        self._unseen = not self._views

    def close(self) -> None:
        """Take the map away, and what still runs for it."""
        if "_me" in self.__dict__:  # else it refused its arguments
            for what in ("layout", "umap", "facts", "color", "hulls", "pairs"):
                self.state.jobs.cancel(kind=f"{what} {self._me}")
        super().close()

    def heard_select(self, content: Mapping[str, Any]) -> None:
        """Pages were selected on the map or in its list."""
        names = self._names_of.get(content["version"])
        if names is None:
            self.state.fail("the map was laid out anew meanwhile; please select again")
            return
        rows = np.frombuffer(content["buffers"][0], dtype=np.int32)
        chosen = [names[row] for row in rows.tolist() if 0 <= row < len(names) and names[row] in self._row]
        how = checked("how", content["how"], ("replace", "add", "remove"))
        with self._guard:
            self._answer = (str(content["view"]), int(content["seq"]))
            before = self.state.selected
            if self._select(chosen, how) == before:
                self._show_selection()  # nothing changed, and the view waits for an answer all the same

    def heard_open(self, content: Mapping[str, Any]) -> None:
        """A page was clicked."""
        name = self._name(content)
        if name is not None:
            self.state.open(name)

    def heard_card(self, content: Mapping[str, Any]) -> None:
        """The pointer rests on a page: tell what its card shows."""
        name = self._name(content)
        row = self._facts.row.get(name or "")
        if name is None or row is None:
            return
        facts = self._facts
        family = self._colorist.family_of(name)
        card = {
            "version": content["version"],
            "row": content["row"],
            "summary": facts.summaries[row][:400],
            "created": facts.created[row].replace("T", " ")[:16],
            "updated": facts.updated[row].replace("T", " ")[:16],
            "family": f"with {len(family) - 1} more" if len(family) > 1 else "",
            "bytes": f"{facts.sizes[row]:,}",
        }
        self.tell("card", card)

    def heard_color(self, content: Mapping[str, Any]) -> None:
        """Another colouring was chosen."""
        self.color_by = str(content["by"])

    def heard_layout(self, content: Mapping[str, Any]) -> None:
        """Another layout was chosen."""
        self.lay_out(str(content["method"]))

    def heard_show(self, content: Mapping[str, Any]) -> None:
        """Something is to be shown or hidden."""
        self.show(**{str(content["what"]): bool(content["on"])})

    def _name(self, content: Mapping[str, Any]) -> str | None:
        names, row = self._names_of.get(content["version"], ()), content["row"]
        return names[row] if isinstance(row, int) and 0 <= row < len(names) else None
