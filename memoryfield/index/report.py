"""What a sync did, as a value that shows itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memoryfield.display import Table, counted

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 20  # rows of a table


@dataclass(frozen=True, repr=False)
class SyncReport:
    """What a sync of a vector index did. Pages are named, not counted.

    Attributes:
        model_code: The model.
        recipe: Which text of a page was embedded.
        added: Pages that have a vector now and had none.
        updated: Pages whose content changed, or whose row was bad.
        removed: Pages that are gone.
        unchanged: Pages whose vector was current.
        reused: Those of *added* and *updated* that got the vector of an equal content, without the model.
        cut: Pages with bytes past the 8192 that are embedded.
        refused: Pages without a usable vector, and why; they are found by keyword only.
        waiting: Pages that changed while they were embedded; the next sync takes them.
        bad_rows: Pages whose row could not be used, and why; made anew by this sync.
        equal_vectors: Pages of different content that got one and the same vector in this sync.
        embedded: How many texts the model was given.
        seconds: Time taken.
        notes: What else is worth knowing.
    """

    model_code: str
    recipe: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    bad_rows: Mapping[str, str] = field(default_factory=dict)
    equal_vectors: tuple[tuple[str, ...], ...] = ()
    embedded: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the index holds other vectors than before."""
        return bool(self.added or self.updated or self.removed)

    def _heeded(self) -> Iterator[tuple[str, str, str]]:
        """Yield (what happened, page, detail) for what needs attention."""
        for name, reason in self.refused.items():
            yield "refused", name, reason
        for name, reason in self.bad_rows.items():
            yield "bad row", name, reason
        for name in self.waiting:
            yield "waiting", name, "changed while it was embedded"
        for group in self.equal_vectors:
            yield "equal vectors", group[0], "the same vector as " + ", ".join(group[1:])
        for name in self.cut:
            yield "cut", name, "longer than 8192 bytes"

    def _changes(self) -> Iterator[tuple[str, str, str]]:
        """Yield (what happened, page, detail) for the vectors that are others than before."""
        reused = set(self.reused)
        for what, names in (("added", self.added), ("updated", self.updated), ("removed", self.removed)):
            for name in names:
                yield what, name, "equal content, vector reused" if name in reused else ""

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        counts = [
            (f"{len(names):,} {what}")
            for what, names in (
                ("added", self.added),
                ("updated", self.updated),
                ("removed", self.removed),
                ("unchanged", self.unchanged),
                ("cut at 8192 bytes", self.cut),
                ("refused", self.refused),
                ("waiting", self.waiting),
            )
            if names
        ]
        recipe = "" if self.recipe == "page" else f", recipe {self.recipe}"
        heading = f"Sync of {self.model_code}{recipe}: {', '.join(counts) or 'no pages'} ({self.seconds:.2f} s)"
        rows, changes = list(self._heeded()), list(self._changes())
        was_empty = not (self.unchanged or self.updated or self.removed)
        if not was_empty and len(changes) <= _SHOWN:  # else a list of names that says what the counts say
            rows += changes
        notes = [f"{counted(self.embedded, 'text')} embedded"] if self.embedded else []
        if self.reused:
            notes.append(f"{counted(len(self.reused), 'vector')} taken from pages of equal content")
        columns = ("what", "page", "detail") if any(row[2] for row in rows[:_SHOWN]) else ("what", "page")
        return Table(
            heading,
            columns,
            [row[: len(columns)] for row in rows[:_SHOWN]],
            [*notes, *self.notes],
            widths={"detail": 120},
            more=max(0, len(rows) - _SHOWN),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each page that something happened to: ``what``, ``name``, ``detail``."""
        import pandas as pd

        return pd.DataFrame([*self._heeded(), *self._changes()], columns=["what", "name", "detail"])

    def to_dict(self) -> dict[str, object]:
        """Return the report as values that JSON can hold; unchanged pages are counted."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in self.__dict__.items()}
        return {
            **values,
            "refused": dict(self.refused),
            "bad_rows": dict(self.bad_rows),
            "equal_vectors": [list(group) for group in self.equal_vectors],
            "unchanged": len(self.unchanged),
        }
