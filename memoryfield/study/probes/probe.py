"""Probes: questions with the pages that answer them, as values.

A probe without gold pages is either unanswerable (no page answers it, and somebody made sure of that) or not labelled
yet. Files of probes are read in ``files.py``, compared with a field in ``checks.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, overload

from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.format.names import PAGE_SUFFIX, page_name

if TYPE_CHECKING:
    import os

    import pandas

    from memoryfield.format.page import Page
    from memoryfield.study.evaluation.groups import GroupsLike
    from memoryfield.study.probes.checks import ProbeFindings

LONGEST_QUESTION = 20_000  # characters
LONGEST_LABEL = 200  # characters of an id or a category
MOST_GOLD = 10_000  # pages of one probe
_SHOWN = 20


class Pages(Protocol):
    """What is needed of a field here: its names and its pages. A ``MemoryField`` and a ``PageDirectory`` have it."""

    def names(self) -> list[str]:
        """Return the names of all pages, sorted."""
        ...

    def read(self, name: str) -> Page:
        """Return one page."""
        ...

    def pages(self) -> Iterator[Page]:
        """Yield every page, sorted by name."""
        ...


@dataclass(frozen=True)
class Probe:
    """A question, and what should be found.

    Attributes:
        id: What it is called; one probe of a set each.
        question: The text to search for.
        gold: Names of the pages that answer it, each of them on its own.
        category: A group of probes to look at apart, such as ``paraphrase``.
        answerable: Whether a page of the field answers it; False says that none does.
        family_gold: Further pages that are as good, since they say the same; for the family figures.

    Raises:
        QueryError: Something that is no text or no page name, an empty question, or gold pages of a question that is
            said to be unanswerable.
    """

    id: str
    question: str
    gold: frozenset[str] = frozenset()
    category: str = ""
    answerable: bool = True
    family_gold: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        _check_text("the id", self.id, LONGEST_LABEL)
        _check_text("the question", self.question, LONGEST_QUESTION)
        category: object = self.category
        if not isinstance(category, str) or len(category) > LONGEST_LABEL:
            raise QueryError(f"the category is a text of at most {LONGEST_LABEL} characters")
        if not isinstance(self.answerable, bool):
            raise QueryError(f"answerable is {self.answerable!r}; it is true or false")
        object.__setattr__(self, "gold", _names("gold", self.gold))
        object.__setattr__(self, "family_gold", _names("family_gold", self.family_gold))
        if self.gold and not self.answerable:
            raise QueryError("it is said to be unanswerable and has gold pages; one of the two is wrong")

    @property
    def counts(self) -> bool:
        """Whether the probe counts in recall and rank figures: it is answerable and says by which pages."""
        return self.answerable and bool(self.gold)

    def to_dict(self) -> dict[str, Any]:
        """Return the probe as values that JSON can hold; what is as usual is left out."""
        row: dict[str, Any] = {"id": self.id, "question": self.question, "gold": sorted(self.gold)}
        if self.category:
            row["category"] = self.category
        if self.answerable != bool(self.gold):
            row["answerable"] = self.answerable
        if self.family_gold:
            row["family_gold"] = sorted(self.family_gold)
        return row


def _check_text(what: str, value: object, longest: int) -> None:
    if not isinstance(value, str):
        raise QueryError(f"{what} is a {type(value).__name__}; it has to be text")
    if not value.strip():
        raise QueryError(f"{what} is empty")
    if len(value) > longest:
        raise QueryError(f"{what} has {len(value):,} characters; at most {longest:,} are taken")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise QueryError(f"{what} holds half of a character, which no file can hold")


def _names(what: str, given: object) -> frozenset[str]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise QueryError(f"{what} is a {type(given).__name__}; give a list of page names")
    names = list(given)
    if len(names) > MOST_GOLD:
        raise QueryError(f"{what} has {len(names):,} pages; at most {MOST_GOLD:,} are taken")
    return frozenset(page_name(name) for name in names)


class Probes(Sequence[Probe]):
    """Probes in the order in which they were given.

    Attributes:
        notes: What there is to know about how they came to be.
    """

    def __init__(self, probes: Iterable[Probe] = (), *, notes: Sequence[str] = ()) -> None:
        self._items = tuple(probes)
        for probe in self._items:
            if not isinstance(probe, Probe):
                raise QueryError(f"{type(probe).__name__} is no Probe; read_probes(path) reads a file of them")
        self.notes = tuple(notes)

    @overload
    def __getitem__(self, index: int) -> Probe: ...
    @overload
    def __getitem__(self, index: slice) -> Probes: ...
    def __getitem__(self, index: int | slice) -> Probe | Probes:
        return Probes(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Probe]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Probes) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __add__(self, other: Iterable[Probe]) -> Probes:
        """Return these probes and others, for instance the unanswerable ones of another file."""
        return Probes([*self._items, *other], notes=self.notes + tuple(getattr(other, "notes", ())))

    def where(self, keep: Callable[[Probe], bool]) -> Probes:
        """Return the probes for which a function says True."""
        return Probes((probe for probe in self._items if keep(probe)), notes=self.notes)

    @property
    def categories(self) -> dict[str, int]:
        """How many probes each category has."""
        return dict(sorted(Counter(probe.category for probe in self._items).items()))

    @property
    def digest(self) -> str:
        """A sha256 of what the probes say, whatever their order."""
        rows = sorted(json.dumps(probe.to_dict(), sort_keys=True) for probe in self._items)
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def with_families(self, families: GroupsLike) -> Probes:
        """Return the probes with the pages of the gold pages' families as ``family_gold``.

        Args:
            families: What ``field.families()`` returns, a CSV file with the columns ``page`` and ``family``, or a
                mapping of page names to families.

        Raises:
            RowError: A row of the file that cannot be used.
        """
        from memoryfield.study.evaluation.groups import Groups

        groups = Groups.of(families)
        return Probes(
            (replace(p, family_gold=p.family_gold | groups.around(p.gold)) for p in self._items), notes=self.notes
        )

    def with_gold_renamed(self, names: Mapping[str, str]) -> Probes:
        """Return the probes with other names for some pages, as after a rename or a merge.

        Args:
            names: New names by old ones, such as a page that was absorbed and the one that absorbed it.
        """
        new = {page_name(old): page_name(name) for old, name in names.items()}

        def renamed(pages: frozenset[str]) -> frozenset[str]:
            return frozenset(new.get(page, page) for page in pages)

        return Probes(
            (replace(p, gold=renamed(p.gold), family_gold=renamed(p.family_gold)) for p in self._items),
            notes=self.notes,
        )

    def check(self, field: Pages) -> ProbeFindings:
        """Return what is wrong with the probes for a field: missing pages, repeats, copied text; see ``ProbeFinding``.

        Args:
            field: The field that the probes are about.
        """
        from memoryfield.study.probes.checks import check_probes

        return check_probes(self, field)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the probes to a file, ``.jsonl`` or ``.csv``, which ``read_probes`` reads as the same probes.

        Raises:
            QueryError: Another ending, or something else stands there.
        """
        from memoryfield.study.probes.files import save_probes

        save_probes(self, path)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a probe: ``id, question, gold, category, answerable, family_gold``; pages as sorted lists."""
        import pandas

        rows = [
            (p.id, p.question, sorted(p.gold), p.category, p.answerable, sorted(p.family_gold)) for p in self._items
        ]
        return pandas.DataFrame(rows, columns=["id", "question", "gold", "category", "answerable", "family_gold"])

    def _table(self) -> Table:
        count = len(self._items)
        unanswerable = sum(not probe.answerable for probe in self._items)
        bare = sum(probe.answerable and not probe.gold for probe in self._items)
        heading = f"{count:,} {'probe' if count == 1 else 'probes'}"
        if unanswerable:
            heading += f", {unanswerable:,} of them unanswerable"
        if bare:
            heading += f", {bare:,} without gold pages"
        rows = [(p.id, p.question, _gold_cell(p), p.category) for p in self._items[:_SHOWN]]
        return Table(
            heading,
            ("id", "question", "gold", "category"),
            rows,
            self.notes,
            widths={"id": 24, "question": 70, "gold": 50, "category": 24},
            more=max(count - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def _gold_cell(probe: Probe) -> str:
    if not probe.answerable:
        return "(no page answers it)"
    first = sorted(probe.gold)[:2]
    return ", ".join(first) + (f" and {len(probe.gold) - 2} more" if len(probe.gold) > 2 else "")


def filename_of(name: str) -> str:
    """Return the file name of a page, as files of probes have it."""
    return name + PAGE_SUFFIX
