"""What is shown before a page is written: the diff to confirm, or both versions of a page that changed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import memoryfield as mf
from memoryfield_widgets.drafts import LONGEST_SHOWN, Draft, as_typed
from memoryfield_widgets.lookups import diff_lines


@dataclass(frozen=True)
class Asked:
    """What a person is asked to confirm.

    Attributes:
        page: The page as it will be.
        base: The version that goes; None for a new page.
    """

    page: mf.Page
    base: mf.Page | None

    def shown(self, field: mf.MemoryField) -> dict[str, Any]:
        """Return what the view shows: the lines that change."""
        if self.base is None:
            lines = [["+", line] for line in as_typed(self.page.text).split("\n")]
        else:
            lines = diff_lines(field.plan_edit(self.base, raw=self.page.raw).diff)
        return {"name": self.page.name, "sha256": self.page.sha256, "isNew": self.base is None, "diff": lines}

    def write(self, field: mf.MemoryField) -> mf.Page:
        """Write the page, if the version that goes is still the one on disk.

        Raises:
            PageChanged: It is not.
            PageNotFound: It is gone.
        """
        if self.base is None:
            return field.put(self.page.name, self.page.raw)
        page: mf.Page = field.plan_edit(self.base, raw=self.page.raw).apply()
        return page


def both_versions(draft: Draft, field: mf.MemoryField) -> dict[str, Any]:
    """Return a draft and what stands on disk in its place, for a person to choose."""
    assert draft.base is not None
    mine = draft.page(field)
    try:
        theirs: mf.Page | None = field.read(draft.base.name)
    except mf.errors.PageNotFound:
        theirs = None
    return {
        "name": draft.base.name,
        "gone": theirs is None,
        "theirs": "" if theirs is None else as_typed(theirs.text)[:LONGEST_SHOWN],
        "mine": as_typed(mine.text)[:LONGEST_SHOWN],
        "sha256": "" if theirs is None else theirs.sha256,
        "diff": [] if theirs is None else diff_lines(field.plan_edit(theirs, raw=mine.raw).diff),
    }
