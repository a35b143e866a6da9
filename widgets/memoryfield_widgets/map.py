"""The map of a field: a point for each page, to look at, to search on and to select from.

``map.js`` draws it. What it draws goes there by messages with binary arrays, so that a saved notebook stays small; rows
of these arrays are pages, in the order of the layout that a message's ``version`` names. What people do comes back by
messages; the state is told, and the state's answer is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import memoryfield as mf
from memoryfield_widgets import palette
from memoryfield_widgets.coloring import CHOICES
from memoryfield_widgets.facts import Facts, read_facts
from memoryfield_widgets.jobs import DEBOUNCE, Job
from memoryfield_widgets.labels import Label, density_labels
from memoryfield_widgets.mapviews import SHOWABLE, MapViews, checked
from memoryfield_widgets.state import State

METHODS = ("auto", "pca", "umap")
_FEWEST_FOR_UMAP = 15
_MOST_FOR_UMAP = 20_000  # pages for which UMAP begins unasked
_QUICK_EMBEDDING = 32  # pages to embed for which nobody needs to be told to wait
_PAIRS_FROM = (0.95, 0.9, 0.85, 0.8, 0.7)  # cosines that are tried, until there are some pairs


class _ToEmbed(Exception):
    """Raised in a quick job when it turns out that many pages have to be embedded first."""


class MemoryMap(MapViews):
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
        self._me = str(id(self))
        self._views: set[str] = set()
        self._unseen = False  # it had views, and the last one is gone: a cell that was run again leaves such maps
        self._missed = False
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

    # --- layouts, on the worker threads -------------------------------------------------------------------------------

    def _begin(self, _changed: frozenset[str] = frozenset()) -> None:
        self._colorist.forget()

        def quick(done: int, total: int) -> None:
            if total - done > _QUICK_EMBEDDING:
                raise _ToEmbed

        def work(job: Job) -> Any:
            try:
                return self._compute("pca", quick)
            except _ToEmbed:
                return None

        self._start("layout", work, self._have_first, title="placing the pages")

    def _start(self, what: str, work: Callable[[Job], Any], done: Callable[[Any], None], **options: Any) -> None:
        """Start a job of this map: another map of the same state has its own."""
        self.state.jobs.start(f"{what} {self._me}", work, done, **options)

    def _compute(self, method: str, progress: Any, after: Any = None) -> Any:
        state = self.state
        return self.field.layout(
            model=state.model,
            recipe=state.recipe,
            method=method,
            engine="fastumap" if find_spec("fastumap") else "umap-learn",
            after=after,
            describe=False,
            progress=progress,
        )

    def _have_first(self, layout: Any) -> None:
        if layout is None:  # many pages to embed: that takes the long way, with its progress shown
            self.tell("empty", {"text": "The pages are being embedded; the status line says how far it is."})
            self._start(
                "layout",
                lambda job: self._compute("pca", job.progress),
                self._have_first,
                title="embedding pages for the map",
                long=True,
            )
            return
        wants_umap = self._method == "umap" or (
            self._method == "auto" and _FEWEST_FOR_UMAP <= len(layout) <= _MOST_FOR_UMAP
        )
        if not (wants_umap and self._positions is not None and self._positions.method == "umap"):
            self._have(layout)
        if wants_umap:
            self._improve()

    def _improve(self) -> None:
        self._start(
            "umap",
            lambda job: self._compute("umap", job.progress),
            self._have,
            title="improving the map (UMAP)",
            long=True,
        )

    def _refresh(self, _changed: frozenset[str] = frozenset()) -> None:
        """Pages were changed: place what is new, leave the rest."""
        self._colorist.forget()
        if self._unseen:
            self._missed = True
            return

        def work(job: Job) -> tuple[Any, Facts]:
            try:
                layout = self._compute("pca", job.progress, after=self._positions)
            except mf.errors.QueryError:  # the model was changed meanwhile: nothing can stay where it was
                layout = self._compute("pca", job.progress)
            return layout, read_facts(self.field.pages(), job.check)

        def done(found: tuple[Any, Facts]) -> None:
            self._facts = found[1]
            self._have(found[0], kept=True)
            if self.state.jobs.has(f"umap {self._me}"):  # it was begun with the pages as they were
                self._improve()

        self._start("layout", work, done, title="placing changed pages")

    def _have(self, layout: Any, kept: bool = False) -> None:
        """Show a layout."""
        self._take(layout, kept)
        self._tell_points()
        self._keep_still()
        self._placed.set()
        has_facts = all(name in self._facts.row for name in layout.names)
        if has_facts:
            self._have_facts(self._facts)
        else:
            self._start("facts", lambda job: read_facts(self.field.pages(), job.check), self._have_facts)

    def _have_facts(self, facts: Facts) -> None:
        self._facts = facts
        self._tell_texts()
        self._tell_options()
        names = self._positions.names
        titles = [facts.titles[facts.row[name]] if name in facts.row else name for name in names]
        summaries = [facts.summaries[facts.row[name]] if name in facts.row else "" for name in names]
        self._labels = density_labels(self._xy, names, titles, summaries)
        self._tell_labels()
        self._show_selection()
        self._show_active()
        self._show_hits()
        self._recolor()
        self._outline_families()
        self._join_pairs()

    # --- colours, families, pairs -------------------------------------------------------------------------------------

    def _asked(self, _changed: frozenset[str]) -> None:
        if self._color in ("auto", "similarity") and not self._unseen:
            self._recolor(delay=DEBOUNCE)

    def _recolor(self, delay: float = 0.0) -> None:
        if self._positions is None:
            return
        version, names, facts, by, labels = (
            self._version,
            self._positions.names,
            self._facts,
            self._color,
            self._labels,
        )

        def done(coloring: palette.Coloring) -> None:
            if version == self._version and by == self._color:
                self._coloring = coloring
                self._tell_colors()

        self._start(
            "color",
            lambda job: self._colorist.coloring(by, names, facts, labels, job),
            done,
            title="finding families" if by == "family" else "",
            delay=delay,
            long=by == "family",
        )

    def _outline_families(self) -> None:
        if "families" not in self._shown or self._positions is None:
            self.tell("hulls", {"version": self._version, "groups": []})
            return
        self._start("hulls", self._colorist.families, lambda _: self._tell_hulls(), title="finding families", long=True)

    def _join_pairs(self) -> None:
        if "pairs" not in self._shown or self._positions is None:
            self._pairs = (b"", b"")
            self._tell_pairs()
            return
        most = max(len(self._row) // 3, 30)

        def work(job: Job) -> Any:
            for threshold in _PAIRS_FROM:
                job.check()
                found = self.field.near_duplicates(
                    threshold, model=self.state.model, recipe=self.state.recipe, progress=job.progress
                )
                if len(found) * 5 >= most:
                    break
            return found[:most]

        def done(found: Sequence[Any]) -> None:
            known = [pair for pair in found if pair.first in self._row and pair.second in self._row]
            rows = np.array([(self._row[p.first], self._row[p.second]) for p in known], dtype=np.int32)
            cosines = np.array([pair.cosine for pair in known], dtype=np.float32)
            span = float(np.ptp(cosines)) if len(cosines) else 0.0
            strength = (cosines - cosines.min()) / span if span > 0 else np.ones_like(cosines)
            self._pairs = (rows.tobytes(), strength.astype(np.float32).tobytes())
            self._tell_pairs()
            least = f", cosine {cosines.min():.2f} or more" if len(cosines) else ""
            self.state.say(f"{len(known):,} near pairs on the map{least}")

        self._start("pairs", work, done, title="finding near pairs", long=True)

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
