"""What every embedder must hold, whatever is behind it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.errors import ModelNotReady
from memoryfield.index.embedders import Embedder
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.embedders.static import MODEL_CODE as STATIC
from memoryfield.index.embedders.static import package_folder

KINDS = ("hashing", "static", "minilm-torch", "minilm-fast", "tiny-torch", "tiny-fast", "tiny-256", "ollama", "openai")

TEXTS = [
    "The harbour crane was checked in March; its brake held at 12.5 tonnes.",
    "Bake the loaf for forty minutes, then let it cool on a rack before cutting.",
    "# Slipway rules\n\n- grease the cradle\n- two people at the winch\n",
    "Ünïcode, naïve cafés — and 船が港に入る前に, Сначала проверь насос ✅",
    "short",
    "The crane in the harbour had its inspection in March and the brake was found to hold 12.5 t.",
]


@pytest.fixture(params=KINDS)
def embedder(request: pytest.FixtureRequest, keep_exports: Path, server: Any, tiny_nomic: Path) -> Any:
    kind: str = request.param
    if kind == "hashing":
        return load_model("hashing-1024")
    if kind == "static":
        if package_folder() is None:
            pytest.skip("wordllama is not installed (extra 'static')")
        return load_model(STATIC)
    if kind.startswith("minilm"):
        request.getfixturevalue("bundled")
        return load_model("all-MiniLM-L6-v2", backend=kind.removeprefix("minilm-"))
    if kind == "tiny-256":
        from memoryfield.index.embedders.shortened import ShortenedEmbedder

        return ShortenedEmbedder(load_model(tiny_nomic), 16, centred=True)
    if kind.startswith("tiny"):
        return load_model(tiny_nomic, backend=kind.removeprefix("tiny-"))
    if kind == "ollama":
        from memoryfield.index.embedders.http import OllamaEmbedder

        return OllamaEmbedder(url=server.url)
    from memoryfield.index.embedders.http import OpenAIEmbedder

    return OpenAIEmbedder("plain-model", url=server.url, key="secret")


def test_follows_the_protocol(embedder: Any) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.model_code and embedder.source and embedder.dimensions > 0 and embedder.normalized
    assert embedder.max_tokens is None or embedder.max_tokens > 0
    assert embedder.model_code in repr(embedder)
    assert isinstance(embedder.backend, str) and embedder.chosen_because == embedder.backend_note == ""


def test_unit_rows_of_float32(embedder: Any) -> None:
    rows = embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dimensions) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    query = embedder.embed_query(TEXTS[0])
    assert query.shape == (embedder.dimensions,) and query.dtype == np.float32
    assert abs(float(np.linalg.norm(query)) - 1) < 1e-5


def test_no_texts(embedder: Any) -> None:
    rows = embedder.embed_documents([])
    assert rows.shape == (0, embedder.dimensions) and rows.dtype == np.float32


def test_a_row_does_not_depend_on_its_company(embedder: Any) -> None:
    together = embedder.embed_documents([*TEXTS, *TEXTS[::-1]])
    alone = np.stack([embedder.embed_documents([text])[0] for text in TEXTS])
    assert np.allclose(together[: len(TEXTS)], alone, atol=2e-5)
    assert np.allclose(together[len(TEXTS) :], alone[::-1], atol=2e-5)


def test_prefixes_are_added_once_and_inside_X5(embedder: Any) -> None:
    text = "merge the page"
    if embedder.query_prefix == embedder.document_prefix:
        assert np.allclose(embedder.embed_query(text), embedder.embed_documents([text])[0], atol=2e-5)
    else:
        assert float(embedder.embed_query(text) @ embedder.embed_documents([text])[0]) < 0.99999


def test_refuses_what_is_no_list_of_texts(embedder: Any) -> None:
    with pytest.raises(TypeError, match="put it into a list"):
        embedder.embed_documents("one text")
    with pytest.raises(TypeError, match="must be a str, not bytes"):
        embedder.embed_documents([b"bytes"])


def test_awkward_texts_stop_nothing(embedder: Any) -> None:
    awkward = ["", " ", "\x00", "lone \ud800 surrogate", "a" * 50_000, "船" * 900, "[SEP][PAD]", "\u202e\ufeff"]
    rows = embedder.embed_documents(awkward)
    assert rows.shape == (len(awkward), embedder.dimensions)
    norms = np.linalg.norm(rows, axis=1)
    assert np.all((np.abs(norms - 1) < 1e-5) | (norms == 0))
    assert embedder.embed_query("lone \udfff surrogate").shape == (embedder.dimensions,)


def test_threads_may_share_it(embedder: Any) -> None:
    expected = embedder.embed_documents(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: embedder.embed_documents(TEXTS), range(8)):
            assert np.allclose(rows, expected, atol=2e-5)


def test_near_texts_are_nearer(embedder: Any) -> None:
    if embedder.model_code.startswith("tiny"):
        return  # random weights have no meaning
    crane, bread, *_, crane_again = embedder.embed_documents(TEXTS)
    assert float(crane @ crane_again) > float(crane @ bread)


def test_unknown_backend_of_a_model(tiny: Callable[..., Path]) -> None:
    with pytest.raises(ModelNotReady, match="MEMORYFIELD_EMBEDDINGS_URL"):
        load_model("anything", backend="endpoint")


def test_tokens_are_counted_before_the_cut_where_they_can_be(embedder: Any) -> None:
    if not hasattr(embedder, "count_tokens"):
        assert (
            embedder.backend in ("scikit-learn", "static", "ollama", "endpoint")
            or embedder.model_code == "tiny-nomic-16"
        )
        return
    short, long, longer = embedder.count_tokens(["crane", "the crane " * 400, "the crane " * 800])
    assert 2 < short < 30 and long > 800 and longer - 2 >= 2 * (long - 3 - short)
    assert embedder.count_tokens([]) == []
