"""What each route does, as values: status, headers and body. No web framework, so that all of it can be tested alone.

Names come from addresses and so from strangers: each is checked against the one form that a page name has, and nothing
else is ever joined to a path.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryfield.display import counted
from memoryfield.errors import (
    FieldLocked,
    FrontmatterError,
    InvalidName,
    MemoryfieldError,
    ModelError,
    NotEditable,
    PageChanged,
    PageExists,
    PageNotFound,
    QueryError,
    ReadOnlyField,
)
from memoryfield.field import MemoryField
from memoryfield.format import edit
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename
from memoryfield.format.page import Page
from memoryfield.serve.glimpses import Glimpses
from memoryfield.serve.listing import listing
from memoryfield.serve.rendering import SECURITY_HEADERS, document, markdown_html, page_html
from memoryfield.serve.together import Together

MARKDOWN = "text/markdown; charset=utf-8"
HTML = "text/html; charset=utf-8"
_MOST_HITS = 50
_TRIES = 20  # at a page that other programs change all the time
MOST_TOGETHER = 64  # pages in one answer; with long names they still fit into a request's first line
_LARGEST_PART = 4 * 2**20  # bytes of pages after which no further one is put into the same answer


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        status: HTTP status.
        body: Content.
        kind: Its media type.
        headers: Further headers.
        file: A file to send instead of *body*; it is alone in a temporary directory, to be removed afterwards.
    """

    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


def said(status: int, text: str, **headers: str) -> Reply:
    """Return a sentence as an answer."""
    return Reply(status, (text + "\n").encode(), headers=headers)


