"""Index files: how they are named, where they stand, and what one of them is, whoever made it.

The vector index of a model stands at the root of the field (FORMAT X1). Where the field cannot be written, and for
archives, it stands in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memoryfield.display import Table
from memoryfield.errors import ForeignIndex, IndexFileError, NewerSchema
from memoryfield.format.dates import moment_of
from memoryfield.format.names import is_page_filename
from memoryfield.index import schema, store
from memoryfield.index.connections import reading
from memoryfield.index.recipes import PAGE, RECIPES, check_recipe
from memoryfield.places import cache_directory, field_key

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Snapshot

INDEX_SUFFIX = ".sqlite3"
_LONGEST_STEM = 120
_NOT_IN_STEM = re.compile(r"[^A-Za-z0-9._+-]+")

COLUMNS = ("file", "model", "recipe", "dimensions", "rows", "state", "written")
Condition = Literal["ok", "missing", "empty", "foreign", "damaged", "newer", "symlink"]


@dataclass(frozen=True, repr=False)
class IndexState:
    """What an index file is.

    Attributes:
        path: The file.
        model_code: Code of the model, from our table or else from the file's name.
        recipe: Which text of a page was embedded.
        dimensions: Length of the vectors; None where there are none.
        rows: How many pages have a row.
        state: ``ok``, ``missing``, ``empty``, ``foreign``, ``damaged``, ``newer`` or ``symlink``.
        problem: What is wrong and what to do, in a sentence; empty if nothing is.
        modified: When the file was last written, in UTC; None where no calendar has that time.
        has_meta: Whether our own tables stand in it.
        size: Bytes.
    """

    path: Path
    model_code: str
    recipe: str
    dimensions: int | None = None
    rows: int = 0
    state: Condition = "ok"
    problem: str = ""
    modified: datetime | None = None
    has_meta: bool = False
    size: int = 0

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        return states_table(f"Index {self.path.name}", [self])

    def to_dict(self) -> dict[str, object]:
        """Return the state as values that JSON can hold."""
        modified = None if self.modified is None else self.modified.isoformat()
        return {**self.__dict__, "path": str(self.path), "modified": modified}


def states_table(heading: str, states: list[IndexState]) -> Table:
    """Return several states as a table to show."""
    notes = [state.problem for state in states if state.problem]
    return Table(heading, COLUMNS, [_row(state) for state in states], notes, right=frozenset(["dimensions", "rows"]))


def describe_index(state: IndexState, snapshot: Snapshot) -> tuple[str, str, str, int | None, int, str, str]:
    """Return what to show of an index beside its field, in the order of COLUMNS; the state says how far it is behind.

    Args:
        state: The index.
        snapshot: The pages as they are now.
    """
    row = _row(state)
    if state.state not in ("ok", "empty"):
        return row
    missing = pages_behind(state.path, snapshot)
    pages = "page" if missing == 1 else "pages"
    return (*row[:5], "up to date" if not missing else f"{missing:,} {pages} behind", row[6])


def _row(state: IndexState) -> tuple[str, str, str, int | None, int, str, str]:
    written = "" if state.modified is None else state.modified.isoformat(" ", "seconds").removesuffix("+00:00")
    return (state.path.name, state.model_code, state.recipe, state.dimensions, state.rows, state.state, written)


def file_stem(model_code: str, recipe: str = PAGE) -> str:
    """Return the name of an index file without its ending: the model's code, and the recipe if not the default.

    What a file name cannot hold everywhere becomes ``-``; the code itself stands in the file.
    """
    stem = _NOT_IN_STEM.sub("-", model_code).lstrip(".-") or "model"
    if len(stem) > _LONGEST_STEM:
        stem = f"{stem[:_LONGEST_STEM]}-{hashlib.sha256(model_code.encode()).hexdigest()[:8]}"
    return stem if check_recipe(recipe) == PAGE else f"{stem}.{recipe}"


def index_filename(model_code: str, recipe: str = PAGE) -> str:
    """Return the file name of the index of a model and a recipe (FORMAT X1, X5)."""
    return file_stem(model_code, recipe) + INDEX_SUFFIX


def parse_index_filename(filename: str) -> tuple[str, str] | None:
    """Return the model code and the recipe that a file name means, or None if it is no index's name."""
    if not filename.endswith(INDEX_SUFFIX) or filename.startswith("."):
        return None
    stem = filename.removesuffix(INDEX_SUFFIX)
    for recipe in RECIPES:
        if recipe != PAGE and stem.endswith(f".{recipe}"):
            return stem.removesuffix(f".{recipe}"), recipe
    return (stem, PAGE) if stem else None


def default_index_path(source: PageSource, model_code: str, recipe: str = PAGE) -> Path:
    """Return where the index of a field is kept: in the field, or in the cache directory if that cannot be written."""
    filename = index_filename(model_code, recipe)
    if source.read_only or not source.path.is_dir():
        return cache_directory() / "indexes" / field_key(source.path) / filename
    return source.path / filename


def find_indexes(source: PageSource) -> list[IndexState]:
    """Return the state of every index file of a field, those beside its pages first, each place sorted by name."""
    folders = [source.path, cache_directory() / "indexes" / field_key(source.path)]
    return [state for folder in folders for state in _list_indexes(folder)]


def _list_indexes(folder: Path) -> list[IndexState]:
    try:
        filenames = sorted(name for name in os.listdir(folder) if parse_index_filename(name) is not None)
    except OSError:
        return []
    return [inspect_index(folder / filename) for filename in filenames]


def pages_behind(path: Path, snapshot: Snapshot) -> int:
    """Return how many pages an index has no current row for, and rows without a page; all pages if it is unusable."""
    wanted = {filename: entry.sha256 for filename, entry in snapshot.entries.items()}
    try:
        with reading(path) as (connection, stamp):
            meta = schema.check_schema(connection, path)
            if meta is None and not schema.has_table(connection, "pages"):
                return len(wanted)
            held = store.hashes(connection, meta, stamp)
    except (IndexFileError, OSError):
        return len(wanted)
    ghosts = [name for name in held if name not in wanted and is_page_filename(name)]
    return sum(held.get(name) != sha256 for name, sha256 in wanted.items()) + len(ghosts)


def inspect_index(path: Path) -> IndexState:
    """Return what an index file is, without altering it and without believing it (FORMAT X11). Never raises for it."""
    model_code, recipe = parse_index_filename(path.name) or (path.stem, PAGE)
    try:
        status = os.lstat(path)
    except OSError:
        return IndexState(path, model_code, recipe, state="missing")
    found = IndexState(
        path,
        model_code,
        recipe,
        modified=moment_of(status.st_mtime),
        size=status.st_size,
    )
    try:
        with reading(path) as (connection, _):
            meta = schema.check_schema(connection, path)
            if not schema.has_table(connection, "pages"):
                return replace(found, state="empty")
            rows, length = connection.execute("SELECT count(*), max(length(embedding)) FROM pages").fetchone()
    except NewerSchema as error:
        return replace(found, state="newer", problem=str(error))
    except ForeignIndex as error:
        return replace(found, state="symlink" if path.is_symlink() else "foreign", problem=str(error))
    except IndexFileError as error:
        return replace(found, state="damaged", problem=str(error))
    except OSError as error:
        return replace(found, state="damaged", problem=f"{path} cannot be read: {error.strerror or error}")
    if meta is not None:
        return replace(
            found, model_code=meta.model_code, recipe=meta.recipe, dimensions=meta.dimensions, rows=rows, has_meta=True
        )
    return replace(found, rows=rows, dimensions=None if not length else length // store.FLOAT32.itemsize)
