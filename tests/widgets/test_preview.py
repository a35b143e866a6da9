"""The preview: Markdown becomes HTML that runs nothing, fetches nothing and leads nowhere by itself."""

from __future__ import annotations

import re

import pytest

from memoryfield_widgets.preview import LONGEST, TAGS, preview


def test_markdown_is_shown() -> None:
    made, cut = preview("# Title\n\nSome **bold** and `code`.\n\n| a | b |\n|---|---|\n| 1 | ~~2~~ |\n\n3. three\n")
    for part in ("<h1>Title</h1>", "<strong>bold</strong>", "<code>code</code>", "<td><s>2</s></td>", '<ol start="3">'):
        assert part in made
    assert not cut


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<style>*{display:none}</style>",
        "<iframe src=https://example.org></iframe>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "<javascript:alert(1)>",
        "![x](https://example.org/track.png)",
        '![x" onerror="alert(1)](https://example.org/"onload="alert(1))',
        '[x](https://example.org/" onclick="alert(1))',
        "[x]: javascript:alert(1)\n\n[x]",
        "```html\n<script>alert(1)</script>\n```",
        "```<img/src=x>\ncode\n```",
        "<svg><a xlink:href='javascript:alert(1)'>x</a></svg>",
        "<a href='x.md' style='position:fixed;inset:0'>x</a>",
        "<form action=https://example.org><input name=q></form>",
    ],
)
def test_nothing_runs_and_nothing_is_fetched(attack: str) -> None:
    made, _ = preview(attack)
    tags = re.findall(r"<\s*/?\s*([a-zA-Z0-9]+)", made)
    assert set(tags) <= TAGS
    for attribute in re.findall(r"<[^>]*?\s([a-z-]+)=", made):
        assert attribute in {"href", "target", "rel", "data-page", "data-image", "start"}
    assert not re.search(r'href="(?!https?://|mailto:)', made)


def test_links_to_pages_open_pages_and_others_know_nothing_of_us() -> None:
    made, _ = preview(
        "[a](winch-brake.md) [b](./winch-brake.md#oil) [c](https://example.org/x) [d](notes.txt) [e](#top)"
    )
    assert made.count('data-page="winch-brake"') == 2
    assert '<a href="https://example.org/x" target="_blank" rel="noopener noreferrer nofollow">c</a>' in made
    for text in ("d", "e"):
        assert f'<a rel="noopener noreferrer nofollow">{text}</a>' in made


def test_an_image_shows_its_words_and_its_place() -> None:
    made, _ = preview("![The *blue* winch](photos/winch.jpg)")
    assert 'data-image="photos/winch.jpg"' in made and "winch" in made and "<img" not in made


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "> " * 20_000, "*a " * 30_000, "`" * 50_000, "- " * 5_000, "![" * 20_000]
)
def test_hostile_nesting_ends(text: str) -> None:
    made, _ = preview(text)
    assert isinstance(made, str)


def test_a_long_page_is_cut() -> None:
    assert preview("x" * (LONGEST + 1))[1]
    assert not preview("x" * LONGEST)[1]
