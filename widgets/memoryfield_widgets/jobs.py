"""Work that takes a while: started from a callback, run on a worker thread, reported, cancelled, never lost.

Each state has two lanes with one thread each, so that a search does not wait for a map. A job has a *kind*: a newer
one of its kind takes the place of the older, whose result is then dropped however late it comes. What a job raises
is handed to the state and shown in words; nothing is raised into a thread where nobody would see it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

DEBOUNCE = 0.15  # seconds from the last key to the search
QUICK, LONG = "quick", "long"
_REPORT_EVERY = 0.1  # seconds between two reports of progress
_IDLE = 10.0  # seconds after which a thread without work ends; the next job starts another


class Cancelled(Exception):
    """Raised inside a job, by ``Job.progress`` or ``Job.check``, once nobody wants its result."""


@dataclass(frozen=True)
class Running:
    """What is shown of a job that waits or runs.

    Attributes:
        id: Number of the job.
        kind: What kind of work it is.
        title: What it does, in words.
        done: How many pages are done.
        total: How many there are to do; 0 where that is not known.
        seconds_left: How long it will take at the speed so far; None where that cannot be told.
    """

    id: int
    kind: str
    title: str
    done: int = 0
    total: int = 0
    seconds_left: float | None = None


@dataclass(eq=False)
class Job:
    """One piece of work. ``work`` is called with the job; it may ask ``check()`` and report ``progress(done, total)``.

    Attributes:
        id: Number, rising.
        kind: What kind of work it is; one job of a kind is wanted at a time.
        title: What it does, in words; an empty title is not shown.
        lane: ``quick`` or ``long``.
        due: Moment of the monotonic clock before which it does not start.
    """

    id: int
    kind: str
    title: str
    lane: str
    due: float
    work: Callable[[Job], Any]
    done: Callable[[Any], None] | None
    report: Callable[[], None]
    cancelled: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    counts: tuple[int, int] = (0, 0)
    _first: tuple[float, int] | None = None
    _reported: float = 0.0

    def check(self) -> None:
        """Raise Cancelled if nobody wants the result any more."""
        if self.cancelled.is_set():
            raise Cancelled

    def progress(self, done: int, total: int) -> None:
        """Report how far the work is; fits the ``progress`` argument of a field's methods."""
        self.check()
        now = time.monotonic()
        if self._first is None or done < self._first[1]:
            self._first = (now, done)
        self.counts = (done, total)
        if now - self._reported >= _REPORT_EVERY or done >= total:
            self._reported = now
            self.report()

    def shown(self) -> Running:
        """Return what is shown of this job now."""
        done, total = self.counts
        left = None
        if self._first is not None and done > self._first[1]:
            left = (time.monotonic() - self._first[0]) / (done - self._first[1]) * (total - done)
        return Running(self.id, self.kind, self.title, done, total, left)


class Jobs:
    """The jobs of one state.

    Args:
        changed: Called, on any thread, when what waits or runs has changed; not for jobs without a title.
        failed: Called, on the job's thread, with what a job raised.
    """

    def __init__(self, changed: Callable[[], None], failed: Callable[[Job, Exception], None]) -> None:
        self._changed = changed
        self._failed = failed
        self._numbers = itertools.count(1)
        self._wake = threading.Condition()
        self._waiting: list[Job] = []
        self._active: dict[str, Job] = {}  # by lane: what its thread works on, wanted or not
        self._threads: dict[str, threading.Thread] = {}

    def start(
        self,
        kind: str,
        work: Callable[[Job], Any],
        done: Callable[[Any], None] | None = None,
        *,
        title: str = "",
        delay: float = 0.0,
        long: bool = False,
    ) -> Job:
        """Put a job into its lane and return at once; older jobs of its kind are no longer wanted.

        Args:
            kind: What kind of work it is.
            work: Called with the job on the worker thread.
            done: Called there with what *work* returned, unless the job was cancelled or replaced meanwhile.
            title: What it does, in words, for the status line.
            delay: Seconds to wait before it starts; with each newer job of the kind the waiting begins anew.
            long: Whether it may take more than a second or two; such jobs have a thread of their own.
        """
        lane = LONG if long else QUICK
        job = Job(next(self._numbers), kind, title, lane, time.monotonic() + delay, work, done, self._changed)
        with self._wake:
            self._drop(lambda other: other.kind == kind)
            self._waiting.append(job)
            thread = self._threads.get(lane)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._run, args=(lane,), name=f"memoryfield {lane}", daemon=True)
                self._threads[lane] = thread
                thread.start()
            self._wake.notify_all()
        self._tell(job)
        return job

    def cancel(self, job_id: int | None = None, *, kind: str | None = None) -> int:
        """Stop wanting a job by its number, all jobs of a kind, or all jobs; return how many that were.

        A job that runs is interrupted where it next reports progress; until then its thread goes on, unheard.
        """
        with self._wake:
            dropped = self._drop(
                lambda job: (job_id is None or job.id == job_id) and (kind is None or job.kind == kind)
            )
            self._wake.notify_all()
        if dropped:
            self._changed()
        return dropped

    def _drop(self, unwanted: Callable[[Job], bool]) -> int:
        found = [job for job in [*self._waiting, *self._active.values()] if unwanted(job)]
        found = [job for job in found if not job.cancelled.is_set()]
        for job in found:
            job.cancelled.set()
        self._waiting = [job for job in self._waiting if not job.cancelled.is_set()]
        return len(found)

    def running(self) -> tuple[Running, ...]:
        """Return the jobs with a title that wait or run and are wanted, oldest first."""
        with self._wake:
            wanted = [job for job in [*self._active.values(), *self._waiting] if not job.cancelled.is_set()]
        return tuple(job.shown() for job in sorted(wanted, key=lambda job: job.id) if job.title)

    def has(self, kind: str) -> bool:
        """Say whether a job of a kind waits or runs and is wanted."""
        with self._wake:
            return any(
                job.kind == kind and not job.cancelled.is_set() for job in [*self._active.values(), *self._waiting]
            )

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until nothing waits or runs any more; return whether that came in time. Not from within a job."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._waiting and not self._active, timeout)

    # on the worker threads

    def _run(self, lane: str) -> None:
        while True:
            job = self._next(lane)
            if job is None:
                return
            self._do(job)
            del job  # what it holds goes with it, also while the thread waits for the next one

    def _do(self, job: Job) -> None:
        try:
            job.started = time.monotonic()
            job.check()
            result = job.work(job)
            job.check()
            if job.done is not None:
                job.done(result)
        except Cancelled:
            pass
        except Exception as error:  # shown in words by the state: nobody sees what a thread raises
            if not job.cancelled.is_set():
                self._failed(job, error)
        finally:
            with self._wake:
                self._active.pop(job.lane, None)
                self._wake.notify_all()
            self._tell(job)

    def _next(self, lane: str) -> Job | None:
        """Wait for the next job of a lane; None when there was none for a while and the thread may end."""
        end = time.monotonic() + _IDLE
        with self._wake:
            while True:
                now = time.monotonic()
                mine = [job for job in self._waiting if job.lane == lane]
                due = [job for job in mine if job.due <= now]
                if due:
                    job = min(due, key=lambda job: job.id)
                    self._waiting.remove(job)
                    self._active[lane] = job
                    return job
                if not mine and now >= end:
                    self._threads.pop(lane, None)  # under the lock: a job that comes now starts another thread
                    return None
                self._wake.wait(min([job.due for job in mine], default=end) - now)

    def _tell(self, job: Job) -> None:
        if job.title:
            self._changed()
