"""The pages of a field: what is there, reading, editing, checking, exporting, and the history of the edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.advice import advice
from memoryfield.curate.history import history_of
from memoryfield.display import Table, counted
from memoryfield.errors import PageNotFound, QueryError, ReadOnlyField
from memoryfield.format.directory import PageDirectory
from memoryfield.format.edit import new_page
from memoryfield.format.nearnames import did_you_mean
from memoryfield.format.page import Page
from memoryfield.format.pages import PageSource
from memoryfield.format.verbs import PageVerbs
from memoryfield.stores.pages import StorePages, source_notes

if TYPE_CHECKING:
    import os
    from datetime import date, datetime, timedelta

    import pandas

    from memoryfield.curate.editing import EditPlan
    from memoryfield.curate.history import History
    from memoryfield.curate.steps import PruneReport, Step, Steps
    from memoryfield.format.archive import ArchiveReport
    from memoryfield.format.fixes import Fixes
    from memoryfield.format.validate import Findings
    from memoryfield.index.files import IndexState


_NO_DIRECTORY = frozenset([".md", ".txt", ".json", ".jsonl", ".html", ".tar", ".gz", ".tgz", ".7z", ".sha256"])


class FieldPages:
    """What a field can do without any model."""

    def __init__(self, source: PageSource, *, who: str | None = None) -> None:
        self._source = source
        self._history = history_of(source, who=who)

    @property
    def path(self) -> Path:
        """The directory or the archive; of a field elsewhere what stands for it, and nothing is at it."""
        return self._source.path

    @property
    def place(self) -> str:
        """Where the field lives: the path, or the address (without credentials) of one that lives elsewhere."""
        return self._source.place if isinstance(self._source, StorePages) else str(self.path)

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
            PageNotFound: There is none of that name; the message names those that are like it.
        """
        try:
            return self._source.read(name)
        except PageNotFound as error:
            raise PageNotFound(f"{error}{did_you_mean(name, self.names())}") from None

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

    # --- edits --------------------------------------------------------------------------------------------------------

    def _directory(self) -> PageDirectory:
        if not isinstance(self._source, PageDirectory) or self._source.read_only:
            if isinstance(self._source, StorePages) and not self._source.read_only:
                raise ReadOnlyField(
                    f"{self.place} lives elsewhere; for this, pull it into a directory, then push it back"
                )
            raise ReadOnlyField(f"{self.place} is read only; import an archive into a directory to edit its pages")
        return self._source

    def _editable(self) -> PageVerbs:
        """Return what single pages are written through, also where the field lives elsewhere."""
        if isinstance(self._source, StorePages) and not self._source.read_only:
            return self._source
        return self._directory()

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
        directory = self._editable()
        if on_similar != "ignore":
            draft = Page(name or "draft", new_page(title=title, summary=summary, body=body, **keys))
            self._check_similar(draft, refuse=on_similar == "refuse")
        return directory.create(name, title=title, summary=summary, body=body, **keys)

    def _check_similar(self, draft: Page, refuse: bool) -> None:
        """Warn of pages that say the same as a draft, or refuse it; only a field with a model can tell."""

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
        return self._editable().edit(
            name,
            title=title,
            summary=summary,
            keys=keys,
            body=body,
            append=append,
            section=section,
            if_sha256=if_sha256,
        )

    def plan_edit(
        self,
        page: str | Page,
        *,
        raw: bytes | None = None,
        text: str | None = None,
        title: str | None = None,
        summary: str | None = None,
        keys: Mapping[str, Any] | None = None,
        body: str | None = None,
    ) -> EditPlan:
        """Return what an edit would make of a page: a diff to look at and ``apply()``; it writes nothing yet.

        Args:
            page: Page name; or a version that was read before, and then only that version will be overwritten.
            raw: All the new bytes, as they are; no other change goes with it.
            text: The whole new text, frontmatter included; lines that stay keep their line ends.
            title: New title.
            summary: New summary.
            keys: Frontmatter keys to set; ``None`` as a value removes the key.
            body: New body.

        Raises:
            FrontmatterError: The frontmatter is broken, or the edit would touch other bytes; says where and why.
            NotEditable: The bytes are not UTF-8, or the uuid would change.
        """
        from memoryfield.curate.editing import plan_edit

        directory = self._editable()
        chosen = page if isinstance(page, Page) else directory.read(page)
        return plan_edit(chosen, directory, raw=raw, text=text, title=title, summary=summary, keys=keys, body=body)

    def draft(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        summary: str | None = None,
        body: str = "",
        **keys: Any,
    ) -> Page:
        """Return a page as ``write`` would create it; nothing is written, ``put(page.name, page.raw)`` does that.

        Raises:
            InvalidName: No new page may have that name, or none is given and the title makes none.
        """
        from memoryfield.format.names import new_page_name, slug

        chosen = new_page_name(name if name is not None else slug(title or "", self.names()))
        return Page(chosen, new_page(title=title, summary=summary, body=body, **keys))

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
        return self._editable().write(name, raw, if_sha256=if_sha256, absent=if_sha256 is None and not replace)

    def rename(self, old: str, new: str, *, force: bool = False) -> Page:
        """Rename a page, rewrite the links to it in all other pages, and return it.

        Args:
            old: Page name.
            new: New page name.
            force: Rename ``index`` or ``listing`` too.

        Raises:
            PageExists: Something is named *new*.
            NotEditable: It is ``index`` or ``listing``, or a link in a page that is not UTF-8 would break.
        """
        self._editable().rename(old, new, force=force)
        return self.read(new)

    def delete(self, name: str, *, if_sha256: str | None = None, force: bool = False) -> Page:
        """Delete a page and return what it was.

        Args:
            name: Page name.
            if_sha256: Delete only this version of the page.
            force: Delete ``index`` or ``listing`` too.

        Raises:
            PageChanged: The page is not the version of *if_sha256*.
            NotEditable: It is ``index`` or ``listing``.
        """
        return self._editable().delete(name, if_sha256=if_sha256, force=force)

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
        on_secrets: str = "warn",
    ) -> ArchiveReport:
        """Write the field as a ``.memoryfield.zip`` with a ``.sha256`` file beside it.

        Args:
            target: File to write, ending in ``.zip``; anything else is a directory, made when missing, and gets
                ``NAME.memoryfield.zip``.
            names: Pages to take; all by default.
            indexes: ``True`` for every healthy index, or the file names of some.
            on_secrets: What to do when pages hold what looks like keys or passwords: ``warn`` (a ``SecretWarning``
                that names the places), ``refuse`` or ``ignore``.

        Raises:
            SecretsFound: ``on_secrets="refuse"`` and there are such places; nothing was written.
        """
        self._check_secrets(names, on_secrets)
        from memoryfield.format.archive import export_archive

        goal = Path(target).expanduser()
        if goal.suffix.lower() in _NO_DIRECTORY and not goal.is_dir():
            how = advice(python="export_as writes", command="--form writes")
            raise QueryError(
                f"{goal.name}: an archive ends in .zip, a directory for it has no such ending; {how} others"
            )
        if goal.suffix.lower() != ".zip" and (goal.is_dir() or not goal.exists()):
            goal.mkdir(parents=True, exist_ok=True)
            goal = goal / f"{self.name}.memoryfield.zip"
        if indexes is True:
            healthy = [state.path for state in self.indexes() if state.state == "ok" and state.path.parent == self.path]
            chosen = [path.name for path in healthy]
        else:
            chosen = list(indexes or ())
        return export_archive(self._directory(), goal, pages=names, indexes=chosen)

    def export_as(
        self,
        form: str,
        target: str | os.PathLike[str],
        *,
        names: Sequence[str] | None = None,
        on_secrets: str = "warn",
    ) -> Path:
        """Write the pages in the form of another program and return where; nothing there is overwritten.

        Args:
            form: ``vault`` (a folder of Markdown files), ``memory-file`` (one Markdown file, in the order of the key
                ``position``, then by name; titles and texts, the rest of the frontmatter stays behind) or ``records``
                (JSON lines).
            target: Folder or file to make.
            names: Pages to take; all by default.
            on_secrets: As in ``export``.

        Raises:
            ArchiveError: The target is there already.
            SecretsFound: ``on_secrets="refuse"`` and pages hold what looks like keys or passwords.
        """
        from memoryfield.exchange.outward import write_form

        self._check_secrets(names, on_secrets)
        chosen = self.pages() if names is None else (self.read(name) for name in names)
        return write_form(chosen, target, form)

    def _check_secrets(self, names: Sequence[str] | None, on_secrets: str) -> None:
        from memoryfield.exchange.outward import heed_secrets, secrets_in

        heed_secrets(
            lambda: secrets_in(self.pages() if names is None else (self.read(name) for name in names)), on_secrets
        )

    # --- history ------------------------------------------------------------------------------------------------------

    def _kept_history(self) -> History:
        if self._history is None:
            raise ReadOnlyField(f"{self.place} has no history here: it is read only")
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
        self._editable()
        return self._kept_history().undo(step)

    def redo(self, step: int | None = None) -> Step:
        """Do again what was undone last, or the step given."""
        self._editable()
        return self._kept_history().redo(step)

    def prune_history(
        self, older_than: float | timedelta | datetime | None = None, *, keep_bytes: int | None = None
    ) -> PruneReport:
        """Forget old steps for good, by age (days or a moment) or until the journal is small enough."""
        self._editable()
        return self._kept_history().prune(older_than, keep_bytes=keep_bytes)

    # --- how it shows -------------------------------------------------------------------------------------------------

    def overview(self, *, place: bool = True) -> Table:
        """Return what ``repr`` shows: pages, bytes, indexes with their state, findings.

        Args:
            place: Also say where the field lives.
        """
        from memoryfield.index.files import describe_index

        snapshot = self._source.snapshot()
        total = sum(entry.size for entry in snapshot.entries.values())
        count = len(snapshot.entries)
        findings = self.validate()
        levels = {level: sum(1 for f in findings if f.level == level) for level in ("error", "warning", "info")}
        heading = f"{self.name}: {counted(count, 'page')}, {counted(total, 'byte')}"
        if self.read_only:
            heading += ", read only"
        rows = [describe_index(state, snapshot) for state in self.indexes()]
        notes = [self.place, *source_notes(self._source)] if place else []
        if not rows:
            how = advice(python="sync() makes", command="memoryfield index FIELD --model auto makes")
            notes.append(f"no vector index yet; {how} one")
        noted = ", ".join(f"{n} {level}{'s' if n != 1 and level != 'info' else ''}" for level, n in levels.items() if n)
        how = advice(python="validate() lists", command="memoryfield validate FIELD lists")
        notes.append(f"findings: {noted}; {how} them" if noted else "findings: none")
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
