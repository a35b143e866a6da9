"""Questions that wait at the same time are ranked together: one look at the disk, one product, one pass over words.

A question is only ranked by a look that began after it arrived, so that each search still sees what was written before.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from memoryfield.field import MemoryField
from memoryfield.format.snapshot import Snapshot

Ranked = list[tuple[str, float]]

_GATHERING = 0.003  # seconds; under load those who were just answered ask again meanwhile, and share the next look


@dataclass(eq=False)
class _Waiting:
    question: str
    depth: int
    retriever: str
    woken: threading.Event = field(default_factory=threading.Event)  # answered, or to lead
    ranked: Ranked | None = None
    snapshot: Snapshot | None = None
    failed: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.ranked is not None or self.failed is not None


class Together:
    """Ranks questions of several threads; one of those that wait does the work for all that wait.

    Args:
        field: The field that is searched.
    """

    def __init__(self, field: MemoryField) -> None:
        self._field = field
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._working = False

    def rank(self, question: str, depth: int, retriever: str) -> tuple[Ranked, Snapshot | None]:
        """Return names and scores, best first, and the pages as they were seen.

        Raises:
            MemoryfieldError: What the search raised.
        """
        mine = _Waiting(question, depth, retriever)
        with self._lock:
            self._waiting.append(mine)
            if self._working:
                leads = False
            else:
                leads = self._working = True
        if not leads:
            mine.woken.wait()
        if not mine.is_done:  # first of those that wait, and nobody works
            if not leads:
                time.sleep(_GATHERING)
            with self._lock:
                batch, self._waiting = self._waiting, []
            try:
                self._answer(batch)
            finally:
                self._hand_on()
        if mine.failed is not None:
            raise mine.failed
        return mine.ranked or [], mine.snapshot

    def _hand_on(self) -> None:
        """Let the first of those that came meanwhile go on: who has an answer should not have to work for others."""
        with self._lock:
            self._working = bool(self._waiting)
            if self._waiting:
                self._waiting[0].woken.set()

    def _answer(self, batch: list[_Waiting]) -> None:
        """Rank a batch; a question that cannot be ranked fails alone."""
        for retriever in dict.fromkeys(item.retriever for item in batch):
            group = [item for item in batch if item.retriever == retriever]
            try:
                self._rank(group)
            except Exception as error:
                for item in group:
                    item.failed = error if len(group) == 1 else self._alone(item)
            for item in group:
                item.woken.set()

    def _alone(self, item: _Waiting) -> Exception | None:
        try:
            self._rank([item])
        except Exception as error:
            return error
        return None

    def _rank(self, group: list[_Waiting]) -> None:
        found = self._field.rank_many(
            [item.question for item in group], group[0].retriever, max(item.depth for item in group), progress=False
        )
        for number, item in enumerate(group):
            item.ranked, item.snapshot = found.ranked(number)[: item.depth], found.snapshot
