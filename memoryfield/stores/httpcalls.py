"""Requests to one server: who is asked, what is tried again, how much of an answer is read, and what errors say.

Errors name the address without credentials and never what a server sent: it could hold anything.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from memoryfield.errors import QueryError, StoreRefused, StoreUnreachable

if TYPE_CHECKING:
    import httpx

_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3
_LONGEST_WAIT = 5.0  # seconds that a server can make us wait before the next try
_PAUSE = 0.1
_SLOWEST = 8 * 1024  # bytes a second; an answer that drips is given up
_PATIENCE = 4  # times the timeout that any answer may take
_IN_MEMORY = 16 * 2**20

Result = TypeVar("Result")


@dataclass(frozen=True)
class Answer:
    """What a server said.

    Attributes:
        status: HTTP status.
        body: Content.
        kind: Its media type, in lower case.
        tag: ETag, without the mark of a weak one.
        modified_ns: ``Last-Modified`` in nanoseconds since 1970; 0 where there is none.
    """

    status: int
    body: bytes
    kind: str
    tag: str
    modified_ns: int


class Caller:
    """Makes requests below one address.

    Args:
        place: The address, ending in a slash, without credentials.
        auth: User and password for HTTP Basic.
        token: For ``Authorization: Bearer``.
        timeout: Seconds for a connection and for each piece of an answer.
        tries: How often a reading request is made.
    """

    def __init__(self, place: str, auth: tuple[str, str] | None, token: str | None, timeout: float, tries: int) -> None:
        if not 0 < timeout <= 3600 or not 1 <= tries <= 10:
            raise QueryError("timeout is in seconds, up to 3600; tries are 1 to 10")
        self.place = place
        self.timeout = timeout
        self.tries = tries
        self._auth = auth
        self._token = token
        self._guard = threading.Lock()
        self._client: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"<Caller {self.place!r}>"

    def get(
        self, path: str, *, largest: int, missing: tuple[int, ...] = (), query: Mapping[str, str] | None = None
    ) -> Answer | None:
        """Return an answer; None for a status in *missing*.

        Raises:
            StoreError: No answer, another status, or one that is too large.
        """

        def read(response: httpx.Response) -> Answer:
            body = b"".join(self._pieces(response, largest, path))
            return _answer(response, body)

        return self._reading(path, missing, {}, read, query)

    def get_file(
        self, path: str, largest: int, *, missing: tuple[int, ...] = (), have: str | None = None
    ) -> tuple[Answer, BinaryIO] | None:
        """Return an answer with its content in a temporary file; a 304 where the tag is still *have*."""

        def read(response: httpx.Response) -> tuple[Answer, BinaryIO]:
            with contextlib.ExitStack() as stack:
                file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="memoryfield-")  # noqa: SIM115  # closed by the stack
                handle = cast(BinaryIO, stack.enter_context(file))
                for piece in self._pieces(response, largest, path):
                    handle.write(piece)
                handle.seek(0)
                stack.pop_all()  # whole: the caller closes it
            return _answer(response, b""), handle

        return self._reading(path, missing, {"If-None-Match": have} if have else {}, read)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Make a writing request, once: whether a lost one was done has to be looked up.

        Raises:
            StoreError: No answer, or a redirect.
        """
        client = self._connected()
        with self._errors(path), client.stream(method, self._url(path), content=body, headers=dict(headers)) as got:
            if got.status_code in _REDIRECTS:
                raise StoreRefused(f"{self.place}{path} sends writes to another address; open that one instead")
            if got.status_code >= 500 and got.status_code not in (501, 503):
                raise StoreUnreachable(f"{self.place}{path}: the server has failed ({got.status_code})")
            return _answer(got, b"")

    def _url(self, path: str) -> str:
        return urljoin(self.place, "/".join(quote(part, safe="") for part in path.split("/")))

    def _reading(
        self,
        path: str,
        missing: tuple[int, ...],
        headers: Mapping[str, str],
        read: Callable[[httpx.Response], Result],
        query: Mapping[str, str] | None = None,
    ) -> Result | None:
        """Make a reading request until there is an answer that can be used, or the tries are used up."""
        for turn in range(1, self.tries + 1):
            try:
                return self._once(path, missing, headers, read, query)
            except _Again as error:
                if turn == self.tries:
                    tried = f" (tried {turn} times)" if turn > 1 else ""
                    raise StoreUnreachable(f"{error}{tried}") from None
                time.sleep(min(_LONGEST_WAIT, max(error.wait, _PAUSE * 2**turn)))
        raise AssertionError("not reached")

    def _once(
        self,
        path: str,
        missing: tuple[int, ...],
        headers: Mapping[str, str],
        read: Callable[[httpx.Response], Result],
        query: Mapping[str, str] | None = None,
    ) -> Result | None:
        client, url = self._connected(), self._url(path)
        if query:
            url = f"{url}?{urlencode(query, safe=',')}"
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                with self._errors(path), client.stream("GET", url, headers=dict(headers)) as response:
                    status = response.status_code
                    if status in _REDIRECTS:
                        url = self._redirected(url, response.headers.get("Location", ""))
                        continue
                    if status in missing:
                        return None
                    if status == 200 or (status == 304 and "If-None-Match" in headers):
                        return read(response)
                    if status in _AGAIN:
                        told = f"{self.place}{path}: the server answers {status}"
                        raise _Again(told, _seconds(response.headers.get("Retry-After", "")))
                    raise self._refusal(path, status)
            except StoreUnreachable as error:
                raise _Again(str(error)) from None
        raise StoreRefused(f"{self.place}{path} redirects in circles")

    def _refusal(self, path: str, status: int) -> Exception:
        if status in (401, 403, 407):
            return StoreRefused(f"{self.place} answers {status}: it wants a token or a password that was not given")
        return StoreRefused(f"{self.place}{path}: the server answers {status}, which is no page")

    def _redirected(self, url: str, location: str) -> str:
        new = urljoin(url, location)
        here, there = urlsplit(url), urlsplit(new)
        try:
            same = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
        except ValueError:
            same = False
        if not location or not same or there.username or there.password:
            raise StoreRefused(f"{self.place} sends us to another place, which is not followed: open that one yourself")
        return new

    def _pieces(self, response: httpx.Response, largest: int, path: str) -> Iterator[bytes]:
        """Yield what a server sends, up to a size and within a time."""
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            # unpacked, a little could become more than there is memory, before a size can be looked at
            raise StoreRefused(f"{self.place}{path} is sent packed, which was not asked for")
        told = response.headers.get("Content-Length", "")
        too_large = f"{self.place}{path} is larger than {largest:,} bytes and not read"
        if told.isdecimal() and len(told) < 20 and int(told) > largest:
            raise StoreRefused(too_large)
        size, started = 0, time.monotonic()
        for piece in response.iter_raw():
            size += len(piece)
            if size > largest:
                raise StoreRefused(too_large)
            if time.monotonic() - started > self.timeout * _PATIENCE + size / _SLOWEST:
                raise StoreUnreachable(f"{self.place}{path}: the answer comes too slowly")
            yield piece

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """Turn what the network does into our errors, without what a library says of it."""
        import httpx

        try:
            yield
        except httpx.TimeoutException:
            message = f"{self.place}{path}: no answer within {self.timeout:g} seconds"
            raise StoreUnreachable(message) from None
        except httpx.ConnectError:
            raise StoreUnreachable(f"{self.place} cannot be reached") from None
        except (httpx.TransportError, OSError):
            raise StoreUnreachable(f"{self.place}{path}: the connection broke off before the end") from None
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError):
            raise StoreRefused(f"{self.place}{path}: the answer is no HTTP that can be used") from None

    def _connected(self) -> httpx.Client:
        import httpx

        with self._guard:
            if self._client is None:
                accept = "text/markdown, application/json;q=0.9, */*;q=0.1"
                headers = {"User-Agent": "memoryfield", "Accept": accept, "Accept-Encoding": "identity"}
                if self._token is not None:
                    headers["Authorization"] = f"Bearer {self._token}"
                self._client = httpx.Client(
                    auth=self._auth,
                    headers=headers,
                    timeout=httpx.Timeout(self.timeout),
                    follow_redirects=False,
                    limits=httpx.Limits(max_connections=16, max_keepalive_connections=16),
                    trust_env=True,
                    # reading the certificates takes a tenth of a second; without https there are none to check
                    verify=self.place.startswith("https:"),
                )
                weakref.finalize(self, self._client.close)
            return self._client

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._guard:
            if self._client is not None:
                self._client.close()
                self._client = None


class _Again(Exception):
    """A request may be made again."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


def place_of(address: str) -> tuple[str, tuple[str, str] | None]:
    """Return an address without credentials, ending in a slash, and the credentials.

    Raises:
        QueryError: There is no host, or a query or fragment.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise QueryError("the address cannot be read: is the host or the port right?") from None
    if not host or parts.query or parts.fragment:
        raise QueryError("an address is https://host/field, without ? and #")
    shown = f"[{host}]" if ":" in host else host
    place = f"{parts.scheme.lower()}://{shown}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}/"
    if any(c.isspace() or not c.isprintable() for c in place):
        raise QueryError("the address holds blanks or control characters")
    if parts.username is None and parts.password is None:
        return place, None
    return place, (unquote(parts.username or ""), unquote(parts.password or ""))


def _answer(response: Any, body: bytes) -> Answer:
    headers = response.headers
    moment = 0
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        moment = int(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp()) * 1_000_000_000
    tag = headers.get("ETag", "").strip().removeprefix("W/")
    kind = headers.get("Content-Type", "").split(";")[0].strip().lower()
    return Answer(response.status_code, body, kind, tag if len(tag) <= 1024 else "", moment)


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
