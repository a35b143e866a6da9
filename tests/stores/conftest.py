"""Places that really answer, on loopback or in a directory, for the tests of fields that live elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import pytest

from memoryfield.errors import PageChanged, PageExists, StoreUnreachable
from memoryfield.stores.protocol import Fetched, Listed, Listing, sorted_out

TEA = b"---\ntitle: Tea\nuuid: 0d5a2bd4-2f0c-4a57-9b2c-3d64d1a8a001\n---\nAnn drinks green tea, see [dock](dock.md).\n"
DOCK = b"# Dock\n\nThe dock is nine metres deep.\n"


@dataclass
class Memory:
    """A store in a dictionary that counts its calls and can be told to fail."""

    place: str = "test://memory"
    files: dict[str, bytes] = field(default_factory=lambda: {"tea.md": TEA, "dock.md": DOCK})
    read_only: bool = False
    calls: list[str] = field(default_factory=list)
    fails: Callable[[str], bool] = lambda call: False
    before: Callable[[str], object] = lambda call: None

    @staticmethod
    def tag(raw: bytes) -> str:
        return hashlib.md5(raw, usedforsecurity=False).hexdigest()

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.before(call)
        if self.fails(call):
            raise StoreUnreachable(f"{self.place} cannot be reached")

    def list(self) -> Listing:
        self._called("list")
        return sorted_out([Listed(n, self.tag(raw), len(raw), 10**18) for n, raw in self.files.items()], self.place)

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        for item in wanted:
            self._called(f"read {item.filename}")
            raw = self.files.get(item.filename)
            yield Fetched(item.filename, raw, "" if raw is None else self.tag(raw), 10**18)

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        self._called(f"write {filename}")
        there = self.files.get(filename)
        if tag is None and there is not None:
            raise PageExists(f"{filename} is there")
        if tag is not None and (there is None or self.tag(there) != tag):
            raise PageChanged(f"{filename} was changed")
        self.files[filename] = raw
        return self.tag(raw)

    def delete_if(self, filename: str, tag: str) -> None:
        self._called(f"delete {filename}")
        if filename not in self.files or self.tag(self.files[filename]) != tag:
            raise PageChanged(f"{filename} was changed")
        del self.files[filename]

    def open_zip(self) -> BinaryIO | None:
        return None


@pytest.fixture
def memory() -> Memory:
    return Memory()


# --- answers that are none --------------------------------------------------------------------------------------------


def begun(handler: BaseHTTPRequestHandler, status: int = 200, **headers: str) -> None:
    """Send the head of an answer after which the connection ends."""
    handler.send_response(status)
    for name, value in {"ETag": '"x"', "Last_Modified": formatdate(1.6e9, usegmt=True), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.close_connection = True


def whole(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Send an answer."""
    begun(handler, status, Content_Length=str(len(body)), **headers)
    handler.wfile.write(body)


def cut(handler: BaseHTTPRequestHandler) -> None:
    begun(handler, Content_Length="1000")
    handler.wfile.write(b"half a page")


def chunk_cut(handler: BaseHTTPRequestHandler) -> None:
    begun(handler, Transfer_Encoding="chunked")
    handler.wfile.write(b"b\r\nhalf a page\r\n")


def closed(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)
    handler.close_connection = True


def dripping(handler: BaseHTTPRequestHandler) -> None:
    begun(handler, Content_Length="1000")
    for _ in range(60):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


BROKEN: dict[str, Callable[[BaseHTTPRequestHandler], object]] = {
    "cut": cut,
    "cut in chunks": chunk_cut,
    "closed": closed,
    "slow": slow,
    "dripping": dripping,
    "boasting": lambda h: begun(h, Content_Length="99999999999"),
    "500": lambda h: whole(h, b"<secret trace>", 500),
    "503": lambda h: whole(h, b"", 503, Retry_After="0"),
    "403": lambda h: whole(h, b"", 403),
    "418": lambda h: whole(h, b"", 418),
    "304": lambda h: begun(h, 304),
    "html": lambda h: whole(h, b"<html>log in</html>", Content_Type="text/html; charset=utf-8"),
    "login": lambda h: begun(h, 302, Location="/login", Content_Length="0"),
    "packed": lambda h: whole(h, gzip.compress(b"x" * 10**6), Content_Encoding="gzip"),
    "packed twice": lambda h: whole(h, gzip.compress(gzip.compress(b"x" * 10**7)), Content_Encoding="gzip, gzip"),
    "another text": lambda h: whole(h, b"forged\n"),
}