def as_json(value: Any, status: int = 200) -> Reply:
    """Return a value as JSON; what would end a script or a line in a client is escaped."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    return Reply(status, text.encode(), "application/json")


def failure(error: MemoryfieldError) -> Reply:
    """Return an error as an answer with the status that fits."""
    statuses: tuple[tuple[type[MemoryfieldError], int], ...] = (
        (PageNotFound, 404),
        (InvalidName, 400),
        (PageChanged, 412),
        (PageExists, 412),
        (ReadOnlyField, 403),
        (FieldLocked, 503),
        (ModelError, 503),
        (FrontmatterError, 400),
        (NotEditable, 409),
        (QueryError, 400),
    )
    status = next((status for kind, status in statuses if isinstance(error, kind)), 500)
    return said(status, str(error))


class FieldAnswers:
    """The routes of one field.

    Args:
        field: The field.
        largest_body: Most bytes of a page that is taken.
    """

    def __init__(self, field: MemoryField, largest_body: int) -> None:
        self.field = field
        self._together = Together(field)
        self._source = field.search_target("keyword").source
        self._glimpses = Glimpses(field)
        self.largest_body = largest_body
        self._writing = threading.Lock()
        self._folders: set[Path] = set()
        # What a reader that is cut off leaves is removed at the end, whatever way that comes.
        self.close = weakref.finalize(self, _remove, self._folders)

    def home(self, wants_html: bool, base: str) -> Reply:
        """Return ``index.md`` where there is one, else the catalogue."""
        try:
            page = self.field.read("index")
        except PageNotFound:
            text = listing(self.field.pages())
            if not wants_html:
                return _tagged(Reply(200, text.encode(), MARKDOWN))
            shown = counted(len(self.field), "page") + markdown_html(text.replace(".md)", ")"))
            return Reply(200, document(self.field.name, shown).encode(), HTML, SECURITY_HEADERS)
        return self._shown(page, wants_html, base)

    def page(self, filename: str, matches: str | None = None) -> Reply:
        """Return the bytes of a page; 304 where the client has them."""
        if filename == "listing.md":
            return _unless(_tagged(Reply(200, listing(self.field.pages()).encode(), MARKDOWN)), matches)
        if not is_page_filename(filename):
            return said(404, "no page has such a name")
        page = self.field.read(filename)
        headers = {"ETag": f'"{page.sha256}"', "X-Content-Type-Options": "nosniff"}
        if page.modified is not None:
            headers["Last-Modified"] = page.modified.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return _unless(Reply(200, page.raw, MARKDOWN, headers), matches)

    def catalogue(self, writes: bool, matches: str | None = None) -> Reply:
        """Return every page with its tag, size and time as JSON, so that a copy is brought up to date by one request.

        Args:
            writes: Whether this server takes changes, which is told.
            matches: ``If-None-Match``; 304 where the client has this listing.
        """
        entries = self._source.snapshot().entries
        rows = [
            {"filename": name, "tag": f'"{e.sha256.hex()}"', "size": e.size, "modified_ns": _whole_seconds(e.mtime_ns)}
            for name, e in entries.items()
        ]
        told = {"pages": rows, "writes": writes and not self.field.read_only, "together": MOST_TOGETHER}
        return _unless(_tagged(as_json(told)), matches)

    def several(self, filenames: Sequence[str]) -> Reply:
        """Return the bytes of many pages in one answer, as base64; ``left`` names those that are to be asked for again.

        A page that is not there is in neither.
        """
        rows: list[dict[str, Any]] = []
        left: list[str] = []
        size = 0
        for filename in dict.fromkeys(filenames):
            if size > _LARGEST_PART:
                left.append(filename)
                continue
            try:
                page = self._source.read(filename) if is_page_filename(filename) else None
            except PageNotFound:
                continue
            if page is not None:
                size += page.size
                text = base64.b64encode(page.raw).decode("ascii")
                moment = 0 if page.modified is None else int(page.modified.timestamp()) * 1_000_000_000
                told = {"filename": page.filename, "tag": f'"{page.sha256}"', "modified_ns": moment}
                rows.append({**told, "base64": text})
        return as_json({"pages": rows, "left": left})

    def page_html(self, name: str, base: str) -> Reply:
        """Return a page as HTML."""
        if not is_page_filename(f"{name}.md"):
            return said(404, "no page has such a name")
        if name == "listing":
            shown = markdown_html(listing(self.field.pages()).replace(".md)", ")"))
            return Reply(200, document(self.field.name, shown, base).encode(), HTML, SECURITY_HEADERS)
        return self._shown(self.field.read(name), True, base)

    def _shown(self, page: Page, wants_html: bool, base: str) -> Reply:
        if not wants_html:
            return Reply(200, page.raw, MARKDOWN, {"ETag": f'"{page.sha256}"', "X-Content-Type-Options": "nosniff"})
        return Reply(200, page_html(page, base).encode(), HTML, SECURITY_HEADERS)

    def put(self, filename: str, raw: bytes, if_match: str | None, if_none_match: str | None) -> Reply:
        """Write a page: 201 for a new one, 204 for one that was there. Its uuid stays where the body has none."""
        if not is_page_filename(filename):
            return said(400, "no page can have that name")
        if filename == "listing.md":
            return said(409, "listing.md is made anew for each request and cannot be written here")
        if not raw.strip():
            return said(400, "an empty page is not written; delete it instead")
        if len(raw) > self.largest_body:
            return said(413, f"a page may have {self.largest_body:,} bytes here")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return said(415, f"the page is not UTF-8: byte {error.start} cannot be read")
        name = filename.removesuffix(".md")
        return self._settled(lambda: self._put(name, raw, if_match, if_none_match))

    def _put(self, name: str, raw: bytes, if_match: str | None, if_none_match: str | None) -> Reply:
        there = self._there(name)
        refusal = _condition(there, if_match, if_none_match)
        if refusal is not None:
            return refusal
        incoming = Page(name, raw)
        if there is None:
            page = self.field.put(name, raw)
            return Reply(201, headers={"ETag": f'"{page.sha256}"', "Location": page.filename})
        if there.uuid is not None and incoming.uuid is None:
            if incoming.frontmatter_error is not None:
                return said(400, f"the frontmatter cannot be read: {incoming.frontmatter_error}")
            raw = edit.set_keys(raw, {"uuid": there.uuid})
        elif there.uuid is not None and incoming.uuid != there.uuid:
            return said(409, f"{there.filename} has the uuid {there.uuid}: another one cannot replace it")
        page = self.field.put(name, raw, if_sha256=there.sha256)
        return Reply(204, headers={"ETag": f'"{page.sha256}"'})

    def delete(self, filename: str, if_match: str | None) -> Reply:
        """Delete a page."""
        if not is_page_filename(filename):
            return said(400, "no page can have that name")
        return self._settled(lambda: self._delete(filename.removesuffix(".md"), if_match))

    def _delete(self, name: str, if_match: str | None) -> Reply:
        there = self._there(name)
        if there is None:
            return said(404, f"there is no {name}.md")
        refusal = _condition(there, if_match, None)
        if refusal is not None:
            return refusal
        self.field.delete(name, if_sha256=there.sha256)
        return Reply(204)

    def _settled(self, change: Callable[[], Reply]) -> Reply:
        """Make a change that looks at the page first; once more where another program changed the page in between.

        Who gave no condition wants the change whatever is there, and a condition is checked anew each time.
        """
        barred = False
        with self._writing:  # requests to this server do not get in each other's way
            for _ in range(_TRIES):
                try:
                    return change()
                except (PageChanged, PageExists, PageNotFound) as error:
                    barred = isinstance(error, PageExists)
        if barred:  # again and again: not a page that somebody makes, but a link or a directory
            return said(409, "something that is no page has that name")
        return said(503, "another program changes the page all the time: try again", **{"Retry-After": "1"})

    def archive(self) -> Reply:
        """Return the whole field as an archive, in a temporary file."""
        folder = Path(tempfile.mkdtemp(prefix="memoryfield-serve-"))
        self._folders.intersection_update([known for known in self._folders if known.exists()])
        self._folders.add(folder)
        path = folder / "field.memoryfield.zip"
        try:
            if self.field.read_only and self.field.path.is_file():
                shutil.copyfile(self.field.path, path)
                with path.open("rb") as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
            else:
                digest = self.field.export(path, on_secrets="ignore").sha256
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        name = f"{self.field.name}.memoryfield.zip"
        ascii_name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
        headers = {"ETag": f'"{digest}"', "Content-Disposition": f'attachment; filename="{ascii_name}"'}
        return Reply(200, b"", "application/zip", headers, path)

    def search(self, question: str, k: int = 10, retriever: str | None = None) -> Reply:
        """Return hits as the specification's JSON, best first, with scores."""
        return as_json({"results": self.hits(question, k, retriever)})

    def hits(self, question: str, k: int = 10, retriever: str | None = None) -> list[dict[str, Any]]:
        """Return hits as values: ``filename``, ``frontmatter``, ``score``, ``title``."""
        most = max(1, min(k, _MOST_HITS))
        chosen = retriever or ("hybrid" if self._has_model() else "keyword")
        ranked, snapshot = self._together.rank(question, most, chosen)
        scores = {name: round(score, 6) for name, score in ranked}
        shown = [self._glimpses.of(name, snapshot) for name in scores]
        found = {seen.filename: (seen, scores[seen.filename.removesuffix(PAGE_SUFFIX)]) for seen in shown if seen}
        if chosen == "keyword" and len(found) < most:
            # what the specification finds without an index is found here as well
            for seen in self._glimpses.containing(question, snapshot):
                found.setdefault(seen.filename, (seen, 0.0))
        return [
            {"filename": seen.filename, "frontmatter": seen.frontmatter, "score": score, "title": seen.title}
            for seen, score in list(found.values())[:most]
        ]

    def _has_model(self) -> bool:
        try:
            self.field.embedder()
        except ModelError:
            return False
        return True

    def _there(self, name: str) -> Page | None:
        try:
            return self.field.read(name)
        except PageNotFound:
            return None


