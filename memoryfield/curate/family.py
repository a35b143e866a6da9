"""A family, and a pair of pages with all that speaks for and against their being one: values that show themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, overload

from memoryfield.curate.evidence import OPPOSITE, OTHER_VALUES, Reason
from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.format.names import PAGE_SUFFIX

if TYPE_CHECKING:
    from memoryfield.curate.mergeplan import MergePlan

_SHOWN = 20
_EVEN = 0.5
_LIKELY = 0.6  # of a family that is proposed for a merge; below, it is one to ask about


class Planner(Protocol):
    """Plans the merge of a family, for one that knows where its pages are."""

    def __call__(
        self, members: Sequence[str], into: str | None, medoid: str, rewrite: Callable[[str], str] | None, /
    ) -> MergePlan:
        """Return the plan that makes one page of *members*, proposing the *medoid* where *into* names none."""


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Two pages and what speaks for and against their being one; *first* comes before *second* in the alphabet.

    Attributes:
        first: Name of a page.
        second: Name of the other.
        probability: How likely they belong to one family; 0 or 1 after an answer.
        together: Whether they stand in one family.
        answer: What the curator answered, or None.
        cosine: Of the vectors of their contents.
        usual: Cosine that the neighbours of the two pages usually have with them.
        values: Every kind of evidence as a number.
        reasons: What was seen, in words, for and against.
    """

    first: str
    second: str
    probability: float
    together: bool
    answer: bool | None
    cosine: float
    usual: float
    values: dict[str, float]
    reasons: tuple[Reason, ...]

    @property
    def supporting(self) -> tuple[Reason, ...]:
        """The reasons for."""
        return tuple(reason for reason in self.reasons if not reason.against)

    @property
    def opposing(self) -> tuple[Reason, ...]:
        """The reasons against."""
        return tuple(reason for reason in self.reasons if reason.against)

    @property
    def same_form(self) -> bool:
        """Whether the two are one form with other values: never to be merged without a human."""
        return any(reason.kind == OTHER_VALUES for reason in self.reasons)

    @property
    def opposite(self) -> bool:
        """Whether one says the opposite of the other in the same words."""
        return any(reason.kind == OPPOSITE for reason in self.reasons)

    @property
    def why(self) -> str:
        """The reasons in one line."""
        supporting = "; ".join(str(reason) for reason in self.supporting) or "nothing in particular"
        opposing = "; ".join(str(reason) for reason in self.opposing)
        return f"{supporting} | against: {opposing}" if opposing else supporting

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as values that JSON can hold."""
        return {
            "first": self.first,
            "second": self.second,
            "probability": round(self.probability, 4),
            "together": self.together,
            "answer": self.answer,
            "cosine": round(self.cosine, 6),
            "usual": round(self.usual, 6),
            "values": {kind: round(value, 6) for kind, value in self.values.items()},
            "reasons": [{"kind": r.kind, "text": r.text, "against": r.against} for r in self.reasons],
        }

    def __repr__(self) -> str:
        heading = f"{self.first} and {self.second}: {self.probability:.0%} likely of one family"
        if self.answer is not None:
            heading += f" (answered: {'same' if self.answer else 'distinct'})"
        rows = [("against" if r.against else "for", r.kind, r.text) for r in self.reasons]
        note = f"cosine {self.cosine:.2f}; their neighbours usually have {self.usual:.2f}"
        return Table(heading, ["", "evidence", "what was seen"], rows, [note], widths={"what was seen": 100}).text()


@dataclass(frozen=True)
class Family(Sequence[str]):
    """Pages that say the same.

    Attributes:
        members: Their names, by alphabet.
        titles: Their titles, in the order of *members*.
        medoid: The member that is nearest to all the others.
        cohesion: Mean cosine of the contents over all pairs of members.
        probability: Mean over all pairs of how likely they belong together.
        pairs: The pairs of members with their evidence, the least likely first; of a family of more than 50 pages
            only those with the medoid.
        planner: What ``plan`` asks; None for a family that was found without a field to write to.
    """

    members: tuple[str, ...]
    titles: tuple[str, ...]
    medoid: str
    cohesion: float
    probability: float
    pairs: tuple[PairEvidence, ...]
    planner: Planner | None = field(default=None, compare=False, repr=False)

    def plan(self, into: str | None = None, *, rewrite: Callable[[str], str] | None = None) -> MergePlan:
        """Return a plan that makes one page of the family: a diff to approve, edit and ``apply()``; it writes nothing.

        Args:
            into: The member that stays; by default that with most links to it, else the medoid.
            rewrite: A function of the merged text that smooths its wording; what it loses is shown.

        Raises:
            QueryError: *into* is no member, or the family was found without a field to write to.
            ReadOnlyField: The field cannot be written.
            NotEditable: A page that cannot be merged; the message says why.
        """
        if self.planner is None:
            raise QueryError("this family was found without a field to write to: use field.plan_merge(family)")
        return self.planner(self.members, into, self.medoid, rewrite)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.members[index]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.removesuffix(PAGE_SUFFIX) in self.members

    @property
    def cautions(self) -> tuple[PairEvidence, ...]:
        """Pairs with something against them that nobody has answered."""
        return tuple(pair for pair in self.pairs if pair.opposing and pair.answer is None)

    @property
    def doubtful(self) -> bool:
        """Whether the family is less likely right than not."""
        return self.probability < _EVEN

    @property
    def automatic(self) -> bool:
        """Whether a merge may be proposed unasked: likely, no pair of one form with other values, none of opposites."""
        unsure = any((pair.same_form or pair.opposite) and pair.answer is None for pair in self.pairs)
        return self.probability >= _LIKELY and not unsure

    @property
    def why(self) -> str:
        """The kinds of evidence that hold the family together, the most frequent first."""
        counts: dict[str, int] = {}
        for pair in self.pairs:
            for reason in pair.supporting:
                counts[reason.kind] = counts.get(reason.kind, 0) + 1
        return ", ".join(sorted(counts, key=lambda kind: (-counts[kind], kind))) or "close in several small ways"

    def to_dict(self) -> dict[str, Any]:
        """Return the family as values that JSON can hold."""
        return {
            "members": list(self.members),
            "medoid": self.medoid,
            "cohesion": round(self.cohesion, 4),
            "probability": round(self.probability, 4),
            "why": self.why,
            "automatic": self.automatic,
            "doubtful": self.doubtful,
            "pairs": [pair.to_dict() for pair in self.pairs],
        }

    def _table(self) -> Table:
        rows = [
            (name, title, "medoid" if name == self.medoid else "")
            for name, title in zip(self.members, self.titles, strict=True)
        ]
        notes = [f"why: {self.why}"]
        notes += [f"look at {p.first} and {p.second}: {'; '.join(map(str, p.opposing))}" for p in self.cautions[:3]]
        if self.doubtful:
            notes.insert(0, "doubtful: rather chance than pages that say the same")
        heading = f"family of {len(self)} pages, cohesion {self.cohesion:.2f}, {self.probability:.0%} likely"
        return Table(heading, ["page", "title", ""], rows[:_SHOWN], notes, more=max(len(rows) - _SHOWN, 0))

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()
