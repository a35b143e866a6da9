"""The memory space in two dimensions: PCA for a handful of pages, UMAP for more.

A map helps the eye; it is no evidence. Distances between far groups mean little, and models are never compared
through their maps. The same vectors, settings and seed give the same map: rows are sorted by name before the
computation (the order of rows changes what UMAP draws), and the coordinates are kept in the cache directory under
a digest of vectors and settings.

Sources: principal component analysis (Pearson 1901); UMAP (McInnes, Healy and Melville 2018, arXiv:1802.03426).
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memoryfield import places
from memoryfield.advice import advice
from memoryfield.display import Table, counted, plain
from memoryfield.errors import QueryError
from memoryfield.study.placing import placed, row_digests

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

FEWEST_FOR_UMAP = 15
METHODS = ("auto", "pca", "umap")
ENGINES = ("umap-learn", "fastumap")
_SCHEMA = 1
_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of pages.

    Attributes:
        names: Page names, sorted.
        xy: ``(n_pages, 2)`` float32.
        method: ``pca`` or ``umap``.
        model_code: Model of the vectors.
        recipe: Recipe of the vectors.
        parameters: Settings that the coordinates depend on.
        pages: For each page what a figure shows of it: title, summary and other keys of the frontmatter.
        digests: For each page one of its vector, by which a later map sees what changed.
        left_out: Pages of the field that are not on the map: ``index`` and ``listing``, which are about the others.
    """

    names: tuple[str, ...]
    xy: NDArray[np.float32]
    method: str
    model_code: str
    recipe: str
    parameters: Mapping[str, Any]
    pages: Sequence[Mapping[str, str]] = ()
    digests: Sequence[bytes] = ()
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def counted(self) -> str:
        """How many pages it shows, and which it does not: ``179 pages; index.md is not on it``."""
        left = " and ".join(f"{name}.md" for name in self.left_out)
        return counted(len(self), "page") + (
            f"; {left} {'is' if len(self.left_out) == 1 else 'are'} not on it" if left else ""
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``name, x, y, title``."""
        import pandas

        titles = [page.get("title", name) for page, name in zip(self.pages, self.names, strict=True)]
        return pandas.DataFrame({"name": list(self.names), "x": self.xy[:, 0], "y": self.xy[:, 1], "title": titles})

    def figure(self, color: str | None = None) -> plotly.graph_objects.Figure:
        """Draw the pages with plotly; hovering shows title and summary.

        Args:
            color: A frontmatter key; its values get colours and symbols (at most eight, the rest is grey).

        Raises:
            QueryError: No page has that key with one value; the message lists keys that would do.
        """
        from memoryfield.study import figures

        keys = sorted({key for page in self.pages for key, value in page.items() if value})
        if color is not None and self.pages and color not in keys:
            raise QueryError(f"no page has the key {plain(color, 60)!r}; there are: {plain(', '.join(keys), 400)}")

        return figures.layout_figure(self, color)

    def to_svg(self, width: int = 960, height: int = 640) -> str:
        """Return a static picture that needs no kernel and no script."""
        from memoryfield.study import figures

        return figures.layout_svg(self, width, height)

    def _table(self) -> Table:
        kind = "PCA" if self.method == "pca" else "UMAP"
        settings = ", ".join(f"{key} {value}" for key, value in self.parameters.items())
        return Table(
            f"Map ({kind}) of {self.counted}",
            notes=[
                f"model {self.model_code}, recipe {self.recipe}" + (f"; {settings}" if settings else ""),
                "distances between far groups mean little",
            ],
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html() + self.to_svg()


def layout(
    names: Sequence[str],
    matrix: NDArray[np.float32],
    *,
    model_code: str,
    recipe: str,
    method: str = "auto",
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    random_state: int = 42,
    engine: str = "umap-learn",
    pages: Mapping[str, Mapping[str, str]] | None = None,
    after: Layout | None = None,
    left_out: Sequence[str] = (),
) -> Layout:
    """Place pages in two dimensions.

    Args:
        names: One name a row, in any order.
        matrix: ``(n_pages, dimensions)`` float32, unit rows.
        model_code: Model of the vectors.
        recipe: Recipe of the vectors.
        method: ``auto`` (PCA below 15 pages, else UMAP), ``pca`` or ``umap``.
        n_neighbors: UMAP's balance of local against global structure; cut to the number of other pages.
        min_dist: UMAP's smallest distance of points.
        random_state: Seed.
        engine: ``umap-learn``, or ``fastumap`` where it is installed (no compilation at the first call).
        pages: Title, summary and other keys by name, for the figure.
        after: An earlier map of the same model and recipe: its pages stay where they are, new and changed ones are
            placed among their nearest, and the method and settings are those of that map.
        left_out: Pages of the field that are not among *names*.

    Raises:
        QueryError: An unknown method or engine, UMAP for fewer than four pages, a setting out of range, or an earlier
            map of other vectors.
    """
    if method not in METHODS:
        raise QueryError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if engine not in ENGINES:
        raise QueryError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}")
    if n_neighbors < 2 or not 0.0 <= min_dist <= 1.0:
        raise QueryError(f"n_neighbors is {n_neighbors} (at least 2), min_dist is {min_dist} (0 to 1)")
    order = sorted(range(len(names)), key=lambda i: names[i])
    ordered = tuple(names[i] for i in order)
    rows = np.ascontiguousarray(matrix[order], dtype=np.float32)
    digests = row_digests(rows)
    described = [dict((pages or {}).get(name, {})) for name in ordered]
    if after is not None:
        if (after.model_code, after.recipe) != (model_code, recipe):
            raise QueryError(
                f"the earlier map is of {after.model_code} ({after.recipe}), this one of {model_code} ({recipe}); "
                "places cannot be kept across models"
            )
        kept = placed(ordered, rows, digests, after.names, after.xy, after.digests)
        if kept is not None:
            settings = after.parameters
            return Layout(
                ordered, kept, after.method, model_code, recipe, settings, described, digests, tuple(left_out)
            )
    if method == "auto":
        method = "pca" if len(ordered) < FEWEST_FOR_UMAP else "umap"
    if method == "umap" and len(ordered) < 4:
        how = advice(python="method='pca'", command="--method pca")
        raise QueryError(f"UMAP needs at least 4 pages and there are {len(ordered)}; use {how}")
    parameters: dict[str, Any] = {}
    if method == "umap":
        n_neighbors = min(n_neighbors, len(ordered) - 1)
        parameters = {"n_neighbors": n_neighbors, "min_dist": min_dist, "random_state": random_state, "engine": engine}
    cache = _cache_file(rows, ordered, method, parameters)
    xy = _read_cache(cache, len(ordered))
    if xy is None:
        xy = _pca(rows) if method == "pca" else _umap(rows, n_neighbors, min_dist, random_state, engine)
        if method == "umap":  # PCA is quicker than the file
            _write_cache(cache, xy)
    return Layout(ordered, xy, method, model_code, recipe, parameters, described, digests, tuple(left_out))


def _pca(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    count = len(rows)
    xy = np.zeros((count, 2), dtype=np.float32)
    if count < 2:
        return xy
    centred = rows - rows.mean(axis=0)
    parts = min(2, *rows.shape)
    # eigenvectors of the smaller of two matrices of products: several times as fast as decomposing the rows
    if count > rows.shape[1]:
        _, vectors = _eigenvectors((centred.T @ centred).astype(np.float64))
        axes = vectors.T[::-1][:parts]
        places = centred @ axes.T
    else:
        exact = centred.astype(np.float64)
        values, vectors = _eigenvectors(exact @ exact.T)
        places = vectors[:, ::-1][:, :parts] * np.sqrt(np.maximum(values[::-1][:parts], 0.0))
        axes = places.T @ exact
    # the sign of a component is arbitrary: its largest loading is made positive
    signs = np.sign(axes[np.arange(parts), np.abs(axes).argmax(axis=1)])
    xy[:, :parts] = places * np.where(signs == 0, 1, signs)
    return xy


def _eigenvectors(products: NDArray[np.float64]) -> Any:
    """Return eigenvalues and eigenvectors, ascending.

    With one thread: on a busy machine several wait for each other, which took sixteen times as long.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, "blas"):
        return np.linalg.eigh(products)


