"""Model folders on disk: where they are, what they say about themselves. Imports nothing heavy, loads no weights."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import bundled

_JSON_LIMIT = 64 * 1024 * 1024  # tokenizers of large vocabularies reach 20 MiB
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True)
class ModelFolder:
    """A sentence-transformers or transformers folder.

    Attributes:
        path: The folder.
        modules: Class names of its parts (``Transformer``, ``Pooling``, ...); none in a plain transformers folder.
        document_prefix: Prompt for documents that the folder itself names, or an empty string.
        query_prefix: The same for queries.
    """

    path: Path
    modules: tuple[str, ...] = ()
    document_prefix: str = ""
    query_prefix: str = ""


def read_folder(path: Path) -> ModelFolder:
    """Read what a model folder says about itself.

    Raises:
        ModelNotReady: It is no model folder, or its files cannot be read.
    """
    if not path.is_dir():
        raise ModelNotReady(f"{path}: no such folder")
    if not (path / "modules.json").is_file() and not (path / "config.json").is_file():
        raise ModelNotReady(
            f"{path} is no model folder: it holds neither modules.json nor config.json; "
            "give the folder that SentenceTransformer.save() wrote"
        )
    listed = _json(path / "modules.json", [])
    modules = tuple(str(part.get("type", "")).rsplit(".", 1)[-1] for part in listed if isinstance(part, dict))
    settings = _json(path / "config_sentence_transformers.json", {})
    found = settings.get("prompts") if isinstance(settings, dict) else None
    prompts: dict[str, Any] = found if isinstance(found, dict) else {}
    usual = prompts.get(str(settings.get("default_prompt_name"))) if prompts else None
    # Empty prompts count as none: saving a model fills them in where its author named others.
    document = next((prompts[name] for name in _DOCUMENT_PROMPTS if prompts.get(name)), usual)
    query = prompts.get("query") or usual
    return ModelFolder(
        path=path,
        modules=modules,
        document_prefix=document if isinstance(document, str) else "",
        query_prefix=query if isinstance(query, str) else "",
    )


def fingerprint(path: Path, *, weights_sha256: str = "") -> str:
    """Return a digest that changes when the model in a folder does.

    Small files count with their content; weights with their sha256 where it is known (given, or the name of the
    blob in the hub's cache), else with size, time and inode.
    """
    digest = hashlib.sha256()
    for file in sorted([*path.glob("*"), *path.glob("*/*")]):
        name = file.relative_to(path).as_posix()
        if file.suffix not in (".json", ".txt", ".safetensors", ".bin", ".model") or not file.is_file():
            continue
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        state = file.stat()
        blob = os.path.basename(os.path.realpath(file))
        if file.suffix in (".json", ".txt") and state.st_size <= _JSON_LIMIT:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        elif weights_sha256 and name == "model.safetensors":
            digest.update(weights_sha256.encode())
        elif len(blob) == 64 and all(c in "0123456789abcdef" for c in blob):
            digest.update(blob.encode())
        else:
            seen = (os.path.realpath(file), state.st_size, state.st_mtime_ns, state.st_ino)
            digest.update(repr(seen).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def hub_folder(source: str) -> Path | None:
    """Return the complete copy of a hub model in the local caches, or None.

    Args:
        source: ``owner/name``; a bare name is one of ``sentence-transformers/``.
    """
    source = source if "/" in source else f"sentence-transformers/{source}"
    for cache in _hub_caches():
        repository = cache / f"models--{source.replace('/', '--')}"
        try:
            commit = (repository / "refs" / "main").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        snapshot = repository / "snapshots" / commit
        if os.path.basename(commit) == commit and commit and _complete(snapshot):
            return snapshot
    return None


def local_copy(source: str) -> tuple[Path, str] | None:
    """Return the complete local copy of a hub model and in which words to speak of its place, or None."""
    if found := hub_folder(source):
        return found, "in the hub's local cache"
    if source == bundled.SOURCE and (found := bundled.bundled_folder()):
        return found, f"from the package {bundled.PACKAGE}"
    return None


def _complete(snapshot: Path) -> bool:
    """Whether a download went through: parts, configuration and weights are there."""
    if not (snapshot / "config.json").is_file():
        return False
    parts = _json(snapshot / "modules.json", [])
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            return False
        place, kind = str(part.get("path", "")), str(part.get("type", ""))
        if place and kind.endswith((".Pooling", ".Dense")) and not (snapshot / place / "config.json").is_file():
            return False
    names = [name for name in ("model.safetensors", "pytorch_model.bin") if (snapshot / name).is_file()]
    index = _json(snapshot / "model.safetensors.index.json", {})
    pieces: Mapping[str, str] = index.get("weight_map", {}) if isinstance(index, dict) else {}
    return bool(names) or (bool(pieces) and all((snapshot / piece).is_file() for piece in set(pieces.values())))


def _hub_caches() -> list[Path]:
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface"
    )
    chosen = (
        os.environ.get("SENTENCE_TRANSFORMERS_HOME"),
        os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub"),
    )
    return [Path(os.path.expandvars(place)).expanduser() for place in chosen if place]


def _json(file: Path, otherwise: Any) -> Any:
    try:
        if file.stat().st_size > _JSON_LIMIT:
            raise ModelNotReady(f"{file} is larger than {_JSON_LIMIT} bytes")
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return otherwise
    except (OSError, ValueError, RecursionError) as error:
        raise ModelNotReady(f"{file} cannot be read: {error}") from None
