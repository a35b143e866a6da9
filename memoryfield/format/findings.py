"""Findings: what a check of a field has to say, one by one and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from memoryfield.advice import advice
from memoryfield.display import Table

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
_MOST_SHOWN = 50


@dataclass(frozen=True)
class Finding:
    """One thing to know about a file of a field.

    Attributes:
        level: ``error`` (something is not read as it is meant), ``warning`` (it is, but not by all or not for long) or
            ``info``.
        filename: The file, in a form that can be shown; empty for the field as a whole.
        line: Line in the file, from 1, or None.
        rule: Id of the rule in the format's description, such as ``P7``.
        message: What was found.
        remedy: What to do about it; empty where nothing needs to be done.
        fixable: ``plan_fixes`` has a repair that needs no guess.
    """

    level: Level
    filename: str
    line: int | None
    rule: str
    message: str
    remedy: str = ""
    fixable: bool = False

    def __str__(self) -> str:
        place = self.filename or "field"
        place = place if self.line is None else f"{place}, line {self.line}"
        return f"{self.level} {self.rule} {place}: {self.message}" + (f" ({self.remedy})" if self.remedy else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values that JSON can hold."""
        return asdict(self)


class Findings(Sequence[Finding]):
    """What a check found: errors first, then warnings, then the rest, each by file and line."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        rank = {level: position for position, level in enumerate(LEVELS)}
        self._items = tuple(sorted(findings, key=lambda f: (rank[f.level], f.filename, f.line or 0, f.rule, f.message)))

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Findings: ...

    def __getitem__(self, index: int | slice) -> Finding | Findings:
        return Findings(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def by_level(self, level: Level) -> Findings:
        """Return the findings of one level."""
        return Findings(finding for finding in self._items if finding.level == level)

    def by_file(self, filename: str) -> Findings:
        """Return the findings of one file."""
        return Findings(finding for finding in self._items if finding.filename == filename)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each level."""
        found = Counter(finding.level for finding in self._items)
        return {level: found[level] for level in LEVELS}

    def to_frame(self) -> pd.DataFrame:
        """Return one row a finding."""
        import pandas as pd

        columns = ["level", "filename", "line", "rule", "message", "remedy", "fixable"]
        frame = pd.DataFrame([finding.to_dict() for finding in self._items], columns=columns)
        return frame.astype({"line": "Int64", "fixable": bool})

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        counts = self.counts
        parts = [f"{n} {level}{'s' if n != 1 and level != 'info' else ''}" for level, n in counts.items() if n]
        rows = [(f.level, f.rule, f.filename, f.line, f.message, f.remedy) for f in self._items[:_MOST_SHOWN]]
        fixable = sum(finding.fixable for finding in self._items)
        how = advice(python="plan_fixes()", command="validate --fix")
        return Table(
            f"Findings: {', '.join(parts) or 'none'}",
            ("level", "rule", "file", "line", "what", "what to do"),
            rows,
            [f"{fixable} can be repaired without a guess: see {how}"] if fixable else [],
            frozenset(["line"]),
            {"file": 40, "what": 120, "what to do": 120},
            max(len(self._items) - _MOST_SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def shown_name(filename: str) -> str:
    """Return a file's name as text that can be shown and stored: what is no UTF-8 or not visible is escaped."""
    text = filename.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
