"""A field over HTTP: both layouts, our own server and one that misbehaves in every way that was thought of."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import (
    FieldNotFound,
    PageChanged,
    PageExists,
    QueryError,
    ReadOnlyField,
    StoreError,
    StoreRefused,
    StoreUnreachable,
)
from memoryfield.format.directory import PageDirectory
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.serve.policy import Policy
from memoryfield.stores.http import HttpStore
from memoryfield.stores.opening import open_store
from memoryfield.stores.pages import StorePages
from memoryfield.stores.reading import digest_tag

TEA = b"---\ntitle: Tea\n---\nGreen tea, see [dock](dock.md).\n"
DOCK = b"# Dock\n\nThe dock is nine metres deep.\n"


@pytest.fixture
def home(tmp_path: Path) -> mf.MemoryField:
    place = tmp_path / "memory"
    place.mkdir()
    (place / "tea.md").write_bytes(TEA)
    (place / "dock.md").write_bytes(DOCK)
    return mf.open_field(place, model="hashing-1024")


@pytest.fixture
def address(home: mf.MemoryField, serving: Any) -> Iterator[str]:
    with serving.running({"memory": home}, Policy(writes=True, per_second=10_000)) as server:
        yield f"http://127.0.0.1:{server.port}/memory"


# --- our own server ---------------------------------------------------------------------------------------------------


def test_reading_and_writing(home: mf.MemoryField, address: str) -> None:
    for place in (address, address.removesuffix("/memory")):
        away = mf.open_field(place, model="hashing-1024")
        assert away.names() == ["dock", "tea"] and away["tea"].raw == TEA and not away.read_only
        name = f"coal-{len(place)}"
        page = away.write(name, title="Coal", body="black\n")
        assert home[name].raw == page.raw
        away.edit(name, append="and hard\n")
        assert home[name].body.endswith("and hard\n")
        away.delete(name)
        assert name not in home
    away.rename("dock", "deep-dock")
    assert "[dock](deep-dock.md)" in home["tea"].body and "dock" not in home
    assert [hit.name for hit in away.search("nine metres", k=1, progress=False)] == ["deep-dock"]


def test_conditions_are_kept_by_the_server(home: mf.MemoryField, address: str) -> None:
    store = HttpStore(address)
    tag = store.list().pages["tea.md"].tag
    home.edit("tea", append="theirs\n")
    for act in (lambda: store.write_if("tea.md", b"ours\n", tag), lambda: store.delete_if("tea.md", tag)):
        with pytest.raises(PageChanged):
            act()
    with pytest.raises(PageExists):
        store.write_if("dock.md", b"ours\n", None)
    assert home["tea"].body.endswith("theirs\n") and home["dock"].raw == DOCK


def test_a_uuid_that_the_server_keeps_is_read_back(home: mf.MemoryField, address: str) -> None:
    home.edit("tea", keys={"uuid": "0d5a2bd4-2f0c-4a57-9b2c-3d64d1a8a001"})
    store = HttpStore(address)
    tag = store.list().pages["tea.md"].tag
    assert store.write_if("tea.md", b"---\ntitle: Tea\n---\nblack\n", tag) == "", "the stored bytes are others"


def test_a_server_without_writes(home: mf.MemoryField, serving: Any) -> None:
    with serving.running({"memory": home}, Policy()) as server:
        away = mf.open_field(f"http://127.0.0.1:{server.port}/memory", model="hashing-1024")
        assert away.names() == ["dock", "tea"] and away.read_only
        with pytest.raises(ReadOnlyField):
            away.write("coal", title="Coal")
        with pytest.raises(ReadOnlyField, match="takes no changes"):
            HttpStore(away.place).write_if("coal.md", b"x\n", None)


def test_a_token(home: mf.MemoryField, serving: Any) -> None:
    token = "0123456789abcdef-secret"
    with serving.running({"memory": home}, Policy(token=token)) as server:
        host = f"127.0.0.1:{server.port}/memory"
        with pytest.raises(StoreRefused, match="token or a password") as refused:
            StorePages(HttpStore(f"http://ann:wrong-{token}@{host}")).snapshot()
        assert token not in str(refused.value) and "ann" not in str(refused.value)
        for store in (HttpStore(f"http://ann:{token}@{host}"), HttpStore(f"http://{host}", token=token)):
            pages = StorePages(store)
            assert pages.names() == ["dock", "tea"]
            shown = " ".join(map(repr, (store, pages, store._calls))) + str(vars(pages)) + pages.place + str(pages.path)
            assert token not in shown
    with pytest.raises(QueryError, match="not both"):
        HttpStore(f"http://ann:{token}@{host}", token=token)


def test_many_pages_come_in_few_answers_and_no_change_costs_one_listing(tmp_path: Path, serving: Any) -> None:
    place = tmp_path / "many"
    place.mkdir()
    for i in range(1, 120):
        (place / f"page-{i}.md").write_text(f"# Page {i}\n\nText of page {i}.\n")
    (place / "page-0.md").write_bytes(b"caf\xe9, not UTF-8\n")
    asked: list[str] = []
    with serving.running({"many": mf.open_field(place)}, Policy(per_second=10_000)) as server:
        store = HttpStore(f"http://127.0.0.1:{server.port}/many")
        once = store._calls._once
        store._calls._once = lambda path, *rest: asked.append(path) or once(path, *rest)  # type: ignore[method-assign]
        pages = StorePages(store)
        assert pages.snapshot().entries.keys() == PageDirectory(place).snapshot().entries.keys()
        assert asked == ["listing.json", *["pages.json"] * 8]
        assert pages.read("page-0").raw == b"caf\xe9, not UTF-8\n"
        asked.clear()
        pages.snapshot()
        assert asked == ["listing.json"]
        (place / "page-7.md").write_text("changed\n")
        asked.clear()
        assert pages.refresh().entries["page-7.md"].sha256 == hashlib.sha256(b"changed\n").digest()
        assert asked == ["listing.json", "page-7.md"]


# --- a server that misbehaves -----------------------------------------------------------------------------------------


@dataclass
class Wicked:
    """A server with a listing whose answers a test can bend."""

    files: dict[str, bytes] = field(default_factory=lambda: {"tea.md": TEA, "dock.md": DOCK})
    bend: Callable[[Any, str], bool] = lambda handler, path: False
    requests: list[str] = field(default_factory=list)
    port: int = 0
    together: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/memory"

    def listing(self) -> bytes:
        rows = [
            {"filename": n, "tag": f'"{hashlib.sha256(raw).hexdigest()}"', "size": len(raw), "modified_ns": 0}
            for n, raw in self.files.items()
        ]
        return json.dumps({"pages": rows, "together": self.together}).encode()


class _Bent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wicked: Wicked

    def log_message(self, *_: Any) -> None:
        pass

    def say(self, status: int, body: bytes = b"", kind: str = "text/markdown", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _run(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.removeprefix("/memory/")
        self.wicked.requests.append(f"{self.command} {self.path}")
        if self.wicked.bend(self, path):
            return
        raw = self.wicked.files.get(path)
        if path == "listing.json":
            self.say(200, self.wicked.listing(), "application/json")
        elif raw is not None:
            self.say(200, raw, ETag=f'"{hashlib.sha256(raw).hexdigest()}"')
        else:
            self.say(404)

    do_GET = do_PUT = do_DELETE = _run


@pytest.fixture
def wicked(listening: Any) -> Iterator[Wicked]:
    found = Wicked()
    with listening(type("Handler", (_Bent,), {"wicked": found})) as port:
        found.port = port
        yield found


def elsewhere(location: str) -> Callable[[Any], object]:
    return lambda handler: handler.say(302, Location=location)


# What is said of an answer; by the name of one of ``broken``, or with one of its own.
FAULTS: dict[str, tuple[Callable[[Any], object] | None, str]] = {
    "cut": (None, "broke off"),
    "cut in chunks": (None, "broke off"),
    "closed": (None, "broke off"),
    "slow": (None, "no answer within 0.3 seconds"),
    "dripping": (None, "too slowly"),
    "boasting": (None, "larger than"),
    "500": (None, "answers 500"),
    "503": (None, "answers 503"),
    "403": (None, "token or a password"),
    "418": (None, "answers 418"),
    "304": (None, "answers 304"),
    "html": (None, "a web page"),
    "login": (None, "does not hand it over"),
    "packed": (None, "is sent packed"),
    "packed twice": (None, "is sent packed"),
    "another text": (None, "is not what is listed"),
    "wrong etag": (lambda h: h.say(200, b"forged\n", ETag='"' + "a" * 64 + '"'), "sha256 that its ETag promises"),
    "other host": (elsewhere("http://evil.example/tea.md"), "not followed"),
    "file": (elsewhere("file:///etc/passwd"), "not followed"),
    "other port": (elsewhere("http://127.0.0.1:1/tea.md"), "not followed"),
    "circle": (elsewhere("/memory/tea.md"), "in circles"),
    "no location": (lambda h: h.say(302), "not followed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_a_message_and_an_unchanged_field(wicked: Wicked, broken: Any, fault: str) -> None:
    bend, words = FAULTS[fault]
    bend = bend or broken[fault]
    pages = StorePages(HttpStore(wicked.address, timeout=0.3, tries=1 if fault == "dripping" else 2))
    before = pages.snapshot()
    wicked.files["tea.md"] = b"newer tea\n"
    wicked.bend = lambda handler, path: path == "tea.md" and (bend(handler), True)[1]
    with pytest.raises(StoreError, match=words) as refused:
        pages.refresh()
    assert "secret" not in str(refused.value)
    assert pages.snapshot().entries == before.entries and words.split()[0] in pages.notes()[0]
    assert pages.read("tea").raw == TEA
    wicked.bend = lambda handler, path: False
    assert pages.refresh().entries != before.entries and pages.read("tea").raw == b"newer tea\n"


@pytest.mark.parametrize("fault", ["cut", "500", "html", "slow", "other host"])
def test_a_fault_of_the_listing(wicked: Wicked, broken: Any, fault: str) -> None:
    pages = StorePages(HttpStore(wicked.address, timeout=0.3, tries=1))
    before = pages.snapshot()
    wicked.bend = lambda handler, path: (
        path == "listing.json" and ((FAULTS[fault][0] or broken[fault])(handler), True)[1]
    )
    with pytest.raises(StoreError):
        pages.refresh()
    assert pages.snapshot().entries == before.entries and pages.notes()


def test_what_can_be_tried_again_is(wicked: Wicked) -> None:
    troubles = iter([500, 503])

    def bend(handler: Any, path: str) -> bool:
        status = next(troubles, 0) if path == "tea.md" else 0
        if status:
            handler.say(status)
        return bool(status)

    wicked.bend = bend
    assert StorePages(HttpStore(wicked.address, tries=3)).read("tea").raw == TEA
    assert wicked.requests.count("GET /memory/tea.md") == 3


@pytest.mark.parametrize("status", [500, 302, 409, 412, 403, 413])
def test_a_write_that_fails_is_made_once_and_changes_nothing_here(wicked: Wicked, status: int) -> None:
    pages = StorePages(HttpStore(wicked.address, timeout=2.0))
    pages.snapshot()

    def bend(handler: Any, path: str) -> bool:
        if handler.command == "PUT":
            handler.say(status, Location="http://evil.example/")
        return handler.command == "PUT"

    wicked.bend = bend
    with pytest.raises(mf.MemoryfieldError):
        pages.write("tea", b"---\ntitle: Tea\n---\nnew\n")
    assert sum(line.startswith("PUT") for line in wicked.requests) == 1
    assert pages.refresh().entries.keys() == {"tea.md", "dock.md"} and pages.read("tea").raw == TEA


def test_a_redirect_on_the_same_host_is_followed(wicked: Wicked) -> None:
    def bend(handler: Any, path: str) -> bool:
        if path == "tea.md":
            handler.say(301, Location="/memory/moved")
        elif path == "moved":
            handler.say(200, TEA)
        return path in ("tea.md", "moved")

    wicked.bend = bend
    assert StorePages(HttpStore(wicked.address)).read("tea").raw == TEA


def test_hostile_listings(wicked: Wicked) -> None:
    def listing(body: bytes) -> None:
        wicked.bend = lambda h, path: path == "listing.json" and (h.say(200, body, "application/json"), True)[1]

    listing(json.dumps({"pages": [{"filename": "../../x.md", "tag": "t", "size": 1}]}).encode())
    assert StorePages(HttpStore(wicked.address)).names() == []
    for body in (b"[" * 100_000, b'{"pages": 7}', b'{"pages": [7]}', b'{"pages": [{"filename": "a.md"}]}', b"nonsense"):
        listing(body)
        with pytest.raises(FieldNotFound, match="neither a listing nor an archive"):
            HttpStore(wicked.address).list()
    assert not any(".." in line for line in wicked.requests)


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, raw in files.items():
            packed.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), raw)
    return out.getvalue()


def test_many_pages_come_as_one_archive_where_that_is_offered(wicked: Wicked) -> None:
    wicked.files = {f"page-{i}.md": b"text %d\n" % i for i in range(40)}
    wicked.bend = lambda h, path: path == "memoryfield.zip" and (h.say(200, archive(wicked.files)), True)[1]
    assert len(StorePages(HttpStore(wicked.address)).names()) == 40
    assert wicked.requests == ["GET /memory/listing.json", "GET /memory/memoryfield.zip"]


def together(files: dict[str, bytes], left: Sequence[str] = (), **bent: Any) -> bytes:
    """An answer with several pages."""
    rows = [
        {"filename": n, "tag": digest_tag(raw), "modified_ns": 0, "base64": base64.b64encode(raw).decode(), **bent}
        for n, raw in files.items()
    ]
    return json.dumps({"pages": rows, "left": list(left)}).encode()


@pytest.mark.parametrize("answered", ["all", "some", "none", "no such route"])
def test_what_is_left_out_of_an_answer_with_several_pages_is_read_alone(wicked: Wicked, answered: str) -> None:
    wicked.together = 64
    told = {
        "all": together(wicked.files),
        "some": together({"tea.md": TEA}, ["dock.md"]),
        "none": together({}, ["dock.md", "tea.md", "strange.md"]),
        "no such route": b"",
    }[answered]

    def bend(handler: Any, path: str) -> bool:
        if path.startswith("pages.json"):
            handler.say(200 if told else 404, told, "application/json")
        return path.startswith("pages.json")

    wicked.bend = bend
    pages = StorePages(HttpStore(wicked.address))
    assert {page.filename: page.raw for page in pages.pages()} == wicked.files
    alone = {"all": 0, "some": 1}.get(answered, 2)
    assert sum("?" not in line for line in wicked.requests[1:]) == alone
    assert "names=dock.md,tea.md" in wicked.requests[1]


SEVERAL: dict[str, tuple[bytes, str]] = {
    "nonsense": (b"nonsense", "cannot be read"),
    "deep": (b"[" * 100_000, "cannot be read"),
    "no base64": (together({"tea.md": TEA}, base64="%%%"), "cannot be read"),
    "no text": (together({"tea.md": TEA}, base64=7), "cannot be read"),
    "another page": (together({"../tea.md": TEA}), "not asked for"),
    "a strange time": (together({"tea.md": TEA}, modified_ns="now"), "not asked for"),
    "another tag": (together({"tea.md": TEA}, tag='"' + "a" * 64 + '"'), "does not have the sha256"),
    "too large": (together({"tea.md": b"x" * (LARGEST_PAGE + 1)}), "not asked for"),
}


@pytest.mark.parametrize("fault", SEVERAL)
def test_a_fault_of_an_answer_with_several_pages(wicked: Wicked, fault: str) -> None:
    body, words = SEVERAL[fault]
    pages = StorePages(HttpStore(wicked.address, tries=1))
    before = pages.snapshot()
    wicked.together = 64
    wicked.files = {"tea.md": b"newer tea\n", "dock.md": b"deeper\n"}
    wicked.bend = lambda h, path: path.startswith("pages.json") and (h.say(200, body, "application/json"), True)[1]
    with pytest.raises(StoreRefused, match=words):
        pages.refresh()
    assert pages.snapshot().entries == before.entries and pages.read("tea").raw == TEA


@pytest.mark.parametrize("where", ["memoryfield.zip", "/memory.memoryfield.zip"])
def test_the_archive_where_there_is_no_listing(wicked: Wicked, where: str) -> None:
    """Both layouts: the specification's, and that of a server of several fields."""

    def bend(handler: Any, path: str) -> bool:
        raw = archive(wicked.files)
        tag = f'"{len(raw)}-{hashlib.sha256(raw).hexdigest()[:8]}"'
        if handler.command == "PUT":
            wicked.files[path] = b"as the server likes it\n"
            handler.say(204)
        elif path == "listing.json" or (path.endswith(".zip") and path != where):
            handler.say(404)
        elif path == where and handler.headers.get("If-None-Match") == tag:
            handler.say(304, ETag=tag)
        elif path == where:
            handler.say(200, raw, "application/zip", ETag=tag)
        else:
            return False
        return True

    wicked.bend = bend
    pages = StorePages(HttpStore(wicked.address))
    assert pages.names() == ["dock", "tea"] and pages.read("tea").raw == TEA
    wicked.requests.clear()
    pages.snapshot()
    assert len(wicked.requests) == 1, "an archive that did not change is not sent again"
    wicked.files["coal.md"] = b"black\n"
    assert list(pages.snapshot().entries) == ["coal.md", "dock.md", "tea.md"]
    pages.write("pier", b"ours\n", absent=True)
    assert pages.read("pier").raw == b"as the server likes it\n"
    wicked.files["coal.md"] = b"changed\n"
    with pytest.raises(PageChanged):
        pages.store.write_if("coal.md", b"ours\n", digest_tag(b"black\n"))
    with pytest.raises(PageExists):
        pages.store.write_if("coal.md", b"ours\n", None)


@pytest.mark.parametrize("kind", ["bomb", "traversal", "no zip", "cut"])
def test_hostile_archives(wicked: Wicked, kind: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("../tea.md" if kind == "traversal" else "tea.md", b"0" * (40_000_000 if kind == "bomb" else 9))
    raw = b"nonsense" if kind == "no zip" else packed.getvalue()[: -30 if kind == "cut" else None]

    def bend(handler: Any, path: str) -> bool:
        handler.say(*((200, raw, "application/zip") if path == "memoryfield.zip" else (404,)))
        return True

    wicked.bend = bend
    with pytest.raises(StoreError):
        StorePages(HttpStore(wicked.address, tries=1)).snapshot()


def test_addresses() -> None:
    for bad in ("http://", "http://host/x?token=1", "http://host/#x", "http://ho st/", "http://host:port/"):
        with pytest.raises(QueryError):
            open_store(bad)
    with pytest.raises(StoreUnreachable, match=r"^http://127\.0\.0\.1:9/x/ cannot be reached"):
        mf.open_field("http://ann:secret@127.0.0.1:9/x").names()
    assert threading.active_count() < 50
