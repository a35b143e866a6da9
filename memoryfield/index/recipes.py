"""Recipes: which text of a page is given to the embedding model.

A recipe's text depends on the bytes of the page alone, never on its name: a renamed page keeps its vector. Prefixes
are the model's affair and are added by the embedder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryfield.errors import QueryError

if TYPE_CHECKING:
    from memoryfield.format.page import Page

PAGE = "page"  # the specification's: the file as it stands, frontmatter included
CONTENT = "content"  # title, summary and body, without keys that only machines read
PASSAGES = "passages"  # several texts of a longer page; see ``passages.py``
RECIPES = (PAGE, CONTENT, PASSAGES)
SPEC_LIMIT = 8192  # bytes that need to be embedded (FORMAT P4, X5)


def check_recipe(recipe: str) -> str:
    """Return *recipe* if it is known.

    Raises:
        QueryError: There is no such recipe; the message lists those there are.
    """
    if recipe not in RECIPES:
        raise QueryError(f"there is no recipe {recipe!r}; there are: {', '.join(RECIPES)}.")
    return recipe


def recipe_text(recipe: str, page: Page) -> str:
    """Return the text to embed for *page*, without any prefix (FORMAT X5).

    A page has one text here, also under ``passages``, where it is the text of ``page``.

    The cut at 8192 bytes may fall inside a character; what is left of it is dropped, as are bytes that are no UTF-8.

    Raises:
        QueryError: There is no such recipe.
    """
    return _whole(recipe, page)[:SPEC_LIMIT].decode("utf-8", errors="ignore")


def cut_bytes(recipe: str, page: Page) -> int:
    """Return how many bytes of the recipe's whole text are past the limit and so not embedded."""
    if recipe == PASSAGES:  # a longer page has more of them
        return 0
    return max(0, len(_whole(recipe, page)) - SPEC_LIMIT)


def _whole(recipe: str, page: Page) -> bytes:
    if check_recipe(recipe) in (PAGE, PASSAGES):
        return page.raw
    written = (page.frontmatter.get("title"), page.frontmatter.get("summary"))
    parts = [value.strip() for value in written if isinstance(value, str)] + [page.body.strip()]
    return "\n\n".join(part for part in parts if part).encode("utf-8", errors="ignore")
