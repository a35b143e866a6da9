"""What of a page is indexed for words: the columns of the full-text table, and how their text is cut into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryfield.format.links import links
from memoryfield.format.page import as_text
from memoryfield.index.words import display_text, fold

if TYPE_CHECKING:
    from memoryfield.format.page import Page

COLUMNS = ("name", "title", "summary", "body", "other")
CREATE_WORDS = (
    f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, "
    "tokenize=\"porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'\")"
)
INSERT_WORDS = f"INSERT INTO words (rowid, {', '.join(COLUMNS)}) VALUES (?{', ?' * len(COLUMNS)})"
_SKIPPED_KEYS = frozenset(["title", "summary", "uuid"])  # the first two have columns, the last is no word


def page_texts(page: Page) -> tuple[str, ...]:
    """Return the texts of a page in the order of COLUMNS; together they hold every word of it."""
    front = page.frontmatter
    summary = as_text(front.get("summary"))
    if page.frontmatter_error is not None:  # nobody can say what is a key there, but its words are to be found
        other = page.text[: max(0, len(page.text) - len(page.body))]
    else:
        others = (f"{key} {as_text(value)}" for key, value in front.items() if key not in _SKIPPED_KEYS)
        other = "\n".join(others)
    return (page.name, page.title, summary, page.body, other)


def folded_texts(page: Page) -> tuple[str, ...]:
    """Return the texts to index, in the order of COLUMNS.

    A name that a link gives says what the page over there is about: it counts as little as a page's own name. Words of
    addresses stay where they are, for taking them out found less on the fields that were measured.
    """
    name, title, summary, body, other = page_texts(page)
    body, targets = _apart(page, body)
    return tuple(fold(display_text(text)) for text in (name, title, summary, body, other + targets))


def _apart(page: Page, body: str) -> tuple[str, str]:
    """Return the body without the page names in its links, and those names."""
    if not page.is_utf8 or ("](" not in body and "[[" not in body and "]:" not in body and ".md" not in body):
        return body, ""
    begin = len(page.raw) - len(body.encode("utf-8"))
    parts: list[bytes] = []
    names: list[str] = []
    position = begin
    for link in links(page.raw):
        start, end = link.span
        if link.page is not None and start >= position:
            parts.append(page.raw[position:start])
            names.append(link.page)
            position = end
    return b"".join([*parts, page.raw[position:]]).decode("utf-8"), "".join(f"\n{name}" for name in names)
