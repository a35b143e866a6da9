"""What the benchmarks work on: directories of pages, vectors, index files, and embedders that cost nothing.

Everything is made from fixed seeds, lies below ``build/`` while a benchmark runs, and is gone afterwards.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

CHECKOUT = Path(__file__).resolve().parents[1]
MODEL_CODE = "nomic-embed-text-v1.5"  # the one model that memoryfield-tool knows
DIMENSIONS = 768
PAGE_BYTES = 1500
_HARBOR = CHECKOUT / "data" / "harbor"

FloatArray = npt.NDArray[np.float32]


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """Give a directory to work in; our caches go there too, and nothing asks the network for a model."""
    (CHECKOUT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=CHECKOUT / "build") as name:
        place = Path(name)
        os.environ["MEMORYFIELD_CACHE_DIR"] = str(place / "cache")
        os.environ["MEMORYFIELD_STATE_DIR"] = str(place / "state")
        os.environ["HF_HUB_OFFLINE"] = "1"
        for variable in ("MEMORYFIELD_MODEL", "MEMORYFIELD_EMBEDDINGS_URL", "MEMORYFIELD_EMBEDDINGS_KEY"):
            os.environ.pop(variable, None)
        yield place


# Pages


@cache
def _sentences() -> tuple[str, ...]:
    """Return the sentences of the English pages of the example field: real prose, so that tokens are like real ones."""
    found: dict[str, None] = {}
    for path in sorted(_HARBOR.glob("*.md")):
        body = path.read_text("utf-8").split("\n---\n", 1)[-1]
        for paragraph in body.split("\n\n"):
            if paragraph.isascii() and not paragraph.startswith(("#", "|", "-", "`")):
                found.update(dict.fromkeys(re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))))
    return tuple(sentence for sentence in found if len(sentence) > 30)


def page_texts(count: int, *, size: int = PAGE_BYTES, seed: int = 1) -> list[str]:
    """Return texts of about *size* bytes, each of other sentences."""
    chance = random.Random(seed)
    texts = []
    for _ in range(count):
        parts: list[str] = []
        length = 0
        while length < size:
            parts.append(chance.choice(_sentences()))
            length += len(parts[-1]) + 1
        texts.append(" ".join(parts)[:size])
    return texts


def write_pages(directory: Path, count: int, *, size: int = PAGE_BYTES) -> Path:
    """Write *count* pages with frontmatter, about *size* bytes each, and return the directory."""
    directory.mkdir(parents=True)
    chance = random.Random(2)
    for number, text in enumerate(page_texts(count, size=max(size - 260, 20))):
        stamp = datetime.fromtimestamp(1_700_000_000 + 3600 * number, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        title, summary = text[:40].rsplit(" ", 1)[0], text[41:130].rsplit(" ", 1)[0]
        head = [
            f"title: {_quoted(title)}",
            f"uuid: {uuid.UUID(int=chance.getrandbits(128), version=4)}",
            f"summary: {_quoted(summary)}",
            f"created: '{stamp}'",
            f"updated: '{stamp}'",
        ]
        page = "\n".join(["---", *head, "---", "", f"## Note {number}", "", text, ""])
        (directory / f"note-{number:06}.md").write_text(page, encoding="utf-8", newline="\n")
    return directory


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Vectors


def clustered(count: int, dimensions: int = DIMENSIONS, *, seed: int = 3, common: float = 0.0) -> FloatArray:
    """Return unit vectors in clusters of very different sizes, as pages of a few subjects are.

    Args:
        count: How many.
        dimensions: Of each.
        seed: Of the random numbers.
        common: Weight of one direction that all share, as the vectors of many models do.
    """
    chance = np.random.default_rng(seed)
    clusters = max(count // 50, 4)
    centres = chance.standard_normal((clusters, dimensions), dtype=np.float32)
    sizes = chance.pareto(1.2, clusters) + 1
    members = chance.choice(clusters, count, p=sizes / sizes.sum())
    shared = common * np.sqrt(dimensions) * unit(chance.standard_normal((1, dimensions), dtype=np.float32))
    found = np.empty((count, dimensions), np.float32)
    for start in range(0, count, 4096):
        block = members[start : start + 4096]
        noise = chance.standard_normal((len(block), dimensions), dtype=np.float32)
        found[start : start + 4096] = unit(centres[block] + np.float32(0.8) * noise + shared.astype(np.float32))
    return found


def unstructured(count: int, dimensions: int = DIMENSIONS, *, seed: int = 4) -> FloatArray:
    """Return unit vectors in random directions: nothing is near anything, the hardest case for a first pass."""
    return unit(np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32))


def questions(vectors: FloatArray, count: int, *, seed: int = 5, distance: float = 0.7) -> FloatArray:
    """Return unit vectors that lie near some of *vectors*, as questions do that a page answers."""
    chance = np.random.default_rng(seed)
    chosen = vectors[chance.integers(0, len(vectors), count)]
    noise = unit(chance.standard_normal(chosen.shape, dtype=np.float32))
    return unit(chosen + np.float32(distance) * noise)


def unit(vectors: FloatArray) -> FloatArray:
    """Return rows of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class FreeEmbedder:
    """An embedder that hands out vectors whatever the texts are: from a pool, in order, so that it costs nothing.

    Args:
        dimensions: Of each vector.
        pool: How many there are before they repeat; 0 makes new ones for each call, which takes time but no memory.
    """

    model_code = MODEL_CODE
    source = "benchmarks"
    max_tokens: int | None = None
    document_prefix = "search_document: "
    query_prefix = "search_query: "
    normalized = True

    def __init__(self, dimensions: int = DIMENSIONS, pool: int = 16_384) -> None:
        self.dimensions = dimensions
        self._pool = unstructured(pool, dimensions) if pool else None
        self._next = 0

    def embed_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return one row for each text: (n_texts, dimensions) float32."""
        self._next += len(texts)
        if self._pool is None:
            return unstructured(len(texts), self.dimensions, seed=self._next)
        return self._pool[np.arange(self._next - len(texts), self._next) % len(self._pool)]

    def embed_query(self, text: str) -> FloatArray:
        """Return a vector: (dimensions,) float32."""
        return self.embed_documents([text])[0]


def write_index(directory: Path, vectors: FloatArray) -> Path:
    """Write an index file that holds *vectors*, without pages for them, and return its path."""
    from memoryfield.index import schema, store
    from memoryfield.index.connections import writing

    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{MODEL_CODE}.sqlite3"
    embedder = FreeEmbedder(vectors.shape[1], pool=1)
    with writing(path, create=True) as (connection, counter):
        schema.prepare(connection)
        for start in range(0, len(vectors), 4096):
            rows = [
                store.Row(
                    f"note-{start + number:06}.md",
                    '{"title": "A note", "summary": "What it says."}',
                    "2026-03-01T12:00:00+00:00",
                    (start + number).to_bytes(32, "big"),
                    vector.tobytes(),
                )
                for number, vector in enumerate(vectors[start : start + 4096].astype("<f4"))
            ]
            store.write_rows(connection, rows)
        schema.write_meta(connection, schema.next_meta(None, embedder, "page", counter))
    age(path)
    return path


def age(path: Path) -> None:
    """Set a file's modification time back by an hour: time stamps of the last seconds prove nothing."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 3600 * 10**9))
