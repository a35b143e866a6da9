"""Blocks of one page put into a section of another: paragraphs, lists, steps, tables, and sentences that are alike.

Steps, tables and code keep together, since a step that refers to "step 4" must find it. A sentence that differs in few
words or in a value stands directly after the one that it resembles. Which section that is, is decided in
``mergetext.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memoryfield.curate.blocks import Block, Sentence, list_items, table_parts
from memoryfield.curate.contradictions import Likeness, likeness
from memoryfield.curate.sections import (
    Resemblance,
    Section,
    append_block,
    as_item,
    first_cell,
    groups_of,
    is_bare,
    is_within,
    item_at,
    only_in,
    pair_of,
    put_after,
    swap_block,
    without_spans,
)
from memoryfield.curate.sentences import is_short, word_bag
from memoryfield.display import plain

_LONGEST_QUOTED = 160  # characters
_MOVABLE = ("paragraph", "bullets")


class Joiner:
    """Puts blocks into the sections of a text that grows.

    Args:
        sections: The sections of the text; changed.

    Attributes:
        resemblances: Pairs of sentences that are almost the same, or contradict each other.
        days: Date of each page, by its name.
        apart: The page that is taken in stays together under its title.
        too_long: The pages are too long to look for sentences that are almost the same.
    """

    def __init__(self, sections: list[Section]) -> None:
        self.sections = sections
        self.resemblances: list[Resemblance] = []
        self.days: dict[str, str] = {}
        self.apart = False
        self.too_long = False
        self._marks: dict[str, str] = {}  # what to put behind sentences that stay where they are, by key

    def present(self) -> Counter[str]:
        """Return the keys of all sentences and headings that are there."""
        keys = Counter(key for section in self.sections for block in section.blocks for key in block.keys)
        keys.update(section.key for section in self.sections if section.heading is not None)
        return keys

    def merge_into(self, target: Section, blocks: Sequence[Block], *, matched: bool) -> None:
        """Put blocks into a section.

        Args:
            target: The section.
            blocks: What stood under one heading of the other page.
            matched: The section has the heading that the blocks stood under.
        """
        present = self.present()
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
        if not all(key in present for key in keys) or not self._holds_nested(group):
            return False
        if any(block.kind == "numbers" for block in group):  # the same steps in another order are other steps
            return any(is_within(keys, [k for b in section.blocks for k in b.keys]) for section in self.sections)
        texts = [s.text for block in group for s in block.sentences]
        if self.apart and any(is_bare(text) for text in texts):
            return False  # the same answer to another question
        if len(group) == 1 and group[0].kind != "code" and not any(is_short(text) for text in texts):
            return True
        return any(set(keys) <= {k for b in section.blocks for k in b.keys} for section in self.sections)

    def _holds_nested(self, blocks: Sequence[Block]) -> bool:
        """Whether every nested list item stands under the same items already: a port is one of its host."""
        nested = {path for block in blocks for path in block.nested}
        return not nested or nested <= {path for s in self.sections for block in s.blocks for path in block.nested}

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
            if block.kind == "numbers" and target.blocks and target.blocks[-1].kind == "numbers":
                # Markdown would go on counting: steps of two pages would be one procedure.
                append_block(target, Block("paragraph", f"**[Steps of {self._dated(block.origin)}.]**"))
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
        if self.apart or (not alone and not (matched and section is target)):
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
        one, two = self._dated(first), self._dated(second)
        if quoted:
            said = plain(quoted.replace("*", "").replace("`", ""), _LONGEST_QUOTED).rstrip(".!。 ")
            return f"**[Conflict: {two}, says this; {one}, says: {said}.]**"
        return f"**[Conflict: {one}, says the former; {two}, the next.]**"

    def _dated(self, name: str) -> str:
        return f"{name}, {self.days[name]}" if self.days.get(name) else name

    # -- lists and tables ---------------------------------------------------------------------------------------------

    def _merge_bullets(self, target: Section, block: Block, present: Counter[str], matched: bool) -> None:
        fresh: list[str] = []
        for item in list_items(block):
            piece = Block("bullets", item, origin=block.origin)
            known = piece.keys and all(key in present for key in piece.keys) and self._holds_nested([piece])
            if known and (matched or not is_short(item)):
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
            known = [places[key] for key in keys if key in places]
            if 2 * len(known) < max(len(keys), 1) or known != sorted(known):
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
