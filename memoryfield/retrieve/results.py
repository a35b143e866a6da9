"""What a search returns: hits in a sequence that shows itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from memoryfield.display import Marked, Table, counted, score_text
from memoryfield.format.markdown import headings

if TYPE_CHECKING:
    import pandas as pd

    from memoryfield.index.snippets import Snippet


@dataclass(frozen=True)
class MatchedPassage:
    """The passage of a page that is nearest to a question.

    Attributes:
        text: The passage, as it stands in the page.
        heading: The heading that it stands under, or an empty text.
        start: Where it begins in the page's body, in characters.
        end: Where it ends there.
    """

    text: str
    heading: str
    start: int
    end: int

    def __str__(self) -> str:
        return self.text


def matched_passage(body: str, start: int, end: int) -> MatchedPassage:
    """Return the passage of a body between two places; they may lie outside of it, if the page was changed just now."""
    start, end = min(start, len(body)), min(end, len(body))
    above = [heading for heading in headings(body) if heading.start < max(end, 1) and heading.start <= start]
    return MatchedPassage(body[start:end].strip(), above[-1].text if above else "", start, end)


@dataclass(frozen=True)
class Hit:
    """A page that was found.

    Attributes:
        name: Page name.
        title: Its title.
        summary: Its summary.
        score: By the retriever that was asked for: a cosine, BM25, or the fused sum.
        rank: Place among the hits, from 1.
        ranks: Place in each retriever's own list, from 1; a retriever that did not find the page is missing.
        scores: Score in each of these lists.
        snippet: A piece of the page with the words that were asked for.
        field: The field that the page is in.
        passage: What of it matched, where vectors of several passages a page were searched and the page has several.
    """

    name: str
    title: str
    summary: str
    score: float
    rank: int
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    snippet: Snippet
    field: str
    passage: MatchedPassage | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as values that JSON can hold."""
        return {
            **self.__dict__,
            "ranks": dict(self.ranks),
            "scores": dict(self.scores),
            "passage": None if self.passage is None else dict(self.passage.__dict__),
            "snippet": {"text": self.snippet.text, "spans": [list(span) for span in self.snippet.spans]},
        }


@dataclass(frozen=True, repr=False)
class SearchResults(Sequence[Hit]):
    """The hits of one search, best first.

    Attributes:
        query: What was asked.
        retriever: ``hybrid``, ``vector``, ``keyword`` or ``rrf``.
        hits: The pages found.
        model_code: The model, if vectors were searched.
        recipe: Which text of the pages was embedded.
        reason: Why there are no hits; empty if there are some.
        notes: What else is worth knowing.
        passed_gate: Whether a page was near enough to the question; None where no gate was asked for.
    """

    query: str
    retriever: str
    hits: tuple[Hit, ...] = ()
    model_code: str | None = None
    recipe: str | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    passed_gate: bool | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    @property
    def names(self) -> list[str]:
        """Names of the pages, best first."""
        return [hit.name for hit in self.hits]

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        how = self.retriever if self.model_code is None else f"{self.retriever}, {self.model_code}"
        count = counted(len(self.hits), "page")
        several = len({hit.field for hit in self.hits}) > 1
        passages = any(hit.passage is not None for hit in self.hits)
        columns = ["rank", *(["field"] if several else []), "page", "title", "score", "snippet"]
        columns += ["passage"] if passages else []
        rows = [
            [
                hit.rank,
                *([hit.field] if several else []),
                hit.name,
                hit.title,
                score_text(hit.score) if self.retriever != "rrf" else f"{hit.score:.4f}",
                Marked(hit.snippet.text, hit.snippet.spans),
                *([hit.passage] if passages else []),
            ]
            for hit in self.hits
        ]
        notes = [self.reason, *self.notes] if self.reason else list(self.notes)
        return Table(
            f"{count} for {self.query[:100]!r} ({how})",
            columns,
            rows,
            notes,
            right=frozenset(["rank", "score"]),
            widths={"page": 40, "title": 40, "snippet": 100, "passage": 100},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row a hit: what it is, its score, and rank and score in each retriever."""
        import pandas as pd

        retrievers = ["vector", "keyword"] if self.retriever in ("hybrid", "rrf") else [self.retriever]
        columns = ["rank", "field", "name", "title", "summary", "score"]
        columns += [f"{what}_{name}" for name in retrievers for what in ("rank", "score")] + ["snippet"]
        if any(hit.passage is not None for hit in self.hits):
            columns.append("passage")
        rows = []
        for hit in self.hits:
            row: dict[str, Any] = {column: getattr(hit, column) for column in columns[:6]}
            for name in retrievers:
                row[f"rank_{name}"], row[f"score_{name}"] = hit.ranks.get(name), hit.scores.get(name)
            row["passage"] = None if hit.passage is None else hit.passage.text
            rows.append({**row, "snippet": hit.snippet.text})
        frame = pd.DataFrame(rows, columns=columns)
        return frame.astype({f"rank_{name}": "Int64" for name in retrievers})

    def to_dict(self) -> dict[str, Any]:
        """Return the results as values that JSON can hold."""
        return {
            "query": self.query,
            "retriever": self.retriever,
            "model_code": self.model_code,
            "recipe": self.recipe,
            "hits": [hit.to_dict() for hit in self.hits],
            "reason": self.reason,
            "notes": list(self.notes),
            "passed_gate": self.passed_gate,
        }
