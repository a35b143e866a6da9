"""Does the work of one peer and times it; started by ``peers.py`` with the Python of the peer's own environment.

Requests and replies are JSON, one a line. Embedding is taken out on both sides: the peer's function that calls the
model is replaced by one that hands out vectors at no cost.
"""

from __future__ import annotations

import array
import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DIMENSIONS = 768


def read_vectors(file: str) -> list[list[float]]:
    """Return vectors from a file of plain float32."""
    values = array.array("f", Path(file).read_bytes())
    return [list(values[start : start + DIMENSIONS]) for start in range(0, len(values), DIMENSIONS)]


def timed(work: Callable[[], Any], times: int) -> dict[str, Any]:
    """Return the mean CPU and clock seconds of *work*, and what it said last."""
    said: Any = None
    clock, started = time.perf_counter(), time.process_time()
    for _ in range(times):
        said = work()
    cpu, passed = time.process_time() - started, time.perf_counter() - clock
    return {"cpu": cpu / times, "wall": passed / times, "said": said}


class Tool:
    """memoryfield-tool."""

    def __init__(self) -> None:
        from memoryfield_tool import embed, index, search, transport

        self._index, self._search, self._transport, self._embed = index, search, transport, embed
        self._free = [0.01] * DIMENSIONS

    def _use(self, directory: str, vectors: Iterator[list[float]]) -> None:
        self._root = Path(directory)
        self._pages = self._transport.local(self._root)
        self._path = self._index.index_path(self._root)
        self._embed.embed_texts = lambda texts: [next(vectors) for _ in texts]

    def prepare_search(self, directory: str, questions: str, **_: Any) -> None:
        self._use(directory, itertools.cycle(read_vectors(questions)))

    def search(self) -> int:
        return len(self._search.search_field(self._pages, self._path, "a question"))

    def prepare_sync(self, directory: str) -> None:
        self._use(directory, itertools.repeat(self._free))

    def sync(self) -> Any:
        return self._index.build_index(self._pages, self._path, progress=False)

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)


class Mf:
    """The other project's ``memoryfield``."""

    def __init__(self) -> None:
        import sqlite3

        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            import pysqlite3

            sys.modules["sqlite3"] = pysqlite3
            sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
        from mf import db, embedder, indexer, search

        self._db, self._indexer, self._search, self._blob = db, indexer, search, embedder.vec_blob
        self._free = [0.01] * DIMENSIONS
        indexer._embed_pages = lambda pages, model_code: {page.uuid: self._free for page in pages}
        self._connection: Any = None

    def _open(self, directory: str) -> None:
        self.forget()
        self._root = Path(directory)
        self._db.init_field(self._root, "nomic-embed-text-v1.5", DIMENSIONS)
        self._connection = self._db.open_field(self._root)

    def prepare_search(self, directory: str, questions: str, vectors: str) -> None:
        self._open(directory)
        self._questions = itertools.cycle(read_vectors(questions))
        with open(vectors, "rb") as file:
            number = 0
            while row := file.read(4 * DIMENSIONS):
                self._connection.execute("INSERT INTO vec (page_uuid, embedding) VALUES (?, ?)", (f"{number:08}", row))
                number += 1
        self._connection.commit()

    def search(self) -> int:
        return len(self._search._dense_search(self._connection, next(self._questions), 20))

    def prepare_sync(self, directory: str) -> None:
        self._open(directory)

    def sync(self) -> Any:
        if self._connection is None:
            self._open(str(self._root))
        done = self._indexer.index_field(self._root, self._connection)
        return [len(done.upserted), len(done.deleted), done.unchanged]

    def forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._root / f"{self._db.DB_FILENAME}{ending}")


def serve(name: str) -> None:
    """Answer requests until there are none left."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the peer prints does not belong into the replies
    peer: Tool | Mf | None = None
    for line in sys.stdin:
        request = json.loads(line)
        job = request.pop("job")
        try:
            if peer is None:
                peer = Tool() if name == "memoryfield-tool" else Mf()
            reply = answer(peer, job, request)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def answer(peer: Tool | Mf, job: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Do one job."""
    if job == "hello":
        return {}
    if job == "search":
        return timed(peer.search, settings["times"])
    if job == "sync":
        return timed(peer.sync, settings["times"])
    if job == "first_index":
        peer.forget()
        return timed(peer.sync, 1)
    getattr(peer, job)(**settings)
    return {}


if __name__ == "__main__":
    serve(sys.argv[1])
