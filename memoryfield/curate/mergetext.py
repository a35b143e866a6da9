"""One body from several: section by section, block by block, sentence by sentence.

The first body keeps its order and its characters. What another one adds goes under the heading of the same text; what
stands under no common heading gets a heading of its own, the page's title, so that a story stays a story. How a block
joins a section is in ``mergeblocks.py``. Nothing here decides what is lost: ``account.py`` reads the result and does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryfield.curate.blocks import Block, body_sentences, read_blocks, write_blocks
from memoryfield.curate.contradictions import likeness
from memoryfield.curate.mergeblocks import Joiner
from memoryfield.curate.sections import (
    Part,
    Resemblance,
    Section,
    append_block,
    has_title,
    heading_block,
    is_bare,
    sections_of,
    swap_block,
)
from memoryfield.curate.sentences import sentence_key

SOURCES = "Sources"
TOO_LONG = "the pages are too long to look for sentences that are almost the same"
_MOST_COMPARED = 1_000_000  # pairs of sentences
_DEEPEST = 6


class Weaver:
    """A body that takes in others."""

    def __init__(self, first: Part) -> None:
        blocks, self._tail = read_blocks(first.body, first.name)
        self.sections = sections_of(blocks)
        self.first = first
        self._joiner = Joiner(self.sections)
        self._seen = [first]
        self._joiner.days[first.name] = first.day
        self._lead = 1 if has_title(self.sections) else 0
        below = [s.level for s in self.sections[self._lead + 1 :]]
        self._level = max(min(below, default=2), 2 if self._lead else 1)
        if not below:
            self._level = 2

    @property
    def resemblances(self) -> list[Resemblance]:
        """Pairs of sentences that are almost the same, or contradict each other."""
        return self._joiner.resemblances

    @property
    def too_long(self) -> bool:
        """Whether the pages are too long to look for sentences that are almost the same."""
        return self._joiner.too_long

    # -- taking in ----------------------------------------------------------------------------------------------------

    def add(self, part: Part) -> None:
        """Take in another body."""
        self._joiner.days[part.name] = part.day
        theirs = sections_of(read_blocks(part.body, part.name)[0])
        pairs = self._count(theirs) * self._count(self.sections)
        self._joiner.too_long = self._joiner.too_long or pairs > _MOST_COMPARED
        lead = 1 if has_title(theirs) else 0
        intro = [*theirs[0].blocks, *(theirs[1].blocks if lead else [])]
        titles = {sentence_key(part.title), theirs[lead].key}
        ours = {sentence_key(self.first.title), self.sections[self._lead].key}
        titled: Section | None = None
        self._joiner.apart = False
        self._joiner.apart = not titles & ours - {""} and self._is_another(part, theirs[lead + 1 :])
        self._seen.append(part)
        if titles & ours - {""}:
            self._joiner.merge_into(self.sections[self._lead], intro, matched=True)
        else:
            title = theirs[1].heading.title if lead and theirs[1].heading is not None else part.title
            titled = Section(heading_block(self._level, title, part.name))
            self._joiner.merge_into(titled, intro, matched=False)
            # A page that shares no heading stays together, under its title.
            apart = self._joiner.apart or not any(self._match(section, None, set()) for section in theirs[lead + 1 :])
            if titled.blocks or (apart and any(not self._is_known(section) for section in theirs[lead + 1 :])):
                self._place_end(titled)
            else:
                titled = None
        self._add_sections(theirs[lead + 1 :], titled)

    def _add_sections(self, theirs: list[Section], titled: Section | None) -> None:
        base = min((section.level for section in theirs), default=0)
        used: set[int] = set()
        trail: list[tuple[int, Section]] = []  # where the sections above the current one went
        cursor: Section | None = titled
        for section in theirs:
            while trail and trail[-1][0] >= section.level:
                trail.pop()
            above = trail[-1][1] if trail else None
            target = self._match(section, above, used)
            if target is None:
                level = (
                    above.level + 1 if above is not None else (titled.level + 1 if titled is not None else self._level)
                )
                level = min(level + (section.level - base if above is None else 0), _DEEPEST)
                heading = section.heading
                target = Section(heading_block(level, heading.title, heading.origin) if heading is not None else None)
                self._joiner.merge_into(target, section.blocks, matched=False)
                holds_nothing = not target.blocks and not any(
                    s.level > section.level for s in theirs[theirs.index(section) + 1 :][:1]
                )
                if holds_nothing and section.blocks:
                    continue  # all of it stands elsewhere
                self._place_after(target, cursor)
            else:
                used.add(id(target))
                self._joiner.merge_into(target, section.blocks, matched=True)
            trail.append((section.level, target))
            cursor = target

    def _is_another(self, part: Part, sections: Sequence[Section]) -> bool:
        """Whether a page of another title tells of another case: its values would be read as those of the first.

        It contradicts what is there, or has answers of a few words under a heading that is there too.
        """
        present = self._joiner.present()
        for section in sections:
            fresh = [s for block in section.blocks for s in block.sentences if s.key not in present]
            if self._match(section, None, set()) is not None and any(is_bare(s.text) for s in fresh):
                return True
        if self._joiner.too_long:
            return False
        theirs = [part.title, *(s.text for s in body_sentences(part.body) if s.key not in present)]
        for other in self._seen:
            for text in (other.title, *(s.text for s in body_sentences(other.body))):
                if any(likeness(text, mine) == "conflict" for mine in theirs):
                    return True
        return False

    def _count(self, sections: Sequence[Section]) -> int:
        return sum(len(block.sentences) for section in sections for block in section.blocks)

    def _is_known(self, section: Section) -> bool:
        present = self._joiner.present()
        return all(key in present for block in section.blocks for key in block.keys)

    def _match(self, section: Section, above: Section | None, used: set[int]) -> Section | None:
        if not section.key or self._joiner.apart:
            return None
        inside = self._under(above) if above is not None else self.sections[self._lead + 1 :]
        return next((s for s in inside if s.key == section.key and id(s) not in used), None)

    def _under(self, above: Section) -> list[Section]:
        position = self._index(above)
        found = []
        for section in self.sections[position + 1 :]:
            if section.level <= above.level:
                break
            found.append(section)
        return found

    def _index(self, section: Section) -> int:
        return next(i for i, other in enumerate(self.sections) if other is section)

    def _place_end(self, section: Section) -> None:
        last = next((i for i, s in enumerate(self.sections) if i > self._lead and s.key == SOURCES.casefold()), None)
        self.sections.insert(len(self.sections) if last is None else last, section)

    def _place_after(self, section: Section, cursor: Section | None) -> None:
        if cursor is None:
            self._place_end(section)
            return
        position = self._index(cursor) + 1
        while position < len(self.sections) and self.sections[position].level > section.level:
            position += 1
        if section.level > cursor.level:
            position = self._index(cursor) + 1 + len(self._under(cursor))
        self.sections.insert(position, section)

    # -- result -------------------------------------------------------------------------------------------------------

    def end_with(self, heading: str, lines: Sequence[str]) -> None:
        """Add list items to the last section of that heading, or make that section."""
        section = next((s for s in reversed(self.sections) if s.key == sentence_key(heading) and s.heading), None)
        if section is None:
            section = Section(heading_block(self._level, heading, ""))
            self.sections.append(section)
        host = next((b for b in reversed(section.blocks) if b.kind == "bullets"), None)
        if host is not None:
            swap_block(section, host, host.with_text("\n".join([host.text, *lines])))
        else:
            append_block(section, Block("bullets", "\n".join(lines)))

    def text(self) -> str:
        """Return the body as it is now."""
        blocks = [b for s in self.sections for b in ([s.heading] if s.heading is not None else []) + s.blocks]
        if blocks and blocks[0].origin != self.first.name:
            blocks[0] = replace(blocks[0], gap="")
        return write_blocks(blocks, self._tail if self._tail.startswith("\n") else "\n") if blocks else self._tail
