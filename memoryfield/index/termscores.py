"""BM25 of many questions in one pass: each term is looked up once, and a question's score is the sum of its terms'.

FTS5 adds up what the terms of a question give a page in the order of the terms, in double precision. So does this:
the sums are the scores that one search for each question would give, bit by bit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memoryfield.format.names import PAGE_SUFFIX

ScoreArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TermScores:
    """What each of some terms gives the pages that hold it.

    Attributes:
        names: Page names, sorted.
        terms: By term, the numbers of the pages in *names* and their BM25 for this term alone; higher is better.
    """

    names: tuple[str, ...] = ()
    terms: Mapping[str, tuple[RowArray, ScoreArray]] = field(default_factory=dict)

    def scores(self, terms: Sequence[str]) -> ScoreArray:
        """Return the BM25 of every page for a question of these terms: (n_pages,) float64, 0 where none is held."""
        found = np.zeros(len(self.names))
        for term in terms:
            held = self.terms.get(term)
            if held is not None:
                found[held[0]] += held[1]
        return found


class PageRows(NamedTuple):
    """The pages of a keyword index: their names, sorted, and for each of the index's numbers the place among them."""

    names: tuple[str, ...]
    row_of: RowArray


def read_page_rows(connection: sqlite3.Connection) -> PageRows:
    """Read which pages an index holds."""
    held = connection.execute("SELECT filename, id FROM pages").fetchall()
    pages = sorted((name.removesuffix(PAGE_SUFFIX), number) for name, number in held)
    row_of = np.zeros(max((number for _, number in pages), default=0) + 1, np.intp)
    row_of[[number for _, number in pages]] = np.arange(len(pages))
    return PageRows(tuple(name for name, _ in pages), row_of)


def read_term_scores(
    connection: sqlite3.Connection, pages: PageRows, terms: Iterable[str], weights: Sequence[float]
) -> TermScores:
    """Look up terms in the keyword index.

    Args:
        connection: The index, in a read transaction.
        pages: The pages that it holds.
        terms: FTS5 phrases, as ``words.query_terms`` gives them.
        weights: Of the columns.
    """
    search = f"SELECT rowid, -bm25(words, {', '.join(map(str, weights))}) FROM words WHERE words MATCH ?"
    found: dict[str, tuple[RowArray, ScoreArray]] = {}
    for term in terms:
        if term in found:
            continue
        hits = connection.execute(search, (term,)).fetchall()
        if hits:
            ids, scores = zip(*hits, strict=True)
            found[term] = (pages.row_of[np.array(ids, np.intp)], np.array(scores))
    return TermScores(pages.names, found)
