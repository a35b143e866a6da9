"""Whether a page says what another page says already: asked before a new page is written.

How close two pages are is worked out in ``closeness.py``; here it is decided which closeness counts. Answers of a
curator are heeded: a pair that is distinct is not named again, and where such pairs are mostly distinct, only closer
ones are. Families, with more evidence and with questions, are another module's subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from memoryfield.advice import MemoryfieldWarning, advice
from memoryfield.curate.closeness import FloatArray, Marks, judged, level_of
from memoryfield.curate.reviews import Reviews
from memoryfield.display import Table
from memoryfield.errors import EmbeddingFailed, PageNotFound, QueryError
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.index.recipes import PAGE, recipe_text

if TYPE_CHECKING:
    import pandas

    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder

# One setting for all fields, chosen with all-MiniLM-L6-v2 on fields with known families. With the recipe ``content`` it
# notices 57 to 90 % of the pages that repeat another and takes up to 10 % of the others for repeats. Where the pages
# differ in one word of a command it is wrong about half of the others, at any setting: there only answers help.
LEAST = 0.45
_FEWEST_ANSWERS = 4  # on pairs that would be named, before they move the setting
_MOST_ANSWERS = 200  # the latest ones that are looked at
_HIGHEST_LEAST = 0.95
_LOOKED_AT = 12  # nearest pages by cosine that are looked at more closely


class SimilarPageWarning(MemoryfieldWarning):
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
        answers: How many answers of a curator moved *least* up.
    """

    page: str
    items: tuple[SimilarPage, ...]
    model_code: str
    recipe: str
    least: float
    compared: int
    answers: int = 0

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
            f"{self.page} may say again what {named}{more} says; read and edit that page instead, or "
            + advice(python="write with on_similar='ignore'", command="write with --on-similar ignore")
            + " if it is something else"
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
            "answers": self.answers,
            "similar": items,
        }

    def _table(self) -> Table:
        count = len(self.items)
        learned = f", learned from {self.answers} answers" if self.answers else ""
        return Table(
            f"{count or 'no'} {'page' if count == 1 else 'pages'} similar to {self.page}, of {self.compared} compared",
            ("closeness", "cosine", "usual", "page", "title", "why"),
            [
                (f"{i.closeness:.2f}", f"{i.cosine:.3f}", f"{i.usual:.3f}", i.name, i.title, i.reason)
                for i in self.items
            ],
            [f"model {self.model_code}, recipe {self.recipe}; closeness {self.least:.2g} or more counts{learned}"],
            frozenset({"closeness", "cosine", "usual"}),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def similar_pages(
    page: Page,
    source: PageSource,
    vectors: HasVectors,
    embedder: Embedder,
    *,
    recipe: str = PAGE,
    least: float | None = None,
    limit: int = 10,
    reviews: Reviews | None = None,
) -> SimilarPages:
    """Return the pages of a field that say much the same as *page*, which need not be in the field yet.

    Args:
        page: The page as it would be written. A page of the same name is not compared with it.
        source: Where the texts of the nearest pages are read; a page that is gone is left out.
        vectors: Vectors of the field, made by *embedder* with *recipe*; ``index`` and ``listing`` are left out.
        embedder: The model.
        recipe: The recipe of the vectors.
        least: Smallest closeness that counts, above 0 and at most 1; by default ``LEAST``, or more where the answers
            say that pairs so near are mostly distinct in this field.
        limit: Most pages to return.
        reviews: Answers of a curator: a page that was answered to be distinct from *page* is not named.

    Raises:
        QueryError: *least* is out of range, or the vectors are of another model.
        EmbeddingFailed: The model gives no usable vector for the page.
    """
    _check_least(LEAST if least is None else least)
    kept = [row for row, name in enumerate(vectors.names) if name != page.name and name not in SPECIAL_NAMES]
    if vectors.matrix.shape[1] != embedder.dimensions:
        seen = f"the vectors have {vectors.matrix.shape[1]} dimensions, {embedder.model_code} has {embedder.dimensions}"
        raise QueryError(f"{seen}: they are of different models.")
    field = _Compared(vectors, kept)
    answered = _answered(reviews, source, page)
    learned = _learned(field, source, answered) if least is None else ()
    least = _moved(learned) if least is None else least
    found: list[SimilarPage] = []
    if kept and page.raw.strip():
        query = _embedded(page, embedder, recipe)
        cosines = (vectors.matrix @ query)[kept]
        own = level_of(cosines)
        marks = Marks.of(page)
        for place in np.argsort(-cosines, kind="stable")[: _LOOKED_AT + limit].tolist():
            row, cosine = kept[place], min(float(cosines[place]), 1.0)
            if answered.get(_pair(page.name, vectors.names[row])) is False:
                continue
            try:
                other = source.read(vectors.names[row])
            except PageNotFound:
                continue
            level = (own + field.level(place)) / 2
            closeness, reason = judged(cosine, level, marks, Marks.of(other))
            if closeness >= least:
                usual = round(level, 6)
                found.append(SimilarPage(other.name, other.title, round(closeness, 6), round(cosine, 6), usual, reason))
    found.sort(key=lambda item: (-item.closeness, -item.cosine, item.name))
    moved = len(learned) if least > LEAST else 0
    return SimilarPages(page.name, tuple(found[:limit]), embedder.model_code, recipe, least, len(kept), moved)


class _Compared:
    """The vectors of the pages that are compared, and the level of each."""

    def __init__(self, vectors: HasVectors, kept: list[int]) -> None:
        self._matrix = vectors.matrix
        self._kept = kept
        self._places = {vectors.names[row]: place for place, row in enumerate(kept)}
        self._levels: dict[int, float] = {}

    def level(self, place: int) -> float:
        if place not in self._levels:
            around = (self._matrix @ self._matrix[self._kept[place]])[self._kept]
            self._levels[place] = level_of(np.delete(around, place))
        return self._levels[place]

    def closeness(self, one: Page, other: Page) -> float | None:
        """Return the closeness of two pages of the field; None where one has no vector."""
        places = [self._places.get(page.name) for page in (one, other)]
        if places[0] is None or places[1] is None:
            return None
        rows = [self._matrix[self._kept[place]] for place in places if place is not None]
        level = (self.level(places[0]) + self.level(places[1])) / 2
        return judged(min(float(rows[0] @ rows[1]), 1.0), level, Marks.of(one), Marks.of(other))[0]


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _answered(reviews: Reviews | None, source: PageSource, page: Page) -> dict[tuple[str, str], bool]:
    """Return the latest answers on pages that are there, and on *page*, by name."""
    if reviews is None:
        return {}
    latest = Reviews(reviews.items[-_MOST_ANSWERS:])
    pages = {page.name: page}
    for name in {side.name for review in latest for side in (review.first, review.second)} - {page.name}:
        try:
            pages[name] = source.read(name)
        except PageNotFound:
            continue
    return latest.pairs(pages.values())


def _learned(
    field: _Compared, source: PageSource, answered: Mapping[tuple[str, str], bool]
) -> tuple[tuple[float, bool], ...]:
    """Return closeness and answer of every answered pair that would be named."""
    found = []
    for (first, second), same in answered.items():
        try:
            closeness = field.closeness(source.read(first), source.read(second))
        except PageNotFound:
            continue
        if closeness is not None and closeness >= LEAST:
            found.append((closeness, same))
    return tuple(sorted(found))


def _moved(learned: Sequence[tuple[float, bool]]) -> float:
    """Return the smallest closeness from which at least half of the answered pairs are the same."""
    if len(learned) < _FEWEST_ANSWERS:
        return LEAST
    for place, (closeness, _) in enumerate(learned):
        above = [same for _, same in learned[place:]]
        if 2 * sum(above) >= len(above):
            return LEAST if place == 0 else min(closeness, _HIGHEST_LEAST)
    return _HIGHEST_LEAST


def _embedded(page: Page, embedder: Embedder, recipe: str) -> FloatArray:
    vector = np.asarray(embedder.embed_documents([recipe_text(recipe, page)])[0], np.float32)
    length = float(np.sqrt(vector @ vector))
    if not 0.0 < length < np.inf:
        raise EmbeddingFailed(f"{embedder.model_code} gives no usable vector for {page.name}{PAGE_SUFFIX}")
    return vector / np.float32(length)


def _check_least(least: float) -> None:
    if not 0.0 < least <= 1.0:
        raise QueryError(f"least is {least!r}; a closeness lies above 0 and at most at 1, the usual one is {LEAST:g}")
