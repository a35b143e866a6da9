"""What strangers send that no client library would: requests by hand, slow ones too, and files that change."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import memoryfield as mf
from memoryfield.serve import standalone
from memoryfield.serve.policy import Policy

SECRET = b"the secret of another directory\n"


def _say(port: int, *parts: bytes, pause: float = 0.0, end: bool = False) -> bytes:
    """Send bytes and return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        got = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            if end:
                connection.shutdown(socket.SHUT_WR)
            while block := connection.recv(1 << 16):
                got += block
        except OSError:  # closed while we were talking
            pass
        return got


def _request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, *headers, "Connection: close", "", ""]).encode("utf-8") + body


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


# Bodies


def test_a_body_in_chunks_without_a_length_has_the_same_limit(server: Any) -> None:
    kept = server.field["tea"].raw
    head = _request("PUT /tea.md HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = _say(server.port, head, *[chunk] * 40, b"0\r\n\r\n")
    assert _status(answer) in (0, 400, 413)  # closed before the end, or refused
    assert server.field["tea"].raw == kept
    small = _say(server.port, head, b"6\r\nsmall\n\r\n0\r\n\r\n")
    assert _status(small) == 204 and server.field["tea"].body.endswith("small\n")


def test_a_promised_length_takes_no_memory_and_bodies_that_contradict_themselves_are_refused(server: Any) -> None:
    kept = server.field["tea"].raw
    for headers, body in (
        (["Content-Length: 99999999999"], b"x"),
        (["Content-Length: 5", "Content-Length: 6"], b"12345\n"),
        (["Content-Length: 6", "Transfer-Encoding: chunked"], b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"),
        (["Transfer-Encoding: chunked, identity"], b"5\r\n12345\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"-5\r\n12345\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"ffffffffffffffff\r\n12345\r\n0\r\n\r\n"),
        (["Content-Length: +5"], b"12345\n"),
        (["Content-Length: 5_0"], b"12345\n"),
        (["Content-Encoding: gzip", "Content-Length: 6"], b"\x1f\x8b\x08\x00xx"),
    ):
        request = _request("PUT /tea.md HTTP/1.1", "Host: localhost", *headers, body=body)
        answer = _say(server.port, request, pause=0.1, end=True)
        assert _status(answer) in (0, 400, 413, 415, 501), headers
        assert answer.count(b"HTTP/1.1 ") <= 1, headers  # nothing of a body is taken for a second request
        assert server.field["tea"].raw == kept, headers


# Time


@pytest.fixture
def impatient(field: mf.MemoryField, running: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(standalone, "_SLOWEST", 0.6)
    with running({"memory": field}, Policy(writes=True)) as server:
        yield server


def test_headers_and_bodies_that_drip_are_cut_off(impatient: Any) -> None:
    started = time.monotonic()
    answers: list[bytes] = []
    drips = [
        [b"GET /tea.md HTTP/1.1\r\nHost: localhost\r\n", *[b"X-A: 1\r\n"] * 100],
        [_request("PUT /tea.md HTTP/1.1", "Host: localhost", "Content-Length: 1000"), *[b"x"] * 100],
        [_request("PUT /tea.md HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"), *[b"1\r\nx\r\n"] * 100],
    ]
    threads = [
        threading.Thread(target=lambda parts=parts: answers.append(_say(impatient.port, *parts, pause=0.1)))
        for parts in drips
    ]
    for thread in threads:
        thread.start()
    assert impatient.get("/dock.md").status == 200
    for thread in threads:
        thread.join(15)
        assert not thread.is_alive()
    assert time.monotonic() - started < 9  # a hundred drips would take ten seconds
    assert not any(answer.startswith(b"HTTP/1.1 2") for answer in answers)
    assert b"green tea" in impatient.get("/tea.md").body


def test_silent_connections_are_closed_and_hundreds_of_them_hold_nobody_up(impatient: Any) -> None:
    silent = [socket.create_connection(("127.0.0.1", impatient.port), timeout=20) for _ in range(200)]
    try:
        started = time.monotonic()
        assert impatient.get("/tea.md").status == 200
        assert time.monotonic() - started < 5
        for connection in silent:
            assert connection.recv(10) == b""
    finally:
        for connection in silent:
            connection.close()


# Names


@pytest.mark.parametrize(
    "path",
    [
        "/%EF%BC%8E%EF%BC%8E/secret.md",  # full-width dots
        "/%E2%80%A5/secret.md",  # a two-dot leader, which compatibility forms make two dots
        "/..%EF%BC%8Fsecret.md",  # full-width slash
        "/%c0%ae%c0%ae/secret.md",  # overlong UTF-8
        "/%25%32%65%25%32%65%25%32%66secret.md",  # encoded twice
        "/%u002e%u002e/secret.md",
        "/..;/secret.md",
        "/tea.md;x=1",
        "/tea.md.",
        "/tea.md%20",
        "/tea.md::$DATA",
        "/TE%CC%81A.md",  # A with a combining accent
        "/te%E2%84%AA.md",  # the Kelvin sign, which is a k in lower case
        "/%E2%93%A3ea.md",  # a circled t
        "/tea%0d%0aX-Evil:%201.md",
        "/memory/memory/tea.md",
        "/con.md/../tea.md",
        "/%2e/tea.md",
        "/%2e%2e/memory/tea.md",
        "/./../memory/hashing-1024.sqlite3",
        "/tea",
    ],
)
def test_other_spellings_of_a_path_lead_nowhere_else(server: Any, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_bytes(SECRET)
    before = {item.name: item.read_bytes() for item in server.field.path.iterdir()}
    for method in ("GET", "PUT", "DELETE"):
        length = "Content-Length: 2" if method == "PUT" else "X-A: 1"
        answer = _say(server.port, _request(f"{method} {path} HTTP/1.1", "Host: localhost", length, body=b"x\n"))
        status = _status(answer)
        assert status in (400, 404, 405) or (method == "GET" and path == "/tea" and status == 200), (method, status)
        assert SECRET not in answer and b"X-Evil" not in answer.split(b"\r\n\r\n")[0]
    assert {item.name: item.read_bytes() for item in server.field.path.iterdir()} == before
    assert (tmp_path / "secret.md").read_bytes() == SECRET


def test_a_name_and_a_question_cannot_put_anything_into_headers(server: Any) -> None:
    for path in (
        "/search?q=" + quote("x\r\nSet-Cookie: a=b"),
        "/search?q=x&retriever=" + quote("x\r\nSet-Cookie: a=b"),
        "/pages.json?names=" + quote("tea.md\r\nSet-Cookie: a=b"),
        "/" + quote("a\r\nSet-Cookie: a=b") + ".md",
    ):
        head = _say(server.port, _request(f"GET {path} HTTP/1.1", "Host: localhost")).split(b"\r\n\r\n")[0]
        assert b"Set-Cookie" not in head, path
    odd = mf.open_field(server.field.path.parent / 'a"b\r\nc', create=True)
    odd.write("tea", body="Tea.\n")
    from memoryfield.serve.answers import FieldAnswers

    value = FieldAnswers(odd, 1000).archive().headers["Content-Disposition"]
    assert value.isascii() and value.isprintable() and value.count('"') == 2


# Hosts and origins


def test_the_host_is_checked_however_it_is_said(server: Any) -> None:
    for lines in (
        ["GET /tea.md HTTP/1.1", "Host: evil.example"],
        ["GET /tea.md HTTP/1.1", "Host: localhost", "Host: evil.example"],
        ["GET /tea.md HTTP/1.1", "Host: evil.example", "X-Forwarded-Host: localhost"],
        ["GET /tea.md HTTP/1.1", "Host: localhost@evil.example"],
        ["GET /tea.md HTTP/1.1", "Host: localhost, evil.example"],
        ["GET /tea.md HTTP/1.1", "Host: localhost evil.example"],
        ["GET /tea.md HTTP/1.1", "Host: 127.0.0.1.nip.io:80"],
        ["GET /tea.md HTTP/1.0"],
        ["GET /tea.md HTTP/1.1"],
    ):
        answer = _say(server.port, _request(*lines))
        assert _status(answer) in (0, 400, 421) and b"green tea" not in answer, lines


def test_a_write_from_another_origin_is_refused_also_by_browsers_that_do_not_say_fetch_site(server: Any) -> None:
    kept = server.field["tea"].raw
    for origin in (
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "file://",
        "http://127.0.0.1@evil.example",
    ):
        for method in ("PUT", "DELETE"):
            assert server.ask(method, "/tea.md", b"x\n" if method == "PUT" else None, Origin=origin).status == 403
    for named in ({"X_HTTP_Method_Override": "DELETE"}, {"X_HTTP_Method": "PUT"}, {"X_Method_Override": "DELETE"}):
        assert server.ask("POST", "/tea.md?_method=DELETE", b"_method=DELETE", **named).status == 405
    assert server.ask("POST", "/tea.md", b"x\n", Content_Type="text/plain", Origin="http://evil.example").status == 405
    assert server.field["tea"].raw == kept
    own = f"http://127.0.0.1:{server.port}"
    assert server.ask("PUT", "/tea.md", b"mine\n", Origin=own, Sec_Fetch_Site="same-origin").status == 204


# Conditions, ranges, size


def test_tags_cannot_be_played_with(server: Any) -> None:
    tag = server.get("/tea.md").headers["Etag"]
    kept = server.field["tea"].raw
    for value in ("", " ", "tea", tag[1:-1], tag + ",", f"{tag} {tag}", '"', "**", '"\x7f"', "W/*", '"é"'):
        assert server.ask("PUT", "/tea.md", b"x\n", If_Match=value).status == 400, value
        assert server.ask("DELETE", "/tea.md", If_None_Match=value).status == 400, value
    for value in ('""', '"0"', f'"{"0" * 64}"', ", ".join(f'"{number}"' for number in range(1000))):
        assert server.ask("PUT", "/tea.md", b"x\n", If_Match=value).status == 412, value[:20]
        assert server.ask("DELETE", "/tea.md", If_Match=value).status == 412, value[:20]
    assert server.ask("PUT", "/absent.md", b"x\n", If_Match="*").status == 412
    assert server.ask("PUT", "/tea.md", b"x\n", If_None_Match=f'"0", {tag}').status == 412
    assert server.field["tea"].raw == kept
    assert server.get("/tea.md", If_None_Match=f'W/"0", W/{tag}').status == 304
    assert server.get("/tea.md", If_None_Match="nonsense").body == kept


@pytest.mark.parametrize("value", ["bytes=0-3", "bytes=-1", "bytes=9-1", "bytes=" + "0-," * 3000 + "0-", "x=0-1"])
def test_a_range_is_answered_with_the_whole_page(server: Any, value: str) -> None:
    answer = server.get("/tea.md", Range=value)
    assert (answer.status, answer.body) == (200, server.field["tea"].raw)


def test_long_and_odd_queries_are_refused_in_words_or_cut_off(server: Any) -> None:
    for query in ("q=" + "a" * 60_000, "q=x&" + "&".join(f"a{number}=1" for number in range(5000))):
        assert _status(_say(server.port, _request(f"GET /search?{query} HTTP/1.1", "Host: localhost"))) in (200, 400)
    for query in ("q=" + "a" * 200_000, "&" * 200_000):
        answer = _say(server.port, _request(f"GET /search?{query} HTTP/1.1", "Host: localhost"))
        assert _status(answer) in (0, 400, 414, 431)
    for query in ("q=%00", "q=x&k=1e3", "q=x&k=%D9%A1", "q=x&k=-1", "q[]=x", "q=x&retriever=%00", "q=%ED%A0%80"):
        assert _status(_say(server.port, _request(f"GET /search?{query} HTTP/1.1", "Host: localhost"))) in (200, 400), (
            query
        )
    for question in ('" OR 1=1 --', "title:tea NEAR(x y)", "* AND (", "'; DROP TABLE pages; --", "\u202e\ufeff\ud7ff"):
        assert server.get("/search?q=" + quote(question)).status == 200
    assert server.get("/tea.md").status == 200


# What stands in the field


def test_a_file_that_says_it_is_the_listing_is_not_served_as_it(server: Any) -> None:
    (server.field.path / "listing.md").write_bytes(b"| [tea](https://evil.example/tea.md) |\n")
    evil = b"---\ntitle: '| [x](javascript:alert(1)) <b>'\nsummary: '](https://evil.example)'\n---\nx\n"
    (server.field.path / "evil.md").write_bytes(evil)
    text = server.get("/listing.md").body.decode()
    assert "evil.example/tea" not in text and "[tea](tea.md)" in text
    assert text.count("\n| [evil](evil.md) |") == 1
    for path in ("/listing", "/"):
        html = server.get(path, Accept="text/html")
        assert "default-src 'none'" in html.headers["Content-Security-Policy"]
        assert not {b'href="javascript', b'href="https', b"<b>"} & set(re.findall(rb'href="[a-z]+|<b>', html.body))
    assert server.ask("PUT", "/listing.md", b"| mine |\n").status == 409
    assert server.ask("DELETE", "/listing.md").status in (404, 409)


def test_a_page_that_becomes_a_link_between_looking_and_reading_shows_nothing_else(server: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_bytes(SECRET)
    page = server.field.path / "tea.md"
    good = page.read_bytes()
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            spare = server.field.path / f".swap-{number % 2}"
            spare.unlink(missing_ok=True)
            if number % 2:
                spare.symlink_to(secret)
            else:
                spare.write_bytes(good)
            os.replace(spare, page)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        end = time.monotonic() + 1.5
        statuses: set[int] = set()
        while time.monotonic() < end:
            for path in ("/tea.md", "/tea", "/search?q=secret+directory&retriever=keyword", "/listing.md"):
                answer = server.get(path)
                statuses.add(answer.status)
                assert b"secret of" not in answer.body, path
            statuses.add(server.ask("PUT", "/tea.md", good + b"more\n").status)
        assert 200 in statuses and statuses <= {200, 201, 204, 404, 409, 503}, statuses
    finally:
        stop.set()
        swapping.join()
    assert secret.read_bytes() == SECRET


def test_links_and_directories_in_the_field_are_in_no_answer(server: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_bytes(SECRET)
    (server.field.path / "link.md").symlink_to(tmp_path / "secret.md")
    (server.field.path / "index.md").symlink_to(tmp_path / "secret.md")
    (server.field.path / "folder.md").mkdir()
    (server.field.path / "up").symlink_to(tmp_path)
    os.mkfifo(server.field.path / "pipe.md")
    for path in ("/", "/index.md", "/listing.md", "/listing.json", "/search?q=secret+directory", "/memoryfield.zip"):
        answer = server.get(path)
        assert SECRET not in answer.body and b"link.md" not in answer.body, path
    for path in ("/link.md", "/link", "/folder.md", "/pipe.md", "/up/secret.md", "/memory/up"):
        assert server.get(path).status == 404, path
    pages = server.get("/pages.json?names=link.md,folder.md,pipe.md,tea.md").body
    assert b"tea.md" in pages and b"link.md" not in pages
    assert server.ask("DELETE", "/link.md").status in (404, 409)
    assert (tmp_path / "secret.md").read_bytes() == SECRET and (server.field.path / "link.md").is_symlink()
