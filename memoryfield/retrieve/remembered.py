"""What was learned from a field's pages, kept in the cache directory for the next process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.places import cache_directory, field_key, private_directory
from memoryfield.retrieve.knownitems import KnownItem, known_items

if TYPE_CHECKING:
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.search import SearchTarget

FEWEST_ITEMS = 8  # questions made from the field, below which nothing is learned
_SAME_SIZE = 0.1  # share of pages that may come or go before it is learned again


def remembered(
    target: SearchTarget,
    index: VectorIndex,
    what: str,
    learn: Callable[[Sequence[KnownItem]], float],
    *,
    least: float,
    most: float,
) -> tuple[float, int] | None:
    """Return a number learned from questions made from the field's pages, and how many these were.

    It is learned again where one of the pages changed that the questions were made from, or many came or went.

    Args:
        target: The field.
        index: Its vectors.
        what: Name of the number, with the version of how it is worked out.
        learn: Works it out.
        least: The smallest number that makes sense; what the cache holds beyond is not believed.
        most: The largest.

    Returns:
        None where there are too few pages.
    """
    digest = index.vectors().digest
    key = f"{what} {index.model_code} {index.recipe}"
    path = cache_directory() / "learned" / f"{field_key(target.source.path)}.json"
    known = _read(path)
    kept = known.get(key)
    usable = kept is not None and least <= kept["value"] <= most
    if kept is not None and usable and kept["digest"] == digest:
        return kept["value"], kept["items"]
    items = known_items(target.source, target.source.snapshot(known=index.snapshot))
    if len(items) < FEWEST_ITEMS:
        return None
    sample = hashlib.sha256("".join(item.sha256 for item in items).encode()).hexdigest()
    pages = len(index.vectors())
    if (
        kept is not None
        and usable
        and kept["sample"] == sample
        and abs(pages - kept["pages"]) <= _SAME_SIZE * kept["pages"]
    ):
        value = float(kept["value"])
    else:
        value = float(learn(items))
    entry = {"digest": digest, "sample": sample, "pages": pages, "value": value, "items": len(items)}
    _write(path, {**_read(path), key: entry})
    return value, len(items)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return what an earlier process learned; nothing where the file is not as we write it."""
    kinds = {"digest": str, "sample": str, "pages": int, "value": float, "items": int}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(key): kept
            for key, kept in found.items()
            if all(type(kept[name]) is kind for name, kind in kinds.items())
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _write(path: Path, known: dict[str, dict[str, Any]]) -> None:
    with contextlib.suppress(OSError):  # the next process learns it again
        private_directory(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(known, file)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
