"""What a map works out on the worker threads: places, colours, families, near pairs. ``mapviews.py`` shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import memoryfield as mf
from memoryfield_widgets import palette
from memoryfield_widgets.facts import Facts, read_facts
from memoryfield_widgets.jobs import DEBOUNCE, Job
from memoryfield_widgets.labels import density_labels
from memoryfield_widgets.mapviews import MapViews

_FEWEST_FOR_UMAP = 15
_MOST_FOR_UMAP = 20_000  # pages for which UMAP begins unasked
_QUICK_EMBEDDING = 32  # pages to embed for which nobody needs to be told to wait
_PAIRS_FROM = (0.95, 0.9, 0.85, 0.8, 0.7)  # cosines that are tried, until there are some pairs


class _ToEmbed(Exception):
    """Raised in a quick job when it turns out that many pages have to be embedded first."""


class MapWork(MapViews):
    """The jobs of a map; another map of the same state has its own."""

    def _prepare(self) -> None:
        """Set up what the jobs know of the views, before the first of them."""
        self._me = str(id(self))
        self._views: set[str] = set()
        self._unseen = False  # it had views, and the last one is gone: a cell that was run again leaves such maps
        self._missed = False

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
