"""Which value of each page colours a map, and where it comes from."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryfield_widgets import palette
from memoryfield_widgets.facts import Facts
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.labels import Label
from memoryfield_widgets.state import State

# What can be chosen besides the frontmatter keys, and what the menu calls it.
CHOICES = {
    "auto": "question, else region",
    "none": "one colour",
    "similarity": "similarity to question",
    "region": "region of the map",
    "family": "family",
    "created": "created",
    "updated": "updated",
    "size": "size",
}


class Colorist:
    """Finds colours for the pages of one state; families are found once and kept until pages change."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._finding = threading.Lock()
        self._families: list[tuple[str, ...]] | None = None
        self._family: dict[str, int] = {}

    def forget(self) -> None:
        """Pages, model or recipe changed."""
        self._families = None
        self._family = {}

    @property
    def known_families(self) -> list[tuple[str, ...]]:
        """Members of the families that were found, the largest family first."""
        return self._families or []

    def family_of(self, name: str) -> tuple[str, ...]:
        """Return the pages of a page's family, if families were found and it has one."""
        number = self._family.get(name)
        return () if number is None else self.known_families[number]

    def families(self, job: Job) -> list[tuple[str, ...]]:
        """Find the families; on a worker thread."""
        with self._finding:
            if self._families is None:
                found = self._state.field.families(model=self._state.model, progress=job.progress)
                ordered = sorted((tuple(family) for family in found), key=lambda members: (-len(members), members))
                self._family = {name: number for number, members in enumerate(ordered) for name in members}
                self._families = ordered
            return self._families

    def coloring(
        self, by: str, names: Sequence[str], facts: Facts, labels: Sequence[Label], job: Job
    ) -> palette.Coloring:
        """Return colours for pages; on a worker thread.

        Args:
            by: One of ``CHOICES`` or a frontmatter key.
            names: The pages.
            facts: What is known of them.
            labels: Names of the map's regions.
            job: The job that asks.
        """
        question = self._state.query.strip()
        if by == "auto":
            by_now = "similarity" if question else "region"
            return self.coloring(by_now, names, facts, labels, job)
        if by == "similarity":
            return self._similarity(question, names)
        if by == "region":
            return _regions(names, labels)
        if by == "family":
            return self._by_family(names, job)
        if by in ("created", "updated"):
            return palette.dates(by, by, facts.days(by, names))
        if by == "size":
            sizes = [facts.sizes[facts.row[name]] if name in facts.row else 0 for name in names]
            return palette.sizes(by, "size", sizes)
        if by == "none":
            return palette.Coloring("none")
        return palette.categories(by, by, facts.texts(by, names), missing=f"no {by}")

    def _similarity(self, question: str, names: Sequence[str]) -> palette.Coloring:
        if not question:
            return palette.Coloring("similarity")
        state = self._state
        index = state.field.vector_index(state.model, state.recipe)
        vectors = index.vectors()
        asked = np.asarray(index.embedder.embed_query(question), dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if not np.isfinite(length) or length == 0:
            return palette.Coloring("similarity")
        cosine = dict(zip(vectors.names, (vectors.matrix @ (asked / length)).tolist(), strict=True))
        values = np.array([cosine.get(name, np.nan) for name in names], dtype=np.float32)
        return palette.similarity("similarity", question, values)

    def _by_family(self, names: Sequence[str], job: Job) -> palette.Coloring:
        families = self.families(job)
        titles = [f"{members[0]} +{len(members) - 1}" for members in families]
        values: list[Any] = [titles[self._family[name]] if name in self._family else None for name in names]
        return palette.categories("family", "family", values, order=titles, missing="in no family")


def _regions(names: Sequence[str], labels: Sequence[Label]) -> palette.Coloring:
    coarse = [label for label in labels if label.level == 1]
    texts: list[str] = []
    for label in coarse:
        text, again = label.text, 2
        while text in texts:
            text, again = f"{label.text} ({again})", again + 1
        texts.append(text)
    region = {name: text for label, text in zip(coarse, texts, strict=True) for name in label.names}
    values = [region.get(name) for name in names]
    return palette.categories(
        "region",
        "region",
        values,
        order=texts[: len(palette.COLORS)],
        missing="between regions",
        others="smaller regions",
    )
