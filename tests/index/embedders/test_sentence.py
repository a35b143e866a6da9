"""sentence-transformers through torch: prefixes, truncation, silence, and what happens without a hub."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import sentence
from memoryfield.index.embedders.catalogue import load_model


def _raw(folder: Path, texts: list[str]) -> Any:
    rows = sentence.load_folder(folder, device="cpu").encode(texts, prompt="", convert_to_numpy=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_prefixes_of_nomic_X5(tiny_nomic: Path) -> None:
    embedder = load_model(tiny_nomic, backend="torch")
    assert (embedder.document_prefix, embedder.query_prefix) == ("search_document: ", "search_query: ")
    expected = _raw(tiny_nomic, ["search_document: merge", "search_query: merge"])
    assert np.allclose(embedder.embed_documents(["merge"])[0], expected[0], atol=1e-6)
    assert np.allclose(embedder.embed_query("merge"), expected[1], atol=1e-6)


def test_known_prefixes_where_the_folder_has_none_X5(tiny: Callable[..., Path]) -> None:
    """A copy of nomic's model whose prompts came out empty gets the catalogue's."""
    folder = tiny("nomic-embed-text-v1.5", prompts={})
    embedder = load_model(folder, backend="torch")
    assert embedder.model_code == "nomic-embed-text-v1.5"
    expected = _raw(folder, ["search_document: merge", "search_query: merge"])
    assert np.allclose(embedder.embed_documents(["merge"])[0], expected[0], atol=1e-6)
    assert np.allclose(embedder.embed_query("merge"), expected[1], atol=1e-6)


def test_default_prompt_is_not_added_a_second_time_X5(tiny: Callable[..., Path]) -> None:
    folder = tiny("usual", prompts={"usual": "note: "}, default_prompt_name="usual")
    embedder = load_model(folder, backend="torch")
    assert (embedder.document_prefix, embedder.query_prefix) == ("note: ", "note: ")
    assert np.allclose(embedder.embed_query("merge"), _raw(folder, ["note: merge"])[0], atol=1e-6)


def test_passage_prompts(tiny: Callable[..., Path]) -> None:
    embedder = load_model(tiny("pass", prompts={"query": "query: ", "passage": "passage: "}), backend="torch")
    assert (embedder.document_prefix, embedder.query_prefix) == ("passage: ", "query: ")


@pytest.mark.parametrize("backend", ["torch", "fast"])
def test_minilm_reads_256_tokens(bundled: Path, keep_exports: Path, backend: str) -> None:
    embedder = load_model("all-MiniLM-L6-v2", backend=backend)
    assert (embedder.max_tokens, embedder.dimensions) == (256, 384)
    page = "harbour " * 254
    rows = embedder.embed_documents([page, page + "and the crane, which nobody reads any more", page + "winch " * 900])
    assert np.allclose(rows[0], rows[1], atol=1e-6) and np.allclose(rows[0], rows[2], atol=1e-6)
    assert float(rows[0] @ embedder.embed_documents(["harbour " * 253 + "crane"])[0]) < 0.99999


def test_nomic_reads_8192_tokens(tiny_nomic: Path, keep_exports: Path) -> None:
    fast = load_model(tiny_nomic, backend="fast")
    assert fast.max_tokens == 8192
    words = len(fast.token_ids([fast.document_prefix])[0]) - 2  # type: ignore[attr-defined]
    page = "page " * (8190 - words)
    rows = fast.embed_documents([page, page + "merge merge", page[5:]])
    assert np.allclose(rows[0], rows[1], atol=1e-6)
    assert not np.array_equal(rows[0], rows[2])


def test_a_shorter_limit_of_the_folder(tiny: Callable[..., Path], keep_exports: Path) -> None:
    folder = tiny("forty", tokens=40)
    for backend in ("torch", "fast"):
        embedder = load_model(folder, backend=backend)
        assert embedder.max_tokens == 40
        rows = embedder.embed_documents(["page " * 38, "page " * 38 + "merge"])
        assert np.allclose(rows[0], rows[1], atol=1e-6)


def test_loading_and_embedding_print_nothing(tiny_nomic: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import logging

    from huggingface_hub.utils import are_progress_bars_disabled  # type: ignore[attr-defined]
    from transformers.utils import logging as transformers_logging

    before = (
        are_progress_bars_disabled(),
        transformers_logging.is_progress_bar_enabled(),
        logging.getLogger("sentence_transformers").level,
    )
    load_model(tiny_nomic, backend="torch").embed_documents(["page"] * 40)
    assert capfd.readouterr() == ("", "")
    after = (
        are_progress_bars_disabled(),
        transformers_logging.is_progress_bar_enabled(),
        logging.getLogger("sentence_transformers").level,
    )
    assert after == before, "what was set for the user is as it was"


def test_a_plain_transformers_folder(tiny_nomic: Path) -> None:
    """Without a list of parts, sentence-transformers takes the mean of the tokens."""
    embedder: Any = load_model(tiny_nomic.parent / "plain")
    assert embedder.backend == "torch" and "parts unknown" in embedder.backend_note
    assert np.allclose(embedder.embed_query("merge"), _raw(tiny_nomic, ["merge"])[0], atol=1e-6)


def test_not_a_model_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelNotReady, match=r"neither modules\.json nor config.json"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(ModelNotReady, match="cannot be loaded"):
        load_model(tmp_path, backend="torch")
    (tmp_path / "modules.json").write_text("[[[", "utf-8")
    with pytest.raises(ModelNotReady, match=r"modules\.json cannot be read"):
        load_model(tmp_path)
    with pytest.raises(ModelNotReady, match="no such folder"):
        load_model("./nowhere/model")


def test_code_beside_the_weights_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w').close()\nfrom transformers import BertConfig as C, BertModel as M\n"
    (folder / "stranger.py").write_text(code, "utf-8")
    config = {"model_type": "stranger", "auto_map": {"AutoConfig": "stranger.C", "AutoModel": "stranger.M"}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelNotReady, match="Read that code first; then trust_remote_code=True"):
        load_model(folder)
    assert not ran.exists()


SCRIPT = """
import sys, time
started = time.monotonic()
import memoryfield as mf
try:
    mf.load_model("nomic-embed-text-v1.5")
