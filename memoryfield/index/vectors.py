"""The vectors of a field for one model and one recipe: kept in a file, held in memory, brought up to date.

Arithmetic is in ``matrix.py``, rows in ``store.py``, the steps of a sync in ``syncing.py``.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.errors import ForeignIndex
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.snapshot import Entry, Snapshot
from memoryfield.index import schema, store
from memoryfield.index.comparison import cut_pages
from memoryfield.index.connections import FileWatch, Stamp, gate, reading, remove_database
from memoryfield.index.files import IndexState, default_index_path, index_filename, inspect_index
from memoryfield.index.loaded import Vectors, load_vectors
from memoryfield.index.matrix import FloatArray
from memoryfield.index.passagestore import gather_passages, read_passages
from memoryfield.index.recipes import PAGE, PASSAGES, check_recipe
from memoryfield.index.report import SyncReport
from memoryfield.index.syncing import Progress, Sync

if TYPE_CHECKING:
    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder


__all__ = ["Progress", "SyncReport", "VectorIndex", "Vectors"]


class VectorIndex:
    """The vector index of a field.

    Nothing is opened or made until it is needed. It can be used from several threads; no connection is kept.

    Args:
        source: The pages.
        embedder: The model.
        recipe: Which text of a page is embedded.
        path: The file; by default in the field, or in the cache directory where the field cannot be written.

    Raises:
        QueryError: There is no such recipe.
    """

    def __init__(
        self, source: PageSource, embedder: Embedder, recipe: str = PAGE, path: str | os.PathLike[str] | None = None
    ) -> None:
        self.source = source
        self.embedder = embedder
        self.recipe = check_recipe(recipe)
        chosen = default_index_path(source, embedder.model_code, recipe) if path is None else Path(path).expanduser()
        self.path = Path(os.path.abspath(chosen))
        self._watch = FileWatch(self.path)
        self._sync_lock = threading.Lock()
        self._load_lock = threading.Lock()
        self._state: store.State | None = None
        self._vectors: Vectors | None = None
        self._snapshot: Snapshot | None = None
        self._distrusted: Stamp | None = None
        self._settled: tuple[store.State, Snapshot] | None = None
        self._unchanged: tuple[Snapshot, dict[str, str], SyncReport] | None = None
        self._is_cut: dict[bytes, bool] = {}

    def __repr__(self) -> str:
        return f"<VectorIndex: {self.embedder.model_code}, recipe {self.recipe}, {str(self.path)!r}>"

    @property
    def model_code(self) -> str:
        """Code of the model."""
        return self.embedder.model_code

    @property
    def snapshot(self) -> Snapshot | None:
        """The pages as the last sync saw them."""
        return self._snapshot

    def state(self) -> IndexState:
        """Return what the file is, without the pages being looked at."""
        return inspect_index(self.path)

    # Bringing it up to date

    def sync(
        self,
        *,
        verify: bool = True,
        progress: Progress | None = None,
        snapshot: Snapshot | None = None,
        retry_refused: bool = False,
    ) -> SyncReport:
        """Embed what changed, and drop what is gone.

        What was embedded stays when this is interrupted; the next sync goes on from there.

        Args:
            verify: Read and hash every page; otherwise trust stat data that have proved to be old enough (FORMAT X10).
            progress: Called with the pages done and the pages to embed.
            snapshot: The pages as the caller saw them a moment ago, instead of looking again.
            retry_refused: Give the model another try on pages that it gave no usable vector for.

        Returns:
            What was done, page by page.

        Raises:
            ModelMismatch: The file holds vectors of another model, recipe or dimension.
            ForeignIndex: The file was made by something else.
            NewerSchema: The file was made by a newer version of this library.
            IndexFileError: It is damaged, locked or cannot be written.
            ModelNotReady: The model cannot be loaded.
            EmbeddingFailed: The model gives no usable vectors at all.
        """
        started = time.perf_counter()
        with self._sync_lock:
            state = self._current_state()
            if snapshot is None:
                snapshot = self.source.snapshot(known=self._known(state, verify), verify=verify)
            asked_more = (retry_refused and state.refused) or (state.racy and not verify)
            if not asked_more and self._is_current(state, snapshot):
                return replace(self._unchanged_report(state, snapshot), seconds=time.perf_counter() - started)
            run = Sync(
                self.source,
                self.embedder,
                self.recipe,
                self.path,
                state,
                snapshot,
                progress=progress,
                retry_refused=retry_refused,
                refresh=not verify,
            )
            self._state = None  # an interruption leaves an unknown state
            report = run.run()
            self._state = run.state_after(self._watch.stamp())
            if self._state is not None and not run.has_written and not report.waiting:
                self._settled = (self._state, snapshot)
            self._snapshot = snapshot
            cut = cut_pages(self.source, snapshot, self.recipe, self._is_cut)
            return replace(report, cut=cut, seconds=time.perf_counter() - started)

    def _is_current(self, state: store.State, snapshot: Snapshot) -> bool:
        """Say whether the index holds what the field holds, or an earlier sync found nothing to do between the two."""
        if state.bad or state.modified is not None:
            return False
        settled = self._settled  # there may be rows of files that are no pages to us
        return _same(state.entries, snapshot.entries) or (
            settled is not None
            and settled[0] is state
            and _same(settled[1].entries, snapshot.entries)
            and settled[1].skipped == snapshot.skipped
        )

    def _unchanged_report(self, state: store.State, snapshot: Snapshot) -> SyncReport:
        """Return the report of a sync with nothing to do; the lists of names are made once."""
        held = self._unchanged
        self._snapshot = snapshot
        if held is not None and _same(held[0].entries, snapshot.entries) and held[1] == state.refused:
            return held[2]
        refused = {filename.removesuffix(PAGE_SUFFIX): why for filename, why in sorted(state.refused.items())}
        names = (filename.removesuffix(PAGE_SUFFIX) for filename in snapshot.entries if filename not in state.refused)
        report = SyncReport(
            model_code=self.embedder.model_code,
            recipe=self.recipe,
            unchanged=tuple(names),
            refused=refused,
            cut=cut_pages(self.source, snapshot, self.recipe, self._is_cut),
        )
        self._unchanged = (snapshot, state.refused, report)
        return report

    def _current_state(self) -> store.State:
        """Return what the file holds without the vectors, read again only if it changed."""
        stamp = self._watch.stamp()
        state = self._state
        if stamp is None:
            return store.State()
        if state is not None and state.stamp == stamp:
            return state
        with contextlib.suppress(FileNotFoundError), reading(self.path) as (connection, stamp):
            trust = stamp != self._distrusted
            state = store.read_state(connection, self.path, stamp, self.embedder, self.recipe, trust=trust)
            if state.meta is None and state.entries:
                self._check_name()
            self._state = state
            return state
        return store.State()

    def _known(self, state: store.State, verify: bool) -> Snapshot | None:
        """Return an earlier snapshot to compare with: the last one, or one made of the stat data in the file."""
        if self._snapshot is not None or verify or state.meta is None:
            return self._snapshot
        entries = {name: entry for name, entry in state.entries.items() if name not in state.racy and entry.size >= 0}
        # Each of them was older than the racy window when it was seen, so any later moment will do.
        return Snapshot(entries, (), time.time_ns())

    # Using it

    def vectors(self) -> Vectors:
        """Return all vectors, from memory if the file did not change.

        Raises:
            ModelMismatch: The file holds vectors of another model, recipe or dimension.
            ForeignIndex: The file was made by something else.
            NewerSchema: The file was made by a newer version of this library.
            IndexFileError: It is damaged or locked.
        """
        stamp = self._watch.stamp()
        held = self._vectors
        if held is not None and held.stamp == stamp:
            return held
        with self._load_lock:
            held = self._vectors
            if held is not None and held.stamp == self._watch.stamp():
                return held
            del held
            self._vectors = None  # before the new matrix is made: two large ones at once may be too much
            self._vectors = self._load()
            if self._vectors.bad_rows and self._state is not None and not self._state.bad:
                self._state, self._distrusted = None, self._vectors.stamp  # the next sync looks at every row
            return self._vectors

    def _load(self) -> Vectors:
        try:
            with reading(self.path) as (connection, stamp):
                meta = schema.check_schema(connection, self.path)
                if meta is not None:
                    schema.check_model(meta, self.path, self.embedder, self.recipe)
                elif not schema.has_table(connection, "pages"):
                    return self._none(stamp)
                else:
                    self._check_name()
                blocks = store.read_blocks(connection, self.path, self.embedder, self.recipe, has_meta=meta is not None)
                found = load_vectors(store.filenames(connection), blocks, self.embedder, stamp)
                return self._with_passages(found, connection) if self.recipe == PASSAGES else found
        except FileNotFoundError:
            return self._none(None)

    def _with_passages(self, found: Vectors, connection: sqlite3.Connection) -> Vectors:
        held, bad = read_passages(connection, self.embedder.dimensions)
        passages = gather_passages(found.names, found.matrix, held, PAGE_SUFFIX)
        lacking = {filename.removesuffix(PAGE_SUFFIX): why for filename, why in bad.items()}
        here = {name: why for name, why in lacking.items() if name in found.positions}
        return replace(found, passages=passages, bad_rows={**here, **found.bad_rows})

    def _check_name(self) -> None:
        """Make sure that a file which does not say whose vectors it holds has the name for ours (FORMAT X1, X6)."""
        if self.path.name != index_filename(self.embedder.model_code, self.recipe):
            raise schema.mismatch(self.path, "an unnamed model, to go by its file name", self.embedder, self.recipe)

    def _none(self, stamp: Stamp | None) -> Vectors:
        return Vectors((), np.empty((0, self.embedder.dimensions), np.float32), stamp=stamp)

    def search(
        self, vector: npt.ArrayLike, k: int, among: Collection[str] | None = None, *, exact: bool = False
    ) -> tuple[list[str], FloatArray]:
        """Return the names of the *k* pages nearest to *vector*, and their cosines; see ``Vectors.search``."""
        return self.vectors().search(vector, k, among, exact=exact)

    def delete(self) -> None:
        """Delete the file; the next sync makes it anew.

        Raises:
            ForeignIndex: It was made by something else and is left alone.
        """
        with self._sync_lock, gate(self.path):
            found = inspect_index(self.path)
            if found.state in ("foreign", "symlink"):
                raise ForeignIndex(found.problem)
            remove_database(self.path)
            self._state = self._vectors = self._unchanged = None


def _same(one: dict[str, Entry], other: dict[str, Entry]) -> bool:
    """Say whether two snapshots hold the same; a snapshot of an unchanged field is the same object."""
    return one is other or one == other
