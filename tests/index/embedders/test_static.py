"""The static model that comes as a Python package: read as data, used only if it is the one that was looked at."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import static
from memoryfield.index.embedders.catalogue import load_model, models


@pytest.fixture
def package() -> Path:
    folder = static.package_folder()
    if folder is None:
        pytest.skip("wordllama is not installed (extra 'static')")
    return folder


def test_a_text_is_the_mean_of_its_word_pieces(package: Path) -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights, tokenizer = (str(package / name) for name in static.FILES)
    pieces = Tokenizer.from_file(tokenizer).encode("grease the slipway", add_special_tokens=False).ids
    mean = load_file(weights)["embedding.weight"][pieces].astype(np.float64).mean(axis=0)
    found = load_model(static.MODEL_CODE).embed_documents(["grease the slipway", ""])
    assert np.allclose(found[0], mean / np.linalg.norm(mean), atol=1e-6) and not found[1].any()
    again = load_model(static.MODEL_CODE).embed_query("slipway the grease")
    assert np.allclose(again, found[0], atol=0.2) and load_model(static.MODEL_CODE).max_tokens is None


@pytest.mark.parametrize("name", list(static.FILES))
def test_other_files_are_refused(package: Path, tmp_path: Path, name: str) -> None:
    for file in static.FILES:
        (tmp_path / file).parent.mkdir(parents=True)
        shutil.copy(package / file, tmp_path / file)
    assert static.StaticEmbedder(tmp_path).dimensions == 256
    content = bytearray((tmp_path / name).read_bytes())
    content[-2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelNotReady, match=f"expected {static.FILES[name]}: not used"):
        static.StaticEmbedder(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ModelNotReady, match="cannot be read"):
        static.StaticEmbedder(tmp_path)


def test_without_the_package_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, static.PACKAGE, None)
    with pytest.raises(ModelNotReady, match=r"memoryfield-lab\[static\]"):
        load_model(static.MODEL_CODE)
    (row,) = [row for row in models() if row.code == static.MODEL_CODE]
    assert not row.ready and "memoryfield-lab[static]" in row.note


def test_nothing_of_the_package_is_imported(package: Path) -> None:
    code = (
        "import logging, sys\nfrom memoryfield.index.embedders.static import StaticEmbedder\n"
        "StaticEmbedder().embed_query('slipway')\n"
        "assert not {'wordllama', 'torch', 'transformers'} & set(sys.modules) and not logging.root.handlers"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
