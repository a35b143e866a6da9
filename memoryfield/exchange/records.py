"""Records as pages: JSON lines of facts, a mem0 export, a knowledge graph of entities and relations.

Which key of a record holds its text, its id or its dates is taken from the names that such exports use. What no key of
ours can hold is kept: simple values become frontmatter keys of the same name; of any other the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from memoryfield.curate.secrets import secret_spans
from memoryfield.exchange.jsonstream import Element, beside, elements
from memoryfield.exchange.parts import Part, Unread
from memoryfield.format.dates import moment_of, parse_date
from memoryfield.format.yamlwrite import Settable

_TEXT = ("memory", "fact", "content", "text", "observation", "value", "data", "note")
_ID = ("id", "uuid", "_id", "memory_id", "key")
_CREATED = ("created_at", "created", "createdAt", "timestamp", "date", "time", "createdate")
_UPDATED = ("updated_at", "updated", "updatedAt", "modified", "last_modified")
_TITLE = ("title", "name", "subject", "topic")
_OWN = ("uuid", "title", "summary", "created", "updated")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}\Z")
_LISTS = ("results", "memories", "facts", "items", "data")
_TITLE_WORDS = 9
_LOOKED_AT = 2000  # characters of a text of which a title is made


def read_records(text: str, where: str) -> tuple[list[Part], list[Unread]]:
    """Return the records of a file as parts; what is no record, with its line, as unread."""
    parts: list[Part] = []
    unread: list[Unread] = []
    relations: dict[str, list[str]] = {}
    entities: list[tuple[Element, Mapping[str, Any]]] = []
    for element in _flattened(elements(text, _LISTS)):
        before = len(unread)
        place = f"{where}, line {element.line}"
        value = element.value
        if element.problem is not None:
            unread.append(Unread(place, element.problem))
        elif isinstance(value, str) and value.strip():
            parts.append(_fact({"text": value}, place, len(parts)))
        elif not isinstance(value, Mapping):
            unread.append(Unread(place, "it is no record: an object with a text is expected"))
        elif value.get("type") == "relation" and {"from", "to"} <= value.keys():
            line = f"{value.get('relationType') or 'relates to'}: {value['to']}"
            relations.setdefault(str(value["from"]), []).append(line)
        elif isinstance(value.get("observations"), list) and isinstance(value.get("name"), str):
            entities.append((element, value))
        elif _first(value, _TEXT) is None:
            empty = next((key for key in _TEXT if key in value), None)
            why = f"its {empty!r} is empty" if empty is not None else f"it has none of the keys {', '.join(_TEXT)}"
            unread.append(Unread(place, f"the record has no text: {why}"))
        else:
            parts.append(_fact(value, place, len(parts)))
        if len(unread) > before > 0 and unread[-1] == unread[-2]:
            unread.pop()  # a list of numbers on one line is one thing to say
    for element, value in entities:
        parts.append(_entity(value, f"{where}, line {element.line}", relations.pop(value["name"], [])))
    for name in relations:
        unread.append(Unread(where, f"relations of {name[:60]!r}, which is no entity of this file"))
    return parts, unread


def _flattened(found: Iterable[Element]) -> Iterable[Element]:
    """Yield the records of lists and of objects that hold one under a known key."""
    for element in found:
        value = element.value
        if isinstance(value, list):
            yield from (Element(element.line, item) for item in value)
        elif isinstance(value, Mapping) and isinstance(value.get("entities"), list):
            yield from (Element(element.line, item) for item in value["entities"])
            related = value.get("relations") or []
            for item in related if isinstance(related, list) else [related]:
                yield Element(element.line, {"type": "relation", **item} if isinstance(item, Mapping) else item)
        elif isinstance(value, Mapping) and _first(value, _TEXT) is None and "observations" not in value:
            key = next((key for key in _LISTS if isinstance(value.get(key), list)), None)
            if key is None:
                yield element
                continue
            yield from (Element(element.line, item) for item in value[key])
            yield from (Element(element.line, problem=said) for said in beside(value, key))
        else:
            yield element


def _fact(value: Mapping[str, Any], place: str, number: int) -> Part:
    text = str(_first(value, _TEXT)).strip()
    known = _first(value, _ID)
    # without an id the text itself is the key: a record that moves within the file stays the same page
    key = f"id:{known}" if known is not None else f"text:{text[:200]}"
    title, summary = _first(value, _TITLE), value.get("summary")
    named = title.strip() if isinstance(title, str) and title.strip() else None
    line = " ".join(summary.split()) if isinstance(summary, str) else ""
    created, updated = moment(_first(value, _CREATED)), moment(_first(value, _UPDATED))
    used = {_key(value, _TEXT), "uuid" if _key(value, _ID) == "uuid" else None, "hash", "score"}
    taken = ((named, _TITLE), (created, _CREATED), (updated, _UPDATED), (line or None, ("summary",)))
    used |= {_key(value, keys) for found, keys in taken if found is not None}
    rest, left_out = _other_keys(value, used)
    shown = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if len(left_out) > 5 else "")
    return Part(
        key,
        named or title_of(text),
        text + "\n",
        place,
        summary=line or None,
        created=created,
        updated=updated,
        keys=rest,
        changes=(f"keys left out: {shown}",) if left_out else (),
    )


def _entity(value: Mapping[str, Any], place: str, relations: list[str]) -> Part:
    observed = [str(item).strip() for item in value["observations"] if str(item).strip()]
    blocks = ["\n".join(f"- {item}" for item in observed)] if observed else []
    blocks += ["## Relations\n\n" + "\n".join(f"- {item}" for item in relations)] if relations else []
    kind = value.get("entityType")
    keys: dict[str, Settable] = {"kind": kind} if isinstance(kind, str) and kind else {}
    return Part(
        f"entity:{value['name']}", value["name"].strip() or "entity", "\n\n".join(blocks) + "\n", place, keys=keys
    )


def title_of(text: str) -> str:
    """Return the first words of a text as a title."""
    for start, end, _, _ in reversed(secret_spans(text[:_LOOKED_AT])):  # a name goes further than the text it is of
        text = text[:start] + "…" + text[end:]
    line = next((line.strip(" #*->\t") for line in text.splitlines() if line.strip(" #*->\t")), "untitled")
    words = line.split()
    cut = " ".join(words[:_TITLE_WORDS])
    return cut + ("…" if len(words) > _TITLE_WORDS else "")


def moment(value: Any) -> datetime | None:
    """Return a date of an export: seconds or milliseconds since 1970, or a text in ISO form."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        # an integer of hundreds of digits is no moment, and no float
        return moment_of(value / 1000 if abs(value) > 1e11 else value) if abs(value) < 1e18 else None
    parsed = parse_date(value) if isinstance(value, str) else None
    return parsed.replace(tzinfo=UTC) if parsed is not None and parsed.tzinfo is None else parsed


