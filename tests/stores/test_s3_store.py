"""A field in a bucket, against a server on loopback that speaks the S3 calls that a field needs."""

from __future__ import annotations

from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import (
    FieldNotFound,
    MemoryfieldError,
    PageChanged,
    PageExists,
    QueryError,
    ReadOnlyField,
    StoreError,
    StoreUnreachable,
)
from memoryfield.stores.opening import open_store
from memoryfield.stores.pages import StorePages

pytest.importorskip("obstore")

SECRETS = ("very-secret-indeed", "AKIATESTTESTTEST")


@pytest.fixture
def pages(bucket: Any) -> StorePages:
    bucket.objects.update(
        {
            "fields/harbor/tea.md": b"# Tea\n\nGreen tea.\n",
            "fields/harbor/dock.md": b"# Dock\n\nNine metres.\n",
            "fields/harbor/old/tea.md": b"in a folder\n",
            "fields/harbor-two/rope.md": b"another field\n",
            "fields/bread/rye.md": b"a third\n",
        }
    )
    return StorePages(open_store("s3://notes/fields/harbor", **bucket.options()))


def test_a_prefix_is_a_field(pages: StorePages, bucket: Any) -> None:
    assert pages.names() == ["dock", "tea"]
    assert [(item.filename, item.reason) for item in pages.snapshot().skipped] == [("old", "not directly in the field")]
    other = StorePages(open_store("s3://notes/fields/bread/", **bucket.options()))
    assert other.names() == ["rye"] and other.place == "s3://notes/fields/bread"


def test_a_sync_that_finds_nothing_new_costs_one_listing(pages: StorePages, bucket: Any) -> None:
    pages.fresh_seconds = 60.0  # a slow machine may take longer to embed than a listing is believed
    field = mf.MemoryField(pages, model="hashing-1024")
    field.sync(progress=False)
    bucket.requests.clear()
    assert field.sync(progress=False).unchanged == ("dock", "tea")
    assert bucket.requests == ["GET "]
    bucket.objects["fields/harbor/tea.md"] = b"# Tea\n\nBlack tea.\n"
    bucket.requests.clear()
    assert field.sync(progress=False).updated == ("tea",)
    # the second listing looks whether the page changed while it was embedded
    assert bucket.requests == ["GET ", "GET fields/harbor/tea.md", "GET "]


def test_edits_are_conditional(pages: StorePages, bucket: Any) -> None:
    field = mf.MemoryField(pages, model="hashing-1024")
    page = field.write("coal", title="Coal", body="black\n")
    assert bucket.objects["fields/harbor/coal.md"] == page.raw
    field.edit("coal", append="and hard\n")
    field.rename("coal", "hard-coal")
    field.delete("hard-coal")
    assert sorted(bucket.objects)[2:4] == ["fields/harbor/dock.md", "fields/harbor/old/tea.md"]
    tag = pages.store.list().pages["tea.md"].tag
    bucket.objects["fields/harbor/tea.md"] = b"theirs\n"
    for act in (lambda: pages.store.write_if("tea.md", b"x", tag), lambda: pages.store.delete_if("tea.md", tag)):
        with pytest.raises(PageChanged):
            act()
    with pytest.raises(PageExists):
        pages.store.write_if("dock.md", b"x", None)
    for name in ("gone.md",):
        with pytest.raises(PageChanged):
            pages.store.write_if(name, b"x", tag)
    assert bucket.objects["fields/harbor/tea.md"] == b"theirs\n"


def test_more_than_one_part_of_a_listing(bucket: Any) -> None:
    bucket.objects.update({f"many/page-{i}.md": b"x %d\n" % i for i in range(2100)})
    listing = open_store("s3://notes/many", **bucket.options()).list()
    assert len(listing.pages) == 2100 and bucket.requests == ["GET "] * 3


@pytest.mark.parametrize("status", [500, 503, 403, 401])
def test_faults(pages: StorePages, bucket: Any, status: int) -> None:
    before = pages.snapshot()
    bucket.objects["fields/harbor/tea.md"] = b"newer\n"
    for broken in ("GET ", "GET fields/harbor/tea.md"):
        bucket.trouble = lambda line, broken=broken: status if line == broken else 0
        with pytest.raises((StoreError, ReadOnlyField)) as refused:
            pages.refresh()
        shown = str(refused.value) + repr(refused.value.__cause__) + repr(pages.store)
        assert not any(secret in shown for secret in SECRETS)
        assert pages.snapshot().entries == before.entries and pages.notes()
    bucket.trouble = lambda line: status if line.startswith(("PUT", "POST")) else 0
    with pytest.raises(MemoryfieldError):
        pages.write("tea", b"ours\n")
    assert bucket.objects["fields/harbor/tea.md"] == b"newer\n"
    assert pages.refresh().entries != before.entries and pages.notes() == []


STREAMS = ("cut", "cut in chunks", "closed", "slow", "dripping", "boasting")
ANSWERS = ("418", "304", "html", "login", "packed", "packed twice", "another text")


