"""Probes: write questions, judge which pages answer them, save them for ``field.evaluate``.

What is judged is a pool of hits (``pooling.py``) in an order that says nothing; a page that no retriever found can be
added by its name. What was judged goes to a file (``probefile.py``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import traitlets

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.pairview import dates
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.pooling import pooled
from memoryfield_widgets.probefile import ProbeFile
from memoryfield_widgets.state import State

_LONGEST_TEXT = 6_000  # characters of a page in the pool
_LONGEST_QUESTION = 2_000
_MOST_ROWS = 500  # saved probes that are listed

# What is being judged and not saved yet, by file; it outlives the cell that made the panel.
_drafts: dict[str, dict[str, Any]] = {}


class ProbeAnnotator(Panel):
    """Write and judge questions; each one that is saved goes to the file at once.

    Args:
        field: The field, or the state of one.
        path: The file, ``.jsonl`` or ``.csv``; by default ``NAME.probes.jsonl`` beside the field. What it holds
            already is shown and can be judged again.
        state: The state to share; by default the field's own.
        depth: Hits of each retriever that go into the pool.
        models: Further models whose vector hits go into the pool as well.
        seed: Of the shuffled order.

    Attributes:
        path: The file.

    Raises:
        RowError: The file cannot be read.
        QueryError: The file holds keys that would be lost.
    """

    _esm = script("probes.js")
    _css = style("probes.css")
    rows: traitlets.List[Any] = traitlets.List().tag(sync=True)  # the saved probes: id, question, gold, ...
    file = traitlets.Unicode("").tag(sync=True)
    categories: traitlets.List[Any] = traitlets.List().tag(sync=True)
    asking = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        field: mf.MemoryField | State,
        path: str | os.PathLike[str] | None = None,
        *,
        state: State | None = None,
        depth: int = 10,
        models: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        own = State.of(field).field
        self.path = Path(path) if path is not None else own.path.absolute().parent / f"{own.name}.probes.jsonl"
        self._file = ProbeFile(self.path)
        super().__init__(field, state=state, label="Probes", file=str(self.path))
        self.depth = depth
        self.models = tuple(models)
        self.seed = seed
        self._guard = threading.RLock()
        self._draft = _drafts.setdefault(str(self.path.absolute()), _fresh())
        self._list()

    @property
    def probes(self) -> Any:
        """What the file holds, as far as this panel has read it."""
        return self._file.probes

    # --- what a person does -------------------------------------------------------------------------------------------

    def ask(self, question: str) -> None:
        """Take a question and look up its pool on the worker thread; what was marked for it stays marked."""
        question = question.strip()[:_LONGEST_QUESTION]
        with self._guard:
            draft = self._draft
            draft["question"] = question
            draft["pool"], draft["note"] = [], ""
            wanted = sorted(draft["gold"])
        if not question:
            self.state.jobs.cancel(kind=self._kind)
            self.asking = False
            self._show()
            return
        self.asking = True

        def work(job: Job) -> tuple[list[str], str]:
            try:
                return pooled(self.state, question, wanted, self.depth, self.models, self.seed, job)
            except BaseException:
                self.asking = False
                raise

        self.state.jobs.start(
            self._kind, work, lambda found: self._take(question, *found), title="asking all retrievers"
        )

    @property
    def _kind(self) -> str:
        return f"pool {self.model_id}"

    def _take(self, question: str, names: list[str], note: str) -> None:
        with self._guard:
            if self._draft["question"] != question:
                return
            # what was added by name while the retrievers were asked stays
            self._draft["pool"] = [*names, *(name for name in self._draft["gold"] if name not in names)]
            self._draft["note"] = note
        self.asking = False
        self._show()

    def mark(self, name: str, gold: bool = True) -> None:
        """Say whether a page answers the question; a page that is not in the pool joins it.

        Raises:
            PageNotFound: There is no such page.
        """
        name = self.field.read(name).name
        with self._guard:
            draft = self._draft
            joins = name not in draft["pool"]
            if joins:
                draft["pool"].append(name)
            if gold:
                draft["gold"] = [*(other for other in draft["gold"] if other != name), name]
                draft["answerable"] = True
            else:
                draft["gold"] = [other for other in draft["gold"] if other != name]
        if joins:
            self._show()
        else:
            self._show_marks()

    def set(self, *, answerable: bool | None = None, category: str | None = None) -> None:
        """Say that no page answers the question (which takes the marks away), or what category it is of."""
        with self._guard:
            if category is not None:
                self._draft["category"] = category.strip()
            if answerable is not None:
                self._draft["answerable"] = answerable
                if not answerable:
                    self._draft["gold"] = []
        self._show_marks()

    def save(self) -> Any:
        """Write the question with its marks to the file, take up a new one, and return the ``Probe``.

        Raises:
            QueryError: The question is empty, or neither marked nor said to be unanswerable.
        """
        with self._guard:
            draft = self._draft
            if not draft["question"]:
                raise mf.errors.QueryError("there is no question yet: write one, then judge what was found")
            if draft["answerable"] and not draft["gold"]:
                raise mf.errors.QueryError("mark the pages that answer the question, or say that no page does")
            old = next((probe for probe in self.probes if probe.id == draft["id"]), None)
            probe = mf.Probe(
                draft["id"] or self._file.new_id(self.field.name),
                draft["question"],
                frozenset(draft["gold"]),
                draft["category"],
                draft["answerable"],
                # families are of the gold pages: with other ones they no longer hold
                old.family_gold if old is not None and old.gold == frozenset(draft["gold"]) else frozenset(),
            )
            self._file.put(probe.id, probe)
            category = draft["category"]
            self._begin(_fresh(category=category))
        self._list()
        self._show()
        self.state.say(f"probe {probe.id} saved to {self.path.name}, which holds {len(self.probes)}")
        return probe

    def load(self, probe_id: str) -> None:
        """Take up a probe of the file again, with its marks.

        Raises:
            QueryError: There is no such probe.
        """
        probe = next((probe for probe in self.probes if probe.id == probe_id), None)
        if probe is None:
            raise mf.errors.QueryError(f"{self.path.name} holds no probe {probe_id!r}")
        with self._guard:
            known = [name for name in sorted(probe.gold) if name in self.field]
            self._begin(_fresh(probe.id, probe.question, known, probe.category, probe.answerable))
            gone = sorted(probe.gold - set(known))
        self.ask(probe.question)
        if gone:
            self.state.say(f"not in the field any more, and left out when you save: {', '.join(gone)}")

    def next_unjudged(self) -> None:
        """Take up the first probe that is neither marked nor said to be unanswerable."""
        bare = next((probe for probe in self.probes if probe.answerable and not probe.gold), None)
        if bare is None:
            self.state.say("every probe of the file is judged")
        else:
            self.load(bare.id)

    def new(self) -> None:
        """Put the question aside and begin another one; what was not saved is forgotten."""
        with self._guard:
            self._begin(_fresh(category=self._draft["category"]))
        self.state.jobs.cancel(kind=self._kind)
        self.asking = False
        self._show()

    def delete(self, probe_id: str) -> None:
        """Take a probe out of the file."""
        with self._guard:
            self._file.put(probe_id, None)
            if self._draft["id"] == probe_id:
                self._draft["id"] = ""  # what is being judged becomes a new one
        self._list()
        self._show_marks()
        self.state.say(f"probe {probe_id} deleted from {self.path.name}")

    def _begin(self, draft: dict[str, Any]) -> None:
        self._draft = _drafts[str(self.path.absolute())] = draft

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _list(self) -> None:
        with self.hold_sync():
            self.rows = [
                {
                    "id": probe.id,
                    "question": probe.question[:160],
                    "gold": len(probe.gold),
                    "category": probe.category,
                    "answerable": probe.answerable,
                }
                for probe in list(self.probes)[-_MOST_ROWS:]
            ]
            self.categories = [category for category in self.probes.categories if category][:100]

    def _marks(self) -> dict[str, Any]:
        draft = self._draft
        return {key: draft[key] for key in ("id", "question", "gold", "answerable", "category")}

    def _show_marks(self) -> None:
        with self._guard:
            content = self._marks()
        self.tell("marks", content)

    def _show(self) -> None:
        with self._guard:
            content = {**self._marks(), "note": self._draft["note"]}
            names = list(self._draft["pool"])
        pages = []
        for name in names:
            try:
                pages.append(_shown(self.field.read(name)))
            except mf.errors.PageNotFound:
                continue  # deleted since it was found
        self.tell("pool", {**content, "pages": pages})

    def twin(self) -> str:
        """Return the saved probes as a table."""
        return str(self.probes._repr_html_())

    # --- what the view says -------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view appeared: show what is being judged, also what an earlier panel left."""
        draft = self._draft
        if draft["question"] and not draft["pool"] and not self.asking:
            self.ask(draft["question"])
        self._show()

    def heard_ask(self, content: Mapping[str, Any]) -> None:
        """Take a question."""
        self.ask(_text(content, "question"))

    def heard_mark(self, content: Mapping[str, Any]) -> None:
        """Mark a page, or take its mark away."""
        self.mark(_text(content, "name"), content.get("gold") is True)

    def heard_add(self, content: Mapping[str, Any]) -> None:
        """Mark a page that was not found, by its name."""
        self.mark(_text(content, "name").strip())

    def heard_set(self, content: Mapping[str, Any]) -> None:
        """Say whether it can be answered, or its category."""
        answerable = content.get("answerable")
        category = content.get("category")
        self.set(
            answerable=answerable if isinstance(answerable, bool) else None,
            category=category if isinstance(category, str) else None,
        )

    def heard_save(self, _content: Mapping[str, Any]) -> None:
        """Save."""
        self.save()

    def heard_new(self, _content: Mapping[str, Any]) -> None:
        """Begin another question."""
        self.new()

    def heard_next(self, _content: Mapping[str, Any]) -> None:
        """Take up the first that is not judged."""
        self.next_unjudged()

    def heard_load(self, content: Mapping[str, Any]) -> None:
        """Take up a saved probe."""
        self.load(_text(content, "id"))

    def heard_delete(self, content: Mapping[str, Any]) -> None:
        """Take a probe out of the file."""
        self.delete(_text(content, "id"))

    def heard_open(self, content: Mapping[str, Any]) -> None:
        """Open a page."""
        self.state.open(_text(content, "name") or None)


def _fresh(
    probe_id: str = "", question: str = "", gold: Sequence[str] = (), category: str = "", answerable: bool = True
) -> dict[str, Any]:
    return {
        "id": probe_id,
        "question": question,
        "gold": list(gold),
        "category": category,
        "answerable": answerable,
        "pool": [],
        "note": "",
    }


def _shown(page: Any) -> dict[str, Any]:
    return {
        "name": page.name,
        "title": page.title,
        "summary": page.summary[:600],
        "dates": dates(page),
        "text": page.body[:_LONGEST_TEXT],
        "more": max(len(page.body) - _LONGEST_TEXT, 0),
    }


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""
