"""One request against servers that talk raw bytes: slowly, without an end, or with the key in their words."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import select
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryfield.errors import EmbeddingFailed, ModelNotReady
from memoryfield.index.embedders import transport
from memoryfield.index.embedders.redaction import redacted
from memoryfield.index.embedders.sentence import hub_reachable
from memoryfield.index.embedders.transport import Endpoint, Rejected, Unreachable

KEY = "sk-very/secret+0123456789"
DRIP = 0.05
LIMIT = 0.6


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAUSES", (0.01, 0.02, 0.03))


class RawServer:
    """Takes one connection after the other; sends *first* at once, then *drip* again and again."""

    def __init__(self, first: bytes, drip: bytes = b"", *, reads: bool = True) -> None:
        self.first, self.drip, self.reads = first, drip, reads
        self.asked = 0
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/x"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            if not select.select([self._listener], [], [], 0.02)[0]:
                continue
            connection, _ = self._listener.accept()
            self.asked += 1
            with connection, contextlib.suppress(OSError):
                if self.reads:
                    connection.recv(65536)
                connection.sendall(self.first)
                while self.drip and not self._over.wait(DRIP):
                    connection.sendall(self.drip)
                connection.shutdown(socket.SHUT_WR)
                while self.reads and connection.recv(65536):
                    pass

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()


@pytest.fixture
def raw_server() -> Iterator[Callable[..., RawServer]]:
    started: list[RawServer] = []

    def start(*arguments: Any, **settings: Any) -> RawServer:
        started.append(RawServer(*arguments, **settings))
        return started[-1]

    yield start
    for one in started:
        one.close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("first", "drip", "kind"),
    [
        (b"", b"H", Unreachable),
        (OK, b"X", Unreachable),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", Unreachable),
        (OK + b"Content-Length: 9999\r\n\r\n", b" ", EmbeddingFailed),
        (OK + b"Connection: close\r\n\r\n", b" ", EmbeddingFailed),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0", EmbeddingFailed),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", EmbeddingFailed),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n", EmbeddingFailed),
        (b"HTTP/1.1 400 Bad\r\nContent-Length: 9999\r\n\r\n", b" ", EmbeddingFailed),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n", b"0", EmbeddingFailed),
    ],
    ids=["status", "header", "continue", "body", "endless", "size", "extension", "trailer", "error", "busy"],
)
def test_a_server_that_drips_runs_into_the_time_limit(raw_server: Any, first: bytes, drip: bytes, kind: Any) -> None:
    """Every byte comes in time; all of them together do not."""
    server = raw_server(first, drip)
    started = time.monotonic()
    with pytest.raises(kind, match=r"timed out|was not done"):
        Endpoint(server.url, KEY, LIMIT).ask({"input": ["x"]})
    assert LIMIT * 0.9 < time.monotonic() - started < LIMIT + 2
    assert server.asked == 1, "a wait for nothing is not repeated"


@pytest.mark.parametrize("drip", [b"", b"\0"])
def test_a_handshake_that_drips_runs_into_the_time_limit(raw_server: Any, drip: bytes) -> None:
    server = raw_server(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xf0", drip or b"\x01")
    started = time.monotonic()
    with pytest.raises(Unreachable, match="timed out"):
        Endpoint(f"https://127.0.0.1:{server.port}/x", KEY, LIMIT).ask({}, retry=False)
    assert time.monotonic() - started < LIMIT + 2


def test_a_proxy_that_drips_runs_into_the_time_limit(raw_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = raw_server(b"HTTP/1.1 200 fine\r\n", b"X")
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    started = time.monotonic()
    with pytest.raises(Unreachable, match="timed out"):
        Endpoint("https://embeddings.invalid/x", KEY, LIMIT).ask({}, retry=False)
    assert time.monotonic() - started < LIMIT + 2 and server.asked == 1


def test_a_server_that_takes_nothing_runs_into_the_time_limit(raw_server: Any) -> None:
    server = raw_server(b"", b"", reads=False)
    server.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/x", KEY, LIMIT).ask({"input": "x" * 30_000_000})
        assert time.monotonic() - started < LIMIT + 3


def test_slow_but_in_time(raw_server: Any) -> None:
    server = raw_server(OK + b"Content-Length: 9\r\n\r\n[1", b" ")
    server.first += b",2,3]  "
    assert Endpoint(server.url, KEY, 20).ask() == [1, 2, 3]


def _messages(error: BaseException | None) -> str:
    """All that a log may show: the error and whatever hangs on it."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


