"""What was typed into a page and not saved yet: a value between the form, the raw text and the page on disk.

No widget here. A draft knows the version it began from, so saving it can be made conditional on that version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import memoryfield as mf

FORM, RAW = "form", "raw"
KEYS = ("title", "summary", "tags", "created")  # what the form edits; the raw view edits everything
LONGEST_SHOWN = 2_000_000  # characters of a page that a browser's text field is given
NEW = ""  # stands for the name of a page that does not exist yet

_BREAK = re.compile(r"\r\n|\r")


@dataclass(frozen=True)
class Draft:
    """A page while it is being edited.

    Attributes:
        base: The version on disk that was read; None for a new page.
        ground: What the form was filled from: the base, or the text of the raw view when it was left.
        mode: ``form`` or ``raw``.
        form: What stands in the form, by key.
        body: What stands in the text field of the form.
        raw: What stands in the raw view.
        uuid: Of a new page, so that looking at it twice shows the same page.
    """

    base: mf.Page | None = None
    ground: mf.Page | None = None
    mode: str = FORM
    form: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(KEYS, ""))
    body: str = ""
    raw: str = ""
    uuid: str | None = None

    @property
    def name(self) -> str:
        """Name of the page, ``NEW`` for a new one."""
        return NEW if self.base is None else self.base.name

    def locked_keys(self) -> list[str]:
        """Return the keys of the form whose value is no text or plain list: the raw view edits them."""
        return [] if self.ground is None else [key for key in KEYS if form_value(self.ground, key) is None]

    def with_typed(self, content: Mapping[str, Any]) -> Draft:
        """Return the draft with what a view says that was typed; anything else in the message is ignored."""
        form, body, raw = content.get("form"), content.get("body"), content.get("raw")
        changes: dict[str, Any] = {}
        if self.mode == FORM:
            if isinstance(form, dict):
                typed = {key: form[key] for key in KEYS if isinstance(form.get(key), str)}
                changes["form"] = {**self.form, **typed}
            if isinstance(body, str):
                changes["body"] = body
        elif isinstance(raw, str):
            changes["raw"] = raw
        return replace(self, **changes)

    def page(self, field: mf.MemoryField) -> mf.Page:
        """Return the page as it would be saved.

        Raises:
            MemoryfieldError: What was typed makes no page; says why.
        """
        if self.base is None or self.ground is None:
            return field.draft(
                title=self.form["title"].strip() or None,
                summary=self.form["summary"].strip() or None,
                body=self.body,
                **self._new_keys(),
            )
        if self.mode == RAW:
            after: mf.Page = field.plan_edit(self.base, text=self.raw).after
            return after
        made: mf.Page = field.plan_edit(self.ground, keys=self._changed_keys() or None, body=self._changed_body()).after
        return made

    def _new_keys(self) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        if self.form["tags"].strip():
            keys["tags"] = split_tags(self.form["tags"])
        if self.form["created"].strip():
            keys["created"] = self.form["created"].strip()
        if self.uuid is not None:
            keys["uuid"] = self.uuid
        return keys

    def _changed_keys(self) -> dict[str, Any]:
        assert self.ground is not None
        changed: dict[str, Any] = {}
        for key in KEYS:
            before = form_value(self.ground, key)
            typed = self.form.get(key, "")
            if before is None or typed == before:
                continue
            if not typed.strip():
                changed[key] = None
            else:
                changed[key] = split_tags(typed) if key == "tags" else " ".join(typed.split())
        return changed

    def _changed_body(self) -> str | None:
        assert self.ground is not None
        return None if self.body == as_typed(self.ground.body) else self.body

    def shown_page(self, field: mf.MemoryField) -> mf.Page:
        """Return the page as it would be saved; where it cannot be written, as it is.

        Raises:
            MemoryfieldError: What was typed makes no page; says why.
        """
        return self.base if self.base is not None and why_locked(self.base, field) else self.page(field)

    def elsewhere(self, field: mf.MemoryField) -> str:
        """Return how the page on disk differs from the one that was read: ``changed``, ``gone`` or nothing."""
        if self.base is None:
            return ""
        try:
            now = field.read(self.base.name)
        except mf.errors.PageError:
            return "gone"
        return "changed" if now.sha256 != self.base.sha256 else ""

    def is_dirty(self, field: mf.MemoryField) -> bool:
        """Whether saving would change anything; true as well where what was typed makes no page."""
        if self.base is None:
            return bool(self.body.strip() or any(value.strip() for value in self.form.values()))
        try:
            return bool(self.page(field).raw != self.base.raw)
        except mf.MemoryfieldError:
            return True

    def in_mode(self, mode: str, field: mf.MemoryField) -> Draft:
        """Return the draft for the other view.

        Raises:
            MemoryfieldError: What was typed makes no page, or one that the form cannot show; says why.
        """
        if mode == self.mode or self.base is None or mode not in (FORM, RAW):
            return self
        made = self.page(field)
        if mode == RAW:
            return replace(self, mode=RAW, raw=as_typed(made.text))
        if made.frontmatter_error is not None:
            raise mf.errors.FrontmatterError(
                f"{made.frontmatter_error.message}; the form can be shown once it is mended"
            )
        return replace(_filled(made), base=self.base)


def opened(page: mf.Page) -> Draft:
    """Return the draft of a page as it is on disk; the raw view where the form cannot show it."""
    draft = replace(_filled(page), base=page)
    if page.frontmatter_error is not None:
        return replace(draft, mode=RAW, raw=as_typed(page.text))
    return draft


def _filled(page: mf.Page) -> Draft:
    form = {key: form_value(page, key) or "" for key in KEYS}
    return Draft(ground=page, form=form, body=as_typed(page.body), raw=as_typed(page.text))


def form_value(page: mf.Page, key: str) -> str | None:
    """Return what the form shows of a key: text, a list joined by commas; None where it cannot show the value."""
    value = page.frontmatter.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value if not re.search(r"[\r\n]", value) else None
    if isinstance(value, list) and all(isinstance(item, str) and "," not in item and item.strip() for item in value):
        return ", ".join(str(item) for item in value) if key == "tags" else None
    return None


def split_tags(text: str) -> list[str]:
    """Return the tags of ``a, b``, each once."""
    return list(dict.fromkeys(tag for part in text.split(",") if (tag := " ".join(part.split()))))


def as_typed(text: str) -> str:
    """Return a text as a text field of a browser gives it back: line ends are LF."""
    return _BREAK.sub("\n", text)


def why_locked(page: mf.Page, field: mf.MemoryField) -> str:
    """Return why a page cannot be edited here; empty where it can."""
    if field.read_only:
        return "This field is read only: import the archive into a directory to edit its pages."
    if not page.is_utf8:
        return "This page is not valid UTF-8. field.plan_fixes(reencode=...) repairs that; then it can be edited."
    return ""


def view_of(draft: Draft | None, field: mf.MemoryField) -> dict[str, Any]:
    """Return what a view needs to show a draft."""
    if draft is None:
        return {"open": False, "readOnly": field.read_only}
    base = draft.base
    why = why_locked(base if base is not None else mf.Page("new", b""), field)
    if max(len(draft.body), len(draft.raw)) > LONGEST_SHOWN:
        why = f"This page is longer than {LONGEST_SHOWN:,} characters: edit it in a text editor, or split it."
    return {
        "open": True,
        "name": draft.name,
        "mode": draft.mode,
        "form": dict(draft.form),
        "body": draft.body[:LONGEST_SHOWN],
        "raw": draft.raw[:LONGEST_SHOWN] if draft.mode == RAW else "",
        "locked": draft.locked_keys(),
        "why": why,
        "uuid": (base.uuid or "") if base is not None else "",
        "updated": (base.updated or "") if base is not None else "",
        "readOnly": field.read_only,
    }