except Exception as error:
    print(type(error).__name__, round(time.monotonic() - started, 2), "torch" in sys.modules, error, sep="|")
"""


def _load_in_a_process(tmp_path: Path, **environment: str) -> tuple[str, float, bool, str]:
    home = {"HF_HOME": str(tmp_path / "hub"), "MEMORYFIELD_CACHE_DIR": str(tmp_path / "cache")}
    inherited = {name: value for name, value in os.environ.items() if name not in ("HF_HUB_OFFLINE", "HF_HUB_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**inherited, **home, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    kind, seconds, torch, message = done.stdout.strip().split("|", 3)
    return kind, float(seconds), torch == "True", message


@pytest.mark.parametrize("hub", ["offline", "refuses", "silent"])
def test_without_a_hub_the_answer_comes_soon(tmp_path: Path, hub: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # takes connections, says nothing
        address = f"http://127.0.0.1:{listener.getsockname()[1] if hub == 'silent' else 9}"
        offline = {"HF_HUB_OFFLINE": "1"} if hub == "offline" else {}
        kind, seconds, torch, message = _load_in_a_process(tmp_path, HF_ENDPOINT=address, **offline)
    assert kind == "ModelNotReady"
    assert seconds < 10 and not torch
    expected = {
        "offline": "HF_HUB_OFFLINE is set",
        "refuses": "Connection refused",
        "silent": "no answer within",
    }[hub]
    assert expected in message
    for part in (
        "local copy: none",
        "Ollama",
        "MEMORYFIELD_EMBEDDINGS_URL",
        "model='auto'",
    ):
        assert part in message
    # what is ready comes first; where nothing is, what brings it
    assert "all-MiniLM-L6-v2 is ready" in message or "memoryfield-lab[offline]" in message


def test_a_slow_name_server_does_not_hold_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe gives up by the clock, whatever the system is waiting for."""
    from huggingface_hub import constants

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        started = time.monotonic()
        reachable, seen = sentence.hub_reachable(0.2)
        assert not reachable and seen.endswith("0.2 s")
        assert time.monotonic() - started < 2


def test_any_answer_means_that_the_hub_is_there(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    reachable, seen = sentence.hub_reachable()
    assert reachable and seen.startswith("reachable")


def test_sentence_transformers_is_not_installed(tiny_nomic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelNotReady, match="sentence-transformers is not installed; pip install"):
        load_model(tiny_nomic, backend="torch")
