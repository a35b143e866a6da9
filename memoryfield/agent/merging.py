"""Hits of several fields in one order, with scores that can be compared between fields.

The scores of one field say little beside those of another. A large field has something near to any question; with one
model no two texts have a cosine below 0.6, with another hardly any above; in ``hybrid`` each field's best page has
about 1. So the fields are asked the same unrelated questions first, and what the nearest page reaches for these is a
field's yardstick: a question's best cosine becomes the share of unrelated questions that it beats. That is score
normalization by the distribution over a common set of queries (M. Fernández, D. Vallet and P. Castells, "Probabilistic
score normalization for rank aggregation", ECIR 2006; A. Arampatzis and J. Kamps, "A signal-to-noise approach to score
normalization", CIKM 2009). A normal curve stands for the distribution, so that what lies beyond it still has an order.

Words are comparable by themselves: the share of the question's words that a field's best page holds, each weighted by
how rare it is over all fields. Both are joined as the field joins vectors and words. Within a field the order stays
that of its search.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoryfield.errors import MemoryfieldError, ModelError, QueryError
from memoryfield.field import MemoryField
from memoryfield.index.words import query_terms

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.knownitems import KnownItem
    from memoryfield.retrieve.results import Hit, SearchResults

_MOST_ITEMS = 32  # of each field, for the unrelated questions
_DEEP = 10  # hits of each field that are looked at, at least
_LEAST_SPREAD = 0.02  # of their scores: a field of one page would show none
_SAME_SIZE = 0.1  # share of pages that may come or go before the yardstick is made anew
# Asked beside those made of the fields' words, so that there are enough where the fields are small.
_EVERYDAY = (
    "what is the weather going to be tomorrow",
    "how do I get red wine out of a shirt",
    "which team won the cup final last year",
    "recipe for a simple apple cake",
    "opening hours of the swimming pool",
    "who wrote this song and when",
    "how many people live in that city",
    "cheapest train from the airport to the centre",
    "why is the sky blue",
    "how to tie a tie",
    "good films for a rainy evening",
    "symptoms of a cold and what helps",
)


@dataclass(frozen=True)
class Merged:
    """Hits of several fields.

    Attributes:
        hits: Best first; ``field`` says where each is from, ``score`` can be compared between fields.
        failed: What went wrong, by field; the others were searched.
        by_words: Why a field was searched by words only.
        reasons: Why a field has no hits.
    """

    hits: tuple[Hit, ...]
    failed: Mapping[str, MemoryfieldError]
    by_words: Mapping[str, MemoryfieldError]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class _Yardstick:
    """What the nearest page of a field reaches for questions that have nothing to do with it."""

    mean: float
    spread: float

    def beaten(self, cosine: float) -> float:
        """Return the share of unrelated questions whose nearest page is further than this."""
        return 0.5 * (1.0 + math.erf((cosine - self.mean) / self.spread / math.sqrt(2.0)))


_known: weakref.WeakKeyDictionary[VectorIndex, tuple[tuple[str, ...], int, _Yardstick]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def merged_search(
    fields: Mapping[str, MemoryField], question: str, k: int, *, model: str | Embedder | None = None
) -> Merged:
    """Return the best hits of several fields.

    Args:
        fields: Fields by name; each may have a model of its own.
        question: Any text.
        k: How many hits, of all fields together.
        model: Embedding model for all of them; by default each field's own.

    Raises:
        QueryError: The question makes no sense to any field.
    """
    failed: dict[str, MemoryfieldError] = {}
    by_words: dict[str, MemoryfieldError] = {}
    found: dict[str, SearchResults] = {}
    for label, field in fields.items():
        try:
            try:
                found[label] = field.search(question, max(k, _DEEP), model=model, progress=False)
            except ModelError as error:
                found[label] = field.search(question, max(k, _DEEP), "keyword", progress=False)
                by_words[label] = error
        except QueryError:
            raise
        except (MemoryfieldError, OSError) as error:
            failed[label] = error if isinstance(error, MemoryfieldError) else MemoryfieldError(str(error))
    reasons = {label: results.reason for label, results in found.items() if not results}
    hits = _merged({label: fields[label] for label in found}, question, found, model)[:k]
    return Merged(tuple(hits), failed, by_words, reasons)


def _merged(
    fields: Mapping[str, MemoryField], question: str, found: Mapping[str, SearchResults], model: str | Embedder | None
) -> list[Hit]:
    if len(found) == 1:  # nothing to compare: the search's own scores
        return [replace(hit, field=label) for label, results in found.items() for hit in results]
    merged: list[Hit] = []
    shares = _shares_of_words(fields, question)
    for label, results in found.items():
        if not results:
            continue
        chance = _chance(fields, label, results, shares[label], model)
        best = results[0].score
        for hit in results:
            # the best page has all of the chance, the others as much as the search thinks of them beside it
            part = max(hit.score / best, 0.0) if best > 0.0 else 1.0 / hit.rank
            merged.append(replace(hit, field=label, score=chance * part))
    merged.sort(key=lambda hit: -hit.score)  # stable: equal ones in the order of the fields, then as ranked there
    return [replace(hit, rank=rank) for rank, hit in enumerate(merged, start=1)]


def _chance(
    fields: Mapping[str, MemoryField], label: str, results: SearchResults, share: float, model: str | Embedder | None
) -> float:
    """Return how likely a field is to have an answer, between 0 and 1."""
    from memoryfield.retrieve.hybrid import question_weight
    from memoryfield.retrieve.weights import learned_weight

    if results.retriever == "keyword":
        return share
    weight = question_weight(learned_weight([fields[label].search_target(model=model)]).vector, share)
    nearest = max((hit.scores["vector"] for hit in results if "vector" in hit.scores), default=-1.0)
    return weight * _yardstick(fields, label, model).beaten(nearest) + (1.0 - weight) * share


def _yardstick(fields: Mapping[str, MemoryField], label: str, model: str | Embedder | None) -> _Yardstick:
    """Return the yardstick of a field; made anew where other fields stand beside it, or many pages came or went."""
    from memoryfield.retrieve.gate import Gate

    index = fields[label].vector_index(model)
    beside, pages = tuple(sorted(str(field.path) for field in fields.values())), len(index.vectors())
    with _making:
        known = _known.get(index)
        if known is None or known[0] != beside or abs(known[1] - pages) > _SAME_SIZE * known[1]:
            target = fields[label].search_target("vector", model=model)
            scores = Gate(target, -math.inf, "").scores(_unrelated(fields))
            scores = scores[scores > -1.0]  # a question that the model has no vector for says nothing
            mean, spread = (float(scores.mean()), float(scores.std())) if len(scores) else (0.0, 0.0)
            known = _known[index] = (beside, pages, _Yardstick(mean, max(spread, _LEAST_SPREAD)))
        return known[2]


def _unrelated(fields: Mapping[str, MemoryField]) -> list[str]:
    """Return questions that none of the fields answers: their words thrown together, and everyday ones."""
    from memoryfield.retrieve.gate import thrown_together
    from memoryfield.retrieve.knownitems import known_items

    items: list[KnownItem] = []
    for field in fields.values():
        source = field.search_target("keyword").source
        items += known_items(source, source.snapshot(), _MOST_ITEMS)
    return [*thrown_together(items), *_EVERYDAY]


def _shares_of_words(fields: Mapping[str, MemoryField], question: str) -> dict[str, float]:
    """Return which share of the question's words the best page of each field holds, by how rare each is over all."""
    terms = query_terms(question)
    held = {label: field.keyword_index().term_scores(terms) for label, field in fields.items()}
    words = [term for term in terms if " " not in term] or terms
    pages = sum(len(found.names) for found in held.values())
    holding = {word: sum(len(found.terms[word][0]) for found in held.values() if word in found.terms) for word in words}
    rare = {word: math.log(1.0 + (pages - count + 0.5) / (count + 0.5)) for word, count in holding.items()}
    total = sum(rare.values())
    shares: dict[str, float] = {}
    for label, found in held.items():
        scores = found.scores(terms)
        if not total or not scores.any():
            shares[label] = 0.0
            continue
        best = int(scores.argmax())
        there = (word for word in words if word in found.terms and bool((found.terms[word][0] == best).any()))
        shares[label] = sum(rare[word] for word in there) / total
    return shares
