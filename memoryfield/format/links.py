"""Links from page to page: finding them, and changing the name that they point to.

Known are ``[text](old.md)`` with ``./``, a fragment, angle brackets or a title, ``<old.md>``, reference definitions
``[label]: old.md`` and wiki links ``[[old]]``, ``[[old#part|text]]``; in the body and in a readable frontmatter block.
What stands in fenced code or a code span is no link. Time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from memoryfield.errors import NotEditable
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.markdown import lines
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, page_name

# Possessive repeats (`*+`): what has been passed over is not tried again, so that no text costs more than linear time.
_TOKEN = re.compile(
    r"""
      \\.                                                                    # escaped: no markup
    | (?P<ticks>`++)
    | ^[ ]{0,3}+\[[^\[\]\n]{1,999}+\]:[ \t]*+(?:<(?P<reference_in>[^<>\n]*+)>|(?P<reference>[^\s<>]++))
    | \[\[[ \t]*+(?P<wiki>[^\[\]|\#\\\r\n]++)(?:\#[^\[\]|\\\r\n]*+)?+(?:\\?\|[^\[\]\r\n]*+)?+\]\]
    | \]\([ \t]*+(?:\r?\n[ \t]*+)?+
      (?:<(?P<inline_in>[^<>\n]*+)>|(?P<inline>[^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+)*+))
      (?=[ \t]*+(?:\r?\n[ \t]*+)?+[)"'(])
    | <(?P<auto>(?:\./)?[a-z0-9][a-z0-9-]*+\.md(?:\#[^<>\s]*+)?+)>
    | [\[\]]
    """,
    re.VERBOSE | re.MULTILINE,
)
_TICKS = re.compile("`+")
_NAME_END = re.compile(r"[#?]")


@dataclass(frozen=True)
class Link:
    """A link as it stands in a page.

    Attributes:
        target: Where it points, as written, without a title.
        page: Name of the page of the same field that it points to, whether that exists or not; None for other targets.
        span: Bytes of the page's name, or of the whole target where *page* is None.
    """

    target: str
    page: str | None
    span: tuple[int, int]


def links(raw: bytes) -> list[Link]:
    """Return the links of a page in the order in which they stand there."""
    text = raw.decode("utf-8", errors="surrogateescape")
    front = read_frontmatter(raw)
    body_start = len(raw[: front.body_start].decode("utf-8", errors="surrogateescape"))
    chunks: list[tuple[str, int]] = []
    if front.present and front.error is None:
        chunks += [(line.text, line.start) for line in lines(text[:body_start])]
    chunks += _paragraphs(text[body_start:], body_start)
    found = []
    characters = octets = 0
    for chunk, offset in chunks:
        for target, page, start, end in _scan(chunk):
            begin = octets + len(text[characters : offset + start].encode("utf-8", errors="surrogateescape"))
            stop = begin + len(text[offset + start : offset + end].encode("utf-8", errors="surrogateescape"))
            characters, octets = offset + end, stop
            found.append(Link(_shown(target), page, (begin, stop)))
    return found


def rewrite_links(raw: bytes, old: str, new: str) -> bytes:
    """Return the page with every link to the page *old* pointing to *new*; every other byte is equal.

    Args:
        raw: The page.
        old: Name or filename.
        new: Name or filename.

    Raises:
        InvalidName: *old* or *new* is no page name.
        NotEditable: There is such a link, but the page is not UTF-8 or its frontmatter would read differently.
    """
    old_name, new_name = page_name(old), page_name(new)
    if old_name.encode() not in raw.lower():  # the common case: nothing to look at
        return raw
    spans = [link.span for link in links(raw) if link.page == old_name]
    if not spans or old_name == new_name:
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NotEditable(
            f"links to {old_name} cannot be rewritten: the page is not valid UTF-8; re-encode it first"
        ) from None
    parts = []
    position = 0
    for start, end in spans:
        parts += [raw[position:start], new_name.encode()]
        position = end
    result = b"".join([*parts, raw[position:]])
    before, after = read_frontmatter(raw), read_frontmatter(result)
    if (before.present, before.error, list(before.fields)) != (after.present, after.error, list(after.fields)):
        raise NotEditable(f"links to {old_name} in the frontmatter cannot be rewritten; change them in a text editor")
    return result


def _paragraphs(text: str, offset: int) -> Iterator[tuple[str, int]]:
    """Yield what stands between blank lines and outside fenced code, and where; no markup reaches further."""
    start = end = 0
    for line in lines(text):
        if line.in_code or not line.text.strip():
            if end > start:
                yield text[start:end], offset + start
            start = end = line.end
        else:
            end = line.end
    if end > start:
        yield text[start:end], offset + start


def _scan(text: str) -> Iterator[tuple[str, str | None, int, int]]:
    """Yield target, page and place of the links of one paragraph."""
    runs: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text):
        runs.setdefault(run.end() - run.start(), []).append(run.start())
    depth = 0
    position = 0
    while (token := _TOKEN.search(text, position)) is not None:
        position = token.end()
        kind = token.lastgroup
        if kind == "ticks":
            same = runs.get(token.end() - token.start(), [])
            following = bisect_left(same, position)
            if following < len(same):
                position = same[following] + token.end() - token.start()
        elif kind is None:
            depth = max(depth + {"[": 1, "]": -1}.get(token[0], 0), 0)
        elif not kind.startswith("inline") or depth:
            depth = max(depth - 1, 0) if kind.startswith("inline") else depth
            page, start, end = _page(token[kind], kind == "wiki")
            if token[kind]:
                yield token[kind], page, token.start(kind) + start, token.start(kind) + end


def _page(target: str, wiki: bool) -> tuple[str | None, int, int]:
    """Return the page that a target names, and where in the target the name stands."""
    start = 2 if target.startswith("./") else 0
    cut = _NAME_END.search(target)
    end = cut.start() if cut is not None else len(target.rstrip())
    name = target[start:end]
    if wiki:
        end = start + len(name.removesuffix(PAGE_SUFFIX))
        name = name.removesuffix(PAGE_SUFFIX).lower()  # as the tools that have wiki links resolve them
    elif name.endswith(PAGE_SUFFIX):
        end -= len(PAGE_SUFFIX)
        name = unquote(name.removesuffix(PAGE_SUFFIX))
    else:
        name = ""
    return (name, start, end) if is_page_filename(name + PAGE_SUFFIX) else (None, 0, len(target))


def _shown(target: str) -> str:
    return target.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace").strip()
