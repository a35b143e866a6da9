"""Takes secrets out of text that comes from elsewhere, before people and logs get to see it.

A server that echoes a key rarely means harm, but it may quote it in its own way: across lines, escaped for JSON,
HTML or a URL, or as base64. So text and secrets are compared in a bare form, without escapes and without anything
that is no visible ASCII character; what matches is taken out of the text as it came.
"""

from __future__ import annotations

import base64
import html
import re
import urllib.parse
from collections.abc import Iterable

MARK = "***"
_SHORTEST_PIECE = 8  # of base64 that stands inside a longer base64 text; a shorter one is found by chance
_TOKEN = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # a terminal's colours and the like
    r"|%(?P<percent>[0-9A-Fa-f]{2})"
    r"|\\(?:u00|x)(?P<escape>[0-9A-Fa-f]{2})"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)"
    r"|\\[bfnrt]"
    r"|\\(?=[\"'/\\])"
    r"|(?P<other>.)",
    re.DOTALL,
)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with each of *secrets* replaced by ``***``, in whichever usual form it stands there."""
    forms = {form for secret in secrets for form in _forms(secret)}
    if not forms:
        return text
    bare, places = _bare(text)
    spans: list[tuple[int, int]] = []
    for form in forms:
        start = bare.find(form)
        while start >= 0:
            spans.append((places[start][0], places[start + len(form) - 1][1]))
            start = bare.find(form, start + 1)
    pieces: list[str] = []
    done = 0
    for first, last in sorted(spans):
        if first >= done:
            pieces += [text[done:first], MARK]
        done = max(done, last)
    return "".join([*pieces, text[done:]])


def _forms(secret: str) -> set[str]:
    """The bare forms under which *secret* may be found."""
    raw = secret.encode("utf-8", "replace")
    encoded = {base64.b64encode(raw).decode().rstrip("=")}
    # Inside a longer text ("Bearer KEY", "user:KEY") base64 has one of three alignments, without whole ends.
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        whole = base64.b64encode(bytes(before) + raw).decode()
        piece = whole[skipped : (before + len(raw)) * 8 // 6]
        if len(piece) >= _SHORTEST_PIECE:
            encoded.add(piece)
    in_urls = {text.translate(str.maketrans("+/", "-_")) for text in encoded}
    texts = {secret, urllib.parse.quote_plus(secret), *encoded, *in_urls}
    literal = "".join(character for character in secret if "!" <= character <= "~")
    return {form for form in (literal, *(_bare(text)[0] for text in texts)) if form}


def _bare(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the visible ASCII characters of *text*, escapes resolved, and where each of them stands."""
    characters: list[str] = []
    places: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        character = token["other"]
        if character is None:
            number = token["percent"] or token["escape"]
            character = chr(int(number, 16)) if number else html.unescape(token["entity"] or "")
        if len(character) == 1 and "!" <= character <= "~":
            characters.append(character)
            places.append(token.span())
    return "".join(characters), places
