"""Where people start: open a field, bring one in, search several at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.errors import FieldNotFound, QueryError
from memoryfield.examples import EXAMPLES, example_field
from memoryfield.field import DEFAULT_RETRIEVER, MemoryField
from memoryfield.format.directory import PageDirectory
from memoryfield.format.nearnames import did_you_mean
from memoryfield.progress import ProgressBar
from memoryfield.stores.opening import is_address, open_source

if TYPE_CHECKING:
    from datetime import date, datetime

    from memoryfield.exchange.plan import ImportPlan
    from memoryfield.format.importing import ImportReport
    from memoryfield.index.embedders import Embedder
    from memoryfield.retrieve.results import SearchResults


def open_field(
    path: str | os.PathLike[str],
    create: bool = False,
    *,
    model: str | Embedder | None = None,
    recipe: str = "page",
    backend: str | None = None,
    who: str | None = None,
) -> MemoryField:
    """Open a memoryfield.

    Args:
        path: A directory; a ``.memoryfield.zip``, which is read in place and never written; or the address of a field
            that lives elsewhere: ``https://host/field`` (a server of memoryfields), ``s3://bucket/prefix``,
            ``git+file://PATH@REVISION`` (read only), or anything else that fsspec reads (read only).
        create: Make the directory when it is missing.
        model: Embedding model to use: a code of ``models()``, ``"auto"``, a sentence-transformers id or folder, or an
            embedder. By default ``$MEMORYFIELD_MODEL``, else ``nomic-embed-text-v1.5``. It is loaded when first needed.
        recipe: What of a page is embedded: ``page`` (the whole file, as the format specifies) or ``content``.
        backend: ``torch``, or a faster one; by default the fastest exact one that is installed.
        who: Who makes changes, for the history; by default the name of the user.

    Raises:
        FieldNotFound: Nothing is there, or no directory and no archive.
        ArchiveError: The archive is refused.
        StoreError: The place elsewhere does not answer, or not as a field would.
    """
    place = path if is_address(path) else Path(path).expanduser()
    try:
        source = open_source(place, create)
    except FieldNotFound as error:
        raise FieldNotFound(f"{error}{_meant(place)}") from None
    return MemoryField(source, model=model, recipe=recipe, backend=backend, who=who)


def _meant(place: str | os.PathLike[str]) -> str:
    """Return the end of a message that names fields which may have been meant, or an empty text."""
    path = Path(place)
    if is_address(place) or path.exists():
        return ""
    if path.name in EXAMPLES:
        with contextlib.suppress(FieldNotFound):
            return f"; the example of that name is {example_field(path.name)}"
    try:
        beside = [entry.name for entry in os.scandir(path.parent) if entry.is_dir() or entry.name.endswith(".zip")]
    except OSError:
        return ""
    return did_you_mean(path.name, [name for name in beside if not name.startswith(".")])


def search_fields(
    fields: Sequence[MemoryField],
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
    """Search several fields at once; each hit says which field it is from. See ``MemoryField.search``."""
    from memoryfield.retrieve.search import search

    targets = [field.search_target(retriever, model=model, recipe=recipe) for field in fields]
    with ProgressBar(progress and sync) as report:
        return search(
            targets,
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


def import_field(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    kind: str = "auto",
    dry_run: bool = False,
) -> ImportReport | ImportPlan:
    """Bring pages in: an archive, the pages of another field, or memories from elsewhere.

    Memories from elsewhere are a vault or any folder of Markdown with folders in it, a ``MEMORY.md`` (cut at its
    headings), JSON or JSON lines of facts, and the conversations that ChatGPT or Claude exported. A second run adds
    nothing; a page that was edited here is never overwritten.

    Args:
        source: A ``.memoryfield.zip``, a folder, or a file of one of the kinds above.
        target: For an archive a directory that is not there yet; for all else the field that receives the pages, made
            when missing. A page that is there already in another version is a conflict and left alone.
        sha256: Digest that the archive must have; by default that of its side file, where there is one.
        kind: ``field`` (archives and flat folders of pages), ``vault``, ``memory-file``, ``records`` or
            ``conversations``; ``auto`` looks.
        dry_run: Write nothing, only say what would be done.

    Raises:
        ChecksumMismatch: The archive has another digest.
        ArchiveError: The archive is damaged or hostile, or the target is in use.
        QueryError: A digest for what has none, or a source of no known kind.
    """
    from memoryfield.curate.history import keep_history
    from memoryfield.exchange.detect import is_field
    from memoryfield.exchange.plan import plan_import
    from memoryfield.format.importing import import_archive, import_pages, plan_pages

    path = Path(source).expanduser()
    if kind == "auto" and is_field(path):
        kind = "field"
    if sha256 is not None and (kind != "field" or path.is_dir()):
        raise QueryError("only an archive has a sha256; give none, or an archive")
    if kind != "field":
        plan = plan_import(path, target, kind)
        return plan if dry_run else plan.apply()
    if path.is_dir():
        if dry_run:
            return plan_pages(PageDirectory(source), target)
        directory = PageDirectory(target, create=True)
        keep_history(directory)
        return import_pages(PageDirectory(source), directory)
    return import_archive(source, target, sha256=sha256, dry_run=dry_run)
