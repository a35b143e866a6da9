"""Syncs that need no model: nothing changed in 10,000 pages, the first index of 1,000 with an embedder for free, and
500 pages from a web server and from a bucket on loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import yaml
from material import FreeEmbedder, unstructured, workspace, write_pages
from measure import Results, Rounds, Side, arguments, cpu, take_turns, wall
from peers import MF, TOOL, Peer, PeerMissing, start

from memoryfield.format.pages import PageDirectory
from memoryfield.index.vectors import VectorIndex
from memoryfield.places import cache_directory
from memoryfield.stores.opening import open_store
from memoryfield.stores.pages import StorePages

# What is to be reached was said in times of one machine. Elsewhere the same is asked as a ratio: 8 µs a page where the
# plain loop takes 6.2, and 100 ms for 1,000 pages where the peers take so much.
VERIFIED = (1.29, " (8 µs where the loop takes 6.2)")
FIRST_INDEX = {
    TOOL.name: (0.084, " (100 ms where it takes 1,187)"),
    MF.name: (0.163, " (100 ms where it takes 613)"),
}
RACY_SECONDS = 3.2
PAGES_A_TRIP = 16  # promised: 3 times the time of reading the pages locally, and a round trip for so many pages


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


@contextlib.contextmanager
def running(*words: str | Path) -> Iterator[int]:
    """Run a server as a process of its own and yield its port, the last number of the first line that it prints."""
    environment = {**os.environ, "MEMORYFIELD_MODEL": "hashing-1024"}
    command = [sys.executable, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            yield int(re.findall(r"(?:127\.0\.0\.1:|^)(\d+)", server.stdout.readline())[0])
        finally:
            server.terminate()


def elsewhere(results: Results, place: Path, count: int, rounds: int) -> None:
    """Add the rows of a first sync, and of one with nothing changed, over HTTP and S3."""
    directory = write_pages(place / "elsewhere", count)
    first = min(path.name for path in directory.glob("*.md"))
    bucket = Path(__file__).with_name("bucket_worker.py")
    keys = {"region": "us-east-1", "access_key_id": "bench", "secret_access_key": "bench"}

    def locally() -> None:
        pages = PageDirectory(directory)
        pages.snapshot()
        if sum(1 for page in pages.pages() if page.raw) != count:
            raise RuntimeError("not every page was read")

    def compare(what: str, address: str, port: int, page: str, **options: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def trip() -> None:
            connection.request("GET", page)
            connection.getresponse().read()

        def ours() -> None:
            shutil.rmtree(cache_directory() / "stores", ignore_errors=True)
            pages = StorePages(open_store(address, **options))
            pages.refresh()
            if sum(1 for found in pages.pages() if found.raw) != count:
                raise RuntimeError("not every page came")
            pages.close()

        kept = StorePages(open_store(address, **options))
        seen = take_turns(
            rounds,
            locally=wall(locally),
            trip=wall(trip, 20),
            ours=wall(ours),
            listing=wall(kept.store.list),
            again=wall(kept.refresh),
        )
        trips = -(-count // PAGES_A_TRIP)
        turns = zip(seen.seconds["locally"], seen.seconds["trip"], strict=True)
        both = Rounds({**seen.seconds, "allowed": [3 * read + trips * trip for read, trip in turns]})
        allowed = f"3 times reading them locally and {trips} round trips"
        results.compare(f"{count} pages from {what}, first sync, clock", both, "allowed", allowed, at_most=1)
        results.compare("the same", both, "locally", "reading them locally")
        results.compare("the same, nothing changed", both, "listing", "its listing alone", ours="again")

    with running("-m", "memoryfield.cli", "serve", directory, "--port", "0") as port:
        compare("a web server", f"http://127.0.0.1:{port}", port, f"/{first}")
    for seconds in (0.0, 0.01):
        with running(bucket, directory, str(seconds)) as port:
            what = f"a bucket that answers after {seconds * 1000:.0f} ms" if seconds else "a bucket"
            endpoint = f"http://127.0.0.1:{port}"
            compare(what, "s3://bench/field", port, f"/bench/field/{first}", endpoint=endpoint, **keys)


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results("Sync", "CPU time, files in the page cache, pages of 1.5 kB with frontmatter.")
    with workspace() as place:
        nothing_changed(results, place, 1000 if options.quick else 10_000, 5 if options.quick else 9)
        first_index(results, place, 200 if options.quick else 1000, 3 if options.quick else 7)
        elsewhere(results, place, 500, 5 if options.quick else 9)
    results.print()


if __name__ == "__main__":
    sys.exit(main())
