"""A field that memoryfield-tool serves, opened by its address; read and written over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import PageChanged

pytestmark = pytest.mark.interop

TEA = b"---\ntitle: Tea\nuuid: 0d5a2bd4-2f0c-4a57-9b2c-3d64d1a8a001\n---\nAnn drinks green tea, see [dock](dock.md).\n"


@pytest.fixture
def served(tool: Any, server: Any, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory, and the address at which the tool serves it; writes are allowed."""
    place = tmp_path / "notes"
    place.mkdir()
    (place / "tea.md").write_bytes(TEA)
    (place / "dock.md").write_bytes(b"# Dock\n\nNine metres deep.\n")
    tool.connect(place, "notes")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = next((Path(__file__).parents[2] / "build" / "interop-venv").glob("*/memoryfield-tool*"))
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "MEMORYFIELD_TOOL_CONFIG": str(tmp_path / "tool.toml")}
    process = subprocess.Popen(
        [str(program), "serve", "--port", str(port), "--allow-writes"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**kept, **home, "OLLAMA_HOST": server.url, "NO_PROXY": "*"},
    )
    try:
        _wait_for(port, process)
        yield place, f"http://127.0.0.1:{port}/notes"
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "memoryfield-tool serve ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("memoryfield-tool serve does not answer")


def test_a_served_field_is_read_and_written(served: tuple[Path, str]) -> None:
    place, address = served
    field = mf.open_field(address, model="hashing-1024")
    assert field.names() == ["dock", "tea"] and field["tea"].raw == TEA and field.name == "notes"
    before = field["tea"]
    edited = field.edit("tea", append="And black.\n")
    assert (place / "tea.md").read_bytes() == edited.raw and edited.uuid == before.uuid
    field.write("coal", title="Coal", body="black\n", on_similar="ignore")
    assert (place / "coal.md").read_bytes() == field["coal"].raw
    with pytest.raises(PageChanged):
        field.edit("tea", title="x", if_sha256=before.sha256)
    field.rename("dock", "deep-dock")
    assert not (place / "dock.md").exists() and "[dock](deep-dock.md)" in (place / "tea.md").read_text()
    field.delete("coal")
    assert sorted(p.name for p in place.glob("*.md")) == ["deep-dock.md", "tea.md"]
