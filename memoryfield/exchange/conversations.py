"""Conversations as task pages: exports of ChatGPT and Claude.

One page a conversation: what was asked first, what was answered last, and the turns in between. A conversation longer
than a page should be keeps its first request, all later requests and the last answer; how many answers were left out
stands in the page and in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryfield.display import counted
from memoryfield.exchange.jsonstream import elements
from memoryfield.exchange.parts import Part, Unread
from memoryfield.exchange.records import moment, title_of
from memoryfield.format.markdown import lines
from memoryfield.format.page import LONGEST_EMBEDDED
from memoryfield.format.yamlwrite import Settable

_ROOM = LONGEST_EMBEDDED - 700  # for the frontmatter
_ATTACHED = "Attached:"
# marks for a source, between characters that Unicode leaves to programs
_CITATION = re.compile("\ue200[^\ue201]{0,200}\ue201")
_NAMES = {"user": "Asked", "human": "Asked", "assistant": "Answered"}


@dataclass(frozen=True)
class _Turn:
    who: str
    text: str
    when: datetime | None


def read_conversations(text: str, where: str) -> tuple[list[Part], list[Unread]]:
    """Return the conversations of an export as parts; damaged and empty ones, with their line, as unread."""
    parts: list[Part] = []
    unread: list[Unread] = []
    for element in elements(text, ("conversations",)):
        place = f"{where}, line {element.line}"
        if element.problem is not None:
            unread.append(Unread(place, element.problem))
            continue
        value = element.value
        which = _called(value)
        try:
            turns = list(_turns(value))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            said = f"the conversation{which} has another form than its export should: {error!r}"
            unread.append(Unread(place, said[:200]))
            continue
        if not turns:
            unread.append(Unread(place, f"the conversation{which} holds no text"))
            continue
        parts.append(_page(value, turns, place))
    return parts, unread


def _called(value: Any) -> str:
    """Return a conversation's title for a message: an export is one line, so that the line says little."""
    named = (value.get("title") or value.get("name")) if isinstance(value, Mapping) else None
    return f" {title_of(named)[:60]!r}" if isinstance(named, str) and named.strip() else ""


def is_conversation(value: Any) -> bool:
    """Say whether a JSON value is a conversation of one of the known exports."""
    return isinstance(value, Mapping) and ("mapping" in value or "chat_messages" in value)


def _turns(value: Any) -> Iterator[_Turn]:
    if not is_conversation(value):
        raise ValueError("neither 'mapping' nor 'chat_messages' is there")
    if "chat_messages" in value:
        for message in value["chat_messages"]:
            text = _said(message)
            if text and message.get("sender") in _NAMES:
                yield _Turn(message["sender"], text, moment(message.get("created_at")))
        return
    for message in _chosen_path(value["mapping"], value.get("current_node")):
        turn = _turn(message)
        if turn is not None:
            yield turn


def _turn(message: Mapping[str, Any]) -> _Turn | None:
    """Return a message of a ChatGPT export as a turn; None for what is none."""
    role = (message.get("author") or {}).get("role")
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    # what is addressed to a tool is no answer, and what nobody saw is no turn
    if role not in _NAMES or hidden or (role == "assistant" and message.get("recipient") not in (None, "", "all")):
        return None
    content = message.get("content") or {}
    # speech and pictures stand among the parts as objects; of speech there is a text
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content.get("parts") or []]
    text = "\n\n".join(part for part in parts if isinstance(part, str)) or content.get("text") or ""
    text = _CITATION.sub("", text).strip() if isinstance(text, str) else ""
    return _Turn(role, text, moment(message.get("create_time"))) if text else None


def _on_other_branches(value: Mapping[str, Any], shown: int) -> int:
    """Return how many turns stand on branches that an edited question or a second answer left."""
    nodes = value.get("mapping")
    every = 0
    for node in nodes.values() if isinstance(nodes, Mapping) else ():
        message = node.get("message") if isinstance(node, Mapping) else None
        with suppress(AttributeError, TypeError):  # a damaged message off the path costs nothing
            every += isinstance(message, Mapping) and _turn(message) is not None
    return max(every - shown, 0)


