"""What a vector index file says it is: its tables, and whose vectors it holds (FORMAT X2, X4, X6).

The table ``pages`` is the specification's. Ours beside it are ``meta`` (whose vectors these are), ``sync_state`` (the
content and the stat data that each row was made from) and ``refused`` (pages that the model gave no usable vector for);
in a file of recipe ``passages`` also ``passages``, beside one vector a page as in any other file. None of ours is
needed to read a file.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from memoryfield.errors import ForeignIndex, ModelMismatch, NewerSchema
from memoryfield.index.recipes import PASSAGES

SCHEMA_VERSION = 1
_COLUMNS = [
    ("filename", "TEXT"),
    ("frontmatter", "JSON"),
    ("last_modified", "DATETIME"),
    ("sha256_hash", "BLOB"),
    ("embedding", "BLOB"),
]
_PAGES = """
CREATE TABLE IF NOT EXISTS pages (
    filename TEXT PRIMARY KEY,
    frontmatter JSON NOT NULL,
    last_modified DATETIME NOT NULL,
    sha256_hash BLOB NOT NULL,
    embedding BLOB NOT NULL
)
"""
_OURS = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE IF NOT EXISTS sync_state (filename TEXT PRIMARY KEY, sha256_hash BLOB NOT NULL,"
    " size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,"
    " seen_ns INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS refused (filename TEXT PRIMARY KEY, sha256_hash BLOB NOT NULL, reason TEXT NOT NULL)",
)
_PASSAGES = (
    "CREATE TABLE IF NOT EXISTS passages (filename TEXT PRIMARY KEY, sha256_hash BLOB NOT NULL,"
    " spans BLOB NOT NULL, embeddings BLOB NOT NULL)"
)
_OUR_COLUMNS = {
    "meta": ["key", "value"],
    "sync_state": ["filename", "sha256_hash", "size", "mtime_ns", "ctime_ns", "inode", "seen_ns"],
    "refused": ["filename", "sha256_hash", "reason"],
    "passages": ["filename", "sha256_hash", "spans", "embeddings"],
}


class HasVectors(Protocol):
    """What a file says of its vectors; an embedder says the same."""

    @property
    def model_code(self) -> str:
        """Code of the model."""

    @property
    def source(self) -> str:
        """Where it comes from."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    @property
    def document_prefix(self) -> str:
        """Put before a page's text."""

    @property
    def query_prefix(self) -> str:
        """Put before a question."""

    @property
    def normalized(self) -> bool:
        """Whether vectors are of unit length."""


@dataclass(frozen=True)
class Meta:
    """What our table ``meta`` says.

    Attributes:
        model_code: The model's code.
        source: Where the model came from: hub id, folder or URL.
        dimensions: Length of a vector.
        recipe: Which text of a page was embedded.
        document_prefix: Put before that text.
        query_prefix: Put before a question.
        normalized: Whether the model gives unit vectors.
        tool_version: Version of this library that wrote the file last.
        generation: Changes when the file is made anew.
        revision: Counts our writes.
        counter: SQLite's count of changes after our last write; another one in the header means that a stranger wrote.
    """

    model_code: str
    source: str
    dimensions: int
    recipe: str
    document_prefix: str = ""
    query_prefix: str = ""
    normalized: bool = False
    tool_version: str = ""
    generation: str = field(default_factory=lambda: secrets.token_hex(8))
    revision: int = 0
    counter: int = -1


def check_schema(connection: sqlite3.Connection, path: Path) -> Meta | None:
    """Make sure that a file is an index of this format, without running anything that its schema holds (FORMAT X11).

    Returns:
        What our table says, or None where there is none, also in a file without any table.

    Raises:
        ForeignIndex: Another program's tables, or triggers and views that could do something of their own.
        NewerSchema: A newer version of this library wrote it.
    """
    objects = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master LIMIT 200").fetchall()
    for kind, name, table, rootpage, _ in objects:
        if kind in ("trigger", "view"):
            raise _foreign(path, f"it holds a {kind} ({str(name)[:60]!r})")
        if table in ("pages", *_OUR_COLUMNS):
            if kind == "table" and not rootpage:
                raise _foreign(path, f"its table {table!r} is a virtual table")
            if kind == "index" and not str(name).startswith("sqlite_autoindex_"):
                raise _foreign(path, f"its table {table!r} has an index of its own ({str(name)[:60]!r})")
    tables = {name: str(sql) for kind, name, _, _, sql in objects if kind == "table"}
    if not tables:
        return None
    if "pages" not in tables:
        raise _foreign(path, f"it has no table 'pages' but {', '.join(sorted(map(str, tables)))[:200]}")
    columns = connection.execute("PRAGMA table_xinfo(pages)").fetchall()
    found = [(str(name), str(kind).upper()) for _, name, kind, _, _, _, _ in columns]
    if found != _COLUMNS or any(hidden for *_, hidden in columns) or [row[5] for row in columns] != [1, 0, 0, 0, 0]:
        shown = ", ".join(f"{name} {kind}".strip() for name, kind in found)[:200]
        raise _foreign(path, f"its table 'pages' has other columns ({shown})")
    if any(word in tables["pages"].upper() for word in ("CHECK", "REFERENCES", "DEFAULT", "COLLATE", "CONFLICT")):
        raise _foreign(path, "its table 'pages' has rules that the format does not know")
    for table, names in _OUR_COLUMNS.items():
        found_names = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})")]
        if found_names not in ([], names):
            raise _foreign(path, f"its table {table!r} has other columns")
    return _read_meta(connection, path) if "meta" in tables else None


