"""A field on a web server: the specification's routes, at the root or below a field's name (FORMAT H).

What a server of ours lists (``listing.json``) is read many pages at a time; of any other server the archive is the
listing. Who answers is trusted in nothing: other hosts are not followed to, HTML is no page, sizes are capped.
"""

from __future__ import annotations

import base64
import binascii
import json
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO

from memoryfield.errors import (
    ArchiveError,
    FieldNotFound,
    NotEditable,
    PageChanged,
    PageExists,
    QueryError,
    ReadOnlyField,
    StoreRefused,
    StoreUnreachable,
)
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.httpcalls import Answer, Caller, place_of
from memoryfield.stores.protocol import Fetched, Listed, Listing, sorted_out
from memoryfield.stores.reading import archived_pages, at_once, digest_tag, is_digest_tag

CONCURRENT = 8
_MOST_TOGETHER = 64  # pages that are asked for in one request, where the server sends several
_LARGEST_PART = 32 * 2**20  # bytes of such an answer
_LARGEST_LISTING = 32 * 2**20  # bytes
_LARGEST_ARCHIVE = 4 * 2**30
_SENT_TYPE = "text/markdown; charset=utf-8"


class HttpStore:
    """A field on a web server.

    Args:
        address: Where the field is; user and password in it are sent as HTTP Basic, and to that host only.
        token: Sent as ``Authorization: Bearer``, for a server that asks for one.
        timeout: Seconds to wait for a connection, and for each next piece of an answer.
        tries: How often a reading request is made before it is given up.

    Raises:
        QueryError: The address holds a query or no host.
    """

    def __init__(self, address: str, *, token: str | None = None, timeout: float = 15.0, tries: int = 3) -> None:
        self.place, auth = place_of(address)
        if token is not None and auth is not None:
            raise QueryError("give a token, or user and password in the address, not both")
        self._calls = Caller(self.place, auth, token, timeout, tries)
        self._archive: _Archive | None = None
        self._lists: bool | None = None  # whether the server has a listing; None before it was asked
        self._together = 0  # how many pages it sends in one answer

    read_only = False

    def __repr__(self) -> str:
        return f"<HttpStore {self.place!r}>"

    def list(self) -> Listing:
        """Return what is there now: one request where the server lists, else the archive if it changed."""
        if self._lists is not False:
            answer = self._calls.get("listing.json", largest=_LARGEST_LISTING, missing=(400, 404, 405, 406, 410))
            found = None if answer is None else _listing(answer, self.place)
            if found is not None:
                self._lists = True
                listing, self._together = found
                return listing
            if self._lists:
                raise StoreRefused(f"{self.place} had a listing and has none now; nothing was changed")
        archive = self._newest_archive()
        self._lists = False
        return archive.listing

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        """Yield pages as they are now, several at a time."""
        archive = self._archive
        left = list(wanted)
        if archive is not None and self._lists is False:
            held = [item for item in left if item.tag and archive.tag_of(item.filename) == item.tag]
            yield from archive.read(held)
            got = {item.filename for item in held}
            left = [item for item in left if item.filename not in got]
        if self._together > 1 and len(left) > 1:
            # no larger than that all threads have something to do
            size = min(self._together, max(2, -(-len(left) // CONCURRENT)))
            parts = [left[start : start + size] for start in range(0, len(left), size)]
            yield from chain.from_iterable(at_once(self._read_together, parts, CONCURRENT // 2))
        else:
            yield from at_once(self._read, left, CONCURRENT)

    def _read_together(self, wanted: Sequence[Listed]) -> Sequence[Fetched]:
        """Read several pages in one request; what a server leaves out of its answer is read by itself."""
        asked = {item.filename: item for item in wanted}
        query = {"names": ",".join(asked)}
        answer = self._calls.get("pages.json", largest=_LARGEST_PART, missing=(400, 404, 405, 410, 414), query=query)
        if answer is None:
            self._together = 0
            return [self._read(item) for item in wanted]
        _refuse_html(answer, f"{self.place}pages.json")
        try:
            told = json.loads(answer.body)
            left = {str(name) for name in told["left"]}
            rows = [(row["filename"], row["tag"], row["modified_ns"], row["base64"]) for row in told["pages"]]
            pages = [(str(name), tag, at, base64.b64decode(text, validate=True)) for name, tag, at, text in rows]
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error):
            raise StoreRefused(f"{self.place}pages.json: the answer cannot be read") from None
        found: dict[str, Fetched] = {}
        for filename, tag, at, raw in pages:
            if filename not in asked or len(raw) > LARGEST_PAGE or not isinstance(at, int):
                raise StoreRefused(f"{self.place}pages.json sends what was not asked for")
            if tag != digest_tag(raw):
                raise StoreRefused(f"{self.place}{filename} does not have the sha256 that its tag promises")
            found[filename] = Fetched(filename, raw, tag, at or asked[filename].modified_ns)
        for filename, item in asked.items():
            if filename not in found:
                found[filename] = self._read(item) if filename in left else Fetched(filename, None, "")
        return tuple(found.values())

    def _read(self, item: Listed) -> Fetched:
        largest = LARGEST_PAGE if item.filename.endswith(".md") else (item.size or LARGEST_PAGE)
        answer = self._calls.get(item.filename, largest=largest, missing=(404, 410))
        if answer is None:
            return Fetched(item.filename, None, "")
        _refuse_html(answer, f"{self.place}{item.filename}")
        own = digest_tag(answer.body)
        if is_digest_tag(answer.tag) and answer.tag != own and is_digest_tag(item.tag):
            # A server whose tags are digests: the body is not the one that was sent.
            raise StoreRefused(f"{self.place}{item.filename} does not have the sha256 that its ETag promises")
        # of an archive, and where a server lists digests and sends none, the digest of what came is the tag
        tag = own if self._lists is False or (not answer.tag and is_digest_tag(item.tag)) else answer.tag
        return Fetched(item.filename, answer.body, tag, answer.modified_ns or item.modified_ns)

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        """Write a page; see ``Store``."""
        headers = {"Content-Type": _SENT_TYPE, **self._condition(filename, tag)}
        answer = self._calls.send("PUT", filename, raw, headers)
        self._refused(answer, filename, tag)
        return answer.tag if answer.tag == digest_tag(raw) else ""

    def delete_if(self, filename: str, tag: str) -> None:
        """Delete a page; see ``Store``."""
        answer = self._calls.send("DELETE", filename, None, self._condition(filename, tag))
        if answer.status in (404, 410):
            raise PageChanged(f"{filename} in {self.place} was deleted meanwhile")
        self._refused(answer, filename, tag)

    def _condition(self, filename: str, tag: str | None) -> dict[str, str]:
        """Return the headers that make a request conditional; where a server knows no tags, look first."""
        if self._lists is not False:
            return {"If-None-Match": "*"} if tag is None else {"If-Match": tag}
        there = self._calls.get(filename, largest=LARGEST_PAGE, missing=(404, 410))
        if there is None:
            if tag is None:
                return {"If-None-Match": "*"}
            raise PageChanged(f"{filename} in {self.place} was deleted meanwhile; nothing was written")
        if tag is None:
            raise PageExists(f"{filename} is in {self.place} already; nothing was written")
        if digest_tag(there.body) != tag:
            raise PageChanged(f"{filename} in {self.place} was changed meanwhile; nothing was written: read it again")
        return {"If-Match": there.tag} if there.tag else {}

    def _refused(self, answer: Answer, filename: str, tag: str | None) -> None:
        status = answer.status
        if status in (200, 201, 204):
            return
        told = f"{self.place} answers {status}"
        if status == 412 and tag is None:
            raise PageExists(f"{filename} is in {self.place} already; nothing was written")
        if status in (404, 409, 412, 410):
            message = f"{filename} in {self.place} was changed meanwhile ({status}); nothing was written: read it again"
            raise PageChanged(message)
        if status in (401, 403, 405, 501):
            raise ReadOnlyField(f"{told}: it takes no changes from you; nothing was written")
        if status in (400, 413, 415, 422):
            raise NotEditable(f"{told} to {filename}: it does not take this page; nothing was written")
        if status in (429, 503):
            raise StoreUnreachable(f"{told}: it is busy; try again later")
        raise StoreRefused(f"{told} to a write of {filename}")

    def open_zip(self) -> BinaryIO | None:
        """Return the archive in a temporary file."""
        if self._lists is False or self._together > 1:
            return None  # the listing was made of it; or there is a cheaper way
        answer = self._calls.get_file("memoryfield.zip", _LARGEST_ARCHIVE, missing=(401, 403, 404, 405, 410))
        return None if answer is None else answer[1]

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._calls.close()

    def _newest_archive(self) -> _Archive:
        held = self._archive
        paths = [held.path] if held is not None else ["memoryfield.zip", *self._sibling()]
        for path in paths:
            found = self._calls.get_file(
                path, _LARGEST_ARCHIVE, missing=(400, 404, 405, 410), have=None if held is None else held.tag
            )
            if found is None:
                continue
            answer, handle = found
            if answer.status == 304:
                handle.close()
                if held is None:
                    raise StoreRefused(f"{self.place}{path}: 304 without a question")
                return held
            try:
                new = _Archive(path, answer.tag, handle, self.place)
            except ArchiveError as error:
                handle.close()
                raise StoreRefused(f"{self.place}{path} is no archive of a field ({error})") from None
            if held is not None:
                held.handle.close()
            self._archive = new
            return new
        raise FieldNotFound(f"{self.place} is no field: it has neither a listing nor an archive")

    def _sibling(self) -> Sequence[str]:
        """Return where ``memoryfield-tool serve`` puts the archive of a field: beside its pages."""
        name = self.place.rstrip("/").rpartition("/")[2]
        return (f"../{name}.memoryfield.zip",) if self.place.count("/") > 3 else ()


class _Archive:
    """An archive that was fetched, and what is in it."""

    def __init__(self, path: str, tag: str, handle: BinaryIO, place: str) -> None:
        self.path, self.tag, self.handle, self.place = path, tag, handle, place
        entries = [Listed(name, digest_tag(raw), len(raw), at) for name, raw, at in archived_pages(handle, place)]
        self.listing = sorted_out(entries, place)
        weakref.finalize(self, handle.close)

    def tag_of(self, filename: str) -> str:
        item = self.listing.pages.get(filename)
        return "" if item is None else item.tag

    def read(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        names = {item.filename for item in wanted}
        if names:
            for filename, raw, moment in archived_pages(self.handle, self.place):
                if filename in names:
                    yield Fetched(filename, raw, digest_tag(raw), moment)


def _listing(answer: Answer, place: str) -> tuple[Listing, int] | None:
    """Return the listing that a server of ours sends, and how many pages it sends together; None for anything else."""
    if not answer.kind.startswith("application/json"):
        return None
    try:
        told = json.loads(answer.body)
        rows = told["pages"]
        writes, together = told.get("writes"), told.get("together")
        entries = [
            Listed(str(row["filename"]), str(row["tag"]), int(row["size"]), int(row.get("modified_ns", 0)))
            for row in rows
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    listing = sorted_out(entries, place, writes if isinstance(writes, bool) else None)
    return listing, min(together, _MOST_TOGETHER) if type(together) is int else 0


def _refuse_html(answer: Answer, address: str) -> None:
    """Refuse an answer for people (a login, an error of a proxy) in the place of a page."""
    head = answer.body[:200].lstrip().lower()
    if answer.kind.startswith(("text/html", "application/xhtml")) or (
        not answer.kind and head.startswith((b"<!doctype html", b"<html"))
    ):
        raise StoreRefused(f"{address} answers with a web page (a login?), not with a page of a field")
