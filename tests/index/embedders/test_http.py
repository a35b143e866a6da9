"""Ollama and OpenAI-compatible servers, over a real loopback server that can misbehave."""

from __future__ import annotations

import base64
import json
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import EmbeddingFailed, ModelNotReady, QueryError
from memoryfield.index.embedders import transport
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.embedders.http import OllamaEmbedder, OpenAIEmbedder, ollama_has, ollama_url

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAUSES", (0.01, 0.02, 0.03))


def _open(server: Any, **settings: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("plain-model", url=server.url, key=KEY, **settings)


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "nomic-embed-text-v1.5"])
def test_ollama_gets_nomics_prefixes_and_gives_its_code_X5(server: Any, name: str) -> None:
    if name.endswith(":latest"):
        server.behave = lambda path, request: server.answer(path, {**request, "model": "nomic-embed-text"})
    embedder = OllamaEmbedder(name, url=server.url)
    assert embedder.model_code == "nomic-embed-text-v1.5"
    assert embedder.max_tokens == 2048, "Ollama's nomic stops there"
    assert server.texts() == [], "asking about a model embeds nothing"
    embedder.embed_documents(["a page"])
    embedder.embed_query("a question")
    assert server.texts() == ["search_document: a page", "search_query: a question"]
    path, request, _ = server.requests[-1]
    assert path == "/api/embed" and request["truncate"] is True and request["model"] == name.replace("-v1.5", "")


def test_other_ollama_models_keep_their_name(server: Any) -> None:
    embedder = OllamaEmbedder("plain-model", url=server.url)
    assert (embedder.model_code, embedder.document_prefix, embedder.dimensions) == ("plain-model", "", 1024)


def test_openai_sends_key_model_and_float(server: Any) -> None:
    embedder = _open(server)
    rows = embedder.embed_documents(["one page", "another page"])
    path, request, headers = server.requests[-1]
    assert path == "/v1/embeddings" and headers["Authorization"] == f"Bearer {KEY}"
    assert request == {"model": "plain-model", "input": ["one page", "another page"], "encoding_format": "float"}
    expected = server.hashing.embed_documents(["one page", "another page"])
    assert np.allclose(rows, expected, atol=1e-6), "put in order by the answer's index"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_forms_of_the_address(server: Any, ending: str) -> None:
    embedder = OpenAIEmbedder("plain-model", url=server.url + ending)
    assert server.requests[-1][0] == "/v1/embeddings"
    assert "Authorization" not in server.requests[-1][2]
    assert embedder.dimensions == 1024


def test_base64_vectors(server: Any) -> None:
    row = np.arange(1, 5, dtype="<f4")
    answer = {"data": [{"index": 0, "embedding": base64.b64encode(row.tobytes()).decode()}]}
    server.behave = lambda path, request: server.json(answer)
    assert np.allclose(_open(server).embed_query("x"), row / np.linalg.norm(row))


def test_many_texts_go_in_batches(server: Any) -> None:
    texts = [f"page {n} of the field" for n in range(70)] + ["long " * 60_000, "last"]
    rows = _open(server).embed_documents(texts)
    assert server.texts()[1:] == texts
    assert [len(request["input"]) for _, request, _ in server.requests[1:]] == [32, 32, 6, 1, 1]
    assert np.allclose(rows, server.hashing.embed_documents(texts), atol=1e-6)


def test_busy_servers_are_asked_again(server: Any) -> None:
    embedder = _open(server)
    answers = iter([503, 429, 500])

    def behave(path: str, request: dict[str, Any]) -> Any:
        status = next(answers, None)
        return status and (status, {"Retry-After": "0"}, b"busy")

    server.behave = behave
    assert embedder.embed_query("a question").shape == (1024,)
    assert len(server.requests) == 1 + 4


def test_retries_end(server: Any) -> None:
    embedder = _open(server)
    server.behave = lambda path, request: (503, {}, b"busy")
    with pytest.raises(EmbeddingFailed, match="answered 503: busy"):
        embedder.embed_query("a question")
    assert len(server.requests) == 1 + 4


def test_wrong_keys_are_not_tried_again(server: Any) -> None:
    embedder = _open(server)
    server.behave = lambda path, request: (401, {}, b'{"error": "no"}')
    with pytest.raises(EmbeddingFailed, match=r"401 .is MEMORYFIELD_EMBEDDINGS_KEY right"):
        embedder.embed_documents(["a", "b"])
    assert len(server.requests) == 2
    with pytest.raises(ModelNotReady, match="401"):
        _open(server)


def test_redirects_are_not_followed(server: Any, new_server: Callable[[], Any]) -> None:
    """The key and the pages go to the address that was named, and to no other."""
    elsewhere = new_server()
    embedder = _open(server)
    for status in (301, 302, 307, 308):
        server.behave = lambda path, request, status=status: (status, {"Location": elsewhere.url + path}, b"")
        with pytest.raises(EmbeddingFailed, match="which is not followed"):
            embedder.embed_query("a question")
    assert elsewhere.requests == []


