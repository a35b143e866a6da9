"""What a model hands to a tool, before it is used: models leave things out, invent others and mistake types."""

from __future__ import annotations

import math
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


def wrong_arguments(schema: Mapping[str, Any], arguments: Any) -> str | None:
    """Return what is wrong with arguments, None for nothing.

    Args:
        schema: Of the arguments, as ``schemas.parameters_schema`` makes it.
        arguments: What a model sent.
    """
    known: Mapping[str, Any] = schema["properties"]
    if not isinstance(arguments, Mapping):
        return f"the arguments have to be an object with names; they were {type(arguments).__name__}"
    strange = sorted(str(name) for name in arguments if name not in known)
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
        if isinstance(value, int | float) and not _sayable(value):
            return f"{name} has to be a number of common size"
        if any(not _storable(item) for item in (value if isinstance(value, list | tuple) else [value])):
            return f"{name} holds half a character (a lone surrogate), which no file and no answer can hold"
    return None


def _sayable(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _storable(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return False
    return True


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
