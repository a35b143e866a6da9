"""The spaces of a comparison: the pages of a field as vectors of one model, recipe and dimension.

The index of a model and recipe is where a space comes from and what an interrupted comparison goes on from. Spaces of
fewer dimensions are cut from the whole vectors (Matryoshka) and need neither the model nor an index of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memoryfield.display import plain
from memoryfield.errors import MemoryfieldError, QueryError
from memoryfield.format.page import Page
from memoryfield.index.embedders.catalogue import is_loaded
from memoryfield.index.embedders.known import known_model
from memoryfield.index.embedders.shortened import ShortenedEmbedder, shortened_rows
from memoryfield.index.recipes import PAGE, recipe_text
from memoryfield.index.vectors import Progress, SyncReport, VectorIndex, Vectors
from memoryfield.study.comparison.costs import (
    CostRecord,
    Costs,
    TimedEmbedder,
    measure_speed,
    query_seconds,
    record_file,
    truncation,
)

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Snapshot
    from memoryfield.index.embedders import Embedder

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Space:
    """The pages as vectors.

    Attributes:
        label: Name in tables and figures: the model code, with the dimensions if cut and the recipe if not the default.
        model_code: The model, with its dimensions as a suffix if cut.
        recipe: Which text of a page was embedded.
        dimensions: Length of a vector.
        names: Page names, sorted.
        matrix: (n_pages, dimensions) float32, unit rows.
        embedder: The model.
        index: Where the vectors are searched.
        costs: What it costs.
        missing: Pages without a usable vector, and why.
        notes: What else is worth knowing.
    """

    label: str
    model_code: str
    recipe: str
    dimensions: int
    names: tuple[str, ...]
    matrix: FloatArray
    embedder: Embedder
    index: VectorIndex | ShortenedIndex
    costs: Costs
    missing: dict[str, str]
    notes: tuple[str, ...] = ()

    def only(self, names: Sequence[str]) -> Space:
        """Return the space of these pages, in their order."""
        if tuple(names) == self.names:
            return self
        row = {name: number for number, name in enumerate(self.names)}
        kept = [row[name] for name in names]
        return replace(self, names=tuple(names), matrix=np.ascontiguousarray(self.matrix[kept]))


class ShortenedIndex:
    """The index of whole vectors, searched by the first dimensions of each; nothing of it is on disk."""

    def __init__(self, whole: VectorIndex, embedder: ShortenedEmbedder, centred: bool) -> None:
        self.whole = whole
        self.embedder = embedder
        self.recipe = whole.recipe
        self.model_code = embedder.model_code
        self._centred = centred
        self._held: tuple[Vectors, Vectors] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The pages as the last sync saw them."""
        return self.whole.snapshot

    def sync(self, *, verify: bool = True, progress: Progress | None = None) -> SyncReport:
        """Bring the whole index up to date."""
        return self.whole.sync(verify=verify, progress=progress)

    def vectors(self) -> Vectors:
        """Return all vectors, shortened."""
        whole = self.whole.vectors()
        if self._held is None or self._held[0] is not whole:
            matrix = shortened_rows(whole.matrix, self.embedder.dimensions, centred=self._centred)
            self._held = whole, Vectors(whole.names, matrix, bad_rows=whole.bad_rows, stamp=whole.stamp)
        return self._held[1]


def space_label(model_code: str, recipe: str) -> str:
    """Return how a space is called."""
    return model_code if recipe == PAGE else f"{model_code} ({recipe})"


def open_model(
    model: str | Embedder, load: Callable[[str | Embedder], Embedder], backend: str | None
) -> tuple[TimedEmbedder, float | None]:
    """Return a loaded model under a clock, and the seconds from its name to its first vector; None if in memory."""
    fresh = isinstance(model, str) and not is_loaded(model, backend=backend)
    started = time.perf_counter()
    embedder = load(model)
    if not fresh:
        return TimedEmbedder(embedder), None
    embedder.embed_query("a first question")  # some models load what they need only now
    return TimedEmbedder(embedder), time.perf_counter() - started


