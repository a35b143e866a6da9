"""One guarded JSON request over HTTP: size cap, deadline, bounded retries, no redirects, no key in any message."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from memoryfield.errors import EmbeddingFailed, ModelNotReady, QueryError

RESPONSE_LIMIT = 64 * 1024 * 1024
_PAUSES = (0.25, 0.5, 1.0)  # seconds before each further try
_LONGEST_PAUSE = 10.0  # even where the server asks for more
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_PIECE = 256 * 1024


class Unreachable(ModelNotReady):
    """No server answers at that address."""


class Rejected(EmbeddingFailed):
    """The server answered, but with an error.

    Attributes:
        status: The HTTP status.
        retry_after: Seconds that the server asks to wait, 0 where it does not.
    """

    def __init__(self, message: str, status: int, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class Endpoint:
    """An address that takes JSON and gives JSON.

    Attributes:
        url: http or https, without user name and password.
        key: Sent as a bearer token; shown nowhere.
        timeout: Seconds for one request, all of it.
    """

    url: str
    key: str = field(default="", repr=False)
    timeout: float = 300.0

    def __post_init__(self) -> None:
        try:
            parts = urllib.parse.urlsplit(self.url)
            port, host = parts.port, parts.hostname
        except ValueError:
            raise QueryError("the address of the embeddings server cannot be read as a URL") from None
        if parts.scheme not in ("http", "https") or not host or port == 0:
            raise QueryError(f"an embeddings server has an http:// or https:// address, not {parts.scheme!r}")
        if "@" in parts.netloc:
            raise QueryError("user name and password do not belong into the address; use MEMORYFIELD_EMBEDDINGS_KEY")
        if any(character.isspace() or ord(character) < 33 for character in self.url):
            raise QueryError("the address of the embeddings server holds blanks or control characters")
        if any(character < " " or character > "~" for character in self.key):
            raise QueryError("the key for the embeddings server holds characters that no HTTP header may have")

    @property
    def shown(self) -> str:
        """The address for messages: without query, where some services carry a key."""
        parts = urllib.parse.urlsplit(self.url)
        return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(urllib.parse.urlsplit(self.url).hostname or "")

    def ask(self, body: object | None = None, *, retry: bool = True) -> Any:
        """Send *body* (or a GET where None) and return the JSON of the answer.

        Raises:
            Unreachable: Nobody answers.
            Rejected: The answer is an error, or no JSON.
            EmbeddingFailed: The answer is too large or too slow.
        """
        pauses = _PAUSES if retry else ()
        for pause in (*pauses, None):
            try:
                return self._once(body)
            except Rejected as error:
                if pause is None or error.status not in _AGAIN:
                    raise
                wait = max(pause, min(error.retry_after, _LONGEST_PAUSE))
            except Unreachable as error:
                # Where nobody listens, a second changes nothing; a wait for nothing is not repeated.
                if pause is None or isinstance(error.__cause__, ConnectionRefusedError | TimeoutError):
                    raise
                wait = pause
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _once(self, body: object | None) -> Any:
        headers = {"Accept": "application/json", "User-Agent": "memoryfield-lab"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = urllib.request.Request(self.url, data=data, headers=headers)
        # A proxy has no business between two programs on one machine.
        proxies = [urllib.request.ProxyHandler({})] if self.is_loopback else []
        opener = urllib.request.build_opener(_NoRedirect, *proxies)
        deadline = time.monotonic() + self.timeout
        try:
            with opener.open(request, timeout=self.timeout) as response:
                raw = self._read(response, deadline, RESPONSE_LIMIT)
        except urllib.error.HTTPError as error:
            with error:
                raise self._rejected(error) from None
        except urllib.error.URLError as error:
            cause = error.reason if isinstance(error.reason, BaseException) else error
            raise Unreachable(f"{self.shown} does not answer: {self._safe(error.reason)}") from cause
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.shown} broke off: {self._safe(error) or type(error).__name__}") from error
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise Rejected(f"{self.shown} answered, but not with JSON: {self._safe(raw[:80])}", 200) from None

    def _read(self, response: Any, deadline: float, limit: int) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise EmbeddingFailed(f"{self.shown} answered with more than {limit} bytes")
            if time.monotonic() > deadline:
                raise EmbeddingFailed(f"{self.shown} was not done within {self.timeout:g} s")
        if response.length:  # what was announced and did not come; None where nothing was announced
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(pieces)

    def _rejected(self, error: urllib.error.HTTPError) -> Rejected:
        try:
            said = self._safe(error.read(2000))
        except (OSError, http.client.HTTPException):
            said = ""
        if 300 <= error.code < 400:
            said = "it points to another address, which is not followed; give that address itself"
        advice = {
            401: " (is MEMORYFIELD_EMBEDDINGS_KEY right?)",
            403: " (is MEMORYFIELD_EMBEDDINGS_KEY right?)",
            404: " (is the address complete, and the model there?)",
        }.get(error.code, "")
        after = str(error.headers.get("Retry-After", "")) if error.headers else ""
        seconds = float(after[:9]) if after.isdecimal() else 0.0
        return Rejected(f"{self.shown} answered {error.code}{advice}: {said or error.reason}", error.code, seconds)

    def _safe(self, said: object) -> str:
        """What a server or the system said, in one short line, with the key taken out."""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        if self.key:
            text = text.replace(self.key, "***")
        text = "".join(c if c.isprintable() else " " for c in text)
        text = " ".join(text.split())
        return text if len(text) <= 200 else text[:199] + "…"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Following would carry the key, and the pages, to an address that nobody chose."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def environment_endpoint() -> tuple[str, str]:
    """Return address and key from the environment; empty strings where they are not set."""
    names = ("MEMORYFIELD_EMBEDDINGS_URL", "MEMORYFIELD_EMBEDDINGS_KEY")
    url, key = (os.environ.get(name, "").strip() for name in names)
    return url, key
