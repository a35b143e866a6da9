"""Links of a page that lead nowhere: to a page or a file that is not there, or to a name that no page can have.

Addresses elsewhere are not asked, and what lies in a sub-directory is not looked at: it is no part of the field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from memoryfield.errors import InvalidName
from memoryfield.format.findings import shown_name
from memoryfield.format.links import Link, links
from memoryfield.format.names import PAGE_SUFFIX, slug
from memoryfield.format.page import Page
from memoryfield.format.pages import PageSource
from memoryfield.format.yamlread import line_of

_MAY_HOLD_LINKS = re.compile(rb"\]\(|\[\[|\]:|\.md")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|/|#|\?|www\.")
# Endings by which a target is a file for certain: not every text in brackets is meant as a link.
_ENDINGS = (
    "md markdown txt pdf csv tsv json jsonl xml yaml yml html htm log doc docx odt xls xlsx ods ppt pptx odp rtf epub "
    "png jpg jpeg gif svg webp bmp tif tiff avif heic mp3 wav ogg flac m4a mp4 mov webm mkv avi zip gz tar 7z ipynb "
    "canvas excalidraw drawio"
)
_FILES = frozenset(_ENDINGS.split())
_MOST_OF_ONE_PAGE = 20
_LOOKED_BACK = 2000  # bytes before a target; looking at all of them would take hours where a page is made for it


@dataclass(frozen=True)
class DeadLink:
    """A link that leads nowhere.

    Attributes:
        line: Line in the file, from 1.
        message: Where it leads.
        remedy: What to do about it.
    """

    line: int
    message: str
    remedy: str


def held_names(source: PageSource) -> frozenset[str]:
    """Return the names of all that a link of a field can lead to: pages, other files, sub-directories."""
    snapshot = source.snapshot()
    return frozenset([*snapshot.entries, *source.other_files(), *(item.filename for item in snapshot.skipped)])


def dead_links(page: Page, held: Collection[str]) -> Iterator[DeadLink]:
    """Yield the links of a page that lead nowhere, each target once.

    Args:
        page: The page.
        held: Filenames of the field, from :func:`held_names`.
    """
    if not _MAY_HOLD_LINKS.search(page.raw):
        return
    seen: set[str] = set()
    for link in links(page.raw):
        key = link.page or link.target
        found = None if key in seen else _dead(page.raw, link, held)
        if found is None:
            continue
        seen.add(key)
        if len(seen) > _MOST_OF_ONE_PAGE:
            return
        before = page.raw[: link.span[0]].decode("latin-1")
        yield DeadLink(1 + line_of(before, len(before)), *found)


def _dead(raw: bytes, link: Link, held: Collection[str]) -> tuple[str, str] | None:
    """Return where a link leads and what to do, or None where something is there."""
    if link.page is not None:
        filename = link.page + PAGE_SUFFIX
        return None if filename in held else (f"links to {filename}, which is not there", "write that page or unlink")
    before = raw[max(0, link.span[0] - _LOOKED_BACK) : link.span[0]].rstrip(b" \t")
    wiki = before.endswith(b"[[")
    target = link.target if wiki else unquote(re.split(r"[#?]", link.target, maxsplit=1)[0])
    target = target.strip().removeprefix("./")
    image = before.endswith(b"![[") or (not wiki and _is_image(raw, link.span[0]))
    ending = target.rpartition(".")[2].lower() if "." in target else ""
    if not target or (_ELSEWHERE.match(target) and not wiki):
        return None
    if wiki and ending not in _FILES - {"md"} and not image:
        return None if target in held or target + PAGE_SUFFIX in held else _no_name(target, held)
    if ending not in _FILES and not image:
        return None
    if target.startswith("../"):
        return f"leads out of the field: {shown_name(target)[:80]}", "put the file into the field, or unlink"
    if target.partition("/")[0] in held:  # the file, or a sub-directory that holds it or not
        return None
    if ending == "md" and "/" not in target:
        return _no_name(target.removesuffix(PAGE_SUFFIX), held)
    what = "shows" if image else "links to"
    return f"{what} {shown_name(target)[:80]}, which is not there", "put that file beside the page, or unlink"


def _is_image(raw: bytes, start: int) -> bool:
    """Whether the target that begins at *start* is that of ``![text](target)``."""
    line = raw[max(0, start - _LOOKED_BACK) : start].rpartition(b"\n")[2]
    return re.search(rb"!\[[^\[\]]*\]\([ \t]*<?\Z", line) is not None


def _no_name(target: str, held: Collection[str]) -> tuple[str, str]:
    message = f"links to {shown_name(target)[:80]!r}, a name that no page can have"
    try:
        proposed = slug(target)
    except InvalidName:
        return message, "write the name of a page, or unlink"
    if proposed + PAGE_SUFFIX in held:
        return message, f"write {proposed}, which is there"
    return message, f"write that page as {proposed} and link to it so, or unlink"
