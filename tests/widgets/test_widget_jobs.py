"""Jobs on worker threads: replaced, cancelled, late, failing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from memoryfield_widgets.jobs import Cancelled, Job, Jobs

WAIT = 30.0


class Watched(Jobs):
    """Jobs that remember what they told."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.shown: list[tuple[str, ...]] = []
        super().__init__(self._note, lambda job, error: self.failures.append(f"{job.kind}: {error}"))

    def _note(self) -> None:
        self.shown.append(tuple(job.title for job in self.running()))


def _soon(holds: Callable[[], bool]) -> bool:
    """Wait until something holds that another thread is about to do."""
    end = time.monotonic() + WAIT
    while not holds() and time.monotonic() < end:
        threading.Event().wait(0.01)
    return holds()


@pytest.fixture
def jobs() -> Watched:
    return Watched()


def test_a_job_runs_elsewhere_and_hands_on_its_result(jobs: Watched) -> None:
    seen: list[object] = []
    told = threading.Event()

    def work(_job: Job) -> object:
        assert told.wait(WAIT)
        return 2 + 2, threading.current_thread().name

    jobs.start("sum", work, seen.append, title="adding")
    assert _soon(lambda: ("adding",) in jobs.shown)
    told.set()
    assert jobs.wait(WAIT)
    assert seen == [(4, "memoryfield quick")]
    assert _soon(lambda: jobs.shown[-1] == ())  # told after the last job is off the list


def test_a_late_result_of_an_older_job_is_dropped(jobs: Watched) -> None:
    go, begun = threading.Event(), threading.Event()
    seen: list[str] = []

    def slow(_job: Job) -> str:
        begun.set()
        assert go.wait(WAIT)
        return "old"

    jobs.start("search", slow, seen.append)
    assert begun.wait(WAIT)
    jobs.start("search", lambda job: "new", seen.append)
    go.set()
    assert jobs.wait(WAIT)
    assert seen == ["new"]


def test_a_long_job_does_not_keep_a_quick_one_waiting(jobs: Watched) -> None:
    go, found = threading.Event(), threading.Event()
    jobs.start("layout", lambda job: go.wait(WAIT), long=True)
    jobs.start("search", lambda job: None, lambda _: found.set())
    assert found.wait(WAIT)
    assert not jobs.wait(0.01)
    go.set()
    assert jobs.wait(WAIT)


def test_cancel_interrupts_where_progress_is_reported(jobs: Watched) -> None:
    begun, ended = threading.Event(), threading.Event()
    done: list[object] = []

    def work(job: Job) -> None:
        try:
            for number in range(10**9):
                job.progress(number, 10**9)
                begun.set()
        except Cancelled:
            ended.set()
            raise

    job = jobs.start("index", work, done.append, title="embedding", long=True)
    assert begun.wait(WAIT)
    assert jobs.cancel(job.id) == 1
    assert jobs.cancel(job.id) == 0
    assert jobs.running() == ()
    assert ended.wait(WAIT)
    assert jobs.wait(WAIT)
    assert done == []
    assert jobs.failures == []


def test_what_a_job_raises_is_told_and_the_next_job_runs(jobs: Watched) -> None:
    seen: list[str] = []

    def bad(_job: Job) -> None:
        raise ValueError("no such thing")

    jobs.start("bad", bad)
    jobs.start("worse", lambda job: 1, bad)  # type: ignore[arg-type]
    jobs.start("good", lambda job: "fine", seen.append)
    assert jobs.wait(WAIT)
    assert jobs.failures == ["bad: no such thing", "worse: no such thing"]
    assert seen == ["fine"]


def test_a_cancelled_job_that_waits_never_starts(jobs: Watched) -> None:
    seen: list[int] = []
    jobs.start("search", lambda job: seen.append(1), delay=3600)
    assert jobs.has("search")
    assert jobs.cancel(kind="search") == 1
    assert jobs.wait(WAIT)
    assert seen == []


def test_progress_tells_how_long_is_left(jobs: Watched) -> None:
    job = Job(1, "index", "embedding", "long", 0.0, lambda job: None, None, lambda: None)
    assert job.shown().seconds_left is None
    job.progress(0, 100)
    job._first = (job._first[0] - 10.0, 0)  # type: ignore[index]  # as if ten seconds had passed
    job.progress(50, 100)
    left = job.shown().seconds_left
    assert left is not None and 9.9 < left < 10.5
