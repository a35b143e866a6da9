"""Links and labels around a merge: other pages that point to what goes, and labels that two pages use differently."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from memoryfield.errors import NotEditable, PageNotFound
from memoryfield.format.links import links, rewrite_links
from memoryfield.format.markdown import lines
from memoryfield.format.page import Page
from memoryfield.format.verbs import PageVerbs

_DEFINITION = re.compile(r" {0,3}\[(\^?[^\[\]\n]{1,200})\]:")


@dataclass(frozen=True)
class Relinked:
    """Another page whose links are rewritten.

    Attributes:
        name: Its name.
        count: How many links.
        before: Its bytes now.
        after: Its bytes then.
        sha256: Digest of *before*, in hexadecimal digits.
    """

    name: str
    count: int
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    sha256: str


def relinked(directory: PageVerbs, old: Sequence[str], new: str, apart: Collection[str]) -> tuple[Relinked, ...]:
    """Return every page with links to one of *old*, and what it is once they point to *new*.

    Args:
        directory: The pages.
        old: Names of pages that go.
        new: Name of the page that stays.
        apart: Names of pages that are not looked at.

    Raises:
        NotEditable: A page has such a link and cannot be edited, or cannot be read; names it.
    """
    found = []
    gone = set(old)
    for page in _every_page(directory):
        if page.name in apart:
            continue
        try:
            raw = with_links_to(page, old, new).raw
        except NotEditable as error:
            raise NotEditable(f"{page.filename}: {error}") from error
        if raw != page.raw:
            count = sum(link.page in gone for link in links(page.raw))
            found.append(Relinked(page.name, count, page.raw, raw, page.sha256))
    return tuple(found)


def with_links_to(page: Page, old: Sequence[str], new: str) -> Page:
    """Return a page with every link to one of *old* pointing to *new*."""
    raw = page.raw
    for name in old:
        raw = rewrite_links(raw, name, new)
    return Page(page.name, raw, page.modified)


def _every_page(directory: PageVerbs) -> Iterator[Page]:
    """Yield every page; a link in one that cannot be read would be left pointing to nothing."""
    seen = set()
    for page in directory.pages():
        seen.add(page.name)
        yield page
    for name in directory.names():
        if name not in seen:
            try:
                yield directory.read(name)
            except PageNotFound as error:
                if name in directory.names():
                    raise NotEditable(f"{error}; links in it cannot be looked for: mend it or move it away") from error


def unclashed(body: str, taken: set[str]) -> str:
    """Return a body whose reference and footnote labels are none of *taken*, and add its labels to them.

    Two pages may both have a ``[1]: ...`` or a ``[^1]: ...``; in one page the second would be dead.

    Args:
        body: A body.
        taken: Labels of the bodies before, folded; changed.
    """
    defined: dict[str, str] = {}
    for line in lines(body):
        match = None if line.in_code else _DEFINITION.match(line.text)
        if match is not None:
            defined.setdefault(match[1].casefold(), match[1])
    fresh: dict[str, str] = {}
    for folded, label in defined.items():
        if folded in taken:
            number = 2
            while f"{folded}-{number}" in taken or f"{folded}-{number}" in defined:
                number += 1
            fresh[folded] = f"{label}-{number}"
        taken.add(fresh.get(folded, label).casefold())
    if not fresh:
        return body
    pattern = re.compile(
        r"\[(" + "|".join(re.escape(defined[folded]) for folded in fresh) + r")\](?!\()", re.IGNORECASE
    )

    def renamed(match: re.Match[str]) -> str:
        new = fresh[match[1].casefold()]
        is_shortcut = not match[1].startswith("^") and match.string[: match.start()][-1:] != "]"
        is_definition = match.string[match.end() : match.end() + 1] == ":" and not match.string[: match.start()].strip()
        followed = match.string[match.end() : match.end() + 1] == "["
        return f"[{match[1]}][{new}]" if is_shortcut and not is_definition and not followed else f"[{new}]"

    return "".join(
        body[line.start : line.end] if line.in_code else pattern.sub(renamed, body[line.start : line.end])
        for line in lines(body)
    )
