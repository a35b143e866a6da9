"""The pool of a question: the hits of all retrievers, without a word on which of them found a page or how high.

So no retriever is favoured by the one who judges. The order is seeded by the question: it is the same again for the
same question, whoever asks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import memoryfield as mf
from memoryfield_widgets.jobs import Job
from memoryfield_widgets.state import RETRIEVERS, State

_LONGEST_NOTE = 400


def pooled(
    state: State, question: str, wanted: Sequence[str], depth: int, models: Sequence[str], seed: int, job: Job
) -> tuple[list[str], str]:
    """Return the names of all hits in an order that says nothing, and what could not be asked.

    Args:
        state: The field and its model.
        question: The question.
        wanted: Pages that belong to the pool whatever is found.
        depth: Hits of each retriever.
        models: Further models whose vector hits are asked for.
        seed: Of the order.
        job: Cancelled between two retrievers.
    """
    found = set(wanted)
    asked = [(retriever, None) for retriever in RETRIEVERS] + [("vector", model) for model in models]
    lost: list[str] = []
    for retriever, model in asked:
        job.check()
        try:
            hits = state.field.search(
                question,
                k=depth,
                retriever=retriever,
                model=model or state.model,
                sync=not state.jobs.has("index"),  # an index that is being built can be searched so far
                progress=job.progress,
            )
        except mf.errors.ModelError as error:
            lost.append(str(error))
            continue
        found.update(hit.name for hit in hits)
    names = sorted(found)
    random.Random(f"{seed}\0{question}").shuffle(names)
    note = ""
    if lost:
        reasons = "; ".join(dict.fromkeys(lost))
        note = f"{len(lost)} of {len(asked)} retrievers could not be asked: {reasons[:_LONGEST_NOTE]}"
    return names, note
