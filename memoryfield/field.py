"""MemoryField: the one object people hold. Thin: it opens, remembers which model to use, and delegates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memoryfield.curate.history import keep_history
from memoryfield.display import Table
from memoryfield.errors import ModelNotReady, QueryError, ReadOnlyField, SimilarPageExists
from memoryfield.format.directory import PageDirectory
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.format.pages import PageSource
from memoryfield.progress import ProgressBar

if TYPE_CHECKING:
    import os
    from datetime import date, datetime, timedelta

    import pandas

    from memoryfield.curate.families import Families
    from memoryfield.curate.health import Health
    from memoryfield.curate.history import History
    from memoryfield.curate.mergeplan import MergePlan
    from memoryfield.curate.near import NearDuplicates
    from memoryfield.curate.reviews import Reviews
    from memoryfield.curate.similar import SimilarPages
    from memoryfield.curate.split import SplitPlan
    from memoryfield.curate.stale import StalePages
    from memoryfield.curate.steps import PruneReport, Step, Steps
    from memoryfield.format.archive import ArchiveReport
    from memoryfield.format.fixes import Fixes
    from memoryfield.format.validate import Findings
    from memoryfield.index.embedders import Embedder
    from memoryfield.index.files import IndexState
    from memoryfield.index.keywords import KeywordIndex
    from memoryfield.index.report import SyncReport
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.results import SearchResults
    from memoryfield.retrieve.search import SearchTarget
    from memoryfield.study.layout import Layout

DEFAULT_RETRIEVER = "hybrid"


class MemoryField:
    """A field of pages with its caches, its search and its study. Made by ``open_field``."""

    def __init__(
        self,
        source: PageSource,
        *,
        model: str | Embedder | None = None,
        recipe: str = "page",
        backend: str | None = None,
    ) -> None:
        self._source = source
        self._model = model
        self._recipe = recipe
        self._backend = backend
        self._indexes: dict[tuple[str, str], VectorIndex] = {}
        self._keywords: KeywordIndex | None = None
        self._history = keep_history(source) if isinstance(source, PageDirectory) else None

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The directory or the archive."""
        return self._source.path

    @property
    def name(self) -> str:
        """Name of the directory, or of the archive without its endings."""
        name = self.path.name or self.path.resolve().name
        return name.removesuffix(".zip").removesuffix(".memoryfield")

    @property
    def read_only(self) -> bool:
        """Whether every edit is refused."""
        return self._source.read_only

    def names(self) -> list[str]:
        """Return the names of all pages, sorted."""
        return self._source.names()

    def __len__(self) -> int:
        return len(self.names())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.removesuffix(".md") in self.names()

    def __getitem__(self, name: str) -> Page:
        return self.read(name)

    def read(self, name: str) -> Page:
        """Return one page as it is on disk now.

        Raises:
            PageNotFound: There is none of that name.
        """
        return self._source.read(name)

    def pages(self) -> Iterator[Page]:
        """Yield every page, sorted by name."""
        return self._source.pages()

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``name, title, summary, created, updated, bytes``."""
        import pandas

        rows = [(p.name, p.title, p.summary, p.created, p.updated, p.size) for p in self.pages()]
        return pandas.DataFrame(rows, columns=["name", "title", "summary", "created", "updated", "bytes"])

    def select(
        self,
        where: Mapping[str, Any] | None = None,
        since: str | date | datetime | None = None,
        until: str | date | datetime | None = None,
    ) -> list[str]:
        """Return the names of the pages that pass a filter, sorted; the arguments are those of ``search``."""
        from memoryfield.retrieve.filters import page_filter, passing_pages

        return sorted(passing_pages(page_filter(where, since, until), self._source, self._source.snapshot()))

    def indexes(self) -> list[IndexState]:
        """Return the vector indexes beside the pages and in the cache, with their state."""
        from memoryfield.index.files import find_indexes

        return find_indexes(self._source)

    # --- edits ------------------------------------------------------------------------------------------------------

    def _directory(self) -> PageDirectory:
        if not isinstance(self._source, PageDirectory) or self._source.read_only:
            raise ReadOnlyField(f"{self.path} is read only; import an archive into a directory to edit its pages")
        return self._source

    def write(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        summary: str | None = None,
        body: str = "",
        on_similar: str = "warn",
        **keys: Any,
    ) -> Page:
        """Create a page and return it.

        Args:
            name: Page name; by default made from the title.
            title: Title.
            summary: One line that says what the page holds.
            body: Markdown.
            on_similar: What to do when a page says much the same already: ``warn`` (a ``SimilarPageWarning`` that names
                it; only where the model was used since the field was opened, so that a write never waits for one),
                ``refuse``, or ``ignore``.
            keys: Further frontmatter keys.

        Raises:
            PageExists: A page of that name is there; use ``edit``.
            SimilarPageExists: ``on_similar="refuse"`` and such a page is there; nothing was written.
            InvalidName: No page may have that name.
            ReadOnlyField: The field cannot be written.
            ModelNotReady: ``on_similar="refuse"`` and the model cannot be loaded.
        """
        if on_similar not in ("warn", "refuse", "ignore"):
            raise QueryError(f"on_similar is {on_similar!r}; expected warn, refuse or ignore")
        directory = self._directory()
        if on_similar == "refuse" or (on_similar == "warn" and self._indexes):
            self._check_similar(name, title, summary, body, keys, refuse=on_similar == "refuse")
        return directory.create(name, title=title, summary=summary, body=body, **keys)

    def _check_similar(
        self, name: str | None, title: str | None, summary: str | None, body: str, keys: Mapping[str, Any], refuse: bool
    ) -> None:
        import warnings

        from memoryfield.curate.similar import SimilarPageWarning
        from memoryfield.format.edit import new_page

        draft = Page(name or "draft", new_page(title=title, summary=summary, body=body, **keys))
        found = self.similar(draft)
        if found and refuse:
            raise SimilarPageExists(f"{found.message}; nothing was written: edit that page, or on_similar='ignore'")
        if found:
            warnings.warn(found.message, SimilarPageWarning, stacklevel=3)

    def edit(
        self,
        name: str,
        *,
        title: str | None = None,
        summary: str | None = None,
        keys: Mapping[str, Any] | None = None,
        body: str | None = None,
        append: str | None = None,
        section: tuple[str, str] | None = None,
        if_sha256: str | None = None,
    ) -> Page:
        """Change parts of a page; every other byte stays. Returns the page as it is now.

        Args:
            name: Page name.
            title: New title.
            summary: New summary.
            keys: Frontmatter keys to set; ``None`` as a value removes the key.
            body: New body, in place of all the old.
            append: Text to add at the end.
            section: Heading and new text of one section.
            if_sha256: Write only if the page still has this sha256 (``page.sha256`` of the version that was read).

        Raises:
            PageChanged: The page is not the one that was read.
            FrontmatterError: The frontmatter is broken, or the edit would touch other bytes; says where and why.
            NotEditable: The bytes are not UTF-8, there is no such section, or it is the uuid.
        """
        return self._directory().edit(
            name,
            title=title,
            summary=summary,
            keys=keys,
            body=body,
            append=append,
            section=section,
            if_sha256=if_sha256,
        )

    def put(self, name: str, raw: bytes, *, if_sha256: str | None = None, replace: bool = False) -> Page:
        """Store the whole bytes of a page as they are and return it.

        Args:
            name: Page name.
            raw: The file's bytes, frontmatter included.
            if_sha256: Overwrite only this version of the page.
            replace: Overwrite whatever version is there.

        Raises:
            PageExists: The page is there, and neither *if_sha256* nor *replace* was given.
            PageChanged: The page is not the version of *if_sha256*.
            NotEditable: The page there has another uuid.
        """
        return self._directory().write(name, raw, if_sha256=if_sha256, absent=if_sha256 is None and not replace)

    def rename(self, old: str, new: str) -> Page:
        """Rename a page, rewrite the links to it in all other pages, and return it.

        Raises:
            PageExists: Something is named *new*.
            NotEditable: It is ``index`` or ``listing``, or a link in a page that is not UTF-8 would break.
        """
        self._directory().rename(old, new)
        return self.read(new)

    def delete(self, name: str, *, if_sha256: str | None = None) -> Page:
        """Delete a page and return what it was.

        Raises:
            PageChanged: The page is not the version of *if_sha256*.
            NotEditable: It is ``index`` or ``listing``.
        """
        return self._directory().delete(name, if_sha256=if_sha256)

    def validate(self) -> Findings:
        """Check every page and file; see ``Finding`` for what is reported."""
        from memoryfield.format.validate import validate

        return validate(self._source)

    def plan_fixes(self, reencode: bool | str | None = None) -> Fixes:
        """Return the repairs that need no guessing, as diffs; ``apply()`` them after a look.

        Args:
            reencode: Encoding to read pages in that are not UTF-8, for instance ``"cp1252"``; without it they stay.
        """
        from memoryfield.format.fixes import plan_fixes

        return plan_fixes(self._directory(), reencode=reencode)

    def export(
        self,
        target: str | os.PathLike[str],
        *,
        names: Sequence[str] | None = None,
        indexes: bool | Sequence[str] = False,
    ) -> ArchiveReport:
        """Write the field as a ``.memoryfield.zip`` with a ``.sha256`` file beside it.

        Args:
            target: File to write, ending in ``.zip``; anything else is a directory, made when missing, and gets
                ``NAME.memoryfield.zip``.
            names: Pages to take; all by default.
            indexes: ``True`` for every healthy index, or the file names of some.
        """
        from memoryfield.format.archive import export_archive

        goal = Path(target).expanduser()
        if goal.suffix.lower() != ".zip" and (goal.is_dir() or not goal.exists()):
            goal.mkdir(parents=True, exist_ok=True)
            goal = goal / f"{self.name}.memoryfield.zip"
        if indexes is True:
            healthy = [state.path for state in self.indexes() if state.state == "ok" and state.path.parent == self.path]
            chosen = [path.name for path in healthy]
        else:
            chosen = list(indexes or ())
        return export_archive(self._directory(), goal, pages=names, indexes=chosen)

    # --- caches -----------------------------------------------------------------------------------------------------

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
        with ProgressBar(progress) as report:
            return index.sync(verify=verify, progress=report)

    # --- curation -----------------------------------------------------------------------------------------------------

    def _kept_history(self) -> History:
        if self._history is None:
            raise ReadOnlyField(f"{self.path} is read only and has no history")
        return self._history

    def history(self, page: str | None = None, limit: int | None = None) -> Steps:
        """Return the steps that changed this field, newest first; what other programs changed is no step.

        Args:
            page: Only steps that touched this page.
            limit: Most steps.
        """
        return self._kept_history().steps(page, limit)

    def diff(self, step: int | None = None) -> str:
        """Return what a step changed as a unified diff; the last step by default."""
        return self._kept_history().diff(step)

    def undo(self, step: int | None = None) -> Step:
        """Take a step back, byte for byte; by default the last that is not undone.

        Raises:
            PageChanged: A later change would be lost; the message names the pages and the steps.
            HistoryError: There is nothing to undo, or the step is not known.
        """
        self._directory()
        return self._kept_history().undo(step)

    def redo(self, step: int | None = None) -> Step:
        """Do again what was undone last, or the step given."""
        self._directory()
        return self._kept_history().redo(step)

    def prune_history(
        self, older_than: float | timedelta | datetime | None = None, *, keep_bytes: int | None = None
    ) -> PruneReport:
        """Forget old steps for good, by age (days or a moment) or until the journal is small enough."""
        self._directory()
        return self._kept_history().prune(older_than, keep_bytes=keep_bytes)

    def families(
        self,
        *,
        model: str | Embedder | None = None,
        reviews: Reviews | None = None,
        progress: bool = True,
    ) -> Families:
        """Return the families of pages that say the same, with the evidence for and against each pair.

        What counts as near is learned from the field itself. A field whose pages share topics without repeating one
        another gets families too: answer some of ``families.borderline()`` with ``families.review`` before believing
        them; the answers are kept in your state directory and never asked twice.

        Args:
            model: Model, this field's own by default; vectors are of the recipe ``content``.
            reviews: Answers to use; by default those kept for this field.
            progress: Show a bar while embedding.
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
        )

    def mark_distinct(self, first: str, second: str) -> None:
        """Keep the answer that two pages are not the same, so that they are never put into one family."""
        from memoryfield.curate.reviews import Reviews

        Reviews.load(self.path).answer(self.read(first), self.read(second), same=False)

    def plan_merge(
        self, names: Sequence[str], into: str | None = None, *, rewrite: Callable[[str], str] | None = None
    ) -> MergePlan:
        """Return a plan that makes one page of several: a diff to approve, edit and ``apply()``; it writes nothing yet.

        Every sentence of every page is kept, equal to one that is kept, or dropped by you: ``plan.account()`` says it.

        Args:
            names: The pages, at least two; a family will do.
            into: The page that stays; by default the plan proposes one and says why.
            rewrite: A function of the merged text that smooths its wording; what it loses is shown.

        Raises:
            NotEditable: A page that cannot be merged, such as ``index``; the message says why.
        """
        from memoryfield.curate.merge import plan_merge

        directory = self._directory()
        return plan_merge([directory.read(name) for name in names], into, directory=directory, rewrite=rewrite)

    def plan_split(
        self, name: str, at: str | int, *, new_name: str | None = None, title: str | None = None
    ) -> SplitPlan:
        """Return a plan that makes two pages of one, cut at a heading or a character offset of the body."""
        from memoryfield.curate.split import plan_split

        directory = self._directory()
        return plan_split(directory.read(name), at, directory=directory, new_name=new_name, title=title)

    def similar(self, page: str | Page, *, model: str | Embedder | None = None, limit: int = 10) -> SimilarPages:
        """Return the pages that say much the same as a page of the field, or as one that is not written yet.

        How near is near is taken from how near the pages of this field are to one another, not from a fixed cosine.
        """
        from memoryfield.curate.similar import similar_pages

        index = self.vector_index(model)
        index.sync(verify=False)
        chosen = page if isinstance(page, Page) else self.read(page)
        return similar_pages(chosen, self._source, index.vectors(), index.embedder, recipe=index.recipe, limit=limit)

    def stale(self, days: float = 365) -> StalePages:
        """Return the pages that were not changed for so many days, oldest first."""
        from memoryfield.curate.stale import stale

        return stale(self.pages(), days)

    def health(self, days: float = 365, *, model: str | Embedder | None = None, progress: bool = True) -> Health:
        """Return what a curator should look at: duplicates, stale pages, broken links, secrets and more.

        Without a model that can be loaded, what needs vectors is left out and named in ``not_checked``.
        """
        from memoryfield.curate.health import health

        try:
            vectors = self._vectors(model, None, progress)
        except ModelNotReady:
            return health(self._source, None, days=days)
        return health(self._source, vectors, model_code=vectors.model_code, recipe=vectors.recipe, days=days)

    # --- questions --------------------------------------------------------------------------------------------------

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
        sync: bool = True,
        verify: bool = False,
        progress: bool = True,
    ) -> SearchResults:
        """Return the pages that answer *question*, best first.

        Args:
            question: What a person types; no syntax.
            k: Most hits.
            retriever: ``vector`` (cosine), ``keyword`` (BM25) or ``hybrid`` (reciprocal rank fusion of both).
            model: Model, this field's own by default.
            recipe: Recipe, this field's own by default.
            where: Frontmatter keys with a value, a list of values, or a function of the value.
            since: Earliest date of ``updated`` (else ``created``, else the file's time).
            until: Latest date.
            min_score: Smallest score of the chosen retriever.
            sync: Embed what changed before searching, so that the answer is in step with the disk.
            verify: Read every byte to find what changed, not only times and sizes.
            progress: Show a bar while embedding.

        Raises:
            ModelNotReady: The model cannot be loaded; ``retriever="keyword"`` needs none.
            QueryError: A setting that makes no sense.
        """
        from memoryfield.retrieve.search import search

        target = self.search_target(retriever, model=model, recipe=recipe)
        with ProgressBar(progress and sync) as report:
            return search(
                [target],
                question,
                k=k,
                retriever=retriever,
                where=where,
                since=since,
                until=until,
                min_score=min_score,
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

    def near_duplicates(
        self,
        threshold: float = 0.8,
        *,
        model: str | Embedder | None = None,
        recipe: str | None = None,
        progress: bool = True,
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
        progress: bool = True,
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
            progress: Show a bar while embedding.
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

    def _vectors(self, model: str | Embedder | None, recipe: str | None, progress: bool) -> _PageVectors:
        """Vectors of the ordinary pages, in step with the disk."""
        index = self.vector_index(model, recipe)
        with ProgressBar(progress) as report:
            index.sync(verify=False, progress=report)
        vectors = index.vectors()
        kept = [i for i, name in enumerate(vectors.names) if name not in SPECIAL_NAMES]
        names = tuple(vectors.names[i] for i in kept)
        # not copied without need: the matrix of a large field is large
        matrix = vectors.matrix if len(kept) == len(vectors.names) else vectors.matrix[kept]
        return _PageVectors(names, matrix, index.model_code, index.recipe)

    # --- housekeeping -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Forget what is held in memory. Nothing on disk stays open between calls."""
        self._indexes.clear()
        self._keywords = None

    def __enter__(self) -> MemoryField:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def overview(self) -> Table:
        """Return what ``repr`` shows: pages, bytes, indexes with their state, findings."""
        from memoryfield.index.files import describe_index

        snapshot = self._source.snapshot()
        total = sum(entry.size for entry in snapshot.entries.values())
        count = len(snapshot.entries)
        findings = self.validate()
        levels = {level: sum(1 for f in findings if f.level == level) for level in ("error", "warning", "info")}
        heading = f"{self.name}: {count} {'page' if count == 1 else 'pages'}, {total:,} bytes"
        if self.read_only:
            heading += ", read only"
        rows = [describe_index(state, snapshot) for state in self.indexes()]
        notes = [str(self.path)]
        if not rows:
            notes.append("no vector index yet; sync() makes one")
        noted = ", ".join(f"{n} {level}{'s' if n != 1 and level != 'info' else ''}" for level, n in levels.items() if n)
        notes.append(f"findings: {noted}; validate() lists them" if noted else "findings: none")
        return Table(
            heading,
            ["index", "model", "recipe", "dim", "rows", "state", "written"],
            rows,
            notes,
            frozenset({"dim", "rows"}),
        )

    def __repr__(self) -> str:
        return self.overview().text()

    def _repr_html_(self) -> str:
        return self.overview().html()


@dataclass(frozen=True)
class _PageVectors:
    names: tuple[str, ...]
    matrix: Any
    model_code: str
    recipe: str


def _described(page: Page) -> dict[str, str]:
    keys = {key: value for key, value in page.frontmatter.items() if isinstance(value, str)}
    return {**keys, "title": page.title, "summary": page.summary}
