"""The routes inside a real Jupyter server: its token opens them, and nothing else does."""

from __future__ import annotations

import base64
import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

import memoryfield as mf

TOKEN = "a-long-enough-token-for-tests"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("jupyter")
    field = mf.open_field(root / "memory", create=True)
    field.write("tea", title="Tea", body="Ann drinks green tea.\n")
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root"),
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
        '--ServerApp.jpserver_extensions={"memoryfield.serve.extension": True}',
    ]
    environment = {
        **os.environ,
        "MEMORYFIELD_FIELDS": f"memory={field.path}",
        "MEMORYFIELD_SERVE_WRITES": "1",
        "MEMORYFIELD_MODEL": "hashing-1024",
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_DATA_DIR": str(root / "data"),
    }
    log = root / "log.txt"
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        found = None
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text())
            if (found and _listens(int(found[1]))) or server.poll() is not None:
                break
            try:
                server.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        assert found, log.read_text()
        yield f"http://127.0.0.1:{found[1]}/memoryfield"
    finally:
        server.terminate()
        server.wait(30)


def _listens(port: int) -> bool:
    """The address is printed a moment before somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def _ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=body, method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.slow
def test_the_token_opens_the_routes_and_nothing_else_does(address: str) -> None:
    status, body = _ask(f"{address}/memory/tea.md")
    assert status == 401 and b"<html" not in body.lower()  # never the login page
    for header in (f"token {TOKEN}", "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()):
        status, body = _ask(f"{address}/memory/tea.md", Authorization=header)
        assert status == 200 and b"green tea" in body
        status, _ = _ask(f"{address}/memory/fog.md", "PUT", b"Fog.\n", Authorization=header)
        assert status in (201, 204)
    assert _ask(f"{address}/memory/fog.md", "PUT", b"Fog.\n")[0] in (401, 403)
    assert _ask(f"{address}/memory/tea.md", Authorization="token wrong")[0] == 401
    status, body = _ask(f"{address}/memory/search?q=tea", Authorization=f"token {TOKEN}")
    assert json.loads(body)["results"][0]["filename"] == "tea.md"
    status, body = _ask(f"{address}/", Authorization=f"token {TOKEN}")
    assert json.loads(body)["fields"][0]["name"] == "memory"


@pytest.mark.slow
def test_a_cookie_alone_reads_and_does_not_write(address: str) -> None:
    root = address.removesuffix("/memoryfield")
    jar = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(rfc2965=True))
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with browser.open(urllib.request.Request(url, body, named, method=method), timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    ask(f"{root}/login")
    xsrf = next(cookie.value or "" for cookie in jar if cookie.name == "_xsrf")
    form = urllib.parse.urlencode({"password": TOKEN, "_xsrf": xsrf}).encode()
    ask(f"{root}/login?next=%2Fapi%2Fstatus", "POST", form)
    assert ask(f"{address}/memory/tea.md") == 200
    page = f"{address}/memory/cookie.md"
    assert ask(page, "PUT", b"Cookie.\n") == 403
    assert ask(page, "PUT", b"Cookie.\n", X_XSRFToken="guessed") == 403
    xsrf = next(cookie.value or "" for cookie in jar if cookie.name == "_xsrf")
    assert ask(page, "PUT", b"Cookie.\n", X_XSRFToken=xsrf, Origin="http://evil.example") == 404  # what Jupyter says
    assert ask(page, "PUT", b"Cookie.\n", X_XSRFToken=xsrf, Origin=root, Sec_Fetch_Site="same-site") == 403
    assert ask(page, "PUT", b"Cookie.\n", X_XSRFToken=xsrf, Origin=root) == 201
    assert ask(page, "DELETE", X_XSRFToken=xsrf) == 204