# --- a server that speaks the part of S3 that a field needs -----------------------------------------------------------


@dataclass
class Bucket:
    """A bucket on loopback."""

    port: int = 0
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    trouble: Callable[[str], int] = lambda line: 0
    bend: Callable[[Any, str], bool] = lambda handler, line: False

    def options(self) -> dict[str, Any]:
        return {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": "AKIATESTTESTTEST",
            "secret_access_key": "very-secret-indeed",
            "retries": 1,
            "timeout": 5.0,
        }


def etag(raw: bytes) -> str:
    return f'"{hashlib.md5(raw, usedforsecurity=False).hexdigest()}"'


class _S3(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        told = f"<Error><Code>{code}</Code><AWSAccessKeyId>AKIATESTTESTTEST</AWSAccessKeyId></Error>"
        self._answer(status, told.encode(), Content_Type="application/xml")

    def _run(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/notes").lstrip("/")
        self.bucket.requests.append(f"{self.command} {key}")
        status = self.bucket.trouble(f"{self.command} {key}")
        if self.bucket.bend(self, f"{self.command} {key}"):
            return
        if status:
            self._error(status, "Trouble")
        elif not parts.path.startswith("/notes"):
            self._error(404, "NoSuchBucket")
        elif not key and self.command == "GET":
            self._listing(parse_qs(parts.query))
        elif self.command == "POST":  # the deletion of several objects
            for found in re.findall(rb"<Key>([^<]*)</Key>", body):
                self.bucket.objects.pop(unescape(found.decode()), None)
            self._answer(200, b"<DeleteResult></DeleteResult>", Content_Type="application/xml")
        elif self.command == "PUT":
            self._put(key, body)
        elif key not in self.bucket.objects:
            self._error(204 if self.command == "DELETE" else 404, "NoSuchKey")
        elif self.command == "DELETE":
            del self.bucket.objects[key]
            self._answer(204)
        else:
            raw = self.bucket.objects[key]
            self._answer(200, raw, ETag=etag(raw), Last_Modified=formatdate(1.6e9, usegmt=True))

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = _run

    def _put(self, key: str, body: bytes) -> None:
        there = self.bucket.objects.get(key)
        match, none = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if (none == "*" and there is not None) or (match is not None and there is not None and etag(there) != match):
            self._error(412, "PreconditionFailed")
        elif match is not None and there is None:
            self._error(404, "NoSuchKey")
        else:
            self.bucket.objects[key] = body
            self._answer(200, ETag=etag(body))

    def _listing(self, query: dict[str, list[str]]) -> None:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        keys = sorted(k for k in self.bucket.objects if k.startswith(prefix) and k > after)
        part, more = keys[:1000], len(keys) > 1000
        rows = "".join(
            f"<Contents><Key>{escape(k)}</Key><LastModified>2020-09-13T12:26:40.000Z</LastModified>"
            f"<ETag>{escape(etag(self.bucket.objects[k]))}</ETag><Size>{len(self.bucket.objects[k])}</Size></Contents>"
            for k in part
        )
        token = f"<NextContinuationToken>{escape(part[-1])}</NextContinuationToken>" if more else ""
        told = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        self._answer(200, told.encode(), Content_Type="application/xml")


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: tests break connections on purpose."""


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Serve on loopback and yield the port."""
    server = _Quiet(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="test-store")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


@pytest.fixture(name="listening")
def _listening() -> Any:
    """``listening(handler)`` as a context manager."""
    return listening


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    found = Bucket()
    handler = type("Handler", (_S3,), {"bucket": found})
    with listening(handler) as port:
        found.port = port
        yield found


@pytest.fixture
def broken() -> dict[str, Callable[[BaseHTTPRequestHandler], object]]:
    """Answers that are none, by name: each is called with the handler of a request."""
    return BROKEN


@pytest.fixture
def serving() -> Any:
    """The helpers of the server's own tests; ``serving.running(fields, policy)`` runs one on loopback."""
    name = "serve_conftest"
    if name not in sys.modules:
        spec = spec_from_file_location(name, Path(__file__).parents[1] / "serve" / "conftest.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
