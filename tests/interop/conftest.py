"""Fixtures of the tests that run memoryfield-tool: the program, the embedding server, and our library beside them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _neighbour(name: str) -> ModuleType:
    """Load a helper that lies beside this file; test directories are not on the import path."""
    spec = importlib.util.spec_from_file_location(f"interop_{name}", Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


ollama_server = _neighbour("ollama_server")
tool_program = _neighbour("tool_program")


@pytest.fixture(scope="session")
def _server() -> Iterator[Any]:
    with ollama_server.OllamaServer() as server:
        yield server


@pytest.fixture(scope="session")
def _worker(_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    try:
        worker = tool_program.start_worker(tmp_path_factory.mktemp("memoryfield-tool"), _server.url)
    except tool_program.ToolMissing as missing:
        pytest.skip(str(missing))
    yield worker
    worker.close()


@pytest.fixture
def server(_server: Any) -> Iterator[Any]:
    """The embedding server, with nothing counted yet."""
    _server.reset()
    yield _server
    assert _server.unknown == [], "a request that Ollama does not know"


@pytest.fixture
def tool(_worker: Any, tmp_path: Path) -> Any:
    """memoryfield-tool, with no field connected yet."""
    return tool_program.Tool(_worker, tmp_path / "tool.toml")


@pytest.fixture
def embedder(server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The default model as our catalogue finds it on the server that the tool uses."""
    from memoryfield.index.embedders.catalogue import load_model

    monkeypatch.setenv("OLLAMA_HOST", server.url)
    loaded = load_model("nomic-embed-text-v1.5", backend="ollama")
    server.reset()  # loading asks for a vector, to learn the dimensions
    return loaded


PAGES = {
    "index.md": b"---\ntitle: Workshop\nsummary: What this field is about.\n---\n\nSee [the lathe](lathe.md).\n",
    "lathe.md": b"---\ntitle: Lathe\nsummary: It turns bowls.\nuuid: 0198c1e0-0000-7000-8000-000000000001\n"
    b"created: '2026-03-01T10:00:00Z'\nupdated: '2026-03-01T10:00:00Z'\n---\n\n"
    b"Oil the spindle bearings every Monday.\n",
    "glue.md": b"---\ntitle: Hide glue\nsummary: Smells, but holds.\ntags: [wood, old]\n---\n\n"
    b"Soak it overnight in cold water.\n",
    "plain.md": b"The dust extractor hums when its filter bag is full.\n",
    "windows.md": b"---\r\ntitle: Windows\r\n---\r\n\r\nPutty hardens within two weeks.\r\n",
    "long.md": b"---\ntitle: Long\nsummary: More than is embedded.\n---\n\n"
    + b"Sanding belts wear out quickly. " * 400,
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A field of six pages that nobody has indexed; its name needs care in URIs, shells and configuration files."""
    place = tmp_path / "a field, 100 % é #1?'"
    place.mkdir()
    for filename, content in PAGES.items():
        (place / filename).write_bytes(content)
    return place


@pytest.fixture
def ours(embedder: Any) -> Any:
    """Open a field with our library and that embedder."""
    import memoryfield as mf

    return lambda path: mf.open_field(path, model=embedder)
