"""Links among the pages of a merge: in the one page that they become, such a link would point to the page itself.

A link to a part of a page becomes a link to that part here, any other link its text. A reference definition stays one
and points to the merged page, since nobody knows how often its label is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoryfield.format.links import links, rewrite_links
from memoryfield.format.page import Page

_WIKI_START = re.compile(r"\[\[[ \t]*\Z")
_WIKI_END = re.compile(r"[ \t]*(?P<part>#[^\[\]|\\\r\n]*)?(?:\\?\|(?P<text>[^\[\]\r\n]*))?\]\]")
_INLINE_START = re.compile(r"\]\([ \t]*(?:\r?\n[ \t]*)?<?(?:\./)?\Z")
_INLINE_END = re.compile(
    r"(?:\.md)?(?P<part>#[^\s()<>]*)?(?:\?[^\s()<>]*)?>?"
    r"(?:[ \t]*(?:\r?\n[ \t]*)?(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*(?:\r?\n[ \t]*)?\)"
)
_AUTO_START = re.compile(r"<(?:\./)?\Z")
_AUTO_END = re.compile(r"(?:\.md)?(?:#[^<>\s]*)?>")
_FAR = 2000  # characters that the text of a link may have


def without_self_links(page: Page, names: Sequence[str], survivor: str) -> bytes:
    """Return the bytes of a page of a merge, with its links to the other ones as they are in the merged page.

    Args:
        page: The page, in UTF-8.
        names: Names of the absorbed pages.
        survivor: Name of the page that stays. A link of its own to itself is left as it is.

    Raises:
        NotEditable: A link in the frontmatter cannot be rewritten.
    """
    raw, lower = page.raw, page.raw.lower()
    inside = {*names} if page.name == survivor else {*names, survivor}
    if not any(name.encode() in lower for name in inside):
        return raw
    text = raw.decode("utf-8")
    # Spans count bytes; the links are taken from the last one on, so that those before keep their places.
    for link in reversed(links(raw)):
        if link.page in inside:
            start = len(raw[: link.span[0]].decode("utf-8"))
            end = start + len(raw[link.span[0] : link.span[1]].decode("utf-8"))
            text = _as_text(text, start, end)
    result = text.encode("utf-8")
    for name in names:
        result = rewrite_links(result, name, survivor)
    return result


def _as_text(text: str, start: int, end: int) -> str:
    """Return the text with the link whose target's name stands at a place turned into words or an anchor."""
    before = text[max(0, start - _FAR) : start]
    name = text[start:end].removesuffix(".md")
    if (begin := _WIKI_START.search(before)) and (rest := _WIKI_END.match(text, end)):
        words = (rest["text"] or name).strip()
        part = _anchor(rest["part"])
        return (
            text[: start - len(before) + begin.start()] + (f"[{words}]({part})" if part else words) + text[rest.end() :]
        )
    if (begin := _INLINE_START.search(before)) and (rest := _INLINE_END.match(text, end)):
        opening = _opening(before, begin.start())
        if opening is None or before[opening - 1 : opening] == "!":
            return text
        words = before[opening + 1 : begin.start()]
        part = rest["part"] if rest["part"] and rest["part"] != "#" else ""
        shown = f"[{words}]({part})" if part else words
        return text[: start - len(before) + opening] + shown + text[rest.end() :]
    if (begin := _AUTO_START.search(before)) and (rest := _AUTO_END.match(text, end)):
        return text[: start - len(before) + begin.start()] + name + text[rest.end() :]
    return text


def _anchor(part: str | None) -> str:
    """Return the anchor of a heading that a wiki link names by its text, or an empty text."""
    words = re.findall(r"[\w-]+", (part or "").casefold())
    return f"#{'-'.join(words)}" if words else ""


def _opening(text: str, closing: int) -> int | None:
    """Return where the bracket opens that closes at *closing*."""
    depth = 0
    for position in range(closing, -1, -1):
        if text[position] in "[]" and _is_escaped(text, position):
            continue
        if text[position] == "]":
            depth += 1
        elif text[position] == "[":
            depth -= 1
            if depth == 0:
                return position
    return None


def _is_escaped(text: str, position: int) -> bool:
    slashes = len(text[:position]) - len(text[:position].rstrip("\\"))
    return slashes % 2 == 1
