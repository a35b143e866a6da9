"""Readers and writers at one server for a while, each of whom knows what has to come back.

Every writer has pages of its own, which nobody else touches: whatever it wrote last has to be there at the end, over
HTTP and on the disk. All writers count on one page, each step bound to the version that was read, so that a lost update
shows in the sum. And all write one page without a condition, which is never to be refused.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from loopback import Server

READER_PAUSE, WRITER_PAUSE = 0.05, 0.1  # seconds between two requests of one client
_OWN_PAGES = 12
_WORDS = ("boat", "brake", "crane", "cradle", "engine", "keel", "lift", "paint", "slip", "tide")  # of the pages
_MOST_TOLD = 50


@dataclass
class Soak:
    """What was seen.

    Attributes:
        requests: Answers by what was asked and status, such as ``put 204``.
        wrong: What went wrong, in words; the first fifty.
        steps: Counting steps that were taken.
        counted: What the counting page says at the end.
        pages: Pages of the writers that were compared at the end.
        memory: Seconds since the beginning, bytes in memory and open files of the server, once in a while.
        seconds: How long it took.
    """

    requests: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    steps: int = 0
    counted: int = 0
    pages: int = 0
    memory: list[tuple[float, float, int]] = field(default_factory=list)
    seconds: float = 0.0

    def growth(self) -> tuple[float, float]:
        """Return the bytes in memory in the second fifth of the time and in the last, as medians."""
        sizes = [size for _, size, _ in self.memory]
        fifth = max(len(sizes) // 5, 1)
        early, late = sorted(sizes[fifth : 2 * fifth] or sizes), sorted(sizes[-fifth:])
        return early[len(early) // 2], late[len(late) // 2]


class _Client(threading.Thread):
    """One client with one connection; ``turn`` is what it does again and again."""

    def __init__(self, soak: Soak, port: int, number: int, until: float, pause: float) -> None:
        super().__init__(name=f"{type(self).__name__} {number}", daemon=True)
        self.soak, self.number, self.until, self.pause = soak, number, until, pause
        self.chance = random.Random(f"{type(self).__name__} {number}")
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.known: dict[str, str] = {}  # tags by path

    def run(self) -> None:
        while time.monotonic() < self.until:
            try:
                self.turn()
            except Exception as error:
                self.complain(f"{type(error).__name__}: {error}")
                self.connection.close()
            time.sleep(self.pause * self.chance.uniform(0.5, 1.5))
        self.connection.close()

    def turn(self) -> None:
        """Ask or write once; each kind of client does it in its own way."""
        raise NotImplementedError

    def complain(self, text: str) -> None:
        if len(self.soak.wrong) < _MOST_TOLD:
            self.soak.wrong.append(f"{self.name}: {text}")

    def ask(
        self, what: str, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body=body, headers=named)
        answer = self.connection.getresponse()
        content, tag = answer.read(), answer.headers.get("ETag", "")
        self.soak.requests[f"{what} {answer.status}"] += 1
        return answer.status, content, tag

    def expect(self, seen: int, *wanted: int, of: str) -> None:
        if seen not in wanted:
            self.complain(f"{of} was answered with {seen}")


class Reader(_Client):
    """Searches, reads, asks for catalogues, now and then for the archive."""

    notes = 1000

    def turn(self) -> None:
        kind = self.chance.choices(("search", "page", "listing", "catalogue", "html", "archive"), (60, 25, 4, 6, 4, 1))[
            0
        ]
        if kind == "search":
            words = "+".join(self.chance.sample(_WORDS, 2))
            how = self.chance.choice(("vector", "keyword", "hybrid"))
            status, body, _ = self.ask(f"search {how}", "GET", f"/search?q={words}&retriever={how}")
            self.expect(status, 200, of=f"a search by {how}")
            if not json.loads(body)["results"]:
                self.complain(f"a search by {how} for {words} found nothing")
            return
        name = f"note-{self.chance.randrange(self.notes):06}"
        path = {"page": f"/{name}.md", "listing": "/listing.md", "catalogue": "/listing.json", "html": f"/{name}"}.get(
            kind
        )
        if path is None:
            status, body, _ = self.ask("archive", "GET", "/memoryfield.zip")
            self.expect(status, 200, 503, of="the archive")  # 503 where three others are being sent
            return
        tag = self.known.get(path)
        headers = {"If_None_Match": tag} if tag else {}
        status, _, new = self.ask(kind, "GET", path, None, **headers)
        self.expect(status, *((200, 304) if tag else (200,)), of=path)
        if new:
            self.known[path] = new


class Writer(_Client):
    """Writes pages of its own, counts on a page of all, writes another without a condition."""

    def __init__(self, soak: Soak, port: int, number: int, until: float, pause: float) -> None:
        super().__init__(soak, port, number, until, pause)
        self.pages: dict[str, bytes | None] = {}  # what has to be there
        self.turns = 0

    def turn(self) -> None:
        self.turns += 1
        self.chance.choices((self.own, self.count, self.board), (8, 1, 1))[0]()

    def own(self) -> None:
        path = f"/writer-{self.number}-{self.chance.randrange(_OWN_PAGES)}.md"
        before = self.pages.get(path)
        if before is not None and self.chance.random() < 0.2:
            status, _, _ = self.ask("delete", "DELETE", path)
            self.expect(status, 204, of=f"deleting {path}")
            self.pages[path] = None
            status, _, _ = self.ask("read deleted", "GET", path)
            self.expect(status, 404, of=f"{path}, which is deleted,")
            return
        word = f"word{self.number}x{self.turns}"
        body = (
            f"# Writer {self.number}\n\nThe {word} stands here.\n\n{'filler ' * self.chance.randrange(300)}\n".encode()
        )
        headers = {"If_Match": self.known[path]} if before is not None and self.chance.random() < 0.5 else {}
        status, _, tag = self.ask("put", "PUT", path, body, **headers)
        self.expect(status, 201 if before is None else 204, of=f"writing {path}")
        self.pages[path], self.known[path] = body, tag
        status, seen, _ = self.ask("read own", "GET", path)
        if (status, seen) != (200, body):
            self.complain(f"{path} is not what was just written ({status})")
        if self.chance.random() < 0.3:
            status, found, _ = self.ask("search own", "GET", f"/search?q={word}&retriever=keyword")
            if [hit["filename"] for hit in json.loads(found)["results"]][:1] != [path[1:]]:
                self.complain(f"{path} is not found by the word that was just written")

    def count(self) -> None:
        for _ in range(50):
            status, body, tag = self.ask("read count", "GET", "/count.md")
            self.expect(status, 200, of="the counting page")
            status, _, _ = self.ask("count", "PUT", "/count.md", b"%d\n" % (int(body) + 1), If_Match=tag)
            self.expect(status, 204, 412, of="counting")
            if status == 204:
                with _COUNTING:
                    self.soak.steps += 1
                return
        self.complain("could not count in 50 tries")

    def board(self) -> None:
        body = f"Writer {self.number}, turn {self.turns}.\n".encode()
        status, _, _ = self.ask("put shared", "PUT", "/board.md", body)
        self.expect(status, 201, 204, of="a write without a condition")


_COUNTING = threading.Lock()


def soak(
    server: Server,
    directory: Path,
    seconds: float,
    *,
    readers: int = 8,
    writers: int = 4,
    notes: int = 1000,
    every: float = 1.0,
    pauses: tuple[float, float] = (READER_PAUSE, WRITER_PAUSE),
    told: Callable[[Soak], object] = lambda _soak: None,
) -> Soak:
    """Let readers and writers at a server that takes changes, and compare at the end.

    Args:
        server: The server.
        directory: Its field on the disk.
        seconds: How long.
        readers: Clients that only read.
        writers: Clients that write.
        notes: How many pages the field holds, ``note-000000`` and so on.
        every: Seconds between two looks at the memory.
        pauses: Seconds that a reader and a writer wait after each turn, on average.
        told: Called at each look at the memory.
    """
    seen = Soak()
    first = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    first.request("PUT", "/count.md", b"0\n")
    if first.getresponse().status != 201:
        raise RuntimeError("the server takes no changes")
    first.close()
    started = time.monotonic()
    until = started + seconds
    reading = [Reader(seen, server.port, number, until, pauses[0]) for number in range(readers)]
    writing = [Writer(seen, server.port, number, until, pauses[1]) for number in range(writers)]
    for reader in reading:
        reader.notes = notes
    for client in (*reading, *writing):
        client.start()
    while time.monotonic() < until:
        time.sleep(min(every, max(until - time.monotonic(), 0.01)))
        seen.memory.append((time.monotonic() - started, server.memory(), server.open_files()))
        told(seen)
    for client in (*reading, *writing):
        client.join(120)
        if client.is_alive():
            client.complain("still waits for an answer two minutes after the end")
    seen.seconds = time.monotonic() - started
    _compare(seen, server, directory, writing, notes)
    return seen


def _compare(seen: Soak, server: Server, directory: Path, writing: list[Writer], notes: int) -> None:
    """Compare what the server and the disk hold with what the writers know."""
    last = _Client(seen, server.port, 0, 0.0, 0.0)
    listed = {row["filename"] for row in json.loads(last.ask("listing", "GET", "/listing.json")[1])["pages"]}
    for writer in writing:
        for path, wanted in writer.pages.items():
            seen.pages += 1
            on_disk = directory / path[1:]
            held = on_disk.read_bytes() if on_disk.exists() else None
            status, body, _ = last.ask("at the end", "GET", path)
            served = body if status == 200 else None
            if not wanted == held == served or (path[1:] in listed) != (wanted is not None):
                last.complain(f"{path} is not as its writer left it")
    if len([name for name in listed if name.startswith("note-")]) != notes:
        last.complain("a page that nobody touched is gone")
    seen.counted = int(last.ask("at the end", "GET", "/count.md")[1])
    if seen.counted != seen.steps:
        last.complain(f"{seen.steps} steps were taken and {seen.counted} counted")
    last.connection.close()
