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

from memoryfield.display import plain
from memoryfield.errors import EmbeddingFailed, ModelError, ModelNotReady, QueryError
from memoryfield.index.embedders.deadline import Deadline
from memoryfield.index.embedders.redaction import redacted

RESPONSE_LIMIT = 64 * 1024 * 1024
_PAUSES = (0.25, 0.5, 1.0)  # seconds before each further try
_LONGEST_PAUSE = 10.0  # even where the server asks for more
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_PIECE = 256 * 1024
_SAID_LIMIT = 16 * 1024  # read of an error; much more than is shown, so that no key is cut before it is found


class Unreachable(ModelNotReady):
    """No server answers at that address.

    Attributes:
        again: Whether another try may find it.
    """

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


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
        timeout: Seconds for one request, all of it but the system's look-up of the host's name.
        kind: What the server is called in messages.
        key_name: Where the user gives the key, for messages.
    """

    url: str
    key: str = field(default="", repr=False)
    timeout: float = 300.0
    kind: str = "embeddings server"
    key_name: str = "MEMORYFIELD_EMBEDDINGS_KEY"

    def __post_init__(self) -> None:
        try:
            parts = urllib.parse.urlsplit(self.url)
            port, host = parts.port, parts.hostname
        except ValueError:
            raise QueryError(f"the address of the {self.kind} cannot be read as a URL") from None
        if parts.scheme not in ("http", "https") or not host or port == 0:
            raise QueryError(f"the address of the {self.kind} begins with http:// or https://, not {parts.scheme!r}")
        if "@" in parts.netloc:
            raise QueryError(f"user name and password do not belong into the address; use {self.key_name}")
        if any(character.isspace() or ord(character) < 33 for character in self.url):
            raise QueryError(f"the address of the {self.kind} holds blanks or control characters")
        if any(character < " " or character > "~" for character in self.key):
            raise QueryError(f"the key for the {self.kind} holds characters that no HTTP header may have")

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
            answer = self._once(body)
            if not isinstance(answer, ModelError):
                return answer
            if pause is None:
                raise answer
            if isinstance(answer, Rejected) and answer.status in _AGAIN:
                pause = max(pause, min(answer.retry_after, _LONGEST_PAUSE))
            elif not (isinstance(answer, Unreachable) and answer.again):
                raise answer
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(self, body: object | None) -> Any:
        """Return the JSON of the answer, or what went wrong.

        That is returned and raised elsewhere, so that no error that quotes the server hangs on it as its context.
        """
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
        deadline = Deadline(self.timeout)
        try:
            with deadline.opener(_NoRedirect, *proxies).open(request) as response:
                raw = self._read(response)
        except urllib.error.HTTPError as error:
            with error:
                return self._rejected(error)
        except EmbeddingFailed as error:
            return error
        except (OSError, http.client.HTTPException, ValueError) as error:
            return self._unreachable(error)
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            start = self._safe(raw[:_SAID_LIMIT], 80)
            return Rejected(f"{self.shown} answered, but not with JSON: {start}", 200)

    def _read(self, response: Any) -> bytes:
        pieces, size = [], 0
        try:
            while piece := response.read1(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > RESPONSE_LIMIT:
                    raise EmbeddingFailed(f"{self.shown} answered with more than {RESPONSE_LIMIT} bytes")
        except TimeoutError:
            raise self._too_slow("its answer") from None
        if response.length:  # what was announced and did not come; None where nothing was announced
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(pieces)

    def _unreachable(self, error: Exception) -> Unreachable:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, TimeoutError):
            return Unreachable(f"{self.shown} does not answer: timed out (limit: {self.timeout:g} s)", again=False)
        what = "does not answer" if isinstance(error, urllib.error.URLError) else "broke off"
        said = self._safe(cause) or type(cause).__name__
        # Where nobody listens, a second changes nothing; a wait for nothing (above) is not repeated.
        return Unreachable(f"{self.shown} {what}: {said}", again=not isinstance(cause, ConnectionRefusedError))

    def _rejected(self, error: urllib.error.HTTPError) -> EmbeddingFailed:
        raw = b""
        try:
            while len(raw) < _SAID_LIMIT and (piece := error.read1(_SAID_LIMIT - len(raw))):
                raw += piece
        except TimeoutError:
            return self._too_slow(f"the text of its answer {error.code}")
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the status alone says enough
        said = self._safe(raw) or self._safe(error.reason)
        if 300 <= error.code < 400:
            said = "it points to another address, which is not followed; give that address itself"
        advice = {
            401: f" (is {self.key_name} right?)",
            403: f" (is {self.key_name} right?)",
            404: " (is the address complete, and the model there?)",
        }.get(error.code, "")
        after = str(error.headers.get("Retry-After", "")) if error.headers else ""
        seconds = float(after[:9]) if after.isdecimal() else 0.0
        return Rejected(f"{self.shown} answered {error.code}{advice}: {said}", error.code, seconds)

    def _too_slow(self, what: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"{self.shown} was not done with {what} within {self.timeout:g} s")

    def _safe(self, said: object, limit: int = 200) -> str:
        """What a server or the system said, in one short line that a terminal can show, with the keys taken out."""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        text = redacted(text[:_SAID_LIMIT], self._secrets())
        return plain(" ".join(text.split()), limit)

    def _secrets(self) -> list[str]:
        """The key, and what may be one in the query of the address."""
        values = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query)
        in_query = [value for name, value in values if len(value) >= 8 and "version" not in name.lower()]
        return [secret for secret in (self.key, *in_query) if secret]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Following would carry the key, and the pages, to an address that nobody chose."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> None:
        return None  # without a look at the address, which may be malformed

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


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
