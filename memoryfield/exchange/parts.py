"""What a reader makes of a source: parts that become pages, and what could not be read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memoryfield.format.yamlwrite import Settable

LARGEST_FILE = 1 << 28  # bytes of one exported file that are read at all
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Part:
    """One piece of a source that becomes a page.

    Attributes:
        key: What the piece is called in its source, the same on every run: a path, an id, a heading with its number.
        title: Title of the page.
        body: Markdown; for a part with *raw* it is not used.
        where: File, and line where there is one, for messages.
        summary: One line, where the source has one.
        created: When it came to be, where the source says so.
        updated: When it last changed.
        keys: Further frontmatter keys.
        name: Page name to prefer; by default made from the title.
        raw: Bytes of a Markdown file that are kept as they are, links apart.
        changes: What reading it changed, in words, for the report.
    """

    key: str
    title: str
    body: str
    where: str
    summary: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    keys: Mapping[str, Settable] = field(default_factory=dict)
    name: str | None = None
    raw: bytes | None = None
    changes: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Digest of all that the page is made from; the same for an unchanged source."""
        if self.raw is not None:
            return hashlib.sha256(self.raw).hexdigest()
        fields = [self.title, self.body, self.summary or "", str(self.created), str(self.updated)]
        fields += [f"{key}\0{value!r}" for key, value in self.keys.items()]
        return hashlib.sha256("\0\0".join(fields).encode("utf-8", errors="surrogatepass")).hexdigest()


def without_halves(part: Part) -> Part:
    """Return a part that UTF-8 can hold: an export that cuts texts by their length leaves halves of an emoji."""

    def whole(text: str) -> str:
        return _HALF.sub("\ufffd", text)

    def value_of(value: Settable) -> Settable:
        if isinstance(value, list):
            return [value_of(item) for item in value]
        return whole(value) if isinstance(value, str) else value

    mended = replace(
        part,
        key=whole(part.key),
        title=whole(part.title),
        body=whole(part.body),
        summary=None if part.summary is None else whole(part.summary),
        keys={key: value_of(value) for key, value in part.keys.items()},
        changes=tuple(map(whole, part.changes)),
    )
    if mended == part:
        return part
    said = "half a character, as a cut emoji leaves it, became \ufffd"
    return replace(mended, changes=(*mended.changes, said))


@dataclass(frozen=True)
class Unread:
    """Something of a source that became no page.

    Attributes:
        where: File, and line where there is one.
        reason: Why, and what to do.
        is_link: Whether it is only a link in the page of *where*, which itself is taken.
    """

    where: str
    reason: str
    is_link: bool = False


@dataclass(frozen=True)
class Reading:
    """A source as it was read.

    Attributes:
        kind: One of ``detect.KINDS``.
        label: What the source is called in the record of what was imported.
        parts: What becomes pages, in the order of the source.
        unread: What does not.
    """

    kind: str
    label: str
    parts: tuple[Part, ...]
    unread: tuple[Unread, ...] = ()
