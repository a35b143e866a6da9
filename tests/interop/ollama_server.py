"""A small stand-in for Ollama on the loopback: deterministic vectors, and a record of every text that was asked for.

Both programs under test get their vectors here, so that a text embedded by one is found by a query of the other, and
so that the tests can count who embedded what.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

DIMENSIONS = 768
MODEL = "nomic-embed-text"


@dataclass(frozen=True)
class Call:
    """One request for embeddings, as it came over the wire."""

    model: str
    texts: tuple[str, ...]
    truncate: bool | None


def embed(text: str) -> list[float]:
    """Return a unit vector in which every word of *text* has a share, so that texts with common words are near."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        for at in range(0, 12, 3):
            place = int.from_bytes(digest[at : at + 2], "little") % DIMENSIONS
            vector[place] += 1.0 if digest[at + 2] & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    if length == 0.0:
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    return [value / length for value in vector]


class OllamaServer:
    """Listens on a free port of 127.0.0.1 while it is used as a context."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._unknown: list[str] = []
        self.delay = 0.0
        """Seconds that each text takes."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def calls(self) -> list[Call]:
        """Requests for embeddings since the last ``reset``."""
        with self._lock:
            return list(self._calls)

    @property
    def texts(self) -> list[str]:
        """Texts asked for since the last ``reset``, in order."""
        return [text for call in self.calls for text in call.texts]

    @property
    def documents(self) -> list[str]:
        """The texts that are no queries."""
        return [text for text in self.texts if not text.startswith("search_query: ")]

    @property
    def unknown(self) -> list[str]:
        """Paths asked for since the last ``reset`` that this server does not know."""
        with self._lock:
            return list(self._unknown)

    def reset(self) -> None:
        with self._lock:
            self._calls.clear()
            self._unknown.clear()
        self.delay = 0.0

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the reply to a request, or None where Ollama would say 404."""
        if path == "/api/embed":
            given = request.get("input", [])
            texts = (given,) if isinstance(given, str) else tuple(given)
            if request.get("model", "").removesuffix(":latest") != MODEL:
                return None
            with self._lock:
                self._calls.append(Call(request["model"], texts, request.get("truncate")))
            if self.delay:
                time.sleep(self.delay * len(texts))
            return {"model": request["model"], "embeddings": [embed(text) for text in texts]}
        if path == "/api/tags":
            return {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]}
        if path == "/api/show":
            return {"details": {"family": "nomic-bert"}, "model_info": {"nomic-bert.embedding_length": DIMENSIONS}}
        if path == "/api/version":
            return {"version": "0.12.0"}
        with self._lock:
            self._unknown.append(path)
        return None

    def __enter__(self) -> OllamaServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(owner: OllamaServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._reply(json.loads(body or b"{}"))

        def _reply(self, request: dict[str, Any]) -> None:
            reply = owner.answer(self.path, request)
            status = 404 if reply is None else 200
            body = json.dumps({"error": f"{self.path}: not found"} if reply is None else reply).encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    return Handler
