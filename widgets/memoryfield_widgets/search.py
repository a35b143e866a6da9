"""The search: a question, how to look for it, and the pages that answer it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import traitlets

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import RETRIEVERS, State

RECIPES = ("page", "content", "passages")
MOST_HITS = 50  # more would fill the saved notebook and help nobody
_LONGEST_QUESTION = 2_000
_LONGEST_SNIPPET = 400
_CONDITION = re.compile(r"\s*([^=,\n]+?)\s*=\s*(\"[^\"]*\"|[^,\n]*?)\s*(?:[,\n]|$)")
_FORMATS = {"vector": "{:.2f}", "keyword": "{:.1f}", "hybrid": "{:.3f}", "rrf": "{:.4f}"}

Segment = tuple[str, bool]


class SearchBox(Panel):
    """A search that answers while one types.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own.
    """

    _esm = script("search.js")
    _css = style("search.css")
    query = traitlets.Unicode("").tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)  # retriever, model, recipe, k, gate, where, since, until
    trouble = traitlets.Dict().tag(sync=True)  # setting -> what is wrong with it
    models: Any = traitlets.List().tag(sync=True)  # code, ready, note
    outcome = traitlets.Dict().tag(sync=True)  # kind, heading, notes, rows
    searching = traitlets.Bool(False).tag(sync=True)
    active = traitlets.Unicode("").tag(sync=True)
    selected: Any = traitlets.List().tag(sync=True)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None) -> None:
        super().__init__(field, state=state, label="Search")
        self._typed = {name: _said(self.state.filters.get(name)) for name in ("where", "since", "until")}
        self.follow(self._show_question, "query", "retriever", "model", "recipe", "k", "filters")
        self.follow(self._show_outcome, "hits", "query", "revision")
        self.follow(self._show_place, "active", "selected", "hits")
        self.follow(self._show_work, "busy")
        self.follow(self._ask_again, "revision")
        self._show_question()
        self._show_outcome()
        self._show_place()

    # --- down ---------------------------------------------------------------------------------------------------------

    def _show_question(self, _changed: frozenset[str] = frozenset()) -> None:
        state = self.state
        with self.hold_sync():
            self.query = state.query
            self.settings = {
                "retriever": state.retriever,
                "model": _code(state.model),
                "recipe": state.recipe or "",
                "k": state.k,
                "gate": bool(state.filters.get("gate")),
                **self._typed,
            }

    def _show_outcome(self, _changed: frozenset[str] = frozenset()) -> None:
        self.outcome = outcome(self.state)

    def _show_place(self, _changed: frozenset[str] = frozenset()) -> None:
        with self.hold_sync():
            self.active = self.state.active or ""
            found = {hit.name for hit in self.state.hits or ()}
            self.selected = [name for name in self.state.selected if name in found]

    def _show_work(self, _changed: frozenset[str]) -> None:
        self.searching = any(job.kind == "search" for job in self.state.busy)

    def _ask_again(self, _changed: frozenset[str]) -> None:
        self.state.again()

    # --- up -----------------------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view has appeared: look once which models there are."""
        if not self.models:
            self.state.jobs.start("models", _models, self._know)

    def _know(self, models: list[dict[str, Any]]) -> None:
        self.models = models

    def heard_ask(self, content: Mapping[str, Any]) -> None:
        """Search for what was typed; the view has waited for a pause already."""
        query = content.get("query")
        if isinstance(query, str):
            self.state.ask(query[:_LONGEST_QUESTION], delay=0.0)

    def heard_set(self, content: Mapping[str, Any]) -> None:
        """Change one setting and search anew."""
        name, value = content.get("name"), content.get("value")
        if not isinstance(name, str):
            return
        trouble = {key: words for key, words in self.trouble.items() if key != name}
        try:
            changes = self._change(name, value)
        except mf.errors.QueryError as error:
            self.trouble = {**trouble, name: str(error)}
            return
        self.trouble = trouble
        self._show_question()
        if changes:
            self.state.ask(delay=0.0, **changes)

    def _change(self, name: str, value: Any) -> dict[str, Any]:
        if name == "retriever" and value in RETRIEVERS:
            return {"retriever": value}
        if name == "model" and isinstance(value, str):
            return {"model": value or None}
        if name == "recipe" and (value == "" or value in RECIPES):
            return {"recipe": value or None}
        if name == "k":
            return {"k": _count(value)}
        if name == "gate":
            kept = {key: given for key, given in self.state.filters.items() if key != "gate"}
            return {"filters": {**kept, "gate": True} if value is True else kept}
        if name in self._typed and isinstance(value, str):
            typed = {**self._typed, name: value}
            filters = read_filters(typed, self.state.filters)
            # asks the field itself whether the filter makes sense, before any search
            self.field.select(filters.get("where"), filters.get("since"), filters.get("until"))
            self._typed = typed
            return {"filters": filters}
        return {}

    def heard_open(self, content: Mapping[str, Any]) -> None:
        """Make a hit the page that is open, and the selection on the map."""
        name = content.get("name")
        if not isinstance(name, str) or not self._is_hit(name):
            return
        state = self.state
        selected: tuple[str, ...] = (name,)
        if content.get("add"):
            kept = tuple(other for other in state.selected if other != name)
            selected = kept if name in state.selected else (*kept, name)
        elif name in state.selected:
            selected = state.selected  # opening one page of a lasso does not take the others away
        state.update(active=name, selected=selected)

    def heard_select(self, _content: Mapping[str, Any]) -> None:
        """Select all hits on the map."""
        self.state.selected = tuple(hit.name for hit in self.state.hits or ())

    def _is_hit(self, name: str) -> bool:
        return any(hit.name == name for hit in self.state.hits or ())

    # --- for Python ---------------------------------------------------------------------------------------------------

    @property
    def results(self) -> Any:
        """The results of the last search (``SearchResults``), or None."""
        return self.state.hits

    def ask(self, query: str, **settings: Any) -> None:
        """Search soon, as if it had been typed; see ``State.ask``."""
        self.state.ask(query, delay=0.0, **settings)

    def twin(self) -> str:
        """Return the last results as a table."""
        hits = self.state.hits
        return "" if hits is None else str(hits._repr_html_())


