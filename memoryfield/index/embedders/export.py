"""Makes what ``fast`` runs: the graph, its weights and the tokenizer, once for each model, in the cache directory.

An export is a directory that appears whole (written beside its place, then renamed) or not at all, so a killed
process leaves nothing half and several processes may try at once. It is accepted only if its vectors agree with
torch's; a refusal is remembered in the same place, so that it is not found out again in each process.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memoryfield.errors import MemoryfieldError
from memoryfield.index.embedders import graph
from memoryfield.index.embedders.rows import Matrix, cosines
from memoryfield.places import cache_directory, private_directory

VERSION = 1  # raise it when an export of an older version must not be used any more
EXACT = 0.99999  # least cosine to torch's vectors
MODEL, WEIGHTS, TOKENIZER, NOTES = "model.onnx", "weights.bin", "tokenizer.json", "export.json"
_FILES = (MODEL, WEIGHTS, TOKENIZER)
_PARTS = {"Transformer", "Pooling", "Normalize"}
_WAIT_SECONDS = 600.0
_STALE_SECONDS = 3600.0
_UNUSED_SECONDS = 30 * 86_400.0
_log = logging.getLogger(__name__)

_SHORT = (
    "",
    "pump",
    "Why did the night build stop at 02:14?",
    "# Notes\n\n- *Ünïcode*, naïve cafés, Ærøskøbing; 3.1415 != 2.7182\n- `make -j2 && ./run --dry-run`\n",
    "船が港に入る前に、潮の高さを確かめる。 Сначала проверь насос, потом клапан. ✅🚢",
    "[CLS] [SEP] [PAD] [MASK] <b>markup</b> &amp; \x00\ufffd\u200b tabs\tand\r\nlines",
)
_LONG = (
    "The harbour crane was checked on the ninth of March; its brake held at 12.5 t, and the report names two "
    "worn bolts near the slewing ring. Replace both before the autumn, or the class survey will ask why. "
)


class ExportRefused(MemoryfieldError):
    """A model that the exact fast backend cannot run; the message says which part of it is unknown or differs."""


@dataclass(frozen=True)
class Origin:
    """What an export was made from.

    Attributes:
        source: Hub id, or the absolute path of a folder.
        fingerprint: Of the model's files.
    """

    source: str
    fingerprint: str


@dataclass(frozen=True)
class Export:
    """A finished export.

    Attributes:
        directory: Holds the graph, its weights and the tokenizer.
        dimensions: Length of a vector.
        max_tokens: Longest text in tokens.
    """

    directory: Path
    dimensions: int
    max_tokens: int


def place(model_code: str, key: str) -> Path:
    """Return the directory of an export; *key* is a digest of the model's files and of what runs it."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in model_code)
    return cache_directory() / "models" / f"{readable[:60].strip('.-') or 'model'}-{key[:24]}"


