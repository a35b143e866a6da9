"""Whether a page says what another page says already: asked before a new page is written, and of a whole field.

What counts as near is taken from the field itself, for the model at hand. The level of a page is the mean cosine to its
6th to 15th nearest pages: what its topic gives away for nothing. The closeness of two pages is the part of the way from
their level to equality that they have gone, ``(cosine - level) / (1 - level)``, so it means the same in a field of one
narrow topic and in a wide one. Numbers speak against: pages of one form with other values are not the same page.
Families, with more evidence and with review, are another module's subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from memoryfield.display import Table
from memoryfield.errors import EmbeddingFailed, PageNotFound, QueryError
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.normal import normalized
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.index.recipes import CONTENT, PAGE, recipe_text

if TYPE_CHECKING:
    import pandas

    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder

FloatArray = npt.NDArray[np.float32]

# One setting for all fields, chosen with all-MiniLM-L6-v2 on three fields with known families: of the pages that repeat
# another it notices 65 to 92 %, of the others it takes up to 15 % for repeats. On a fourth, that had no part in the
# choice and whose pages differ in one word of a command, it notices 60 % and is wrong about half of the others.
LEAST = 0.45
_NUMBERS_WEIGHT = 0.4  # taken off where no number of the one page stands in the other
_FORM_WEIGHT = 1.0  # times the common wording, taken off besides: one form filled in with other values
_FEWEST_NUMBERS = 2  # a single number says too little
_FIRST_OTHER, _LAST_OTHER = 5, 15  # neighbours before the first may be of the family, those after the last far away
_FEWEST_PAGES = 5  # below, a field has no level of its own and only the wording counts
_HIGHEST_LEVEL = 0.999
_LOOKED_AT = 12  # nearest pages by cosine that are looked at more closely
_BLOCK = 512
_RUN = 4  # words in a row
_SAME_WORDING = 0.8  # part of the runs of words that two pages have in common
_FEWEST_RUNS = 8

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\w*\d\w*(?:[.,:/-]\w+){0,8}")
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,4}[.)](?=[ \t])", re.MULTILINE)


class SimilarPageWarning(UserWarning):
    """A page was written although another one says much the same."""


class HasVectors(Protocol):
    """Names and one unit row for each: ``(n_pages, dimensions)`` float32."""

    @property
    def names(self) -> Sequence[str]:
        """Page names, without ``.md``."""

    @property
    def matrix(self) -> FloatArray:
        """One row for each name."""


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """A page of the field that is near to the one asked about.

    Attributes:
        name: Its name.
        title: Its title.
        closeness: 1 for the same, 0 for as near as pages of one topic are; at least the ``least`` of the question.
        cosine: Of the two vectors.
        usual: Mean of the levels of the two pages; ``nan`` in a field too small to have any.
        reason: ``same text``, ``same wording`` or ``near meaning``.
    """

    name: str
    title: str
    closeness: float
    cosine: float
    usual: float
    reason: str


@dataclass(frozen=True)
class SimilarPages(Sequence[SimilarPage]):
    """The pages that are near to one page, nearest first; empty where there are none.

    Attributes:
        page: Name of the page asked about; it need not exist yet.
        items: What was found.
        model_code: Model of the vectors.
        recipe: Recipe of the vectors.
        least: Smallest closeness that counts.
        compared: How many pages the page was compared with.
    """

    page: str
    items: tuple[SimilarPage, ...]
    model_code: str
    recipe: str
    least: float
    compared: int

    @overload
    def __getitem__(self, index: int) -> SimilarPage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SimilarPage]: ...
    def __getitem__(self, index: int | slice) -> SimilarPage | Sequence[SimilarPage]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[SimilarPage]:
        return iter(self.items)

    @property
    def message(self) -> str:
        """One sentence for a warning or a refusal; empty where nothing was found."""
        if not self.items:
            return ""
        named = ", ".join(f"{item.name} ({item.reason}, closeness {item.closeness:.2f})" for item in self.items[:3])
        more = f" and {len(self.items) - 3} more" if len(self.items) > 3 else ""
        return (
            f"{self.page} may say again what {named}{more} says; "
            "read and edit that page instead, or write with on_similar='ignore' if it is something else"
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``name, title, closeness, cosine, usual, reason``."""
        import pandas

        columns = ["name", "title", "closeness", "cosine", "usual", "reason"]
        return pandas.DataFrame([asdict(item) for item in self.items], columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return what was found and how, ready for JSON."""
        items = [asdict(item) | {"usual": None if np.isnan(item.usual) else item.usual} for item in self.items]
        return {
            "page": self.page,
            "model": self.model_code,
            "recipe": self.recipe,
            "least": self.least,
            "compared": self.compared,
            "similar": items,
        }

    def _table(self) -> Table:
        count = len(self.items)
        return Table(
            f"{count or 'no'} {'page' if count == 1 else 'pages'} similar to {self.page}, of {self.compared} compared",
            ("closeness", "cosine", "usual", "page", "title", "why"),
            [
                (f"{i.closeness:.2f}", f"{i.cosine:.3f}", f"{i.usual:.3f}", i.name, i.title, i.reason)
                for i in self.items
            ],
            [f"model {self.model_code}, recipe {self.recipe}; closeness {self.least:g} or more counts"],
            frozenset({"closeness", "cosine", "usual"}),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two pages of a field that are near to each other; *first* comes before *second* in the alphabet."""

    first: str
    second: str
    closeness: float
    cosine: float
    reason: str


def similar_pages(
    page: Page,
    source: PageSource,
    vectors: HasVectors,
    embedder: Embedder,
    *,
    recipe: str = PAGE,
    least: float = LEAST,
    limit: int = 10,
) -> SimilarPages:
    """Return the pages of a field that say much the same as *page*, which need not be in the field yet.

    Args:
        page: The page as it would be written. A page of the same name is not compared with it.
        source: Where the texts of the nearest pages are read; a page that is gone is left out.
        vectors: Vectors of the field, made by *embedder* with *recipe*; ``index`` and ``listing`` are left out.
        embedder: The model.
        recipe: The recipe of the vectors.
        least: Smallest closeness that counts, above 0 and at most 1.
        limit: Most pages to return.

    Raises:
        QueryError: *least* is out of range, or the vectors are of another model.
        EmbeddingFailed: The model gives no usable vector for the page.
    """
    _check_least(least)
    kept = [row for row, name in enumerate(vectors.names) if name != page.name and name not in SPECIAL_NAMES]
    if vectors.matrix.shape[1] != embedder.dimensions:
        seen = f"the vectors have {vectors.matrix.shape[1]} dimensions, {embedder.model_code} has {embedder.dimensions}"
        raise QueryError(f"{seen}: they are of different models.")
    found: list[SimilarPage] = []
    if kept and page.raw.strip():
        query = _embedded(page, embedder, recipe)
        cosines = (vectors.matrix @ query)[kept]
        own = _level(cosines)
        marks = _Marks.of(page)
        for place in np.argsort(-cosines, kind="stable")[: _LOOKED_AT + limit].tolist():
            row, cosine = kept[place], min(float(cosines[place]), 1.0)
            try:
                other = source.read(vectors.names[row])
            except PageNotFound:
                continue
            around = (vectors.matrix @ vectors.matrix[row])[kept]
            level = (own + _level(np.delete(around, place))) / 2
            closeness, reason = _judged(cosine, level, marks, _Marks.of(other))
            if closeness >= least:
                usual = round(level, 6)
                found.append(SimilarPage(other.name, other.title, round(closeness, 6), round(cosine, 6), usual, reason))
    found.sort(key=lambda item: (-item.closeness, -item.cosine, item.name))
    return SimilarPages(page.name, tuple(found[:limit]), embedder.model_code, recipe, least, len(kept))


def similar_pairs(vectors: HasVectors, pages: Mapping[str, Page], *, least: float = LEAST) -> tuple[SimilarPair, ...]:
    """Return the pairs of pages of a field that say much the same, nearest first, by the rule of ``similar_pages``.

    Args:
        vectors: Vectors of the field; those of names that are not in *pages* are left out.
        pages: The pages by name; ``index`` and ``listing`` are left out.
        least: Smallest closeness that counts.

    Raises:
        QueryError: *least* is out of range.
    """
    _check_least(least)
    kept = [row for row, name in enumerate(vectors.names) if name in pages and name not in SPECIAL_NAMES]
    matrix = vectors.matrix if len(kept) == len(vectors.names) else vectors.matrix[kept]
    names = [vectors.names[row] for row in kept]
    levels, candidates = _neighbours(matrix)
    marks: dict[str, _Marks] = {}
    found: list[SimilarPair] = []
    for (a, b), value in candidates.items():
        cosine, level = min(value, 1.0), float(levels[a] + levels[b]) / 2
        first, second = sorted((names[a], names[b]))
        for name in (first, second):
            if name not in marks:
                marks[name] = _Marks.of(pages[name])
        closeness, reason = _judged(cosine, level, marks[first], marks[second])
        if closeness >= least:
            found.append(SimilarPair(first, second, round(closeness, 6), round(cosine, 6), reason))
    return tuple(sorted(found, key=lambda pair: (-pair.closeness, -pair.cosine, pair.first, pair.second)))


@dataclass(frozen=True, slots=True)
class _Marks:
    """What two texts are compared by besides their vectors."""

    words: tuple[str, ...]
    numbers: frozenset[str]

    @classmethod
    def of(cls, page: Page) -> _Marks:
        text = normalized("NFKC", recipe_text(CONTENT, page)).casefold()
        text = _LIST_NUMBER.sub("", text)
        return cls(tuple(_WORD.findall(text)), frozenset(_NUMBER.findall(text)))

    def runs(self) -> set[tuple[str, ...]]:
        return {self.words[start : start + _RUN] for start in range(len(self.words) - _RUN + 1)}


def _judged(cosine: float, level: float, one: _Marks, other: _Marks) -> tuple[float, str]:
    """Return the closeness of two pages and what it rests on."""
    if one.words and one.words == other.words:
        return 1.0, "same text"
    differing = _differing(one.numbers, other.numbers)
    shared = _shared_wording(one, other)
    if shared >= _SAME_WORDING and differing <= 1 - _SAME_WORDING:
        return shared, "same wording"
    if np.isnan(level):
        return 0.0, ""
    level = min(level, _HIGHEST_LEVEL)
    against = differing * (_NUMBERS_WEIGHT + _FORM_WEIGHT * shared)
    return (cosine - level) / (1 - level) - against, "near meaning"


def _differing(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which part of the numbers of the page that has fewer is missing in the other; 0 where there are few."""
    fewer = min(len(one), len(other))
    return 1 - len(one & other) / fewer if fewer >= _FEWEST_NUMBERS else 0.0


def _shared_wording(one: _Marks, other: _Marks) -> float:
    """Return which part of the runs of words the two have in common (Dice); 0 where a page has hardly any."""
    mine, theirs = one.runs(), other.runs()
    if min(len(mine), len(theirs)) < _FEWEST_RUNS:
        return 0.0
    return 2 * len(mine & theirs) / (len(mine) + len(theirs))


def _embedded(page: Page, embedder: Embedder, recipe: str) -> FloatArray:
    vector = np.asarray(embedder.embed_documents([recipe_text(recipe, page)])[0], np.float32)
    length = float(np.sqrt(vector @ vector))
    if not 0.0 < length < np.inf:
        raise EmbeddingFailed(f"{embedder.model_code} gives no usable vector for {page.name}{PAGE_SUFFIX}")
    return vector / np.float32(length)


def _others(count: int) -> tuple[int, int]:
    """Return which ranks make up the level of a page with *count* others: fewer and nearer ones in a small field."""
    first = min(_FIRST_OTHER, count // 3)
    return first, min(_LAST_OTHER, count)


def _level(cosines: FloatArray) -> float:
    if len(cosines) < _FEWEST_PAGES - 1:
        return float("nan")
    first, last = _others(len(cosines))
    highest = -np.partition(-cosines, last - 1)[:last]
    return float(np.sort(highest)[::-1][first:].mean())


def _neighbours(matrix: FloatArray) -> tuple[npt.NDArray[np.float64], dict[tuple[int, int], float]]:
    """Return the level of each row, and the pairs (lower row first) in which one is among the other's nearest."""
    count = len(matrix)
    levels = np.full(count, np.nan)
    pairs: dict[tuple[int, int], float] = {}
    wanted = min(max(_LAST_OTHER, _LOOKED_AT), count - 1)
    first, last = _others(count - 1)
    for top in range(0, count if wanted > 0 else 0, _BLOCK):
        cosines = matrix[top : top + _BLOCK] @ matrix.T
        rows = np.arange(len(cosines))
        cosines[rows, top + rows] = -np.inf
        nearest = np.argpartition(-cosines, wanted - 1, axis=1)[:, :wanted]
        values = np.take_along_axis(cosines, nearest, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        nearest, values = np.take_along_axis(nearest, order, 1), np.take_along_axis(values, order, 1)
        if count >= _FEWEST_PAGES:
            levels[top : top + len(rows)] = values[:, first:last].mean(axis=1)
        for row in rows.tolist():
            near = zip(nearest[row, :_LOOKED_AT].tolist(), values[row, :_LOOKED_AT].tolist(), strict=True)
            for column, value in near:
                pairs[min(top + row, column), max(top + row, column)] = value
    return levels, pairs


def _check_least(least: float) -> None:
    if not 0.0 < least <= 1.0:
        raise QueryError(f"least is {least!r}; a closeness lies above 0 and at most at 1, the usual one is {LEAST:g}")
