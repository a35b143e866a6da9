"""Questions that wait at the same time are ranked together: one look at the disk, one product, one pass over words.

A question is only ranked by a look that began after it arrived, so that each search still sees what was written before.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from memoryfield.errors import MemoryfieldError
from memoryfield.field import MemoryField

Ranked = list[tuple[str, float]]


@dataclass(eq=False)
class _Waiting:
    question: str
    depth: int
    retriever: str
    done: threading.Event = field(default_factory=threading.Event)
    ranked: Ranked = field(default_factory=list)
    failed: BaseException | None = None


class Together:
    """Ranks questions of several threads; whoever comes first does the work for all that wait.

    Args:
        field: The field that is searched.
    """

    def __init__(self, field: MemoryField) -> None:
        self._field = field
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._working = False

    def rank(self, question: str, depth: int, retriever: str) -> Ranked:
        """Return names and scores, best first.

        Raises:
            MemoryfieldError: What the search raised.
        """
        mine = _Waiting(question, depth, retriever)
        with self._lock:
            self._waiting.append(mine)
            leads, self._working = not self._working, True
        while leads:
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._working = leads = False
                    break
            self._answer(batch)
        mine.done.wait()
        if mine.failed is not None:
            raise mine.failed
        return mine.ranked

    def _answer(self, batch: list[_Waiting]) -> None:
        """Rank a batch; a question that cannot be ranked fails alone."""
        for retriever in dict.fromkeys(item.retriever for item in batch):
            group = [item for item in batch if item.retriever == retriever]
            try:
                self._rank(group)
            except MemoryfieldError as error:
                for item in group if len(group) > 1 else ():
                    try:
                        self._rank([item])
                    except MemoryfieldError as own:
                        item.failed = own
                if len(group) == 1:
                    group[0].failed = error
            except BaseException as error:
                for item in group:
                    item.failed = error
            finally:
                for item in group:
                    item.done.set()

    def _rank(self, group: list[_Waiting]) -> None:
        found = self._field.rank_many(
            [item.question for item in group], group[0].retriever, max(item.depth for item in group), progress=False
        )
        for number, item in enumerate(group):
            item.ranked = found.ranked(number)[: item.depth]
