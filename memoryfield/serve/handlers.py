"""The routes as tornado handlers; what they answer is worked out in ``answers``, on threads.

One class serves both servers: alone it stands on tornado's own handler, in a Jupyter server on Jupyter's.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from memoryfield.serve.answers import MOST_TOGETHER, FieldAnswers, Reply, as_json, guarded, said
from memoryfield.serve.policy import Meter, Policy

_READING = "GET, HEAD"
_CHUNK = 1 << 16
_LONGEST_QUESTION = 2000  # in UTF-8 and percent signs that is up to 24 kB of the request's first line
_MOST_DOWNLOADS = 3  # archives on their way at once, fewer than threads: each holds a copy on the disk
# What a client may send: also in the description.
NAMES = r"[a-z0-9-]+\.md(,[a-z0-9-]+\.md)*"
CONDITION = r'\*|(W/)?"[!#-~]*"( ?, ?(W/)?"[!#-~]*")*'
_SLOWEST_READER = 60.0  # seconds for a piece of an archive


@dataclass(frozen=True, eq=False)
class Site:
    """What is served.

    Attributes:
        fields: Fields by the name in their address.
        policy: What is allowed.
        meter: Counts the requests of each address.
        threads: Where answers are worked out.
        alone: Whether the only field also answers at the root.
        downloads: Requests whose archives are being made or sent.
    """

    fields: Mapping[str, FieldAnswers]
    policy: Policy
    meter: Meter
    threads: ThreadPoolExecutor
    alone: bool
    downloads: set[object] = field(default_factory=set)


def _refuse_any(self: Any, _rest: str = "") -> None:
    self._refuse()


def routes(base: type[Any], site: Site, prefix: str = "") -> list[tuple[str, type[Any], dict[str, Any]]]:
    """Return tornado's routes.

    Args:
        base: Handler class to stand on; it says what ``checked`` does before each request.
        site: What is served.
        prefix: What stands before each address.
    """
    from tornado.iostream import StreamClosedError

    class Handler(base):  # type: ignore[misc]  # the base is chosen when the server is
        """All routes of all fields."""

        def initialize(self, site: Site) -> None:
            self.site = site

        def set_default_headers(self) -> None:
            super().set_default_headers()
            self.set_header("Server", "memoryfield")
            self.set_header("X-Content-Type-Options", "nosniff")

        def write_error(self, status_code: int, **_: Any) -> None:
            if status_code == 405:
                self.set_header("Allow", self._allowed())
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(f"{status_code} {self._reason}\n")

        async def get(self, rest: str) -> None:
            await self._run("GET", rest)

        async def head(self, rest: str) -> None:
            await self._run("GET", rest)

        async def put(self, rest: str) -> None:
            await self._run("PUT", rest)

        async def delete(self, rest: str) -> None:
            await self._run("DELETE", rest)

        def _allowed(self) -> str:
            is_page = self.request.path.endswith(".md") and self.site.policy.writes
            return f"{_READING}, PUT, DELETE" if is_page else _READING

        def _refuse(self) -> None:
            self._now(said(405, f"{self._allowed()} are answered", Allow=self._allowed()))

        post = patch = options = _refuse_any

        def _now(self, reply: Reply) -> None:
            self.set_status(reply.status)
            self.set_header("Content-Type", reply.kind)
            for name, value in reply.headers.items():
                self.set_header(name, value)
            if reply.status in (204, 304):
                self.clear_header("Content-Type")
                self.finish()
                return
            self.finish(reply.body)

        async def _run(self, method: str, rest: str) -> None:
            work = self._work(method, rest)
            if isinstance(work, Reply):
                self._now(work)
                return
            is_archive = getattr(work, "__func__", None) is FieldAnswers.archive
            if is_archive and len(self.site.downloads) >= _MOST_DOWNLOADS:
                self.set_header("Retry-After", "10")
                self._now(said(503, "other archives are being sent: try again in a while"))
                return
            if is_archive:
                self.site.downloads.add(self)
            try:
                reply = await asyncio.get_running_loop().run_in_executor(self.site.threads, guarded, work)
                if reply.file is None:
                    self._now(reply)
                else:
                    await self._stream(reply)
            finally:
                self.site.downloads.discard(self)

        async def _stream(self, reply: Reply) -> None:
            assert reply.file is not None
            loop = asyncio.get_running_loop()
            try:
                self.set_status(reply.status)
                self.set_header("Content-Type", reply.kind)
                self.set_header("Content-Length", str(reply.file.stat().st_size))
                for name, value in reply.headers.items():
                    self.set_header(name, value)
                if self.request.method != "HEAD":
                    with reply.file.open("rb") as handle:
                        while block := await loop.run_in_executor(self.site.threads, handle.read, _CHUNK):
                            self.write(block)
                            await asyncio.wait_for(self.flush(), _SLOWEST_READER)
                self.finish()
            except (StreamClosedError, TimeoutError):  # the reader went away, or reads nothing
                self.request.connection.stream.close()
            finally:
                shutil.rmtree(reply.file.parent, ignore_errors=True)

        def _work(self, method: str, rest: str) -> Reply | Callable[[], Reply]:
            """Return what a request asks for, as something to run on a thread; or the refusal."""
            words = [unquote(word) for word in rest.split("/")] if rest else [""]
            if len(words) > 2 or any(not _is_word(word) for word in words if word):
                return said(404, "there is nothing of that name")
            if words == ["openapi.json"]:
                if method != "GET":
                    return _only_read()
                from memoryfield.serve.openapi import description

                return as_json(description(self.site.policy, self.site.alone))
            if words == [""] and not self.site.alone:
                return self._overview() if method == "GET" else _only_read()
            if words == ["search"]:
                return self._search(dict(self.site.fields)) if method == "GET" else _only_read()
            if len(words) == 1 and words[0].endswith(".memoryfield.zip"):
                label = words[0].removesuffix(".memoryfield.zip")
                found = self.site.fields.get(label)
                if found is not None:
                    return found.archive if method == "GET" else _only_read()
            if words[0] in self.site.fields and (len(words) == 2 or not self.site.alone):
                return self._of_field(method, words[0], words[1] if len(words) == 2 else "")
            if self.site.alone and len(words) == 1:
                return self._of_field(method, next(iter(self.site.fields)), words[0])
            return said(404, "there is nothing of that name")

        def _of_field(self, method: str, label: str, word: str) -> Reply | Callable[[], Reply]:
            answers = self.site.fields[label]
            header = self.request.headers.get
            html = "text/html" in header("Accept", "")
            if method == "GET":
                if word == "":
                    return lambda: answers.home(html, "./")
                if word == "search":
                    return self._search({label: answers})
                if word == "memoryfield.zip":
                    return answers.archive
                if word == "listing.json":
                    writes = self.site.policy.writes
                    return lambda: answers.catalogue(writes, header("If-None-Match"))
                if word == "pages.json":
                    names = self.get_query_argument("names", "")
                    if re.fullmatch(NAMES, names, re.ASCII) is None or names.count(",") >= MOST_TOGETHER:
                        return said(400, f"names are those of pages, with commas between them, at most {MOST_TOGETHER}")
                    return lambda: answers.several(names.split(","))
                if word.endswith(".md"):
                    return lambda: answers.page(word, header("If-None-Match"))
                return lambda: answers.page_html(word, "./")
            if not word.endswith(".md"):
                return _only_read()
            refusal = self._may_not_write() or self._unreadable_condition()
            if refusal is not None:
                return refusal
            if method == "DELETE":
                return lambda: answers.delete(word, header("If-Match"))
            body: bytes = self.request.body
            return lambda: answers.put(word, body, header("If-Match"), header("If-None-Match"))

        def _may_not_write(self) -> Reply | None:
            if not self.site.policy.writes:
                return said(403, "this server does not take changes (start it with --writes)")
            site, origin = (self.request.headers.get(name) for name in ("Sec-Fetch-Site", "Origin"))
            foreign = site not in ("none", "same-origin")
            if site is None:  # older browsers, and everything that is none
                foreign = origin is not None and origin.partition("://")[2] != self.request.headers.get("Host")
            return said(403, "a page of another site cannot change this one") if foreign else None

        def _unreadable_condition(self) -> Reply | None:
            """A condition that cannot be read must not count as none: what it was to protect would be overwritten."""
            for name in ("If-Match", "If-None-Match"):
                value = self.request.headers.get(name)
                if value is not None and re.fullmatch(CONDITION, value) is None:
                    return said(400, f'{name} has to be * or tags in quotes, such as "...", as ETag gave them')
            return None

        def _search(self, among: Mapping[str, FieldAnswers]) -> Reply | Callable[[], Reply]:
            question = self.get_query_argument("q", "")
            if not question.strip():
                return said(400, "ask with ?q=")
            if len(question) > _LONGEST_QUESTION:
                return said(400, f"a question may have {_LONGEST_QUESTION:,} characters")
            retriever = self.get_query_argument("retriever", None)
            k = self.get_query_argument("k", "10")
            if not re.fullmatch(r"[1-9]\d{0,2}", k, re.ASCII):
                return said(400, "k is a whole number from 1 to 50")

            def run() -> Reply:
                if len(among) == 1:
                    return next(iter(among.values())).search(question, int(k), retriever)
                hits = [
                    {**hit, "field": label}
                    for label, answers in among.items()
                    for hit in answers.hits(question, int(k), retriever)
                ]
                hits.sort(key=lambda hit: -float(hit["score"]))
                return as_json({"results": hits[: int(k)]})

            return run

        def _overview(self) -> Callable[[], Reply]:
            def run() -> Reply:
                rows = [{"name": name, "pages": len(answers.field)} for name, answers in self.site.fields.items()]
                return as_json({"fields": rows})

            return run

    for name in ("get", "head", "put", "delete", "post", "patch", "options"):
        setattr(Handler, name, base.wrapped(getattr(Handler, name)))
    return [(rf"{re.escape(prefix)}/(.*)", Handler, {"site": site})]


def _only_read() -> Reply:
    return said(405, "only NAME.md can be written", Allow=_READING)


def _is_word(word: str) -> bool:
    """Say whether a piece of an address can name something; everything else is never looked at."""
    return len(word) < 200 and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", word) is not None and ".." not in word
