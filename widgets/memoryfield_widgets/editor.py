"""The editor: one page as a form or as raw text, with its preview, its likes, and a diff before anything is written."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import traitlets

import memoryfield as mf
from memoryfield_widgets.drafts import NEW, RAW, Draft, opened, view_of, why_locked
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.lookups import Likes, find_likes, last_steps
from memoryfield_widgets.panel import Panel, script, style
from memoryfield_widgets.preview import preview
from memoryfield_widgets.saving import Asked, both_versions
from memoryfield_widgets.state import State

LONGEST_EMBEDDED = 8192  # bytes of a page that tools embed
_SHORT = 20_000  # characters whose preview is made at once
_PAUSE = 0.4  # seconds without typing before similar pages are looked for


_editors: weakref.WeakSet[PageEditor] = weakref.WeakSet()


class PageEditor(Panel):
    """Shows and edits the page that is open.

    Args:
        field: The field, or the state of one.
        name: Page to open; by default the one that is open in the other panels.
        state: The state to share; by default the field's own.
    """

    _esm = script("editor.js")
    _css = style("editor.css")
    facts = traitlets.Dict().tag(sync=True)  # of what is in the view: name, bytes, tokens, dirty, problem
    similar = traitlets.Dict().tag(sync=True)  # words, rows
    steps: Any = traitlets.List().tag(sync=True)  # of the history, newest first
    drafts: Any = traitlets.List().tag(sync=True)  # names of pages with unsaved drafts

    def __init__(self, field: mf.MemoryField | State, name: str | None = None, *, state: State | None = None) -> None:
        super().__init__(field, state=state, label="Page")
        self._draft: Draft | None = None
        self._heard: dict[str, int] = {}  # by view: the number of its last message about typing
        self._asked: Asked | None = None
        self._likes = Likes()
        _editors.add(self)
        self.follow(self._follow_page, "active", "revision")
        if name is not None:
            self.field.read(name)  # a name that is wrong is told at once
            self.state.open(name)
        self._take_up()
        self._look_at_history()

    # --- which page ---------------------------------------------------------------------------------------------------

    def _follow_page(self, changed: frozenset[str]) -> None:
        if "active" in changed and (self._draft is None or (self.state.active or NEW) != self._draft.name):
            self._take_up()
        elif "revision" in changed:
            self._look()
        if "revision" in changed:
            self._look_at_history()

    def _take_up(self) -> None:
        """Show the page that is open in the state, or the draft of it that was left."""
        name = self.state.active
        if name is None:
            self._draft = self.state.drafts.get(NEW)
        else:
            self._draft = self.state.drafts.get(name) or self._opened(name)
        self._asked = None
        self._show()

    def _opened(self, name: str) -> Draft | None:
        try:
            page = self.field.read(name)
        except mf.errors.PageError as error:
            self.state.fail(error)
            return None
        return opened(page)

    def _look(self) -> None:
        """See whether the page on disk is still the one that was read."""
        draft = self._draft
        if draft is None or draft.base is None:
            return
        try:
            now = self.field.read(draft.base.name)
        except mf.errors.PageNotFound:
            if draft.name in self.state.drafts:
                self._show_facts()  # the text is not lost: it can be saved as a new page
                return
            self._draft = None
            self._show()
            return
        if now.sha256 == draft.base.sha256:
            return
        if draft.name in self.state.drafts:
            self._show_facts()
        else:
            self._draft = opened(now)
            self._show()

    # --- down ---------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Give all views the page anew."""
        self.tell("load", {**view_of(self._draft, self.field), "heard": dict(self._heard)})
        self._show_facts()
        self._look_closer()

    def _show_facts(self) -> None:
        draft = self._draft
        facts: dict[str, Any] = {"name": None, "limit": LONGEST_EMBEDDED}
        if draft is not None:
            elsewhere = draft.elsewhere(self.field)
            facts.update(name=draft.name, dirty=draft.name in self.state.drafts, problem="", elsewhere=elsewhere)
            try:
                page = draft.shown_page(self.field)
            except mf.MemoryfieldError as error:
                facts.update(problem=str(error), bytes=len(draft.body.encode("utf-8", "replace")))
            else:
                facts.update(bytes=page.size)
                if self._likes.sha256 == page.sha256:
                    facts.update(tokens=self._likes.tokens, maxTokens=self._likes.most_tokens)
        self.facts = facts
        self.drafts = sorted(self.state.drafts)

    def _look_closer(self, delay: float = 0.0) -> None:
        """Make the preview, then look for similar pages on the worker thread."""
        draft = self._draft
        jobs = self.state.jobs
        if draft is None:
            self.similar = {}
            return
        text = draft.body
        if draft.mode == RAW:
            text = mf.Page("shown", draft.raw.encode("utf-8", "replace")).body
        if len(text) <= _SHORT:
            self._show_preview(preview(text))  # milliseconds: not behind a search or a map
        else:
            jobs.start(f"preview {self.model_id}", lambda _: preview(text), self._show_preview)
        jobs.start(f"similar {self.model_id}", lambda job: self._find_likes(draft, job), self._show_likes, delay=delay)

    def _show_preview(self, made: tuple[str, bool]) -> None:
        self.tell("preview", {"html": made[0], "cut": made[1]})

    def _find_likes(self, draft: Draft, job: Job) -> tuple[Draft, Likes]:
        try:
            page = draft.shown_page(self.field)
        except mf.MemoryfieldError:
            return draft, Likes()
        return draft, find_likes(page, self.state, job)

    def _show_likes(self, found: tuple[Draft, Likes]) -> None:
        draft, likes = found
        if draft is self._draft:
            self.similar = likes.shown()
            self._likes = likes
            self._show_facts()

    def _look_at_history(self) -> None:
        if not self.field.read_only:
            jobs = self.state.jobs
            jobs.start(f"history {self.model_id}", lambda _: last_steps(self.field), self._show_steps)

    def _show_steps(self, steps: list[dict[str, Any]]) -> None:
        self.steps = steps

    # --- up: typing ---------------------------------------------------------------------------------------------------

    def heard_hello(self, _content: Mapping[str, Any]) -> None:
        """A view has appeared: give it everything."""
        self._look()
        self._show()

    def heard_look(self, _content: Mapping[str, Any]) -> None:
        """Someone is back at the view: see whether another program has changed the page meanwhile."""
        self._look()

    def heard_open(self, content: Mapping[str, Any]) -> None:
        """Open a page that the preview links to, that is similar, or that has a draft."""
        name = content.get("name")
        if name == NEW:
            self.heard_new(content)
        elif isinstance(name, str):
            self.field.read(name)
            self.state.open(name)

    def heard_embed(self, _content: Mapping[str, Any]) -> None:
        """Embed the field, so that similar pages can be told."""
        self.state.index()

    def heard_typed(self, content: Mapping[str, Any]) -> None:
        """Keep what was typed as a draft."""
        if self._take(content):
            self._look_closer(_PAUSE)

    def _take(self, content: Mapping[str, Any]) -> bool:
        """Take what a view holds into the draft; say whether it was news about the page that is open."""
        draft, view, number = self._draft, content.get("view"), content.get("number")
        if (
            draft is None
            or content.get("name") != draft.name
            or not isinstance(view, str)
            or not isinstance(number, int)
        ):
            return False
        if number <= self._heard.get(view, 0):  # callbacks of one widget may overtake each other
            return False
        self._heard[view] = number
        if self.field.read_only or (draft.base is not None and why_locked(draft.base, self.field)):
            return False
        self._keep(draft.with_typed(content))
        self._show_facts()
        return True

    def _keep(self, draft: Draft) -> None:
        """Make a draft the one that is shown, and keep it in the state if it holds anything."""
        self._draft = draft
        if draft.is_dirty(self.field):
            self.state.drafts[draft.name] = draft
        else:
            self.state.drafts.pop(draft.name, None)
        for other in list(_editors):
            if other is not self and other.state.drafts is self.state.drafts and other._shows(draft.name):
                other._draft = draft
                other._show()

    def _shows(self, name: str) -> bool:
        return self._draft is not None and self._draft.name == name

    def heard_mode(self, content: Mapping[str, Any]) -> None:
        """Show the form or the raw text."""
        self._take(content)
        if self._draft is not None and isinstance(content.get("mode"), str):
            self._keep(self._draft.in_mode(content["mode"], self.field))
            self._show()

    def heard_new(self, _content: Mapping[str, Any]) -> None:
        """Begin a new page, or go on with the one that was begun."""
        if self.field.read_only:
            raise mf.errors.ReadOnlyField(f"{self.field.name} is read only")
        self._draft = self.state.drafts.get(NEW) or Draft(uuid=str(uuid4()))
        self._asked = None
        self.state.open(None)
        self._show()

    def heard_revert(self, content: Mapping[str, Any]) -> None:
        """Forget the draft and show the page as it is on disk."""
        self._heard[str(content.get("view"))] = int(content.get("number") or 0)
        if self._draft is None:
            return
        name = self._draft.name
        self.state.drafts.pop(name, None)
        self._draft = None if name == NEW else self._opened(name)
        self._show()
        self.state.say("the draft is gone; the page is shown as it is on disk")

    # --- up: writing --------------------------------------------------------------------------------------------------

    def heard_save(self, content: Mapping[str, Any]) -> None:
        """Show what saving would change; nothing is written before ``apply``."""
        self._take(content)
        draft = self._draft
        if draft is None:
            return
        if draft.elsewhere(self.field):
            self.tell("conflict", both_versions(draft, self.field))
            return
        page = draft.page(self.field)
        if draft.base is not None and page.raw == draft.base.raw:
            self.state.say(f"{page.name} is saved as it is")
            return
        self._asked = Asked(page, draft.base)
        self.tell("confirm", self._asked.shown(self.field))

    def heard_apply(self, content: Mapping[str, Any]) -> None:
        """Write what was shown, if the page is still the one that was read."""
        asked, self._asked = self._asked, None
        if asked is None or content.get("sha256") != asked.page.sha256:
            raise mf.errors.PageChanged("what was shown is not what would be written; nothing was written: save again")
        try:
            page = asked.write(self.field)
        except (mf.errors.PageChanged, mf.errors.PageNotFound):
            if self._draft is None or asked.base is None:
                raise
            self.tell("conflict", both_versions(self._draft, self.field))
            return
        self._saved(page, NEW if asked.base is None else page.name)

    def _saved(self, page: mf.Page, draft_name: str) -> None:
        self.state.drafts.pop(draft_name, None)
        self._draft = opened(page)
        self._show()
        self.state.wrote(f"{page.name} saved", active=page.name)

    def heard_settle(self, content: Mapping[str, Any]) -> None:
        """End a conflict: ``mine`` over the version that was shown, or ``theirs``."""
        draft, sha256 = self._draft, content.get("sha256")
        if draft is None or draft.base is None:
            return
        if content.get("take") == "theirs":
            self.state.drafts.pop(draft.name, None)
            self._draft = self._opened(draft.base.name)
            self._show()
        elif content.get("take") == "mine":
            mine = draft.page(self.field)
            page = self.field.put(draft.base.name, mine.raw, if_sha256=str(sha256) if sha256 else None)
            self._saved(page, page.name)

    def heard_rename(self, content: Mapping[str, Any]) -> None:
        """Rename the page; links to it follow."""
        draft, new = self._saved_draft(), content.get("to")
        if draft is not None and draft.base is not None and isinstance(new, str):
            page = self.field.rename(draft.base.name, new.strip())
            self._draft = opened(page)
            self._show()
            self.state.update(
                selected=tuple(page.name if name == draft.base.name else name for name in self.state.selected)
            )
            self.state.wrote(f"{draft.base.name} is now {page.name}", active=page.name)

    def heard_delete(self, content: Mapping[str, Any]) -> None:
        """Delete the page that was shown, if it is still the same."""
        draft = self._draft
        if draft is None or draft.base is None or content.get("name") != draft.name:
            return
        self.field.delete(draft.base.name, if_sha256=draft.base.sha256)
        self.state.drafts.pop(draft.name, None)
        self._draft = None
        self.state.update(active=None, selected=tuple(name for name in self.state.selected if name != draft.base.name))
        self._show()
        self.state.wrote(f"{draft.base.name} deleted; Undo brings it back")

    def _saved_draft(self) -> Draft | None:
        draft = self._draft
        if draft is not None and draft.name in self.state.drafts:
            raise mf.errors.NotEditable(f"{draft.name} has changes that are not saved; save or revert them first")
        return draft

    def heard_undo(self, content: Mapping[str, Any]) -> None:
        """Take back a step of the field's history, by default the last."""
        self._travel(self.field.undo, content)

    def heard_redo(self, content: Mapping[str, Any]) -> None:
        """Do a step again, by default the one that was undone last."""
        self._travel(self.field.redo, content)

    def _travel(self, go: Any, content: Mapping[str, Any]) -> None:
        number = content.get("step")
        step = go(number if isinstance(number, int) else None)
        pages = [name for name in step.pages if name in self.field]
        reopen = self.state.active is None and self._draft is None and len(pages) == 1
        self.state.wrote(f"{step.said()}: {', '.join(step.pages[:5])}", active=pages[0] if reopen else None)

    # --- for Python ---------------------------------------------------------------------------------------------------

    @property
    def page(self) -> mf.Page | None:
        """The page as it stands in the editor, saved or not; None where none is open."""
        return None if self._draft is None else self._draft.shown_page(self.field)

    def close(self) -> None:
        """Take the panel away; a draft stays in the state."""
        _editors.discard(self)
        super().close()

    def twin(self) -> str:
        """Return the page as it is on disk; nothing where it is gone."""
        name = self.state.active
        return "" if name is None or name not in self.field else str(self.field.read(name)._repr_html_())
