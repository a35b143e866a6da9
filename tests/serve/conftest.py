"""A real server on loopback for each test that asks for one, in a thread of its own."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.serve.policy import Policy
from memoryfield.serve.standalone import make_site, serving


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Server:
    port: int
    field: mf.MemoryField

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body, headers=named)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)


@contextmanager
def running(fields: Mapping[str, mf.MemoryField], policy: Policy) -> Iterator[Server]:
    site = make_site(fields, policy)
    started = threading.Event()
    held: dict[str, Any] = {}

    def run() -> None:
        async def main() -> None:
            held["loop"], held["stop"] = asyncio.get_running_loop(), asyncio.Event()

            def ready(port: int) -> None:
                held["port"] = port
                started.set()

            await serving(site, "127.0.0.1", 0, ready, held["stop"])

        asyncio.run(main())

    thread = threading.Thread(target=run, name="test-server")
    thread.start()
    assert started.wait(20)
    try:
        yield Server(held["port"], next(iter(fields.values())))
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(name="running")
def _running() -> Any:
    """``running(fields, policy)`` as a context manager."""
    return running


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    field = mf.open_field(tmp_path / "memory", create=True, model="hashing-1024", who="http")
    field.write("tea", title="Tea", summary="green tea", body="Ann drinks green tea, see [dock](dock.md).\n")
    field.write("dock", title="Dock", body="The dock is nine metres deep.\n")
    return field


@pytest.fixture
def server(field: mf.MemoryField) -> Iterator[Server]:
    with running({"memory": field}, Policy(writes=True)) as server:
        yield server
