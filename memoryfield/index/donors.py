"""Vectors that came with a field which cannot be written: an archive, or a directory of somebody else.

A row is used only where it was made from the very content that the page has (FORMAT A3). The index is a stranger's
file: it is looked at, never altered, and what is wrong with it is a note and no error.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memoryfield.errors import IndexFileError, MemoryfieldError, PageNotFound
from memoryfield.index import schema, store
from memoryfield.index.connections import reading
from memoryfield.index.files import index_filename

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource

_CHECK_STEPS = 200_000_000  # of SQLite's virtual machine: some seconds, enough for 100,000 rows
_STEPS_AT_ONCE = 1_000_000


def donated_vectors(
    source: PageSource, own: Path, model: schema.HasVectors, recipe: str, wanted: Collection[bytes]
) -> tuple[dict[bytes, bytes], str]:
    """Return vectors, as stored, from the index that stands in the field itself.

    Args:
        source: The field.
        own: Our index of it, which is not its own donor.
        model: The model that the vectors must be of.
        recipe: The text that they must be of.
        wanted: sha256 of the contents.

    Returns:
        The vectors by sha256, and why there are none, or an empty text.
    """
    filename = index_filename(model.model_code, recipe)
    try:
        if filename not in source.other_files():
            return {}, ""
        with _on_disk(source, filename) as path:
            if path == own:
                return {}, ""
            return _usable_rows(path, model, recipe, wanted), ""
    except (PageNotFound, OSError):
        return {}, ""
    except MemoryfieldError as error:
        return {}, f"the index {filename} that came with the field is not used: {error}"


@contextlib.contextmanager
def _on_disk(source: PageSource, filename: str) -> Iterator[Path]:
    if source.path.is_dir():
        yield source.path / filename
        return
    with tempfile.TemporaryDirectory(prefix="memoryfield-") as folder:
        copy = Path(folder) / filename
        copy.write_bytes(source.read_bytes(filename))
        yield copy


def _usable_rows(path: Path, model: schema.HasVectors, recipe: str, wanted: Collection[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    with reading(path) as (connection, _):
        meta = schema.check_schema(connection, path)
        if meta is not None:
            schema.check_model(meta, path, model, recipe)
        elif not schema.has_table(connection, "pages"):
            return found
        left = _CHECK_STEPS

        def used_up() -> bool:
            nonlocal left
            left -= _STEPS_AT_ONCE
            return left < 0

        connection.set_progress_handler(used_up, _STEPS_AT_ONCE)
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise IndexFileError(f"{path.name} is damaged ({problem})")
        for block in store.read_blocks(connection, path, model, recipe, has_meta=meta is not None):
            problems = store.unusable(block.vectors)
            for number, sha256 in enumerate(block.sha256):
                if sha256 in wanted and number not in problems:
                    found[sha256] = block.vectors[number].astype(store.FLOAT32).tobytes()
    return found
