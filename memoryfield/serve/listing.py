"""The catalogue of a field: a page's name, title and summary a line, in the order of the names."""

from __future__ import annotations

from collections.abc import Iterable

from memoryfield.display import plain
from memoryfield.format.page import SPECIAL_NAMES, Page

_LONGEST = 160


def listing(pages: Iterable[Page]) -> str:
    """Return a Markdown table of the pages, ``index`` and ``listing`` left out."""
    rows = ["| Page | Title | Summary |", "|------|-------|---------|"]
    for page in pages:
        if page.name not in SPECIAL_NAMES:
            cells = (f"[{page.name}]({page.filename})", _cell(page.title), _cell(page.summary))
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    """Return text that ends no cell and opens no markup."""
    shown = plain(text, _LONGEST)
    for character in "\\|[]<>`*_":
        shown = shown.replace(character, "\\" + character)
    return shown
