"""Schemas of the tools, held against real validators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

import memoryfield as mf
from memoryfield.agent.schemas import parameters_schema, tool_schemas
from memoryfield.agent.tools import MemoryTools
from memoryfield.errors import QueryError


@pytest.fixture
def tools(tmp_path: Path) -> MemoryTools:
    mf.open_field(tmp_path / "f", create=True)
    return MemoryTools(tmp_path / "f", model="hashing-1024")


def test_every_schema_is_one_and_describes_every_argument(tools: MemoryTools) -> None:
    schemas = tools.schemas("mcp")
    assert len(schemas) == 7
    for schema in schemas:
        inner = schema["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(inner)
        assert 20 < len(schema["description"]) < 300 and "Args" not in schema["description"]
        for name, about in inner["properties"].items():
            assert about["description"], f"{schema['name']}: {name}"


def test_a_validator_and_call_agree(tools: MemoryTools) -> None:
    schema = next(s["inputSchema"] for s in tools.schemas() if s["name"] == "memory_search")
    validator = jsonschema.Draft202012Validator(schema)
    samples: list[tuple[dict[str, Any], bool]] = [
        ({"query": "x"}, True),
        ({"query": "x", "k": 3}, True),
        ({"query": 1}, False),
        ({"query": "x", "k": True}, False),
        ({"query": "x", "other": 1}, False),
        ({}, False),
    ]
    for arguments, is_right in samples:
        assert validator.is_valid(arguments) is is_right
        assert ("error" not in tools.call("memory_search", arguments)) is is_right


def test_the_three_forms(tools: MemoryTools) -> None:
    openai, anthropic, mcp = (tools.schemas(form) for form in ("openai", "anthropic", "mcp"))
    for one, two, three in zip(openai, anthropic, mcp, strict=True):
        assert one["type"] == "function"
        assert one["function"]["name"] == two["name"] == three["name"]
        assert one["function"]["parameters"] == two["input_schema"] == three["inputSchema"]
    with pytest.raises(QueryError, match="openai, anthropic, mcp"):
        tools.schemas("other")


def test_the_package_mcp_takes_them(tools: MemoryTools) -> None:
    import mcp.types as types

    for schema in tools.schemas("mcp"):
        types.Tool.model_validate(schema)


def test_a_function_that_json_cannot_call_is_refused() -> None:
    def untyped(a):  # type: ignore[no-untyped-def]  # that is the point
        """Do."""

    def odd(a: dict[str, bytes]) -> None:
        """Do."""

    for function in (untyped, odd):
        with pytest.raises(QueryError):
            parameters_schema(function)
    assert tool_schemas([]) == []
