"""Families: the pages that say the same task again, found without labels and sharpened by a few answers.

``evidence`` says what speaks for and against a pair, ``committee`` how much of it is enough in this field, ``linkage``
makes groups of it and ``reviews`` keeps the answers. Here they become families that show why they are families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from memoryfield.curate.blocking import blocks_of, levels_of
from memoryfield.curate.committee import Committee, Pair, Precision
from memoryfield.curate.evidence import Evidence, Reason, head_text
from memoryfield.curate.family import Family, PairEvidence, Planner
from memoryfield.curate.reviews import Reviews
from memoryfield.curate.settings import Settings
from memoryfield.curate.vectors import rows_of, unit_rows
from memoryfield.display import Table, counted
from memoryfield.errors import PageNotFound, QueryError
from memoryfield.format.names import PAGE_SUFFIX

if TYPE_CHECKING:
    import pandas

    from memoryfield.format.page import Page
    from memoryfield.index.embedders import Embedder

FloatArray = npt.NDArray[np.floating[Any]]

_SHOWN = 20
_LEAST_LISTED = 0.1  # a less likely pair is no candidate, unless title, uuid, text or name make it one
_MOST_LISTED = 100_000
_LARGEST_WITH_ALL_PAIRS = 50


@dataclass(frozen=True)
class _Known:
    """What does not change with the answers."""

    pages: tuple[Page, ...]
    evidence: Evidence
    usual: npt.NDArray[np.float64]  # for each page, the cosine that its neighbours usually have with it
    numbers: dict[str, int]
    model_code: str
    planner: Planner | None = None
    seen: dict[Pair, tuple[dict[str, float], float, tuple[Reason, ...]]] = field(default_factory=dict)

    def look_at(self, pairs: Iterable[Pair]) -> None:
        """Work out values, usual cosine and reasons of *pairs*, all at once, for those not yet in ``seen``."""
        new = [pair for pair in pairs if pair not in self.seen]
        if not new:
            return
        a, b = np.array(new).T
        values = self.evidence.of_pairs(a, b)
        columns = {kind: column.tolist() for kind, column in values.items()}
        usual = ((self.usual[a] + self.usual[b]) / 2).tolist()
        for place, pair in enumerate(new):
            own = {kind: column[place] for kind, column in columns.items()}
            self.seen[pair] = own, usual[place], self.evidence.reasons(*pair, own, usual[place])


class Families(Sequence[Family]):
    """The families of a field, the largest first and doubtful ones last; pages that stand alone are not among them.

    Attributes:
        precision: Estimated share of the pairs within families that belong together, with a 90 % interval.
        reviews: The answers so far.
        model_code: Model of the vectors.
        pages: How many pages were compared.
    """

    def __init__(self, known: _Known, committee: Committee, reviews: Reviews, least: float | None = None) -> None:
        self._known = known
        self._committee = committee
        self._least = least
        self._labels = committee.labels(least)
        self._likely = committee.expected()
        self.reviews = reviews
        self.model_code = known.model_code
        self.pages = len(known.pages)
        self.precision: Precision = committee.precision(self._labels)
        self._families = self._build()
        self._of = {name: family for family in self._families for name in family.members}
        self._pairs: tuple[PairEvidence, ...] | None = None

    # ---- the families

    @overload
    def __getitem__(self, index: int) -> Family: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Family]: ...
    def __getitem__(self, index: int | slice) -> Family | Sequence[Family]:
        return self._families[index]

    def __len__(self) -> int:
        return len(self._families)

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families)

    def of(self, name: str) -> Family | None:
        """Return the family of a page, or None for a page that stands alone.

        Raises:
            PageNotFound: There is no such page among those that were compared.
        """
        return self._of.get(self._known.pages[self._number(name)].name)

    def evidence(self, first: str, second: str) -> PairEvidence:
        """Return what speaks for and against two pages being one, whether they stand together or not.

        Raises:
            PageNotFound: There is no such page among those that were compared.
            QueryError: It is one and the same page.
        """
        a, b = sorted((self._number(first), self._number(second)))
        if a == b:
            raise QueryError(f"{first!r} and {second!r} are one page; evidence is about two.")
        return self._look_at([(a, b)])[0]

    @property
    def pairs(self) -> tuple[PairEvidence, ...]:
        """The candidate pairs, the likeliest first.

        Those are the pairs with a probability of 0.1 or more, and those of the same title, uuid or text or with a name
        that makes one a copy of the other, whatever their vectors say. Of more than 100,000 the likeliest.
        """
        if self._pairs is None:
            likely = np.flatnonzero(self._likely >= _LEAST_LISTED)
            if len(likely) > _MOST_LISTED:
                likely = likely[np.argsort(-self._likely[likely], kind="stable")[:_MOST_LISTED]]
            wanted = set(self._committee.pairs_at(likely)) | self._known.evidence.certain_candidates
            wanted |= self._committee.answers.keys()
            found = self._look_at(sorted(wanted))
            self._pairs = tuple(sorted(found, key=lambda p: (-round(p.probability, 9), p.first, p.second)))
        return self._pairs

    @property
    def doubtful(self) -> tuple[Family, ...]:
        """The families that are less likely right than not; they stand last, and nothing proposes them for a merge."""
        return tuple(family for family in self._families if family.doubtful)

    @property
    def contradictions(self) -> tuple[PairEvidence, ...]:
        """Pairs that were answered to be distinct and stand together all the same, as other answers hold them together.

        Answers that two pages are the same win: a chain of them may join what a single one keeps apart. Withdraw or
        change one of them.
        """
        apart = [pair for pair, same in sorted(self._committee.answers.items()) if not same]
        return tuple(self._look_at([(a, b) for a, b in apart if self._labels[a] == self._labels[b]]))

    # ---- review

    def borderline(self, n: int = 5) -> tuple[PairEvidence, ...]:
        """Return the *n* pairs whose answer would teach most about this field; none that was answered."""
        return tuple(self._look_at(self._committee.borderline(n)))

    @property
    def worthwhile(self) -> int:
        """About how many more answers would still change these families; a rule of thumb, 0 once there is nothing."""
        return self._committee.worthwhile()

    def review(self, first: str, second: str, *, same: bool) -> Families:
        """Return the families after an answer, and keep the answer; a later one on the same pair replaces it.

        Raises:
            PageNotFound: There is no such page among those that were compared.
            QueryError: It is one and the same page.
            FieldError: The answer cannot be kept.
        """
        return self._after(self.reviews.answer(*self._pages_of(first, second), same=same))

    def withdraw(self, first: str, second: str) -> Families:
        """Return the families without the answer on two pages, and keep it no longer.

        Raises:
            PageNotFound: There is no such page among those that were compared.
            QueryError: It is one and the same page.
            FieldError: The answers cannot be kept.
        """
        return self._after(self.reviews.withdraw(*self._pages_of(first, second)))

    def _pages_of(self, first: str, second: str) -> tuple[Page, Page]:
        a, b = sorted((self._number(first), self._number(second)))
        if a == b:
            raise QueryError(f"{first!r} and {second!r} are one page; an answer is about two.")
        return self._known.pages[a], self._known.pages[b]

    def _after(self, reviews: Reviews) -> Families:
        answers = _numbered(reviews, self._known.pages, self._known.numbers)
        return Families(self._known, self._committee.answered(answers), reviews, self._least)

    def mark_distinct(self, first: str, second: str) -> Families:
        """Return the families after the answer that two pages are not one; see :meth:`review`."""
        return self.review(first, second, same=False)

    def rethreshold(self, least: float | None = None) -> Families:
        """Return the families joined at another mean probability, without computing any evidence anew.

        Args:
            least: Between 0 and 1: higher for fewer and surer families; None for what the field itself suggests.

        Raises:
            QueryError: It is not between 0 and 1.
        """
        if least is not None and not 0 < least <= 1:
            raise QueryError(f"least is {least!r}; it is a probability above 0 and at most 1, 0.5 for example.")
        return Families(self._known, self._committee, self.reviews, least)

    # ---- views

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page of a family, with its title and what the family is like."""
        import pandas

        rows = [
            (number, name, title, name == f.medoid, len(f), f.cohesion, f.probability, f.automatic, f.doubtful)
            for number, f in enumerate(self._families)
            for name, title in zip(f.members, f.titles, strict=True)
        ]
        columns = ["family", "page", "title", "medoid", "size", "cohesion", "probability", "automatic", "doubtful"]
        return pandas.DataFrame(rows, columns=columns)

    def pairs_frame(self) -> pandas.DataFrame:
        """Return one row a candidate pair: names, probability, whether together, the answer, cosine and why."""
        import pandas

        rows = [(p.first, p.second, p.probability, p.together, p.answer, p.cosine, p.usual, p.why) for p in self.pairs]
        columns = ["first", "second", "probability", "together", "answer", "cosine", "usual", "why"]
        return pandas.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the families and how they were found, ready for JSON."""
        return {
            "model": self.model_code,
            "pages": self.pages,
            "answers": len(self._committee.answers),
            "precision": {key: round(value, 4) for key, value in self.precision._asdict().items()},
            "families": [family.to_dict() for family in self._families],
        }

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        count, inside = len(self._families), len(self._of)
        heading = f"{counted(count, 'family', 'families')}, {inside} of {counted(self.pages, 'page')}"
        rows = [
            (
                len(f),
                f"{f.cohesion:.2f}",
                f"{f.probability:.0%}",
                f.medoid,
                f"doubtful: {f.why}" if f.doubtful else f.why,
            )
            for f in self._families[:_SHOWN]
        ]
        notes = [f"model {self.model_code}, {counted(len(self._committee.answers), 'answer')}"]
        if count:
            estimate, low, high = self.precision
            notes.insert(0, f"of the pairs within, {estimate:.0%} are expected to be right ({low:.0%} to {high:.0%})")
        elif self.pages < 2:
            notes.insert(0, "a family needs two pages")
        if by_hand := sum(not family.automatic for family in self._families):
            if doubtful := len(self.doubtful):
                notes.append(f"{doubtful} doubtful: rather chance than pages that say the same")
            notes.append(f"{by_hand} to look at before a merge: not likely enough, or of one form with other values")
        for pair in self.contradictions:
            notes.append(f"{pair.first} and {pair.second} were answered to be distinct; other answers join them")
        columns = ["pages", "cohesion", "likely", "medoid", "why"]
        right = frozenset(columns[:3])
        return Table(heading, columns, rows, notes, right=right, more=max(count - _SHOWN, 0))

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    # ---- pieces

    def _number(self, name: str) -> int:
        number = self._known.numbers.get(name.removesuffix(PAGE_SUFFIX))
        if number is None:
            raise PageNotFound(f"there is no page {name!r} among the {self.pages} that were compared.")
        return number

    def _look_at(self, pairs: Sequence[Pair]) -> list[PairEvidence]:
        known = self._known
        known.look_at(pairs)
        found = []
        for a, b in pairs:
            place, answer = self._committee.position(a, b), self._committee.answers.get((a, b))
            likely = float(self._likely[place]) if place is not None else float(bool(answer))
            together = bool(self._labels[a] == self._labels[b])
            values, usual, reasons = known.seen[a, b]
            first, second = known.evidence.names[a], known.evidence.names[b]
            cosine = values["content"]
            found.append(PairEvidence(first, second, likely, together, answer, cosine, usual, values, reasons))
        return found

    def _build(self) -> tuple[Family, ...]:
        groups: dict[int, list[int]] = {}
        for number, label in enumerate(self._labels.tolist()):
            groups.setdefault(label, []).append(number)
        chosen = [members for members in groups.values() if len(members) > 1]
        medoids = [self._medoid(members) for members in chosen]
        pairs = [_shown_pairs(members, medoid) for members, (medoid, _) in zip(chosen, medoids, strict=True)]
        self._known.look_at(pair for found in pairs for pair in found)
        built = [self._family(*parts) for parts in zip(chosen, medoids, pairs, strict=True)]
        return tuple(sorted(built, key=lambda f: (f.doubtful, -len(f), -round(f.cohesion, 9), f.members)))

    def _medoid(self, members: list[int]) -> tuple[int, float]:
        cosines = self._known.evidence.content_cosines(np.array(members))
        np.fill_diagonal(cosines, 0)
        size = len(members)
        return members[int(np.round(cosines.sum(axis=1), 9).argmax())], float(cosines.sum() / (size * (size - 1)))

    def _family(self, members: list[int], medoid: tuple[int, float], pairs: list[Pair]) -> Family:
        evidence = self._known.evidence
        places = [self._committee.position(a, b) for a, b in combinations(members, 2)]
        likely = [float(self._likely[place]) if place is not None else 0.0 for place in places]
        shown = sorted(self._look_at(pairs), key=lambda p: (round(p.probability, 9), p.first, p.second))
        return Family(
            tuple(evidence.names[i] for i in members),
            tuple(evidence.titles[i] for i in members),
            evidence.names[medoid[0]],
            medoid[1],
            sum(likely) / len(likely),
            tuple(shown),
            self._known.planner,
        )


def _shown_pairs(members: list[int], medoid: int) -> list[Pair]:
    if len(members) <= _LARGEST_WITH_ALL_PAIRS:
        return list(combinations(members, 2))
    return [(min(a, medoid), max(a, medoid)) for a in members if a != medoid]


def families(
    pages: Sequence[Page],
    vectors: FloatArray,
    titles: FloatArray | None = None,
    *,
    model_code: str,
    embedder: Embedder | None = None,
    reviews: Reviews | None = None,
    settings: Settings | None = None,
    planner: Planner | None = None,
) -> Families:
    """Find the pages that say the same task again.

    Without answers the families are proposals: how broad a family is meant to be cannot be read off the pages, and a
    field without any repetition still has its nearest pages: few of them are taken for families then, and these are
    believed less. Ten to twenty answers to ``Families.borderline`` settle most of it.

    ``index`` and ``listing`` are left out (FORMAT P5). The result does not depend on the order of the pages. Up to
    3,000 pages every pair is looked at, with some 300 bytes of memory a pair; beyond, the nearest pages of each and
    those that share runs of words with it, in blocks of at most 300 pages, so that time and memory stay far below those
    of all pairs and a family cannot be larger than a block.

    Args:
        pages: The pages of the field.
        vectors: One row a page: vectors of their contents, of any length but 0.
        titles: One row a page: vectors of :func:`~memoryfield.curate.evidence.head_text`. None to let *embedder* make
            them; without one the vectors of the contents stand in.
        model_code: Model of the vectors, kept in the result.
        embedder: The model, asked only where *titles* is None.
        reviews: Answers so far; ``Reviews.load(field.path)`` for those that are kept.
        settings: Other settings than the one that serves all fields.
        planner: What ``Family.plan`` asks for a plan.

    Raises:
        QueryError: There is not one row for each page, or a name comes twice.
        EmbeddingFailed: A page has no usable vector, or what the model gave is no array of numbers.
    """
    settings = settings or Settings()
    given = [rows_of(rows, model_code, len(pages)) for rows in (vectors, titles) if rows is not None]
    if len({page.name for page in pages}) < len(pages):
        raise QueryError("a page name comes twice: give each page once.")
    order = [i for i in sorted(range(len(pages)), key=lambda i: pages[i].name) if not pages[i].is_special]
    chosen = tuple(pages[i] for i in order)
    content = unit_rows(given[0][order], chosen)
    if titles is not None:
        head = unit_rows(given[1][order], chosen)
    elif embedder is not None and chosen:
        made = embedder.embed_documents([head_text(page) for page in chosen])
        head = unit_rows(rows_of(made, embedder.model_code, len(chosen)), chosen)
    else:
        head = content
    evidence = Evidence(chosen, content, head)
    numbers = {page.name: number for number, page in enumerate(chosen)}
    reviews = Reviews() if reviews is None else reviews
    answers = _numbered(reviews, chosen, numbers)
    levels, proposals = levels_of(evidence, settings)
    together = evidence.certain_candidates | {pair for pair, same in answers.items() if same}
    blocks = blocks_of(len(chosen), levels[next(iter(settings.views))], proposals, together)
    committee = Committee(len(chosen), blocks, lambda block: evidence.tile(block, block), levels, settings)
    known = _Known(chosen, evidence, levels["content"], numbers, model_code, planner)
    return Families(known, committee.answered(answers), reviews)


def _numbered(reviews: Reviews, pages: Sequence[Page], numbers: dict[str, int]) -> dict[Pair, bool]:
    found = reviews.pairs(pages)
    return {(min(numbers[a], numbers[b]), max(numbers[a], numbers[b])): same for (a, b), same in found.items()}
