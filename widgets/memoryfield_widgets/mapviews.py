"""What a map holds and what its views are told: points, texts, colours, labels, selection. Nothing here decides."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from numpy.typing import NDArray

import memoryfield as mf
from memoryfield_widgets import palette
from memoryfield_widgets.coloring import CHOICES, Colorist
from memoryfield_widgets.facts import Facts
from memoryfield_widgets.labels import Label
from memoryfield_widgets.mapsvg import escaped, map_svg
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State

SHOWABLE = ("labels", "families", "pairs")
_STILL_POINTS = 5000
_TEXTS = 20_000  # titles in one message
_HITS = 50
_VERSIONS = 8  # earlier layouts whose rows are still understood
_TWIN_WAITS = 1.0  # seconds that the static picture waits for the first layout
_MUCH = 32  # pages to embed for which it does not wait


# What the map runs, joined in this order: a file uses what stands in the files before it.
SCRIPTS = (
    "geometry.js",
    "colors.js",
    "pixels.js",
    "paint.js",
    "maplist.js",
    "mapdraw.js",
    "mapacts.js",
    "mapscene.js",
    "maptold.js",
    "map.js",
)


class MapViews(Panel):
    """A map's data and what its views are told of them."""

    _esm = script(*SCRIPTS)
    _css = style("map.css")
    height = traitlets.Int(480).tag(sync=True)
    still = traitlets.Bytes(b"").tag(sync=True)  # coarse points, for a notebook without a kernel

    def __init__(
        self, field: mf.MemoryField | State, state: State | None, color: str, method: str, shown: set[str], height: int
    ) -> None:
        self._guard = threading.RLock()
        self._method = method
        self._shown = shown
        self._color = color
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
        self._placed = threading.Event()
        super().__init__(field, state=state, label="Map of the memory", height=height)
        self._colorist = Colorist(self.state)

    def _take(self, layout: Any, kept: bool) -> None:
        """Make a layout the one that is shown; with *kept* in the frame of the one before."""
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

    def _keep_still(self) -> None:
        if len(self._xy) <= _STILL_POINTS:
            self.still = np.round((np.clip(self._xy, -1, 1) + 1) * 32_767.5).astype("<u2").tobytes()

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
            "caption": f"{layout.counted}. {kind} of {layout.model_code}, recipe {layout.recipe}. "
            "Distances between far groups mean little.",
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

    # --- in the saved notebook ----------------------------------------------------------------------------------------

    def twin(self) -> str:
        """Return the map as it is now: a picture, and its regions as text."""
        if not any(job.total > _MUCH for job in self.state.busy):
            self._placed.wait(_TWIN_WAITS)
        layout = self._positions
        heading = f"Map of {self.field.name}: {'0 pages' if layout is None else layout.counted}"
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


def checked(what: str, value: str, allowed: Sequence[str]) -> str:
    """Return a setting, after a look whether it is one of those allowed."""
    if value not in allowed:
        raise mf.errors.QueryError(f"{what} is {value!r}; expected one of {', '.join(allowed)}")
    return value
