"""Steps of a field's history as values that show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from memoryfield.display import Table
from memoryfield.format.findings import shown_name
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 20  # rows of a table
_GIT = {True: "committed", False: "not committed", None: ""}


@dataclass(frozen=True)
class PageChange:
    """What a step did to one file.

    Attributes:
        filename: The file.
        before: sha256 of its content before; None where there was no such file.
        after: sha256 of its content after; None where it was deleted.
        strayed: The step that had changed the file last, where another program changed it after that; else None.
    """

    filename: str
    before: str | None
    after: str | None
    strayed: int | None = None

    @property
    def name(self) -> str:
        """Name of the page; for a file that is no page its filename."""
        return self.filename.removesuffix(PAGE_SUFFIX) if is_page_filename(self.filename) else shown_name(self.filename)

    @property
    def what(self) -> str:
        """``added``, ``changed`` or ``deleted``."""
        return "added" if self.before is None else "deleted" if self.after is None else "changed"


@dataclass(frozen=True, repr=False)
class Step:
    """One step of a history.

    Attributes:
        id: Number of the step; a later one has a higher number.
        time: When it was begun, in UTC.
        verb: What was done, in one word: write, edit, rename, delete, merge, split, fix, import, undo, redo.
        note: What else was said of it.
        who: Who did it.
        state: ``done``, ``undone``, ``rolled back`` (a crash stopped it, and what it had done was taken back),
            ``pending`` (being made now, or left by a crash and not mended yet), or ``half done`` (left so by a crash,
            and the journal is too damaged to mend it).
        target: The step that was undone or redone; None for other verbs.
        changes: The files, sorted by filename.
        committed: Whether git has committed what the step did; None outside a git work tree.
    """

    id: int
    time: datetime
    verb: str
    note: str
    who: str
    state: str
    target: int | None
    changes: tuple[PageChange, ...]
    committed: bool | None = None

    @property
    def pages(self) -> tuple[str, ...]:
        """Names of the pages that it changed."""
        return tuple(change.name for change in self.changes)

    def _table(self) -> Table:
        state = "" if self.state == "done" else f", {self.state}"
        git = "" if self.committed is None else f", {_GIT[self.committed]} in git"
        heading = f"Step {self.id}: {self.said()}, {_moment(self.time)}{state}{git}"
        rows = [
            (
                change.name,
                change.what,
                (change.before or "")[:12],
                (change.after or "")[:12],
                "" if change.strayed is None else f"another program had changed it since step {change.strayed}",
            )
            for change in self.changes
        ]
        notes = [self.note] if self.note else []
        columns = ("page", "what", "before", "after", "found")
        width = len(columns) if any(row[-1] for row in rows) else -1  # mostly nothing was found
        shown = [row[:width] for row in rows[:_SHOWN]]
        return Table(heading, columns[:width], shown, notes, more=max(len(rows) - _SHOWN, 0))

    def said(self) -> str:
        """Return the verb, with the number of the step that was undone or redone."""
        return self.verb if self.target is None else f"{self.verb} of step {self.target}"

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_frame(self) -> pd.DataFrame:
        """Return one row a file: ``name``, ``what``, ``before``, ``after``, ``strayed``."""
        import pandas as pd

        rows = [(item.name, item.what, item.before, item.after, item.strayed) for item in self.changes]
        return pd.DataFrame(rows, columns=["name", "what", "before", "after", "strayed"])

    def to_dict(self) -> dict[str, Any]:
        """Return the step as values that JSON can hold."""
        return {
            "id": self.id,
            "time": self.time.isoformat(),
            "verb": self.verb,
            "note": self.note,
            "who": self.who,
            "state": self.state,
            "target": self.target,
            "committed": self.committed,
            "changes": [
                {
                    "name": item.name,
                    "what": item.what,
                    "before": item.before,
                    "after": item.after,
                    "strayed": item.strayed,
                }
                for item in self.changes
            ],
        }


@dataclass(frozen=True, repr=False, eq=False)
class Steps(Sequence[Step]):
    """Steps of a history, the newest first.

    Attributes:
        steps: The steps.
        path: The journal's file.
        notes: What else is worth knowing: what was pruned, what could not be read or mended.
        page: The page that was asked for; None for the whole field.
    """

    steps: tuple[Step, ...]
    path: Path
    notes: tuple[str, ...] = ()
    page: str | None = None

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...

    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def _table(self) -> Table:
        of = f" of {self.page}" if self.page else ""
        count = f"{len(self)} {'step' if len(self) == 1 else 'steps'}"
        in_git = any(step.committed is not None for step in self)
        columns = ["step", "time (UTC)", "who", "verb", "pages", "state", "note"] + (["git"] if in_git else [])
        rows = []
        for step in self.steps[:_SHOWN]:
            row = [step.id, _moment(step.time), step.who, step.said(), _few(step.pages), step.state, _remark(step)]
            rows.append([*row, _GIT[step.committed]] if in_git else row)
        return Table(
            f"History{of}: {count}",
            tuple(columns),
            rows,
            self.notes,
            frozenset(["step"]),
            {"note": 80},
            max(len(self) - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_frame(self) -> pd.DataFrame:
        """Return one row a step, with the attributes of ``Step`` as columns (``pages``, not ``changes``)."""
        import pandas as pd

        columns = ["id", "time", "verb", "target", "pages", "state", "who", "note", "committed"]
        return pd.DataFrame([[getattr(step, column) for column in columns] for step in self], columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the steps as values that JSON can hold."""
        return {"page": self.page, "steps": [step.to_dict() for step in self], "notes": list(self.notes)}


@dataclass(frozen=True, repr=False)
class PruneReport:
    """What a pruning of the history took away for good.

    Attributes:
        steps: How many steps, the oldest ones.
        contents: How many contents that no other step needs.
        bytes: Their size in the file.
        kept: How many steps are left.
        size: Size of the file now.
        path: The file.
    """

    steps: int
    contents: int
    bytes: int
    kept: int
    size: int
    path: Path

    def _table(self) -> Table:
        heading = f"History pruned: {self.steps:,} {'step' if self.steps == 1 else 'steps'} removed, {self.kept:,} kept"
        return Table(heading, notes=[f"{self.bytes:,} bytes of contents removed; {self.path} has {self.size:,} bytes"])

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {**self.__dict__, "path": str(self.path)}


def _remark(step: Step) -> str:
    strayed = sum(change.strayed is not None for change in step.changes)
    found = [f"found {strayed} changed by another program"] if strayed else []
    return "; ".join([*([step.note] if step.note else []), *found])


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _few(pages: Sequence[str]) -> str:
    return ", ".join(pages) if len(pages) <= 3 else f"{', '.join(pages[:3])} and {len(pages) - 3} more"
