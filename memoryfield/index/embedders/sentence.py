"""sentence-transformers through torch: any of its models, by folder or hub id.

The model's own prompt machinery is switched off and prefixes are added here, since a model without stored
prompts would otherwise get none and say nothing. Loading looks at the disk first; the hub is asked only after a
short test has found it reachable, for the hub's client retries for more than a minute where there is no network.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import logging
import os
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memoryfield.advice import advice
from memoryfield.display import plain
from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders.deadline import Deadline
from memoryfield.index.embedders.rows import Matrix, check_shape, only, prefixed, unit_rows

PROBE_SECONDS = 3.0
_NO_LIMIT = 1_000_000  # tokenizers without a limit name a huge number
_loading = threading.RLock()  # the quiet below is global to the process


class SentenceEmbedder:
    """A loaded sentence-transformers model."""

    normalized = True
    backend = "torch"

    def __init__(
        self, model: Any, *, model_code: str, source: str, document_prefix: str = "", query_prefix: str = ""
    ) -> None:
        """Wrap a loaded model.

        Args:
            model: A ``SentenceTransformer``; its default prompt is switched off.
            model_code: Name for index files.
            source: Hub id or folder.
            document_prefix: Put before each document.
            query_prefix: Put before each query.
        """
        model.default_prompt_name = None
        limit = model.max_seq_length
        self.model = model
        self.model_code = model_code
        self.source = source
        self.dimensions = int(model.get_embedding_dimension())
        self.max_tokens = int(limit) if limit and limit < _NO_LIMIT else None
        self.document_prefix = document_prefix
        self.query_prefix = query_prefix
        self.backend_note = ""
        self.chosen_because = ""
        self._lock = threading.Lock()  # a tokenizer is set anew for each call and cannot be shared while it runs

    def __repr__(self) -> str:
        return f"SentenceEmbedder({self.model_code!r}, dimensions={self.dimensions}, device={str(self.model.device)!r})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, dimensions) float32."""
        return self._embed(prefixed(self.document_prefix, texts))

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (dimensions,) float32."""
        return only(self._embed(prefixed(self.query_prefix, [text])))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each document has, with prefix and marks, before anything is cut."""
        ready = prefixed(self.document_prefix, texts)
        if not ready:
            return []
        with self._lock:
            found = self.model.tokenizer(ready, truncation=False, padding=False, verbose=False)["input_ids"]
        return [len(ids) for ids in found]

    def _embed(self, texts: list[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        with self._lock:
            rows = self.model.encode(
                texts, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=False, batch_size=32
            )
        return check_shape(unit_rows(rows), len(texts), self.dimensions, self.model_code)


def load_folder(folder: Path, *, device: str | None = None, trust_remote_code: bool = False) -> Any:
    """Load a model folder as a ``SentenceTransformer``, float32, without any network.

    Raises:
        ModelNotReady: sentence-transformers is missing, or the folder cannot be loaded; the message says why.
    """
    return _load(str(folder), device, trust_remote_code, local=True)


def download(source: str, *, device: str | None = None, trust_remote_code: bool = False) -> Any:
    """Load a model by its hub id, from the hub where the cache lacks it.

    Call ``hub_reachable`` first: this may take minutes where there is no network.

    Raises:
        ModelNotReady: As for ``load_folder``, or the download failed.
    """
    return _load(source, device, trust_remote_code, local=False)


def hub_reachable(seconds: float = PROBE_SECONDS) -> tuple[bool, str]:
    """Say whether the model hub answers, and what was seen, within *seconds*."""
    if _truthy("HF_HUB_OFFLINE") or _truthy("TRANSFORMERS_OFFLINE"):
        return False, "not asked, for HF_HUB_OFFLINE is set"
    _check_installed()
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False, "not asked, for HF_HUB_OFFLINE was set when huggingface_hub was imported"
    answers: list[str] = []
    started = time.monotonic()

    # In a thread of its own: looking up a name cannot be given a time limit.
    def ask() -> None:
        try:
            request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
            Deadline(seconds).opener().open(request).close()
            answers.append("")
        except urllib.error.HTTPError as error:
            error.close()
            answers.append("")
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if not isinstance(reason, TimeoutError):
                answers.append(plain(reason, 200) or type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True, name="memoryfield-hub-probe")
    thread.start()
    thread.join(seconds)
    took = f"{time.monotonic() - started:.1f} s"
    if not answers:
        return False, f"no answer within {took}"
    return (not answers[0], f"reachable, {took}" if not answers[0] else f"{answers[0]}, {took}")


def _check_installed() -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ModelNotReady(
            "the package sentence-transformers is not installed; pip install sentence-transformers, "
            "or use an endpoint (backend ollama or endpoint) or the model hashing-1024"
        )


def _load(name: str, device: str | None, trust_remote_code: bool, *, local: bool) -> Any:
    _check_installed()
    with _loading, _quiet():
        try:
            from sentence_transformers import SentenceTransformer
        except Exception as error:
            raise ModelNotReady(f"sentence-transformers cannot be imported: {_line(error)}") from error
        import torch

        settings: dict[str, Any] = {"device": device, "local_files_only": local}
        settings["model_kwargs"] = {"dtype": torch.float32}
        try:
            return SentenceTransformer(name, trust_remote_code=False, **settings)
        except Exception as error:
            if "trust_remote_code" not in str(error):
                raise ModelNotReady(f"{name} cannot be loaded: {_line(error)}") from error
            if not trust_remote_code:
                raise ModelNotReady(
                    f"{name} needs Python code that its author put beside the weights. "
                    "Read that code first; then "
                    + advice(
                        python="trust_remote_code=True runs it on this machine",
                        command="an embedder made in Python with trust_remote_code=True runs it on this machine",
                    )
                ) from error
        # Only now: transformers' own code goes first, and asking for remote code makes offline loads of it fail.
        try:
            return SentenceTransformer(name, trust_remote_code=True, **settings)
        except Exception as error:
            raise ModelNotReady(f"{name} cannot be loaded with its own code: {_line(error)}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers and its friends silent while a model loads, and put everything back after."""
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    bars: list[Any] = []
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        for logger, level in zip(loggers, levels, strict=True):
            stack.callback(logger.setLevel, level)
            logger.setLevel(logging.ERROR)
        with contextlib.suppress(ImportError):  # the load that follows says so in better words
            hub = importlib.import_module("huggingface_hub.utils")
            if not hub.are_progress_bars_disabled():
                hub.disable_progress_bars()
                bars.append(hub.enable_progress_bars)
            transformers = importlib.import_module("transformers.utils.logging")
            if transformers.is_progress_bar_enabled():
                transformers.disable_progress_bar()
                bars.append(transformers.enable_progress_bar)
        for restore in bars:
            stack.callback(restore)
        yield


def _truthy(variable: str) -> bool:
    return os.environ.get(variable, "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _line(error: BaseException) -> str:
    """The first lines of a long message, in one."""
    return plain(" ".join(str(error).split()), 300) or type(error).__name__
