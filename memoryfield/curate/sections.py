"""Sections of a body, and the small moves of a merge: append a block, put a sentence behind another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from memoryfield.curate.blocks import Block, Sentence, closed
from memoryfield.curate.contradictions import Likeness
from memoryfield.curate.sentences import is_short, sentence_key, split_sentences


@dataclass(frozen=True)
class Part:
    """What one page brings to a merge.

    Attributes:
        name: Name of the page.
        title: Its title.
        day: Its date as text, or empty.
        body: Its body with LF line ends and the links of the merged page.
    """

    name: str
    title: str
    day: str
    body: str


@dataclass(frozen=True)
class Resemblance:
    """Two sentences of the merged text that say almost the same, or the same with other values.

    They stand side by side, unless the second would be torn out of what it belongs to: then it stays there, and where
    it contradicts, the mark behind it quotes the first.

    Attributes:
        kind: ``near`` (few words differ) or ``conflict`` (other values).
        first: The sentence that stood there.
        first_page: Page of it.
        second: The other sentence.
        second_page: Page of that.
        marker: The words in the text that tell the reader, or empty.
        first_keys: What the account knows the first one by, without what the second one shares.
        second_keys: The same for the second one.
    """

    kind: Likeness
    first: str
    first_page: str
    second: str
    second_page: str
    marker: str = ""
    first_keys: tuple[str, ...] = ()
    second_keys: tuple[str, ...] = ()


@dataclass
class Section:
    """A heading and the blocks under it, up to the next heading."""

    heading: Block | None
    blocks: list[Block] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Key of the heading's text."""
        return sentence_key(self.heading.title) if self.heading is not None else ""

    @property
    def level(self) -> int:
        """Level of the heading, 0 without one."""
        return self.heading.level if self.heading is not None else 0


def without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text without some pieces and the blanks they leave behind."""
    for start, end in sorted(spans, reverse=True):
        before, after = text[:start], text[end:]
        stripped = after.lstrip(" \t")
        if not before or before.endswith("\n"):
            after = stripped.removeprefix("\n")
        elif not stripped or stripped.startswith("\n"):
            before, after = before.rstrip(" \t"), stripped
        elif before[-1:].isspace():
            after = stripped
        text = before + after
    return text.strip("\n") if text.strip() else ""


def sections_of(blocks: Sequence[Block]) -> list[Section]:
    """Return blocks by sections; the first one has no heading and may be empty."""
    found = [Section(None)]
    for block in blocks:
        if block.kind == "heading":
            found.append(Section(block))
        else:
            found[-1].blocks.append(closed(block))
    return found


def has_title(sections: Sequence[Section]) -> bool:
    """Whether a body begins with a heading that stands above all others: its title."""
    if len(sections) < 2 or sections[0].blocks:
        return False
    return sections[1].level == 1 and all(section.level > 1 for section in sections[2:])


def heading_block(level: int, title: str, origin: str) -> Block:
    """Return a new heading."""
    return Block("heading", f"{'#' * level} {title}", "\n\n", level, title, origin)


def groups_of(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield blocks that belong together: what announces something, with what it announces."""
    group: list[Block] = []
    for block in blocks:
        group.append(block)
        if not block.leads_in:
            yield group
            group = []
    if group:
        yield group


def append_block(section: Section, block: Block) -> None:
    """Put a block at the end of a section, an empty line apart."""
    if not block.text.strip():
        return
    gap = block.gap if section.blocks and block.gap.count("\n") > 1 else "\n\n"
    if section.heading is not None and not section.blocks:
        gap = "\n\n"
    section.blocks.append(replace(block, gap=gap))


def swap_block(section: Section, old: Block, new: Block) -> Block:
    """Put a block in the place of another one, and return it."""
    section.blocks[next(i for i, block in enumerate(section.blocks) if block is old)] = new
    return new


def put_after(text: str, place: int, addition: str) -> str:
    """Put a sentence behind the one that ends at a place, so that both can be told apart.

    On the same line where a full stop stands there, else on a line or in a paragraph of its own.
    """
    rest = text[place:]
    wide = bool(place) and text[place - 1] in "。！？"
    glues = ["" if wide else " ", "\n", "\n\n"]
    if rest.startswith("\n") and "\n" in text.strip():
        glues = glues[1:]
    for glue in glues:
        begin = place + len(glue)
        spans = split_sentences(text[:place] + glue + addition)
        if any(end == place for _, end in spans) and any(start == begin for start, _ in spans):
            break
    if glue == "\n\n" and rest:
        rest = "\n\n" + rest.lstrip()
    return f"{text[:place]}{glue}{addition}{rest}"


def pair_of(
    kind: Likeness, first: Sentence, first_page: str, second: Sentence, second_page: str, marker: str
) -> Resemblance:
    """Return what is known of two sentences that resemble each other."""
    return Resemblance(kind, first.text, first_page, second.text, second_page, marker, (first.key,), (second.key,))


def only_in(one: Sequence[str], two: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the first that the second lacks."""
    return tuple(key for key in one if key not in two)


def is_within(one: Sequence[str], two: Sequence[str]) -> bool:
    """Whether all of the first stand in the second, in their order."""
    rest = iter(two)
    return all(key in rest for key in one)


def first_cell(row: Sentence) -> str:
    """Return the first cell of a table row, as it is compared."""
    return row.key.split("\n", 1)[1].split(" | ")[0]


def is_bare(text: str) -> bool:
    """Whether a sentence is a value without a word of what it is the value of."""
    return is_short(text) and not re.search(r"[:：]\s*\S", text)


def item_at(items: Sequence[str], place: int) -> int:
    """Return which item of a list holds a character of the list's text."""
    offset = 0
    for i, item in enumerate(items):
        offset += len(item) + 1
        if place < offset:
            return i
    return len(items) - 1


def as_item(item: str, host: Block) -> str:
    """Return a list item with the marker that the list uses."""
    marker = host.text.lstrip()[:1]
    bare = item.lstrip()
    return (marker if marker in "-*+" else "-") + bare[1:] if bare[:1] in "-*+" else item
