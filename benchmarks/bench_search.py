"""Warm vector search, the question's embedding apart: against one product over the matrix, and against the peers."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from pathlib import Path

import numpy as np
from material import DIMENSIONS, FloatArray, FreeEmbedder, clustered, questions, unstructured, workspace, write_index
from measure import Results, Side, arguments, cpu, duration, take_turns, wall
from peers import MF, TOOL, Package, PeerMissing, start
from threadpoolctl import threadpool_limits

from memoryfield.format.pages import PageDirectory
from memoryfield.index.loaded import Vectors
from memoryfield.index.vectors import VectorIndex

K = 20  # as many as memoryfield-tool always returns
QUESTIONS = 256


class Bench:
    """An index of one size, and the sides that search it."""

    def __init__(self, place: Path, count: int) -> None:
        self.count = count
        self.directory = place / f"field-{count}"
        vectors = clustered(count)
        self.vectors_file = place / f"vectors-{count}.bin"
        vectors.tofile(self.vectors_file)
        asked = questions(vectors, QUESTIONS)
        self.questions_file = place / f"questions-{count}.bin"
        asked.tofile(self.questions_file)
        write_index(self.directory, vectors)
        self.index = VectorIndex(PageDirectory(self.directory), FreeEmbedder())
        self.matrix = self.index.vectors().matrix
        self._asked = itertools.cycle(asked)
        self.times = max(3, min(1000, 100_000 // count))

    def ours(self) -> None:
        """Search through the index, which looks whether its file changed."""
        self.index.search(next(self._asked), K)

    def exact(self) -> None:
        """The same with every row scored."""
        self.index.search(next(self._asked), K, exact=True)

    def limit(self) -> None:
        """One product and one partition."""
        scores = self.matrix @ next(self._asked)
        np.argpartition(scores, len(scores) - K)

    def product(self) -> None:
        """The product alone."""
        self.matrix @ next(self._asked)


def recall(vectors: FloatArray, asked: FloatArray, k: int = 10) -> float:
    """Return the share of the exact first *k* that the search over bits finds."""
    found = Vectors(tuple(f"{number:07}" for number in range(len(vectors))), vectors)
    share = [len({*found.search(q, k)[0]} & {*found.search(q, k, exact=True)[0]}) for q in asked]
    return float(np.mean(share)) / k


def time_size(results: Results, place: Path, count: int, rounds: int, packages: list[Package]) -> None:
    """Add the rows of one size."""
    what = f"search of {count:,} x {DIMENSIONS}, first {K}"
    bench = Bench(place, count)
    sides: dict[str, Side] = {
        "ours": cpu(bench.ours, bench.times),
        "limit": cpu(bench.limit, bench.times),
        "product": cpu(bench.product, bench.times),
    }
    if count >= 100_000:
        sides["exact"] = cpu(bench.exact, bench.times)
    missing: list[tuple[str, object]] = []
    names: list[str] = []
    with contextlib.ExitStack() as stack, threadpool_limits(1):
        for package in packages:
            peer = start(package)
            try:
                if isinstance(peer, PeerMissing):
                    raise peer
                stack.enter_context(peer)
                settings = {"directory": bench.directory, "questions": bench.questions_file}
                if package is MF:
                    settings = {**settings, "directory": place / f"mf-{count}", "vectors": bench.vectors_file}
                peer.ask("prepare_search", **settings)
                if peer.ask("search", times=1)["said"] != K:
                    raise PeerMissing("it returned another number of pages")
            except PeerMissing as reason:
                missing.append((package.name, reason))
                continue
            times = max(1, bench.times // 20)
            sides[peer.name] = lambda peer=peer, times=times: peer.seconds("search", times=times)
            names.append(peer.name)
        seen = take_turns(rounds, **sides)
    if count >= 100_000:
        alone = "float32 product alone, one core"
        results.compare(what, seen, "product", alone, at_most=1.0)
        results.compare("the same, every row scored", seen, "product", alone, ours="exact")
        with threadpool_limits(os.cpu_count()):
            many = take_turns(rounds, ours=wall(bench.ours, bench.times), product=wall(bench.product, bench.times))
        results.compare("the same over bits, on the clock", many, "product", "float32 product alone, all cores")
    else:
        at_most = 3.0 if count <= 300 else 1.3
        results.compare(what, seen, "limit", "float32 product and partition, one core", at_most=at_most)
    for name in names:
        results.compare(what, seen, name, name)
    for name, reason in missing:
        results.missing(what, name, reason)


def time_unstructured(results: Results, count: int, rounds: int) -> None:
    """Add the row of the case in which the first pass over bits helps nothing."""
    vectors = unstructured(count)
    found = Vectors(tuple(f"{number:07}" for number in range(count)), vectors)
    asked = itertools.cycle(questions(vectors, 64, distance=30.0))
    with threadpool_limits(1):
        seen = take_turns(
            rounds,
            ours=cpu(lambda: found.search(next(asked), K), 3),
            product=cpu(lambda: vectors @ next(asked), 3),
        )
    what = f"search of {count:,} x {DIMENSIONS} without structure, far questions"
    results.compare(what, seen, "product", "float32 product alone, one core")


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results(
        "Search",
        "CPU time of one search in a process that holds the index, unless it says clock; the peers get their query "
        "vector for free too.",
    )
    rounds = 7 if options.quick else 15
    with workspace() as place:
        for count in (300, 10_000) if options.quick else (300, 10_000, 100_000):
            time_size(results, place, count, rounds if count < 100_000 else max(5, rounds // 2), [TOOL, MF])
        count = 30_000 if options.quick else 100_000
        time_unstructured(results, count, 5)
        cases = [
            ("clusters", clustered(count), 0.7),
            ("clusters that share a direction, cosines near 0.8", clustered(count, common=2.5), 0.3),
            ("clusters, 384 dimensions", clustered(count, 384), 0.7),
            ("no structure, questions near a page", unstructured(count), 0.7),
            ("no structure, questions far from all", unstructured(count), 30.0),
        ]
        for name, vectors, distance in cases:
            asked = questions(vectors, 50 if options.quick else 200, distance=distance)
            share = recall(vectors, asked)
            held, turn = Vectors(tuple(f"{number:07}" for number in range(count)), vectors), itertools.cycle(asked)
            for question in asked[:3]:  # the bits are made at the second search
                held.search(question, K)
            with threadpool_limits(1):
                seen = take_turns(
                    5,
                    ours=cpu(lambda v=held, q=turn: v.search(next(q), K), 3),
                    every=cpu(lambda m=vectors, q=turn: m @ next(q), 3),
                )
            # without structure every row is scored, so recall 1 is certain there and says nothing of the bits
            promised = not name.startswith("no structure")
            results.add(
                f"recall@10 of {count:,}, {len(asked)} questions: {name}",
                "every row scored",
                f"1, {duration(seen.median('every'))}",
                f"{share:.4f}, {duration(seen.median('ours'))}",
                seen.ratio("ours", "every"),
                reach="recall 1" if promised else "",
                reached=share > 0.99995 if promised else None,
            )
    results.print()


if __name__ == "__main__":
    sys.exit(main())
