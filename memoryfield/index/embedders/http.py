"""Models behind an HTTP address: Ollama, and whatever speaks OpenAI's ``/v1/embeddings``.

Prefixes are added here: neither protocol knows the difference between a question and a document. Texts are sent
in batches; a batch that is rejected is halved until the one text that the server does not take stands alone, and
that text gets a row of zeros while the others keep theirs.
"""

from __future__ import annotations

import base64
import binascii
import os
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryfield.errors import EmbeddingFailed, ModelNotReady
from memoryfield.index.embedders.known import known_model
from memoryfield.index.embedders.rows import Matrix, only, prefixed, unit_rows
from memoryfield.index.embedders.transport import Endpoint, Rejected, is_loopback

OLLAMA_PORT = 11434
_BATCH_TEXTS = 32
_BATCH_BYTES = 64 * 1024  # a slow server takes some seconds for each page of 8 kB
_TOO_LONG = ("context length", "too long", "too large", "maximum context", "exceed", "max_tokens", "input length")
_TEXT_ITSELF = (400, 413, 422, 500)  # may be about one text; other errors are about the server or the key
_HALVINGS = 4
_MOST_DIMENSIONS = 65536  # more is a mistake or a trap: a matrix is made of it before the first vector has come
_MOST_TOKENS = 2**31 - 1


