"""How the benchmarks measure and what they print: runs that take turns, medians, one table.

Sides that are compared run in turn (A B A B ...), so that a machine which is slower for a while is slower for all of
them; a ratio is the median over the rounds of the ratio within one round. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Side = Callable[[], float]  # does its work once and returns the seconds it took

_COLUMNS = ("what", "compared with", "that", "ours", "ours / that", "to reach", "reached")


@dataclass(frozen=True)
class Rounds:
    """Seconds of every side in every round."""

    seconds: Mapping[str, Sequence[float]]

    def median(self, side: str) -> float:
        """Return the median seconds of one side."""
        return statistics.median(self.seconds[side])

    def ratio(self, side: str, other: str) -> float:
        """Return the median over the rounds of *side* divided by *other*."""
        pairs = zip(self.seconds[side], self.seconds[other], strict=True)
        return statistics.median(a / b for a, b in pairs)


def take_turns(rounds: int, **sides: Side) -> Rounds:
    """Run all sides once without counting them, then *rounds* times in turn."""
    for run in sides.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            gc.collect()
            seconds[name].append(run())
    return Rounds(seconds)


def cpu(work: Callable[[], object], times: int = 1) -> Side:
    """Return a side that takes the CPU seconds of this process for one *work*, as the mean of several."""

    def run() -> float:
        started = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - started) / times

    return run


def wall(work: Callable[[], object], times: int = 1) -> Side:
    """Return a side that takes the seconds on the clock for one *work*, as the mean of several."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - started) / times

    return run


def process(command: Sequence[str | Path], *, use_cpu: bool = False, codes: Sequence[int] = (0,)) -> Side:
    """Return a side that runs a program to its end: seconds on the clock, or CPU seconds of the program."""
    words = [str(word) for word in command]
    # As installed packages are: compiled once. Where this is set, each process would compile all of ours again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> float:
        before = _children_cpu()
        started = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", env=environment)
        seconds = time.perf_counter() - started
        used = _children_cpu() - before
        if done.returncode not in codes:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return used if use_cpu else seconds

    return run


def _children_cpu() -> float:
    """Return the CPU seconds of all programs that were run to their end."""
    try:
        import resource
    except ImportError:
        times = os.times()  # in steps of 10 ms
        return times.children_user + times.children_system
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


class Results:
    """Rows that are collected and printed as one Markdown table.

    Args:
        title: Heading of the table.
        how: What was measured and how, in one sentence or two.
    """

    def __init__(self, title: str, how: str) -> None:
        self._rows: list[tuple[str, ...]] = []
        self._notes: list[str] = []
        print(f"\n## {title}\n\n{how}\nMachine: {machine()}\n", flush=True)

    def add(
        self,
        what: str,
        other: str,
        that: str,
        ours: str,
        ratio: float | str | None = None,
        reach: str = "",
        reached: bool | None = None,
    ) -> None:
        """Add a row; ``reached`` is None where nothing was promised."""
        shown = "" if ratio is None else ratio if isinstance(ratio, str) else f"{ratio:.3g}"
        verdict = "" if reached is None else "yes" if reached else "NO"
        self._rows.append((what, other, that, ours, shown, reach, verdict))

    def compare(
        self,
        what: str,
        rounds: Rounds,
        other: str,
        other_name: str,
        *,
        ours: str = "ours",
        at_most: float | None = None,
        meaning: str = "",
        show: Callable[[float], str] = duration,
    ) -> None:
        """Add a row for two sides that took turns; ``at_most`` is the ratio to reach, ``meaning`` where it is from."""
        ratio = rounds.ratio(ours, other)
        reach, reached = ("", None) if at_most is None else (f"at most {at_most:g} x{meaning}", ratio <= at_most)
        that, own = show(rounds.median(other)), show(rounds.median(ours))
        self.add(what, other_name, that, own, ratio, reach, reached)

    def missing(self, what: str, other: str, reason: object, *, who: str = "peer") -> None:
        """Add a row for what cannot be measured here."""
        self.add(what, other, "", "", reach=f"{who} not available: {reason}")

    def note(self, text: str) -> None:
        """Add a line below the table."""
        self._notes.append(text)

    def print(self) -> None:
        """Print the table and the notes."""
        rows = [_COLUMNS, *self._rows]
        widths = [max(len(row[number]) for row in rows) for number in range(len(_COLUMNS))]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
        ]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        print("\n".join([*lines, *(f"\n- {note}" for note in self._notes)]), flush=True)


def machine() -> str:
    """Return one line about where this runs; ratios from a loaded machine are to be read with care."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}{load}"


def arguments(description: str) -> argparse.Namespace:
    """Return what was asked for on the command line: ``quick`` makes everything smaller, to try a change."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes; the figures mean less")
    return parser.parse_args()
