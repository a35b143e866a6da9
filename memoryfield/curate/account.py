"""The account of a merge: where every sentence of every page is now.

It is worked out from the pages and from the final text alone. How the text was made does not matter, so a text that a
curator typed or a program rewrote is judged in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from memoryfield.curate.blocks import Sentence, body_sentences
from memoryfield.curate.contradictions import likeness
from memoryfield.curate.sentences import sentence_key, split_sentences, word_bag
from memoryfield.display import Table, counted

if TYPE_CHECKING:
    import pandas

State = Literal["kept", "equal", "heading", "dropped", "lost"]
_FRONTMATTER = "frontmatter"
_MOST_COMPARED = 4_000_000  # pairs of sentences; above that nothing is said about what a lost sentence resembles


@dataclass(frozen=True)
class Source:
    """A text whose sentences are counted.

    Attributes:
        name: Name of the page.
        body: Its body, with LF line ends.
        title: Title of the frontmatter, or empty.
        summary: Summary of the frontmatter, or empty.
    """

    name: str
    body: str
    title: str = ""
    summary: str = ""

    def sentences(self) -> list[Sentence]:
        """Return title, summary and every sentence of the body."""
        found = []
        for text in (self.title, self.summary):
            for start, end in split_sentences(text):
                found.append(
                    Sentence(text[start:end], sentence_key(text[start:end]), start, end, "heading", _FRONTMATTER)
                )
        return found + body_sentences(self.body)


@dataclass(frozen=True)
class Entry:
    """What became of one sentence.

    Attributes:
        id: Page and number, such as ``gland-packing#7``; stable as long as the pages are the same.
        page: Page that it comes from.
        kind: What it stands in: ``paragraph``, ``table``, ``frontmatter`` and so on.
        text: The sentence.
        state: ``kept`` (it is in the result), ``equal`` (an equal one is, that of *equal_to*), ``heading`` (a heading
            that is not needed, since everything under it stands elsewhere), ``dropped`` (by the curator), or ``lost``.
        where: Heading in the result under which it stands, ``frontmatter``, or empty.
        equal_to: Page whose equal sentence is in the result.
        near: A sentence of the result that is almost the same, for one that is not there.
        key: What equal sentences share.
    """

    id: str
    page: str
    kind: str
    text: str
    state: State
    where: str = ""
    equal_to: str = ""
    near: str = ""
    key: str = ""


@dataclass(frozen=True)
class Account(Sequence[Entry]):
    """Every sentence of every page and what became of it, in the order of the pages.

    Attributes:
        entries: The sentences.
    """

    entries: tuple[Entry, ...]

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @property
    def complete(self) -> bool:
        """Whether no sentence is missing that nobody has decided to drop."""
        return not self.lost

    @property
    def lost(self) -> tuple[Entry, ...]:
        """Sentences that are not in the result and that nobody dropped."""
        return tuple(entry for entry in self.entries if entry.state == "lost")

    @property
    def dropped(self) -> tuple[Entry, ...]:
        """Sentences that the curator dropped."""
        return tuple(entry for entry in self.entries if entry.state == "dropped")

    def counts(self) -> dict[str, int]:
        """Return how many sentences are in each state."""
        found = Counter(entry.state for entry in self.entries)
        return {state: found[state] for state in ("kept", "equal", "heading", "dropped", "lost") if found[state]}

    def to_dict(self) -> dict[str, Any]:
        """Return the account as values that JSON can hold."""
        return {
            "complete": self.complete,
            "counts": self.counts(),
            "entries": [asdict(entry) for entry in self.entries],
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a sentence: ``id, page, kind, state, where, equal_to, near, text``."""
        import pandas

        columns = ["id", "page", "kind", "state", "where", "equal_to", "near", "text"]
        return pandas.DataFrame([[getattr(e, c) for c in columns] for e in self.entries], columns=columns)

    def __str__(self) -> str:
        return ", ".join(f"{count} {state}" for state, count in self.counts().items())

    def _table(self) -> Table:
        rows = [(e.id, e.state, e.equal_to or e.where, e.text, e.near) for e in self.entries]
        missing = f"{counted(len(self.lost), 'sentence is', 'sentences are')} missing"
        verdict = "nothing is missing" if self.complete else missing
        notes = ["kept: in the result; equal: an equal sentence is; heading: all that stood under it stands elsewhere"]
        heading = f"{counted(len(self.entries), 'sentence')}: {self or 'none'}; {verdict}"
        return Table(heading, ("id", "state", "where", "sentence", "resembles"), rows, notes, widths={"sentence": 100})

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def take_account(
    sources: Sequence[Source], results: Iterable[Source], *, dropped: Iterable[str] = (), decided: bool = False
) -> Account:
    """Find every sentence of the sources in the results.

    Args:
        sources: The pages as they were, the surviving one first.
        results: The pages as they will be.
        dropped: Keys of sentences that the curator dropped.
        decided: The text is the curator's own: whatever is missing was dropped.
    """
    present: dict[str, str] = {}
    texts: list[str] = []
    for result in results:
        for sentence in result.sentences():
            present.setdefault(sentence.key, sentence.heading)
            texts.append(sentence.text)
    gone = frozenset(dropped)
    owners: dict[str, str] = {}
    entries: list[Entry] = []
    for source in sources:
        found = source.sentences()
        hints = len(found) * len(texts) <= _MOST_COMPARED
        for number, s in enumerate(found, start=1):
            kind = _FRONTMATTER if s.heading == _FRONTMATTER else s.kind
            equal_to = near = ""
            state: State
            if s.key in present:
                owner = owners.setdefault(s.key, source.name)
                state = "kept" if owner == source.name else "equal"
                equal_to = "" if owner == source.name else owner
            elif kind == "heading" and _is_hollow(found, number - 1, present, gone):
                state = "heading"
            else:
                state = "dropped" if decided or s.key in gone else "lost"
                near = _nearest(s.text, texts) if hints else ""
            where = present.get(s.key, "")
            entries.append(
                Entry(f"{source.name}#{number}", source.name, kind, s.text, state, where, equal_to, near, s.key)
            )
    return Account(tuple(entries))


def _is_hollow(found: Sequence[Sentence], position: int, present: Mapping[str, str], gone: frozenset[str]) -> bool:
    """Whether everything from a heading to the next one stands in the result, and there is something."""
    seen = False
    for sentence in found[position + 1 :]:
        if sentence.kind == "heading":
            break
        if sentence.key not in present and sentence.key not in gone:
            return False
        seen = True
    return seen


def _nearest(text: str, texts: Sequence[str]) -> str:
    bag = word_bag(text)
    best, found = 0.4, ""
    for other in texts:
        theirs = word_bag(other)
        shared = len(bag & theirs) / max(len(bag | theirs), 1)
        if shared > best and (shared > 0.6 or likeness(text, other) is not None):
            best, found = shared, other
    return found
