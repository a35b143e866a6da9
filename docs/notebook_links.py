"""Links to notebooks lead to the notebooks on GitHub and in a checkout, and to their executed pages in the build.

``make docs`` executes the notebooks and writes their pages beside those of Sphinx, which cannot know of them.
"""

from __future__ import annotations

import re
from typing import Any

_LINK = re.compile(r"\[([^\]\n]+)\]\((?:\.\./)+notebooks/([\w-]+)\.ipynb\)")


def to_pages(text: str, docname: str) -> str:
    """Return a page's source with each link to a notebook turned into one to its executed page."""
    up = "../" * docname.count("/")
    return _LINK.sub(rf'<a href="{up}notebooks/\2.html">\1</a>', text)


def _read(_app: Any, docname: str, source: list[str]) -> None:
    source[0] = to_pages(source[0], docname)


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
