"""Unicode normal forms in linear time.

``unicodedata.normalize`` sorts each run of combining marks by insertion: 40,000 marks in a row, which fit into a page,
take seconds. No script stacks more than a few marks on a letter, and Unicode's own Stream-Safe Text Process (UAX 15)
takes 30 for the most that a text needs.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

MOST_MARKS = 30
# All marks are in here; a test looks.
_FIRST, _LAST = 0x300, 0x1FFFF
# No marks by their class, but their decompositions begin with one: a run of them is a run of marks after all.
_BEGIN_WITH_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return *text* in a Unicode normal form, without the marks of a run that come after the thirtieth."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _long_runs().sub(r"\1", text))


@cache
def _long_runs() -> re.Pattern[str]:
    """Return what finds a run of too many marks; the part to keep is its first group."""
    marks = [code for code in range(_FIRST, _LAST + 1) if unicodedata.combining(chr(code))]
    spans: list[list[int]] = []
    for code in sorted({*marks, *map(ord, _BEGIN_WITH_MARKS)}):
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    members = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in spans)
    return re.compile(f"([{members}]{{{MOST_MARKS}}})[{members}]+")
