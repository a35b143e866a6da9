"""One body from several: section by section, block by block, sentence by sentence.

The first body keeps its order and its characters. What another one adds goes under the heading of the same text; what
stands under no common heading gets a heading of its own, the page's title, so that a story stays a story. Steps,
tables and code keep together, since a step that refers to "step 4" must find it. A sentence that differs in few words
or in a value stands directly after the one that it resembles. Nothing here decides what is lost: ``account.py`` reads
the result and does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memoryfield.curate.blocks import (
    Block,
    Sentence,
    body_sentences,
    list_items,
    read_blocks,
    table_parts,
    write_blocks,
)
from memoryfield.curate.contradictions import Likeness, likeness
from memoryfield.curate.sections import (
    Part,
    Resemblance,
    Section,
    append_block,
    as_item,
    first_cell,
    groups_of,
    has_title,
    heading_block,
    is_bare,
    item_at,
    only_in,
    pair_of,
    put_after,
    sections_of,
    swap_block,
    without_spans,
)
from memoryfield.curate.sentences import is_short, sentence_key, word_bag
from memoryfield.display import plain

SOURCES = "Sources"
TOO_LONG = "the pages are too long to look for sentences that are almost the same"
_MOST_COMPARED = 1_000_000  # pairs of sentences
_LONGEST_QUOTED = 160  # characters
_MOVABLE = ("paragraph", "bullets")
_DEEPEST = 6


class Weaver:
    """A body that takes in others."""

    def __init__(self, first: Part) -> None:
        blocks, self._tail = read_blocks(first.body, first.name)
        self.sections = sections_of(blocks)
        self.first = first
        self.resemblances: list[Resemblance] = []
        self.too_long = False
        self._apart = False  # the page that is taken in stays together under its title
        self._seen = [first]
        self._marks: dict[str, str] = {}  # what to put behind sentences that stay where they are, by key
        self._days = {first.name: first.day}
        self._lead = 1 if has_title(self.sections) else 0
        below = [s.level for s in self.sections[self._lead + 1 :]]
        self._level = max(min(below, default=2), 2 if self._lead else 1)
        if not below:
            self._level = 2

    # -- taking in ----------------------------------------------------------------------------------------------------

    def add(self, part: Part) -> None:
        """Take in another body."""
        self._days[part.name] = part.day
        theirs = sections_of(read_blocks(part.body, part.name)[0])
        pairs = self._count(theirs) * self._count(self.sections)
        self.too_long = self.too_long or pairs > _MOST_COMPARED
        lead = 1 if has_title(theirs) else 0
        intro = [*theirs[0].blocks, *(theirs[1].blocks if lead else [])]
        titles = {sentence_key(part.title), theirs[lead].key}
        ours = {sentence_key(self.first.title), self.sections[self._lead].key}
        titled: Section | None = None
        self._apart = False
        self._apart = not titles & ours - {""} and self._is_another(part, theirs[lead + 1 :])
        self._seen.append(part)
        if titles & ours - {""}:
            self._merge_into(self.sections[self._lead], intro, matched=True)
        else:
            title = theirs[1].heading.title if lead and theirs[1].heading is not None else part.title
            titled = Section(heading_block(self._level, title, part.name))
            self._merge_into(titled, intro, matched=False)
            # A page that shares no heading stays together, under its title.
            apart = self._apart or not any(self._match(section, None, set()) for section in theirs[lead + 1 :])
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
                self._merge_into(target, section.blocks, matched=False)
                holds_nothing = not target.blocks and not any(
                    s.level > section.level for s in theirs[theirs.index(section) + 1 :][:1]
                )
                if holds_nothing and section.blocks:
                    continue  # all of it stands elsewhere
                self._place_after(target, cursor)
            else:
                used.add(id(target))
                self._merge_into(target, section.blocks, matched=True)
            trail.append((section.level, target))
            cursor = target

    def _is_another(self, part: Part, sections: Sequence[Section]) -> bool:
        """Whether a page of another title tells of another case: its values would be read as those of the first.

        It contradicts what is there, or has answers of a few words under a heading that is there too.
        """
        present = self._present()
        for section in sections:
            fresh = [s for block in section.blocks for s in block.sentences if s.key not in present]
            if self._match(section, None, set()) is not None and any(is_bare(s.text) for s in fresh):
                return True
        if self.too_long:
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
        present = self._present()
        return all(key in present for block in section.blocks for key in block.keys)

    def _match(self, section: Section, above: Section | None, used: set[int]) -> Section | None:
        if not section.key or self._apart:
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

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _merge_into(self, target: Section, blocks: Sequence[Block], *, matched: bool) -> None:
        present = self._present()
        for group in groups_of(blocks):
            keys = [key for block in group for key in block.keys]
            if not keys or self._stands(group, keys, present):
                continue
            if len(group) == 1:
                self._merge_block(target, group[0], present, matched)
            else:
                for block in group:
                    append_block(target, block)
            present.update(keys)

    def _stands(self, group: Sequence[Block], keys: Sequence[str], present: Counter[str]) -> bool:
        """Whether a group says nothing new: all of it is there, and what is short is there together."""
        if not all(key in present for key in keys):
            return False
        texts = [s.text for block in group for s in block.sentences]
        if self._apart and any(is_bare(text) for text in texts):
            return False  # the same answer to another question
        if len(group) == 1 and group[0].kind != "code" and not any(is_short(text) for text in texts):
            return True
        return any(set(keys) <= {k for b in section.blocks for k in b.keys} for section in self.sections)

    def _merge_block(self, target: Section, block: Block, present: Counter[str], matched: bool) -> None:
        if block.kind == "paragraph":
            self._merge_paragraph(target, block, present, matched)
        elif block.kind == "bullets":
            self._merge_bullets(target, block, present, matched)
        elif (block.kind == "numbers" and matched and self._merge_steps(target, block)) or (
            block.kind == "table" and matched and self._merge_table(target, block)
        ):
            pass
        elif block.kind != "rule":
            append_block(target, block)

    def _merge_paragraph(self, target: Section, block: Block, present: Counter[str], matched: bool) -> None:
        keep: list[Sentence] = []
        host = self._host(target, block) if matched else None
        before = ""
        for sentence in block.sentences:
            known = sentence.key in present
            alone = len(block.sentences) == 1
            if not known and self._resembles(sentence, block.origin, target, matched, alone):
                known = True
            elif not known and host is not None:
                self._weave(target, host, sentence, before)
                known = True
            elif known and is_short(sentence.text) and host is None:
                known = False
            if not known:
                keep.append(sentence)
            before = sentence.key
        if keep:
            text = block.text
            for s in reversed(block.sentences):
                if s not in keep:
                    text = without_spans(text, [(s.start, s.end)])
                elif s.key in self._marks:
                    text = put_after(text, s.end, self._marks.pop(s.key))
            append_block(target, block.with_text(text))

    def _host(self, target: Section, block: Block) -> int | None:
        """Return the position of the paragraph of a section that says at least half of the same."""
        own = {s.key for s in block.sentences if not is_short(s.text)}
        best: tuple[int, int] | None = None
        for position, other in enumerate(target.blocks):
            if other.kind == "paragraph" and own:
                theirs = {s.key for s in other.sentences if not is_short(s.text)}
                shared = len(own & theirs)
                if shared and 2 * shared >= min(len(own), len(theirs)) and (best is None or shared > best[0]):
                    best = (shared, position)
        return best[1] if best is not None else None

    def _weave(self, target: Section, position: int, sentence: Sentence, before: str) -> None:
        host = target.blocks[position]
        anchor = next((s for s in host.sentences if s.key == before), None)
        if anchor is None:
            text = (
                sentence.text + " " + host.text if not before else put_after(host.text, len(host.text), sentence.text)
            )
        else:
            text = put_after(host.text, anchor.end, sentence.text)
        swap_block(target, host, host.with_text(text))

    def _resembles(self, sentence: Sentence, origin: str, target: Section, matched: bool, alone: bool) -> bool:
        """Put a sentence behind the one that it resembles, where nothing is torn apart; say whether that was done."""
        if sentence.text.rstrip("*_ ").endswith(("?", ":", "？", "：")):
            return False  # what follows belongs to it
        found = self._counterpart(sentence, origin, target if matched else None)
        if found is None:
            return False
        section, block, other, kind = found
        if self._apart or (not alone and not (matched and section is target)):
            marker = self._marker(kind, block.origin, origin, other.text)
            self.resemblances.append(pair_of(kind, other, block.origin, sentence, origin, marker))
            if marker:
                self._marks[sentence.key] = marker
            return False
        marker = self._marker(kind, block.origin, origin)
        if block.kind == "bullets":
            items = list_items(block)
            place = item_at(items, other.start)
            indent = items[place][: len(items[place]) - len(items[place].lstrip())]
            items[place + 1 : place + 1] = [f"{indent}- {text}" for text in (marker, sentence.text) if text]
            text = "\n".join(items)
        else:
            text = put_after(block.text, other.end, " ".join(part for part in (marker, sentence.text) if part))
        swap_block(section, block, block.with_text(text))
        self.resemblances.append(pair_of(kind, other, block.origin, sentence, origin, marker))
        return True

    def _counterpart(
        self, sentence: Sentence, origin: str, target: Section | None
    ) -> tuple[Section, Block, Sentence, Likeness] | None:
        bag = word_bag(sentence.text)
        if self.too_long:
            return None
        best: tuple[float, Section, Block, Sentence, Likeness] | None = None
        for section in self.sections:
            for block in section.blocks:
                if block.kind not in _MOVABLE or block.origin == origin:
                    continue
                for other in block.sentences:
                    theirs = word_bag(other.text)
                    shared = len(bag & theirs) / max(len(bag | theirs), 1)
                    if shared < 0.3 or (best is not None and shared <= best[0]):
                        continue
                    kind = likeness(other.text, sentence.text, same_place=section is target)
                    if kind is not None:
                        best = (shared, section, block, other, kind)
        return best[1:] if best is not None else None

    def _marker(self, kind: Likeness, first: str, second: str, quoted: str = "") -> str:
        if kind != "conflict":
            return ""
        one, two = (f"{name}, {self._days[name]}" if self._days.get(name) else name for name in (first, second))
        if quoted:
            said = plain(quoted.replace("*", "").replace("`", ""), _LONGEST_QUOTED).rstrip(".!。 ")
            return f"**[Conflict: {two}, says this; {one}, says: {said}.]**"
        return f"**[Conflict: {one}, says the former; {two}, the next.]**"

    # -- lists and tables ---------------------------------------------------------------------------------------------

    def _merge_bullets(self, target: Section, block: Block, present: Counter[str], matched: bool) -> None:
        fresh: list[str] = []
        for item in list_items(block):
            piece = Block("bullets", item, origin=block.origin)
            if piece.keys and all(key in present for key in piece.keys) and (matched or not is_short(item)):
                continue
            single = piece.sentences[0] if len(piece.sentences) == 1 else None
            if single is not None and self._resembles(single, block.origin, target, matched, True):
                continue
            if single is not None and single.key in self._marks:
                item += f"\n  - {self._marks.pop(single.key)}"
            fresh.append(item)
        if not fresh:
            return
        host = next((b for b in reversed(target.blocks) if b.kind == "bullets"), None) if matched else None
        if host is not None:
            swap_block(
                target, host, host.with_text(host.text + "\n" + "\n".join(as_item(item, host) for item in fresh))
            )
        else:
            append_block(target, block.with_text("\n".join(fresh)))

    def _merge_steps(self, target: Section, block: Block) -> bool:
        """Put the steps that are new under the step they follow, where two lists are mostly the same."""
        mine = list_items(block)
        keys = [Block("numbers", item).keys for item in mine]
        for host in target.blocks:
            if host.kind != "numbers":
                continue
            steps = list_items(host)
            places = {Block("numbers", step).keys: i for i, step in enumerate(steps)}
            if 2 * sum(key in places for key in keys) < max(len(keys), 1):
                continue
            last = 0
            for item, key in zip(mine, keys, strict=True):
                if key in places:
                    last = places[key]
                    continue
                text = item.lstrip().split(None, 1)[-1]
                alike = next((i for i, step in enumerate(steps) if likeness(step, item) is not None), last)
                kind = likeness(steps[alike], item)
                marker = self._marker(kind, host.origin, block.origin) if kind is not None else ""
                if kind is not None:
                    pair = Resemblance(kind, steps[alike].strip(), host.origin, text, block.origin, marker)
                    one, two = Block("numbers", steps[alike]).keys, key
                    self.resemblances.append(replace(pair, first_keys=only_in(one, two), second_keys=only_in(two, one)))
                steps[alike] += "".join(f"\n   - {line}" for line in (marker, text) if line)
            swap_block(target, host, host.with_text("\n".join(steps)))
            return True
        return False

    def _merge_table(self, target: Section, block: Block) -> bool:
        head, rows = table_parts(block)
        for host in target.blocks:
            if host.kind != "table" or host.keys[:1] != block.keys[:1]:
                continue
            own, there = table_parts(host)
            known = set(host.keys)
            for row in rows:
                read = Block("table", f"{head}\n{row}").sentences[1:]
                if not read or read[0].key in known:
                    continue
                place = len(there) - 1
                for i, other in enumerate(Block("table", f"{own}\n{line}").sentences[1:] for line in there):
                    if other and first_cell(other[0]) == first_cell(read[0]):
                        marker = (
                            "| " + self._marker("conflict", host.origin, block.origin) + " |" * row.count(" | ") + " |"
                        )
                        self.resemblances.append(
                            pair_of("conflict", other[0], host.origin, read[0], block.origin, marker)
                        )
                        row, place = f"{marker}\n{row}", i
                        break
                there[place + 1 : place + 1] = row.split("\n")
            swap_block(target, host, host.with_text("\n".join([own, *there])))
            return True
        return False

    # -- result -------------------------------------------------------------------------------------------------------

    def _present(self) -> Counter[str]:
        keys = Counter(key for section in self.sections for block in section.blocks for key in block.keys)
        keys.update(section.key for section in self.sections if section.heading is not None)
        return keys

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
