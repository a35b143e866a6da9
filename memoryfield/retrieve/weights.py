"""The weight of vectors against words in a field, learned from its own pages or from probes.

Learned once: the result is kept in memory, and in the cache directory for the next process. An edit makes it anew only
where one of the pages changed that the questions were made from, or many pages came or went.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memoryfield.display import counted
from memoryfield.errors import QueryError
from memoryfield.retrieve.embedding import embed_questions
from memoryfield.retrieve.hybrid import field_weight
from memoryfield.retrieve.knownitems import KnownItem
from memoryfield.retrieve.remembered import remembered
from memoryfield.retrieve.scoring import Scoring

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.search import SearchTarget

_VERSION = 2  # of how a ratio is worked out
_MOST_RATIO = 2.0
_USUAL_RATIO = 0.6  # of fields in which nothing could be learned
_COUNTS_AS = 4  # so many questions the usual ratio counts for
_DEPTH = 100  # a page below is not found
# Words of one meaning that share no part. A model that places them no nearer than others compares spellings: it finds
# known items, which are made of the page's own words, far better than the questions that people ask.
_ONE_MEANING = (
    ("big", "large"),
    ("begin", "start"),
    ("child", "kid"),
    ("repair", "fix"),
    ("error", "mistake"),
    ("purchase", "buy"),
    ("quick", "fast"),
    ("doctor", "physician"),
    ("car", "automobile"),
    ("happy", "glad"),
    ("delete", "remove"),
    ("picture", "image"),
)
_KNOWS_MEANINGS = 0.75  # share of comparisons that come out right; by chance it is a half, or none without any likeness
_SPELLING_ONLY = 0.1  # what known items say of a model that knows no meanings
_STEPS = np.linspace(0.0, 1.0, 21)  # weights that are tried with probes
_PROBES_COUNT_AS = 20  # so many probes what was learned without them counts for


@dataclass(frozen=True)
class FusionWeight:
    """How much vectors count in a field; words count for the rest.

    Attributes:
        vector: Between 0 and 1.
        learned_from: What it was learned from.
        ratio: How well vectors find known items, words being 1; None where that was not measured.
    """

    vector: float
    learned_from: str
    ratio: float | None = None

    @property
    def note(self) -> str:
        """One line for people."""
        keyword = 1.0 - self.vector
        return f"hybrid: {self.vector:.2f} vector + {keyword:.2f} keyword, {self.learned_from}"


USUAL_WEIGHT = FusionWeight(field_weight(_USUAL_RATIO), "the usual weight: too few pages to learn from")

_learned: weakref.WeakKeyDictionary[VectorIndex, tuple[str, FusionWeight]] = weakref.WeakKeyDictionary()


def given_weight(weight: float) -> FusionWeight:
    """Return a weight that somebody chose.

    Raises:
        QueryError: It is not a number from 0 to 1.
    """
    number: object = weight
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0.0 <= number <= 1.0:
        raise QueryError(f"weight={weight!r}: give a number from 0 (words alone) to 1 (vectors alone).")
    return FusionWeight(float(number), "as given")


def learned_weight(targets: Sequence[SearchTarget]) -> FusionWeight:
    """Return the weight for some fields, in step with the disk; for several the mean of theirs, by pages."""
    weights = [_of_field(target) for target in targets]
    if len(weights) == 1:
        return weights[0]
    sizes = [len(t.vectors.vectors()) if t.vectors is not None else 0 for t in targets]
    mean = sum(w.vector * n for w, n in zip(weights, sizes, strict=True)) / max(sum(sizes), 1)
    return FusionWeight(mean if sum(sizes) else USUAL_WEIGHT.vector, f"the mean of {counted(len(weights), 'field')}")


def _of_field(target: SearchTarget) -> FusionWeight:
    index = target.vectors
    if index is None:
        return USUAL_WEIGHT
    digest = index.vectors().digest
    held = _learned.get(index)
    if held is not None and held[0] == digest:
        return held[1]
    weight = _from_pages(target, index)
    _learned[index] = (digest, weight)
    return weight


def _from_pages(target: SearchTarget, index: VectorIndex) -> FusionWeight:
    def learn(items: Sequence[KnownItem]) -> float:
        return known_item_ratio(target, items)

    found = remembered(target, index, f"ratio {_VERSION}", learn, least=0.0, most=_MOST_RATIO)
    if found is None:
        return USUAL_WEIGHT
    ratio, count = found
    cautious = (count * ratio + _COUNTS_AS * _USUAL_RATIO) / (count + _COUNTS_AS)
    why = f"learned from {counted(count, 'sentence')} of the field"
    return FusionWeight(field_weight(cautious, index.recipe), why, ratio)


def known_item_ratio(target: SearchTarget, items: Sequence[KnownItem]) -> float:
    """Return the mean reciprocal rank of known items by vector, divided by that by words.

    Of a model that knows spellings and no meanings a tenth of that counts.
    """
    index = target.vectors
    if index is None:
        return _USUAL_RATIO
    questions = [item.question for item in items]
    scoring = Scoring([target], questions, embed_questions(index.embedder, questions), True)
    number_of = {name: number for number, name in enumerate(scoring.names)}
    by_vector, by_words = [], []
    for number, products in scoring.blocks(range(len(items))):
        page = number_of.get(items[number].name, -1)
        by_vector.append(_reciprocal(scoring.by_vector(number, products, _DEPTH)[0], {page}))
        by_words.append(_reciprocal(scoring.by_words(number, _DEPTH)[0], {page}))
    words = float(np.mean(by_words))
    ratio = min(_MOST_RATIO, float(np.mean(by_vector)) / words) if words > 0.05 else _MOST_RATIO
    return ratio if knows_meanings(index.embedder) else _SPELLING_ONLY * ratio


def knows_meanings(model: Embedder) -> bool:
    """Say whether a model places words of one meaning nearer to each other than to other words."""
    first = embed_questions(model, [one for one, _ in _ONE_MEANING])
    second = embed_questions(model, [other for _, other in _ONE_MEANING])
    products = first @ second.T
    right = products.diagonal()[:, None] > products + 1e-3
    count = len(_ONE_MEANING)
    return float(right.sum()) / (count * (count - 1)) >= _KNOWS_MEANINGS


def weight_from_probes(target: SearchTarget, probes: Sequence[tuple[str, Collection[str]]]) -> FusionWeight:
    """Return the weight with which the pages that answer some questions come highest.

    Args:
        target: The field, with both indexes, in step with the disk.
        probes: Questions, and the names of the pages that answer each. Few of them move the weight little.

    Raises:
        QueryError: There is no question with a page of the field.
    """
    if target.vectors is None or target.keywords is None:
        raise QueryError(f"a weight needs both indexes; the field {target.field!r} has only one here.")
    usual = _of_field(target)
    questions = [question for question, _ in probes]
    scoring = Scoring([target], questions, embed_questions(target.vectors.embedder, questions), True)
    number_of = {name: number for number, name in enumerate(scoring.names)}
    found = []
    for number, products in scoring.blocks(range(len(questions))):
        gold = {
            number_of[name.removesuffix(".md")] for name in probes[number][1] if name.removesuffix(".md") in number_of
        }
        if gold:
            ranked = [scoring.fused(number, products, _DEPTH, weight)[0] for weight in _STEPS.tolist()]
            found.append([_reciprocal(pages, gold) for pages in ranked])
    if not found:
        raise QueryError("none of the probes has an answer in this field; give the names of the pages that answer.")
    padded = np.pad(np.mean(found, axis=0), 1, mode="edge")
    smooth = (padded[:-2] + padded[1:-1] + padded[2:]) / 3  # one lucky question should not decide
    best = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    chosen = float(_STEPS[best[np.argmin(np.abs(_STEPS[best] - usual.vector))]])
    share = len(found) / (len(found) + _PROBES_COUNT_AS)
    return FusionWeight(
        share * chosen + (1.0 - share) * usual.vector,
        f"learned from {len(found):,} {'probe' if len(found) == 1 else 'probes'}",
        usual.ratio,
    )


def _reciprocal(pages: Any, gold: Collection[int]) -> float:
    return next((1.0 / rank for rank, page in enumerate(pages.tolist(), start=1) if page in gold), 0.0)
