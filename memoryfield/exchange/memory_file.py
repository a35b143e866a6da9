"""One long memory file, cut at its headings: nothing is lost, and the order is kept.

The pieces, joined in order, are the file. Each becomes a page that keeps its piece of the text as its body and its
place in the order in the key ``position``, so that ``outward.memory_file`` can write the file again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from memoryfield.exchange.parts import Part
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.markdown import headings

_FEWEST_CUTS = 2  # a file with fewer headings of a level is cut at the next level


def split_memory_file(text: str, where: str) -> list[Part]:
    """Return the pieces of a memory file: what stands before the first heading, then one for each section.

    The cut is made at the highest level that has at least two headings, and at every heading above it.

    Args:
        text: The file's text.
        where: Name of the file.
    """
    found = list(headings(text))
    level = _level([heading.level for heading in found])
    cuts = sorted({heading.start for heading in found if heading.level <= level})
    edges = [0, *(cut for cut in cuts if cut > 0), len(text)]
    parts: list[Part] = []
    seen: dict[str, int] = {}
    titles = {heading.start: heading.text for heading in found}
    line, counted = 1, 0
    for start, end in pairwise(edges):
        piece = text[start:end]
        if not piece.strip():
            if parts:  # blank lines belong to the piece before them
                last = parts.pop()
                parts.append(_with_body(last, last.body + piece))
            continue
        title = titles.get(start, "") or Path(where).stem.replace("_", " ").title()
        seen[title] = seen.get(title, 0) + 1
        key = f"#{title}" if seen[title] == 1 else f"#{title} ({seen[title]})"
        line, counted = line + text.count("\n", counted, start), start
        place = f"{where}, line {line}"
        raw = piece.encode("utf-8", errors="surrogateescape") if not start else b""
        if raw and read_frontmatter(raw).present:  # its keys stay the page's own
            parts.append(Part(key, title, piece, place, keys={"position": 1}, raw=raw))
            continue
        parts.append(Part(key, title, piece, place, keys={"position": len(parts) + 1}))
    return parts


def _level(levels: list[int]) -> int:
    for level in sorted(set(levels)):
        if levels.count(level) >= _FEWEST_CUTS:
            return level
    return max(levels, default=1)


def _with_body(part: Part, body: str) -> Part:
    raw = None if part.raw is None else body.encode("utf-8", errors="surrogateescape")
    return replace(part, body=body, raw=raw)
