"""The probes that a retriever fails on, sorted by what that may teach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from memoryfield.display import Table
from memoryfield.errors import QueryError

if TYPE_CHECKING:
    import pandas

    from memoryfield.study.evaluation.evaluation import Evaluation
    from memoryfield.study.evaluation.outcomes import Run

SAME_FAMILY = "same family on top"  # a page that says the same stands first: the field needs a merge, not the search
BY_ALL = "missed by all"
KEYWORD_ONLY = "keyword finds it, vector does not"
VECTOR_ONLY = "vector finds it, keyword does not"
OTHER = "missed by some"
KINDS = (SAME_FAMILY, BY_ALL, KEYWORD_ONLY, VECTOR_ONLY, OTHER)
_SHOWN = 30


@dataclass(frozen=True)
class Miss:
    """A probe that at least one retriever fails on.

    Attributes:
        kind: One of ``KINDS``, the first that fits.
        probe: Its id.
        question: What was asked.
        gold: Names of the pages that answer it.
        ranks: Rank of the first gold page by label; None where it was not found at all.
        top: What stood first, by label; an empty text where nothing was found.
    """

    kind: str
    probe: str
    question: str
    gold: tuple[str, ...]
    ranks: dict[str, int | None]
    top: dict[str, str]


class Misses(Sequence[Miss]):
    """The misses of an evaluation, by kind.

    Attributes:
        k: A gold page further down than this is missed.
        counted: How many probes have gold pages.
    """

    def __init__(self, misses: Sequence[Miss], labels: Sequence[str], k: int, counted: int) -> None:
        self._items = tuple(sorted(misses, key=lambda miss: KINDS.index(miss.kind)))
        self._labels = tuple(labels)
        self.k = k
        self.counted = counted

    @overload
    def __getitem__(self, index: int) -> Miss: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Miss]: ...
    def __getitem__(self, index: int | slice) -> Miss | Sequence[Miss]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Miss]:
        return iter(self._items)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        found = Counter(miss.kind for miss in self._items)
        return {kind: found[kind] for kind in KINDS}

    def of_kind(self, kind: str) -> list[Miss]:
        """Return the misses of one kind.

        Raises:
            QueryError: There is no such kind.
        """
        if kind not in KINDS:
            raise QueryError(f"there is no kind {kind!r}; there are: {', '.join(KINDS)}")
        return [miss for miss in self._items if miss.kind == kind]

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a miss: ``kind, probe, question, gold``, and rank and first page of each retriever."""
        import pandas

        frame = pandas.DataFrame(
            {
                "kind": [miss.kind for miss in self._items],
                "probe": [miss.probe for miss in self._items],
                "question": [miss.question for miss in self._items],
                "gold": [list(miss.gold) for miss in self._items],
            }
        )
        for label in self._labels:
            frame[f"{label} rank"] = pandas.array([miss.ranks[label] for miss in self._items], dtype="Int64")
            frame[f"{label} top"] = [miss.top[label] for miss in self._items]
        return frame

    def _table(self) -> Table:
        rows = []
        for miss in self._items[:_SHOWN]:
            ranks = ", ".join(f"{label} {miss.ranks[label] or '-'}" for label in self._labels)
            tops = dict.fromkeys(name for name in miss.top.values() if name not in ("", *miss.gold))
            rows.append((miss.kind, miss.question, ", ".join(miss.gold), ranks, ", ".join(tops)))
        counts = "; ".join(f"{kind}: {count}" for kind, count in self.counts.items() if count)
        return Table(
            f"{len(self._items)} of {self.counted} probes missed among the first {self.k} by at least one retriever",
            ("kind", "question", "gold", "ranks", "stood first instead"),
            rows,
            [counts] if counts else [],
            widths={"question": 60, "gold": 40, "stood first instead": 60},
            more=max(len(self._items) - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def find_misses(evaluation: Evaluation, k: Any = 1, labels: Sequence[str] | None = None) -> Misses:
    """Return the probes whose gold page some run does not have among its first *k*; see ``Evaluation.misses``.

    Raises:
        QueryError: k is no whole number from 1 to the depth of the evaluation.
    """
    depth = evaluation.about["depth"]
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= depth:
        raise QueryError(f"k={k!r}: give a whole number from 1 to {depth}, the depth of this evaluation")
    runs = evaluation.runs if labels is None else tuple(evaluation[label] for label in labels)
    found: list[Miss] = []
    counted = 0
    for number, probe in enumerate(evaluation.probes):
        if not probe.counts:
            continue
        counted += 1
        hits = [_hit(run, number, k) for run in runs]
        if all(hits):
            continue
        failed = [run for run, hit in zip(runs, hits, strict=True) if not hit]
        by_words = [h for run, h in zip(runs, hits, strict=True) if run.retriever == "keyword"]
        by_vectors = [h for run, h in zip(runs, hits, strict=True) if run.retriever == "vector"]
        if all(run.top[number] and run.top[number][0] in probe.family_gold - probe.gold for run in failed):
            kind = SAME_FAMILY
        elif not any(hits):
            kind = BY_ALL
        elif any(by_words) and by_vectors and not any(by_vectors):
            kind = KEYWORD_ONLY
        elif any(by_vectors) and by_words and not any(by_words):
            kind = VECTOR_ONLY
        else:
            kind = OTHER
        ranks = {run.label: rank if (rank := int(run.first[number])) else None for run in runs}
        tops = {run.label: run.top[number][0] if run.top[number] else "" for run in runs}
        found.append(Miss(kind, probe.id, probe.question, tuple(sorted(probe.gold)), ranks, tops))
    return Misses(found, [run.label for run in runs], k, counted)


def _hit(run: Run, number: int, k: int) -> bool:
    return 1 <= int(run.first[number]) <= k
