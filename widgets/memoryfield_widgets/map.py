"""The map of a field: a point for each page, to look at, to search on and to select from.

``map.js`` draws it. What it draws goes there by messages with binary arrays, so that a saved notebook stays small; rows
of these arrays are pages, in the order of the layout that a message's ``version`` names. What people do comes back by
messages; the state is told, and the state's answer is drawn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import traitlets
from numpy.typing import NDArray

import memoryfield as mf
from memoryfield_widgets import palette
from memoryfield_widgets.coloring import CHOICES, Colorist
from memoryfield_widgets.facts import Facts, read_facts
from memoryfield_widgets.jobs import DEBOUNCE, Job
from memoryfield_widgets.labels import Label, density_labels
from memoryfield_widgets.mapsvg import escaped, map_svg
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State

METHODS = ("auto", "pca", "umap")
SHOWABLE = ("labels", "families", "pairs")
_FEWEST_FOR_UMAP = 15
_MOST_FOR_UMAP = 20_000  # pages for which UMAP begins unasked
_STILL_POINTS = 5000
_TEXTS = 20_000  # titles in one message
_HITS = 50
_QUICK_EMBEDDING = 32  # pages to embed for which nobody needs to be told to wait
_VERSIONS = 8  # earlier layouts whose rows are still understood
_TWIN_WAITS = 1.0  # seconds that the static picture waits for the first layout
_PAIRS_FROM = (0.95, 0.9, 0.85, 0.8, 0.7)  # cosines that are tried, until there are some pairs


class _ToEmbed(Exception):
    """Raised in a quick job when it turns out that many pages have to be embedded first."""


class MemoryMap(Panel):
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

    _esm = script("geometry.js", "colors.js", "paint.js", "maplist.js", "mapdraw.js", "map.js")
    _css = style("map.css")
    height = traitlets.Int(480).tag(sync=True)
    still = traitlets.Bytes(b"").tag(sync=True)  # coarse points, for a notebook without a kernel

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
        self._guard = threading.RLock()
        self._positions: Any = None
        self._xy: NDArray[np.float32] = np.zeros((0, 2), dtype=np.float32)
        self._frame = (np.zeros(2, dtype=np.float32), 1.0)  # middle and half width of the layout's own coordinates
        self._row: dict[str, int] = {}
        self._version = 0
        self._names_of: dict[int, tuple[str, ...]] = {}
        self._move: tuple[bytes, bool, bool] = (b"", False, False)  # earlier rows, animated, others kept in place
        self._facts = Facts()
        self._coloring = palette.Coloring("none")
        self._labels: tuple[Label, ...] = ()
        self._pairs: tuple[bytes, bytes] = (b"", b"")
        self._answer = ("", 0)
        self._method = _checked("method", method, METHODS)
        self._shown = {_checked("show", what, SHOWABLE) for what in show}
        self._color = color
        self._placed = threading.Event()
        super().__init__(field, state=state, label="Map of the memory", height=height)
        self._me = str(id(self))
        self._colorist = Colorist(self.state)
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
        _checked("how", how, ("replace", "add", "remove"))
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
            _checked("show", name, SHOWABLE)
            (self._shown.add if on else self._shown.discard)(name)
        self._tell_options()
        if "families" in what:
            self._outline_families()
        if "pairs" in what:
            self._join_pairs()

    def lay_out(self, method: str = "auto") -> None:
        """Place all pages anew with ``auto``, ``pca`` or ``umap``."""
        self._method = _checked("method", method, METHODS)
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
            self._start(
                "umap",
                lambda job: self._compute("umap", job.progress),
                self._have,
                title="improving the map (UMAP)",
                long=True,
            )

    def _refresh(self, _changed: frozenset[str]) -> None:
        """Pages were changed: place what is new, leave the rest."""
        self._colorist.forget()

        def work(job: Job) -> tuple[Any, Facts]:
            layout = self._compute("pca", job.progress, after=self._positions)
            return layout, read_facts(self.field.pages(), job.check)

        def done(found: tuple[Any, Facts]) -> None:
            self._facts = found[1]
            self._have(found[0], kept=True)

        self._start("layout", work, done, title="placing changed pages")

    def _have(self, layout: Any, kept: bool = False) -> None:
        """Show a layout."""
        with self._guard:
            earlier = self._row
            if not kept or not len(self._xy):
                self._frame = _frame(layout.xy)
            middle, half = self._frame
            self._xy = ((layout.xy - middle) / half).astype(np.float32)
            names = tuple(layout.names)
            self._row = {name: row for row, name in enumerate(names)}
            is_same = self._positions is not None and tuple(self._positions.names) == names
            rows = b"" if is_same else np.array([earlier.get(name, -1) for name in names], dtype=np.int32).tobytes()
            self._positions = layout
            self._version += 1
            self._names_of[self._version] = names
            self._names_of.pop(self._version - _VERSIONS, None)
            self._move = (rows, True, kept)
            self._labels = ()
            self._pairs = (b"", b"")
        self._tell_points()
        self._keep_still()
        self._placed.set()
        has_facts = all(name in self._facts.row for name in names)
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

    def _keep_still(self) -> None:
        if len(self._xy) <= _STILL_POINTS:
            self.still = np.round((np.clip(self._xy, -1, 1) + 1) * 32_767.5).astype("<u2").tobytes()

    # --- colours, families, pairs -------------------------------------------------------------------------------------

    def _asked(self, _changed: frozenset[str]) -> None:
        if self._color in ("auto", "similarity"):
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

    # --- what the views are told --------------------------------------------------------------------------------------

    def _tell_points(self) -> None:
        layout = self._positions
        if layout is None:
            return
        rows, animate, kept = self._move
        kind = "PCA" if layout.method == "pca" else "UMAP"
        count = len(layout.names)
        content = {
            "version": self._version,
            "count": count,
            "method": layout.method,
            "animate": animate,
            "kept": kept,
            "caption": f"{count:,} {'page' if count == 1 else 'pages'}, {kind} of {layout.model_code}, recipe "
            f"{layout.recipe}. Distances between far groups mean little.",
        }
        self.tell("points", content, [self._xy.tobytes(), rows])

    def _tell_texts(self) -> None:
        names, facts = self._positions.names, self._facts
        for start in range(0, max(len(names), 1), _TEXTS):
            some = names[start : start + _TEXTS]
            titles = [facts.titles[facts.row[name]] if name in facts.row else name for name in some]
            last = start + _TEXTS >= len(names)
            content = {"version": self._version, "start": start, "names": some, "titles": titles, "last": last}
            self.tell("texts", content)

    def _tell_colors(self) -> None:
        content, buffers = self._coloring.message()
        self.tell("colors", {"version": self._version, **content}, buffers)

    def _tell_labels(self) -> None:
        shown = [
            {"text": label.text, "x": label.x, "y": label.y, "level": label.level, "size": len(label.names)}
            for label in self._labels
        ]
        self.tell("labels", {"version": self._version, "labels": shown})

    def _tell_hulls(self) -> None:
        groups = []
        for number, members in enumerate(self._colorist.known_families):
            rows = [self._row[name] for name in members if name in self._row]
            if len(rows) > 1:
                groups.append({"rows": rows, "color": number % len(palette.COLORS)})
        self.tell("hulls", {"version": self._version, "groups": groups})

    def _tell_pairs(self) -> None:
        self.tell("pairs", {"version": self._version}, list(self._pairs))

    def _tell_options(self) -> None:
        keys = self._facts.choices()
        colors = [*CHOICES.items(), *((key, f"key {key}") for key in keys)]
        if self._color not in CHOICES and self._color not in keys:
            colors.append((self._color, f"key {self._color}"))
        content = {
            "colors": colors,
            "color": self._color,
            "layouts": [("auto", "PCA, then UMAP"), ("pca", "PCA"), ("umap", "UMAP")],
            "layout": self._method,
            "shown": sorted(self._shown),
        }
        self.tell("options", content)

    def _show_selection(self, _changed: frozenset[str] = frozenset()) -> None:
        rows = [self._row[name] for name in self.state.selected if name in self._row]
        view, seq = self._answer
        content = {"version": self._version, "view": view, "seq": seq}
        self.tell("selection", content, [np.array(rows, dtype=np.int32).tobytes()])

    def _show_active(self, _changed: frozenset[str] = frozenset()) -> None:
        self.tell("active", {"version": self._version, "row": self._row.get(self.state.active or "", -1)})

    def _show_hits(self, _changed: frozenset[str] = frozenset()) -> None:
        self.tell("hits", {"version": self._version, "rows": self._hit_rows()})

    def _hit_rows(self) -> list[int]:
        names = [hit.name for hit in self.state.hits[:_HITS]] if self.state.hits is not None else []
        return [self._row[name] for name in names if name in self._row]

    # --- what the views say -------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view appeared: tell it everything."""
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

    def heard_select(self, content: Mapping[str, Any]) -> None:
        """Pages were selected on the map or in its list."""
        names = self._names_of.get(content["version"])
        if names is None:
            self.state.fail("the map was laid out anew meanwhile; please select again")
            return
        rows = np.frombuffer(content["buffers"][0], dtype=np.int32)
        chosen = [names[row] for row in rows.tolist() if 0 <= row < len(names) and names[row] in self._row]
        how = _checked("how", content["how"], ("replace", "add", "remove"))
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

    # --- in the saved notebook ----------------------------------------------------------------------------------------

    def twin(self) -> str:
        """Return the map as it is now: a picture, and its regions as text."""
        if not any(job.total > _QUICK_EMBEDDING for job in self.state.busy):
            self._placed.wait(_TWIN_WAITS)
        layout = self._positions
        count = 0 if layout is None else len(layout.names)
        heading = f"Map of {self.field.name}: {count:,} {'page' if count == 1 else 'pages'}"
        if layout is None:
            return f'<p class="memoryfield">{escaped(heading)}; it was still being made when this was saved.</p>'
        selected = [self._row[name] for name in self.state.selected if name in self._row]
        picture = map_svg(self._xy, self._coloring, self._labels, self._hit_rows(), selected, heading)
        regions = [label for label in self._labels if label.level == 1][:16]
        items = "".join(f"<li>{escaped(label.text)}: {len(label.names):,} pages</li>" for label in regions)
        listed = f"<details><summary>Regions of the map</summary><ul>{items}</ul></details>" if items else ""
        return (
            f'<div class="memoryfield mathjax_ignore"><p><strong>{escaped(heading)}</strong></p>{picture}{listed}</div>'
        )


def _frame(xy: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return the middle of coordinates and half of their larger extent."""
    if not len(xy):
        return np.zeros(2, dtype=np.float32), 1.0
    low, high = xy.min(axis=0), xy.max(axis=0)
    return (low + high) / 2, max(float((high - low).max()) / 2, 1e-9)


def _checked(what: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise mf.errors.QueryError(f"{what} is {value!r}; expected one of {', '.join(allowed)}")
    return value
