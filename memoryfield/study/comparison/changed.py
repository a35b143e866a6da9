"""The pages that two spaces see most differently, with their neighbours in both and what they share with them.

What is shared are words: those of the page that its neighbours in one space hold and few other pages do. They hint at
why a model put the pages together; they do not prove it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from memoryfield.display import Table
from memoryfield.index.recipes import recipe_text

if TYPE_CHECKING:
    import pandas

    from memoryfield.format.page import Page
    from memoryfield.study.comparison.likeness import Likeness, Shape
    from memoryfield.study.comparison.spaces import Space

NEAR = 5  # neighbours that are shown
_WORDS = 4
_RARE, _FEW = 0.1, 3  # a word is rare in up to a tenth of the pages, or in three
_WORD = re.compile(r"[^\W\d_]{3,30}")


@dataclass(frozen=True)
class ChangedPage:
    """One page as two spaces see it.

    Attributes:
        name: The page.
        title: Its title.
        first: Label of one space.
        second: Label of the other.
        overlap: Share of the *k* nearest that both name.
        rbo: Rank-biased overlap of the neighbours.
        near_first: Its nearest pages in the one space, with their cosines.
        near_second: Its nearest pages in the other.
        words_first: Rare words that it shares with those.
        words_second: Rare words that it shares with these.
        read: Share of its tokens that each model reads, where something is cut.
    """

    name: str
    title: str
    first: str
    second: str
    overlap: float
    rbo: float
    near_first: tuple[tuple[str, float], ...]
    near_second: tuple[tuple[str, float], ...]
    words_first: tuple[str, ...]
    words_second: tuple[str, ...]
    read: Mapping[str, float]

    @property
    def why(self) -> str:
        """What was seen, in one line."""
        return "; ".join(
            [f"{label} reads {share:.0%} of it" for label, share in self.read.items()]
            + [
                f"shares with its neighbours in {label}: {', '.join(words)}" if words else f"no rare words in {label}"
                for label, words in ((self.first, self.words_first), (self.second, self.words_second))
            ]
        )


class ChangedPages(Sequence[ChangedPage]):
    """Pages that spaces see differently, the most different first."""

    def __init__(self, rows: Sequence[ChangedPage], k: int, pages: int) -> None:
        self._rows = tuple(rows)
        self.k = k
        self.pages = pages

    @overload
    def __getitem__(self, index: int) -> ChangedPage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ChangedPage]: ...
    def __getitem__(self, index: int | slice) -> ChangedPage | Sequence[ChangedPage]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def table(self) -> Table:
        """Return the pages as a table to show; with one pair of spaces, its columns have their names."""
        pairs = {(row.first, row.second) for row in self._rows}
        one, other = next(iter(pairs)) if len(pairs) == 1 else ("the first", "the second")
        near = [f"nearest in {one}", f"nearest in {other}"]
        shared = [f"words shared in {one}", f"words shared in {other}"]
        columns = ["page", *([] if len(pairs) == 1 else ["spaces"]), "overlap", "RBO", near[0], shared[0], near[1]]
        columns += [shared[1], "read"]
        rows = [
            [
                row.name,
                *([] if len(pairs) == 1 else [f"{row.first} | {row.second}"]),
                f"{row.overlap:.2f}",
                f"{row.rbo:.2f}",
                _listed(row.near_first[:3]),
                ", ".join(row.words_first),
                _listed(row.near_second[:3]),
                ", ".join(row.words_second),
                ", ".join(f"{label}: {share:.0%}" for label, share in row.read.items()),
            ]
            for row in self._rows
        ]
        if not any(row.read for row in self._rows):
            columns, rows = columns[:-1], [row[:-1] for row in rows]
        shown = "page" if len(self) == 1 else "pages"
        return Table(
            f"The {len(self)} {shown} of {self.pages:,} that the spaces see most differently",
            columns,
            rows,
            [f"overlap: of the {self.k} nearest; RBO: rank-biased overlap; words: a hint, not a proof"],
            right=frozenset({"overlap", "RBO"}),
            widths=dict.fromkeys(near, 90),
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page with all there is."""
        import pandas

        names = [*ChangedPage.__dataclass_fields__, "why"]
        return pandas.DataFrame([[*vars(row).values(), row.why] for row in self._rows], columns=names)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as values that JSON can hold."""
        return [
            {key: dict(value) if isinstance(value, Mapping) else value for key, value in asdict(row).items()}
            for row in self._rows
        ]


def _listed(near: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {cosine:.2f}" for name, cosine in near)


def most_changed(
    n: int,
    pairs: Mapping[tuple[str, str], Likeness],
    spaces: Mapping[str, tuple[Space, Shape]],
    pages: Mapping[str, Page],
    words: Words,
    k: int,
) -> ChangedPages:
    """Return the *n* pages with the smallest rank-biased overlap in any of *pairs*, each once.

    Args:
        n: How many.
        pairs: Likeness by the labels of two spaces.
        spaces: Spaces and their shapes, by label.
        pages: The pages compared, in the order of the rows.
        words: Words of these pages.
        k: Neighbours that count as near.
    """
    names = list(pages)
    ranked: list[tuple[float, float, str, int, tuple[str, str]]] = []
    for labels, likeness in pairs.items():
        limit = -1.0
        if len(names) > 1 and n > 0:
            limit = float(np.partition(likeness.rbo, min(n, len(names)) - 1)[min(n, len(names)) - 1])
        for row in np.flatnonzero(likeness.rbo <= limit).tolist():
            ranked.append((round(float(likeness.rbo[row]), 9), float(likeness.overlap[row]), names[row], row, labels))
    chosen: dict[str, ChangedPage] = {}
    for rbo, share, name, row, labels in sorted(ranked):
        if len(chosen) >= n:
            break
        if name not in chosen:
            chosen[name] = as_seen(name, row, labels, (share, rbo), spaces, pages, names, words)
    return ChangedPages(list(chosen.values()), k, len(names))


def as_seen(
    name: str,
    row: int,
    labels: tuple[str, str],
    values: tuple[float, float],
    spaces: Mapping[str, tuple[Space, Shape]],
    pages: Mapping[str, Page],
    names: Sequence[str],
    words: Words,
) -> ChangedPage:
    """Return a page as two spaces see it.

    Args:
        name: The page.
        row: Its row.
        labels: Of the two spaces.
        values: Its neighbour overlap and rank-biased overlap.
        spaces: Spaces and their shapes, by label.
        pages: The pages compared, by name.
        names: Their names, in the order of the rows.
        words: Words of these pages.
    """
    near: list[tuple[tuple[str, float], ...]] = []
    shared: list[tuple[str, ...]] = []
    read: dict[str, float] = {}
    for label in labels:
        space, shape = spaces[label]
        rows = shape.neighbors[row, :NEAR].tolist()
        near.append(tuple((names[other], float(space.matrix[row] @ space.matrix[other])) for other in rows))
        shared.append(words.shared(row, rows))
        if (share := _share_read(space, pages[name])) < 1.0:
            read[label] = share
    return ChangedPage(name, pages[name].title, *labels, *values, near[0], near[1], shared[0], shared[1], read)


def _share_read(space: Space, page: Page) -> float:
    """Return the share of a page's tokens that the model reads; 1 where they cannot be counted."""
    embedder: Any = getattr(space.embedder, "whole", space.embedder)
    count = getattr(embedder, "count_tokens", None)
    if count is None or embedder.max_tokens is None:
        return 1.0
    tokens = int(count([recipe_text(space.recipe, page)])[0])
    return min(embedder.max_tokens / tokens, 1.0) if tokens else 1.0


class Words:
    """The words of pages, and which of them two pages share that few others hold."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._held = [
            frozenset(word.lower() for word in _WORD.findall(f"{page.title}\n{page.summary}\n{page.body}"))
            for page in pages
        ]
        self._pages = Counter(word for held in self._held for word in held)

    def shared(self, row: int, others: Sequence[int]) -> tuple[str, ...]:
        """Return the words of a page that weigh most among those that others hold; words of most pages are none."""
        weights: dict[str, float] = {}
        for other in others:
            for word in self._held[row] & self._held[other]:
                weights[word] = weights.get(word, 0.0) + math.log(len(self._held) / self._pages[word])
        most = max(_FEW, len(self._held) * _RARE)
        rare = [word for word, weight in weights.items() if self._pages[word] <= most and weight > 0]
        return tuple(sorted(rare, key=lambda word: (-weights[word], word))[:_WORDS])
