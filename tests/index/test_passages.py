"""Recipe ``passages``: where pages are cut, what the file holds, and that other tools can read it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryfield.format.page import Page
from memoryfield.format.pages import PageDirectory
from memoryfield.index.embedders.catalogue import load_model
from memoryfield.index.files import find_indexes, index_filename, parse_index_filename
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.passages import MOST_PASSAGES, cut_page, estimated_tokens, passage_limit
from memoryfield.index.vectors import VectorIndex
from memoryfield.retrieve.bulk import rank_many
from memoryfield.retrieve.search import RETRIEVERS, SearchTarget, search

LIMIT = passage_limit(256)
FILLER = "The tide was low that day and nobody on the yard had anything to say about it. "
HARBOR = Path(__file__).parents[2] / "data" / "harbor"


def long_page(*subjects: str) -> str:
    parts = [f"## About {subject}\n\n{FILLER * 6}The {subject} is kept in the blue shed.\n" for subject in subjects]
    return "---\ntitle: Yard log\nsummary: What was seen\n---\n" + "\n".join(parts)


@pytest.fixture
def logs(tmp_path: Path) -> PageDirectory:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "long.md").write_text(long_page("winch", "compass", "varnish", "ladder", "trailer"), encoding="utf-8")
    (folder / "other.md").write_text(long_page("kettle", "broom", "anvil", "bicycle"), encoding="utf-8")
    (folder / "short.md").write_text("---\ntitle: Short\n---\nBread needs flour and salt.\n", encoding="utf-8")
    return PageDirectory(folder)


def index_of(source: PageDirectory, model: Any = None) -> VectorIndex:
    return VectorIndex(source, model or load_model("hashing-1024"), "passages")


# Cutting


def test_short_page_is_one_passage_as_it_stands() -> None:
    raw = b"---\ntitle: T\n---\nShort.\n"
    passages, more = cut_page(Page("short", raw), LIMIT)
    assert [piece.text for piece in passages] == [raw.decode()]
    assert not more


def test_passages_cover_the_body_in_order_and_carry_the_title() -> None:
    page = Page("long", long_page("winch", "compass", "varnish").encode())
    passages, _ = cut_page(page, LIMIT)
    assert len(passages) > 2
    beginning, *pieces = passages
    assert page.text.startswith(beginning.text) and page.body[: beginning.end].strip() in beginning.text
    assert pieces[0].start == 0 and pieces[-1].end == len(page.body)
    assert all(one.end == two.start for one, two in pairwise(pieces))
    assert all(piece.text.startswith("Yard log\n\n") for piece in pieces)


def test_cuts_fall_on_headings_where_there_are_some() -> None:
    page = Page("long", long_page("winch", "compass", "varnish").encode())
    assert [piece.text.split("\n")[2] for piece in cut_page(page, LIMIT)[0][1:]] == [
        "## About winch",
        "## About compass",
        "## About varnish",
    ]


@pytest.mark.parametrize(
    "body",
    [
        "word " * 5000,
        "x" * 20_000,
        "漢字" * 3000,
        "a. b! c? " * 2000,
        "\n\n".join(["line"] * 3000),
        "```\n" + "call(a, b)\n" * 900 + "```\n",
        "\r\n".join(["one two three"] * 900),
        "🚢" * 4000,
        "\x00\u2028\ufeff" * 3000,
    ],
)
def test_no_passage_is_longer_than_the_limit(body: str) -> None:
    passages, _ = cut_page(Page("x", f"---\ntitle: {'t' * 300}\n---\n{body}".encode()), LIMIT)
    assert len(passages) > 1
    assert max(estimated_tokens(piece.text) for piece in passages) <= LIMIT + 2


def test_nearly_all_passages_fit_into_the_model() -> None:
    model: Any = load_model("all-MiniLM-L6-v2")
    if not hasattr(model, "token_ids"):
        pytest.skip("the tokenizer is not at hand without the extra 'fast'")
    texts = [p.text for path in HARBOR.glob("*.md") for p in cut_page(Page(path.stem, path.read_bytes()), LIMIT)[0]]
    assert np.mean([len(ids) >= 256 for ids in model.token_ids(texts)]) < 0.02


def test_page_of_very_many_passages_is_cut_and_said_so(tmp_path: Path) -> None:
    (tmp_path / "endless.md").write_text((FILLER * 10 + "\n\n") * 200, encoding="utf-8")
    report = index_of(PageDirectory(tmp_path)).sync()
    assert any(str(MOST_PASSAGES) in note for note in report.notes)
    assert report.added == ("endless",)


def test_model_of_few_tokens() -> None:
    assert passage_limit(None) == passage_limit(8192) > passage_limit(128) > passage_limit(1) == 16


# The file


def test_own_file_and_the_others_table_in_it(logs: PageDirectory) -> None:
    index = index_of(logs)
    index.sync()
    assert index.path.name == index_filename("hashing-1024", "passages") == "hashing-1024.passages.sqlite3"
    assert parse_index_filename(index.path.name) == ("hashing-1024", "passages")
    assert not (logs.path / "hashing-1024.sqlite3").exists()
    with sqlite3.connect(index.path) as connection:
        rows = dict(connection.execute("SELECT filename, length(embedding) FROM pages").fetchall())
        own = dict(connection.execute("SELECT filename, length(embeddings) FROM passages").fetchall())
    connection.close()
    assert rows == dict.fromkeys(["long.md", "other.md", "short.md"], 4096)
    assert own["short.md"] == 0 and own["long.md"] == 6 * 4096
    assert [(state.recipe, state.state, state.rows) for state in find_indexes(logs)] == [("passages", "ok", 3)]


def test_search_finds_what_stands_late_in_a_page(logs: PageDirectory) -> None:
    target = SearchTarget("logs", logs, index_of(logs), KeywordIndex(logs))
    found = search([target], "where is the trailer kept", retriever="vector")
    assert found[0].name == "long" and found.recipe == "passages"
    passage = found[0].passage
    assert passage is not None and "trailer is kept" in passage.text and passage.heading == "About trailer"
    assert logs.read("long").body[passage.start : passage.end].strip() == passage.text
    assert found[-1].name == "short" and found[-1].passage is None
    assert "passage" in repr(found) and found.to_frame()["passage"][0] == passage.text
    assert found[0].to_dict()["passage"]["heading"] == "About trailer"


def test_short_pages_score_as_under_page(logs: PageDirectory) -> None:
    model = load_model("hashing-1024")
    one, several = VectorIndex(logs, model), index_of(logs, model)
    one.sync()
    several.sync()
    query = model.embed_query("flour and salt")
    scores = [dict(zip(*index.search(query, 3), strict=True))["short"] for index in (one, several)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_many_questions_as_one_by_one(logs: PageDirectory, retriever: str) -> None:
    target = SearchTarget("logs", logs, index_of(logs), KeywordIndex(logs))
    questions = ["where is the trailer", "anvil", "salt", "kettle and broom"]
    found = rank_many(target, questions, retriever, 3)
    for number, question in enumerate(questions):
        assert [name for name, _ in found.ranked(number)] == search([target], question, k=3, retriever=retriever).names


def test_sync_is_incremental(logs: PageDirectory) -> None:
    index = index_of(logs)
    assert index.sync().embedded == 12
    assert index.sync().embedded == 0
    (logs.path / "short.md").write_text("---\ntitle: Short\n---\nAnother text.\n", encoding="utf-8")
    (logs.path / "copy.md").write_bytes((logs.path / "long.md").read_bytes())
    (logs.path / "other.md").unlink()
    report = index.sync()
    assert (report.added, report.updated, report.removed) == (("copy",), ("short",), ("other",))
    assert (report.embedded, report.reused) == (1, ("copy",))
    vectors = index.vectors()
    assert vectors.passages is not None and np.diff(vectors.passages.offsets).tolist() == [6, 6, 1]
    fresh = index_of(logs)
    assert fresh.sync().embedded == 0
    with sqlite3.connect(index.path) as connection:
        assert connection.execute("SELECT count(*) FROM passages").fetchone() == (3,)
    connection.close()


def test_interrupted_sync_goes_on(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"p{number:02}.md").write_text(long_page(f"thing{number}", "winch"), encoding="utf-8")

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    source = PageDirectory(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        index_of(source).sync(progress=stop)
    report = index_of(source).sync()
    assert 0 < len(report.unchanged) < 30 and len(report.unchanged) + len(report.added) == 30
    assert len(index_of(source).vectors()) == 30


def damage(path: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("DELETE FROM passages WHERE filename = 'long.md'", ()),
        ("UPDATE passages SET embeddings = x'00' WHERE filename = 'long.md'", ()),
        ("UPDATE passages SET embeddings = zeroblob(24576) WHERE filename = 'long.md'", ()),
        ("UPDATE passages SET spans = 'text' WHERE filename = 'long.md'", ()),
        ("UPDATE passages SET spans = ? WHERE filename = 'long.md'", (np.array([[5, 1]] * 6, "<i4").tobytes(),)),
        ("UPDATE passages SET sha256_hash = x'00' WHERE filename = 'long.md'", ()),
        ("UPDATE passages SET embeddings = ? WHERE filename = 'long.md'", (np.full(6144, np.nan, "<f4").tobytes(),)),
        ("UPDATE pages SET sha256_hash = zeroblob(32) WHERE filename = 'long.md'", ()),
        ("DROP TABLE passages", ()),
    ],
)
def test_damaged_passages_are_made_anew(logs: PageDirectory, statement: str, values: tuple[Any, ...]) -> None:
    whole = index_of(logs)
    whole.sync()
    good = whole.vectors()
    damage(whole.path, statement, *values)
    assert len(index_of(logs).vectors()) == 3  # readable meanwhile
    index = index_of(logs)
    assert "long" in index.sync().updated
    again = index.vectors()
    assert again.passages is not None and good.passages is not None
    np.testing.assert_array_equal(again.passages.matrix, good.passages.matrix)
    assert not again.bad_rows


def test_another_tools_write_is_noticed(logs: PageDirectory) -> None:
    index = index_of(logs)
    index.sync()
    path = logs.path / "long.md"
    path.write_text(long_page("rudder", "tiller", "mast"), encoding="utf-8")
    sha256 = bytes.fromhex(logs.read("long").sha256)
    damage(index.path, "UPDATE pages SET sha256_hash = ? WHERE filename = 'long.md'", sha256)
    assert index.sync().updated == ("long",)
    found = index.vectors().passages
    assert found is not None and found.offsets[1] == 4


def test_passages_that_the_model_cannot_place(tmp_path: Path) -> None:
    model: Any = copy(load_model("hashing-1024"))
    original = model.embed_documents
    model.embed_documents = lambda texts: original(["" if "riddle" in text else text for text in texts])
    (tmp_path / "partly.md").write_text(FILLER * 20 + "\n\n" + "A riddle without an answer. " * 20, encoding="utf-8")
    (tmp_path / "never.md").write_text("riddle " * 600, encoding="utf-8")
    index = index_of(PageDirectory(tmp_path), model)
    report = index.sync()
    assert report.added == ("partly",)
    assert set(report.refused) == {"never"}
    vectors = index.vectors()
    assert vectors.passages is not None and 1 < len(vectors.passages.matrix) < len(
        cut_page(PageDirectory(tmp_path).read("partly"), LIMIT)[0]
    )


def test_empty_field(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    index = index_of(PageDirectory(tmp_path / "none"))
    index.sync()
    assert index.search(np.ones(1024, np.float32), 3)[0] == []


def test_toy_model_with_prefixes(logs: PageDirectory, toy_model: Callable[..., Any]) -> None:
    seen: list[str] = []
    model = toy_model()
    original = model.embed_documents

    def embed_documents(texts: Sequence[str]) -> Any:
        seen.extend(texts)
        return original(texts)

    model.embed_documents = embed_documents
    index_of(logs, model).sync()
    assert max(estimated_tokens(model.document_prefix + text) for text in seen) <= LIMIT + 2