def _said(message: Mapping[str, Any]) -> str:
    """Return what a message of a Claude export says: its texts, without thoughts and tools, and what is attached."""
    blocks = [block for block in message.get("content") or [] if isinstance(block, Mapping)]
    texts = [block["text"] for block in blocks if block.get("type", "text") == "text" and block.get("text")]
    text = "\n\n".join(texts) or ("" if blocks else message.get("text") or "")
    added = [*(message.get("attachments") or []), *(message.get("files") or [])]
    names = [item["file_name"] for item in added if isinstance(item, Mapping) and item.get("file_name")]
    attached = f"*{_ATTACHED} {', '.join(dict.fromkeys(names))}*" if names else ""
    return "\n\n".join(part for part in (text.strip(), attached) if part)


def _chosen_path(nodes: Mapping[str, Any], current: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the messages from the first to the one shown last: an edited question leaves branches beside that path."""
    if current not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        current = leaves[-1] if leaves else None
    path: list[Mapping[str, Any]] = []
    seen = set()
    while current in nodes and current not in seen:
        seen.add(current)
        message = nodes[current].get("message")
        if isinstance(message, Mapping):
            path.append(message)
        current = nodes[current].get("parent")
    yield from reversed(path)


def _page(value: Mapping[str, Any], turns: list[_Turn], place: str) -> Part:
    first = next((turn for turn in turns if _NAMES[turn.who] == "Asked"), turns[0])
    named = value.get("title") or value.get("name")
    known = value.get("uuid") or value.get("conversation_id") or value.get("id")
    body, left_out = _body(turns)
    keys: dict[str, Settable] = {"kind": "conversation", "turns": len(turns)}
    changes = []
    if left_out:
        keys["left_out"] = left_out
        changes.append(f"{counted(left_out, 'answer')} left out: the conversation is longer than a page should be")
    other = _on_other_branches(value, len(turns))
    if other:
        changes.append(f"{counted(other, 'turn')} of other branches left out: the branch shown last is the page")
    if any(f"*{_ATTACHED}" in turn.text for turn in turns):
        changes.append("attached files are named, not taken in")
    return Part(
        f"id:{known}" if known else f"text:{first.text[:200]}",
        named.strip() if isinstance(named, str) and named.strip() else title_of(first.text),
        body,
        place,
        summary=title_of(first.text),
        created=moment(value.get("create_time") or value.get("created_at")) or turns[0].when,
        updated=moment(value.get("update_time") or value.get("updated_at")) or turns[-1].when,
        keys=keys,
        changes=tuple(changes),
    )


def _body(turns: list[_Turn]) -> tuple[str, int]:
    """Return the text of a page and how many answers it does not hold."""
    whole = "\n\n".join(_shown(turn) for turn in turns) + "\n"
    if len(whole.encode("utf-8", errors="replace")) <= _ROOM:
        return whole, 0
    last = max((i for i, turn in enumerate(turns) if _NAMES[turn.who] == "Answered"), default=-1)
    kept = [turn for i, turn in enumerate(turns) if _NAMES[turn.who] == "Asked" or i == last]
    left_out = len(turns) - len(kept)
    were = counted(left_out, "answer in between was", "answers in between were")
    note = f"*{were} left out when this page was made.*\n" if left_out else ""
    return "\n\n".join(_shown(turn) for turn in kept) + "\n" + ("\n" + note if note else ""), left_out


def _shown(turn: _Turn) -> str:
    when = f" ({turn.when:%Y-%m-%d})" if turn.when is not None else ""
    return f"## {_NAMES[turn.who]}{when}\n\n{_below(turn.text)}"


def _below(text: str) -> str:
    """Put the headings of a message below that of its turn: they must not end its section."""
    shown = []
    for line in lines(text):
        level = len(line.text) - len(line.text.lstrip("#"))
        is_heading = not line.in_code and 0 < level <= 6 and line.text[level : level + 1] in (" ", "")
        shown.append("#" * min(2, 6 - level) + line.text if is_heading else line.text)
    return "\n".join(shown)
