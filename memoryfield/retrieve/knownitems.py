"""Questions made from the field's own pages: a sentence of a page, which that page should answer (known-item search).

Nobody has to label anything. They say how vectors and words do in this field compared with each other, not how well a
search does: a person does not ask in the words of the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoryfield.errors import PageNotFound
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import SPECIAL_NAMES

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.format.pages import PageSource
    from memoryfield.format.snapshot import Snapshot

MOST_ITEMS = 64
_FEWEST_WORDS = 5
_MOST_WORDS = 14
_MOST_CHARACTERS = 400  # of a sentence in a script without spaces, or of something that is no sentence
_SENTENCE_END = re.compile(r"[\r\n]+|(?<=[.!?])\s+|(?<=[。！？])")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True)
class KnownItem:
    """A question and the page that it was made from.

    Attributes:
        name: The page.
        sha256: Of its content.
        question: Some words of one of its sentences.
    """

    name: str
    sha256: str
    question: str


def known_items(source: PageSource, snapshot: Snapshot, count: int = MOST_ITEMS) -> list[KnownItem]:
    """Return questions made from *count* pages, the same for the same field.

    The pages are those with the smallest hashes, and the hash chooses the sentence: when a page is edited or added, at
    most one of the questions changes.
    """
    entries = snapshot.entries
    ordinary = [name for name in entries if name.removesuffix(PAGE_SUFFIX) not in SPECIAL_NAMES]
    items = []
    for filename in sorted(ordinary, key=lambda name: (entries[name].sha256, name))[:count]:
        try:
            page = source.read(filename)
        except PageNotFound:
            continue
        question = sentence_of(page)
        if question:
            items.append(KnownItem(page.name, page.sha256, question))
    return items


def sentence_of(page: Page) -> str:
    """Return some words of one of the sentences of a page, chosen by its hash; of its title where there are none."""
    sentences = [part for part in _SENTENCE_END.split(page.body) if len(_WORD.findall(part[:4000])) >= _FEWEST_WORDS]
    if not sentences:
        sentences = [page.summary or page.title]
    chosen = sentences[int(page.sha256[:12], 16) % len(sentences)][:_MOST_CHARACTERS]
    return " ".join(_WORD.findall(chosen)[:_MOST_WORDS])
