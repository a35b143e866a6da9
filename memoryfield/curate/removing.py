"""Taking sentences out of a body without leaving holes: an empty list item, a lone marker, three blank lines."""

from __future__ import annotations

import re
from collections.abc import Collection

from memoryfield.curate.blocks import body_sentences

_EMPTY_LINE = re.compile(r"[ \t]*(?:>[ \t]*)*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:\[[ xX]\])?[ \t]*\Z")
_HOLES = re.compile(r"\n{3,}")


def remove_sentences(body: str, keys: Collection[str] = (), markers: Collection[str] = ()) -> str:
    """Return a body without every sentence that has one of the keys, headings excepted.

    Args:
        body: A body with LF line ends.
        keys: Keys of sentences.
        markers: Texts of sentences that go too.
    """
    marks = {marker.strip() for marker in markers if marker}
    result = body
    for sentence in reversed(body_sentences(body)):
        is_mark = body[sentence.start : sentence.end].strip() in marks
        if (is_mark or sentence.key in keys) and sentence.kind != "heading":
            result = _cut(result, sentence.start, sentence.end)
    return result if result == body else _HOLES.sub("\n\n", result)


def _cut(text: str, start: int, end: int) -> str:
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    before, after = text[begin:start], text[end:stop]
    if _EMPTY_LINE.match(before) and not after.strip():
        return text[:begin] + text[stop + 1 :]
    if not after.strip():
        before, after = before.rstrip(), ""
    elif not before or before[-1].isspace():
        after = after.lstrip()
    return text[:begin] + before + after + text[stop:]
