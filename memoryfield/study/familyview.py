"""Families as a report shows them: every member, and what each says that the one in the middle does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memoryfield.curate.families import Families
from memoryfield.curate.family import Family
from memoryfield.curate.sentences import sentence_key, split_sentences
from memoryfield.display import Table
from memoryfield.format.markdown import lines
from memoryfield.format.page import Page

_SHOWN = 20  # families with their members
_MEDOID = "(the others are compared with this page)"
_MEMBERS = 12  # of one family
_SENTENCES = 3  # that one member alone says
_WIDEST = 160  # characters of one of them


@dataclass(frozen=True, repr=False)
class FamilyView:
    """The families of a field, the first of them with their members.

    Attributes:
        families: What was found.
        read: Reads a page by its name.
    """

    families: Families
    read: Callable[[str], Page]

    def tables(self) -> Iterator[Table]:
        """Yield the overview, then one table a family."""
        yield self.families.table()
        for family in self.families[:_SHOWN]:
            yield self._one(family)

    def _one(self, family: Family) -> Table:
        pages = {name: self.read(name) for name in (family.medoid, *family.members[:_MEMBERS])}
        said = {sentence_key(text) for text in sentences(pages[family.medoid])}
        order = sorted(family.members[:_MEMBERS], key=lambda name: (name != family.medoid, name))
        rows = [
            (name, pages[name].title, _MEDOID if name == family.medoid else _differs(pages[name], said))
            for name in order
        ]
        notes = [f"why: {family.why}"]
        notes += [f"against {p.first} and {p.second}: {'; '.join(map(str, p.opposing))}" for p in family.cautions[:3]]
        doubt = "" if family.automatic else "; to look at before a merge"
        return Table(
            f"{family.medoid}: {len(family)} pages, {family.probability:.0%} likely the same{doubt}",
            ("page", "title", f"what {family.medoid[:40]} does not say"),
            rows,
            notes,
            widths={f"what {family.medoid[:40]} does not say": 400},
            more=len(family) - len(order),
        )

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())


def sentences(page: Page) -> Iterator[str]:
    """Yield the sentences of a page's body; a line of code is one."""
    paragraph: list[str] = []
    for line in (*lines(page.body), None):
        if line is not None and not line.in_code and line.text.strip():
            paragraph.append(line.text)
            continue
        text = "\n".join(paragraph)
        yield from (text[start:end] for start, end in split_sentences(text))
        paragraph = []
        if line is not None and line.text.strip():
            yield line.text


def _differs(page: Page, said: set[str]) -> str:
    own: Sequence[str] = [text for text in sentences(page) if sentence_key(text) not in said]
    if not own:
        return "nothing more"
    shown = [" ".join(text.split()) for text in own[:_SENTENCES]]
    cut = [text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…" for text in shown]
    return " / ".join(cut) + (f" / and {len(own) - _SENTENCES} more" if len(own) > _SENTENCES else "")