def _foreign(path: Path, what: str) -> ForeignIndex:
    return ForeignIndex(
        f"{path} was not made for this format: {what}. Nothing was altered. Move or delete that file "
        "(an index is only a cache), or choose another place for ours."
    )


def _read_meta(connection: sqlite3.Connection, path: Path) -> Meta | None:
    found = dict(connection.execute("SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM meta LIMIT 100").fetchall())
    try:
        version = int(found["schema_version"])
    except (KeyError, TypeError, ValueError):
        return None
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"{path} has schema version {version}, this library knows up to {SCHEMA_VERSION}: "
            "update memoryfield-lab, or delete the file (an index is only a cache)."
        )
    try:
        return Meta(
            model_code=found["model_code"],
            source=found["source"],
            dimensions=int(found["dimensions"]),
            recipe=found["recipe"],
            document_prefix=found["document_prefix"],
            query_prefix=found["query_prefix"],
            normalized=found["normalized"] == "1",
            tool_version=found["tool_version"],
            generation=found["generation"],
            revision=int(found["revision"]),
            counter=int(found["counter"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign(path, f"its table 'meta' is incomplete ({error})") from error


def check_model(meta: Meta, path: Path, model: HasVectors, recipe: str) -> None:
    """Make sure that a file's vectors are those of this model and recipe (FORMAT X6).

    Raises:
        ModelMismatch: They are not; the message names both.
    """
    wanted = (model.model_code, recipe, model.dimensions, model.document_prefix)
    found = (meta.model_code, meta.recipe, meta.dimensions, meta.document_prefix)
    if wanted != found:
        raise mismatch(path, f"{meta.model_code!r} ({_details(*found[1:])})", model, recipe)


def mismatch(path: Path, there: str, model: HasVectors, recipe: str) -> ModelMismatch:
    """Return the error for an index of other vectors than those asked for."""
    asked = f"{model.model_code!r} ({_details(recipe, model.dimensions, model.document_prefix)})"
    return ModelMismatch(
        f"{path} holds vectors of {there}; asked for are those of {asked}. Nothing was altered. Use the model and "
        "recipe that it was made with, choose another place for this index, or delete it (an index is only a cache)."
    )


def _details(recipe: str, dimensions: int, prefix: str) -> str:
    return f"recipe {recipe}, {dimensions} dimensions, prefix {prefix!r}"


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Say whether a table is there at all."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def prepare(connection: sqlite3.Connection, recipe: str) -> None:
    """Make the tables that are missing."""
    for statement in (_PAGES, *_OURS, *([_PASSAGES] if recipe == PASSAGES else [])):
        connection.execute(statement)


def write_meta(connection: sqlite3.Connection, meta: Meta) -> None:
    """Replace what our table says."""
    values = {**meta.__dict__, "normalized": int(meta.normalized), "schema_version": SCHEMA_VERSION}
    connection.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, str(value)) for key, value in sorted(values.items())]
    )


def next_meta(before: Meta | None, model: HasVectors, recipe: str, counter: int) -> Meta:
    """Return what ``meta`` says after a write that leaves SQLite's count of changes at *counter*."""
    now = Meta(
        model_code=model.model_code,
        source=str(model.source),
        dimensions=model.dimensions,
        recipe=recipe,
        document_prefix=model.document_prefix,
        query_prefix=model.query_prefix,
        normalized=model.normalized,
        tool_version=_tool_version(),
        counter=counter,
        revision=1,
    )
    return now if before is None else replace(now, generation=before.generation, revision=before.revision + 1)


@cache
def _tool_version() -> str:
    import memoryfield

    return str(memoryfield.__version__)
