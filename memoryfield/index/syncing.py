"""One sync of a vector index: compare the pages with the rows, embed what changed, write it in short transactions.

No transaction is open while the model works. A page is hashed again after that, and a row is written only where the
stored one is still the one that was seen, or the page on disk is the one that was embedded (FORMAT X9). What was
written stays when the sync is interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memoryfield.errors import EmbeddingFailed, PageNotFound
from memoryfield.format.dates import clamped_ns, moment_of
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.snapshot import RACY_WINDOW_NS, Entry, Snapshot
from memoryfield.index import schema, store
from memoryfield.index.comparison import Comparison, compare, modified_text, page_names
from memoryfield.index.connections import Stamp, make_directory, writing
from memoryfield.index.donors import donated_vectors
from memoryfield.index.matrix import as_float32
from memoryfield.index.passages import Passage, cut_page, passage_limit
from memoryfield.index.passagestore import (
    PassageRow,
    copy_passages,
    drop_orphans,
    page_vector,
    passage_row,
    write_passages,
)
from memoryfield.index.recipes import PASSAGES, recipe_text
from memoryfield.index.report import SyncReport

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.format.pages import PageSource
    from memoryfield.index.embedders import Embedder

Progress = Callable[[int, int], None]  # pages done, pages to embed

_FIRST_CHUNK = 8  # pages; small, because nothing is known yet of the model's speed
_LARGEST_CHUNK = 1024
_CHUNK_SECONDS = 3.0  # what an interruption may cost
_CANARY = "a page of plain words"


@dataclass
class Sync:
    """One sync under way.

    Attributes:
        source: The pages.
        embedder: The model.
        recipe: Which text of a page is embedded.
        path: The index file.
        state: What the index holds.
        snapshot: What the field holds.
        progress: Called with pages done and pages to embed.
        retry_refused: Give the model another try on pages that it gave no usable vector for.
        refresh: Note newer stat data for pages whose earlier ones were too young to prove anything.
        has_written: Whether anything was written.
    """

    source: PageSource
    embedder: Embedder
    recipe: str
    path: Path
    state: store.State
    snapshot: Snapshot
    progress: Progress | None = None
    retry_refused: bool = False
    refresh: bool = False
    has_written: bool = False

    _known: dict[str, Entry] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)
    _counter: int = 0
    _verified: bool = True
    _added: list[str] = field(default_factory=list)
    _updated: list[str] = field(default_factory=list)
    _reused: list[str] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _equal: dict[bytes, dict[bytes, str]] = field(default_factory=dict)
    _embedded: int = 0
    _notes: list[str] = field(default_factory=list)
    _meta: schema.Meta | None = None
    _passages: dict[str, PassageRow] = field(default_factory=dict)

    def run(self) -> SyncReport:
        """Do it all."""
        self._known = dict(self.state.entries)
        self._refused = dict(self.state.refused)
        self._counter = self.state.stamp.counter if self.state.stamp is not None else 0
        comparison = compare(self.state, self.snapshot, retry_refused=self.retry_refused)
        seen = comparison.seen
        if self.refresh:
            old = self.snapshot.taken_ns - RACY_WINDOW_NS
            entries = self.snapshot.entries
            ripe = [name for name in self.state.racy if name in entries and max(entries[name][2:4]) < old]
            seen = sorted({*seen, *(name for name in ripe if self._known.get(name) == entries[name])})
        to_embed = self._write_known(comparison, seen)
        if to_embed:
            to_embed = self._take_donated(to_embed)
        self._embed_all(to_embed)
        return SyncReport(
            model_code=self.embedder.model_code,
            recipe=self.recipe,
            added=page_names(self._added),
            updated=page_names(self._updated),
            removed=page_names(comparison.gone),
            unchanged=page_names(comparison.unchanged),
            reused=page_names(self._reused),
            refused={name.removesuffix(PAGE_SUFFIX): self._refused[name] for name in sorted(self._refused)},
            waiting=page_names(self._waiting),
            bad_rows={name.removesuffix(PAGE_SUFFIX): why for name, why in sorted(self.state.bad.items())},
            equal_vectors=tuple(page_names(group.values()) for group in self._equal.values() if len(group) > 1),
            embedded=self._embedded,
            notes=tuple(self._notes),
        )

    def state_after(self, stamp_now: Stamp | None) -> store.State | None:
        """Return what the index holds now, or None where that has to be read again."""
        if not self.has_written:
            # Rows of a stranger that were found good; what we know of the pages is now in memory only.
            now = self.snapshot.entries
            known = self._known.items()
            same = {name: now[name] for name, entry in known if name in now and now[name].sha256 == entry.sha256}
            return replace(self.state, entries={**self._known, **same}, racy=frozenset(), modified=None)
        if not self._verified or stamp_now is None or stamp_now.counter != self._counter:
            return None
        return store.State(stamp_now, self._meta, self._known, frozenset(), self._refused)

    # Writing what needs no model

    def _write_known(self, comparison: Comparison, seen: Sequence[str]) -> list[str]:
        """Write what needs no embedding; return the filenames that do."""
        entries = self.snapshot.entries
        # Bad rows go first: what stands in the file after this write has then been looked at and found good.
        bad = {name: self._known.pop(name) for name in self.state.bad if name in self._known}
        adopted = self.state.meta is None  # the first write to it should have a reason
        if comparison.gone or comparison.copies or comparison.touched or bad or (seen and not adopted):
            missed = []
            with self._transaction() as connection:
                for filename, entry in bad.items():
                    store.remove(connection, filename, entry.sha256)
                for filename, like in comparison.copies.items():
                    if self._copy(connection, filename, like):
                        self._done(filename, reused=True)
                    else:
                        missed.append(filename)
                for filename in comparison.touched:
                    store.write_modified(
                        connection, filename, entries[filename].sha256, self._modified_text(filename, entries[filename])
                    )
                current = [name for name in (*comparison.touched, *seen) if name in entries]
                store.write_seen(connection, [(name, entries[name]) for name in current], self.snapshot.taken_ns)
                for filename in comparison.gone:
                    if filename in self._known:
                        store.remove(connection, filename, self._known[filename].sha256)
            self._known.update((name, entries[name]) for name in current)
            for filename in comparison.gone:
                self._known.pop(filename, None)
                self._refused.pop(filename, None)
            return sorted([*comparison.to_embed, *missed])
        return comparison.to_embed

    def _copy(self, connection: sqlite3.Connection, filename: str, like: str) -> bool:
        entry = self.snapshot.entries[filename]
        if not self._may_write(connection, filename, entry.sha256):
            return False
        if self.recipe == PASSAGES and not copy_passages(connection, filename, like, entry.sha256):
            return False
        done = store.copy_row(connection, filename, like, entry.sha256, self._modified_text(filename, entry))
        if done:
            store.write_seen(connection, [(filename, entry)], self.snapshot.taken_ns)
        return done

    def _take_donated(self, to_embed: list[str]) -> list[str]:
        """Use the vectors that came with a field which cannot be written, where they are of the same content (A3)."""
        if not self.source.read_only and self.path.parent == self.source.path:
            return to_embed
        if self.recipe == PASSAGES:  # a donor's row has one vector
            return to_embed
        wanted = {self.snapshot.entries[name].sha256 for name in to_embed}
        donated, note = donated_vectors(self.source, self.path, self.embedder, self.recipe, wanted)
        if note:
            self._notes.append(note)
        taken = [name for name in to_embed if self.snapshot.entries[name].sha256 in donated]
        for start in range(0, len(taken), _LARGEST_CHUNK):
            pages = self._read(taken[start : start + _LARGEST_CHUNK])
            vectors = {page.filename: donated[bytes.fromhex(page.sha256)] for page in pages}
            self._write_vectors(pages, vectors, {}, reused=True)
        rest = set(to_embed) - set(taken)
        return [name for name in to_embed if name in rest]

    # Embedding

    def _embed_all(self, to_embed: list[str]) -> None:
        total, done, size = len(to_embed), 0, _FIRST_CHUNK
        if self.progress is not None and total:
            self.progress(0, total)
        while done < total:
            started = time.perf_counter()
            chunk = to_embed[done : done + size]
            pages = self._read(chunk)
            vectors, problems = self._embed(pages)
            self._write_vectors(pages, vectors, problems)
            done += len(chunk)
            if self.progress is not None:
                self.progress(done, total)
            share = _CHUNK_SECONDS / max(time.perf_counter() - started, 1e-6)
            size = int(min(max(size * min(share, 8.0), _FIRST_CHUNK / 2), _LARGEST_CHUNK))

    def _read(self, filenames: Sequence[str]) -> list[Page]:
        """Return the pages that are still what the snapshot saw; the others wait."""
        pages = []
        for filename in filenames:
            try:
                page = self.source.read(filename)
            except PageNotFound:
                self._waiting.append(filename)
                continue
            if bytes.fromhex(page.sha256) == self.snapshot.entries[filename].sha256:
                pages.append(page)
            else:
                self._waiting.append(filename)
        return pages

    def _embed(self, pages: Sequence[Page]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the vectors as stored, and for the pages without a usable one why; both by filename."""
        if self.recipe == PASSAGES:
            return self._embed_passages(pages)
        return self._embed_texts({page.filename: recipe_text(self.recipe, page) for page in pages})

    def _embed_passages(self, pages: Sequence[Page]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the vectors of whole pages, and keep those of their passages for writing.

        Of a page with several passages those that the model cannot place are left out.
        """
        limit = passage_limit(self.embedder.max_tokens)
        cut: dict[str, list[Passage]] = {}
        for page in pages:
            cut[page.filename], more = cut_page(page, limit, self.embedder.document_prefix)
            if more:
                self._notes.append(f"{page.name}: only the first {len(cut[page.filename]):,} passages are embedded")
        texts = {f"{number}/{name}": piece.text for name, cuts in cut.items() for number, piece in enumerate(cuts)}
        found, refused = self._embed_texts(texts)
        vectors: dict[str, bytes] = {}
        problems: dict[str, str] = {}
        for page in pages:
            name = page.filename
            placed = [number for number in range(len(cut[name])) if f"{number}/{name}" in found]
            if not placed:
                problems[name] = refused[f"0/{name}"]
                continue
            joined = b"".join(found[f"{number}/{name}"] for number in placed)
            rows = np.frombuffer(joined, store.FLOAT32).reshape(len(placed), -1).astype(np.float32)
            vectors[name] = page_vector(rows).astype(store.FLOAT32).tobytes()
            spans = [(cut[name][number].start, cut[name][number].end) for number in placed]
            self._passages[name] = passage_row(name, bytes.fromhex(page.sha256), spans, rows)
        return vectors, problems

    def _embed_texts(self, given: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the vectors as stored, and for the texts without a usable one why; both by the name of the text."""
        texts: dict[str, list[str]] = {}  # equal texts are embedded once
        for name, text in given.items():
            texts.setdefault(text, []).append(name)
        ordered = sorted(texts, key=len)  # texts of one length side by side: models pad the shorter ones of a batch
        vectors: dict[str, bytes] = {}
        problems: dict[str, str] = {}
        for part in self._embedded_parts(ordered):
            if isinstance(part, tuple):
                text, reason = part
                problems.update((name, reason) for name in texts[text])
                continue
            bad = store.unusable(part.vectors)
            for number, text in enumerate(part.texts):
                for name in texts[text]:
                    if number in bad:
                        problems[name] = f"{self.embedder.model_code} gave a vector that is {bad[number]}"
                    else:
                        vectors[name] = part.vectors[number].astype(store.FLOAT32).tobytes()
        return vectors, problems

    def _embedded_parts(self, texts: Sequence[str]) -> Iterator[_Part | tuple[str, str]]:
        """Embed texts together or, where the model refuses that, one by one to find out which it cannot take."""
        if not texts:
            return
        try:
            yield _Part(texts, self._call(texts))
            return
        except EmbeddingFailed:
            self._call([_CANARY])  # raises as well if the trouble is the model's and not a page's
        for text in texts:
            try:
                yield _Part([text], self._call([text]))
            except EmbeddingFailed as error:
                yield text, str(error)

    def _call(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self._embedded += len(texts)
        vectors = as_float32(self.embedder.embed_documents(list(texts)), self.embedder.model_code)
        wanted = (len(texts), self.embedder.dimensions)
        if vectors.shape != wanted:
            raise EmbeddingFailed(
                f"{self.embedder.model_code} gave an array of shape {vectors.shape} for {len(texts)} texts, "
                f"expected {wanted}; nothing of it was stored."
            )
        return vectors

    # Writing vectors

    def _write_vectors(
        self,
        pages: Sequence[Page],
        vectors: Mapping[str, bytes],
        problems: Mapping[str, str],
        *,
        reused: bool = False,
    ) -> None:
        entries = self.snapshot.entries
        rows = []
        for page in self._still_the_same(pages):
            entry = entries[page.filename]
            if page.filename in vectors:
                # The system's own float, as the reference tool takes it (FORMAT X3).
                text = page.modified.isoformat() if page.modified is not None else modified_text(entry.mtime_ns)
                vector = vectors[page.filename]
                rows.append(store.Row(page.filename, frontmatter_json(page), text, entry.sha256, vector))
            else:
                rows.append(store.Row(page.filename, "", "", entry.sha256, b""))
        if not rows:
            return
        written: list[store.Row] = []
        with self._transaction() as connection:
            for row in rows:
                if self._may_write(connection, row.filename, row.sha256):
                    written.append(row)
                else:
                    self._waiting.append(row.filename)
            store.write_rows(connection, [row for row in written if row.embedding])
            kept = [self._passages.pop(row.filename) for row in written if row.filename in self._passages]
            if kept:
                write_passages(connection, kept)
            for row in written:
                if not row.embedding:
                    store.write_refused(connection, row.filename, row.sha256, problems[row.filename])
            seen = [(row.filename, entries[row.filename]) for row in written]
            store.write_seen(connection, seen, self.snapshot.taken_ns, sure=True)
        for row in written:
            if row.embedding:
                self._done(row.filename, reused=reused)
                same = self._equal.setdefault(hashlib.blake2b(row.embedding, digest_size=16).digest(), {})
                same.setdefault(row.sha256, row.filename)
            else:
                self._known[row.filename] = entries[row.filename]
                self._refused[row.filename] = problems[row.filename]

    def _still_the_same(self, pages: Sequence[Page]) -> list[Page]:
        """Return the pages that are on disk as they were embedded; the others wait (FORMAT X9)."""
        entries = self.snapshot.entries
        if len(pages) * 4 > len(entries):  # then one look at all pages is cheaper than one at each of these
            now = self.source.snapshot(known=self.snapshot).entries
            hashes = {filename: entry.sha256 for filename, entry in now.items()}
        else:
            hashes = {page.filename: self._hash_now(page.filename) or b"" for page in pages}
        same = [page for page in pages if hashes.get(page.filename) == entries[page.filename].sha256]
        self._waiting += [page.filename for page in pages if hashes.get(page.filename) != entries[page.filename].sha256]
        return same

    def _done(self, filename: str, *, reused: bool) -> None:
        had_row = filename in self.state.entries and filename not in self.state.refused
        (self._updated if had_row else self._added).append(filename)
        if reused:
            self._reused.append(filename)
        self._known[filename] = self.snapshot.entries[filename]
        self._refused.pop(filename, None)

    def _may_write(self, connection: sqlite3.Connection, filename: str, sha256: bytes) -> bool:
        """Say whether the stored row is the one that we saw; if another sync wrote meanwhile, whether ours is newer."""
        without_row = filename in self.state.refused or filename in self.state.bad
        seen = None if without_row else self.state.entries.get(filename)
        stored = store.stored_sha256(connection, filename)
        if stored == (None if seen is None else seen.sha256) or stored == sha256:
            return True
        return self._hash_now(filename) == sha256

    def _hash_now(self, filename: str) -> bytes | None:
        try:
            return hashlib.sha256(self.source.read_bytes(filename)).digest()
        except PageNotFound:
            return None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open one short write; afterwards ``meta`` says who wrote last."""
        make_directory(self.path.parent)
        with writing(self.path, create=True) as (connection, counter):
            schema.prepare(connection, self.recipe)
            meta = schema.check_schema(connection, self.path)
            if meta is not None:
                schema.check_model(meta, self.path, self.embedder, self.recipe)
            # The count before this write is one that we looked at all rows of, or that another sync of ours left.
            before = counter - 1
            self._verified = self._verified and before in (self._counter, -1 if meta is None else meta.counter)
            if meta is None or meta.counter != before or self._counter < 0:  # in WAL mode the count says nothing
                store.reconcile(connection)
            yield connection
            if self.recipe == PASSAGES:
                drop_orphans(connection)
            told = counter if self._verified else -1
            self._meta = schema.next_meta(meta, self.embedder, self.recipe, told)
            schema.write_meta(connection, self._meta)
        self._counter = counter
        self.has_written = True

    def _modified_text(self, filename: str, entry: Entry) -> str:
        """Return ``last_modified`` as the reference tool works it out, from the system's own float (FORMAT X3)."""
        with contextlib.suppress(OSError):
            status = os.lstat(self.source.path / filename)
            moment = moment_of(status.st_mtime)
            if moment is not None and clamped_ns(status.st_mtime_ns) == clamped_ns(entry.mtime_ns):
                return moment.isoformat()
        return modified_text(entry.mtime_ns)


@dataclass(frozen=True)
class _Part:
    """Texts that were embedded together, and their vectors."""

    texts: Sequence[str]
    vectors: npt.NDArray[np.float32]


def frontmatter_json(page: Page) -> str:
    """Return the frontmatter as the table holds it: an object of text and structure, or ``null``."""
    if not page.has_frontmatter or page.frontmatter_error is not None:
        return "null"
    return json.dumps(dict(page.frontmatter))