def _remove(folders: set[Path]) -> None:
    for folder in list(folders):
        shutil.rmtree(folder, ignore_errors=True)


def guarded(function: Callable[[], Reply]) -> Reply:
    """Run a route; every error of ours becomes an answer."""
    try:
        return function()
    except MemoryfieldError as error:
        return failure(error)


def _condition(there: Page | None, if_match: str | None, if_none_match: str | None) -> Reply | None:
    if if_match is not None and (there is None or not _names(if_match, f'"{there.sha256}"')):
        return said(412, "the page is not the version that If-Match names: read it again")
    if if_none_match is not None and there is not None and _names(if_none_match, f'"{there.sha256}"'):
        return said(412, "the page is there already")
    return None


def _names(header: str, tag: str) -> bool:
    given = [item.strip().removeprefix("W/") for item in header.split(",")]
    return "*" in given or tag in given


def _whole_seconds(nanoseconds: int) -> int:
    return nanoseconds // 1_000_000_000 * 1_000_000_000


def _tagged(reply: Reply) -> Reply:
    tag = hashlib.sha256(reply.body).hexdigest()
    return Reply(reply.status, reply.body, reply.kind, {**reply.headers, "ETag": f'"{tag}"'})


def _unless(reply: Reply, matches: str | None) -> Reply:
    tag = reply.headers.get("ETag")
    if matches is not None and tag is not None and _names(matches, tag):
        return Reply(304, headers={"ETag": tag})
    return reply
