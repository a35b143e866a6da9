"""Models: two spaces of one field side by side, on maps that are laid over one another and linked by page.

What is compared is ``field.compare``; models, recipes and dimensions are compared in the same view. The maps help the
eye; what the figures say, they say of the spaces themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State

RECIPES = ("page", "content", "passages")
METHODS = ("pca", "umap")
_MOST_UMAP = 3_000  # pages; above, UMAP is made only when asked for
_MOST_SELECTED = 2_000
_MOST_CHANGED = 20
_LONGEST_CELL = 160
_MARKED_LINES = 40  # lines of a table that are shown


class ModelComparison(Panel):
    """Compare models, recipes and dimensions on one field.

    Args:
        field: The field, or the state of one.
        models: What to compare, as for ``field.compare``: names, folders or embedders. None to choose in the panel.
        probes: Questions with their pages, or the path of a file of them: how well each space finds the answers.
        recipes: Recipes to compare; the field's own by default.
        dimensions: Lengths to cut the vectors to, for models that were trained for it.
        state: The state to share; by default the field's own.

    Attributes:
        comparison: What was found, a ``Comparison``; None before.
        pair: The labels of the two spaces on the maps; None with fewer than two.
    """

    _esm = script("geometry.js", "colors.js", "pixels.js", "paint.js", "twindraw.js", "twinmaps.js", "models.js")
    _css = style("models.css")
    stage = traitlets.Unicode("idle").tag(sync=True)  # idle, working, ready, failed
    choices = traitlets.Dict().tag(sync=True)  # models, recipes, dimensions: what can be chosen, and what is
    labels: traitlets.List[Any] = traitlets.List().tag(sync=True)
    shown_pair: traitlets.List[Any] = traitlets.List().tag(sync=True)
    method = traitlets.Unicode("pca").tag(sync=True)
    tables: traitlets.List[Any] = traitlets.List().tag(sync=True)
    changed: traitlets.List[Any] = traitlets.List().tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        field: mf.MemoryField | State,
        models: Sequence[Any] | None = None,
        probes: Any = None,
        *,
        recipes: Sequence[str] | None = None,
        dimensions: Sequence[int] | None = None,
        state: State | None = None,
    ) -> None:
        super().__init__(field, state=state, label="Models")
        self.models: list[Any] = list(models or ())
        self.recipes = None if recipes is None else tuple(recipes)
        self.dimensions = None if dimensions is None else tuple(dimensions)
        self.probes = probes
        self.comparison: Any = None
        self.pair: tuple[str, str] | None = None
        self._guard = threading.RLock()
        self._points: dict[str, Any] = {}  # by method: the places of the pair, once they are known
        self._version = 0
        self._wants = ""  # how the maps shall be made; empty for the best that does not keep one waiting
        self._show_choices([])
        self.follow(self._follow, "revision", "selected", "active")

    # --- comparing ----------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Compare on the worker thread; an interrupted comparison goes on where it stopped."""
        if not self.models:
            raise mf.errors.QueryError("choose one model at least, better two")
        self.stage = "working"
        models, recipes, dimensions = list(self.models), self.recipes, self.dimensions

        def work(job: Job) -> Any:
            try:
                return self.field.compare(
                    models, self.probes, recipes=recipes, dimensions=dimensions, progress=job.progress
                )
            except BaseException:  # cancelled as well: the view then offers to go on
                self.stage = "failed" if self.comparison is None else "ready"
                raise

        self.state.jobs.start(f"compare {self.model_id}", work, self._take, title="comparing models", long=True)

    def _take(self, comparison: Any) -> None:
        with self._guard:
            self.comparison = comparison
            labels = list(comparison.labels)
            keep = self.pair if self.pair is not None and set(self.pair) <= set(labels) else None
            self.pair = keep or (comparison.pair() if len(labels) > 1 else None)
            self._points = {}
        with self.hold_sync():
            self.labels = labels
            self.tables = [_table(table) for table in comparison.tables()]
            self.stale = False
            self.stage = "ready"
        if comparison.failed:
            failed = "; ".join(f"{label}: {why}" for label, why in comparison.failed.items())
            self.state.fail(f"could not be compared: {failed}")
        else:
            self.state.say(f"{len(labels)} {'space' if len(labels) == 1 else 'spaces'} compared")
        self._map()

    def choose(self, first: str, second: str) -> None:
        """Show another pair of spaces.

        Raises:
            QueryError: There is no such space, or it is one and the same.
        """
        with self._guard:
            if self.comparison is None:
                return
            self.comparison.pair(first, second)  # refuses what is no pair
            self.pair = (first, second)
            self._points = {}
        self._map()

    def draw(self, method: str) -> None:
        """Make the maps another way: ``pca``, or ``umap`` once it is ready."""
        if method not in METHODS:
            raise mf.errors.QueryError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
        self._wants = method
        self._map()

    # --- the maps -----------------------------------------------------------------------------------------------------

    def _map(self) -> None:
        """Show the maps: PCA at once, UMAP when it is ready."""
        with self._guard:
            comparison, pair = self.comparison, self.pair
            if comparison is None or pair is None:
                self.shown_pair, self.changed = [], []
                return
            rows = [_changed(page, pair) for page in comparison.most_changed(_MOST_CHANGED, *pair)]
            count = len(comparison.pages)
        with self.hold_sync():
            self.shown_pair = list(pair)
            self.changed = rows
        wanted = self._wants or ("umap" if 15 <= count <= _MOST_UMAP else "pca")
        kind = f"maps {self.model_id}"
        if wanted not in self._points and "pca" not in self._points:
            self._place("pca", pair)
        if wanted in self._points:
            self._show_points(wanted)
        else:
            self._show_points("pca")
            title = "making two maps with UMAP"
            self.state.jobs.start(kind, lambda _job: self._place(wanted, pair), self._placed, title=title, long=True)

    def _place(self, method: str, pair: tuple[str, str]) -> tuple[str, tuple[str, str]]:
        comparison = self.comparison
        order = comparison.pair(*pair)
        places, kinds = comparison.places(*order, method=method)
        if order != pair:
            places, kinds = places[::-1], kinds[::-1]
        with self._guard:
            if pair == self.pair and comparison is self.comparison:
                self._points[method] = (places, kinds)
        return method, pair

    def _placed(self, made: tuple[str, tuple[str, str]]) -> None:
        method, pair = made
        if pair == self.pair and method in self._points:
            self._show_points(method)

    def _show_points(self, method: str) -> None:
        with self._guard:
            comparison, pair = self.comparison, self.pair
            if comparison is None or pair is None or method not in self._points:
                return
            (first, second), kinds = self._points[method]
            likeness = comparison.likenesses[comparison.pair(*pair)]
            pages = comparison.pages
            self._version += 1
            content = {
                "version": self._version,
                "pair": list(pair),
                "kinds": list(kinds),
                "names": list(pages),
                "titles": [page.title[:200] for page in pages.values()],
                "numbered": [row["name"] for row in self.changed],
            }
            buffers = [part.astype("<f4").tobytes() for part in (first, second, likeness.rbo)]
        self.method = method
        self.tell("points", content, buffers)
        self._tell_selection()

    def _tell_selection(self) -> None:
        state = self.state
        self.tell("selection", {"names": list(state.selected[:_MOST_SELECTED]), "active": state.active or ""})

    def _follow(self, changed: frozenset[str]) -> None:
        if "revision" in changed and self.comparison is not None:
            self.stale = True
        if changed & {"selected", "active"}:
            self._tell_selection()
            if "active" in changed and self.state.active is not None:
                self.look(self.state.active)

    def look(self, name: str) -> None:
        """Show one page as the two spaces see it, beside the pages that changed most."""
        comparison, pair = self.comparison, self.pair
        if comparison is None or pair is None or name not in comparison.pages:
            self.tell("page", {"page": None})
            return
        self.tell("page", {"page": _changed(comparison.page(name, *pair), pair)})

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _show_choices(self, known: Sequence[Mapping[str, Any]]) -> None:
        chosen = [_name(model) for model in self.models]
        rows = [{**row, "chosen": row["code"] in chosen} for row in known]
        rows += [
            {"code": code, "ready": True, "note": "", "chosen": True}
            for code in chosen
            if code not in {row["code"] for row in rows}
        ]
        self.choices = {
            "models": rows,
            "recipes": [{"code": code, "chosen": code in (self.recipes or ())} for code in RECIPES],
            "dimensions": ", ".join(map(str, self.dimensions or ())),
        }

    def twin(self) -> str:
        """Return the tables of the comparison, or how to get them."""
        if self.comparison is not None:
            return str(self.comparison._repr_html_())
        names = " and ".join(map(_name, self.models)) or "the models that are chosen"
        return self.not_yet(
            f"{names} are compared when the panel is seen, so nothing was known when this cell ran. Show the panel "
            "again in a cell of its own to have the tables here; field.compare(models) returns them."
        )

    # --- what the view says -------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view appeared: say what can be compared, compare what was asked for, show what there is."""
        if len(self.choices["models"]) <= len(self.models):
            self.state.jobs.start(f"models {self.model_id}", _known, self._show_choices)
        if self.stage == "idle" and self.models:
            self.compare()
        elif self._points:
            self._show_points(self.method)

    def heard_compare(self, content: Mapping[str, Any]) -> None:
        """Compare what was chosen; embedders that were handed over in Python keep their places."""
        codes = [code for code in content.get("models") or () if isinstance(code, str)]
        handed = {_name(model): model for model in self.models}
        self.models = [handed.get(code, code) for code in dict.fromkeys(codes)]
        recipes = tuple(code for code in content.get("recipes") or () if code in RECIPES)
        self.recipes = recipes or None
        self.dimensions = _lengths(content.get("dimensions"))
        self._show_choices(self.choices["models"])
        self.compare()

    def heard_pair(self, content: Mapping[str, Any]) -> None:
        """Show another pair."""
        self.choose(_text(content, "first"), _text(content, "second"))

    def heard_method(self, content: Mapping[str, Any]) -> None:
        """Make the maps another way."""
        self.draw(_text(content, "method"))

    def heard_select(self, content: Mapping[str, Any]) -> None:
        """Select pages, and open the one that was clicked."""
        names = content.get("names")
        if not isinstance(names, list) or self.comparison is None:
            return
        known = [name for name in names if isinstance(name, str) and name in self.comparison.pages]
        changes: dict[str, Any] = {"selected": tuple(known)}
        if content.get("open") is True and len(known) == 1:
            changes["active"] = known[0]
        self.state.update(**changes)

    def heard_look(self, content: Mapping[str, Any]) -> None:
        """Show one page as both spaces see it."""
        self.look(_text(content, "name"))


