"""Places where a text can become two: whole sections, or where there are none whole paragraphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memoryfield.curate.blocks import Block, read_blocks, write_blocks
from memoryfield.curate.sentences import sentence_key
from memoryfield.format.yamlwrite import Settable


@dataclass(frozen=True)
class SecondPage:
    """A page that a split makes.

    Attributes:
        name: Its name.
        title: Its title.
        body: Its body.
        uuid: Its own uuid.
        keys: Further frontmatter keys.
    """

    name: str
    title: str
    body: str
    uuid: str
    keys: Mapping[str, Settable] = field(default_factory=dict)


def divide(body: str, last: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield ways to cut a body in two: what stays, what goes, and the title of what goes; the shortest end first.

    Args:
        body: The body.
        last: Key of the heading of a section that stays at the end of the first page.
    """
    blocks, tail = read_blocks(body)
    end = next((i for i, b in enumerate(blocks) if b.kind == "heading" and sentence_key(b.title) == last), len(blocks))
    levels = [block.level for block in blocks[1:end] if block.kind == "heading"]
    top = min(levels, default=0)
    cuts = [i for i in range(end - 1, 0, -1) if blocks[i].kind == "heading" and blocks[i].level == top]
    cuts += [
        i
        for i in range(end - 1, 0, -1)
        if blocks[i].kind != "heading"
        and not blocks[i - 1].leads_in
        and i not in cuts
        and blocks[i - 1].kind != "heading"
    ]
    for cut in cuts:
        going = blocks[cut:end]
        title = ""
        tops = [block for block in going if block.kind == "heading" and block.level == top]
        if going[0].kind == "heading" and len(tops) == 1:
            title, going = going[0].title, going[1:]
        if going:
            yield write_blocks([*blocks[:cut], *blocks[end:]], tail or "\n"), _body(going), title


def _body(blocks: list[Block]) -> str:
    return write_blocks(blocks, "\n").lstrip("\n")
