"""Which servers the catalogue may use: Ollama on this machine, and the endpoint that the environment names."""

from __future__ import annotations

import time

from memoryfield.errors import MemoryfieldError, ModelNotReady
from memoryfield.index.embedders import Embedder
from memoryfield.index.embedders.http import OllamaEmbedder, OpenAIEmbedder, ollama_has
from memoryfield.index.embedders.known import KnownModel
from memoryfield.index.embedders.transport import Unreachable, environment_endpoint


def first_server(known: KnownModel, seen: list[str], *, only: str | None = None) -> Embedder | None:
    """Return *known* from Ollama on this machine or from the endpoint of the environment, whichever has it first.

    Args:
        known: The model.
        seen: Gets a line for each place, with what it said and the time that it took.
        only: ``ollama`` or ``endpoint``, to leave the other one out.
    """
    started = time.monotonic()
    if known.ollama and only in (None, "ollama"):
        has, what = ollama_has(known.ollama)
        if has:
            try:
                return ollama(known.ollama)
            except MemoryfieldError as error:
                what = str(error)
        seen.append(f"Ollama: {what} ({time.monotonic() - started:.1f} s)")
    started = time.monotonic()
    if only in (None, "endpoint"):
        try:
            return endpoint(known.code)
        except MemoryfieldError as error:
            seen.append(f"endpoint: {error} ({time.monotonic() - started:.1f} s)")
    return None


def ollama(name: str) -> OllamaEmbedder:
    """Connect to a model of Ollama.

    Raises:
        ModelNotReady: No server answers, or it has no such model.
    """
    try:
        return OllamaEmbedder(name)
    except Unreachable as error:
        raise ModelNotReady(f"{error}. Start Ollama (ollama serve), or set OLLAMA_HOST to where it runs") from error


def endpoint(name: str) -> OpenAIEmbedder:
    """Connect to a model behind the address of the environment.

    Raises:
        ModelNotReady: The address is not set, does not answer, or has no such model.
    """
    url, key = environment_endpoint()
    if not url:
        raise ModelNotReady("MEMORYFIELD_EMBEDDINGS_URL, the address of an OpenAI-compatible server, is not set")
    return OpenAIEmbedder(name, url=url, key=key)
