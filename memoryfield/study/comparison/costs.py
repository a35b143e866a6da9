"""What a space costs: seconds to embed, to load and to ask, bytes of its index, and what its model does not read.

Seconds are measured while pages are embedded anyway and kept in the cache directory beside nothing but themselves, so
that a comparison which finds its indexes ready still knows them. An index that was made elsewhere is measured on a few
pages. Seconds are this machine's; they are the one part of a comparison that another run does not repeat exactly.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memoryfield import places

if TYPE_CHECKING:
    from memoryfield.index.embedders import Embedder

_SCHEMA = 1
_SAMPLE = 16  # pages that an index made elsewhere is measured on
_SAMPLE_SECONDS = 10.0
_COUNTED = 2000  # pages whose tokens are counted
_QUESTIONS = 5


@dataclass(frozen=True)
class Costs:
    """What a space costs; None where it was not measured.

    Attributes:
        seconds_per_1000: To embed 1,000 pages of this field.
        measured_on: Pages that were timed, in all runs on this machine.
        load_seconds: From the model's name to its first vector, where it was not in memory.
        query_seconds: Median time to embed a question.
        dimensions: Length of a vector.
        index_bytes: Size of the index file; for a shortened space what it would be.
        max_tokens: Tokens that the model reads; None where there is no limit or nobody says.
        cut_pages: Pages with more tokens than that.
        cut_tokens: Share of all tokens that the model does not read.
        counted: Pages whose tokens were counted.
    """

    seconds_per_1000: float | None
    measured_on: int
    load_seconds: float | None
    query_seconds: float | None
    dimensions: int
    index_bytes: int | None
    max_tokens: int | None
    cut_pages: int | None
    cut_tokens: float | None
    counted: int


class TimedEmbedder:
    """Another embedder, with a clock on what it does with documents."""

    def __init__(self, whole: Embedder) -> None:
        self.whole = whole
        self.model_code = whole.model_code
        self.source = whole.source
        self.dimensions = whole.dimensions
        self.max_tokens = whole.max_tokens
        self.document_prefix = whole.document_prefix
        self.query_prefix = whole.query_prefix
        self.normalized = whole.normalized
        self.texts = 0
        self.seconds = 0.0

    def __repr__(self) -> str:
        return f"TimedEmbedder({self.whole!r})"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, and note how long it took."""
        started = time.perf_counter()
        rows = self.whole.embed_documents(texts)
        self.seconds += time.perf_counter() - started
        self.texts += len(texts)
        return rows

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        return self.whole.embed_query(text)


@dataclass
class CostRecord:
    """What was measured of one model and recipe on one field, over all runs.

    Attributes:
        texts: Pages embedded.
        seconds: Time that took.
        load_seconds: Time of the last load that was measured.
    """

    texts: int = 0
    seconds: float = 0.0
    load_seconds: float | None = None

    @classmethod
    def load(cls, file: Path) -> CostRecord:
        """Read a record; what is missing or makes no sense counts as nothing measured."""
        try:
            kept = json.loads(file.read_text("utf-8"))
            if kept["schema"] != _SCHEMA:
                return cls()
            texts, seconds, load = int(kept["texts"]), float(kept["seconds"]), kept["load_seconds"]
            load = None if load is None else float(load)
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return cls()
        sane = texts >= 0 and 0.0 <= seconds < 1e9 and (load is None or 0.0 <= load < 1e6)
        return cls(texts, seconds, load) if sane else cls()

    def add(self, timed: TimedEmbedder) -> None:
        """Add what a clock shows, and set it back."""
        self.texts += timed.texts
        self.seconds += timed.seconds
        timed.texts, timed.seconds = 0, 0.0

    def save(self, file: Path) -> None:
        """Keep the record; a cache that cannot be written is no error."""
        values = {"schema": _SCHEMA, "texts": self.texts, "seconds": self.seconds, "load_seconds": self.load_seconds}
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        try:
            places.private_directory(file.parent)
            temporary.write_text(json.dumps(values), "utf-8")
            temporary.replace(file)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def record_file(field: Path, embedder: Embedder, recipe: str) -> Path:
    """Return where the record of a model (with its way of running) and a recipe on a field is kept."""
    ran = [embedder.model_code, str(getattr(embedder, "backend", "")), embedder.source, recipe]
    name = hashlib.sha256(json.dumps(ran).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return places.cache_directory() / "costs" / places.field_key(field) / f"{name}.json"


def sample(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of *items*, evenly spaced, the same each time."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]


def measure_speed(timed: TimedEmbedder, texts: Sequence[str]) -> None:
    """Let the model embed a few pages, for the clock alone."""
    started = time.perf_counter()
    chosen = sample(texts, _SAMPLE)
    for top in range(0, len(chosen), 4):
        if time.perf_counter() - started > _SAMPLE_SECONDS:
            return
        timed.embed_documents(chosen[top : top + 4])


def query_seconds(embedder: Embedder, questions: Sequence[str]) -> float | None:
    """Return the median time that the model needs for a question."""
    times = []
    for question in sample(questions, _QUESTIONS):
        started = time.perf_counter()
        embedder.embed_query(question)
        times.append(time.perf_counter() - started)
    return statistics.median(times) if times else None


def truncation(embedder: Embedder, texts: Sequence[str]) -> tuple[int | None, float | None, int]:
    """Return how many pages have more tokens than the model reads, the share of tokens past that, and pages counted.

    Of more than 2,000 pages, 2,000 are counted and the number of pages is scaled up. None where the model has a limit
    and its tokens cannot be counted here.
    """
    if embedder.max_tokens is None:
        return (None, None, 0) if getattr(embedder, "backend", "") in ("ollama", "endpoint") else (0, 0.0, len(texts))
    count = getattr(embedder, "count_tokens", None)
    if count is None:
        return None, None, 0
    chosen = sample(texts, _COUNTED)
    if not chosen:
        return 0, 0.0, 0
    tokens = np.asarray(count(chosen), dtype=np.int64)
    past = np.maximum(tokens - embedder.max_tokens, 0)
    cut = round(int((past > 0).sum()) * len(texts) / len(chosen))
    return cut, float(past.sum() / max(int(tokens.sum()), 1)), len(chosen)
