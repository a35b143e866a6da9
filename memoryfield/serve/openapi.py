"""The routes described in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from memoryfield.serve.handlers import CONDITION, NAMES
from memoryfield.serve.policy import Policy

_NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": 190}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


def description(policy: Policy, alone: bool) -> dict[str, Any]:
    """Return the OpenAPI document of a server.

    Args:
        policy: What it allows.
        alone: Whether one field answers at the root.
    """
    from memoryfield import __version__

    base = "" if alone else "/{field}"
    field = [] if alone else [{"name": "field", "in": "path", "required": True, "schema": {"type": "string"}}]
    page = {"name": "page", "in": "path", "required": True, "schema": _NAME}
    hits = {"200": {"description": "Hits, best first", "content": _hits()}}
    archive = {"200": {"description": "An archive", "content": _zip()}}
    paths: dict[str, Any] = {
        f"{base}/": {
            "parameters": field,
            "get": _operation("Introduction or catalogue of the field", {"200": _markdown()}),
        },
        f"{base}/{{page}}.md": {
            "parameters": [*field, page],
            "get": _operation("The bytes of a page", {"200": _markdown(), "304": _empty("The client has it")}, 404),
            **(_writing() if policy.writes else {}),
        },
        f"{base}/search": {
            "parameters": field,
            "get": _operation("Pages that answer a question", hits, 400, 503) | {"parameters": _search_parameters()},
        },
        f"{base}/listing.json": {
            "parameters": field,
            "get": _operation("Every page with its tag", {"200": _catalogue(), "304": _empty("The client has it")}),
        },
        f"{base}/pages.json": {
            "parameters": field,
            "get": _operation("Several pages in one answer", {"200": _pages()}, 400) | {"parameters": [_names()]},
        },
        f"{base}/memoryfield.zip": {
            "parameters": field,
            "get": _operation("The whole field as an archive", archive),
        },
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "memoryfield", "version": __version__, "description": "Pages of a memoryfield over HTTP."},
        "paths": paths,
        "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
    }
    if policy.token is not None:
        document["security"] = [{"basic": []}]
    return document


def _operation(summary: str, answers: dict[str, Any], *refusals: int) -> dict[str, Any]:
    every = {
        str(status): {"description": "Refused, with the reason", "content": _TEXT} for status in (*refusals, 421, 429)
    }
    every["401"] = {"description": "A token is needed", "content": _TEXT}
    return {"summary": summary, "responses": answers | every}


def _writing() -> dict[str, Any]:
    tags = {"type": "string", "pattern": f"^({CONDITION})$", "maxLength": 8000}
    header = {"in": "header", "required": False, "schema": tags}
    match, none = {"name": "If-Match", **header}, {"name": "If-None-Match", **header}
    body = {"required": True, "content": {"text/markdown": {"schema": {"type": "string", "minLength": 1}}}}
    written = {"201": _empty("It is new"), "204": _empty("It was there")}
    return {
        "put": _operation("Write a page", written, 400, 403, 404, 409, 412, 413, 415, 503)
        | {"requestBody": body, "parameters": [match, none]},
        "delete": _operation("Delete a page", {"204": _empty("It is gone")}, 400, 403, 404, 409, 412, 503)
        | {"parameters": [match]},
    }


def _search_parameters() -> list[dict[str, Any]]:
    retrievers = ["vector", "keyword", "hybrid"]
    return [
        {"name": "q", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 2000}},
        {"name": "k", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}},
        {"name": "retriever", "in": "query", "schema": {"type": "string", "enum": retrievers}},
    ]


def _markdown() -> dict[str, Any]:
    return {"description": "Markdown", "content": {"text/markdown": {"schema": {"type": "string"}}}}


def _catalogue() -> dict[str, Any]:
    row = {
        "type": "object",
        "required": ["filename", "tag", "size", "modified_ns"],
        "properties": {
            "filename": {"type": "string"},
            "tag": {"type": "string"},
            "size": {"type": "integer"},
            "modified_ns": {"type": "integer"},
        },
    }
    pages: dict[str, Any] = {"pages": {"type": "array", "items": row}, "writes": {"type": "boolean"}}
    pages["together"] = {"type": "integer", "description": "How many pages pages.json sends in one answer"}
    schema = {"type": "object", "required": list(pages), "properties": pages}
    return {"description": "Pages", "content": {"application/json": {"schema": schema}}}


def _names() -> dict[str, Any]:
    told = "File names with commas between them, at most 64"
    schema = {"type": "string", "pattern": f"^{NAMES}$", "maxLength": 16_000}
    return {"name": "names", "in": "query", "required": True, "description": told, "schema": schema}


def _pages() -> dict[str, Any]:
    keys: dict[str, Any] = {"filename": {"type": "string"}, "tag": {"type": "string"}, "base64": {"type": "string"}}
    keys["modified_ns"] = {"type": "integer"}
    row = {"type": "object", "required": list(keys), "properties": keys}
    left = {"type": "array", "items": {"type": "string"}}
    parts = {"pages": {"type": "array", "items": row}, "left": left}
    schema = {"type": "object", "required": list(parts), "properties": parts}
    return {
        "description": "Pages, and the names of those left out",
        "content": {"application/json": {"schema": schema}},
    }


def _empty(text: str) -> dict[str, Any]:
    return {"description": text}


def _zip() -> dict[str, Any]:
    return {"application/zip": {"schema": {"type": "string", "format": "binary"}}}


def _hits() -> dict[str, Any]:
    hit = {
        "type": "object",
        "required": ["filename", "frontmatter"],
        "properties": {
            "filename": {"type": "string"},
            "frontmatter": {"type": ["object", "null"]},
            "score": {"type": "number"},
            "title": {"type": "string"},
            "field": {"type": "string"},
        },
    }
    results = {"type": "array", "items": hit}
    return {
        "application/json": {"schema": {"type": "object", "required": ["results"], "properties": {"results": results}}}
    }
