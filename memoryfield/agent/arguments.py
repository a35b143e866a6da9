"""What a model hands to a tool, before it is used: models leave things out, invent others and mistake types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryfield.errors import QueryError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
}


def wrong_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with arguments, None for nothing.

    Args:
        schema: Of the arguments, as ``schemas.parameters_schema`` makes it.
        arguments: What a model sent.
    """
    known: Mapping[str, Any] = schema["properties"]
    strange = sorted(set(arguments) - set(known))
    if strange:
        return f"unknown arguments {', '.join(map(repr, strange))}; there are: {', '.join(known)}"
    missing = [name for name in schema["required"] if name not in arguments]
    if missing:
        return f"missing arguments: {', '.join(missing)}"
    for name, value in arguments.items():
        kind = known[name]["type"]
        is_flag = isinstance(value, bool) and kind != "boolean"
        if is_flag or not isinstance(value, _TYPES[kind]):
            shown = ', such as ["tea", "dock-depth"]' if kind == "array" else ""
            return f"{name} has to be of type {kind}{shown}; it was {type(value).__name__}"
        if isinstance(value, list | tuple) and not all(isinstance(item, str) for item in value):
            return f"{name} has to be a list of strings"
    return None


def at_most(value: Any, most: int, name: str) -> int:
    """Return a count, not above *most*.

    Raises:
        QueryError: It is no whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise QueryError(f"{name} is {value!r}; give a whole number from 1 to {most}")
    return min(value, most)


def ended(body: str) -> str:
    """Return a body that ends with a line end."""
    return body if body.endswith("\n") else body + "\n"