def make_space(
    source: PageSource,
    pages: Sequence[Page],
    timed: TimedEmbedder,
    recipe: str,
    load_seconds: float | None,
    progress: Progress | None = None,
) -> Space:
    """Bring the index of a model and recipe up to date, and return it as a space with its costs.

    Args:
        source: The field.
        pages: Its ordinary pages, sorted by name.
        timed: The model.
        recipe: Which text of a page is embedded.
        load_seconds: What loading took, where that was measured now.
        progress: Called with the pages done and the pages to embed.
    """
    index = VectorIndex(source, timed, recipe)
    file = record_file(source.path, timed.whole, recipe)
    record = CostRecord.load(file)
    if load_seconds is not None:
        record.load_seconds = load_seconds
    try:
        report = index.sync(progress=progress)
    finally:  # what was measured before an interruption counts as well
        record.add(timed)
        record.save(file)
    texts = [recipe_text(recipe, page) for page in pages]
    if record.texts == 0 and texts:
        measure_speed(timed, texts)
        record.add(timed)
        record.save(file)
    vectors = index.vectors()
    wanted = {page.name for page in pages}
    kept = [number for number, name in enumerate(vectors.names) if name in wanted]
    matrix = vectors.matrix if len(kept) == len(vectors.names) else vectors.matrix[kept]
    names = tuple(vectors.names[number] for number in kept)
    reasons = {**report.refused, **vectors.bad_rows}
    missing = {name: reasons.get(name, "changed meanwhile") for name in sorted(wanted.difference(names))}
    questions = [page.title for page in pages if page.title.strip()]
    cut_pages, cut_tokens, counted = truncation(timed.whole, texts)
    a_page = 1.0  # texts that are embedded for a page
    if vectors.passages is not None and vectors.names:
        a_page = 1.0 + (len(vectors.passages.matrix) - len(vectors.names)) / len(vectors.names)
        cut_pages, cut_tokens = 0, 0.0  # a longer page has more passages
    costs = Costs(
        seconds_per_1000=record.seconds / record.texts * 1000 * a_page if record.texts else None,
        measured_on=round(record.texts / a_page),
        load_seconds=record.load_seconds,
        query_seconds=query_seconds(timed, questions),
        dimensions=timed.dimensions,
        index_bytes=index.state().size,
        max_tokens=timed.max_tokens,
        cut_pages=cut_pages,
        cut_tokens=cut_tokens,
        counted=counted,
    )
    label = space_label(timed.model_code, recipe)
    code, whole = timed.model_code, timed.whole
    return Space(label, code, recipe, timed.dimensions, names, matrix, whole, index, costs, missing, report.notes)


def shorter_lengths(embedder: Embedder, dimensions: Sequence[int] | None) -> tuple[list[int], str]:
    """Return to which lengths a model's vectors are cut, longest first, and a note on those that are left out."""
    if dimensions is None:
        return [embedder.dimensions], ""
    known = known_model(embedder.model_code)
    allowed = {embedder.dimensions, *(known.shorter if known else ())}
    kept = [length for length in dimensions if length in allowed]
    left = [length for length in dimensions if length not in allowed]
    if not left:
        return kept, ""
    own = embedder.dimensions
    if not (known and known.shorter):
        note = f"{embedder.model_code} was not trained to be cut: compared at its own {own} dimensions only"
        return [own], note
    lengths = ", ".join(str(length) for length in sorted(allowed, reverse=True))
    asked = ", ".join(map(str, left))
    return kept or [own], f"{embedder.model_code} was trained for {lengths} dimensions, not for {asked}: left out"


def shortened(space: Space, dimensions: int) -> Space:
    """Return a space of the first *dimensions* of each vector, scaled to length 1."""
    if dimensions == space.dimensions:
        return space
    known = known_model(space.model_code)
    centred = known is not None and known.centred
    matrix = shortened_rows(space.matrix, dimensions, centred=centred)
    embedder = ShortenedEmbedder(space.embedder, dimensions, centred=centred)
    size = space.costs.index_bytes
    saved = 4 * (space.dimensions - dimensions) * len(space.names)
    costs = replace(space.costs, dimensions=dimensions, index_bytes=None if size is None else max(size - saved, 0))
    label = space_label(embedder.model_code, space.recipe)
    note = f"{label}: cut from {space.label}; its index bytes are what they would be"
    assert isinstance(space.index, VectorIndex)
    return replace(
        space,
        index=ShortenedIndex(space.index, embedder, centred),
        label=label,
        model_code=embedder.model_code,
        dimensions=dimensions,
        matrix=matrix,
        embedder=embedder,
        costs=costs,
        notes=(note,),
    )


def check_dimensions(dimensions: Sequence[Any] | None) -> tuple[int, ...] | None:
    """Return the lengths asked for, each once.

    Raises:
        QueryError: One is no whole number above 0, or there is none.
    """
    if dimensions is None:
        return None
    asked = tuple(dict.fromkeys(dimensions))
    if not asked or any(isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1 for d in asked):
        raise QueryError(f"dimensions are whole numbers above 0, such as (768, 256, 64); got {dimensions!r}")
    return tuple(int(length) for length in asked)


def reason_of(error: Exception) -> str:
    """Return in one line why a model failed."""
    text = plain(error, 1000)
    return text if isinstance(error, MemoryfieldError) else f"{type(error).__name__}: {text}"
