"""The tools over MCP: the package's own client and our server in another process, joined by a real pipe."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf

OTHER_LINE = "mcp==1.30.0"


@pytest.fixture
def field(tmp_path: Path) -> Path:
    field = mf.open_field(tmp_path / "memory", create=True)
    field.write("tea", title="Tea", body="Ann drinks green tea.\n")
    field.write("dock", title="Dock", body="The dock is nine metres deep.\n")
    return field.path


async def _talk(field: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    arguments = ["-m", "memoryfield.cli", "mcp", f"personal={field}", "--model", "hashing-1024", "--who", "robin"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, **environment})
    seen: dict[str, Any] = {}
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("memory_search", {"query": "green tea"}),
            ("memory_write", {"title": "Winch", "body": "The winch is red. Naïve ☕"}),
            ("memory_search", {"wrong": 1}),
            ("memory_read", {"names": ["winch"]}),
        ]
        for name, given in calls:
            result = await session.call_tool(name, given)
            answer = json.loads(result.content[0].text)
            seen.setdefault(name, []).append((answer, getattr(result, "is_error", getattr(result, "isError", None))))
    return seen


def _check(seen: dict[str, Any], field: Path) -> None:
    assert len(seen["tools"]) == 7
    (found, failed), (wrong, refused) = seen["memory_search"]
    assert found["hits"][0]["name"] == "tea" and not failed
    assert "unknown arguments" in wrong["error"] and refused
    assert "Naïve ☕" in seen["memory_read"][0][0]["pages"][0]["text"]
    step = mf.open_field(field).history()[0]
    assert (step.verb, step.who) == ("write", "robin")


def _run(field: Path, environment: dict[str, str]) -> Any:
    """Talk on a thread of its own: a browser test of the same process may have left a loop running on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_talk(field, environment))).result()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the client's own pipes, at its end
def test_the_tools_over_a_real_pipe(field: Path) -> None:
    _check(_run(field, {}), field)


@pytest.fixture(scope="module")
def other_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 1.x line of the package in a directory of its own."""
    target = tmp_path_factory.mktemp("mcp1")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), OTHER_LINE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode:
        pytest.skip(f"{OTHER_LINE} cannot be installed here: {done.stderr.strip()[-200:]}")
    return target


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_server_on_the_1x_line_answers_alike(field: Path, other_line: Path) -> None:
    _check(_run(field, {"PYTHONPATH": str(other_line)}), field)


def test_the_entry_point_names_functions_that_jupyter_can_load(field: Path) -> None:
    code = (
        "import importlib, json\n"
        "from importlib.metadata import entry_points\n"
        "specs = [s for e in entry_points(group='jupyter_server_mcp.tools') for s in e.load()()]\n"
        "functions = [getattr(importlib.import_module(m), f) for m, f in (s.split(':') for s in specs)]\n"
        "found = functions[0]('green tea')\n"
        "print(json.dumps([len(functions), found['hits'][0]['name'], functions[0].__doc__[:17]]))\n"
    )
    environment = {**os.environ, "MEMORYFIELD_FIELDS": f"me={field}", "MEMORYFIELD_MODEL": "hashing-1024"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout) == [7, "tea", "Search the memory"]
    assert any(point.name == "memoryfield" for point in entry_points(group="jupyter_server_mcp.tools"))


def test_without_a_field_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    from memoryfield.agent.jupyter import fields_from, tool_specifications
    from memoryfield.errors import QueryError

    monkeypatch.delenv("MEMORYFIELD_FIELDS", raising=False)
    assert tool_specifications() == []
    with pytest.raises(QueryError, match="MEMORYFIELD_FIELDS"):
        fields_from({})
    named = fields_from({"MEMORYFIELD_FIELDS": os.pathsep.join(["a=/x/y", "/z/notes"])})
    assert {label: str(path) for label, path in named.items()} == {
        "a": str(Path("/x/y")),
        "notes": str(Path("/z/notes")),
    }
