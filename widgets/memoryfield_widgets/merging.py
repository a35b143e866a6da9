"""The desk on which a merge is planned: what the plan says, what a curator changes in it, Apply, Undo.

No panel: ``FamilyReview`` has one and shows what ``shown`` says. Each call may come from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import memoryfield as mf
from memoryfield_widgets.drafts import form_value, split_tags
from memoryfield_widgets.state import State

_MOST_ROWS = 600  # sentences of the account that are shown; what is lost or dropped comes first
_MOST_LINES = 1_500  # lines of the diff
_KINDS = ("kept", "equal", "heading", "dropped", "lost")


class MergeDesk:
    """One merge at a time, from the proposal to the undo.

    Args:
        state: What the panels share; its jobs do what takes a while.
        changed: Called, on any thread, when ``shown()`` would say something else.

    Attributes:
        plan: The plan, a ``MergePlan``; None while there is none.
        names: The pages that it makes one of.
        stale: Why the plan cannot be applied any more; empty while it can.
        merged: The last merge: ``text``, and ``step`` while it can be undone; empty before the first.
    """

    def __init__(self, state: State, changed: Callable[[], None]) -> None:
        self.state = state
        self.plan: Any = None
        self.names: tuple[str, ...] = ()
        self.stale = ""
        self.merged: dict[str, Any] = {}
        self._changed = changed
        self._proposed = ""  # the body as it was proposed
        self._guard = threading.RLock()

    # --- what a curator does ------------------------------------------------------------------------------------------

    def open(self, names: Sequence[str], into: str | None = None, family: Any = None) -> None:
        """Plan a merge on the worker thread.

        Args:
            names: The pages.
            into: The one that stays; by default the plan proposes one.
            family: Their ``Family``, which knows its medoid.
        """
        chosen = tuple(names)

        def work(_job: Any) -> Any:
            return family.plan(into) if family is not None else self.state.field.plan_merge(chosen, into)

        def done(plan: Any) -> None:
            with self._guard:
                self.plan, self.names, self.stale, self._proposed = plan, chosen, "", plan.body
            self._changed()

        self.state.jobs.start("plan", work, done, title=f"planning a merge of {len(chosen)} pages")

    def again(self) -> None:
        """Make the plan anew from the pages as they are now; pages that are gone are left out."""
        names = [name for name in self.names if name in self.state.field]
        survivor = self.plan.survivor if self.plan is not None and self.plan.survivor in names else None
        if len(names) < 2:
            self.close()
            self.state.say("of these pages fewer than two are left: nothing to merge")
        else:
            self.open(names, survivor)

    def change(self, change: Callable[[Any], Any]) -> None:
        """Put the plan that *change* makes of the present one in its place."""
        with self._guard:
            if self.plan is None:
                return
            self.plan = change(self.plan)
        self._changed()

    def rewrite(self, body: str | None = None, **keys: str | None) -> None:
        """Take the curator's own body, title, summary and tags over; what is None, or a key without text, stays."""

        def changed(plan: Any) -> Any:
            given = {key: value for key, value in keys.items() if value and value.strip()}
            new = {key: split_tags(value) if key == "tags" else value for key, value in given.items()}
            plan = plan.with_keys(**new) if new else plan
            return plan if body is None else plan.with_body(body)

        self.change(changed)

    def close(self) -> None:
        """Take the plan off the desk; nothing was written."""
        with self._guard:
            self.plan, self.names, self.stale = None, (), ""
        self._changed()

    def apply(self) -> None:
        """Carry the plan out on the worker thread."""
        self.state.jobs.start("merge", self._apply, title="merging")

    def _apply(self, _job: Any) -> None:
        # the whole is done here and not in a ``done``: what was written is told even if the job was cancelled meanwhile
        with self._guard:
            plan = self.plan
            if plan is None or self.stale:
                return
            try:
                merged = plan.apply()
                steps = self.state.field.history(merged.survivor.name, limit=1)
                text = f"{_listed(merged.absorbed)} merged into {merged.survivor.name}"
                self.merged = {"text": text, "step": steps[0].id if steps else None}
                self.plan, self.names = None, ()
            except mf.errors.PageChanged as error:
                self.stale = str(error)
                raise
            finally:
                self._changed()  # also after an error: the view waits to hear how it went
        survivor = merged.survivor.name
        gone = set(merged.absorbed)
        kept = [survivor if name in gone else name for name in self.state.selected]
        self.state.update(selected=tuple(kept))
        self.state.wrote(self.merged["text"], active=survivor if self.state.active in gone else None)

    def undo(self) -> None:
        """Take the last merge back on the worker thread."""
        self.state.jobs.start("merge", self._undo, title="undoing the merge")

    def _undo(self, _job: Any) -> None:
        with self._guard:
            step = self.merged.get("step")
            if step is None:
                return
            try:
                self.state.field.undo(step)
                self.merged = {"text": f"Undone: {self.merged['text']}", "step": None}
            finally:
                self._changed()
        self.state.wrote(self.merged["text"])

    def check(self, _job: Any = None) -> None:
        """See whether the pages of the plan are still what it was made from."""
        with self._guard:
            if self.plan is None or self.stale:
                return
            for page in self.plan.pages:
                try:
                    now = self.state.field.read(page.name)
                except mf.errors.PageNotFound:
                    self.stale = f"{page.filename} was deleted since the plan was made"
                    break
                if now.sha256 != page.sha256:
                    self.stale = f"{page.filename} was changed since the plan was made"
                    break
            else:
                return
        self._changed()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def shown(self) -> dict[str, Any]:
        """Return the plan as values for the view; ``{}`` without one."""
        with self._guard:
            plan = self.plan
            if plan is None:
                return {}
            stale, edited = self.stale, plan.decided or plan.body != self._proposed
        account = plan.account()
        lines = plan.diff().splitlines()
        second = plan.second
        return {
            "survivor": plan.survivor,
            "why": plan.why,
            "stale": stale,
            "edited": edited,
            "pages": [_page(page, plan.survivor, account) for page in plan.pages],
            "size": plan.size,
            "over": plan.over_limit,
            "body": plan.body,
            "title": _key(plan, "title"),
            "summary": _key(plan, "summary"),
            "tags": form_value(plan.result, "tags"),  # None where they are no plain list
            "complete": account.complete,
            "counts": account.counts(),
            "lost": len(account.lost),
            "account": [_entry(entry) for entry in _first(account)],
            "more": max(len(account) - _MOST_ROWS, 0),
            "conflicts": [_pair(pair) for pair in plan.conflicts],
            "near": [_pair(pair) for pair in plan.resemblances if pair.kind == "near"],
            "keys": [{"key": c.key, "kept": c.kept, "others": list(map(list, c.others))} for c in plan.key_conflicts],
            "links": [{"name": other.name, "count": other.count} for other in plan.links],
            "notes": list(plan.notes),
            "second": None if second is None else {"name": second.name, "title": second.title, "body": second.body},
            "diff": lines[:_MOST_LINES],
            "diff_more": max(len(lines) - _MOST_LINES, 0),
        }