# --- what the view shows ----------------------------------------------------------------------------------------------


def outcome(state: State) -> dict[str, Any]:
    """Return what stands below the question: a kind, a heading in words, notes, and one row a hit.

    The kinds are ``idle`` (nothing asked), ``empty`` (no page saved yet), ``gate`` (pages, but none good enough),
    ``nothing`` (none at all, for another reason) and ``found``.
    """
    hits = state.hits
    if hits is None:
        if not state.query.strip():
            return {"kind": "idle", "heading": "", "notes": [], "rows": []}
        return {"kind": "waiting", "heading": "", "notes": [], "rows": []}
    notes = [str(note) for note in hits.notes]
    if not len(hits):
        return {"kind": _why_nothing(hits), "heading": str(hits.reason), "notes": notes, "rows": []}
    count = len(hits)
    how = hits.retriever if hits.model_code is None else f"{hits.retriever}, {hits.model_code}"
    heading = f"{count} {'page' if count == 1 else 'pages'} ({how})"
    return {"kind": "found", "heading": heading, "notes": notes, "rows": [_row(hit, hits.retriever) for hit in hits]}


def _why_nothing(hits: Any) -> str:
    reason = str(hits.reason)
    if reason.startswith("nothing saved yet"):
        return "empty"
    return "gate" if hits.passed_gate is False or reason.startswith("nothing above") else "nothing"


def _row(hit: Any, retriever: str) -> dict[str, Any]:
    return {
        "name": hit.name,
        "title": str(hit.title)[:200],
        "rank": hit.rank,
        "score": _score(retriever, hit.score),
        "why": why(hit, retriever),
        "text": [list(segment) for segment in segments(hit.snippet.text, hit.snippet.spans)],
    }


def _score(retriever: str, score: float) -> str:
    return _FORMATS.get(retriever, "{:.3f}").format(score)


def why(hit: Any, retriever: str) -> str:
    """Return in words why a page was found: its place and score with each retriever."""
    names = {"vector": "by meaning", "keyword": "by words"}
    units = {"vector": "cosine", "keyword": "BM25"}
    parts = []
    for name in ("vector", "keyword"):
        if name not in hit.ranks:
            if retriever in ("hybrid", "rrf"):
                parts.append(f"not {names[name]}")
            continue
        score = hit.scores.get(name)
        said = "" if score is None else f" ({units[name]} {_score(name, score)})"
        parts.append(f"{_ordinal(hit.ranks[name])} {names[name]}{said}")
    return ", ".join(parts)


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def segments(text: str, spans: Sequence[tuple[int, int]]) -> list[Segment]:
    """Return a text in pieces, each with whether it is marked: offsets mean other things in the browser."""
    text = text[:_LONGEST_SNIPPET]
    edges = [0]
    for start, end in spans:
        if edges[-1] <= start < end <= len(text):
            edges += [start, end]
    edges.append(len(text))
    return [(text[a:b], number % 2 == 1) for number, (a, b) in enumerate(pairwise(edges)) if a < b]


def _models(job: Job) -> list[dict[str, Any]]:
    return [{"code": model.code, "ready": model.ready, "note": model.note} for model in mf.models()]


# --- what people type -------------------------------------------------------------------------------------------------


def read_filters(typed: Mapping[str, str], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a search from what was typed; others that were set in Python stay.

    Raises:
        QueryError: The conditions are no ``key=value``.
    """
    filters = {name: value for name, value in kept.items() if name not in ("where", "since", "until")}
    where = read_conditions(typed.get("where", ""))
    if where:
        filters["where"] = where
    for name in ("since", "until"):
        if typed.get(name, "").strip():
            filters[name] = typed[name].strip()
    return filters


def read_conditions(text: str) -> dict[str, Any]:
    """Return what ``tags=ci, status=done`` asks for; a key that stands there twice may have either value.

    Raises:
        QueryError: A part is no ``key=value``.
    """
    where: dict[str, Any] = {}
    position = 0
    while position < len(text) and text[position:].strip(" ,\n"):
        found = _CONDITION.match(text, position)
        if found is None:
            part = text[position:].split(",")[0].strip()
            raise mf.errors.QueryError(f"{part!r} is no condition; write key=value, such as tags=ci, status=done")
        value = found[2].strip('"')
        key, before = found[1], where.get(found[1])
        where[key] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
        position = found.end()
    return where


def _said(value: Any) -> str:
    """Return a filter that was set in Python as one would type it; nothing where that cannot be typed."""
    if isinstance(value, Mapping):
        pairs = [(key, one) for key, given in value.items() for one in (given if isinstance(given, list) else [given])]
        return ", ".join(f"{key}={one}" for key, one in pairs) if all(isinstance(one, str) for _, one in pairs) else ""
    return "" if value is None else str(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_HITS:
        raise mf.errors.QueryError(f"give a whole number from 1 to {MOST_HITS}")
    return value


def _code(model: Any) -> str:
    return model if isinstance(model, str) else str(getattr(model, "model_code", "") or "")
