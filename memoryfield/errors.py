"""Every exception that this library raises on purpose.

The tree::

    MemoryfieldError
    ├── FieldError               the field as a whole
    │   ├── FieldNotFound        no such directory or archive, or not one
    │   ├── ReadOnlyField        a write to an archive or a read-only place
    │   ├── FieldLocked          another process holds the field's lock for too long
    │   └── StoreError           the place where the field lives (object store, web server, git)
    │       ├── StoreUnreachable no usable answer now; a later try may get one
    │       └── StoreRefused     an answer that cannot be used: no permission, no field, hostile
    ├── PageError                one page
    │   ├── InvalidName          a name that no page may have
    │   ├── PageNotFound         (also a KeyError)
    │   ├── PageExists           a page of that name is there already
    │   ├── SimilarPageExists    a page says much the same already
    │   ├── PageChanged          the page is not the one that was read
    │   ├── FrontmatterError     the YAML block cannot be read or edited; has file and line
    │   └── NotEditable          bytes that are not UTF-8, or an edit that cannot keep the rest
    ├── ArchiveError             a .memoryfield.zip that is refused, or cannot be made
    │   └── ChecksumMismatch     the sha256 is not the promised one
    ├── IndexFileError           an index file
    │   ├── ForeignIndex         made by another program, or not an index at all
    │   ├── ModelMismatch        holds vectors of another model or recipe
    │   └── NewerSchema          written by a newer version of this library
    ├── HistoryError             the journal of a field cannot do as asked
    │   └── DamagedJournal       its file cannot be read; the field itself is not affected
    ├── ModelError               an embedding model
    │   ├── ModelNotReady        cannot be loaded here and now; says what was tried and what to do
    │   └── EmbeddingFailed      loaded, but did not give usable vectors
    ├── RowError                 a row of probes, families or tasks that cannot be used; has file and line
    ├── RewritingFailed          a program that rewrites merged texts gave none
    └── QueryError               a search, a filter or a setting that makes no sense (also a ValueError)

A message says what was seen, what was expected and what to do next.
"""

from __future__ import annotations


class MemoryfieldError(Exception):
    """Base of all errors of this library; catch it to catch them all."""


class FieldError(MemoryfieldError):
    """The field as a whole cannot be used as asked."""


class FieldNotFound(FieldError):
    """There is no field at that place."""


class ReadOnlyField(FieldError):
    """The field cannot be written (an archive, or a directory without write permission)."""


class FieldLocked(FieldError):
    """Another process holds the lock of the field."""


class StoreError(FieldError):
    """The place where a field lives did not do as asked; the field there and the copy here are as they were."""


class StoreUnreachable(StoreError):
    """There was no usable answer now; a later try may get one."""


class StoreRefused(StoreError):
    """The answer cannot be used: no permission, no field, or nothing that a field would answer."""


class PageError(MemoryfieldError):
    """One page cannot be used as asked."""


class InvalidName(PageError, ValueError):
    """A name that no page may have."""


class PageNotFound(PageError, KeyError):
    """No page of that name."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class PageExists(PageError):
    """A page of that name is there already."""


class SimilarPageExists(PageError):
    """A page that says much the same is there already; nothing was written."""


class SecretsFound(PageError):
    """Pages that were to leave the house hold what looks like keys or passwords."""


class PageChanged(PageError):
    """The page on disk is not the one that the caller read; nothing was written."""


class FrontmatterError(PageError):
    """The frontmatter of a page cannot be read, or not edited without touching other bytes.

    Attributes:
        file: File name of the page, or an empty string where it is not known yet.
        line: Line in the file, counted from 1, or None.
        problem: What is wrong, without file and line.
    """

    def __init__(self, problem: str, *, file: str = "", line: int | None = None) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        place = file if line is None else f"{file or 'frontmatter'}, line {line}"
        super().__init__(f"{place}: {problem}" if place else problem)


class NotEditable(PageError):
    """The page can be read but not edited as asked; the message says why."""


class ArchiveError(MemoryfieldError):
    """An archive is refused, or cannot be made; nothing was left behind."""


class ChecksumMismatch(ArchiveError):
    """The bytes of an archive do not have the sha256 that was promised."""


class IndexFileError(MemoryfieldError):
    """An index file cannot be used; it was not altered."""


class ForeignIndex(IndexFileError):
    """The file is not an index of this format."""


class ModelMismatch(IndexFileError):
    """The index holds vectors of another model, recipe or dimension."""


class NewerSchema(IndexFileError):
    """The file was written by a newer version of this library."""


class HistoryError(MemoryfieldError):
    """The journal of a field cannot do what was asked; pages are as they were."""


class DamagedJournal(HistoryError):
    """The file of the journal cannot be read; the field itself is not affected."""


class ModelError(MemoryfieldError):
    """An embedding model cannot be used."""


class ModelNotReady(ModelError):
    """The model cannot be loaded here and now; the message says what was tried and what to do."""


class EmbeddingFailed(ModelError):
    """The model gave no usable vectors."""


class RewritingFailed(MemoryfieldError):
    """A program that rewrites the text of a merge gave none; nothing was changed."""


class QueryError(MemoryfieldError, ValueError):
    """A search, filter or setting that makes no sense."""


class RowError(MemoryfieldError, ValueError):
    """A row of a file of probes, families or tasks cannot be used, or the file as a whole.

    Attributes:
        file: Name of the file.
        line: Line in the file, counted from 1; None where the file as a whole is meant.
        problem: What is wrong, without file and line.
    """

    def __init__(self, problem: str, *, file: str, line: int | None = None) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        super().__init__(f"{file}: {problem}" if line is None else f"{file}, line {line}: {problem}")