def _ways_to_say(key: str) -> list[str]:
    return [
        key,
        key[:9] + "\n" + key[9:],
        key[:9] + "\r\n \t " + key[9:],
        " ".join(key),
        key[:9] + "\u200b" + key[9:],
        key[:9] + "\x1b[31m" + key[9:],
        json.dumps(key[:5] + "\n" + key[5:]),
        json.dumps(key).replace("/", "\\/"),
        key.replace("-", "\\u002d"),
        key.replace("+", "&#43;").replace("/", "&#x2F;"),
        urllib.parse.quote(key, safe=""),
        re.sub("%..", lambda escape: escape[0].lower(), urllib.parse.quote(key, safe="")),
        "".join(f"%{ord(character):02x}" for character in key),
        base64.b64encode(key.encode()).decode(),
        base64.urlsafe_b64encode(key.encode()).decode(),
        base64.encodebytes(key.encode()).decode(),
        *(base64.b64encode(f"{before}{key}".encode()).decode() for before in ("Bearer ", ":", "me:", "you:")),
    ]


@pytest.mark.parametrize("key", [KEY, "a&b \"c'\\d%41<e>0123456789", "k" * 40, "eyJ" + "hbGci0" * 300])
def test_a_key_is_found_in_any_usual_form(key: str) -> None:
    for said in _ways_to_say(key):
        kept = redacted(f"wrong key <{said}> given", [key])
        assert "***" in kept and kept.startswith("wrong key <") and kept.endswith("> given"), (said, kept)
        assert len(kept) < 40, (said, kept)


def test_other_text_stays_as_it_is() -> None:
    text = "the input length exceeds 100%25 of the context & <b>船</b>\n\\u0041"
    assert redacted(text, [KEY, ""]) == text
    assert redacted(text, []) == text
    assert redacted("", [KEY]) == ""


@pytest.mark.parametrize("place", ["reason", "body", "no JSON", "status line"])
@pytest.mark.parametrize("said", _ways_to_say(KEY))
def test_what_a_server_says_shows_no_key_and_no_escapes(raw_server: Any, place: str, said: str) -> None:
    words = f"\x1b[2J\x9b1m\u202e bad {said} \x07".encode()
    in_line = words.replace(b"\r", b" ").replace(b"\n", b" ")
    answer = {
        "reason": b"HTTP/1.1 400 " + in_line + b"\r\nContent-Length: 0\r\n\r\n",
        "body": b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n" + words,
        "no JSON": OK + b"Connection: close\r\n\r\n" + b"<" * 30 + words,
        "status line": in_line + b"\r\n",
    }[place]
    server = raw_server(answer)
    with pytest.raises((EmbeddingFailed, ModelNotReady)) as failure:
        Endpoint(server.url, KEY, 20).ask({}, retry=False)
    shown = _messages(failure.value)
    assert shown.isprintable() or set(shown) - {"\n"} == {c for c in shown if c.isprintable()}
    assert "\u202e" not in shown and "***" in shown
    bare = "".join(shown.split())
    for form in (KEY, KEY[:14], KEY[-14:], *map("".join, map(str.split, _ways_to_say(KEY)))):
        assert form not in bare


def test_a_proxys_words_show_no_key(raw_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = raw_server(f"HTTP/1.1 407 no \x1b[31m {KEY}\r\n\r\n".encode())
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(Unreachable, match=r"407 no .*\*\*\*") as failure:
        Endpoint("https://embeddings.invalid/x", KEY, 20).ask({}, retry=False)
    assert KEY not in _messages(failure.value) and "\x1b" not in _messages(failure.value)


def test_a_key_in_the_query_of_the_address_is_not_echoed(raw_server: Any) -> None:
    server = raw_server(b"HTTP/1.1 400 no a0b1c2d3e4f5 in 2024-02-01\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(Rejected, match=r"400: no \*\*\* in 2024-02-01$"):
        Endpoint(f"{server.url}?api-key=a0b1c2d3e4f5&api-version=2024-02-01").ask()


@pytest.mark.parametrize("location", [b"http://[", b"http://h:9x/", b"file:///etc/passwd", b"\x1b[31m", b""])
def test_redirects_to_no_address(raw_server: Any, location: bytes) -> None:
    server = raw_server(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
    with pytest.raises(Rejected, match="302: it points to another address, which is not followed"):
        Endpoint(server.url, KEY, 20).ask({})


def test_a_host_name_that_cannot_be() -> None:
    with pytest.raises(Unreachable):
        Endpoint(f"http://{'a' * 70}.invalid/x", KEY, 20).ask(retry=False)


@pytest.mark.parametrize(("first", "drip"), [(b"\x1b[31m hello\r\n\r\n", b""), (OK, b"X")])
def test_the_probe_of_the_hub_takes_no_nonsense(
    raw_server: Any, monkeypatch: pytest.MonkeyPatch, first: bytes, drip: bytes
) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", raw_server(first, drip).url)
    before = set(threading.enumerate())
    reachable, seen = hub_reachable(LIMIT)
    assert not reachable and seen.isprintable()
    for thread in set(threading.enumerate()) - before:
        thread.join(2)
        assert not thread.is_alive(), "the probe's own thread ends as well"
