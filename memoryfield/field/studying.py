"""Learning about a field and about models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memoryfield.field.curation import FieldCuration
from memoryfield.format.page import Page

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder
    from memoryfield.study.layout import Layout


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
            pages={page.name: _described(page) for page in self.pages()},
        )


def _described(page: Page) -> dict[str, str]:
    keys = {key: value for key, value in page.frontmatter.items() if isinstance(value, str)}
    return {**keys, "title": page.title, "summary": page.summary}
