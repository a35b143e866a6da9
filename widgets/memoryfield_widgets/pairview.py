"""How a pair of pages and a family are shown: as values for the view, with the words of both pages marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoryfield_widgets.marking import Run, marked

MOST_NAMES = 50  # names of one family
_LONGEST_SHOWN = 20_000  # characters of a page; the rest is counted
_LONGEST_TITLE = 80  # in the list of families
_DAY = len("2026-01-31")  # of a date that may go on with the time of day


def question(pages: Sequence[Any], evidence: Any, answer: str | None) -> dict[str, Any]:
    """Return two pages side by side and what speaks for and against their being one.

    Args:
        pages: The two.
        evidence: Their ``PairEvidence``.
        answer: What was answered in this panel: ``same``, ``different`` or ``unsure``.
    """
    parts = [(page.title, page.summary, page.body[:_LONGEST_SHOWN]) for page in pages]
    if answer is None and evidence.answer is not None:
        answer = "same" if evidence.answer else "different"
    return {
        "pages": [_page(page, runs) for page, runs in zip(pages, marked(*parts), strict=True)],
        "probability": evidence.probability if evidence.answer is None else None,
        "cosine": evidence.cosine,
        "usual": evidence.usual,
        "together": evidence.together,
        "answer": answer,
        "for": [[reason.kind, reason.text] for reason in evidence.supporting],
        "against": [[reason.kind, reason.text] for reason in evidence.opposing],
    }


def dates(page: Any) -> str:
    """Return in words when a page was made and changed, by the day."""
    found = [(word, date[:_DAY]) for word, date in (("created", page.created), ("updated", page.updated)) if date]
    if len(found) == 2 and found[0][1] == found[1][1]:
        found.pop()
    return ", ".join(f"{word} {day}" for word, day in found)


def _page(page: Any, runs: list[list[Run]]) -> dict[str, Any]:
    return {
        "name": page.name,
        "dates": dates(page),
        "size": page.size,
        "title": runs[0],
        "summary": runs[1],
        "body": runs[2],
        "more": max(len(page.body) - _LONGEST_SHOWN, 0),
    }


def group(family: Any) -> dict[str, Any]:
    """Return a ``Family`` for the list."""
    return {
        "members": list(family.members[:MOST_NAMES]),
        "titles": [title[:_LONGEST_TITLE] for title in family.titles[:MOST_NAMES]],
        "size": len(family),
        "medoid": family.medoid,
        "cohesion": family.cohesion,
        "probability": family.probability,
        "why": family.why,
        "automatic": family.automatic,
    }
