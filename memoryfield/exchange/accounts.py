"""What an assistant's export holds beside conversations: what it remembers, and projects with their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryfield.exchange.jsonstream import elements
from memoryfield.exchange.parts import Part, Unread
from memoryfield.exchange.records import moment


def is_account(value: Any) -> bool:
    """Say whether a JSON value is a memory or a project of an export."""
    return isinstance(value, Mapping) and (
        "conversations_memory" in value or "project_memories" in value or {"prompt_template", "docs"} <= value.keys()
    )


def read_account(text: str, where: str) -> tuple[list[Part], list[Unread]]:
    """Return memories, projects and their documents as parts; what is none of them, with its line, as unread."""
    parts: list[Part] = []
    unread: list[Unread] = []
    for element in elements(text):
        place = f"{where}, line {element.line}"
        if element.problem is not None:
            unread.append(Unread(place, element.problem))
        elif not is_account(element.value):
            unread.append(Unread(place, "it is neither a memory nor a project of an export"))
        else:
            made = list(_memories(element.value, place)) + list(_project(element.value, place))
            parts += made
            if not made:
                unread.append(Unread(place, "it holds no text"))
    return parts, unread


def _memories(value: Mapping[str, Any], place: str) -> Iterator[Part]:
    account = _text(value.get("account_uuid")) or "account"
    remembered = _text(value.get("conversations_memory"))
    if remembered:
        yield Part(f"id:{account}/memory", "What the assistant remembers", remembered + "\n", place)
    projects = value.get("project_memories")
    for known, given in projects.items() if isinstance(projects, Mapping) else ():
        if _text(given):
            title = f"What the assistant remembers of project {str(known)[:8]}"
            yield Part(f"id:{known}/memory", title, _text(given) + "\n", place, keys={"project": str(known)})


def _project(value: Mapping[str, Any], place: str) -> Iterator[Part]:
    known, name = _text(value.get("uuid")), _text(value.get("name")) or "Project"
    created, updated = moment(value.get("created_at")), moment(value.get("updated_at"))
    told, wanted = _text(value.get("description")), _text(value.get("prompt_template"))
    body = "\n\n".join(part for part in (told, f"## Instructions\n\n{wanted}" if wanted else "") if part)
    if body:
        key = f"id:{known}" if known else f"project:{name}"
        yield Part(key, name, body + "\n", place, created=created, updated=updated, keys={"kind": "project"})
    documents = value.get("docs")
    for number, document in enumerate(documents if isinstance(documents, list) else ()):
        if isinstance(document, Mapping) and _text(document.get("content")):
            own = _text(document.get("uuid"))
            yield Part(
                f"id:{own}" if own else f"project:{name}/{number}",
                _text(document.get("filename")) or f"{name}, document {number + 1}",
                _text(document.get("content")) + "\n",
                place,
                created=moment(document.get("created_at")) or created,
                keys={"kind": "document", "project": name},
            )


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
