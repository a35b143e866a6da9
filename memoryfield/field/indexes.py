"""The caches of a field, and the questions put to them: search, vectors, near duplicates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memoryfield.errors import IndexFileError
from memoryfield.field.places import FieldPlaces
from memoryfield.format.page import SPECIAL_NAMES
from memoryfield.progress import ProgressBar
from memoryfield.stores.opening import open_source
from memoryfield.stores.pages import StorePages, fetching, source_notes

if TYPE_CHECKING:
    from datetime import date, datetime

    from memoryfield.curate.near import NearDuplicates
    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.files import IndexState
    from memoryfield.index.keywords import KeywordIndex
    from memoryfield.index.report import SyncReport
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.bulk import Rankings
    from memoryfield.retrieve.gate import Gate
    from memoryfield.retrieve.results import SearchResults
    from memoryfield.retrieve.search import SearchTarget
    from memoryfield.retrieve.weights import FusionWeight

DEFAULT_RETRIEVER = "hybrid"


class FieldIndexes(FieldPlaces):
    """A field with its vector indexes, its keyword index and its search."""

    def __init__(
        self,
        source: PageSource,
        *,
        model: str | Embedder | None = None,
        recipe: str = "page",
        backend: str | None = None,
        who: str | None = None,
    ) -> None:
        super().__init__(source, who=who)
        self._model = model
        self._recipe = recipe
        self._backend = backend
        self._indexes: dict[tuple[str, str], VectorIndex] = {}
        self._keywords: KeywordIndex | None = None

    def opened_again(self, *, who: str | None = None, model: str | Embedder | None = None) -> Self:
        """Return the same field opened once more, for another writer whose name the history is to show.

        Args:
            who: Who makes the changes; by default the name of the user.
            model: Embedding model; by default this field's own.
        """
        chosen = model if model is not None else self._model
        again = self._source.again() if isinstance(self._source, StorePages) else open_source(self.path)
        return type(self)(again, model=chosen, recipe=self._recipe, backend=self._backend, who=who)

    def close(self) -> None:
        """Forget what is held in memory. Nothing on disk stays open between calls."""
        self._indexes.clear()
        self._keywords = None
        if isinstance(self._source, StorePages):
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def embedder(self, model: str | Embedder | None = None) -> Embedder:
        """Return the loaded model, this field's own by default.

        Raises:
            ModelNotReady: It cannot be loaded; the message says what was tried and what to do.
        """
        from memoryfield.index.embedders.catalogue import load_model

        return load_model(model if model is not None else self._model, backend=self._backend)

    def vector_index(self, model: str | Embedder | None = None, recipe: str | None = None) -> VectorIndex:
        """Return the index of a model and recipe, this field's own by default; nothing is embedded yet."""
        from memoryfield.index.vectors import VectorIndex

        embedder = self.embedder(model)
        key = (embedder.model_code, recipe or self._recipe)
        index = self._indexes.get(key)
        if index is None or index.embedder is not embedder:
            index = self._indexes[key] = VectorIndex(self._source, embedder, key[1])
        return index

    def keyword_index(self) -> KeywordIndex:
        """Return the keyword index; it lives in the cache directory."""
        from memoryfield.index.keywords import KeywordIndex

        if self._keywords is None:
            self._keywords = KeywordIndex(self._source)
        return self._keywords

    def delete_index(self, name: str) -> IndexState:
        """Delete a vector index and return what it was; pages are not touched, and ``sync`` makes it again.

        Args:
            name: Its file name, as ``indexes`` lists it; the model need not be there.

        Raises:
            IndexFileError: There is no such index, it was made by something else, or it cannot be deleted.
        """
        from memoryfield.index.connections import gate, remove_database

        found = {state.path.name: state for state in self.indexes()}
        state = found.get(name)
        if state is None:
            known = ", ".join(sorted(found)) or "none"
            raise IndexFileError(f"{self.name} has no index {name!r}; there is: {known}")
        if state.state in ("foreign", "symlink"):
            raise IndexFileError(f"{name} is no index of this library ({state.state}); it was left alone")
        held = [index for index in self._indexes.values() if index.path == state.path]
        if held:
            held[0].delete()
        else:
            with gate(state.path):
                remove_database(state.path)
        return state

    def sync(
        self,
        model: str | Embedder | None = None,
        *,
        recipe: str | None = None,
        verify: bool = True,
        progress: bool | Callable[[int, int], None] = True,
    ) -> SyncReport:
        """Bring the vector index up to date: embed what changed, forget what is gone.

        An interruption is harmless: what was embedded stays, the next call goes on.

        Args:
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            verify: Read every byte of every page; ``False`` trusts size, times and inode.
            progress: Show a bar; or a function of pages done and pages to do; ``False`` for neither.
        """
        index = self.vector_index(model, recipe)
        with fetching(self._source, progress), ProgressBar(progress) as report:
            done = index.sync(verify=verify, progress=report)
        offline = source_notes(self._source)
        return replace(done, notes=(*done.notes, *offline)) if offline else done

    def search(
        self,
        question: str,
        k: int = 10,
        retriever: str = DEFAULT_RETRIEVER,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        where: Mapping[str, Any] | None = None,
        since: str | date | datetime | None = None,
        until: str | date | datetime | None = None,
        min_score: float | None = None,
        gate: Gate | bool = False,
        weight: float | FusionWeight | None = None,
        sync: bool = True,
        verify: bool = False,
        progress: bool | Callable[[int, int], None] = True,
    ) -> SearchResults:
        """Return the pages that answer *question*, best first.

        Args:
            question: What a person types; no syntax.
            k: Most hits.
            retriever: ``vector`` (cosine), ``keyword`` (BM25), ``hybrid`` (the weighted sum of both) or ``rrf``
                (reciprocal rank fusion of both).
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            where: Frontmatter keys with a value, a list of values, or a function of the value.
            since: Earliest date of ``updated`` (else ``created``, else the file's time).
            until: Latest date.
            min_score: Smallest score of the chosen retriever.
            gate: Return nothing where no page is near enough to the question: ``True`` for the field's own gate, or one
                from ``gate()``.
            weight: Of the vectors in ``hybrid``, from 0 to 1, or one from ``hybrid_weight()``; by default learned from
                the field's own sentences.
            sync: Embed what changed before searching, so that the answer is in step with the disk.
            verify: Read every byte to find what changed, not only times and sizes.
            progress: Show a bar while embedding; or a function of pages done and pages to do.

        Raises:
            ModelNotReady: The model cannot be loaded; ``retriever="keyword"`` needs none.
            QueryError: A setting that makes no sense.
        """
        from memoryfield.retrieve.search import search

        target = self.search_target(retriever, model=model, recipe=recipe)
        shown = progress if sync else False
        with fetching(self._source, shown), ProgressBar(shown) as report:
            return search(
                [target],
                question,
                k=k,
                retriever=retriever,
                where=where,
                since=since,
                until=until,
                min_score=min_score,
                gate=gate,
                weight=weight,
                sync=sync,
                verify=verify,
                progress=report,
            )

    def search_target(
        self, retriever: str = DEFAULT_RETRIEVER, *, model: str | Embedder | None = None, recipe: str | None = None
    ) -> SearchTarget:
        """Return what ``retrieve.search`` needs of this field; only ``keyword`` does without the model."""
        from memoryfield.retrieve.search import SearchTarget

        vectors = None if retriever == "keyword" else self.vector_index(model, recipe)
        return SearchTarget(self.name, self._source, vectors, self.keyword_index())

    def gate(
        self,
        answerable: Sequence[str] | None = None,
        unanswerable: Sequence[str] = (),
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        keep: float = 0.9,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Gate:
        """Return what says that nothing in this field answers a question.

        Args:
            answerable: Questions that a page answers. Without any the gate is calibrated on the field's own words.
            unanswerable: Questions that none answers, to measure how many pass.
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            keep: With questions, the share of the answerable ones that should pass.
            progress: Show a bar while embedding; or a function of pages done and pages to do.
        """
        from memoryfield.retrieve.gate import calibrated_gate, gate_from_probes

        target = self._ready_target("vector", model, recipe, progress)
        if answerable is None:
            return calibrated_gate(target)
        return gate_from_probes(target, answerable, unanswerable, keep=keep)

    def hybrid_weight(
        self,
        probes: Sequence[tuple[str, Collection[str]]] | None = None,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> FusionWeight:
        """Return how much vectors count in ``hybrid`` here, learned from the field's sentences or from probes.

        Args:
            probes: Questions, each with the names of the pages that answer it; for ``search(weight=...)``.
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            progress: Show a bar while embedding; or a function of pages done and pages to do.
        """
        from memoryfield.retrieve.weights import learned_weight, weight_from_probes

        target = self._ready_target("hybrid", model, recipe, progress)
        return learned_weight([target]) if probes is None else weight_from_probes(target, probes)

    def rank_many(
        self,
        questions: Sequence[str],
        retriever: str = DEFAULT_RETRIEVER,
        depth: int = 100,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        weight: float | FusionWeight | None = None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Rankings:
        """Rank the pages for many questions at once, as ``search`` ranks them one by one.

        Args:
            questions: Any texts.
            retriever: As in ``search``.
            depth: How many pages to keep for each question.
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            weight: As in ``search``.
            progress: Show a bar while pages are embedded; or a function of pages done and pages to do.
        """
        from memoryfield.retrieve.bulk import rank_many

        target = self._ready_target(retriever, model, recipe, progress)
        return rank_many(target, questions, retriever, depth, sync=False, weight=weight)

    def _ready_target(
        self,
        retriever: str,
        model: str | Embedder | None,
        recipe: str | None,
        progress: bool | Callable[[int, int], None],
    ) -> SearchTarget:
        """Return what ``retrieve`` needs of this field, with the indexes in step with the disk."""
        target = self.search_target(retriever, model=model, recipe=recipe)
        with fetching(self._source, progress), ProgressBar(progress) as report:
            if target.vectors is not None:
                target.vectors.sync(verify=False, progress=report)
        if target.keywords is not None and retriever != "vector":
            seen = None if target.vectors is None else target.vectors.snapshot
            target.keywords.sync(verify=False, snapshot=seen)  # one look at the disk is enough for both
        return target

    def near_duplicates(
        self,
        threshold: float = 0.8,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> NearDuplicates:
        """Return the pairs of pages whose vectors have at least cosine *threshold*, nearest first.

        ``index`` and ``listing`` are left out. No threshold fits every model and field: compare with the median that
        the result shows.
        """
        from memoryfield.curate.near import check_threshold, near_duplicates

        check_threshold(threshold)  # before anything is embedded
        vectors = self._vectors(model, recipe, progress)
        return near_duplicates(
            vectors.names, vectors.matrix, threshold, model_code=vectors.model_code, recipe=vectors.recipe
        )

    def _vectors(
        self, model: str | Embedder | None, recipe: str | None, progress: bool | Callable[[int, int], None]
    ) -> _PageVectors:
        """Vectors of the ordinary pages, in step with the disk."""
        index = self.vector_index(model, recipe)
        with fetching(self._source, progress), ProgressBar(progress) as report:
            index.sync(verify=False, progress=report)
        vectors = index.vectors()
        kept = [i for i, name in enumerate(vectors.names) if name not in SPECIAL_NAMES]
        names = tuple(vectors.names[i] for i in kept)
        # not copied without need: the matrix of a large field is large
        matrix = vectors.matrix if len(kept) == len(vectors.names) else vectors.matrix[kept]
        left_out = tuple(name for name in vectors.names if name in SPECIAL_NAMES)
        return _PageVectors(names, matrix, index.model_code, index.recipe, left_out)


@dataclass(frozen=True)
class _PageVectors:
    names: tuple[str, ...]
    matrix: Any
    model_code: str
    recipe: str
    left_out: tuple[str, ...]
