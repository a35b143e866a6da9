"""Requests a second of ``memoryfield serve``: search and pages of a field of 1,000, several clients at once."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import material
from measure import Results, arguments

CLIENTS = 8


def _ask(port: int, path: str, count: int) -> int:
    """Ask *count* times over one connection; return how many answers were 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    good = 0
    for _ in range(count):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        good += answer.status == 200
    connection.close()
    return good


def _rate(port: int, path: str, total: int) -> tuple[float, int]:
    _ask(port, path, 3)  # what is loaded at the first request is loaded
    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        good = sum(clients.map(lambda _: _ask(port, path, total // CLIENTS), range(CLIENTS)))
    return good / (time.perf_counter() - started), good


def main() -> None:
    options = arguments(__doc__ or "")
    total = 160 if options.quick else 1600
    results = Results("HTTP", f"{CLIENTS} clients on one machine with the server; requests a second on the clock.")
    with material.workspace() as place:
        field = material.write_pages(Path(place) / "field", 1000)
        command = [sys.executable, "-m", "memoryfield.cli", "serve", str(field), "--port", "0"]
        own = {"MEMORYFIELD_CACHE_DIR": f"{place}/cache", "MEMORYFIELD_STATE_DIR": f"{place}/state"}
        environment = {**os.environ, **own, "MEMORYFIELD_MODEL": "hashing-1024"}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
            first = next(field.glob("*.md")).name
            for what, path, reach in (
                ("search by vector, hashing of words included", "/search?q=harbour+crane&retriever=vector", 200),
                ("search by words", "/search?q=harbour+crane&retriever=keyword", 200),
                ("hybrid search", "/search?q=harbour+crane", 200),
                ("a page", f"/{first}", None),
            ):
                rate, good = _rate(port, path, total)
                seen = f"{rate:.0f} a second ({good} of {total // CLIENTS * CLIENTS} answered)"
                wanted = f"at least {reach} a second" if reach else ""
                results.add(what, "", "", seen, None, wanted, None if reach is None else rate >= reach)
        finally:
            server.terminate()
            server.wait(30)
    results.print()


if __name__ == "__main__":
    main()
