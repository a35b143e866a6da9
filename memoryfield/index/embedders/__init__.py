"""Embedding models: the one protocol that all of them follow.

What turns texts into vectors lives in this package; how vectors are stored and searched does not. Start at
``catalogue``: ``models()`` lists what can be had, ``load_model()`` gives an ``Embedder``.

    catalogue   names -> embedders; ``auto``
    table       the known models and whether they are ready here
    known       prefixes, sizes and licences of known models
    cache       the models that this process has loaded
    servers     which servers the catalogue may use
    folders     model folders on disk: the hub's cache, prompts, fingerprints; nothing heavy is imported
    bundled     the MiniLM weights that come as a Python package, checked by their sha256
    sentence    sentence-transformers through torch
    fast        the same vectors without torch: onnxruntime and tokenizers (extra ``fast``)
    export      makes what ``fast`` runs, once, and compares it with torch before it is used
    graph       the network as an ONNX graph: BERT and NomicBERT
    http        Ollama and OpenAI-compatible endpoints
    transport   one guarded JSON request
    deadline    HTTP connections that keep one deadline
    redaction   takes a key out of what a server said
    static      one vector a word piece, averaged; weights that come as a Python package (extra ``static``)
    hashing     word hashing, without weights
    shortened   the first dimensions of a longer vector (Matryoshka models)
    rows        checks and scaling that all of them share
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder"]


@runtime_checkable
class Embedder(Protocol):
    """What the index and the searches need from a model.

    Prefixes are added inside ``embed_documents`` and ``embed_query``; callers pass the plain text. Rows are
    unit vectors. A row of zeros, or one that is not finite, means that there is no usable vector for that text
    (an empty text under word hashing, one text that a server rejects): callers refuse it and go on. What stops
    everything raises ``EmbeddingFailed``. Calls from several threads at once are allowed.
    """

    @property
    def model_code(self) -> str:
        """Full name of the model, as it stands in the name of an index file."""
        ...

    @property
    def source(self) -> str:
        """Where the vectors come from: a hub id, a folder or an address without credentials."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Tokens that the model reads, prefix included; the rest of a text is cut. None where nobody says."""
        ...

    @property
    def document_prefix(self) -> str:
        """Put before each document."""
        ...

    @property
    def query_prefix(self) -> str:
        """Put before each query."""
        ...

    @property
    def normalized(self) -> bool:
        """Whether rows have length 1."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text: (n_texts, dimensions) float32."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question: (dimensions,) float32."""
        ...
