"""The same vectors without torch: an exported network run by onnxruntime, texts cut by tokenizers (extra ``fast``).

Two ways to run one network. Many texts: each core works on its own call, for that scales better than all cores
on one. One text, or few and long: all cores on one call, with the weights read in place from a mapped file, so
that a first query in a fresh process waits for little more than the import. Texts of one length in tokens go
together; nothing is padded.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import export as exports
from memoryfield.index.embedders.export import Export, ExportRefused, Origin
from memoryfield.index.embedders.folders import ModelFolder, fingerprint
from memoryfield.index.embedders.graph import INPUT
from memoryfield.index.embedders.rows import Matrix, check_shape, cosines, only, prefixed, unit_rows

BACKENDS = ("fast", "fast-bf16")
CLOSE = 0.999  # least cosine of the bfloat16 vectors to the exact ones
_PACKAGES = ("onnxruntime", "onnx", "tokenizers", "sentence_transformers")
_CALL_TOKENS = 512  # of one call: enough to fill a core, little enough to stay in its cache
_TOKENS_IN_FLIGHT = 32_768  # of all calls at once: bounds memory for long texts on many cores
_Ids = NDArray[np.int64]
_Run = Callable[[_Ids], Matrix]


class FastEmbedder:
    """An exported sentence-transformers model."""

    normalized = True

    def __init__(
        self,
        export: Export,
        *,
        model_code: str,
        source: str,
        document_prefix: str = "",
        query_prefix: str = "",
        backend: str = "fast",
    ) -> None:
        """Open an export; networks are loaded at the first text.

        Args:
            export: From ``export.make`` or ``export.find``.
            model_code: Name for index files.
            source: Hub id or folder.
            document_prefix: Put before each document.
            query_prefix: Put before each query.
            backend: One of ``BACKENDS``.
        """
        from tokenizers import Tokenizer

        self.model_code = model_code
        self.source = source
        self.dimensions = export.dimensions
        self.max_tokens: int | None = export.max_tokens
        self.document_prefix = document_prefix
        self.query_prefix = query_prefix
        self.backend = backend
        self.backend_note = ""
        self.chosen_because = ""
        self._tokenizer: Any = Tokenizer.from_file(str(export.directory / exports.TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(export.max_tokens)
        self._network: _OnnxNetwork | _OpenvinoNetwork = (
            _OnnxNetwork(export.directory) if backend == "fast" else _OpenvinoNetwork(export.directory, "bf16")
        )

    def __repr__(self) -> str:
        return f"FastEmbedder({self.model_code!r}, dimensions={self.dimensions}, backend={self.backend!r})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, dimensions) float32."""
        return self._embed(prefixed(self.document_prefix, texts))

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (dimensions,) float32."""
        return only(self._embed(prefixed(self.query_prefix, [text])))

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens that the network reads of each text, without any prefix."""
        if len(texts) == 1:
            return [self._tokenizer.encode(texts[0]).ids]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each document has, with prefix and marks, before anything is cut."""
        from tokenizers import Tokenizer

        uncut = Tokenizer.from_str(self._tokenizer.to_str())
        uncut.no_truncation()
        return [len(found.ids) for found in uncut.encode_batch_fast(prefixed(self.document_prefix, texts))]

    def _embed(self, texts: list[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if not texts:
            return rows
        tokens = self.token_ids(texts)
        batches = _batches([len(ids) for ids in tokens])
        calls = [np.array([tokens[i] for i in batch], np.int64) for batch in batches]
        for batch, pooled in zip(batches, self._pooled(calls), strict=True):
            rows[batch] = pooled
        return check_shape(unit_rows(rows), len(texts), self.dimensions, self.model_code)

    def _pooled(self, calls: list[_Ids]) -> Iterator[Matrix]:
        workers = min(core_count(), max(1, _TOKENS_IN_FLIGHT // max(call.size for call in calls)))
        # Alone wastes cores where there are fewer calls than cores; together scales badly beyond a few cores.
        if workers == 1 or len(calls) <= max(2, workers // 2):
            run = self._network.together()
            yield from (run(call) for call in calls)
            return
        run = self._network.alone()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="memoryfield-embed")
        try:
            yield from pool.map(run, calls)
        finally:  # also on an interruption: calls that have not begun are dropped
            pool.shutdown(wait=True, cancel_futures=True)


class _OnnxNetwork:
    """The network in onnxruntime, loaded when it is first needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._together: _Run | None = None
        self._alone: _Run | None = None

    def together(self) -> _Run:
        """All cores on one call; nothing is rearranged at the start."""
        with self._lock:
            if self._together is None:
                self._together = self._session(core_count(), rearrange=False)
            return self._together

    def alone(self) -> _Run:
        """One core for each call; weights rearranged for speed."""
        with self._lock:
            if self._alone is None:
                self._alone = self._session(1, rearrange=True)
            return self._alone

    def _session(self, threads: int, *, rearrange: bool) -> _Run:
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The graph is written as it shall run; looking for more to fuse would only cost time.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if not rearrange:
            options.add_session_config_entry("session.disable_prepacking", "1")
        model = str(self._directory / exports.MODEL)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

        def run(ids: _Ids) -> Matrix:
            pooled: Matrix = session.run(None, {INPUT: ids})[0]
            return pooled

        return run


