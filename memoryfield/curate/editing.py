"""An edit as a plan: the page as it would be, the diff to look at, and ``apply``, if nobody was faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from memoryfield.advice import advice
from memoryfield.curate.textdiff import unified_diff
from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.format.arguments import check_keys, check_raw, check_texts
from memoryfield.format.changes import Change
from memoryfield.format.edit import set_text
from memoryfield.format.page import LONGEST_EMBEDDED, Page
from memoryfield.format.verbs import PageVerbs, edited_bytes
from memoryfield.format.yamlwrite import Settable

_SHOWN = 200  # lines of a diff in a table


@dataclass(frozen=True, repr=False)
class EditPlan:
    """What an edit makes of a page; nothing is written before ``apply``.

    Attributes:
        before: The version that was read.
        after: The page as it will be.
        directory: Where it is written.
    """

    before: Page
    after: Page
    directory: PageVerbs

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before.raw != self.after.raw

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        return unified_diff(self.before.filename, self.before.raw, self.after.raw) if self.changes else ""

    def apply(self) -> Page:
        """Write the page and return it; an edit without a change writes nothing.

        Raises:
            PageChanged: The page is not the one that was read any more; nothing was written.
            NotEditable: The uuid would change.
        """
        if not self.changes:
            return self.directory.read(self.before.name)
        if self.before.uuid is not None and self.after.uuid != self.before.uuid:
            # said by the directory, in its words
            return self.directory.write(self.before.name, self.after.raw, if_sha256=self.before.sha256)
        self.directory.apply([Change(self.before.name, self.after.raw, self.before.sha256)], verb="edit")
        return self.directory.read(self.before.name)

    def _table(self) -> Table:
        if not self.changes:
            return Table(f"Edit of {self.before.filename}: no change")
        lines = self.diff.splitlines()
        how = advice(python="apply() writes it", command="memoryfield edit writes it")
        notes = [f"{how}, if the page is still the one that was read"]
        if self.after.cut_bytes:
            notes.append(f"the last {self.after.cut_bytes:,} bytes are past {LONGEST_EMBEDDED:,}, which tools embed")
        return Table(
            f"Edit of {self.before.filename}: {self.before.size:,} -> {self.after.size:,} bytes",
            ["diff"],
            [[line] for line in lines[:_SHOWN]],
            notes,
            widths={"diff": 200},
            more=max(len(lines) - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def plan_edit(
    page: Page,
    directory: PageVerbs,
    *,
    raw: bytes | None = None,
    text: str | None = None,
    title: str | None = None,
    summary: str | None = None,
    keys: Mapping[str, Settable] | None = None,
    body: str | None = None,
    now: datetime | None = None,
) -> EditPlan:
    """Return what an edit makes of one version of a page.

    Args:
        page: The version that was read.
        directory: The field.
        raw: All the new bytes, as they are; no other change goes with it.
        text: The whole new text; lines that stay keep their line ends. No other change goes with it.
        title: New title.
        summary: New summary.
        keys: Frontmatter keys to set; None as a value removes the key.
        body: New body.
        now: Moment for ``updated``, which is set when something changed and the page has frontmatter.

    Raises:
        QueryError: Both *raw* and something else, or an argument of the wrong type.
        FrontmatterError: The frontmatter is broken, or the edit would touch other bytes.
        NotEditable: The page is not UTF-8, or the uuid would change.
    """
    given = {"raw": raw, "text": text, "title": title, "summary": summary, "keys": keys, "body": body}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1 and ("raw" in named or "text" in named):
        raise QueryError(f"{named[0]} is the whole page; give no {named[1]} besides")
    if raw is not None:
        check_raw(raw)
        return EditPlan(page, Page(page.name, raw), directory)
    if text is not None:
        check_texts(text=text)
        return EditPlan(page, Page(page.name, set_text(page.raw, text)), directory)
    check_texts(title=title, summary=summary, body=body)
    check_keys(keys)
    asked = dict(keys or {}) | {k: v for k, v in (("title", title), ("summary", summary)) if v is not None}
    after = edited_bytes(page, asked, body, None, None, now or datetime.now(UTC))
    return EditPlan(page, Page(page.name, after), directory)
