"""One page as a value: its bytes, and what they say.

A page is never changed; ``edit.py`` makes new bytes from old ones. What is read is never normalised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from memoryfield.display import Table, escape, plain
from memoryfield.format.frontmatter import BOM, Frontmatter, Problem, read_frontmatter
from memoryfield.format.markdown import first_heading, first_prose, line_end
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.yamlread import Value

LONGEST_EMBEDDED = 8192  # bytes of a page that tools embed (FORMAT P4)
SPECIAL_NAMES = frozenset(["index", "listing"])
_LONGEST_SHOWN = 20_000  # characters of a body in a notebook


@dataclass(frozen=True, repr=False)
class Page:
    """A page of a field.

    Attributes:
        name: Its name, without ``.md``.
        raw: The bytes of its file.
        modified: When the file was last written, in UTC; None where that is not known.
    """

    name: str
    raw: bytes
    modified: datetime | None = None

    @property
    def filename(self) -> str:
        """Name of the file: the page's name and ``.md``."""
        return self.name + PAGE_SUFFIX

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes, in lower-case hexadecimal digits."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.raw)

    @property
    def cut_bytes(self) -> int:
        """Number of bytes past the 8192 that are embedded."""
        return max(len(self.raw) - LONGEST_EMBEDDED, 0)

    @property
    def is_special(self) -> bool:
        """Whether this is ``index`` or ``listing``, which stay out of duplicate, stale and merge views."""
        return self.name in SPECIAL_NAMES

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are valid UTF-8; a page that is not can be read but not edited."""
        try:
            self.raw.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def text(self) -> str:
        """The whole page as text, without a BOM; undecodable bytes are shown as U+FFFD."""
        return self.raw[len(BOM) if self.raw.startswith(BOM) else 0 :].decode("utf-8", errors="replace")

    @cached_property
    def body(self) -> str:
        """The text after the frontmatter, exactly as it stands there."""
        return self.raw[self._front.body_start :].decode("utf-8", errors="replace")

    @cached_property
    def newline(self) -> str:
        r"""The line end that the page uses: that of its first line, ``\n`` where it has none."""
        return line_end(self.raw)

    @cached_property
    def _front(self) -> Frontmatter:
        return read_frontmatter(self.raw)

    @property
    def frontmatter(self) -> Mapping[str, Value]:
        """Keys and what they say, read as text; empty without a readable block. Read only."""
        return self._front.fields

    @property
    def has_frontmatter(self) -> bool:
        """Whether a block stands there, readable or broken."""
        return self._front.present

    @property
    def frontmatter_error(self) -> Problem | None:
        """Why the block cannot be read."""
        return self._front.error

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is readable in the frontmatter but not as it should be."""
        return self._front.warnings

    @cached_property
    def title(self) -> str:
        """The ``title`` of the frontmatter, else the first heading, else the name; one line."""
        return _one_line(as_text(self.frontmatter.get("title"))) or _one_line(first_heading(self.body)) or self.name

    @cached_property
    def summary(self) -> str:
        """The ``summary`` of the frontmatter, else the first line of prose, else an empty text."""
        return as_text(self.frontmatter.get("summary")).strip() or first_prose(self.body)

    @property
    def uuid(self) -> str | None:
        """The ``uuid`` of the frontmatter as it is written there."""
        return as_text(self.frontmatter.get("uuid")).strip() or None

    @property
    def created(self) -> str | None:
        """The ``created`` of the frontmatter as it is written there; ``dates.parse_date`` reads it."""
        return as_text(self.frontmatter.get("created")).strip() or None

    @property
    def updated(self) -> str | None:
        """The ``updated`` of the frontmatter as it is written there; ``dates.parse_date`` reads it."""
        return as_text(self.frontmatter.get("updated")).strip() or None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as values that JSON can hold."""
        return {
            "name": self.name,
            "filename": self.filename,
            "title": self.title,
            "summary": self.summary,
            "uuid": self.uuid,
            "created": self.created,
            "updated": self.updated,
            "modified": self.modified.isoformat() if self.modified is not None else None,
            "size": self.size,
            "sha256": self.sha256,
            "is_utf8": self.is_utf8,
            "frontmatter": dict(self.frontmatter),
            "frontmatter_error": str(self.frontmatter_error) if self.frontmatter_error is not None else None,
            "warnings": [str(warning) for warning in self.warnings],
            "body": self.body,
        }

    def __repr__(self) -> str:
        return f"Page({self.name!r}, {plain(self.title, 60)!r}, {self.size:,} bytes)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Page, (self.name, self.raw, self.modified)  # what was worked out is worked out again

    def __str__(self) -> str:
        return self._table().text() + "\n\n" + "\n".join(plain(line) for line in self.body.splitlines())

    def _repr_html_(self) -> str:
        body = self.body
        cut = (
            f"<p><small>... and {len(body) - _LONGEST_SHOWN:,} more characters</small></p>"
            if len(body) > _LONGEST_SHOWN
            else ""
        )
        shown = "\n".join(escape(line) if line.strip() else "" for line in body[:_LONGEST_SHOWN].splitlines())
        return (
            self._table().html()
            + f'<pre class="memoryfield mathjax_ignore tex2jax_ignore" style="white-space:pre-wrap">{shown}</pre>'
            + cut
        )

    def _table(self) -> Table:
        notes = [
            str(problem)
            for problem in ([self.frontmatter_error] if self.frontmatter_error else []) + list(self.warnings)
        ]
        if not self.is_utf8:
            notes.append(
                "not valid UTF-8: undecodable bytes are shown as U+FFFD, and the page cannot be edited as it is"
            )
        if self.cut_bytes:
            notes.append(f"the last {self.cut_bytes:,} bytes are past {LONGEST_EMBEDDED:,} and need not be embedded")
        rows = [(key, as_text(value)) for key, value in self.frontmatter.items()]
        return Table(
            f"{self.title} ({self.filename}, {self.size:,} bytes)", ("key", "value"), rows, notes, widths={"value": 500}
        )


def as_text(value: Value | None) -> str:
    """Return a frontmatter value as one text: lists joined by commas, anything deeper as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).strip() if len(text.splitlines()) > 1 else text.strip()
