"""Fixtures for all tests: caches and state in a temporary directory, no network, no colour."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own cache and state, and keep model loading off the network."""
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(home / "cache"))
    monkeypatch.setenv("MEMORYFIELD_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("MEMORYFIELD_MODEL", "MEMORYFIELD_EMBEDDINGS_URL", "MEMORYFIELD_EMBEDDINGS_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
