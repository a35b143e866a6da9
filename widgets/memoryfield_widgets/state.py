"""One state that all panels of a field share: what is asked, found, selected, open, running and said.

A panel never talks to another panel. It sets values here, and follows values that others set. Callbacks of widgets run
now on the main thread and now on another, so everything here may be called from any thread.
"""

from __future__ import annotations

import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MethodType
from typing import Any, ClassVar, Generic, TypeVar, overload

import memoryfield as mf
from memoryfield_widgets.jobs import DEBOUNCE, Job, Jobs, Running

T = TypeVar("T")
Observer = Callable[[frozenset[str]], None]

RETRIEVERS = ("hybrid", "vector", "keyword", "rrf")


class Shared(Generic[T]):
    """A value of the state: read as an attribute, and told to observers when it is set to something else."""

    def __init__(self, default: T, clean: Callable[[Any], T] | None = None) -> None:
        self.default = default
        self.clean = clean
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, state: None, owner: type) -> Shared[T]: ...
    @overload
    def __get__(self, state: State, owner: type) -> T: ...
    def __get__(self, state: State | None, owner: type) -> Shared[T] | T:
        if state is None:
            return self
        value: T = state._values[self.name]
        return value

    def __set__(self, state: State, value: T) -> None:
        state.update(**{self.name: value})


