"""The tools over the Model Context Protocol, with the package ``mcp`` (extra ``agents``), 1.x or 2.x.

Both lines have a low-level server that takes schemas as they are; they differ in how handlers are given to it.
"""

from __future__ import annotations

import json
from typing import Any

from memoryfield.agent.protocol import MEMORY_PROTOCOL
from memoryfield.agent.tools import MemoryTools
from memoryfield.errors import QueryError

_WRITING = ("memory_write", "memory_delete")


def build_server(tools: MemoryTools, name: str = "memoryfield") -> Any:
    """Return an MCP server (``mcp.server.lowlevel.Server``) that offers the tools.

    Args:
        tools: The tools.
        name: Name that the client is told.

    Raises:
        QueryError: The package ``mcp`` is missing.
    """
    try:
        import mcp.types as types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        why = "is missing" if error.name == "mcp" else f"cannot be imported ({error})"
        raise QueryError(f"the package 'mcp' {why}: pip install 'memoryfield-lab[agents]'") from error
    from memoryfield import __version__

    def offered() -> list[Any]:
        # validated from plain values: the two lines of the package name these attributes differently
        return [
            types.Tool.model_validate(schema | {"annotations": _hints(schema["name"])})
            for schema in tools.schemas("mcp")
        ]

    async def called(tool: str, arguments: dict[str, Any] | None) -> Any:
        import anyio.to_thread

        answer = await anyio.to_thread.run_sync(lambda: tools.call(tool, arguments or {}))
        text = json.dumps(answer, ensure_ascii=False)
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult.model_validate({"content": content, "isError": "error" in answer})

    if hasattr(Server, "list_tools"):  # 1.x
        server: Any = Server(name, version=__version__, instructions=MEMORY_PROTOCOL)

        async def list_tools() -> list[Any]:
            return offered()

        server.list_tools()(list_tools)
        server.call_tool(validate_input=False)(called)  # our own answer to wrong arguments says what to do next
        return server

    async def on_list(_context: Any, _request: Any) -> Any:
        return types.ListToolsResult(tools=offered())

    async def on_call(_context: Any, request: Any) -> Any:
        return await called(request.name, request.arguments)

    return Server(name, version=__version__, instructions=MEMORY_PROTOCOL, on_list_tools=on_list, on_call_tool=on_call)


def _hints(name: str) -> dict[str, bool]:
    return {
        "readOnlyHint": name not in _WRITING,
        "destructiveHint": name in _WRITING,
        "idempotentHint": name not in _WRITING,
        "openWorldHint": False,
    }


def serve_stdio(tools: MemoryTools) -> None:
    """Serve the tools over this process's standard input and output until the client closes them.

    Raises:
        QueryError: The package ``mcp`` is missing.
    """
    server = build_server(tools)
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)