def nearest_neighbors(rows: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return each row's *k* nearest rows by cosine distance, itself first, exactly.

    Args:
        rows: ``(n, dimensions)`` float32, unit rows.
        k: How many, itself included.

    Returns:
        Indices ``(n, k)`` and cosine distances ``(n, k)``, ascending.
    """
    count = len(rows)
    indices = np.empty((count, k), dtype=np.int32)
    distances = np.empty((count, k), dtype=np.float32)
    for top in range(0, count, _BLOCK):
        distance = 1.0 - rows[top : top + _BLOCK] @ rows.T
        np.maximum(distance, 0.0, out=distance)
        here = np.arange(len(distance))
        distance[here, top + here] = -1.0  # a page is its own nearest, also beside equal ones
        part = (
            np.argpartition(distance, k - 1, axis=1)[:, :k] if k < count else np.tile(np.arange(count), (len(here), 1))
        )
        values = np.take_along_axis(distance, part, axis=1)
        inner = np.lexsort((part, values), axis=1)
        indices[top : top + _BLOCK] = np.take_along_axis(part, inner, axis=1)
        distances[top : top + _BLOCK] = np.maximum(np.take_along_axis(values, inner, axis=1), 0.0)
    return indices, distances


def _umap(
    rows: NDArray[np.float32], n_neighbors: int, min_dist: float, random_state: int, engine: str
) -> NDArray[np.float32]:
    indices, distances = nearest_neighbors(rows, n_neighbors)
    if engine == "fastumap":
        try:
            import fastumap
        except ImportError as error:
            raise QueryError("engine 'fastumap' is not installed; pip install fastumap, or use umap-learn") from error
        # its neighbours exclude the point itself
        knn = (indices[:, 1:].astype(np.int64), distances[:, 1:].astype(np.float64))
        xy = fastumap.umap_project(
            rows.astype(np.float64),
            n_neighbors=n_neighbors - 1,
            min_dist=min_dist,
            random_state=random_state,
            metric="cosine",
            precomputed_knn=knn,
        )
        return np.asarray(xy, dtype=np.float32)
    with warnings.catch_warnings():
        # umap-learn warns of what is meant here: one job for the seed, no search index for later points
        warnings.simplefilter("ignore")
        import umap

        fitted = umap.UMAP(
            n_neighbors=n_neighbors,
            min_dist=min_dist,
            metric="cosine",
            random_state=random_state,
            n_jobs=1,
            precomputed_knn=(indices, distances),
            force_approximation_algorithm=True,  # otherwise small fields would ignore the exact neighbours
            init="spectral" if len(rows) > n_neighbors + 2 else "random",
        ).fit(rows)
    return np.asarray(fitted.embedding_, dtype=np.float32)


def _cache_file(rows: NDArray[np.float32], names: Sequence[str], method: str, parameters: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(rows.tobytes())
    digest.update(json.dumps([_SCHEMA, method, dict(parameters), list(names)], sort_keys=True).encode())
    return places.cache_directory() / "layouts" / f"{digest.hexdigest()}.npy"


def _read_cache(path: Path, count: int) -> NDArray[np.float32] | None:
    try:
        xy = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = isinstance(xy, np.ndarray) and xy.shape == (count, 2) and xy.dtype == np.float32 and np.isfinite(xy).all()
    return xy if fits else None


def _write_cache(path: Path, xy: NDArray[np.float32]) -> None:
    """Keep coordinates; a cache that cannot be written is no error."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        places.private_directory(path.parent)
        with temporary.open("wb") as file:
            np.save(file, xy, allow_pickle=False)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
