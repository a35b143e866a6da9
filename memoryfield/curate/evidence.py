"""What speaks for two pages being one, and what against: each kind of evidence for itself.

For: close vectors of the contents and of the titles, shared words and runs of them, shared rare lines, shared numbers,
equal or contained text, an equal title or uuid, a name that a sync tool gave to a copy. Against: one form filled in
with other values, other numbers, the opposite said in the same words, long pages that share little. What the linkage
uses is in both; runs, forms of bodies and opposites are looked at for single pairs alone: as a part of the linkage they
made no field better. Whole tiles are worked out at once for the linkage, single pairs with words for the reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memoryfield.curate.forms import body_forms, opposed, other_values, statements, title_form
from memoryfield.curate.pairs import nearest_pairs
from memoryfield.curate.runs import Runs
from memoryfield.display import counted
from memoryfield.format.page import as_text
from memoryfield.index.recipes import CONTENT, recipe_text

if TYPE_CHECKING:
    from memoryfield.format.page import Page

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
_Forms = Mapping[tuple[str, ...], tuple[str, ...]]
_Statements = Mapping[frozenset[str], tuple[bool, frozenset[str], str]]
_Sparse = Any  # a scipy CSR matrix; scipy is imported where it is needed

_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d(?:[\d.,:/-]*\d)?")
_WORD = re.compile(r"\w+")
_COPY = re.compile(r"(.+?)-(?:sync-conflict(?:-.*)?|conflict(?:ed|s)?(?:-copy)?(?:-.*)?|copy(?:-\d+)?)")
_FEWEST_SAME = 3  # words of equal text that mean something
_FEWEST_CONTAINED = 12
_SHORTEST_LINE = 4
_FEW_WORDS = (70, 140)  # up to the first a page is short; from the second it is expected to share words with its copy
_EXPECTED = 1.1  # cosine of the contents and of the words, together
_FORM = 0.5  # part of the lines of the smaller page that are lines of the other with other values
_LARGEST_GROUP = 50  # pages of one title that are listed each with each; of a larger group each with its first

SAME_TEXT = "same text"
CONTAINED = "contained"
SAME_TITLE = "same title"
SAME_UUID = "same uuid"
CONFLICT_COPY = "conflict copy"
SHARED_LINES = "shared lines"
SHARED_WORDING = "shared wording"
SHARED_NUMBERS = "shared numbers"
NEAR_VECTORS = "near vectors"
OTHER_VALUES = "same form, other values"
OTHER_NUMBERS = "other numbers"
OTHER_WORD = "one word differs"
LITTLE_SHARED = "little shared"
OPPOSITE = "one says the opposite"
SHARED_RUNS = "shared runs of words"


@dataclass(frozen=True, slots=True)
class Reason:
    """One kind of evidence on a pair, with why in words.

    Attributes:
        kind: Which kind, such as ``same title``.
        text: What was seen.
        against: Whether it speaks against the two pages being one.
    """

    kind: str
    text: str
    against: bool = False

    def __str__(self) -> str:
        return f"{self.kind} ({self.text})" if self.text else self.kind


class _SharedItems:
    """Which items two pages share, weighed by their rarity in the field."""

    def __init__(self, sets: Sequence[Iterable[str]]) -> None:
        from scipy.sparse import csr_matrix

        lists = [sorted(set(items)) for items in sets]
        vocabulary: dict[str, int] = {}
        for items in lists:
            for item in items:
                vocabulary.setdefault(item, len(vocabulary))
        rows = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
        columns = np.array([vocabulary[item] for items in lists for item in items], dtype=np.int64)
        shape = (len(lists), max(len(vocabulary), 1))
        self.has: _Sparse = csr_matrix((np.ones(len(columns)), (rows, columns)), shape=shape)
        self.sizes: FloatArray = np.array([len(items) for items in lists], dtype=np.float64)
        used = np.maximum(np.asarray(self.has.sum(axis=0)).ravel(), 1)
        rarity = np.log(max(len(lists), 1) / used)
        self._weighed: _Sparse = self.has.multiply(rarity[None, :]).tocsr()
        self._own: FloatArray = np.asarray(self.has @ rarity).ravel()

    def tile(self, rows: IndexArray, columns: IndexArray, over: str) -> FloatArray:
        """Return what is shared, over the union (``union``) or over the smaller page (``smaller``)."""
        both = (self._weighed[rows] @ self.has[columns].T).toarray()
        first, second = self._own[rows][:, None], self._own[columns][None, :]
        whole = first + second - both if over == "union" else np.minimum(first, second)
        return np.asarray(np.divide(both, whole, out=np.zeros_like(both), where=whole > 1e-9))

    def of_pairs(self, a: IndexArray, b: IndexArray, over: str) -> FloatArray:
        """Return the same for the pairs ``(a[i], b[i])``."""
        both = _row_sums(self._weighed[a], self.has[b])
        whole = self._own[a] + self._own[b] - both if over == "union" else np.minimum(self._own[a], self._own[b])
        return np.asarray(np.divide(both, whole, out=np.zeros_like(both), where=whole > 1e-9))

    def counts_of_pairs(self, a: IndexArray, b: IndexArray) -> FloatArray:
        """Return how many items each of the pairs ``(a[i], b[i])`` shares."""
        return _row_sums(self.has[a], self.has[b])

    def count(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Return how many items are shared."""
        return np.asarray((self.has[rows] @ self.has[columns].T).toarray(), dtype=np.float64)


