"""JSON schemas of tools, made from their signatures and docstrings.

The text before ``Args:`` of the docstring is what the model is told of the tool; each argument's line is what it is
told of that argument.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal

from memoryfield.errors import QueryError

FORMS = ("openai", "anthropic", "mcp")
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def tool_schemas(functions: Sequence[Callable[..., Any]], form: str = "mcp") -> list[dict[str, Any]]:
    """Return one schema for each function, as a service wants it.

    Args:
        functions: Functions with annotated arguments and a docstring.
        form: ``openai`` (function tools of chat completions), ``anthropic`` or ``mcp``.

    Raises:
        QueryError: There is no such form, or an argument of a type that JSON cannot hold.
    """
    if form not in FORMS:
        raise QueryError(f"form is {form!r}; expected one of {', '.join(FORMS)}")
    return [_wrapped(function, form) for function in functions]


def _wrapped(function: Callable[..., Any], form: str) -> dict[str, Any]:
    name, (about, _) = function.__name__, _docstring(function)
    schema = parameters_schema(function)
    if form == "openai":
        return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
    if form == "anthropic":
        return {"name": name, "description": about, "input_schema": schema}
    return {"name": name, "description": about, "inputSchema": schema}


def parameters_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the schema of a function's arguments: an object that takes no others.

    Raises:
        QueryError: An argument has no annotation, or one that JSON cannot hold.
    """
    hints = typing.get_type_hints(function)
    _, about = _docstring(function)
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise QueryError(f"argument {name} of {function.__name__} has no annotation")
        schema = _of_type(hints[name], f"{function.__name__}({name})")
        if about.get(name):
            schema["description"] = about[name]
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            schema["default"] = parameter.default
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of_type(hint: Any, where: str) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list and len(inner) == 1:
        return {"type": "array", "items": _of_type(inner[0], where)}
    if origin in (types.UnionType, typing.Union) and type(None) in inner and len(inner) == 2:
        # left out rather than null: models fill in what they are offered
        return _of_type(next(hint for hint in inner if hint is not type(None)), where)
    raise QueryError(f"{where}: {hint!r} has no JSON schema here")


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    head, _, rest = text.partition("\nArgs:\n")
    head = head.split("\nReturns:\n")[0].split("\nRaises:\n")[0]
    about: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        found = re.match(r"    (\w+): (.*)", line)
        if found:
            name = found[1]
            about[name] = found[2].strip()
        elif name and line.strip():
            about[name] += " " + line.strip()
    return " ".join(head.split()), about