class _OpenvinoNetwork:
    """The network in openvino, for CPUs that multiply bfloat16."""

    def __init__(self, directory: Path, precision: str) -> None:
        self._directory = directory
        self._precision = precision
        self._lock = threading.Lock()
        self._runs: dict[int, _Run] = {}

    def together(self) -> _Run:
        return self._compiled(1)

    def alone(self) -> _Run:
        return self._compiled(core_count())

    def _compiled(self, streams: int) -> _Run:
        with self._lock:
            if streams not in self._runs:
                import openvino

                core = openvino.Core()
                settings = {
                    "INFERENCE_PRECISION_HINT": self._precision,
                    "INFERENCE_NUM_THREADS": core_count(),
                    "NUM_STREAMS": streams,
                }
                compiled = core.compile_model(core.read_model(self._directory / exports.MODEL), "CPU", settings)
                own = threading.local()  # a request serves one thread at a time

                def run(ids: _Ids) -> Matrix:
                    if not hasattr(own, "request"):
                        own.request = compiled.create_infer_request()
                    return np.array(own.request.infer({INPUT: ids})[0], dtype=np.float32)

                # The binding sets itself up at its first inference, and deadlocks when two threads make it together.
                run(np.zeros((1, 2), dtype=np.int64))
                self._runs[streams] = run
            return self._runs[streams]


def open_fast(
    folder: ModelFolder,
    load_torch: Callable[[], Any],
    embed_torch: Callable[[Any, list[str]], Matrix],
    *,
    model_code: str,
    source: str,
    document_prefix: str,
    query_prefix: str,
    backend: str = "fast",
    weights_sha256: str = "",
) -> FastEmbedder:
    """Return the fast embedder of a model folder, exporting the model first where that was not done yet.

    Args:
        folder: The model.
        load_torch: Loads it with sentence-transformers, on the CPU, float32; called for a new export only.
        embed_torch: Its vectors for texts, unit rows.
        model_code: Name for index files.
        source: Hub id or folder.
        document_prefix: Put before each document.
        query_prefix: Put before each query.
        backend: One of ``BACKENDS``.
        weights_sha256: Digest of ``model.safetensors`` where it is known.

    Raises:
        ExportRefused: The model is not one that can be exported exactly, or the cache cannot be written.
        ModelNotReady: A package is missing, or this CPU has no bfloat16.
    """
    if missing := missing_packages(backend):
        extras = "fast,openvino" if "openvino" in missing else "fast"
        raise ModelNotReady(
            f"backend {backend!r} needs the packages {', '.join(missing)}; pip install 'memoryfield-lab[{extras}]'"
        )
    exports.check_parts(folder.modules)
    names = {"model_code": model_code, "source": source}
    import onnxruntime

    origin = Origin(
        os.path.realpath(source) if os.path.isdir(source) else source,
        fingerprint(folder.path, weights_sha256=weights_sha256),
    )
    identity = f"{exports.VERSION} {onnxruntime.__version__} {origin.fingerprint}"
    place = exports.place(model_code, hashlib.sha256(identity.encode()).hexdigest())
    export = exports.find(place)
    if export is None:

        def embed_export(made: Export, texts: list[str]) -> Matrix:
            return FastEmbedder(made, **names).embed_documents(texts)

        try:
            export = exports.make(place, load_torch, embed_torch, embed_export, origin=origin)
        except OSError as error:
            raise ExportRefused(f"the export cannot be written: {error}") from error
    embedder = FastEmbedder(
        export, **names, document_prefix=document_prefix, query_prefix=query_prefix, backend=backend
    )
    if backend == "fast-bf16":
        _check_bfloat16(embedder, FastEmbedder(export, **names))
    return embedder


def missing_packages(backend: str = "fast") -> list[str]:
    """Return the names of packages that *backend* needs and that are not installed; imports nothing."""
    needed = (*_PACKAGES, "openvino") if backend == "fast-bf16" else _PACKAGES
    return [name for name in needed if importlib.util.find_spec(name) is None]


def core_count() -> int:
    """Return how many cores this process may use; ``OMP_NUM_THREADS`` lowers it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(asked)) if asked.isdecimal() and int(asked) > 0 else cores


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Put texts of one length together, the longest first.

    Args:
        lengths: Of each text, in tokens.

    Returns:
        Positions in *lengths*, each once.
    """
    groups: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        groups.setdefault(length, []).append(position)
    batches = []
    for length in sorted(groups, reverse=True):
        size = max(1, _CALL_TOKENS // length)
        group = groups[length]
        batches += [group[start : start + size] for start in range(0, len(group), size)]
    return batches


def _check_bfloat16(embedder: FastEmbedder, exact: FastEmbedder) -> None:
    import openvino

    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise ModelNotReady("backend 'fast-bf16': this CPU does not multiply bfloat16; use the backend fast")
    texts = exports.comparison_texts(exact.max_tokens or 512)
    worst = float(cosines(embedder.embed_documents(texts), exact.embed_documents(texts)).min())
    if not worst > CLOSE:
        raise ModelNotReady(f"backend 'fast-bf16': cosine {worst:.5f} to the exact vectors; expected above {CLOSE}")
