"""A question to ranked pages: by vectors, by words, or by both, over one field or several.

A search first brings its indexes in step with the disk, so that it sees what other programs wrote (FORMAT X10); a page
that is gone is never returned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.errors import PageNotFound, QueryError
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.index.embedders.rows import unit_rows
from memoryfield.index.keywords import KeywordIndex, search_together
from memoryfield.index.matrix import as_float32
from memoryfield.index.recipes import PASSAGES
from memoryfield.index.snippets import page_snippets
from memoryfield.index.words import query_terms
from memoryfield.retrieve.filters import Filter, Moment, Where, page_filter, passing_pages
from memoryfield.retrieve.fusion import RANK_CONSTANT, reciprocal_rank_fusion
from memoryfield.retrieve.results import Hit, MatchedPassage, SearchResults, matched_passage
from memoryfield.retrieve.scoring import Scoring, fused_depth
from memoryfield.retrieve.weights import FusionWeight, given_weight, learned_weight
from memoryfield.stores.pages import source_notes

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Snapshot
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.matrix import FloatArray
    from memoryfield.index.syncing import Progress
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.gate import Gate

__all__ = ["RETRIEVERS", "Hit", "SearchResults", "SearchTarget", "reciprocal_rank_fusion", "search"]

RETRIEVERS = ("hybrid", "vector", "keyword", "rrf")

_SPARE = 8  # pages fetched beyond k, for those that vanish before they are read


@dataclass(frozen=True)
class SearchTarget:
    """One field to search.

    Attributes:
        field: What the field is called in the hits.
        source: Its pages.
        vectors: Its vector index, for the retrievers ``vector`` and ``hybrid``.
        keywords: Its keyword index, for the retrievers ``keyword`` and ``hybrid``.
    """

    field: str
    source: PageSource
    vectors: VectorIndex | None = None
    keywords: KeywordIndex | None = None


_Key = tuple[int, str]  # number of the target, page name: two fields may have a page of one name


@dataclass
class _Candidates:
    """The ranked lists of one search."""

    rankings: dict[str, list[_Key]] = field(default_factory=dict)
    scores: dict[str, dict[_Key, float]] = field(default_factory=dict)

    def add(self, retriever: str, found: list[tuple[_Key, float]]) -> None:
        found.sort(key=lambda pair: -pair[1])  # stable: equal scores stay in the order of fields, then as ranked there
        self.rankings[retriever] = [key for key, _ in found]
        self.scores[retriever] = dict(found)


def search(
    targets: Sequence[SearchTarget],
    query: str,
    *,
    k: int = 10,
    retriever: str = "hybrid",
    where: Where | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    min_score: float | None = None,
    sync: bool = True,
    verify: bool = False,
    exact: bool = False,
    weight: float | FusionWeight | None = None,
    gate: Gate | bool = False,
    progress: Progress | None = None,
) -> SearchResults:
    """Return the pages that answer a question best.

    Args:
        targets: The fields to search. Those searched by vector must be of one model and recipe.
        query: Any text; there is no syntax.
        k: How many pages.
        retriever: ``vector`` (cosine), ``keyword`` (BM25), ``hybrid`` (the weighted sum of both, see ``hybrid.py``), or
            ``rrf`` (both, by reciprocal rank fusion).
        where: Conditions on frontmatter keys; see ``filters.page_filter``.
        since: Earliest date of ``updated``, else ``created``, else the file's time.
        until: Latest date, a day with all its hours.
        min_score: Leave out pages below this score, which is the retriever's own: a cosine, BM25, or the fused sum.
        sync: Bring the indexes in step with the pages first.
        verify: Read every page to find out what changed, instead of trusting old stat data.
        exact: Score every vector, also where there are many; ``hybrid`` always does.
        gate: Return nothing where no page is near enough to the question: ``True`` for the field's own gate, see
            ``gate.py``. One field only.
        weight: Of the vectors in ``hybrid``, from 0 to 1; by default learned from the field's own pages.
        progress: Called with pages done and pages to embed, where many changed.

    Returns:
        At most *k* hits, best first; where there are none, the reason.

    Raises:
        QueryError: Something asked for makes no sense; the message says what does.
        ModelMismatch: A vector index is not of the model it is searched with.
        ModelNotReady: The model cannot be loaded.
        EmbeddingFailed: The model gives something else than a vector.
        IndexFileError: An index cannot be used.
    """
    check_targets(targets, query, k, retriever, min_score)
    if gate is not False:
        _check_gate(targets, gate, retriever)
    condition = page_filter(where, since, until)
    model = model_of(targets, retriever)
    recipe = next((t.vectors.recipe for t in targets if t.vectors is not None), None) if model is not None else None

    def results(hits: Sequence[Hit] = (), reason: str = "", notes: Sequence[str] = ()) -> SearchResults:
        code = None if model is None else model.model_code
        return SearchResults(query, retriever, tuple(hits), code, recipe, reason, tuple(notes))

    if not query.strip():
        return results(reason="the question is empty")
    terms = query_terms(query)
    if retriever == "keyword" and not terms:
        return results(reason="no words to search for in the question")

    notes: list[str] = []
    allowed = [prepare(target, retriever, condition, sync, verify, progress, notes) for target in targets]
    if condition and not any(allowed):
        return results(reason=_why_nothing(targets, "passes the filter"), notes=notes)

    vector = None if model is None else _vector(model, query)
    passed: bool | None = None
    if gate is not False:
        held = _gate(targets[0], gate)
        nearest = _Asked(query, targets, "vector", allowed, True, vector).candidates(1).scores["vector"]
        best = max(nearest.values(), default=-1.0)
        passed = best >= held.threshold
        if not passed and any(len(target.source.names()) for target in targets):
            reason = f"nothing above the gate: the nearest page has {best:.3f}, the gate is at {held.threshold:.3f}"
            return replace(results(reason=reason, notes=[*notes, f"gate: {held.calibrated_on}"]), passed_gate=False)
    chosen: FusionWeight | None = None
    if retriever == "hybrid":
        chosen = fusion_weight(targets, weight)
        notes.append(chosen.note)
    asked = _Asked(query, targets, retriever, allowed, exact, vector, chosen)
    depth = fused_depth(k) if retriever in ("hybrid", "rrf") else k + _SPARE
    while True:
        found = asked.candidates(depth)
        ranking, scores = found.rankings[retriever], found.scores[retriever]
        if not ranking:
            what = "that may be returned has a vector" if retriever == "vector" else "holds any of the words"
            if retriever == "vector" and asked.vector is None:
                return results(reason="the model has no vector for this question", notes=notes)
            return results(reason=_why_nothing(targets, what), notes=notes)
        best = scores[ranking[0]]
        if min_score is not None:
            ranking = [key for key in ranking if scores[key] >= min_score]
        if not ranking:
            return results(reason=f"nothing above min_score={min_score:g}: the best page has {best:.4g}", notes=notes)
        hits = _hits(found, ranking, asked, k)
        # Where many pages are gone, which happens without a sync, one has to look further down.
        if len(hits) >= min(k, len(ranking)) or all(len(ranked) < depth for ranked in found.rankings.values()):
            found_hits = results(hits, "" if hits else "the pages that were found are gone", notes)
            return replace(found_hits, passed_gate=passed)
        depth *= 8


def fusion_weight(targets: Sequence[SearchTarget], weight: float | FusionWeight | None) -> FusionWeight:
    """Return the weight to use: the one that was given, or one learned from the fields."""
    if isinstance(weight, FusionWeight):
        return weight
    return learned_weight(targets) if weight is None else given_weight(weight)


def _check_gate(targets: Sequence[SearchTarget], gate: Any, retriever: str) -> None:
    """Raise a ``QueryError`` where a gate makes no sense."""
    from memoryfield.retrieve.gate import Gate

    if retriever == "keyword":
        raise QueryError("a gate compares vectors, and 'keyword' uses none: choose another retriever.")
    if len(targets) != 1:
        raise QueryError("a gate knows one field; search the fields one by one, or without a gate.")
    if gate is not True and not isinstance(gate, Gate):
        raise QueryError(f"gate={gate!r}: give True for the field's own gate, or a Gate.")
    index = targets[0].vectors
    if gate is not True and index is not None and (index.model_code, index.recipe) != (gate.model_code, gate.recipe):
        theirs, ours = f"{gate.model_code} ({gate.recipe})", f"{index.model_code} ({index.recipe})"
        raise QueryError(f"the gate is for vectors of {theirs}; this search has those of {ours}.")


def _gate(target: SearchTarget, gate: Gate | bool) -> Gate:
    from memoryfield.retrieve.gate import Gate, calibrated_gate

    return gate if isinstance(gate, Gate) else calibrated_gate(target)


def check_targets(targets: Sequence[SearchTarget], query: Any, k: Any, retriever: str, min_score: Any) -> None:
    """Raise a ``QueryError`` where a search makes no sense."""
    if not isinstance(query, str):
        raise QueryError(f"the question is a {type(query).__name__}; it has to be text.")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryError(f"k={k!r}: give a whole number of at least 1.")
    if retriever not in RETRIEVERS:
        raise QueryError(f"there is no retriever {retriever!r}; there are: {', '.join(RETRIEVERS)}.")
    is_number = isinstance(min_score, (int, float)) and not isinstance(min_score, bool) and min_score == min_score
    if min_score is not None and not is_number:
        raise QueryError(f"min_score={min_score!r}: give a number.")
    if not targets:
        raise QueryError("no field to search in.")
    for target in targets:
        if retriever != "keyword" and target.vectors is None:
            raise QueryError(f"the field {target.field!r} has no vector index here: choose a model, or 'keyword'.")
        if retriever != "vector" and target.keywords is None:
            raise QueryError(f"the field {target.field!r} has no keyword index here: choose 'vector'.")


def model_of(targets: Sequence[SearchTarget], retriever: str) -> Embedder | None:
    """Return the model that the question is embedded with; None where none is needed."""
    if retriever == "keyword":
        return None
    indexes = [target.vectors for target in targets if target.vectors is not None]
    kinds = {(index.embedder.model_code, index.recipe) for index in indexes}
    if len(kinds) > 1:
        shown = ", ".join(f"{code} ({recipe})" for code, recipe in sorted(kinds))
        raise QueryError(
            f"the fields are indexed with different models or recipes: {shown}. Cosines of different models cannot be "
            "compared: search the fields one by one, or choose one model for all."
        )
    return indexes[0].embedder


def prepare(
    target: SearchTarget,
    retriever: str,
    condition: Filter,
    sync: bool,
    verify: bool,
    progress: Progress | None,
    notes: list[str],
) -> frozenset[str] | None:
    """Bring a field's indexes in step; return the pages to choose from, None for all."""
    snapshot: Snapshot | None = None
    if sync:
        if retriever != "keyword" and target.vectors is not None:
            report = target.vectors.sync(verify=verify, progress=progress)
            snapshot = target.vectors.snapshot
            if report.refused:
                notes.append(f"{target.field}: {_count(report.refused)} without a vector, found by keyword only")
            if report.waiting:
                notes.append(f"{target.field}: {_count(report.waiting)} changed just now, not embedded yet")
        if retriever != "vector" and target.keywords is not None:
            target.keywords.sync(verify=verify, snapshot=snapshot)
            snapshot = snapshot or target.keywords.snapshot
    elif condition:
        earlier = target.vectors.snapshot if target.vectors is not None else None
        snapshot = target.source.snapshot(known=earlier, verify=verify)
    notes.extend(f"{target.field}: {note}" for note in source_notes(target.source))
    return passing_pages(condition, target.source, snapshot) if condition and snapshot is not None else None


