"""A page as HTML that executes nothing and asks for nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Any

from memoryfield.display import escape
from memoryfield.format.page import Page

_STYLE = """
:root { color-scheme: light dark; --line: #8886 }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse }
td, th { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: .85rem; opacity: .8 }
a:focus-visible { outline: 2px solid; outline-offset: 2px }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox allow-same-origin allow-popups"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def page_html(page: Page, home: str = "./") -> str:
    """Return a page as one HTML document.

    Args:
        page: The page.
        home: Where the link to the field's catalogue leads.
    """
    shown = [(key, value) for key, value in page.frontmatter.items() if isinstance(value, str)][:20]
    keys = "".join(f"<dt>{escape(key, 60)}</dt><dd>{escape(value, 400)}</dd>" for key, value in shown)
    return document(page.title, f"<dl>{keys}</dl>{markdown_html(page.body)}", home)


def document(title: str, body: str, home: str | None = None) -> str:
    """Return a document around HTML that is safe already."""
    back = f'<nav><a href="{escape(home)}">all pages</a></nav>' if home else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title, 120)}</title><style>{_STYLE}</style></head>"
        f"<body>{back}<main><h1>{escape(title, 200)}</h1>{body}</main></body></html>"
    )


def markdown_html(text: str) -> str:
    """Return Markdown as HTML: raw HTML in it is shown as text, what is made of it is sanitised."""
    import nh3

    made: str = _reader().render(text)
    clean: str = nh3.clean(
        made,
        tags={
            *("a", "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
            *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
        },
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return clean


@cache
def _reader() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").enable("strikethrough")
