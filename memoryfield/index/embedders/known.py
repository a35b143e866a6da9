"""The models whose prefixes, sizes and licences are known.

Any other sentence-transformers model works as well: then its own folder says what its prefixes are.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MODEL = "nomic-embed-text-v1.5"
MINILM = "all-MiniLM-L6-v2"

_SEARCH_SENTENCE = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True)
class KnownModel:
    """One model, wherever it runs.

    Attributes:
        code: Its name in index files.
        source: Hub id.
        dimensions: Length of a vector.
        max_tokens: Tokens that it reads.
        licence: SPDX identifier.
        document_prefix: Put before each document.
        query_prefix: Put before each query.
        ollama: Its name in Ollama's library, where it is there.
        shorter: Lengths to which its vectors may be cut (Matryoshka training).
        centred: Cut only after the mean was taken away.
    """

    code: str
    source: str
    dimensions: int
    max_tokens: int
    licence: str
    document_prefix: str = ""
    query_prefix: str = ""
    ollama: str = ""
    shorter: tuple[int, ...] = ()
    centred: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Every name that means this model, in lower case."""
        owner, _, name = self.source.partition("/")
        served = {self.ollama, f"text-embedding-{self.code}", f"{owner}/{name}"}
        return frozenset(name.lower() for name in {self.code, *served} if name)


def _e5(name: str, dimensions: int, max_tokens: int = 512) -> KnownModel:
    return KnownModel(name, f"intfloat/{name}", dimensions, max_tokens, "MIT", "passage: ", "query: ")


def _bge(name: str, dimensions: int) -> KnownModel:
    return KnownModel(name, f"BAAI/{name}", dimensions, 512, "MIT", "", _SEARCH_SENTENCE)


def _sbert(name: str, dimensions: int, max_tokens: int, ollama: str = "") -> KnownModel:
    return KnownModel(
        name, f"sentence-transformers/{name}", dimensions, max_tokens, "Apache-2.0", ollama=ollama
    )  # fmt: skip


KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        DEFAULT_MODEL,
        "nomic-ai/nomic-embed-text-v1.5",
        768,
        8192,
        "Apache-2.0",
        "search_document: ",
        "search_query: ",
        ollama="nomic-embed-text",
        shorter=(512, 256, 128, 64),
        centred=True,
    ),
    _sbert(MINILM, 384, 256, "all-minilm"),
    _sbert("all-mpnet-base-v2", 768, 384),
    _sbert("paraphrase-multilingual-MiniLM-L12-v2", 384, 128),
    _bge("bge-small-en-v1.5", 384),
    _bge("bge-base-en-v1.5", 768),
    _bge("bge-large-en-v1.5", 1024),
    _e5("e5-small-v2", 384),
    _e5("e5-base-v2", 768),
    _e5("multilingual-e5-small", 384),
    _e5("multilingual-e5-base", 768),
    _e5("multilingual-e5-large", 1024),
    KnownModel(
        "mxbai-embed-large-v1",
        "mixedbread-ai/mxbai-embed-large-v1",
        1024,
        512,
        "Apache-2.0",
        "",
        _SEARCH_SENTENCE,
        ollama="mxbai-embed-large",
        shorter=(512, 256, 128, 64),
    ),
)


def known_model(name: str) -> KnownModel | None:
    """Return the model of that code, hub id or served name (a ``:latest`` or ``:v1.5`` behind it is ignored)."""
    wanted = name.strip().lower()
    plain = wanted.rsplit(":", 1)[0] if wanted.rsplit(":", 1)[-1] in ("latest", "v1.5", "l6-v2") else wanted
    return next((model for model in KNOWN if wanted in model.names or plain in model.names), None)