def _count(pages: Collection[str]) -> str:
    return f"{len(pages):,} {'page' if len(pages) == 1 else 'pages'}"


def _vector(model: Embedder, query: str) -> FloatArray | None:
    """Return the question's vector; None where the model has none, as word hashing for a question without words."""
    vector = as_float32(model.embed_query(query), model.model_code)
    if not np.isfinite(vector).all() or not vector.any():
        return None
    return unit_rows(vector[None, :])[0] if vector.ndim == 1 else vector


@dataclass(frozen=True)
class _Asked:
    """A question on its way: what is needed to rank pages for it, as deep as one likes.

    Attributes:
        query: The text.
        targets: The fields.
        retriever: How to rank.
        allowed: For each field the pages to choose from; None for all.
        exact: Score every vector.
        vector: The text's vector, if there is one.
        weight: Of the vectors, for ``hybrid``.
    """

    query: str
    targets: Sequence[SearchTarget]
    retriever: str
    allowed: Sequence[frozenset[str] | None]
    exact: bool
    vector: FloatArray | None
    weight: FusionWeight | None = None

    def candidates(self, depth: int) -> _Candidates:
        """Return the rankings; from each field and retriever at most *depth* pages."""
        found = _Candidates()
        if self.weight is not None:
            self._by_both(depth, self.weight.vector, found)
            return found
        if self.retriever != "keyword":
            found.add("vector", self._by_vector(depth))
        if self.retriever != "vector":
            found.add("keyword", self._by_words(depth))
        if self.retriever == "rrf":
            halves = [found.rankings["vector"], found.rankings["keyword"]]
            found.add("rrf", reciprocal_rank_fusion(halves, RANK_CONSTANT))
        return found

    def _by_vector(self, depth: int) -> list[tuple[_Key, float]]:
        ranked: list[tuple[_Key, float]] = []
        for number, (target, among) in enumerate(zip(self.targets, self.allowed, strict=True)):
            if target.vectors is not None and self.vector is not None and (among is None or among):
                held = target.vectors.vectors()
                near, _ = held.search(self.vector, depth, among, exact=self.exact)
                near_rows = np.array(sorted(held.positions[name] for name in near), np.intp)
                rows, scores = held.rescored(near_rows, self.vector)
                ranked += [
                    ((number, held.names[row]), score)
                    for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
                ]
        return ranked

    def _by_both(self, depth: int, weight: float, found: _Candidates) -> None:
        embedded = None if self.vector is None or self.vector.ndim != 1 else self.vector[None, :]
        scoring = Scoring(self.targets, [self.query], embedded, True)
        among = None
        if any(allowed is not None for allowed in self.allowed):
            keys = map(scoring.key, range(len(scoring.names)))
            passing = (_passes(self.allowed[number], name) for number, name in keys)
            among = np.flatnonzero(np.fromiter(passing, np.bool_, len(scoring.names)))
        _, products = next(scoring.blocks(range(1)))
        for retriever, (pages, scores) in (
            ("vector", scoring.by_vector(0, products, depth, among)),
            ("keyword", scoring.by_words(0, depth, among)),
            ("hybrid", scoring.fused(0, products, depth, weight, among)),
        ):
            found.add(
                retriever,
                [(scoring.key(page), score) for page, score in zip(pages.tolist(), scores.tolist(), strict=True)],
            )

    def passage(self, key: _Key, page: Page) -> MatchedPassage | None:
        """Return the passage of a page that is nearest to the question; None where the page is one passage."""
        index = self.targets[key[0]].vectors
        if index is None or self.vector is None or index.recipe != PASSAGES:
            return None
        span = index.vectors().best_span(page.name, self.vector)
        return None if span is None or span[0] == span[1] else matched_passage(page.body, *span)

    def _by_words(self, depth: int) -> list[tuple[_Key, float]]:
        indexes = [target.keywords for target in self.targets if target.keywords is not None]
        if len(indexes) == 1:
            answers = [indexes[0].search(self.query, depth, self.allowed[0])]
        else:
            answers = search_together(indexes, self.query, depth, self.allowed)
        return [((number, name), score) for number, answer in enumerate(answers) for name, score in answer]


