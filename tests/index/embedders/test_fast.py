"""The exported network: the same vectors as torch's, made once, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import export, fast
from memoryfield.index.embedders.catalogue import forget_models, load_model
from memoryfield.index.embedders.rows import cosines

pytest.importorskip("onnxruntime", reason="extra 'fast' is not installed")


def _prose(bundled_or_docs: Path) -> str:
    """Real text of some length: the docstrings and comments of our own sources."""
    sources = sorted(Path(export.__file__).parent.glob("*.py"))
    return "\n".join(file.read_text("utf-8") for file in sources)


@pytest.fixture(scope="session")
def lengths() -> list[str]:
    """Real text in pieces of many lengths, from one word to more than any limit."""
    text = _prose(Path())
    sizes = [1, 3, 8, 20, 33, 60, 90, 130, 200, 280, 400, 555, 700, 900, 1100, 1500, 2500, 6000]
    return [text[size * 7 : size * 8] for size in sizes]


def _exports(cache: Path) -> list[Path]:
    return sorted(cache.glob("models/*/export.json"))


def test_vectors_of_minilm_are_torchs(bundled: Path, keep_exports: Path, lengths: list[str]) -> None:
    quick, slow = (load_model("all-MiniLM-L6-v2", backend=backend) for backend in ("fast", "torch"))
    assert cosines(quick.embed_documents(lengths), slow.embed_documents(lengths)).min() > 0.99999
    query = "why did the build stop"
    assert float(quick.embed_query(query) @ slow.embed_query(query)) > 0.99999


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "tiny-nomic", "prompts": {"query": "search_query: ", "document": "search_document: "}},
        {"name": "first-token", "pooling": "cls", "normalize": True},
    ],
    ids=lambda settings: settings["name"],
)
def test_vectors_of_nomic_bert_are_torchs(
    tiny: Callable[..., Path], settings: dict[str, Any], keep_exports: Path, lengths: list[str]
) -> None:
    folder = tiny(**settings)
    quick, slow = (load_model(folder, backend=backend) for backend in ("fast", "torch"))
    texts = lengths[:-3]  # its vocabulary makes a token of each letter
    assert cosines(quick.embed_documents(texts), slow.embed_documents(texts)).min() > 0.99999
    assert (quick.document_prefix, quick.query_prefix) == (slow.document_prefix, slow.query_prefix)


def test_fast_is_the_default(tiny_nomic: Path, keep_exports: Path) -> None:
    assert load_model(tiny_nomic).backend == "fast"  # type: ignore[attr-defined]
    assert load_model(tiny_nomic, device="cpu").backend == "torch"  # type: ignore[attr-defined]


SECOND = """
import sys
import memoryfield as mf
model = mf.load_model(sys.argv[1])
rows = model.embed_documents(["page"] * 70)
assert model.backend == "fast" and rows.shape[0] == 70 and model.embed_query("page").shape == (rows.shape[1],)
print(sorted(name for name in ("torch", "transformers", "sentence_transformers", "onnx") if name in sys.modules))
"""


def test_a_later_process_loads_no_torch(tiny_nomic: Path, keep_exports: Path) -> None:
    load_model(tiny_nomic)
    done = subprocess.run(
        [sys.executable, "-c", SECOND, str(tiny_nomic)], capture_output=True, text=True, timeout=120, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


KILLED = """
import os, signal, sys
import onnx
import memoryfield as mf
save = onnx.save_model
def save_and_die(*arguments, **settings):
    save(*arguments, **settings)
    os.kill(os.getpid(), signal.SIGKILL)
onnx.save_model = save_and_die
mf.load_model(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_export_leaves_nothing_half(tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(cache))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tiny_nomic)], capture_output=True, timeout=200)
    assert killed.returncode == -signal.SIGKILL
    left = list(cache.glob("models/.new-*"))
    assert len(left) == 1 and _exports(cache) == []
    os.utime(left[0], (0, 0))
    assert load_model(tiny_nomic).backend == "fast"  # type: ignore[attr-defined]
    assert len(_exports(cache)) == 1 and list(cache.glob("models/.new-*")) == []


def test_several_at_once_make_one(tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path))

    def load(number: int) -> Any:
        # Other arguments, so that each loads for itself.
        return load_model(tiny_nomic, backend="fast", device=f"cpu:{number}").embed_query("page")

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(load, range(4)))
    assert all(np.array_equal(row, rows[0]) for row in rows)
    assert len(_exports(tmp_path)) == 1 and list(tmp_path.glob("models/.new-*")) == []


def test_a_damaged_export_is_made_anew(tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path))
    expected = load_model(tiny_nomic).embed_query("page")
    (notes,) = _exports(tmp_path)
    (notes.parent / export.WEIGHTS).write_bytes(b"cut")
    forget_models()
    assert np.array_equal(load_model(tiny_nomic).embed_query("page"), expected)
    (notes.parent / export.NOTES).write_text("{", "utf-8")
    forget_models()
    assert np.array_equal(load_model(tiny_nomic).embed_query("page"), expected)


