"""Syncs that need no model: nothing changed in 10,000 pages, and the first index of 1,000 with an embedder for free."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from material import FreeEmbedder, unstructured, workspace, write_pages
from measure import Results, Side, arguments, cpu, take_turns, wall
from peers import MF, TOOL, Peer, PeerMissing, start

from memoryfield.format.pages import PageDirectory
from memoryfield.index.vectors import VectorIndex

# What is to be reached was said in times of one machine. Elsewhere the same is asked as a ratio: 8 µs a page where the
# plain loop takes 6.2, and 100 ms for 1,000 pages where the peers take so much.
VERIFIED = (1.29, " (8 µs where the loop takes 6.2)")
FIRST_INDEX = {
    TOOL.name: (0.084, " (100 ms where it takes 1,187)"),
    MF.name: (0.163, " (100 ms where it takes 613)"),
}
RACY_SECONDS = 3.2


def plain_loop(directory: Path) -> None:
    """Read and hash every page with as little else as Python allows."""
    sha256 = hashlib.sha256
    opened = os.open(directory, os.O_RDONLY)
    try:
        with os.scandir(opened) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if name.endswith(".md"):
                descriptor = os.open(name, os.O_RDONLY, dir_fd=opened)
                sha256(os.read(descriptor, 65536)).digest()
                os.close(descriptor)
    finally:
        os.close(opened)


class PlainFirstIndex:
    """The same work by the shortest way with the same parts: read, hash, PyYAML's C loader, rows in one transaction."""

    def __init__(self, directory: Path, target: Path) -> None:
        self._directory, self._target = directory, target
        self._vectors = unstructured(2048)

    def __call__(self) -> None:
        """Make the file."""
        self._target.unlink(missing_ok=True)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        rows = []
        for number, path in enumerate(sorted(self._directory.glob("*.md"))):
            raw = path.read_bytes()
            block = re.match(rb"---\n(.*?)\n---\n", raw, re.DOTALL)
            head = yaml.load(block[1], Loader=loader) if block else None
            vector = self._vectors[number % len(self._vectors)].tobytes()
            rows.append((path.name, json.dumps(head, default=str), "", hashlib.sha256(raw).digest(), vector))
        with contextlib.closing(sqlite3.connect(self._target)) as connection, connection:
            connection.execute(
                "CREATE TABLE pages (filename TEXT PRIMARY KEY, frontmatter, last_modified, sha, vector)"
            )
            connection.executemany("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", rows)


def nothing_changed(results: Results, place: Path, count: int, rounds: int) -> None:
    """Add the rows of a sync with nothing to do, per page."""
    directory = write_pages(place / "field", count)
    embedder = FreeEmbedder()
    kept = VectorIndex(PageDirectory(directory), embedder)
    kept.sync()
    time.sleep(RACY_SECONDS)
    trusting = VectorIndex(PageDirectory(directory), embedder)
    for index in (kept, trusting):  # twice: stat data that were too young are noted once they are old enough
        index.sync(verify=False)
        time.sleep(RACY_SECONDS)

    def fresh(verify: bool) -> None:
        VectorIndex(PageDirectory(directory), embedder).sync(verify=verify)

    def checked(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            work()

        return run

    report = kept.sync()
    if report.changed or len(report.unchanged) != count:
        raise RuntimeError(f"something to do where nothing changed:\n{report}")
    sides: dict[str, Side] = {
        "ours": cpu(checked(kept.sync)),
        "loop": cpu(partial(plain_loop, directory)),
        "fresh": cpu(partial(fresh, True)),
        "stat": cpu(partial(trusting.sync, verify=False)),
        "fresh stat": cpu(partial(fresh, False)),
    }
    copy = place / "field-mf"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*.sqlite3"))
    with contextlib.ExitStack() as stack:
        names = []
        for package, where, expected in ((TOOL, directory, [0, 0, True]), (MF, copy, [0, 0, count])):
            peer = start(package)
            try:
                if isinstance(peer, PeerMissing):
                    raise peer
                stack.enter_context(peer)
                peer.ask("prepare_sync", directory=where)
                first = peer.ask("sync", times=1)["said"]
                if package is MF:
                    first = peer.ask("sync", times=1)["said"]
                if first != expected:
                    raise PeerMissing(f"it found something to do: {first}")
            except PeerMissing as reason:
                results.missing("nothing changed", package.name, reason)
                continue
            sides[peer.name] = partial(peer.seconds, "sync", times=1)
            names.append(peer.name)
        seen = take_turns(rounds, **sides)

    def us(seconds: float) -> str:
        return f"{seconds / count * 1e6:.1f} µs a page"

    loop = "read and hash in a plain loop"
    what = f"nothing changed, {count:,} pages"
    at_most, meaning = VERIFIED
    results.compare(f"{what}, every byte verified", seen, "loop", loop, at_most=at_most, meaning=meaning, show=us)
    results.compare("the same, first sync of a process", seen, "loop", loop, ours="fresh", show=us)
    results.compare(f"{what}, trusting stat data", seen, "loop", loop, ours="stat", show=us)
    results.compare("the same, first sync of a process", seen, "loop", loop, ours="fresh stat", show=us)
    for name in names:
        guess = "modification time only" if name.startswith("memoryfield-tool") else "reads, parses and hashes"
        results.compare(f"{what}, every byte verified", seen, name, f"{name} ({guess})", ours="fresh", show=us)


def first_index(results: Results, place: Path, count: int, rounds: int) -> None:
    """Add the rows of a first index with an embedder that costs nothing."""
    directory = write_pages(place / "first", count)
    embedder = FreeEmbedder()
    path = VectorIndex(PageDirectory(directory), embedder).path

    def ours() -> None:
        path.unlink(missing_ok=True)
        done = VectorIndex(PageDirectory(directory), embedder).sync()
        if len(done.added) != count:
            raise RuntimeError(f"not every page was added:\n{done}")

    plain = PlainFirstIndex(directory, place / "plain.sqlite3")
    sides: dict[str, Side] = {"ours": cpu(ours), "plain": cpu(plain), "clock": wall(ours)}
    with contextlib.ExitStack() as stack:
        names = []
        for package in (TOOL, MF):
            copy = place / f"first-{package.name}"
            shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*.sqlite3"))
            peer = start(package)
            if isinstance(peer, Peer):
                stack.enter_context(peer)
                try:
                    peer.ask("prepare_sync", directory=copy)
                    peer.ask("first_index")
                except PeerMissing as reason:
                    results.missing("first index", package.name, reason)
                    continue
                sides[peer.name] = partial(peer.seconds, "first_index")
                names.append(peer.name)
            else:
                results.missing("first index", package.name, peer)
        seen = take_turns(rounds, **sides)
    what = f"first index of {count:,} pages, embedding apart"
    shortest = "PyYAML's C loader, sha256, one transaction"
    results.compare(what, seen, "plain", shortest)
    results.compare("the same, on the clock", seen, "plain", f"{shortest}; CPU time", ours="clock")
    for name in names:
        at_most, meaning = FIRST_INDEX[name.split()[0]]
        results.compare(what, seen, name, name, at_most=at_most, meaning=meaning)


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results("Sync", "CPU time, files in the page cache, pages of 1.5 kB with frontmatter.")
    with workspace() as place:
        nothing_changed(results, place, 1000 if options.quick else 10_000, 5 if options.quick else 9)
        first_index(results, place, 200 if options.quick else 1000, 3 if options.quick else 7)
    results.print()


if __name__ == "__main__":
    sys.exit(main())
