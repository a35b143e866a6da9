"""Keeping a field clean: families, merges, splits, similar and stale pages, health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memoryfield.errors import MemoryfieldError, ModelNotReady, SimilarPageExists
from memoryfield.field.indexes import FieldIndexes
from memoryfield.format.page import Page
from memoryfield.progress import ProgressBar

if TYPE_CHECKING:
    from memoryfield.curate.families import Families
    from memoryfield.curate.health import Health
    from memoryfield.curate.mergeplan import MergePlan
    from memoryfield.curate.reviews import Reviews
    from memoryfield.curate.similar import SimilarPages
    from memoryfield.curate.split import SplitPlan, SplitResult
    from memoryfield.curate.stale import StalePages
    from memoryfield.index.embedders import Embedder


class FieldCuration(FieldIndexes):
    """A field whose pages can be compared, merged and split."""

    def families(
        self,
        *,
        model: str | Embedder | None = None,
        reviews: Reviews | None = None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Families:
        """Return the families of pages that say the same, with the evidence for and against each pair.

        What counts as near is learned from the field itself. A field whose pages share topics without repeating one
        another gets families too: answer some of ``families.borderline()`` with ``families.review`` before believing
        them; the answers are kept in your state directory and never asked twice.

        Args:
            model: Model, this field's own by default; vectors are of the recipe ``content``.
            reviews: Answers to use; by default those kept for this field.
            progress: Show a bar while embedding; or a function of pages done and pages to do.
        """
        from memoryfield.curate.families import families
        from memoryfield.curate.reviews import Reviews

        index = self.vector_index(model, "content")
        with ProgressBar(progress) as report:
            index.sync(verify=False, progress=report)
        vectors = index.vectors()
        return families(
            [self.read(name) for name in vectors.names],
            vectors.matrix,
            embedder=index.embedder,
            model_code=index.model_code,
            reviews=reviews if reviews is not None else Reviews.load(self.path),
            planner=self._plan_family,
        )

    def _plan_family(
        self, members: Sequence[str], into: str | None, medoid: str, rewrite: Callable[[str], str] | None
    ) -> MergePlan:
        from memoryfield.curate.merge import plan_merge

        directory = self._editable()
        pages = [self.read(name) for name in members]
        plan = plan_merge(pages, into, directory=directory, medoid=medoid, rewrite=rewrite)
        return replace(plan, afterwards=self._embed_again)

    def _embed_again(self) -> None:
        """Bring the indexes that were used up to date, as far as that can be done now; a search does it as well."""
        for index in list(self._indexes.values()):
            with suppress(MemoryfieldError):
                index.sync(verify=False)

    def mark_distinct(self, first: str, second: str) -> None:
        """Keep the answer that two pages are not the same, so that they are never put into one family."""
        from memoryfield.curate.reviews import Reviews

        Reviews.load(self.path).answer(self.read(first), self.read(second), same=False)

    def plan_merge(
        self, names: Sequence[str], into: str | None = None, *, rewrite: Callable[[str], str] | None = None
    ) -> MergePlan:
        """Return a plan that makes one page of several: a diff to approve, edit and ``apply()``; it writes nothing yet.

        Every sentence of every page is kept, equal to one that is kept, or dropped by you: ``plan.account()`` says it.
        A heading is left out where all that stood under it stands elsewhere; the plan names each.

        Args:
            names: The pages, at least two; a family will do.
            into: The page that stays; by default the plan proposes one and says why.
            rewrite: A function of the merged text that smooths its wording; what it loses is shown.

        Raises:
            NotEditable: A page that cannot be merged, such as ``index``; the message says why.
        """
        from memoryfield.curate.merge import plan_merge

        directory = self._editable()
        plan = plan_merge([self.read(name) for name in names], into, directory=directory, rewrite=rewrite)
        return replace(plan, afterwards=self._embed_again)

    def plan_split(
        self, name: str, at: str | int, *, new_name: str | None = None, title: str | None = None
    ) -> SplitPlan:
        """Return a plan that makes two pages of one, cut at a heading or a character offset of the body."""
        from memoryfield.curate.split import plan_split

        directory = self._editable()
        return plan_split(self.read(name), at, directory=directory, new_name=new_name, title=title)

    def split(self, name: str, at: str | int, *, new_name: str | None = None, title: str | None = None) -> SplitResult:
        """Make two pages of one, as one step: what ``plan_split`` proposes, at once; ``undo`` takes it back.

        Raises:
            QueryError: No such heading, several, or one of the two pages would be empty.
            NotEditable: The page cannot be split, such as ``index``; the message says why.
        """
        return self.plan_split(name, at, new_name=new_name, title=title).apply()

    def similar(self, page: str | Page, *, model: str | Embedder | None = None, limit: int = 10) -> SimilarPages:
        """Return the pages that say much the same as a page of the field, or as one that is not written yet.

        How near is near is taken from how near the pages of this field are to one another, not from a fixed cosine, and
        from your answers: pairs that you marked as distinct are not named. Vectors of the recipe ``content`` are used
        where there are any (``families`` makes them), since they see no keys that only machines read; else the field's.
        """
        from memoryfield.curate.reviews import Reviews
        from memoryfield.curate.similar import similar_pages

        own = self.vector_index(model)
        content = self.vector_index(model, "content")
        index = content if content.path.exists() else own
        index.sync(verify=False)
        return similar_pages(
            page if isinstance(page, Page) else self.read(page),
            self._source,
            index.vectors(),
            index.embedder,
            recipe=index.recipe,
            limit=limit,
            reviews=Reviews.load(self.path),
        )

    def stale(self, days: float = 365) -> StalePages:
        """Return the pages that were not changed for so many days, oldest first."""
        from memoryfield.curate.stale import stale

        return stale(self.pages(), days)

    def health(
        self,
        days: float = 365,
        *,
        model: str | Embedder | None = None,
        progress: bool | Callable[[int, int], None] = True,
    ) -> Health:
        """Return what a curator should look at: duplicates, stale pages, broken links, secrets and more.

        Without a model that can be loaded, what needs vectors is left out and named in ``not_checked``.
        """
        from memoryfield.curate.health import health

        try:
            found = self.families(model=model, progress=progress)
        except ModelNotReady:
            return health(self._source, days=days)
        vectors = self._vectors(model, "content", False)
        return health(self._source, vectors, found, model_code=vectors.model_code, recipe=vectors.recipe, days=days)

    def _check_similar(self, draft: Page, refuse: bool) -> None:
        if not refuse and not self._indexes:
            return  # a write never waits for a model to load
        import warnings

        from memoryfield.curate.similar import SimilarPageWarning

        found = self.similar(draft)
        if found and refuse:
            raise SimilarPageExists(f"{found.message}; nothing was written")
        if found:
            warnings.warn(found.message, SimilarPageWarning, stacklevel=3)
