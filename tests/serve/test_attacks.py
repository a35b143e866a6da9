"""What strangers try: paths, hosts, tokens, bodies, slow clients, pages that want to run."""

from __future__ import annotations

import base64
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import QueryError
from memoryfield.serve.policy import Meter, Policy, is_loopback
from memoryfield.serve.rendering import markdown_html, page_html

TOKEN = "a-long-enough-token-for-tests"
OUTSIDE = [
    "/../secret.md",
    "/..%2fsecret.md",
    "/%2e%2e/secret.md",
    "/%2e%2e%2fsecret.md",
    "/..%252fsecret.md",
    "/..%c0%afsecret.md",
    "/memory/../../secret.md",
    "/memory/..%5csecret.md",
    "//etc/passwd",
    "/memory//etc/passwd",
    "/%00.md",
    "/tea.md%00.txt",
    "/tea.md/",
    "/./tea.md",
    "/.hidden.md",
    "/hashing-1024.sqlite3",
    "/memory/hashing-1024.sqlite3",
    "/TEA.md",
    "/tea.MD",
    "/tea.md%0a",
    "/" + "a" * 5000 + ".md",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_but_pages_can_be_reached(server: Any, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("secret\n")
    (server.field.path / ".hidden.md").write_text("secret\n")
    server.field.sync(progress=False)
    before = sorted(p.name for p in server.field.path.iterdir())
    for method in ("GET", "PUT", "DELETE"):
        answer = server.ask(method, path, b"x\n" if method == "PUT" else None)
        assert answer.status in (400, 404, 405, 414, 431), (method, answer.status)
        assert answer.body != b"secret\n" and b"SQLite" not in answer.body
    assert sorted(p.name for p in server.field.path.iterdir()) == before
    assert (tmp_path / "secret.md").read_text() == "secret\n"


def test_a_link_in_the_field_is_not_served(server: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret\n")
    (server.field.path / "link.md").symlink_to(tmp_path / "secret.md")
    assert server.get("/link.md").status == 404
    assert server.ask("PUT", "/link.md", b"x\n").status == 409
    assert (tmp_path / "secret.md").read_text() == "secret\n"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_another_host_is_not_answered(server: Any, host: str) -> None:
    assert server.get("/tea.md", Host=host).status == 421


def test_known_hosts_are_answered(server: Any) -> None:
    for host in (f"127.0.0.1:{server.port}", "localhost", f"[::1]:{server.port}", "LOCALHOST."):
        assert server.get("/tea.md", Host=host).status == 200
    assert Policy(hosts=("box.example",)).knows_host("box.example:80")


def test_a_token_is_needed_for_everything_and_basic_shows_it(running: Any, field: mf.MemoryField) -> None:
    with running({"memory": field}, Policy(writes=True, token=TOKEN)) as server:
        for path in ("/", "/tea.md", "/search?q=x", "/memoryfield.zip", "/openapi.json"):
            answer = server.get(path)
            assert answer.status == 401 and answer.headers["Www-Authenticate"].startswith("Basic")
            assert b"<" not in answer.body  # never a login page
        assert server.ask("PUT", "/tea.md", b"x\n").status == 401
        basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        assert server.get("/tea.md", Authorization=f"Basic {basic}").status == 200
        assert server.get("/tea.md", Authorization=f"token {TOKEN}").status == 200
        for wrong in ("Basic !!!", "Basic " + base64.b64encode(b"\xff\xfe").decode(), "token ", f"token {TOKEN}x", "x"):
            assert server.get("/tea.md", Authorization=wrong).status == 401


def test_writes_are_never_exposed_without_a_token() -> None:
    with pytest.raises(QueryError, match="MEMORYFIELD_SERVE_TOKEN"):
        Policy(writes=True).check_address("0.0.0.0")
    with pytest.raises(QueryError, match="shorter"):
        Policy(writes=True, token="short").check_address("127.0.0.1")
    Policy(writes=True).check_address("127.0.0.1")
    Policy(writes=True, token=TOKEN).check_address("0.0.0.0")
    Policy().check_address("0.0.0.0")
    assert TOKEN not in repr(Policy(token=TOKEN))
    assert [is_loopback(a) for a in ("localhost", "::1", "127.9.9.9", "0.0.0.0", "box")] == [True] * 3 + [False] * 2


def test_a_page_of_another_site_cannot_write(server: Any) -> None:
    assert server.ask("PUT", "/tea.md", b"x\n", Sec_Fetch_Site="cross-site").status == 403
    assert server.ask("POST", "/tea.md", b"x\n").status == 405
    assert server.ask("OPTIONS", "/tea.md", Origin="http://evil.example").status == 405
    assert "Access-Control-Allow-Origin" not in server.get("/tea.md", Origin="http://evil.example").headers


def test_a_large_body_is_refused(server: Any) -> None:
    kept = server.field["tea"].raw
    try:
        status = server.ask("PUT", "/tea.md", b"x" * (3 << 20)).status
    except (ConnectionError, BrokenPipeError):
        status = 413  # closed while it was still sending
    assert status in (400, 413) and server.field["tea"].raw == kept
    assert server.get("/tea.md").status == 200


def test_slow_clients_hold_nobody_up(server: Any) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"GET /tea.md HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        started = time.monotonic()
        assert server.get("/tea.md").status == 200
        assert time.monotonic() - started < 5
    finally:
        for connection in slow:
            connection.close()


def test_garbage_on_the_socket_ends_in_a_refusal(server: Any) -> None:
    for garbage in (b"\x16\x03\x01\x00", b"GET\r\n\r\n", b"PUT /a.md HTTP/1.1\r\nContent-Length: -5\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1000)
    assert server.get("/tea.md").status == 200


def test_one_address_cannot_ask_without_end(running: Any, field: mf.MemoryField) -> None:
    with running({"memory": field}, Policy(per_second=2)) as server:
        statuses = [server.get("/tea.md").status for _ in range(14)]
    assert statuses[0] == 200 and statuses[-1] == 429
    meter = Meter(1)
    assert all(meter.allows("a", 0.0) for _ in range(4)) and not meter.allows("a", 0.0)
    assert meter.allows("b", 0.0) and meter.allows("a", 1.0) and not meter.allows("a", 1.0)
    for number in range(20_000):
        meter.allows(str(number), 2.0)
    assert len(meter._left) <= 10_000


HOSTILE = """<script>alert(1)</script>

[click](javascript:alert(1)) [data](data:text/html;base64,xx) <img src=x onerror=alert(1)>

![x](https://evil.example/pixel.png) <https://ok.example>

<style>body{display:none}</style>

| a | b |
|---|---|
| <b onclick=x>1</b> | 2 |
"""


def test_a_hostile_page_runs_nothing_and_asks_for_nothing() -> None:
    html = markdown_html(HOSTILE)
    for bad in ("<script", "<img", "<style", "<b", 'href="javascript', 'href="data'):
        assert bad not in html.lower(), bad
    assert '<a href="https://ok.example" rel="noopener noreferrer nofollow">' in html
    page = mf.Page("x", b"---\ntitle: <script>x</script>\n'<k>': <v>\n---\n" + HOSTILE.encode())
    whole = page_html(page)
    assert whole.count("<script") == 0 and whole.count("<style>") == 1 and "&lt;script&gt;" in whole