class _HttpEmbedder(ABC):
    """What both protocols share."""

    normalized = True
    backend = "http"

    def __init__(
        self,
        endpoint: Endpoint,
        served: str,
        *,
        model_code: str | None,
        document_prefix: str | None,
        query_prefix: str | None,
        max_tokens: int | None,
    ) -> None:
        known = known_model(served)
        self.endpoint = endpoint
        self.served = served
        self.model_code = model_code or (known.code if known else served.removesuffix(":latest"))
        self.source = f"{endpoint.shown} ({served})"
        self.max_tokens = max_tokens or (known.max_tokens if known else None)
        own = (known.document_prefix, known.query_prefix) if known else ("", "")
        self.document_prefix = own[0] if document_prefix is None else document_prefix
        self.query_prefix = own[1] if query_prefix is None else query_prefix
        self.backend_note = ""
        self.chosen_because = ""
        self.dimensions = self._found_dimensions()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_code!r}, dimensions={self.dimensions}, url={self.endpoint.shown!r})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, dimensions) float32."""
        return self._embed(prefixed(self.document_prefix, texts))

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (dimensions,) float32."""
        return only(self._embed(prefixed(self.query_prefix, [text])))

    @abstractmethod
    def _request(self, texts: list[str], *, retry: bool = True) -> list[Any]:
        """Ask for vectors once; the answer is a list with one entry for each text, not yet checked."""

    def _found_dimensions(self) -> int:
        """Say how long the model's vectors are, by embedding one text; shows as well that it is there."""
        try:
            answer = self._request(["test"], retry=False)
            if len(answer) != 1:
                raise EmbeddingFailed(f"{self.source} gave {len(answer)} vectors for 1 text")
            row = _row(answer[0], self.source)
        except Rejected as error:
            raise ModelNotReady(f"model {self.served!r}: {error}") from error
        except EmbeddingFailed as error:
            raise ModelNotReady(f"model {self.served!r}: {error}") from error
        if not 1 <= len(row) <= _MOST_DIMENSIONS or not np.isfinite(row).all():
            raise ModelNotReady(f"model {self.served!r} at {self.endpoint.shown} gave no usable vector for a test")
        return len(row)

    def _embed(self, texts: list[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        failures: list[Rejected] = []
        for start, stop in _slices(texts):
            self._fill(rows, texts, start, stop, failures)
        if texts and len(failures) == len(texts):
            raise failures[-1]
        return unit_rows(rows)

    def _fill(self, rows: Matrix, texts: list[str], start: int, stop: int, failures: list[Rejected]) -> None:
        try:
            answer = self._request(texts[start:stop])
        except Rejected as error:
            if error.status not in _TEXT_ITSELF:
                raise
            if stop - start > 1:
                middle = (start + stop) // 2
                self._fill(rows, texts, start, middle, failures)
                self._fill(rows, texts, middle, stop, failures)
                return
            shortened = self._shortened(texts[start], error)
            if shortened is None:
                failures.append(error)
                return
            answer = shortened
        if len(answer) != stop - start:
            raise EmbeddingFailed(f"{self.source} gave {len(answer)} vectors for {stop - start} texts")
        for position, entry in enumerate(answer, start):
            row = _row(entry, self.source)
            if len(row) != self.dimensions:
                raise EmbeddingFailed(
                    f"{self.source} gave a vector of {len(row)} dimensions after vectors of {self.dimensions}; "
                    "was another model loaded under that name?"
                )
            if np.isfinite(row).all():
                rows[position] = row
            else:
                failures.append(Rejected(f"{self.source} gave a vector that is not finite", 200))

    def _shortened(self, text: str, error: Rejected) -> list[Any] | None:
        """Try the first half of a text, and half of that, where the server said that it is too long."""
        for _ in range(_HALVINGS):
            if len(text) < 2 or not any(sign in str(error).lower() for sign in _TOO_LONG):
                return None
            text = text[: len(text) // 2]
            try:
                return self._request([text])
            except Rejected as again:
                error = again
        return None


class OllamaEmbedder(_HttpEmbedder):
    """A model served by Ollama (``/api/embed``)."""

    backend = "ollama"

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        url: str | None = None,
        model_code: str | None = None,
        document_prefix: str | None = None,
        query_prefix: str | None = None,
        max_tokens: int | None = None,
        timeout: float = 300.0,
    ) -> None:
        """Connect, and ask the server what it knows of the model.

        Args:
            model: Name under which Ollama knows it, or the code of a known model.
            url: Address of the server; ``OLLAMA_HOST``, else this machine's port 11434, where None.
            model_code: Name for index files; a known model's code, else *model* without ``:latest``, where None.
            document_prefix: Put before each document; what is known of the model where None.
            query_prefix: Put before each query; likewise.
            max_tokens: Where the model stops reading; what the server says where None.
            timeout: Seconds for one request.

        Raises:
            ModelNotReady: No server, or it has no such model.
        """
        known = known_model(model)
        self._server = (url or ollama_url()).rstrip("/")
        self._read_tokens = 0
        super().__init__(
            Endpoint(f"{self._server}/api/embed", timeout=timeout),
            known.ollama if known and known.ollama and model in (known.code, known.source) else model,
            model_code=model_code,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            max_tokens=max_tokens,
        )
        if max_tokens is None and self._read_tokens > 0:
            self.max_tokens = min(self._read_tokens, self.max_tokens or self._read_tokens)

    def _request(self, texts: list[str], *, retry: bool = True) -> list[Any]:
        answer = self.endpoint.ask({"model": self.served, "input": texts, "truncate": True}, retry=retry)
        return _list(answer, "embeddings", self.source)

    def _found_dimensions(self) -> int:
        """Ask for the model's description; embed a text only where that does not say."""
        try:
            about = Endpoint(f"{self._server}/api/show", timeout=min(self.endpoint.timeout, 10.0)).ask(
                {"model": self.served}, retry=False
            )
            facts = about["model_info"]
            dimensions = _size(facts, "embedding_length", _MOST_DIMENSIONS)
            self._read_tokens = _size(facts, "context_length", _MOST_TOKENS)
        except Rejected as error:
            if error.status == 404:
                raise ModelNotReady(
                    f"Ollama at {self._server} has no model {self.served!r}; run: ollama pull {self.served}"
                ) from error
            dimensions = 0
        except (EmbeddingFailed, KeyError, TypeError, AttributeError):
            dimensions = 0
        return dimensions or super()._found_dimensions()


class OpenAIEmbedder(_HttpEmbedder):
    """A model behind an OpenAI-compatible address (``/v1/embeddings``)."""

    backend = "endpoint"

    def __init__(
        self,
        model: str,
        *,
        url: str,
        key: str = "",
        model_code: str | None = None,
        document_prefix: str | None = None,
        query_prefix: str | None = None,
        max_tokens: int | None = None,
        timeout: float = 300.0,
    ) -> None:
        """Connect, and embed one text to learn the dimensions.

        Args:
            model: Name under which the server knows it.
            url: The server, its ``/v1``, or the whole ``.../embeddings``.
            key: Bearer token; never shown.
            model_code: Name for index files; a known model's code, else *model*, where None.
            document_prefix: Put before each document; what is known of the model where None.
            query_prefix: Put before each query; likewise.
            max_tokens: Where the model stops reading; what is known of the model where None.
            timeout: Seconds for one request.

        Raises:
            ModelNotReady: No server, or it has no such model, or the key is wrong.
            QueryError: The address or the key cannot be used at all.
        """
        super().__init__(
            Endpoint(_embeddings_url(url), key, timeout),
            model,
            model_code=model_code,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            max_tokens=max_tokens,
        )

    def _request(self, texts: list[str], *, retry: bool = True) -> list[Any]:
        body = {"model": self.served, "input": texts, "encoding_format": "float"}
        data = _list(self.endpoint.ask(body, retry=retry), "data", self.source)
        try:
            pairs = [(entry["index"], entry["embedding"]) for entry in data]
        except (KeyError, TypeError):
            raise EmbeddingFailed(f"{self.source}: entries of 'data' lack index or embedding") from None
        # Anything else than each number once could give a text the vector of another.
        if not all(type(index) is int for index, _ in pairs) or {i for i, _ in pairs} != set(range(len(pairs))):
            raise EmbeddingFailed(f"{self.source}: the indexes in 'data' are not the whole numbers from 0, each once")
        vectors = dict(pairs)
        return [vectors[index] for index in range(len(vectors))]


def ollama_url() -> str:
    """Return Ollama's address: ``OLLAMA_HOST`` in any of the forms that Ollama takes, else port 11434 here."""
    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/")
    if "://" not in host:
        host = f"http://{host}"
    parts = urllib.parse.urlsplit(host)
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name in ("0.0.0.0", "::", "*") else name  # what a server binds, no address to call
    name = f"[{name}]" if ":" in name else name
    try:
        port = parts.port
    except ValueError:
        port = None
    # With a scheme and no port, Ollama's own client takes the scheme's port.
    usual = {"https": 443}.get(parts.scheme, OLLAMA_PORT)
    return f"{parts.scheme}://{name}:{port or usual}{parts.path}"


def ollama_has(model: str, seconds: float = 1.0) -> tuple[bool, str]:
    """Say whether an Ollama on this machine has *model*, and what was seen, without loading it.

    Servers on other machines are not asked: nothing that was not named may learn of the pages.
    """
    url = ollama_url()
    if not is_loopback(urllib.parse.urlsplit(url).hostname or ""):
        return False, "not asked, for OLLAMA_HOST is another machine (the backend ollama uses it)"
    try:
        answer = Endpoint(f"{url}/api/tags", timeout=seconds).ask(retry=False)
        names = {str(entry.get("name", "")).removesuffix(":latest") for entry in answer["models"]}
    except (ModelNotReady, EmbeddingFailed) as error:
        return False, str(error)
    except (KeyError, TypeError, AttributeError):
        return False, f"{url} is something else than Ollama"
    if model.removesuffix(":latest") in names:
        return True, f"{url} has {model}"
    return False, f"{url} answers but has no {model}; run: ollama pull {model}"


def _embeddings_url(url: str) -> str:
    parts = urllib.parse.urlsplit(url.strip())
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = f"{path}/embeddings" if path.rsplit("/", 1)[-1].startswith("v1") else f"{path}/v1/embeddings"
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _slices(texts: list[str]) -> list[tuple[int, int]]:
    """Cut *texts* into runs of bounded number and size."""
    slices, start, size = [], 0, 0
    for position, text in enumerate(texts):
        length = len(text.encode("utf-8"))
        if position > start and (position - start == _BATCH_TEXTS or size + length > _BATCH_BYTES):
            slices.append((start, position))
            start, size = position, 0
        size += length
    return [*slices, (start, len(texts))] if texts else []


def _list(answer: Any, name: str, source: str) -> list[Any]:
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise EmbeddingFailed(f"{source}: the answer has no list {name!r}; is this the right kind of server?")
    return found


def _size(facts: dict[str, Any], name: str, most: int) -> int:
    """Read a size from Ollama's description of a model: that of its architecture, 0 where there is no sensible one."""
    found = {key: v for key, v in facts.items() if key.endswith(f".{name}") and type(v) is int and 1 <= v <= most}
    # A model may have several parts (bert.embedding_length, bert.vision.embedding_length).
    own = found.get(f"{facts.get('general.architecture')}.{name}")
    return own if own is not None else next(iter(found.values()), 0)


def _row(entry: Any, source: str) -> Matrix:
    """Read one vector: a list of numbers (null is what some servers write for NaN), or base64 of LE float32."""
    try:
        if isinstance(entry, str):
            return np.frombuffer(base64.b64decode(entry, validate=True), "<f4").astype(np.float32)
        if not isinstance(entry, list) or not set(map(type, entry)) <= {float, int, type(None)}:
            raise TypeError
        with np.errstate(over="ignore"):
            row = np.array(entry, dtype=np.float32)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        raise EmbeddingFailed(f"{source} gave a vector that is no list of numbers") from None
    return row