def test_the_key_is_shown_nowhere(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = _open(server)
    shown = [repr(embedder), repr(embedder.endpoint), str(vars(embedder)), embedder.source]
    server.behave = lambda path, request: (400, {}, f"bad key {KEY} in request".encode())
    with pytest.raises(EmbeddingFailed, match=r"bad key \*\*\*") as failure:
        embedder.embed_query("a question")
    shown += [str(failure.value), repr(failure.value), str(failure.value.__cause__), caplog.text]
    assert not [text for text in shown if KEY in text]
    with pytest.raises(QueryError) as refused:
        OpenAIEmbedder("plain-model", url=server.url, key=KEY + "\n")
    assert KEY not in str(refused.value)


def test_keys_in_the_query_of_an_address_are_not_shown(server: Any) -> None:
    server.behave = lambda path, request: server.answer(path.split("?")[0], request)
    embedder = OpenAIEmbedder("plain-model", url=f"{server.url}/v1/embeddings?api-key={KEY}")
    assert KEY in server.requests[-1][0] and KEY not in repr(embedder) + embedder.source


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://host/x", "host:80", "http://", "http://me:secret@host", "http://h:0", "http://h:9x"],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(QueryError) as refused:
        OpenAIEmbedder("m", url=url)
    assert "secret" not in str(refused.value)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAUSES", (5.0, 5.0))
    started = time.monotonic()
    with pytest.raises(ModelNotReady, match=r"127.0.0.1:9/v1/embeddings does not answer"):
        OpenAIEmbedder("m", url="http://127.0.0.1:9")
    with pytest.raises(ModelNotReady, match=r"does not answer.*ollama serve"):
        load_model("ollama:nomic-embed-text")
    assert time.monotonic() - started < 2


def test_a_silent_server_runs_into_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(ModelNotReady, match="timed out"):
            OpenAIEmbedder("m", url=url, timeout=0.3)
        assert time.monotonic() - started < 3
        started = time.monotonic()
        assert ollama_has("nomic-embed-text", 0.2)[0] is False
        assert time.monotonic() - started < 3


def test_a_server_that_goes_away(new_server: Callable[[], Any]) -> None:
    server = new_server()
    embedder = _open(server)
    server.behave = lambda path, request: (200, {"Content-Length": "1000"}, b"{")
    with pytest.raises(ModelNotReady, match=r"broke off|does not answer"):
        embedder.embed_query("a question")


def test_huge_answers_are_cut_off(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = _open(server)
    monkeypatch.setattr(transport, "RESPONSE_LIMIT", 100_000)
    server.behave = lambda path, request: (200, {}, b" " * 3_000_000)
    with pytest.raises(EmbeddingFailed, match="more than 100000 bytes"):
        embedder.embed_query("a question")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>hello</html>", "not with JSON: <html>"),
        (b"[" * 100_000, "not with JSON"),
        (b"[]", "no list 'data'"),
        (b'{"data": "no"}', "no list 'data'"),
        (b'{"data": []}', "0 vectors for 1 texts"),
        (b'{"data": [{"index": 0}]}', "lack index or embedding"),
        (b'{"data": [{"embedding": [1.0], "index": "x"}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": 1e999}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": 0.0}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": false}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": 1}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": -1}]}', "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": 1%s}]}' % (b"0" * 400), "whole numbers from 0"),
        (b'{"data": [{"embedding": [1.0], "index": []}]}', "whole numbers from 0"),
        (b'{"data": ["index"]}', "lack index or embedding"),
        (b'{"data": [{"embedding": [1.0, 2.0], "index": 0}]}', "2 dimensions after vectors of 1024"),
        (b'{"data": [{"embedding": [[1.0]], "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": {"a": 1}, "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": ["a"], "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": "%%%", "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": ["1.0"], "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": [true], "index": 0}]}', "no list of numbers"),
        (b'{"data": [{"embedding": 1.0, "index": 0}]}', "no list of numbers"),
    ],
)
def test_answers_that_make_no_sense(server: Any, answer: bytes, message: str) -> None:
    embedder = _open(server)
    server.behave = lambda path, request: (200, {}, answer)
    with pytest.raises(EmbeddingFailed, match=message):
        embedder.embed_query("a question")


@pytest.mark.parametrize("indexes", [[0, 0, 1], [0, 2, 2], [1, 2, 3], [-1, 0, 1], [0, 1, True], [0, 1, 10**400]])
def test_indexes_that_could_give_a_text_the_vector_of_another(server: Any, indexes: list[Any]) -> None:
    embedder = _open(server)
    row = [1.0] * 1024
    server.behave = lambda path, request: server.json({"data": [{"index": i, "embedding": row} for i in indexes]})
    with pytest.raises(EmbeddingFailed, match="whole numbers from 0, each once"):
        embedder.embed_documents(["a", "b", "c"])


def test_a_test_without_a_vector(server: Any) -> None:
    for answer in (b'{"data": []}', b'{"data": [{"index": 0, "embedding": []}]}'):
        server.behave = lambda path, request, answer=answer: (200, {}, answer)
        with pytest.raises(ModelNotReady, match=r"gave 0 vectors for 1 text|no usable vector"):
            _open(server)