def _passes(allowed: frozenset[str] | None, name: str) -> bool:
    return allowed is None or name in allowed or name + PAGE_SUFFIX in allowed


def _why_nothing(targets: Sequence[SearchTarget], what: str) -> str:
    """Return why no page came: there is none at all, or there are but none is as asked."""
    pages = sum(len(target.source.names()) for target in targets)
    return f"none of the {pages:,} pages {what}" if pages else "nothing saved yet: no pages"


def _hits(
    found: _Candidates,
    ranking: Sequence[_Key],
    asked: _Asked,
    k: int,
) -> list[Hit]:
    """Read the pages of the first *k* keys that are still there."""
    query, targets, retriever = asked.query, asked.targets, asked.retriever
    chosen: list[tuple[_Key, Page]] = []
    for key in ranking:
        try:
            chosen.append((key, targets[key[0]].source.read(key[1])))
        except PageNotFound:
            continue
        if len(chosen) == k:
            break
    snippets = {}
    for number in range(len(targets)):
        own = [page for key, page in chosen if key[0] == number]
        if own:
            snippets.update({(number, name): snippet for name, snippet in page_snippets(query, own).items()})
    ranks: Mapping[str, Mapping[_Key, int]] = {
        name: {key: rank for rank, key in enumerate(keys, start=1)} for name, keys in found.rankings.items()
    }
    return [
        Hit(
            name=page.name,
            title=page.title,
            summary=page.summary,
            score=found.scores[retriever][key],
            rank=rank,
            ranks={name: known[key] for name, known in ranks.items() if key in known},
            scores={name: known[key] for name, known in found.scores.items() if key in known},
            snippet=snippets[key],
            field=targets[key[0]].field,
            passage=asked.passage(key, page),
        )
        for rank, (key, page) in enumerate(chosen, start=1)
    ]