def _key(plan: Any, key: str) -> str:
    """Return a text of the merged page's frontmatter, or an empty one."""
    value = plan.result.frontmatter.get(key)
    return value if isinstance(value, str) else ""


def _page(page: Any, survivor: str, account: Any) -> dict[str, Any]:
    own = [entry.state for entry in account if entry.page == page.name]
    counts = [f"{own.count(state)} {state}" for state in _KINDS if state in own]
    stays = page.name == survivor
    return {"name": page.name, "title": page.title, "size": page.size, "stays": stays, "counts": ", ".join(counts)}


def _first(account: Any) -> list[Any]:
    """Return the sentences that are shown, in their order; those a curator has to see are never left out."""
    if len(account) <= _MOST_ROWS:
        return list(account)
    urgent = [number for number, entry in enumerate(account) if entry.state in ("lost", "dropped")]
    rest = [number for number, entry in enumerate(account) if entry.state not in ("lost", "dropped")]
    return [account[number] for number in sorted([*urgent, *rest][:_MOST_ROWS])]


def _entry(entry: Any) -> dict[str, Any]:
    # a title or a heading is changed in the text, not dropped: what stands under it would lose it
    fixed = entry.kind == "heading" or (entry.kind == "frontmatter" and entry.where == "frontmatter")
    return {
        "id": entry.id,
        "page": entry.page,
        "state": entry.state,
        "text": entry.text,
        "where": entry.equal_to or entry.where,
        "near": entry.near,
        "drop": not fixed and entry.state in ("kept", "equal", "lost"),
    }


def _pair(pair: Any) -> dict[str, str]:
    return {name: getattr(pair, name) for name in ("first", "first_page", "second", "second_page")}


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
