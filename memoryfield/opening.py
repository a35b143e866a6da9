"""Where people start: open a field, bring one in, search several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.errors import QueryError
from memoryfield.field import DEFAULT_RETRIEVER, MemoryField
from memoryfield.format.directory import PageDirectory
from memoryfield.format.pages import open_pages
from memoryfield.progress import ProgressBar

if TYPE_CHECKING:
    import os
    from datetime import date, datetime

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
) -> MemoryField:
    """Open a memoryfield.

    Args:
        path: A directory, or a ``.memoryfield.zip``, which is read in place and never written.
        create: Make the directory when it is missing.
        model: Embedding model to use: a code of ``models()``, ``"auto"``, a sentence-transformers id or folder, or an
            embedder. By default ``$MEMORYFIELD_MODEL``, else ``nomic-embed-text-v1.5``. It is loaded when first needed.
        recipe: What of a page is embedded: ``page`` (the whole file, as the format specifies) or ``content``.
        backend: ``torch``, or a faster one; by default the fastest exact one that is installed.

    Raises:
        FieldNotFound: Nothing is there, or no directory and no archive.
        ArchiveError: The archive is refused.
    """
    return MemoryField(open_pages(Path(path).expanduser(), create), model=model, recipe=recipe, backend=backend)


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
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, sha256: str | None = None
) -> ImportReport:
    """Bring pages in: an archive becomes a new directory; pages of a directory are added to a field.

    Args:
        source: A ``.memoryfield.zip`` or a directory of pages.
        target: For an archive a directory that is not there yet; for a directory the field that receives its pages,
            made when missing. A page that is there already in another version is a conflict and left alone.
        sha256: Digest that the archive must have; by default that of its side file, where there is one.

    Raises:
        ChecksumMismatch: The archive has another digest.
        ArchiveError: The archive is damaged or hostile, or the target is in use.
        QueryError: A digest for a directory.
    """
    from memoryfield.format.importing import import_archive, import_pages

    if Path(source).expanduser().is_dir():
        if sha256 is not None:
            raise QueryError("a directory has no sha256; give none, or an archive")
        return import_pages(PageDirectory(source), PageDirectory(target, create=True))
    return import_archive(source, target, sha256=sha256)
