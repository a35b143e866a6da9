"""Families: pairs of pages to answer, the likely families, and the merge that makes one page of each.

What is asked and learned is ``field.families()``; the plan of a merge is on the desk of ``merging.py``.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import traitlets

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.merging import MergeDesk
from memoryfield_widgets.pairview import MOST_NAMES, group, question
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.state import State

Names = tuple[str, str]
Answer = Literal["same", "different", "unsure"]

_MOST_GROUPS = 200  # families in the list
_AHEAD = 10  # questions that are looked up at once
_QUICK = 0.5  # seconds to wait for the families after an answer, for the sake of a better next question

# Pairs of which somebody was not sure, by field; they are not asked again while the process lives.
_unsure: dict[str, set[Names]] = {}
# The families found last, so that a cell that runs again shows them at once.
_kept: weakref.WeakKeyDictionary[State, Any] = weakref.WeakKeyDictionary()


class FamilyReview(Panel):
    """Review pairs of pages that may say the same, then merge families.

    Keys while the focus is in the review: s same, d different, u unsure, n or space skip, b back.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own.

    Attributes:
        found: The families, a ``Families``; None until they are found.
        desk: The plan of the merge; see ``MergeDesk``.
        pair: The two pages that are asked about; None where there is no question.
    """

    _esm = script("merging.js", "families.js")
    _css = style("merging.css", "families.css")
    stage = traitlets.Unicode("idle").tag(sync=True)  # idle, finding, ready, failed
    score = traitlets.Dict().tag(sync=True)
    groups: traitlets.List[Any] = traitlets.List()  # goes by message: not into the saved notebook, as large data do
    merged = traitlets.Dict().tag(sync=True)
    chosen: traitlets.List[Any] = traitlets.List().tag(
        sync=True
    )  # pages that are selected elsewhere and could be merged
    can_write = traitlets.Bool(True).tag(sync=True)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None) -> None:
        super().__init__(field, state=state, label="Families", can_write=not State.of(field).field.read_only)
        self.found: Any = None
        self.pair: Names | None = None
        self.desk = MergeDesk(self.state, self._show_plan)
        self._aside = _unsure.setdefault(str(self.field.path.absolute()), set())
        self._guard = threading.RLock()  # never held while the state is told something: its observers may wait for it
        self._trail: list[Names] = []  # the pairs that were shown; ``back`` walks on it
        self._at = -1
        self._given: dict[Names, Answer] = {}
        self._skipped: list[Names] = []
        self._pending: list[tuple[Names, bool | None]] = []
        self._queue: tuple[Any, list[Names]] = (None, [])  # families, and what they would ask next
        self._took = 0.0  # seconds of the last look at the families after an answer
        self._kind = f"families {self.model_id}"
        self._looked = False
        self.follow(self._follow, "revision", "model", "selected")
        self._follow(frozenset({"selected"}))
        if self.state in _kept:
            self._take(_kept[self.state])

    # --- finding families ---------------------------------------------------------------------------------------------

    def find(self, *, delay: float = 0.0) -> None:
        """Find the families on the worker thread; the panel does so by itself when it is first shown."""
        self._looked = True
        if self.stage in ("idle", "failed"):
            self.stage = "finding"

        def work(job: Job) -> Any:
            try:
                return self.field.families(model=self.state.model, progress=job.progress)
            except BaseException:  # cancelled as well: the view then offers to look again
                self.stage = "failed" if self.found is None else "ready"
                raise

        self.state.jobs.start(self._kind, work, self._take, title="looking for families", delay=delay, long=True)

    def _take(self, found: Any) -> None:
        with self._guard:
            self.found = _kept[self.state] = found
            names = set(self.field.names())
            self._trail = [pair for pair in self._trail[: self._at + 1] if set(pair) <= names]
            self._at = len(self._trail) - 1
            if self._at < 0 or self._trail[self._at] != self.pair or self.pair in self._given:
                self._advance()
        self._show()
        self._show_pair()

    def _follow(self, changed: frozenset[str]) -> None:
        if "selected" in changed:
            self.chosen = list(self.state.selected[:MOST_NAMES])
        if changed & {"revision", "model"} and self._looked:
            self.find(delay=0.3)
            self.state.jobs.start(f"check {self.model_id}", self.desk.check)

    # --- the questions ------------------------------------------------------------------------------------------------

    def answer(self, said: bool | None) -> None:
        """Answer the question: True for same, False for different, None for not sure, which is not asked again."""
        with self._guard:
            if self.found is None or self.pair is None:
                return
            pair, before = self.pair, self._given.get(self.pair)
            self._given[pair] = {True: "same", False: "different", None: "unsure"}[said]  # type: ignore[assignment]
            if said is None:
                self._aside.add(pair)
            else:
                self._aside.discard(pair)
            teaches = said is not None or before in ("same", "different")
            teaches = teaches or self.found.evidence(*pair).answer is not None  # taken back
            if teaches:
                self._pending.append((pair, said))
            wait = teaches and self._took < _QUICK
            if not wait:
                self._advance()
        if teaches:  # where it takes long, a search does not have to wait for it
            self.state.jobs.start(f"answer {self.model_id}", self._learn, long=self._took >= _QUICK)
        if not wait:
            self._show_pair()

    def _learn(self, _job: Job) -> None:
        """Give the families the answers that wait; what is worked out here counts even if the job was cancelled."""
        while True:
            with self._guard:
                if not self._pending:
                    break
                (pair, said), source = self._pending.pop(0), self.found
            begun = time.monotonic()
            try:
                found = source.withdraw(*pair) if said is None else source.review(*pair, same=said)
            except Exception:
                with self._guard:
                    self._given.pop(pair, None)  # it is not kept: asked again
                self._show_pair()
                raise
            best = self._asked_by(found)
            with self._guard:
                if self.found is not source:  # the pages changed meanwhile: the answer is for the newer families
                    self._pending.insert(0, (pair, said))
                    continue
                self.found, self._queue = found, (found, best)
                _kept[self.state] = found
                self._took = time.monotonic() - begun
                advance = pair == self.pair
                if advance:
                    self._advance()
            if advance:
                self._show_pair()
        self._show()

    def skip(self) -> None:
        """Leave the question for later."""
        with self._guard:
            if self.pair is not None and self.pair not in self._given:
                self._skipped = [*(pair for pair in self._skipped if pair != self.pair), self.pair]
            self._advance()
        self._show_pair()

    def back(self) -> None:
        """Return to the question before; another answer replaces the one that was given."""
        with self._guard:
            if self._at > 0:
                self._at -= 1
                self.pair = self._trail[self._at]
        self._show_pair()

    def ask(self, first: str, second: str) -> None:
        """Ask about two pages that somebody chose."""
        with self._guard:
            one = self.found.evidence(first, second)  # in their order, and refused where one is no page
            self._go_to((one.first, one.second))
        self._show_pair()

    def _go_to(self, pair: Names) -> None:
        self._trail = [*self._trail[: self._at + 1], pair]
        self._at = len(self._trail) - 1
        self.pair = pair

    def _advance(self) -> None:
        """Go to the next question: one that was stepped back from, else the best one, else one that was skipped."""
        if self._at + 1 < len(self._trail):
            self._at += 1
            self.pair = self._trail[self._at]
            return
        past = {*self._given, *self._aside, *self._skipped}
        if self.pair is not None:
            past.add(self.pair)
        fresh = self._fresh(past)
        later = [pair for pair in self._skipped if pair not in self._given and pair not in self._aside]
        if fresh or later:
            chosen = fresh[0] if fresh else later[0]
            self._skipped = [pair for pair in self._skipped if pair != chosen]
            self._go_to(chosen)
        else:
            self.pair = None
            self._at = len(self._trail)  # one behind the last, so that ``back`` returns to it

    def _fresh(self, past: set[Names]) -> list[Names]:
        """Return the best questions that are not *past*; looked up anew only when the families changed or all are."""
        if self.found is None:
            return []
        source, names = self._queue
        left = [pair for pair in names if pair not in past]
        if source is not self.found or (names and not left):
            self._queue = self.found, self._asked_by(self.found)
            left = [pair for pair in self._queue[1] if pair not in past]
        return left

    def _asked_by(self, found: Any) -> list[Names]:
        """Return what families would ask next, enough of it to have some left after what is set aside."""
        past = len({*self._given, *self._aside, *self._skipped})
        return [(pair.first, pair.second) for pair in found.borderline(_AHEAD + past)]

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        found = self.found
        if found is None:
            return
        estimate, low, high = found.precision
        inside = sum(len(family) for family in found)
        with self.hold_sync():
            self.score = {
                "families": len(found),
                "inside": inside,
                "pages": found.pages,
                "estimate": estimate,
                "low": low,
                "high": high,
                "answers": len(found.reviews),
                "worthwhile": found.worthwhile,
                "model": found.model_code,
            }
            self.groups = [group(family) for family in found[:_MOST_GROUPS]]
            self.stage = "ready"
        self._show_groups()

    def _show_groups(self) -> None:
        self.tell("groups", {"groups": self.groups})

    def _show_pair(self) -> None:
        with self._guard:
            content = self._question()
        self.tell("pair", content)

    def _question(self) -> dict[str, Any]:
        """Return the question as values for the view."""
        found, pair = self.found, self.pair
        shared = {"number": self._at + 1, "back": self._at > 0}
        if found is None or pair is None:
            return {**shared, "pages": [], "waiting": self.stage != "ready" and found is None}
        try:
            pages = [self.field.read(name) for name in pair]
        except mf.errors.PageNotFound as error:
            return {**shared, "pages": [], "gone": str(error)}
        return {**shared, **question(pages, found.evidence(*pair), self._given.get(pair))}

    def _show_plan(self) -> None:
        self.merged = dict(self.desk.merged)
        self.tell("plan", {"plan": self.desk.shown()})

    def twin(self) -> str:
        """Return the families as a table, or how to get it."""
        if self.found is not None:
            return str(self.found._repr_html_())
        return self.not_yet(
            "they are looked for when the panel is first seen, so nothing of them was known when this cell ran. "
            "Run the cell again to have the table of families here; field.families() returns it."
        )

    # --- what the view says -------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view appeared: look for families if nobody has yet, and show what there is."""
        if not self._looked:
            self.find()
        self._show_groups()
        self._show_pair()
        self._show_plan()

    def heard_find(self, _content: Mapping[str, Any]) -> None:
        """Look for families again."""
        self.find()

    def heard_answer(self, content: Mapping[str, Any]) -> None:
        """Take an answer on the pair that the view shows; one on a pair that is gone from it is an echo."""
        said = {"same": True, "different": False, "unsure": None}
        word, pair = content.get("said"), content.get("pair")
        if word in said and isinstance(pair, list) and self.pair == tuple(pair):
            self.answer(said[word])

    def heard_skip(self, _content: Mapping[str, Any]) -> None:
        """Leave the question for later."""
        self.skip()

    def heard_back(self, _content: Mapping[str, Any]) -> None:
        """Return to the question before."""
        self.back()

    def heard_open(self, content: Mapping[str, Any]) -> None:
        """Open a page."""
        self.state.open(_text(content, "name"))

    def heard_select(self, content: Mapping[str, Any]) -> None:
        """Select pages, so that the map shows them."""
        self.state.selected = _names(content)

    def heard_plan(self, content: Mapping[str, Any]) -> None:
        """Plan a merge."""
        self.plan(_names(content), _text(content, "into"))

    def plan(self, names: Sequence[str], into: str | None = None) -> None:
        """Plan a merge of pages; it appears in the panel, and in ``desk.plan``."""
        family = None if self.found is None else next((f for f in self.found if set(f) == set(names)), None)
        self.desk.open(names, into, family)

    def heard_body(self, content: Mapping[str, Any]) -> None:
        """Take the curator's own text."""
        self.desk.rewrite(**{key: _text(content, key) for key in ("body", "title", "summary", "tags")})

    def heard_drop(self, content: Mapping[str, Any]) -> None:
        """Drop a sentence."""
        self.desk.change(lambda plan: plan.drop(_text(content, "id") or ""))

    def heard_resolve(self, content: Mapping[str, Any]) -> None:
        """Decide a contradiction."""
        number, keep = content.get("number"), _text(content, "keep") or ""
        self.desk.change(lambda plan: plan.resolve(number if isinstance(number, int) else -1, keep))

    def heard_accept(self, _content: Mapping[str, Any]) -> None:
        """Approve the text with what is missing in it."""
        self.desk.change(lambda plan: plan.accept())

    def heard_split(self, _content: Mapping[str, Any]) -> None:
        """Put the end of the result on a second page."""
        self.desk.change(lambda plan: plan.split())

    def heard_again(self, _content: Mapping[str, Any]) -> None:
        """Make the plan anew."""
        self.desk.again()

    def heard_leave(self, _content: Mapping[str, Any]) -> None:
        """Go without a merge."""
        self.desk.close()

    def heard_apply(self, _content: Mapping[str, Any]) -> None:
        """Carry the plan out."""
        self.desk.apply()

    def heard_undo(self, _content: Mapping[str, Any]) -> None:
        """Take the last merge back."""
        self.desk.undo()


def _text(content: Mapping[str, Any], key: str) -> str | None:
    value = content.get(key)
    return value if isinstance(value, str) else None


def _names(content: Mapping[str, Any]) -> tuple[str, ...]:
    value = content.get("names")
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()