@pytest.mark.parametrize("size", ["1" + "0" * 15, "1" + "0" * 400, "65537", "0", "-1", "true", "1e3", '"9"', "null"])
def test_sizes_of_a_model_that_make_no_sense(server: Any, size: str) -> None:
    """The vector of one text says how long vectors are, where the description does not."""
    about = f'{{"model_info": {{"bert.embedding_length": {size}, "bert.context_length": {size}}}}}'.encode()
    server.behave = lambda path, request: (200, {}, about) if path == "/api/show" else None
    embedder = OllamaEmbedder("plain-model", url=server.url)
    assert embedder.dimensions == 1024 and server.texts() == ["test"]
    assert embedder.max_tokens is None or embedder.max_tokens < 2**31
    assert embedder.embed_documents(["a page"]).shape == (1, 1024)


def test_vectors_that_are_longer_than_any(server: Any) -> None:
    server.behave = lambda path, request: server.json({"data": [{"index": 0, "embedding": [1.0] * 65537}]})
    with pytest.raises(ModelNotReady, match="no usable vector"):
        _open(server)


def test_a_model_of_several_parts_has_the_size_of_its_own(server: Any) -> None:
    facts = {"general.architecture": "two", "two.embedding_length": 1024, "two.vision.embedding_length": 99}
    server.behave = lambda path, request: server.json({"model_info": facts}) if path == "/api/show" else None
    assert OllamaEmbedder("plain-model", url=server.url).dimensions == 1024


def test_vectors_that_are_not_finite_X7(server: Any) -> None:
    embedder = _open(server)

    def behave(path: str, request: dict[str, Any]) -> Any:
        rows = [[float("nan") if "bad" in text else 1.0] * 1024 for text in request["input"]]
        return server.json({"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]})

    server.behave = behave
    rows = embedder.embed_documents(["good", "bad", "fine"])
    assert np.linalg.norm(rows, axis=1).round(4).tolist() == [1, 0, 1], "zero: no usable vector"
    with pytest.raises(EmbeddingFailed, match="not finite"):
        embedder.embed_query("bad")


def test_one_text_that_is_rejected_does_not_stop_the_others(server: Any) -> None:
    embedder = _open(server)

    def behave(path: str, request: dict[str, Any]) -> Any:
        return server.json({"error": "cannot"}, 400) if any("bad" in text for text in request["input"]) else None

    server.behave = behave
    texts = [f"page number {n}" for n in range(20)]
    texts[13] = "bad"
    rows = embedder.embed_documents(texts)
    assert np.flatnonzero(np.linalg.norm(rows, axis=1) == 0).tolist() == [13]
    with pytest.raises(EmbeddingFailed, match="cannot"):
        embedder.embed_documents(["bad", "bad"])


def test_texts_that_are_too_long_are_halved(server: Any) -> None:
    """Ollama's truncation does not always hold: CJK and base64 of 8192 bytes exceed nomic's 2048 tokens."""
    embedder = OllamaEmbedder(url=server.url)

    def behave(path: str, request: dict[str, Any]) -> Any:
        if any(len(text) > 2048 for text in request.get("input", [])):
            return server.json({"error": "the input length exceeds the context length"}, 400)
        return None

    server.behave = behave
    rows = embedder.embed_documents(["word " * 1600, "short page"])
    assert np.linalg.norm(rows, axis=1).round(4).tolist() == [1, 1]


def test_a_model_that_is_not_there(server: Any) -> None:
    with pytest.raises(ModelNotReady, match="ollama pull other"):
        OllamaEmbedder("other", url=server.url)
    with pytest.raises(ModelNotReady, match=r"404 .is the address complete, and the model there.*not found"):
        OpenAIEmbedder("other", url=server.url)


def test_an_ollama_that_describes_nothing_is_asked_for_a_vector(server: Any) -> None:
    server.behave = lambda path, request: server.json({}) if path == "/api/show" else None
    assert OllamaEmbedder("plain-model", url=server.url).dimensions == 1024
    assert server.texts() == ["test"]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]:4000", "http://127.0.0.1:4000"),
        ("127.0.0.1:4000/", "http://127.0.0.1:4000"),
        ("http://box:80", "http://box:80"),
        ("https://box/ollama", "https://box:443/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("box:notaport", "http://box:11434"),
    ],
)
def test_forms_of_ollama_host(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert ollama_url() == url


def test_ollama_elsewhere_is_not_asked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:11434")
    started = time.monotonic()
    has, seen = ollama_has("nomic-embed-text")
    assert not has and "another machine" in seen and time.monotonic() - started < 0.5


def test_proxies_of_the_environment_are_not_used_on_this_machine(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert _open(server).embed_query("a question").shape == (1024,)


def test_requests_are_json(server: Any) -> None:
    _open(server).embed_documents(["船 \ud800 \x00"])
    assert server.texts()[-1] == "船 ? \x00"
    assert json.loads(json.dumps(server.requests[-1][1]))["input"] == ["船 ? \x00"]