def test_a_changed_model_is_exported_anew_and_the_old_one_goes(
    tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    shutil.copytree(tiny_nomic, folder)
    before = load_model(folder).embed_query("page")
    (first,) = _exports(tmp_path / "cache")
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] += torch.randn_like(weights["embeddings.word_embeddings.weight"])
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    os.utime(folder / "config.json")  # a save writes it as well
    assert not np.allclose(load_model(folder).embed_query("page"), before, atol=1e-3)
    (second,) = _exports(tmp_path / "cache")
    assert first != second


def test_an_unknown_part_falls_back_to_torch_and_says_so(
    tiny: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path))
    folder = tiny("strange", pooling="max")
    embedder: Any = load_model(folder)
    assert embedder.backend == "torch" and "pooling 'max'" in embedder.backend_note
    with pytest.raises(ModelNotReady, match="cannot run strange: pooling 'max'"):
        load_model(folder, backend="fast")
    (notes,) = _exports(tmp_path)
    assert "pooling 'max'" in json.loads(notes.read_text("utf-8"))["refused"]  # remembered: no second try


def test_an_export_that_differs_is_refused(tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with torch is what admits an export: make torch's vectors other ones."""
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path))
    from memoryfield.index.embedders import folders, sentence

    def other(model: Any, texts: list[str]) -> Any:
        rows = sentence.SentenceEmbedder(model, model_code="x", source="x").embed_documents(texts)
        rows[0, 0] += 0.01 * ("make -j2" in texts[0])
        return rows

    with pytest.raises(export.ExportRefused, match=r"differ from torch's: cosine 0\.9999"):
        fast.open_fast(
            folders.read_folder(tiny_nomic),
            lambda: sentence.load_folder(tiny_nomic, device="cpu"),
            other,
            model_code="tiny-nomic",
            source="x",
            document_prefix="",
            query_prefix="",
        )


def test_a_cache_that_cannot_be_written_falls_back_to_torch(
    tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("MEMORYFIELD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    embedder: Any = load_model(tiny_nomic)
    assert embedder.backend == "torch" and "cannot be written" in embedder.backend_note


def test_missing_packages_fall_back_to_torch(tiny_nomic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    embedder: Any = load_model(tiny_nomic)
    assert embedder.backend == "torch" and "onnxruntime not installed" in embedder.backend_note
    with pytest.raises(ModelNotReady, match="memoryfield-lab\\[fast\\]"):
        load_model(tiny_nomic, backend="fast")


@pytest.mark.parametrize("model", ["tiny", "minilm"])
def test_openvino_runs_the_same_network(
    model: str, request: pytest.FixtureRequest, keep_exports: Path, lengths: list[str]
) -> None:
    """Its bfloat16 needs a CPU that has it; here the same code runs in float32."""
    pytest.importorskip("openvino", reason="extra 'openvino' is not installed")
    if model == "minilm":
        request.getfixturevalue("bundled")
    name = request.getfixturevalue("tiny_nomic") if model == "tiny" else "all-MiniLM-L6-v2"
    exact: Any = load_model(name, backend="fast")
    expected = exact.embed_documents(lengths)
    (directory,) = [notes.parent for notes in _exports(keep_exports) if notes.parent.name.startswith(exact.model_code)]
    made = export.find(directory)
    assert made is not None
    other = fast.FastEmbedder(made, model_code="x", source="x", document_prefix=exact.document_prefix)
    other._network = fast._OpenvinoNetwork(directory, "f32")
    assert cosines(other.embed_documents(lengths), expected).min() > 0.99999
    assert cosines(other.embed_documents(lengths[:1]), expected[:1]).min() > 0.99999


def test_bfloat16_where_the_cpu_has_it(bundled: Path, keep_exports: Path, lengths: list[str]) -> None:
    openvino = pytest.importorskip("openvino", reason="extra 'openvino' is not installed")
    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        with pytest.raises(ModelNotReady, match="does not multiply bfloat16"):
            load_model("all-MiniLM-L6-v2", backend="fast-bf16")
        return
    close, exact = (load_model("all-MiniLM-L6-v2", backend=backend) for backend in ("fast-bf16", "fast"))
    assert cosines(close.embed_documents(lengths), exact.embed_documents(lengths)).min() > 0.999


def test_batches_hold_each_text_once_and_one_length() -> None:
    generator = np.random.default_rng(0)
    lengths = [int(n) for n in generator.integers(1, 300, 500)] + [8192, 8192, 3]
    batches = fast._batches(lengths)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len({lengths[position] for position in batch}) == 1
        assert len(batch) == 1 or sum(lengths[position] for position in batch) <= 512
    assert [lengths[batch[0]] for batch in batches] == sorted((lengths[b[0]] for b in batches), reverse=True)


def test_core_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = fast.core_count()
    assert cores >= 1
    for value, expected in (("1", 1), ("999", cores), ("0", cores), ("2,1", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert fast.core_count() == expected