@pytest.mark.parametrize("fault", [*STREAMS, *ANSWERS])
def test_a_fault_ends_in_a_message_and_an_unchanged_field(bucket: Any, broken: Any, fault: str) -> None:
    bucket.objects.update({"f/tea.md": b"green\n", "f/dock.md": b"deep\n"})
    patient = StorePages(open_store("s3://notes/f", **bucket.options() | {"timeout": 30}))
    before = patient.snapshot()
    pages = StorePages(open_store("s3://notes/f", **bucket.options() | {"timeout": 0.5, "retries": 0}))
    bucket.objects["f/tea.md"] = b"newer tea\n"
    for asked in ("GET f/tea.md", "GET "):
        bucket.bend = lambda handler, line, asked=asked: line == asked and (broken[fault](handler), True)[1]
        if fault == "login":
            plain = bucket.bend
            bucket.bend = lambda handler, line, plain=plain: (
                plain(handler, line) or (handler.path == "/login" and (broken["html"](handler), True)[1])
            )
        with pytest.raises((StoreError, ReadOnlyField)) as refused:
            pages.refresh()
        assert not any(secret in str(refused.value) for secret in SECRETS)
        assert pages.snapshot().entries == before.entries and pages.read("tea").raw == b"green\n" and pages.notes()
    bucket.bend = lambda handler, line: False
    assert patient.refresh().entries != before.entries and patient.read("tea").raw == b"newer tea\n"


def listed(*keys: str, more: bool = False) -> bytes:
    """A listing, with a next part that is the same again."""
    token = "<NextContinuationToken>again</NextContinuationToken>" if more else ""
    rows = "".join(
        f"<Contents><Key>f/{key}</Key><LastModified>2020-09-13T12:26:40.000Z</LastModified><ETag>1</ETag>"
        f"<Size>1</Size></Contents>"
        for key in keys
    )
    told = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
    return told.encode()


LISTINGS: dict[str, tuple[bytes, str]] = {
    "without an end": (listed("tea.md", more=True), "does not end"),
    "empty without an end": (listed(more=True), "does not end"),
    "nothing": (listed(), "lists no page and still hands over"),
    "a web page": (b"<html>log in</html>", "lists no page and still hands over"),
    "nonsense": (b"nonsense", "lists no page and still hands over|no usable answer"),
    "upwards": (listed("../../etc/passwd.md"), "no file can have"),
    "line end": (listed("tea&#10;.md"), "no file can have"),
    "not there": (listed("tea.md", "pier.md"), "does not hand it over"),
    "entities": (b'<!DOCTYPE l [<!ENTITY a "aaaa">]>' + listed("&a;.md"), "no usable answer"),
}


@pytest.mark.parametrize("kind", LISTINGS)
def test_hostile_listings(bucket: Any, broken: Any, kind: str) -> None:
    bucket.objects.update({"f/tea.md": b"green\n", "f/dock.md": b"deep\n"})
    pages = StorePages(open_store("s3://notes/f", **bucket.options() | {"timeout": 0.5, "retries": 1}))
    before = pages.snapshot()
    body, words = LISTINGS[kind]
    bucket.bend = lambda handler, line: line == "GET " and (handler._answer(200, body), True)[1]
    with pytest.raises(StoreError, match=words):
        pages.refresh()
    assert pages.snapshot().entries == before.entries


def test_something_that_answers_everything_is_no_bucket(bucket: Any, broken: Any) -> None:
    bucket.bend = lambda handler, line: (broken["html"](handler), True)[1]
    with pytest.raises(StoreError, match="a login"):
        StorePages(open_store("s3://notes/f", **bucket.options())).snapshot()
    bucket.bend = lambda handler, line: False
    assert StorePages(open_store("s3://notes/f", **bucket.options())).names() == [], "an empty prefix is a field"


def test_a_bucket_that_is_not_there(bucket: Any) -> None:
    with pytest.raises((FieldNotFound, StoreError)) as refused:
        StorePages(open_store("s3://other/x", **bucket.options())).snapshot()
    assert not any(secret in str(refused.value) for secret in SECRETS)
    with pytest.raises(StoreUnreachable):
        StorePages(open_store("s3://notes/x", **bucket.options() | {"endpoint": "http://127.0.0.1:9"})).snapshot()


def test_one_address_on_two_servers_is_two_fields(pages: StorePages, bucket: Any) -> None:
    other = StorePages(open_store("s3://notes/fields/harbor", **bucket.options() | {"endpoint": "http://127.0.0.1:9"}))
    assert other.place == pages.place and other.path != pages.path and other.path.name == pages.path.name == "harbor"
    pages.snapshot()
    with pytest.raises(StoreUnreachable):  # nothing of the other server's copy is shown
        other.names()


def test_addresses() -> None:
    for bad in ("s3://", "s3://key:secret@bucket/x", "s3://bucket/../x", "s3://bucket/a//b", "s3://bucket/x?y"):
        with pytest.raises(QueryError):
            open_store(bad)
    with pytest.raises(QueryError) as refused:
        open_store("s3://bucket/x", no_such_option="hidden-value")
    assert "hidden-value" not in str(refused.value)
