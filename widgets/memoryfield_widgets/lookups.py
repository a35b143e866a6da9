"""What the editor looks up beside the page: pages that say the same, tokens, the last steps, a diff by lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.state import State

_SIMILAR = 6
_STEPS = 15
_PAGES = 4


@dataclass(frozen=True)
class Likes:
    """What is like a page, and how long the page is for the model.

    Attributes:
        words: What is said where no page is like it.
        rows: The pages that are, nearest first.
        can_embed: Whether embedding the field would help.
        sha256: Of the page that was looked at.
        tokens: How many it has; None where the model cannot tell.
        most_tokens: How many the model reads.
    """

    words: str = ""
    rows: tuple[dict[str, Any], ...] = field(default_factory=tuple)
    can_embed: bool = False
    sha256: str = ""
    tokens: int | None = None
    most_tokens: int | None = None

    def shown(self) -> dict[str, Any]:
        """Return what the view shows."""
        return {"words": self.words, "rows": list(self.rows), "embed": self.can_embed}


def find_likes(page: mf.Page, state: State, job: Job) -> Likes:
    """Return what is like a page, saved or not; it never begins to embed a field that has no index yet."""
    if state.jobs.has("index"):
        return Likes("Similar pages are shown here once the field is embedded.")
    if not _is_embedded(state):
        return Likes("Similar pages are shown here once the field is embedded.", can_embed=True)
    try:
        found = state.field.similar(page, model=state.model, limit=_SIMILAR)
        job.check()
        embedder = state.field.embedder(state.model)
    except mf.errors.ModelError as error:
        return Likes(str(error))
    rows = tuple(
        {"name": one.name, "title": one.title[:200], "closeness": round(one.closeness, 2), "reason": one.reason}
        for one in found
    )
    count = getattr(embedder, "count_tokens", None)  # not every model can tell
    return Likes(
        words="" if rows else "No other page says much the same.",
        rows=rows,
        sha256=page.sha256,
        tokens=count([page.text])[0] if callable(count) else None,
        most_tokens=embedder.max_tokens,
    )


def _is_embedded(state: State) -> bool:
    wanted = getattr(state.model, "model_code", state.model)
    healthy = [index.model_code for index in state.field.indexes() if index.state == "ok"]
    return wanted in healthy if wanted is not None else bool(healthy)


def last_steps(of: mf.MemoryField) -> list[dict[str, Any]]:
    """Return the last steps of a field's history, newest first."""
    return [
        {
            "id": step.id,
            "said": step.said(),
            "pages": ", ".join(step.pages[:_PAGES]) + _more(len(step.pages) - _PAGES),
            "time": step.time.isoformat(timespec="seconds"),
            "state": step.state,
        }
        for step in of.history(limit=_STEPS)
    ]


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def diff_lines(diff: str) -> list[list[str]]:
    """Return the lines of a unified diff without the file names, each with its kind: ``+``, ``-``, ``@`` or a blank."""
    lines: list[list[str]] = []
    for line in diff.splitlines():
        if not lines and line.startswith(("--- ", "+++ ")):
            continue
        if line.startswith(("@", "\\")):
            lines.append(["@", line])
        else:
            lines.append([line[:1] if line[:1] in ("+", "-") else " ", line[1:]])
    return lines
