"""Readers and writers at a real server process for some seconds; benchmarks/bench_soak.py runs the same for longer."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_eight_readers_and_four_writers_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    loopback, material, soak = (importlib.import_module(name) for name in ("loopback", "material", "soak"))
    field = material.write_pages(tmp_path / "field", 50, size=400)
    with loopback.serving(field, tmp_path, "--writes") as server:
        seen = soak.soak(server, field, 4.0, notes=50, every=0.5, pauses=(0.02, 0.02))
    assert seen.wrong == []
    assert seen.steps == seen.counted and seen.pages > 0
    assert "put 201" in seen.requests and any(what.startswith("search ") for what in seen.requests)
    assert len(list(field.glob("note-*.md"))) == 50
