"""New bytes from old ones: keys, body, sections of a page.

Each function takes the bytes of a page and returns new ones; nothing is written to a disk. What was not asked to
change stays byte for byte: comments, quotes, key order, line ends, a BOM, newlines at the end (FORMAT P9). Where that
cannot be held, the edit is refused. Links are in ``links.py``.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Mapping
from datetime import UTC, datetime

from memoryfield.errors import FrontmatterError, NotEditable
from memoryfield.format.frontmatter import BOM, Frontmatter, read_frontmatter
from memoryfield.format.markdown import Heading, headings, line_end
from memoryfield.format.yamledit import change_keys
from memoryfield.format.yamlread import Value
from memoryfield.format.yamlwrite import Settable, as_value, checked_key, dump_frontmatter

_BREAK = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
# str.splitlines' idea of a line end, with the blanks around it.
_ANY_BREAK = re.compile("[ \t]*[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+[ \t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*")


def new_page(
    title: str | None = None,
    summary: str | None = None,
    body: str = "",
    *,
    now: datetime | None = None,
    uuid: str | None = None,
    **keys: Settable,
) -> bytes:
    r"""Return the bytes of a new page (FORMAT P11).

    Args:
        title: One line; line ends in it become blanks.
        summary: One line, likewise.
        body: Markdown; line ends become ``\n``, and one is put at the end where there is none.
        now: The moment for ``created`` and ``updated``, with a time zone; the present one where it is not given.
        uuid: The page's uuid; a random one where it is not given.
        **keys: Further keys of the frontmatter.

    Raises:
        FrontmatterError: A value has no place in frontmatter.
        NotEditable: The body begins with a frontmatter block of its own.
    """
    moment = now if now is not None else datetime.now(UTC)
    fields: dict[str, Settable] = {
        "title": one_line(title) if title is not None else None,
        "uuid": uuid if uuid is not None else str(uuids.uuid4()),
        "summary": one_line(summary) if summary is not None else None,
        "created": moment,
        "updated": moment,
        **keys,
    }
    text = _BREAK.sub("\n", body)
    content = _encoded(text if not text or text.endswith("\n") else text + "\n")
    if read_frontmatter(content).present:
        raise NotEditable(
            "the body begins with a frontmatter block of its own; give its keys as keys and the rest as body"
        )
    block = _encoded(dump_frontmatter(fields))
    _expect(block + content, {key: as_value(given) for key, given in fields.items() if given is not None}, content)
    return block + content


def set_keys(raw: bytes, changes: Mapping[str, Settable]) -> bytes:
    """Return the page with some keys of its frontmatter set, or removed where the new value is None.

    A value that stands there already leaves its bytes alone. Without a block one is put in front of the body.

    Args:
        raw: The page.
        changes: Keys and values.

    Raises:
        FrontmatterError: The block cannot be read, or a value has no place in it.
        NotEditable: The page is not UTF-8, or the edit would touch something else.
    """
    _decoded(raw)
    front = _readable(raw)
    wanted = {checked_key(key): given for key, given in changes.items()}
    todo = {
        key: given
        for key, given in wanted.items()
        if (key in front.fields if given is None else front.fields.get(key) != as_value(given))
    }
    if not todo:
        return raw
    expected = dict(front.fields)
    for key, given in todo.items():
        if given is None:
            del expected[key]
        else:
            expected[key] = as_value(given)
    newline = line_end(raw)
    body = raw[front.body_start :]
    if front.present:
        begin, end = front.inner
        text = change_keys(raw[begin:end].decode("utf-8"), todo, newline)
        result = raw[:begin] + text.encode("utf-8") + raw[end:]
    else:
        if front.warnings:
            problem = front.warnings[0]
            raise FrontmatterError(
                f"{problem.message}; repair that first, a second block will not be put in front", line=problem.line
            )
        result = raw[: front.body_start] + dump_frontmatter(todo, newline).encode("utf-8") + body
    _expect(result, expected, body)
    return result


def set_body(raw: bytes, body: str) -> bytes:
    """Return the page with another body; the lines at its beginning and end that stay the same keep their bytes.

    Line ends of new lines are those of the page.

    Raises:
        NotEditable: The page is not UTF-8, or the new body would be read as frontmatter.
    """
    front = read_frontmatter(raw)
    _decoded(raw)
    old = raw[front.body_start :].decode("utf-8")
    newline = line_end(raw)
    head = raw[: front.body_start]
    if front.present and not head.endswith((b"\n", b"\r")) and body:
        head += newline.encode()
    content = _encoded(_merged(old, body, newline))
    _same_front(raw, front, head + content)
    if not (head + content)[read_frontmatter(head + content).body_start :] == content:
        raise NotEditable("the closing fence ends in CR and the new body begins with LF; begin it with text")
    return head + content


def set_text(raw: bytes, text: str) -> bytes:
    """Return the page with another text, frontmatter included; a BOM and the line ends of lines that stay are kept.

    Raises:
        NotEditable: The page is not UTF-8.
    """
    old = _decoded(raw).removeprefix("\ufeff")
    return (BOM if raw.startswith(BOM) else b"") + _encoded(_merged(old, text, line_end(raw)))


def append(raw: bytes, text: str) -> bytes:
    """Return the page with a paragraph added at its end, apart from what stands there.

    Newlines at the end stay where they are, before the new text.

    Raises:
        NotEditable: The page is not UTF-8, or the new text would turn the beginning into frontmatter.
    """
    if not text.strip("\r\n"):
        return raw
    front = read_frontmatter(raw)
    old = _decoded(raw)
    newline = line_end(raw)
    breaks = len(_BREAK.findall(old[len(old.rstrip("\r\n")) :]))
    if raw[front.body_start :].strip(b"\r\n"):
        missing = max(2 - breaks, 0)  # one ends the last line, one makes an empty line
    else:
        missing = 0 if breaks or not raw.removeprefix(BOM) else 1  # a closing fence at the end of the file
    if missing and newline == "\n" and old.endswith("\r"):
        missing += 1  # CR and LF together are one line end
    result = raw + _encoded(newline * missing + _BREAK.sub(newline, text.strip("\r\n")) + newline)
    _same_front(raw, front, result)
    return result


def replace_section(raw: bytes, heading: str, text: str) -> bytes:
    """Return the page with other content under one of its headings, subsections included.

    Args:
        raw: The page.
        heading: Text of the heading, with or without its number signs (which then must agree).
        text: The new content. It may begin with the heading itself; the one in the page stays.

    Raises:
        NotEditable: There is no such heading, or more than one; the message lists what there is.
    """
    front = read_frontmatter(raw)
    _decoded(raw)
    body = raw[front.body_start :].decode("utf-8")
    newline = line_end(raw)
    found = list(headings(body))
    section = _section(found, heading)
    position = found.index(section)
    end = next((other.start for other in found[position + 1 :] if other.level <= section.level), len(body))
    old = body[section.end : end]
    content = _BREAK.sub("\n", text).strip("\n")
    own = next(headings(content), None)
    if own is not None and own.start == 0 and (own.level, own.text) == (section.level, section.text):
        content = content[own.end :].strip("\n")
    core = old.strip("\r\n")
    if _BREAK.sub("\n", core) == content:
        return raw
    written = content.replace("\n", newline)
    if core:
        leading, trailing = old.split(core, 1)
        new = leading + written + trailing if content else _BREAK.sub("", trailing, count=1)
    else:
        new = newline + written + newline + (old or (newline if end < len(body) else ""))
    head = body[: section.end]
    if not head.endswith(("\n", "\r")):
        head += newline
    if [h[:2] for h in headings(new + body[end:]) if h.start >= len(new)] != [h[:2] for h in found if h.start >= end]:
        raise NotEditable(
            "the new text leaves a code fence or a comment open, which would swallow what follows; close it"
        )
    result = raw[: front.body_start] + _encoded(head + new + body[end:])
    _same_front(raw, front, result)
    return result


def one_line(text: str) -> str:
    """Return *text* without line ends: each, with the blanks around it, becomes one blank."""
    return _ANY_BREAK.sub(" ", text).strip()


def _section(found: list[Heading], heading: str) -> Heading:
    asked = heading.strip()
    signs = len(asked) - len(asked.lstrip("#"))
    name = asked.lstrip("#").strip() if signs and asked[signs : signs + 1] in ("", " ", "\t") else asked
    level = signs if name != asked else 0
    matching = [h for h in found if h.text == name and level in (0, h.level)]
    matching = matching or [h for h in found if h.text.casefold() == name.casefold() and level in (0, h.level)]
    if len(matching) == 1:
        return matching[0]
    there = ", ".join(repr("#" * h.level + " " + h.text) for h in found[:40]) or "none"
    if matching:
        raise NotEditable(f"the heading {heading!r} stands there {len(matching)} times; the headings are: {there}")
    raise NotEditable(f"there is no heading {heading!r}; the headings are: {there}")


def _merged(old: str, new: str, newline: str) -> str:
    """Return the new text with the line ends of the old one, line by line where lines are equal."""
    olds = _LINE.findall(old)
    news = [line + "\n" for line in _BREAK.split(new)]
    news[-1] = news[-1][:-1]
    if not news[-1]:
        news.pop()
    plain = [_BREAK.sub("\n", line) for line in olds]
    shorter = min(len(plain), len(news))
    first = 0
    while first < shorter and plain[first] == news[first]:
        first += 1
    last = 0
    while last < shorter - first and plain[-1 - last] == news[-1 - last]:
        last += 1
    middle = [line.replace("\n", newline) for line in news[first : len(news) - last]]
    merged = "".join([*olds[:first], *middle, *olds[len(olds) - last :]])
    # A kept CR before a new LF would be one line end: then all lines get the page's own.
    return merged if len(_BREAK.findall(merged)) == len(_BREAK.findall(new)) else "".join(news).replace("\n", newline)


def _readable(raw: bytes) -> Frontmatter:
    front = read_frontmatter(raw)
    if front.error is not None:
        raise FrontmatterError(
            f"{front.error.message}; repair the block first, it is not edited as it is", line=front.error.line
        )
    return front


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + raw.count(b"\n", 0, error.start)
        raise NotEditable(
            f"line {line}: not valid UTF-8 (byte 0x{raw[error.start]:02x}); re-encode the page first"
        ) from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotEditable("the text holds a lone surrogate, which UTF-8 cannot hold") from None


def _expect(result: bytes, fields: Mapping[str, Value], body: bytes) -> None:
    """Read the result again: exactly these fields, exactly this body, or no edit."""
    front = read_frontmatter(result)
    if not front.present or front.error is not None or front.fields != fields or result[front.body_start :] != body:
        raise NotEditable("the result would not read back as asked; change it in a text editor")


def _same_front(raw: bytes, front: Frontmatter, result: bytes) -> None:
    """Refuse an edit of the body that makes, breaks or moves the frontmatter."""
    after = read_frontmatter(result)
    same_block = after.present == front.present and after.inner == front.inner and after.fields == front.fields
    if not same_block or raw[slice(*front.inner)] != result[slice(*after.inner)]:
        raise NotEditable("the new text would be read as part of the frontmatter; change it in a text editor")


__all__ = ["BOM", "append", "new_page", "one_line", "replace_section", "set_body", "set_keys", "set_text"]
