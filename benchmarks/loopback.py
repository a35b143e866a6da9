"""``memoryfield serve`` as a process of its own on loopback, and a client that costs next to nothing.

The client is one thread over plain sockets that stay open: at hundreds of requests a second one that parses answers
with care would take more of the two cores than the server.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        port: Where it listens on 127.0.0.1.
        pid: Its process.
    """

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU seconds it has used; NaN where the system does not tell."""
        try:
            words = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return float("nan")
        return (int(words[11]) + int(words[12])) / _TICK

    def memory(self) -> float:
        """Return the bytes it has in memory; NaN where the system does not tell."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def open_files(self) -> int:
        """Return how many files and sockets it has open; -1 where the system does not tell."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return -1


@contextlib.contextmanager
def serving(field: Path, place: Path, *options: str, model: str = "hashing-1024") -> Iterator[Server]:
    """Run ``memoryfield serve`` over a field, with cache and state below *place*, until the block ends."""
    command = [sys.executable, "-m", "memoryfield.cli", "serve", str(field), "--port", "0", *options]
    own = {"MEMORYFIELD_CACHE_DIR": f"{place}/cache", "MEMORYFIELD_STATE_DIR": f"{place}/state"}
    environment = {**os.environ, **own, "MEMORYFIELD_MODEL": model, "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            yield Server(int(server.stdout.readline().split("127.0.0.1:")[1].split("/")[0]), server.pid)
        finally:
            server.terminate()
            server.wait(60)


@dataclass(frozen=True)
class Asked:
    """What became of many requests.

    Attributes:
        good: Answers with status 200.
        seconds: From the first request to the last answer.
        delays: Seconds from each request to its answer, ascending.
    """

    good: int
    seconds: float
    delays: Sequence[float]

    def delay(self, share: float) -> float:
        """Return the seconds within which this share of the requests was answered."""
        return self.delays[min(int(share * len(self.delays)), len(self.delays) - 1)]


def ask(port: int, paths: Sequence[str], total: int, clients: int) -> Asked:
    """Ask for paths in turn, *total* times, over so many connections that each wait for their answer."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]
    delays: list[float] = []
    sent = good = 0
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as stack:
        begun: dict[socket.socket, tuple[bytes, float]] = {}
        for _ in range(min(clients, total)):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(connection, selectors.EVENT_READ, connection)
            begun[connection] = (b"", 0.0)
        started = time.perf_counter()
        for connection in begun:
            connection.sendall(requests[sent % len(requests)])
            begun[connection] = (b"", time.perf_counter())
            sent += 1
        while len(delays) < total:
            for key, _ in ready.select(60):
                connection = key.data
                held, at = begun[connection]
                part = connection.recv(1 << 18)
                held += part
                head, blank, body = held.partition(b"\r\n\r\n")
                if not part:
                    raise ConnectionError("the server closed the connection")
                if not blank or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
                    begun[connection] = (held, at)
                    continue
                good += head.startswith(b"HTTP/1.1 200 ")
                delays.append(time.perf_counter() - at)
                if sent < total:
                    connection.sendall(requests[sent % len(requests)])
                    begun[connection] = (b"", time.perf_counter())
                    sent += 1
        seconds = time.perf_counter() - started
    return Asked(good, seconds, sorted(delays))
