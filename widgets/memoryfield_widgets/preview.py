"""Markdown as HTML that can be shown beside the person who wrote it, whoever wrote it.

Raw HTML in a page is shown as text. What markdown-it makes is cleaned by nh3, and the browser builds the elements from
a list of its own (``editor.js``): three walls. Nothing is fetched: an image shows its text and where it would be. A
link to another page of the field opens that page; other links open in a new tab that knows nothing of this one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from html import escape
from typing import Any

LONGEST = 100_000  # characters that are shown; a page that tools embed has 8192 bytes
# fmt: off
TAGS = frozenset([
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
])
# fmt: on
_ATTRIBUTES = {"a": {"href", "target", "data-page"}, "ol": {"start"}, "span": {"data-image"}}
_SCHEMES = {"http", "https", "mailto"}
_PAGE_LINK = re.compile(r"(?:\./)?([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)\.md(?:#.*)?")
_OUTSIDE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


def preview(text: str) -> tuple[str, bool]:
    """Return Markdown as safe HTML, and whether it was too long and cut."""
    import nh3

    cut = len(text) > LONGEST
    made = _reader().render(text[:LONGEST])
    clean = nh3.clean(
        made,
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return clean, cut


@functools.cache
def _reader() -> Any:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.add_render_rule("image", _image)
    reader.add_render_rule("link_open", _link)
    return reader


def _image(_self: Any, tokens: Sequence[Any], at: int, _options: Any, _env: Any) -> str:
    token = tokens[at]
    place = str(token.attrs.get("src", ""))
    return f'<span data-image="{escape(place)}">{escape(token.content or "image")}</span>'


def _link(_self: Any, tokens: Sequence[Any], at: int, _options: Any, _env: Any) -> str:
    place = str(tokens[at].attrs.get("href", ""))
    page = _PAGE_LINK.fullmatch(place)
    if page is not None:
        return f'<a data-page="{page[1]}">'
    if _OUTSIDE.match(place):
        return f'<a href="{escape(place)}" target="_blank">'
    return "<a>"  # leads nowhere: a file beside the pages, an anchor, another scheme
