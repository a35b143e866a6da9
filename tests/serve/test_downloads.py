"""Archives on their way: readers that read nothing, that go away, and a server that ends in the middle."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.serve import handlers
from memoryfield.serve.policy import Policy


@pytest.fixture
def large(field: mf.MemoryField, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mf.MemoryField:
    (field.path / "noise.bin").write_bytes(os.urandom(12_000_000))  # more than the system takes for a slow reader
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return field


def _reader(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(b"GET /memoryfield.zip HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def _until(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_readers_that_read_nothing_leave_room_for_others(running: Any, large: mf.MemoryField, tmp_path: Path) -> None:
    kept = tmp_path / "temporary"
    with running({"memory": large}, Policy()) as server:
        slow = [_reader(server.port) for _ in range(handlers._MOST_DOWNLOADS)]
        assert _until(lambda: len(list(kept.iterdir())) == len(slow))
        refused = server.get("/memoryfield.zip")
        assert refused.status == 503 and int(refused.headers["Retry-After"]) > 0
        assert server.get("/tea.md").status == 200
        for connection in slow:
            connection.close()
        assert _until(lambda: not list(kept.iterdir()))
        assert server.get("/memoryfield.zip").status == 200


def test_a_reader_that_stops_is_cut_off_and_leaves_nothing(
    running: Any,
    large: mf.MemoryField,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(handlers, "_SLOWEST_READER", 0.5)
    with running({"memory": large}, Policy()) as server, caplog.at_level(logging.WARNING):
        slow = _reader(server.port)
        assert _until(lambda: bool(list((tmp_path / "temporary").iterdir())))
        assert _until(lambda: not list((tmp_path / "temporary").iterdir()))
        slow.close()
        assert server.get("/search?q=%ff-my-question").status == 400
    assert "Traceback" not in caplog.text and "my-question" not in caplog.text


def test_a_server_that_ends_leaves_no_archive(running: Any, large: mf.MemoryField, tmp_path: Path) -> None:
    with running({"memory": large}, Policy()) as server:
        slow = [_reader(server.port) for _ in range(3)]
        assert _until(lambda: bool(list((tmp_path / "temporary").iterdir())))
    assert not list((tmp_path / "temporary").iterdir())
    for connection in slow:
        connection.close()
