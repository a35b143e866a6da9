"""Embedding models side by side on one field: where their spaces agree, where not, and what each costs.

What is compared are spaces: a model, a recipe and a dimension. Each space's index in the field is the cache: an
interrupted comparison goes on where it stopped. A model that fails is named in the result and the others go on.
Spaces are compared as they are (``likeness``), never through maps of them. The result is in ``comparison``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from memoryfield.errors import MemoryfieldError, QueryError
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.index.recipes import PASSAGES, check_recipe
from memoryfield.progress import ProgressBar
from memoryfield.retrieve.search import SearchTarget
from memoryfield.study.comparison.comparison import Agreement, Comparison
from memoryfield.study.comparison.likeness import Likeness, Shape, likeness_of, shape_of
from memoryfield.study.comparison.spaces import (
    Space,
    check_dimensions,
    make_space,
    open_model,
    reason_of,
    shortened,
    shorter_lengths,
    space_label,
)
from memoryfield.study.evaluation.evaluate import evaluate
from memoryfield.study.probes.probe import Probes

if TYPE_CHECKING:
    from memoryfield.curate.reviews import Reviews
    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.study.evaluation.evaluation import Evaluation
    from memoryfield.study.probes.probe import Probe

_MOST_NAMED = 5
Load = Callable[[Any], "Embedder"]


def compare(
    source: PageSource,
    models: Sequence[str | os.PathLike[str] | Embedder],
    probes: Iterable[Probe] | None = None,
    *,
    load: Load,
    backend: str | None = None,
    recipes: Sequence[str] = ("page",),
    dimensions: Sequence[int] | None = None,
    k: int = 10,
    families: bool = False,
    reviews: Reviews | None = None,
    progress: bool | Callable[[int, int], None] = True,
) -> Comparison:
    """Compare the spaces of several models, recipes and dimensions on the pages of a field.

    ``index`` and ``listing`` are left out, and so is a page that one of the spaces has no vector for. The same pages
    and vectors give the same result, seconds apart. With fewer than 4 pages what cannot be told is NaN.

    Args:
        source: The field.
        models: Names, folders or embedders; one is allowed and gives its costs and its shape.
        probes: Questions with the pages that answer them; how well each space finds these, with paired differences.
        load: Gives the embedder of one of *models*.
        backend: What *load* loads them with, to know whether it has them in memory.
        recipes: Which texts of a page are embedded; each is a space of its own.
        dimensions: Lengths to which the vectors are cut, where a model was trained for it.
        k: Neighbours that count as near.
        families: Also find the families of each space and compare them; slow on large fields.
        reviews: Answers about pairs, for the families.
        progress: Show a bar; or a function of pages done and pages to do, called for each space in turn.

    Raises:
        QueryError: No models, an unknown recipe, or a *k* or dimension that is not above 0.
    """
    wanted = _checked_models(models)
    recipes = _checked_recipes(recipes)
    lengths = check_dimensions(dimensions)
    k = _checked_k(k)
    asked = None if probes is None else _checked_probes(probes)
    pages = [page for page in source.pages() if page.name not in SPECIAL_NAMES]
    found = _Found(source, pages, {}, {}, [])
    for model in wanted:
        found.add(model, load, backend, recipes, lengths, progress)
    spaces = _with_common_pages(found)
    kept = {page.name: page for page in pages}
    shapes, likenesses = _measured(spaces, k, progress)
    agreements = _agreements(spaces, kept, reviews, found.notes) if families else {}
    evaluation = None if asked is None or not spaces else _evaluated(source, spaces, asked, k, found.notes)
    if spaces and len(spaces[0].names) < 4:
        found.notes.append("with fewer than 4 pages nothing can be told of how alike spaces are")
    return Comparison(
        spaces=tuple(spaces),
        shapes=tuple(shapes),
        likenesses=likenesses,
        k=k,
        pages={name: kept[name] for name in (spaces[0].names if spaces else ())},
        failed=dict(found.failed),
        notes=tuple(found.notes),
        agreements=agreements,
        evaluation=evaluation,
    )


def _checked_models(models: Any) -> list[Any]:
    if not isinstance(models, Sequence) or isinstance(models, str):
        raise QueryError(f"models is a list, such as ['all-MiniLM-L6-v2', 'hashing-1024']; got {models!r:.80}")
    if not models:
        raise QueryError("models is empty: name at least one, better two")
    plain = [os.fspath(model) if isinstance(model, os.PathLike) else model for model in models]
    kept: list[Any] = []
    for model in plain:
        if not any(model is other or (isinstance(model, str) and model == other) for other in kept):
            kept.append(model)
    return kept


def _checked_recipes(recipes: Any) -> tuple[str, ...]:
    recipes = (recipes,) if isinstance(recipes, str) else tuple(recipes)
    if not recipes:
        raise QueryError("recipes is empty: name at least one, such as 'page'")
    return tuple(dict.fromkeys(check_recipe(recipe) for recipe in recipes))


def _checked_probes(probes: Iterable[Probe]) -> Probes:
    """Return the probes; what is wrong with them is said before anything is embedded."""
    found = probes if isinstance(probes, Probes) else Probes(probes)
    ids = [probe.id for probe in found]
    if not ids or len(set(ids)) < len(ids):
        raise QueryError("there are no probes" if not ids else "two probes have one id; each needs its own")
    return found


def _checked_k(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryError(f"k is {k!r}; a whole number above 0 is expected")
    return k


class _Found:
    """Spaces, failures and notes as they come in."""

    def __init__(
        self,
        source: PageSource,
        pages: Sequence[Page],
        spaces: dict[str, Space],
        failed: dict[str, str],
        notes: list[str],
    ) -> None:
        self.source = source
        self.pages = pages
        self.spaces = spaces
        self.failed = failed
        self.notes = notes

    def add(
        self,
        model: Any,
        load: Load,
        backend: str | None,
        recipes: Sequence[str],
        lengths: tuple[int, ...] | None,
        progress: bool | Callable[[int, int], None],
    ) -> None:
        """Add the spaces of one model; whatever stops it is noted."""
        asked = model if isinstance(model, str) else str(getattr(model, "model_code", type(model).__name__))
        try:
            timed, load_seconds = open_model(model, load, backend)
            cuts, note = shorter_lengths(timed.whole, lengths)
        except Exception as error:
            self.failed[asked] = reason_of(error)
            return
        because = getattr(timed.whole, "chosen_because", "")
        chosen = because if asked == timed.model_code else f"{asked} is {timed.model_code}: {because}"
        self.notes += [text for text in (chosen if because else "", note) if text]
        for recipe in recipes:
            label = space_label(timed.model_code, recipe)
            if label in self.spaces:
                self.notes.append(f"{asked} is {label}, which is compared already")
                continue
            try:
                with ProgressBar(progress) as report:
                    whole = make_space(self.source, self.pages, timed, recipe, load_seconds, report)
                if self.pages and not whole.names:
                    first, why = next(iter(whole.missing.items()))
                    self.failed[label] = f"no page got a usable vector; {first}: {why}"
                    continue
                if recipe == PASSAGES:
                    self.notes.append(f"{label}: likeness is of one vector a page, retrieval of its passages")
                if recipe == PASSAGES and cuts != [whole.dimensions]:
                    self.notes.append(f"{label}: vectors of passages are not cut; compared whole")
                    cut = [whole]
                else:
                    cut = [shortened(whole, length) for length in cuts]
            except Exception as error:
                self.failed[label] = reason_of(error)
                continue
            for space in cut:
                self.spaces[space.label] = space
                self.notes += space.notes


def _with_common_pages(found: _Found) -> list[Space]:
    """Return the spaces with the pages that all of them have, and note those that are left out."""
    spaces = list(found.spaces.values())
    if not spaces:
        return []
    common = sorted(set.intersection(*(set(space.names) for space in spaces)))
    for space in spaces:
        if space.missing:
            names = ", ".join(list(space.missing)[:_MOST_NAMED])
            more = len(space.missing) - _MOST_NAMED
            found.notes.append(
                f"{space.label} has no vector for {len(space.missing)} of the pages, left out everywhere: {names}"
                + (f" and {more} more" if more > 0 else "")
            )
    return [space.only(common) for space in spaces]


def _measured(
    spaces: Sequence[Space], k: int, progress: bool | Callable[[int, int], None]
) -> tuple[list[Shape], dict[tuple[str, str], Likeness]]:
    shapes = []
    total = sum(len(space.names) for space in spaces)
    done = 0
    with ProgressBar(progress if callable(progress) or total > 4000 else False, "comparing") as report:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            if report is not None:
                report(done, total)

        for space in spaces:
            shapes.append(shape_of(space.matrix, k, advance))
    likenesses = {}
    for a, one in enumerate(spaces):
        for b in range(a + 1, len(spaces)):
            other = spaces[b]
            likenesses[one.label, other.label] = likeness_of(one.matrix, other.matrix, (shapes[a], shapes[b]), k)
    return shapes, likenesses


def _agreements(
    spaces: Sequence[Space], pages: Mapping[str, Page], reviews: Reviews | None, notes: list[str]
) -> dict[tuple[str, str], Agreement]:
    """Return how far the families that each space gives agree; a space without families is noted."""
    from memoryfield.curate.families import families

    labels: dict[str, npt.NDArray[np.int64]] = {}
    for space in spaces:
        try:
            found = families(
                [pages[name] for name in space.names],
                space.matrix,
                model_code=space.model_code,
                embedder=space.embedder,
                reviews=reviews,
            )
        except MemoryfieldError as error:
            notes.append(f"no families of {space.label}: {reason_of(error)}")
            continue
        own = np.arange(len(space.names))
        row = {name: number for number, name in enumerate(space.names)}
        for family in found:
            members = [row[name] for name in family.members]
            own[members] = min(members)
        labels[space.label] = own
    ordered = list(labels)
    return {(a, b): family_agreement(labels[a], labels[b]) for n, a in enumerate(ordered) for b in ordered[n + 1 :]}


def _evaluated(
    source: PageSource, spaces: Sequence[Space], probes: Probes, k: int, notes: list[str]
) -> Evaluation | None:
    """Return how well vectors of each space find the answers; a model that cannot embed questions is noted."""
    by_label = {space.label: space for space in spaces}
    name = source.path.name.removesuffix(".zip").removesuffix(".memoryfield")

    def target_of(retriever: str, label: str, recipe: str | None) -> SearchTarget:
        return SearchTarget(name, source, cast("VectorIndex", by_label[label].index), None)

    wanted = [(label, {"retriever": "vector", "model": label, "recipe": by_label[label].recipe}) for label in by_label]
    try:
        return evaluate(target_of, probes, wanted, sorted({1, 3, 5, k}))
    except MemoryfieldError as error:
        notes.append(f"no retrieval: {reason_of(error)}")
        return None


def family_agreement(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> Agreement:
    """Return how far two ways to put pages into families agree.

    Args:
        first: (n_pages,) the family of each page; a page that stands alone has a number of its own.
        second: The same of another space.
    """

    def pairs(*labels: npt.NDArray[np.int64]) -> int:
        _, sizes = np.unique(np.stack(labels), axis=1, return_counts=True)
        return int((sizes * (sizes - 1) // 2).sum())

    together, one, other = pairs(first, second), pairs(first), pairs(second)
    total = len(first) * (len(first) - 1) // 2
    # Hubert and Arabie (1985); two ways without any family agree entirely
    by_chance = one * other / total if total else 0.0
    most = (one + other) / 2
    rand = (together - by_chance) / (most - by_chance) if most != by_chance else 1.0
    return Agreement(rand, 2 * together / (one + other) if one + other else 1.0, one, other)