def find(directory: Path) -> Export | None:
    """Return the export of that directory, or None where there is none that is whole.

    Raises:
        ExportRefused: This model was refused before.
    """
    try:
        notes = json.loads((directory / NOTES).read_text("utf-8"))
        if refused := notes.get("refused"):
            raise ExportRefused(str(refused))
        if any((directory / name).stat().st_size != notes["sizes"][name] for name in _FILES):
            return None
        export = Export(directory, int(notes["dimensions"]), int(notes["max_tokens"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(directory / NOTES)  # when it was last used
    return export


def check_parts(modules: Sequence[str]) -> None:
    """Refuse, before anything is loaded, a model made of unknown parts.

    Raises:
        ExportRefused: A part is not known.
    """
    strange = [part for part in modules if part not in _PARTS]
    if strange or list(modules[:2]) != ["Transformer", "Pooling"]:
        raise ExportRefused(f"parts {', '.join(modules) or 'unknown'}; known are Transformer, Pooling and Normalize")


def make(
    directory: Path,
    load_torch: Callable[[], Any],
    embed_torch: Callable[[Any, list[str]], Matrix],
    embed_export: Callable[[Export, list[str]], Matrix],
    *,
    origin: Origin,
) -> Export:
    """Export a model into *directory*, or find what another process put there meanwhile.

    Args:
        directory: From ``place``.
        load_torch: Gives the ``SentenceTransformer``, on the CPU, float32.
        embed_torch: Its vectors for texts, unit rows.
        embed_export: The export's vectors for texts, unit rows.
        origin: The model; exports of an earlier state of it are removed.

    Raises:
        ExportRefused: The model is not known here, or the vectors differ.
        OSError: The cache directory cannot be written.
    """
    parent = private_directory(directory.parent)
    with _one_at_a_time(parent):
        if found := find(directory):
            return found
        _sweep(parent)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
        try:
            try:
                export = _write(fresh, load_torch(), embed_torch, embed_export, origin)
                _log.info("exported %s, %d dimensions", directory.name, export.dimensions)
            except (ExportRefused, graph.UnknownNetwork) as error:
                for file in fresh.iterdir():
                    file.unlink()
                _put(fresh / NOTES, json.dumps({"version": VERSION, **asdict(origin), "refused": str(error)}).encode())
                _publish(fresh, directory)
                raise ExportRefused(str(error)) from error
            _publish(fresh, directory)
            _remove_older(directory, origin)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return Export(directory, export.dimensions, export.max_tokens)


def _write(
    fresh: Path,
    model: Any,
    embed_torch: Callable[[Any, list[str]], Matrix],
    embed_export: Callable[[Export, list[str]], Matrix],
    origin: Origin,
) -> Export:
    import onnx

    network = _network(model)
    proto = graph.build(network)
    onnx.save_model(
        proto, str(fresh / MODEL), save_as_external_data=True, all_tensors_to_one_file=True, location=WEIGHTS,
        size_threshold=1024,
    )  # fmt: skip
    # The tokenizer as torch uses it, not the folder's file: transformers may build another one from it.
    _put(fresh / TOKENIZER, model.tokenizer.backend_tokenizer.to_str().encode("utf-8", "surrogatepass"))
    for name in (MODEL, WEIGHTS):
        os.chmod(fresh / name, 0o600)
        with (fresh / name).open("rb+") as stream:
            os.fsync(stream.fileno())
    export = Export(fresh, int(model.get_embedding_dimension()), network.positions)
    texts = comparison_texts(network.positions)
    expected = np.concatenate([embed_torch(model, [text]) for text in texts])  # one by one: nothing is padded
    agreement = cosines(expected, embed_export(export, texts))
    worst = int(agreement.argmin())
    if not agreement[worst] > EXACT:  # also where it is not a number
        raise ExportRefused(
            f"its vectors differ from torch's: cosine {agreement[worst]:.7f} on a text of {len(texts[worst])} "
            f"characters, expected above {EXACT}"
        )
    notes = {
        "version": VERSION,
        **asdict(origin),
        "dimensions": export.dimensions,
        "max_tokens": export.max_tokens,
        "least_cosine_to_torch": float(agreement[worst]),
        "sizes": {name: (fresh / name).stat().st_size for name in _FILES},
    }
    _put(fresh / NOTES, json.dumps(notes, indent=1).encode())
    return export


def _network(model: Any) -> graph.Network:
    """Take a ``SentenceTransformer`` apart."""
    import torch

    parts = list(model)
    check_parts([type(part).__name__ for part in parts])
    encoder, limit = parts[0].auto_model, model.max_seq_length
    if type(encoder).__name__ not in ("BertModel", "NomicBertModel"):
        raise graph.UnknownNetwork(f"network {type(encoder).__name__}; known are BertModel and NomicBertModel")
    if not limit or limit > 100_000:
        raise graph.UnknownNetwork("the model does not say how many tokens it reads")
    if not getattr(parts[1], "include_prompt", True):
        raise graph.UnknownNetwork("pooling that leaves the prompt out")
    if getattr(parts[0], "do_lower_case", False) or not hasattr(model.tokenizer, "backend_tokenizer"):
        raise graph.UnknownNetwork("a tokenizer that the tokenizers package cannot run alone")
    weights = {name: value.detach().to(torch.float32).numpy() for name, value in encoder.state_dict().items()}
    weights = {name: value for name, value in weights.items() if not name.endswith(("position_ids", "inv_freq"))}
    return graph.Network(encoder.config.to_dict(), weights, str(parts[1].pooling_mode), int(limit))


def comparison_texts(positions: int) -> list[str]:
    """Texts for the comparison: scripts, markup, and lengths up to the limit and past it where that is near."""
    lengths = [n for n in (1, 2, 5, 12) if n * 40 < positions * 2]
    return [*_SHORT, *(_LONG * n for n in lengths)]


def _put(file: Path, content: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _publish(fresh: Path, directory: Path) -> None:
    with contextlib.suppress(OSError):
        os.rename(fresh, directory)
        return
    # Something stands there: a broken export, or (without the lock) another process's good one.
    with contextlib.suppress(ExportRefused):
        if find(directory) is None:
            shutil.rmtree(directory, ignore_errors=True)
            os.rename(fresh, directory)


def _remove_older(directory: Path, origin: Origin) -> None:
    """Remove exports of an earlier state of the model, and those of this one that nobody opens any more.

    One state may have several in use: each version of onnxruntime has its own.
    """
    for other in directory.parent.glob(f"{directory.name.rpartition('-')[0]}-*"):
        if other == directory:
            continue
        with contextlib.suppress(OSError, ValueError, AttributeError):
            notes = json.loads((other / NOTES).read_text("utf-8"))
            unused = time.time() - (other / NOTES).stat().st_mtime > _UNUSED_SECONDS
            if notes.get("source") == origin.source and (notes.get("fingerprint") != origin.fingerprint or unused):
                shutil.rmtree(other, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what killed exports left."""
    for old in parent.glob(".new-*"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _one_at_a_time(parent: Path) -> Iterator[None]:
    """Let one process export while the others wait; the lock spares work, correctness does not hang on it."""
    import filelock

    lock = filelock.FileLock(parent / ".export.lock")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(filelock.Timeout):
            stack.enter_context(lock.acquire(timeout=_WAIT_SECONDS))
        yield