def _first(value: Mapping[str, Any], keys: Iterable[str]) -> Any:
    key = _key(value, keys)
    return None if key is None else value[key]


def _key(value: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((key for key in keys if value.get(key) not in (None, "")), None)


def _other_keys(value: Mapping[str, Any], used: set[str | None]) -> tuple[dict[str, Settable], list[str]]:
    """Return what else a record says as frontmatter keys, simple values and lists of them, and what cannot be one."""
    rest: dict[str, Settable] = {}
    left_out: list[str] = []
    inner = value.get("metadata")
    flat = [pair for pair in value.items() if pair[0] not in used and not (pair[0] == "metadata" and pair[1] is inner)]
    flat += list(inner.items()) if isinstance(inner, Mapping) else [("metadata", inner)]
    for key, given in flat:
        if given in (None, "", [], {}):
            continue
        name = {"id": "record_id", "categories": "tags"}.get(key, key)
        if name not in _OWN and _KEY.match(name) and name not in rest:
            if isinstance(given, str | int | float | bool):
                rest[name] = str(given) if isinstance(given, float) else given
                continue
            if isinstance(given, list) and all(isinstance(item, str | int) for item in given):
                rest[name] = [str(item) for item in given]
                continue
        left_out.append(title_of(key))
    return rest, left_out