def _names(value: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return page names as a tuple without repeats."""
    given = [] if value is None else [value] if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(str(name).removesuffix(".md") for name in given))


def _page(value: str | None) -> str | None:
    return str(value).removesuffix(".md") if value else None


class State:
    """What the panels of one field share.

    Each attribute below can be set; setting it tells everyone who follows it. ``State.of(field)`` gives the one state
    of a field; a state of its own, ``State(field)``, keeps a panel apart from the others.

    Args:
        field: The field.

    Attributes:
        field: The field, for its methods.
        model: Code of the model that is searched and mapped with; None for the field's own.
        recipe: Recipe of the vectors; None for the field's own.
        query: The question.
        retriever: ``hybrid``, ``vector``, ``keyword`` or ``rrf``.
        filters: Of the search: ``where``, ``since``, ``until``, ``min_score``, ``gate``.
        k: Most hits.
        hits: The results of the last search (``SearchResults``), None before the first.
        selected: Names of the selected pages.
        active: Name of the page that is open, or None.
        busy: What waits or runs; see ``jobs.Running``.
        message: What was done last, in words.
        error: What went wrong last, in words; empty again once something worked.
        revision: Rises whenever a panel changed pages; ``wrote`` does that.
        drafts: By page name what was typed but not saved; kept for the field's path as long as the process lives.
        jobs: Starts work on a worker thread; see ``jobs.Jobs``.
        trouble: The traceback of the last error that was no ``MemoryfieldError``.
    """

    model = Shared[str | None](None)
    recipe = Shared[str | None](None)
    query = Shared[str]("")
    retriever = Shared[str]("hybrid")
    filters = Shared[Mapping[str, Any]]({}, dict)
    k = Shared[int](10)
    hits = Shared[Any](None)
    selected = Shared[tuple[str, ...]]((), _names)
    active = Shared[str | None](None, _page)
    busy = Shared[tuple[Running, ...]](())
    message = Shared[str]("")
    error = Shared[str]("")
    revision = Shared[int](0)

    _known: ClassVar[weakref.WeakValueDictionary[int, State]] = weakref.WeakValueDictionary()
    _drafts: ClassVar[dict[str, dict[str, Any]]] = {}
    _guard = threading.Lock()

    def __init__(self, field: mf.MemoryField) -> None:
        self.field = field
        self._values: dict[str, Any] = {
            name: shared.default for name, shared in vars(State).items() if isinstance(shared, Shared)
        }
        self._lock = threading.Lock()
        self._telling = threading.RLock()
        self._observers: list[tuple[Callable[[], Observer | None], frozenset[str]]] = []
        self.drafts = self._drafts.setdefault(str(field.path.absolute()), {})
        self.trouble = ""
        # the jobs must not keep the state alive: it goes with the last panel, and they end with it
        me = weakref.ref(self)
        self.jobs = Jobs(lambda: _call(me, State._show_jobs), lambda job, error: _call(me, State.fail, error))

    @classmethod
    def of(cls, field: mf.MemoryField | State) -> State:
        """Return the state of a field, the same one each time; a state is returned as it is."""
        if isinstance(field, State):
            return field
        with cls._guard:
            state = cls._known.get(id(field))
            if state is None or state.field is not field:
                state = cls._known[id(field)] = cls(field)
            return state

    def __repr__(self) -> str:
        return f"<State of {self.field.name!r}: {len(self.selected)} selected, active {self.active!r}>"

    # --- values and those who follow them -----------------------------------------------------------------------------

    def update(self, **changes: Any) -> None:
        """Set several values at once; those who follow them are called once, before this returns."""
        cleaned = {}
        for name, value in changes.items():
            shared = vars(State).get(name)
            if not isinstance(shared, Shared):
                raise AttributeError(f"a state has no value {name!r}; it has {', '.join(sorted(self._values))}")
            cleaned[name] = value if shared.clean is None else shared.clean(value)
        with self._lock:
            changed = frozenset(name for name, value in cleaned.items() if not _same(self._values[name], value))
            self._values.update(cleaned)
        if changed:
            self._tell(changed)

    def follow(self, observer: Observer, *names: str) -> Callable[[], None]:
        """Call *observer* with the names of what changed whenever one of *names* does; all names by default.

        It reads the new values from the state, on whatever thread set them. A bound method is held weakly: it is
        forgotten with its object. What it raises is shown as an error and does not reach the one who set the value.

        Returns:
            A function that ends it.
        """
        is_method = isinstance(observer, MethodType)
        held: Callable[[], Observer | None] = weakref.WeakMethod(observer) if is_method else lambda: observer
        entry = (held, frozenset(names) or frozenset(self._values))
        unknown = entry[1] - set(self._values)
        if unknown:
            raise AttributeError(f"a state has no value {', '.join(sorted(unknown))}")
        with self._lock:
            self._observers.append(entry)

        def end() -> None:
            with self._lock:
                self._observers = [other for other in self._observers if other is not entry]

        return end

    def _tell(self, changed: frozenset[str]) -> None:
        # one thread at a time: two observers of one widget never run side by side
        with self._telling:
            with self._lock:
                self._observers = [entry for entry in self._observers if entry[0]() is not None]
                concerned = [held for held, names in self._observers if names & changed]
            for held in concerned:
                observer = held()
                if observer is None:
                    continue
                try:
                    observer(changed)
                except Exception as error:
                    if "error" not in changed:  # else an observer that fails on errors would go round in circles
                        self.fail(error)

    # --- what is said -------------------------------------------------------------------------------------------------

    def say(self, message: str) -> None:
        """Show what was done; the last error is settled by it."""
        self.update(message=message, error="")

    def fail(self, error: BaseException | str) -> None:
        """Show what went wrong, in words."""
        if isinstance(error, str | mf.MemoryfieldError):
            self.error = str(error)
            return
        self.trouble = "".join(traceback.format_exception(error))
        text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
        self.error = f"{text} (this should not happen; the traceback is in state.trouble)"

    def _show_jobs(self) -> None:
        self.busy = self.jobs.running()

    # --- what panels have in common -----------------------------------------------------------------------------------

    def open(self, name: str | None) -> None:
        """Make a page the active one; panels that show a page show it."""
        self.active = name

    def wrote(self, message: str = "", *, active: str | None = None) -> None:
        """Tell everyone that pages were changed, added or removed.

        Args:
            message: What was done.
            active: The page that is open from now on; by default it stays.
        """
        changes: dict[str, Any] = {"revision": self.revision + 1, "error": ""}
        if message:
            changes["message"] = message
        if active is not None:
            changes["active"] = active
        self.update(**changes)

    def ask(self, query: str | None = None, *, delay: float = DEBOUNCE, **settings: Any) -> None:
        """Search soon, on the worker thread; ``hits`` then has the results. An older search is dropped.

        Args:
            query: The question; by default the one that stands.
            delay: Seconds to wait for a newer question first.
            settings: ``retriever``, ``k``, ``filters``, ``model`` or ``recipe``, to be changed with it.
        """
        changes = dict(settings)
        if query is not None:
            changes["query"] = query
        self.update(**changes)
        asked = self.query
        if not asked.strip():
            self.jobs.cancel(kind="search")
            self.hits = None
            return
        self.jobs.start("search", self._search, self._found, title=f"searching for {asked[:60]!r}", delay=delay)

    def again(self, delay: float = 0.4) -> None:
        """Search anew for the question that stands, since pages were changed; what was said last stays."""
        if self.query.strip() and self.hits is not None:
            self.jobs.start("search", self._search, lambda hits: self.update(hits=hits), delay=delay)

    def _search(self, job: Job) -> Any:
        filters = dict(self.filters)
        if self.retriever == "keyword":
            filters.pop("gate", None)  # a gate compares vectors
        return self.field.search(
            self.query,
            k=self.k,
            retriever=self.retriever,
            model=self.model,
            recipe=self.recipe,
            # the index is locked while it is being built; what it holds so far can be searched
            sync=not self.jobs.has("index"),
            progress=job.progress,
            **filters,
        )

    def _found(self, hits: Any) -> None:
        count = len(hits)
        said = f"{count} {'page' if count == 1 else 'pages'} found" if count else hits.reason
        self.update(hits=hits, message=said, error="")

    def index(self, model: str | None = None, recipe: str | None = None) -> None:
        """Bring the vector index up to date on the worker thread; progress shows in ``busy``."""
        model, recipe = model or self.model, recipe or self.recipe

        def work(job: Job) -> Any:
            return self.field.sync(model, recipe=recipe, verify=False, progress=job.progress)

        self.jobs.start("index", work, self._indexed, title=f"embedding pages with {model or 'the model'}", long=True)

    def _indexed(self, report: Any) -> None:
        self.wrote(str(report).splitlines()[0])


def _same(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and isinstance(old, _COMPARED) and bool(old == new))


_COMPARED = (str, int, tuple, dict, type(None))


def _call(me: weakref.ref[State], method: Callable[..., None], *arguments: Any) -> None:
    state = me()
    if state is not None:
        method(state, *arguments)


def names_of(pages: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of hits, pages or names."""
    return tuple(str(getattr(page, "name", page)) for page in pages)
