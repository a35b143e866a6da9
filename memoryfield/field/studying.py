"""Learning about a field and about models."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoryfield.display import Table
from memoryfield.errors import MemoryfieldError
from memoryfield.field.curation import FieldCuration
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.progress import ProgressBar

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder
    from memoryfield.retrieve.search import SearchTarget
    from memoryfield.study.comparison.comparison import Comparison
    from memoryfield.study.evaluation.evaluate import GateLike, RetrieverLike
    from memoryfield.study.evaluation.evaluation import Evaluation
    from memoryfield.study.evaluation.groups import GroupsLike
    from memoryfield.study.layout import Layout
    from memoryfield.study.probes.probe import Probe
    from memoryfield.study.report import Report, Section


class FieldStudies(FieldCuration):
    """A field that can be mapped and measured."""

    def layout(
        self,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        method: str = "auto",
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        random_state: int = 42,
        engine: str = "umap-learn",
        after: Layout | None = None,
        describe: bool = True,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Layout:
        """Return a map of the pages: PCA below 15 pages, else UMAP; the same input gives the same map.

        Args:
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            method: ``auto``, ``pca`` or ``umap``.
            n_neighbors: UMAP's balance of local against global structure.
            min_dist: UMAP's smallest distance of points.
            random_state: Seed.
            engine: ``umap-learn``, or ``fastumap`` where installed.
            after: An earlier map: its pages stay where they are, new and changed ones are placed among their nearest.
            describe: Read the pages for titles and keys; without it a figure shows names only.
            progress: Show a bar while embedding; or a function of pages done and pages to do.
        """
        from memoryfield.study.layout import layout

        vectors = self._vectors(model, recipe, progress)
        return layout(
            vectors.names,
            vectors.matrix,
            model_code=vectors.model_code,
            recipe=vectors.recipe,
            method=method,
            n_neighbors=n_neighbors,
            min_dist=min_dist,
            random_state=random_state,
            engine=engine,
            pages={page.name: _described(page) for page in self.pages()} if describe else None,
            after=after,
            left_out=vectors.left_out,
        )

    def evaluate(
        self,
        probes: Iterable[Probe] | str | os.PathLike[str],
        retrievers: Sequence[RetrieverLike] = ("vector", "keyword", "hybrid"),
        ks: Sequence[int] = (1, 3, 5, 10),
        *,
        families: GroupsLike | None = None,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        gate: float | GateLike | Mapping[str, float | GateLike] | None = None,
        depth: int = 100,
        timed: int = 20,
        resamples: int = 2000,
        confidence: float = 0.95,
        seed: int = 0,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Evaluation:
        """Return how well search surfaces the pages that answer the probes, with intervals.

        Args:
            probes: ``mf.read_probes(path)``, or the path. Unanswerable ones tell how well answers can be told from
                none: recall and ranks are of the others.
            retrievers: ``vector``, ``keyword``, ``hybrid``, ``hashed`` (vectors of hashed words, a baseline), or a
                label with settings: ``("content", {"retriever": "vector", "recipe": "content", "model": ...})``.
            ks: For recall@k. A k above the number of pages gives the share that was found at all.
            families: Pages that say the same, for the family figures: ``field.families()``, a mapping of page names
                to families, or a CSV file with the columns ``page`` and ``family``.
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            gate: What says that nothing here answers a question: a gate of the field, or a score of the retriever;
                one for all retrievers, or a mapping by label. By default, where there are unanswerable probes, the
                score that keeps 90 % of the answerable ones.
            depth: How many pages of each ranking are looked at; a gold page further down is not found.
            timed: How many probes are also asked one by one, for the times.
            resamples: Resamples of the bootstrap.
            confidence: Of the intervals.
            seed: Of the bootstrap and the tests.
            progress: Show a bar while pages are embedded; or a function of pages done and pages to do.

        Raises:
            QueryError: No probes, two of one id, no such retriever, or a setting out of range.
            RowError: The file of probes or families cannot be read; says which line.
            ModelNotReady: A model cannot be loaded; ``keyword`` needs none.
        """
        from memoryfield.study.evaluation.evaluate import evaluate
        from memoryfield.study.probes.files import read_probes

        asked = read_probes(probes) if isinstance(probes, (str, os.PathLike)) else probes

        def target_of(retriever: str, own_model: Any, own_recipe: str | None) -> SearchTarget:
            wanted = model if own_model is None else own_model
            return self.search_target(retriever, model=wanted, recipe=own_recipe or recipe)

        with ProgressBar(progress) as report:
            return evaluate(
                target_of,
                asked,
                retrievers,
                ks,
                families=families,
                gate=gate,
                depth=depth,
                timed=timed,
                resamples=resamples,
                confidence=confidence,
                seed=seed,
                progress=report,
            )

    def compare(
        self,
        models: Sequence[str | os.PathLike[str] | Embedder],
        probes: Iterable[Probe] | str | os.PathLike[str] | None = None,
        *,
        recipes: Sequence[str] | None = None,
        dimensions: Sequence[int] | None = None,
        k: int = 10,
        families: bool = False,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Comparison:
        """Compare embedding models on this field: where their spaces agree, where not, and what each costs.

        Each space's index is kept, so that an interrupted comparison goes on where it stopped. A model that fails
        stands in ``failed`` of the result and the others go on.

        Args:
            models: Names, folders or embedders, such as ``["all-MiniLM-L6-v2", "hashing-1024"]``.
            probes: ``mf.read_probes(path)``, or the path: how well each space finds the answers, with intervals and
                paired differences.
            recipes: Recipes to compare, this field's own by default.
            dimensions: Lengths to cut the vectors to, for models that were trained for it (nomic: 768, 512, 256, 128
                and 64); the others stay whole and a note says so.
            k: Neighbours that count as near.
            families: Also find the families of each space and say how far they agree; slow on large fields.
            progress: Show a bar while embedding; or a function of pages done and pages to do, for each space in turn.

        Raises:
            QueryError: No models, an unknown recipe, or a *k* or dimension that is not above 0.
        """
        from memoryfield.curate.reviews import Reviews
        from memoryfield.study.comparison.compare import compare
        from memoryfield.study.probes.files import read_probes

        return compare(
            self._source,
            models,
            read_probes(probes) if isinstance(probes, (str, os.PathLike)) else probes,
            load=self.embedder,
            backend=self._backend,
            recipes=(self._recipe,) if recipes is None else recipes,
            dimensions=dimensions,
            k=k,
            families=families,
            reviews=Reviews.load(self.path) if families else None,
            progress=progress,
        )

    def report(
        self,
        *,
        model: str | Embedder | None = None,
        models: Sequence[str | os.PathLike[str] | Embedder] = ("hashing-1024",),
        probes: Iterable[Probe] | str | os.PathLike[str] | None = None,
        told: Callable[[Section], object] = lambda _section: None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Report:
        """Return a report on the field: overview, health, map, families, comparison of models, evaluation.

        A part that cannot be made says why, and the others stand. ``save(path)`` writes one HTML page to be mailed: it
        names no directory of this machine, and it warns where it shows what looks like a secret.

        Args:
            model: Model, this field's own by default.
            models: Further models to compare it with; none leaves the comparison out.
            probes: ``mf.read_probes(path)``, or the path; without them the evaluation is left out.
            told: Called with each section when it is made.
            progress: Show bars while embedding.
        """
        from memoryfield.study.familyview import FamilyView
        from memoryfield.study.report import make_report

        def in_step() -> Table:
            with contextlib.suppress(MemoryfieldError):  # what needs vectors says why there are none
                self._vectors(model, None, progress)
            return self.overview(place=False)

        special = [f"{name}.md" for name in sorted(SPECIAL_NAMES) if name in self]
        # every other number of pages in the report is smaller by these
        apart = (
            f" {' and '.join(special)}, about the other pages, {'are' if special[1:] else 'is'} not compared."
            if special
            else ""
        )
        parts: list[tuple[str, str, Callable[[], Any]]] = [
            ("Overview", "What is in the field, its indexes and their state.", in_step),
            (
                "Health",
                "What a curator should look at, and what to do about each. Nothing was changed.",
                lambda: self.health(model=model, progress=progress),
            ),
            (
                "Map",
                "Each point is a page; pages that say similar things lie close. A map is a place to start looking: "
                "distances between far groups mean little.",
                lambda: self.layout(model=model, progress=progress),
            ),
            (
                "Families",
                f"Pages that seem to say the same. Each is a proposal: nothing is merged without a person.{apart}",
                lambda: FamilyView(self.families(model=model, progress=progress), self.read),
            ),
        ]
        if models:
            parts.append(
                (
                    "Models",
                    f"How far embedding models agree on which pages are neighbours, and what each costs.{apart}",
                    lambda: self.compare([self.embedder(model), *models], probes, progress=progress),
                )
            )
        if probes is not None:
            parts.append(
                (
                    "Retrieval",
                    "How often search surfaces a page that answers, over questions whose answers are known.",
                    lambda: self.evaluate(probes, model=model, progress=progress),
                )
            )
        files = [value for value in (probes, model, *models) if isinstance(value, (str, os.PathLike))]
        return make_report(f"Report on {self.name}", parts, told, private=[self.path, *files])


def _described(page: Page) -> dict[str, str]:
    keys = {key: value for key, value in page.frontmatter.items() if isinstance(value, str)}
    return {**keys, "title": page.title, "summary": page.summary}