def _known(_job: Job) -> list[dict[str, Any]]:
    return [{"code": model.code, "ready": model.ready, "note": model.note} for model in mf.models()]


def _name(model: Any) -> str:
    return os.fspath(model) if isinstance(model, str | os.PathLike) else str(getattr(model, "model_code", model))


def _lengths(typed: Any) -> tuple[int, ...] | None:
    """Return the dimensions that were typed; None for none.

    Raises:
        QueryError: They are no numbers.
    """
    words = str(typed or "").replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() for word in words):
        raise mf.errors.QueryError(f"dimensions are whole numbers, such as 768, 256, 64; got {str(typed)[:60]!r}")
    return tuple(int(word) for word in words) or None


def _table(table: Any) -> dict[str, Any]:
    return {
        "heading": str(table.heading),
        "columns": [str(column) for column in table.columns],
        "right": [column in table.right for column in table.columns],
        "rows": [
            ["" if cell is None else str(cell)[:_LONGEST_CELL] for cell in row] for row in table.rows[:_MARKED_LINES]
        ],
        "notes": [str(note)[:1000] for note in table.notes],
        "more": table.more + max(len(table.rows) - _MARKED_LINES, 0),
    }


def _changed(page: Any, pair: tuple[str, str]) -> dict[str, Any]:
    """Return a page as two spaces see it, in the order in which they are shown."""
    sides = [(page.near_first, page.words_first), (page.near_second, page.words_second)]
    if (page.first, page.second) != pair:
        sides.reverse()
    return {
        "name": page.name,
        "title": page.title[:200],
        "overlap": page.overlap,
        "rbo": page.rbo,
        "near": [[[name, round(cosine, 3)] for name, cosine in near] for near, _ in sides],
        "words": [list(words) for _, words in sides],
        "read": {label: round(share, 3) for label, share in page.read.items()},
    }


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""
