"""What of a page is indexed for words: the columns of the full-text table, and how their text is cut into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Return the texts to index, in the order of COLUMNS."""
    return tuple(fold(display_text(text)) for text in page_texts(page))
