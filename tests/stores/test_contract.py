"""What every place of a field promises, proved over each: directory, archive, bucket, web servers, git, fsspec."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.errors import InvalidName, PageChanged, PageExists, PageNotFound, ReadOnlyField
from memoryfield.format.archive import export_archive
from memoryfield.format.directory import PageDirectory
from memoryfield.format.pages import PageSource
from memoryfield.serve.policy import Policy
from memoryfield.stores.opening import open_source

FILES = {
    "tea.md": b"---\ntitle: Tea\nsummary: green\n---\nAnn drinks green tea, see [dock](dock.md).\n",
    "dock.md": b"\xef\xbb\xbf# Dock\r\n\r\nThe dock is nine metres deep.\r\n",
    "a.md": b"first of two\n",
    "a-b.md": b"second of two\n",
    "broken.md": b"---\ntitle: [\n---\nno end\n",
    "latin.md": b"caf\xe9\n",
    "empty.md": b"",
}
PLACES = ("directory", "archive", "bucket", "moto", "our server", "archive server", "git", "fsspec")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "memory"
    place.mkdir(parents=True)
    for name, raw in FILES.items():
        (place / name).write_bytes(raw)
    return place


@contextmanager
def moto() -> Iterator[str]:
    """Run moto's server, an S3 written by others, with an empty bucket ``notes``; skip where it is not installed."""
    program = os.environ.get("MEMORYFIELD_MOTO_SERVER") or shutil.which("moto_server")
    if program is None:
        pytest.skip("moto_server is not on PATH (pip install 'moto[server]') nor named in MEMORYFIELD_MOTO_SERVER")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                assert process.poll() is None, "moto_server ended"
                try:
                    _put(f"http://127.0.0.1:{port}/notes", b"")
                except OSError:
                    time.sleep(0.1)
                else:
                    break
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _put(address: str, body: bytes) -> None:
    request = urllib.request.Request(address, data=body or None, method="PUT")
    request.add_header("Content-Type", "text/markdown")
    request.add_header("Content-Length", str(len(body)))
    urllib.request.urlopen(request, timeout=20).close()


@pytest.fixture(params=PLACES)
def source(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[PageSource]:
    """The same field, opened in each place."""
    kind = request.param
    if kind == "directory":
        yield open_source(home)
    elif kind == "archive":
        export_archive(PageDirectory(home), tmp_path / "memory.memoryfield.zip")
        yield open_source(tmp_path / "memory.memoryfield.zip")
    elif kind == "bucket":
        pytest.importorskip("obstore")
        bucket = request.getfixturevalue("bucket")
        bucket.objects.update({f"fields/memory/{name}": raw for name, raw in FILES.items()})
        yield open_source("s3://notes/fields/memory", **bucket.options())
    elif kind == "moto":
        pytest.importorskip("obstore")
        with moto() as endpoint:
            for name, raw in FILES.items():
                _put(f"{endpoint}/notes/fields/memory/{name}", raw)
            keys = {"region": "us-east-1", "access_key_id": "test", "secret_access_key": "test"}
            yield open_source("s3://notes/fields/memory", endpoint=endpoint, **keys)
    elif kind.endswith("server"):
        with request.getfixturevalue("serving").running(
            {"memory": mf.open_field(home)}, Policy(writes=True, per_second=10_000)
        ) as server:
            found = open_source(f"http://127.0.0.1:{server.port}/memory")
            if kind == "archive server":  # one that knows the specification and nothing more
                found.store._lists = False  # type: ignore[union-attr]
            yield found
    elif kind == "git":
        pygit2 = pytest.importorskip("pygit2")
        repository = pygit2.init_repository(str(tmp_path / "home"))
        repository.index.add_all()
        ann = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)
        repository.create_commit("HEAD", ann, ann, "All", repository.index.write_tree(), [])
        yield open_source(f"git+file://{home}@HEAD")
    else:
        fsspec = pytest.importorskip("fsspec")
        system = fsspec.filesystem("memory")
        system.pipe({f"/contract/memory/{name}": raw for name, raw in FILES.items()})
        yield open_source("memory://contract/memory")
        system.rm("/contract", recursive=True)


def test_reading(source: PageSource) -> None:
    assert isinstance(source, PageSource)
    assert source.names() == ["a", "a-b", "broken", "dock", "empty", "latin", "tea"], "sorted by name, not by filename"
    assert {page.filename: page.raw for page in source.pages()} == FILES
    assert [page.name for page in source.pages()] == source.names()
    for name, raw in FILES.items():
        assert source.read(name).raw == source.read(name.removesuffix(".md")).raw == source.read_bytes(name) == raw
    with pytest.raises(PageNotFound, match=r"no coal\.md in "):
        source.read("coal")
    for bad in ("../tea", "Tea", "", "a/b", "tea.md.md"):
        with pytest.raises(InvalidName):
            source.read(bad)
    with pytest.raises((InvalidName, PageNotFound)):
        source.read_bytes("../../etc/passwd")
    with pytest.raises(PageNotFound):
        source.read_bytes("nothing.png")


def test_a_snapshot_says_what_the_pages_are(source: PageSource) -> None:
    first = source.snapshot()
    assert {name: entry.sha256 for name, entry in first.entries.items()} == {
        name: hashlib.sha256(raw).digest() for name, raw in FILES.items()
    }
    assert {name: entry.size for name, entry in first.entries.items()} == {n: len(raw) for n, raw in FILES.items()}
    assert [name[:-3] for name in first.entries] == source.names()
    assert source.snapshot(known=first).entries == source.snapshot(known=first, verify=False).entries == first.entries


def test_a_field_searches_there(source: PageSource) -> None:
    field = mf.MemoryField(source, model="hashing-1024")  # type: ignore[arg-type]
    assert field.name == "memory"
    field.sync(progress=False)
    assert len(field.vector_index().vectors().names) >= 6  # an empty page has no vector
    (hit,) = field.search("how deep is the dock", k=1, retriever="keyword", progress=False)
    assert hit.name == "dock"
    assert field.place in repr(field)


def test_writing_or_a_clear_refusal(source: PageSource) -> None:
    field = mf.MemoryField(source, model="hashing-1024")  # type: ignore[arg-type]
    if source.read_only:
        for act in (
            lambda: field.write("coal", title="Coal"),
            lambda: field.delete("tea"),
            lambda: field.rename("a", "b"),
        ):
            with pytest.raises(ReadOnlyField):
                act()
        assert len(field) == 7
        return
    before = field["tea"]
    page = field.write("coal", title="Coal", body="black\n", on_similar="ignore")
    assert field["coal"].raw == page.raw and page.uuid
    edited = field.edit("tea", title="Green tea", if_sha256=before.sha256)
    assert field["tea"].title == "Green tea" and field["tea"].raw == edited.raw
    with pytest.raises(PageChanged):
        field.edit("tea", title="x", if_sha256=before.sha256)
    with pytest.raises(PageExists):
        field.write("dock", title="Dock", on_similar="ignore")
    field.rename("dock", "deep-dock")
    assert field["deep-dock"].raw == FILES["dock.md"] and "[dock](deep-dock.md)" in field["tea"].body
    field.delete("coal")
    with pytest.raises(PageNotFound):
        field.delete("coal")
    assert field.names() == ["a", "a-b", "broken", "deep-dock", "empty", "latin", "tea"]
    again = source.snapshot()
    assert again.entries["tea.md"].sha256 == hashlib.sha256(field["tea"].raw).digest()