def _row_sums(one: _Sparse, other: _Sparse) -> FloatArray:
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()


def _tfidf(texts: Sequence[str]) -> _Sparse:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        found: _Sparse = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit_transform(texts)
        return found
    except ValueError:  # not one word
        return csr_matrix((len(texts), 1))


def _groups(keys: Sequence[object]) -> IndexArray:
    """Return a number for each key, equal for equal ones and -1 for None."""
    seen: dict[object, int] = {}
    return np.array([-1 if key is None else seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


class Evidence:
    """All that is known about the pages of a field, two by two.

    Args:
        pages: The pages, in the order in which they are to be numbered.
        content: ``(n_pages, dimensions)``, unit rows: vectors of the contents.
        head: ``(n_pages, dimensions)``, unit rows: vectors of title and summary.
    """

    def __init__(
        self, pages: Sequence[Page], content: npt.NDArray[np.floating], head: npt.NDArray[np.floating]
    ) -> None:
        self.names = tuple(page.name for page in pages)
        self.titles = tuple(page.title for page in pages)
        self.uuids = tuple(page.uuid for page in pages)
        self._content = np.asarray(content, dtype=np.float64)
        self._head = np.asarray(head, dtype=np.float64)
        contents = [recipe_text(CONTENT, page) for page in pages]
        words = [_WORD.findall(text.lower()) for text in contents]
        self._running = [" ".join(found) for found in words]
        self._lengths = np.array([len(found) for found in words])
        self._words = _SharedItems(words)
        self._wording = _tfidf(contents)
        self._title_words = _tfidf(self.titles)
        self._lines = _SharedItems([_lines(page.body) for page in pages])
        self._numbers = _SharedItems([_NUMBER.findall(f"{page.title} {page.body}") for page in pages])
        self._forms = [title_form(title) for title in self.titles]
        usable = [form.form if form.values and len(form.form) > 1 else None for form in self._forms]
        self._form = _groups(usable)
        self._value = _groups([form.values for form in self._forms])
        self._slot = _SharedItems([[repr(key) for key in form.slots] for form in self._forms])
        self._filled = _SharedItems([[repr(item) for item in form.slots.items()] for form in self._forms])
        self._text = _groups(
            [text if n >= _FEWEST_SAME else None for text, n in zip(self._running, self._lengths, strict=True)]
        )
        self._bodies = [page.body for page in pages]
        self._characters = Runs(self._running, by_word=False)
        self._runs = Runs(self._running, by_word=True)
        self._apart: dict[int, tuple[_Forms, _Statements]] = {}
        self._listed = frozenset(self._certain())

    def __len__(self) -> int:
        return len(self.names)

    def tile(self, rows: IndexArray, columns: IndexArray) -> dict[str, FloatArray]:
        """Return every kind of evidence between *rows* and *columns*, each ``(rows, columns)``."""
        fewer = np.minimum(self._numbers.sizes[rows][:, None], self._numbers.sizes[columns][None, :])
        # numbers speak for (up to .7) or against (down to -.3), the surer the more there are on both sides
        numbers = fewer / (fewer + 3.0) * (self._numbers.tile(rows, columns, "smaller") - 0.3)
        same_form = (self._form[rows][:, None] == self._form[columns][None, :]) & (self._form[rows] >= 0)[:, None]
        same_text = (self._text[rows][:, None] == self._text[columns][None, :]) & (self._text[rows] >= 0)[:, None]
        found = {
            "content": self._content[rows] @ self._content[columns].T,
            "head": self._head[rows] @ self._head[columns].T,
            "words": (self._wording[rows] @ self._wording[columns].T).toarray(),
            "jaccard": self._words.tile(rows, columns, "union"),
            "title": (self._title_words[rows] @ self._title_words[columns].T).toarray(),
            "lines": self._lines.tile(rows, columns, "smaller"),
            "numbers": numbers,
            "template": (same_form & (self._value[rows][:, None] != self._value[columns][None, :])).astype(np.float64),
            "slot": (self._slot.count(rows, columns) > self._filled.count(rows, columns)).astype(np.float64),
            "same": same_text.astype(np.float64),
        }
        lengths = np.minimum(self._lengths[rows][:, None], self._lengths[columns][None, :])
        found["unlike"] = _unlike(found["content"], found["words"], lengths)
        return found

    @property
    def certain_candidates(self) -> frozenset[tuple[int, int]]:
        """Pairs that are worth a look whatever their vectors say: same title, uuid or text, copies by name."""
        return self._listed

    def _certain(self) -> Iterable[tuple[int, int]]:
        yield from _within(_groups([_folded(title) for title in self.titles]))
        yield from _within(_groups([None if uuid is None else uuid.lower() for uuid in self.uuids]))
        yield from _within(self._text)
        numbers = {name: number for number, name in enumerate(self.names)}
        for name, number in numbers.items():
            original = copied_from(name)
            if original in numbers:
                a, b = sorted((number, numbers[original]))
                yield a, b

    def content_cosines(self, numbers: IndexArray) -> FloatArray:
        """Return the cosines of the contents of some pages, each with each."""
        return np.asarray(self._content[numbers] @ self._content[numbers].T)

    def linked(self, a: IndexArray, b: IndexArray) -> dict[str, FloatArray]:
        """Return what :meth:`tile` holds on the pairs ``(a[i], b[i])``."""
        fewer = np.minimum(self._numbers.sizes[a], self._numbers.sizes[b])
        same_form = (self._form[a] == self._form[b]) & (self._form[a] >= 0)
        found = {
            "content": np.einsum("ij,ij->i", self._content[a], self._content[b]),
            "head": np.einsum("ij,ij->i", self._head[a], self._head[b]),
            "words": _row_sums(self._wording[a], self._wording[b]),
            "jaccard": self._words.of_pairs(a, b, "union"),
            "title": _row_sums(self._title_words[a], self._title_words[b]),
            "lines": self._lines.of_pairs(a, b, "smaller"),
            "numbers": fewer / (fewer + 3.0) * (self._numbers.of_pairs(a, b, "smaller") - 0.3),
            "template": (same_form & (self._value[a] != self._value[b])).astype(np.float64),
            "slot": (self._slot.counts_of_pairs(a, b) > self._filled.counts_of_pairs(a, b)).astype(np.float64),
            "same": ((self._text[a] == self._text[b]) & (self._text[a] >= 0)).astype(np.float64),
        }
        found["unlike"] = _unlike(found["content"], found["words"], np.minimum(self._lengths[a], self._lengths[b]))
        return found

    def of_pairs(self, a: IndexArray, b: IndexArray) -> dict[str, FloatArray]:
        """Return every kind of evidence on the pairs ``(a[i], b[i])``, and how many lines and numbers they share."""
        return {
            **self.linked(a, b),
            "lines shared": self._lines.counts_of_pairs(a, b),
            "numbers shared": self._numbers.counts_of_pairs(a, b),
            "characters": self._characters.of_pairs(a, b),
            "runs": self._runs.of_pairs(a, b),
            "body form": np.array([other_values(*self._closer(i, j)[0])[0] for i, j in _pairs(a, b)]),
            "opposite": np.array([float(opposed(*self._closer(i, j)[1]) is not None) for i, j in _pairs(a, b)]),
        }

    def candidates(self, most: int) -> tuple[IndexArray, IndexArray]:
        """Return pairs that may be of one family, in time and memory far below those of all pairs.

        Those are each page with the *most* nearest by contents and by titles, pages that share runs of words, and
        those of :attr:`certain_candidates`.
        """
        found = {*self._listed, *self._runs.near()}
        parts = [np.array(sorted(found), dtype=np.int64).reshape(-1, 2)]
        parts += [nearest_pairs(rows, most) for rows in (self._content, self._head)]
        pairs = np.unique(np.concatenate(parts), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def _closer(self, a: int, b: int) -> tuple[tuple[_Forms, _Forms], tuple[_Statements, _Statements]]:
        """Return the forms and the statements of two bodies; only those of pages that are looked at are taken apart."""
        for number in (a, b):
            if number not in self._apart:
                self._apart[number] = body_forms(self._bodies[number]), statements(self._bodies[number])
        (one, ours), (other, theirs) = self._apart[a], self._apart[b]
        return (one, other), (ours, theirs)

    def reasons(self, a: int, b: int, values: dict[str, float], usual: float) -> tuple[Reason, ...]:
        """Say in words what speaks for the pair and what against.

        Args:
            a: One page.
            b: The other.
            values: What :meth:`of_pairs` gave for the pair.
            usual: Cosine that the neighbours of the two pages usually have with them.
        """
        return (*self._for(a, b, values, usual), *self._against(a, b, values))

    def _for(self, a: int, b: int, values: dict[str, float], usual: float) -> Iterable[Reason]:
        if values["same"]:
            yield Reason(SAME_TEXT, "but for case, spaces and punctuation")
        elif inner := self._inner(a, b):
            yield Reason(
                CONTAINED,
                f"all {self._lengths[inner[0]]} words of {self.names[inner[0]]} stand in {self.names[inner[1]]}",
            )
        if _folded(self.titles[a]) == _folded(self.titles[b]):
            yield Reason(SAME_TITLE, self.titles[a])
        if self.uuids[a] is not None and self.uuids[a] == self.uuids[b]:
            yield Reason(SAME_UUID, str(self.uuids[a]))
        for copy, original in ((a, b), (b, a)):
            if copied_from(self.names[copy]) == self.names[original]:
                yield Reason(CONFLICT_COPY, f"{self.names[copy]} is named as a copy of {self.names[original]}")
        if values["lines"] >= 0.3 and not values["same"]:
            found = f"{values['lines shared']:.0f} {'line' if values['lines shared'] == 1 else 'lines'}"
            yield Reason(SHARED_LINES, f"{found}, {values['lines']:.0%} of the smaller page by weight")
        if values["words"] >= 0.4 or values["jaccard"] >= 0.3:
            yield Reason(SHARED_WORDING, f"{values['jaccard']:.0%} of their words by weight")
        if (values["runs"] >= 0.3 or values["characters"] >= 0.4) and not values["same"]:
            share = f"{values['runs']:.0%} of their runs of three words, {values['characters']:.0%} of five characters"
            yield Reason(SHARED_RUNS, share)
        if values["numbers"] >= 0.15:
            yield Reason(SHARED_NUMBERS, f"{values['numbers shared']:.0f} of them")
        if values["content"] - usual >= 0.15:
            yield Reason(NEAR_VECTORS, f"cosine {values['content']:.2f}, their neighbours {usual:.2f}")

    def _against(self, a: int, b: int, values: dict[str, float]) -> Iterable[Reason]:
        if values["template"]:
            first, second = (", ".join(self._forms[i].values) for i in (a, b))
            yield Reason(OTHER_VALUES, f"{first} / {second}", against=True)
        elif values["body form"] >= _FORM:
            yield Reason(OTHER_VALUES, other_values(*self._closer(a, b)[0])[1], against=True)
        if values["slot"] and not values["template"]:
            one, other = self._forms[a].slots, self._forms[b].slots
            key = min(key for key in one if key in other and one[key] != other[key])
            yield Reason(OTHER_WORD, f"{one[key].strip()} / {other[key].strip()}", against=True)
        if values["numbers"] <= -0.1:
            yield Reason(OTHER_NUMBERS, "few or none of their numbers are the same", against=True)
        if said := opposed(*self._closer(a, b)[1]):
            yield Reason(OPPOSITE, f"{said[0]} / {said[1]}", against=True)
        if values["unlike"] <= -0.1:
            shorter = counted(min(self._lengths[a], self._lengths[b]), "word")
            yield Reason(LITTLE_SHARED, f"{shorter} and more each", against=True)

    def _inner(self, a: int, b: int) -> tuple[int, int] | None:
        """Return the page whose text stands in the other, and that other."""
        small, large = sorted((a, b), key=lambda i: (self._lengths[i], i))
        if self._lengths[small] < _FEWEST_CONTAINED:
            return None
        return (small, large) if f" {self._running[small]} " in f" {self._running[large]} " else None


def head_text(page: Page) -> str:
    """Return the text of the title vectors: title and summary, one line each."""
    return f"{page.title}\n{as_text(page.frontmatter.get('summary'))}"


def _lines(body: str) -> list[str]:
    return [line.strip().lower() for line in body.splitlines() if len(line.strip()) >= _SHORTEST_LINE]


def _unlike(content: FloatArray, words: FloatArray, lengths: IndexArray) -> FloatArray:
    """Return how much less than expected two pages share, 0 or below; nothing is expected of short ones.

    A line of ten words can be said again in ten others. Who says a whole page again repeats words and subject, however
    far apart the other neighbours are.
    """
    short, long = _FEW_WORDS
    part = np.clip(np.log(np.maximum(lengths, 1) / short) / np.log(long / short), 0, 1)
    return np.asarray(np.minimum(content + words - _EXPECTED, 0) * part, dtype=np.float64)


def _pairs(a: IndexArray, b: IndexArray) -> Iterable[tuple[int, int]]:
    return zip(a.tolist(), b.tolist(), strict=True)


def _folded(title: str) -> str:
    return " ".join(title.casefold().split())


def copied_from(name: str) -> str | None:
    """Return the name of the page of which *name* is a copy by its form, if it has that form."""
    found = _COPY.fullmatch(name)
    return None if found is None else found[1]


def _within(groups: IndexArray) -> Iterable[tuple[int, int]]:
    """Yield the pairs of equal group, smaller number first; of a large group each member with the first."""
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups.tolist()):
        if group >= 0:
            members.setdefault(group, []).append(number)
    for found in members.values():
        heads = found[:1] if len(found) > _LARGEST_GROUP else found
        for place, a in enumerate(heads):
            for b in found[place + 1 :]:
                yield a, b
