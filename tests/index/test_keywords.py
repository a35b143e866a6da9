"""The keyword index: what is found, with which snippet, and that it is a cache that repairs itself."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memoryfield.errors import IndexFileError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.keywords import KeywordIndex
from memoryfield.index.words import display_text, fold, query_terms, starts
from memoryfield.places import cache_directory


@pytest.fixture
def notes(tmp_path: Path) -> PageDirectory:
    folder = tmp_path / "notes"
    folder.mkdir()
    return PageDirectory(folder)


def save(field: PageDirectory, **texts: str) -> KeywordIndex:
    for name, text in texts.items():
        (field.path / f"{name.replace('_', '-')}.md").write_bytes(text.encode("utf-8"))
    index = KeywordIndex(field)
    index.sync()
    return index


def found(index: KeywordIndex, query: str, k: int = 10) -> list[str]:
    return [name for name, _ in index.search(query, k)]


# What is found

SCRIPTS = {
    "chinese, two characters": ("步2 重跑gen-itgc后50条悬空引用清零", ["悬空", "悬", "引用", "itgc", "50", "悬空引用"]),
    "chinese, rare characters": ("𠮷野家 𪚥 龘", ["𠮷", "𪚥", "吉野家 龘"]),
    "japanese": ("東京タワーの高さは333メートルです。", ["東京", "タワー", "高さ", "333", "メートル", "塔 東京"]),
    "half-width": ("ﾊﾝｶｸ ＡＰＩ ２０２６", ["ハンカク", "api", "2026"]),
    "korean": ("학교에서 한국어를 배웁니다", ["학교", "한국어", "배웁니다"]),
    "thai": ("ราคาน้ำมันวันนี้ 50 บาท", ["น้ำมัน", "ราคา", "50", "บาท"]),
    "khmer, lao, burmese": ("សួស្តី ສະບາຍດີ မင်္ဂလာပါ", ["សួស្តី", "ສະບາຍ", "မင်္ဂလာ"]),
    "russian": ("Ёлка стоит у моря, мой дом", ["елка", "Ёлка", "ЁЛКА", "моря", "мой"]),
    "greek": ("Η θάλασσα και ο άνεμος", ["θαλασσα", "ΘΑΛΑΣΣΑ", "άνεμος", "ανεμοσ"]),
    "accents": ("Café Ångström naïve Łódź smørrebrød", ["cafe", "CAFÉ", "angstrom", "naive", "lodz", "smorrebrod"]),
    "decomposed": ("Cafe\u0301 nai\u0308ve", ["café", "cafe", "naive"]),
    "german": ("Die Straße ist schön", ["strasse", "STRASSE", "straße", "schon"]),
    "turkish": ("İstanbul ışık", ["istanbul", "isik", "ışık"]),
    "vietnamese": ("Tiếng Việt đẹp", ["tieng", "viet", "dep", "đẹp"]),
    "hindi": ("हिन्दी भाषा में लिखा है", ["हिन्दी", "भाषा"]),
    "hebrew with points": ("שָׁלוֹם עולם", ["שלום", "עולם"]),
    "arabic with vowels": ("السَّلَامُ عَلَيْكُمْ", ["السلام", "عليكم"]),
    "persian": ("می\u200cخواهم بروم", ["می\u200cخواهم", "میخواهم"]),
    "english stems": ("The boats were running aground", ["boat", "runs", "ran aground", "BOATS"]),
    "identifiers": ("call os.path_join(x) with --no-color in C++ 3.11", ["path_join", "--no-color", "3.11"]),
}


@pytest.mark.parametrize(("text", "queries"), SCRIPTS.values(), ids=SCRIPTS)
def test_words_of_many_scripts_are_found(notes: PageDirectory, text: str, queries: list[str]) -> None:
    index = save(notes, page=f"---\ntitle: t\n---\n{text}\n", other="nothing here\n")
    for query in queries:
        assert found(index, query)[:1] == ["page"], query


def test_cjk_keywords(notes: PageDirectory) -> None:
    """The case of that name."""
    index = save(
        notes,
        itgc="---\ntitle: 步2 重跑\n---\n步2 重跑gen-itgc后50条悬空引用清零\n",
        other="---\ntitle: other\n---\nnothing here\n",
        russian="Мосты разводят ночью\n",
        french="Un élève préparé\n",
    )
    assert found(index, "悬空") == ["itgc"] and found(index, "itgc") == ["itgc"]
    assert found(index, "мосты") == ["russian"] and found(index, "eleve") == ["french"]
    assert found(index, "élève") == ["french"]


def test_characters_apart_are_no_match_for_a_word_of_theirs(notes: PageDirectory) -> None:
    index = save(notes, together="悬空引用\n", apart="悬挂在空中\n")
    assert found(index, "悬空") == ["together"]
    assert found(index, "请问悬空的引用怎么办")[0] == "together"


def test_late_words(notes: PageDirectory) -> None:
    """The case of that name: a page of 9,400 bytes, words at byte 7,900 and 9,000."""
    text = "---\ntitle: long\n---\n" + "filler " * 2000
    text = text[:7900] + " walrusword " + text[7912:9000] + " narwhalword " + text[9013:9400]
    index = save(notes, long=text, short="other\n")
    assert found(index, "walrusword") == found(index, "narwhalword") == ["long"]


def test_every_word_of_a_page_is_found(notes: PageDirectory) -> None:
    index = save(
        notes,
        one="---\ntitle: Tidal mills\nsummary: By the moon\ntags: [estuary, wheel]\nowner:\n  team: infra\n---\nbody\n",
        broken="---\ntitle: [unclosed\nsecretword: open\n---\nbody four\n",
        letter="---\n**ACME Partners**\nCarmen O.\n---\nDear reader, the lease ends in May.\n",
    )
    for word in ("tidal", "moon", "estuary", "infra", "team", "body"):
        assert "one" in found(index, word), word
    for word in ("unclosed", "secretword", "four"):
        assert found(index, word) == ["broken"], word
    for word in ("acme", "carmen", "when does the lease end"):
        assert found(index, word)[0] == "letter", word


def test_name_of_a_page_is_searched_too(notes: PageDirectory) -> None:
    index = save(notes, slipway_rules="text\n", other="text\n")
    assert found(index, "slipway") == ["slipway-rules"]


TYPED = [
    '"', "'", "''", '""', "a AND", "AND", "OR", "NOT", "NEAR", "NEAR(a b)", "a NEAR/3 b", "title:", "title: boat",
    "{a b}: c", "*", "boa*", "-boat", "--", "^boat", "boat + stone", "(", ")", "((boat)", "a:b:c", "%", "\\", "\x00",
    "boat;DROP TABLE words", "boat\x00stone", "\x02boat\x03", "\ud800", "\ud800boat", "?", "…", "😀", "\u200b", "🇫🇷",
    "a" * 100_000, "boat " * 50_000, "漢" * 5000, "SELECT * FROM pages", 'boat" OR "stone', "col.umn", "{", "[boat]",
    "~boat", "@", "#1", "$x", "boat\nstone\tmast",
]  # fmt: skip


@pytest.mark.parametrize("query", TYPED, ids=lambda query: ascii(query[:20]))
def test_whatever_is_typed_is_no_syntax(notes: PageDirectory, query: str) -> None:
    index = save(notes, boat="The boat lies on a stone slip.\n", plain="Nothing.\n")
    names = found(index, query)
    assert names in ([], ["boat"]) or "a" in query.lower()
    if "boat" in query and "\x00" not in query:
        assert names[:1] == ["boat"]
    snippet = index.snippets(query, ["boat"])["boat"]
    assert all(0 <= start < end <= len(snippet.text) for start, end in snippet.spans)


def test_better_matches_come_first_and_equal_ones_by_name(notes: PageDirectory) -> None:
    index = save(notes, b="boat\n", a="boat\n", c="boat and mast\n", d="boat and mast and sail\n", e="x\n")
    names = found(index, "boat mast sail")
    assert names[0] == "d" and names[1] == "c" and names[2:] == ["a", "b"]
    scores = [score for _, score in index.search("boat mast sail", 10)]
    assert scores == sorted(scores, reverse=True) and min(scores) > 0
    assert found(index, "boat mast sail", 2) == ["d", "c"] and found(index, "boat", 0) == []


def test_among(notes: PageDirectory) -> None:
    index = save(notes, **{f"p{number}": "boat " * (number + 1) + "other words\n" for number in range(30)})
    among = ["p3", "p7.md", "p29", "missing"]
    for kind in (list, tuple, set, frozenset, dict.fromkeys):
        assert {name for name, _ in index.search("boat", 10, kind(among))} == {"p3", "p7", "p29"}
    assert index.search("boat", 10, []) == []
    assert len(index.search("boat", 2, among)) == 2


# Snippets


def snippet_of(index: KeywordIndex, field: PageDirectory, name: str, query: str) -> tuple[str, list[str]]:
    snippet = index.snippets(query, [name])[name]
    return snippet.text, [snippet.text[start:end] for start, end in snippet.spans]


def test_snippet_shows_the_words_with_their_places(notes: PageDirectory) -> None:
    text = "A long opening. " * 60 + "Here the needle\n\nstands *running* by. " + "And more. " * 60
    index = save(notes, page=text)
    shown, words = snippet_of(index, notes, "page", "needles run")
    assert words == ["needle", "running"] and "Here the needle stands" in shown
    assert shown.startswith("… ") and shown.endswith(" …") and len(shown) < 260 and "\n" not in shown
    assert index.snippets("needle", ["page"])["page"].marked("<", ">").count("<needle>") == 1


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("步2 重跑gen-itgc后50条悬空引用清零", "悬空", ["悬空"]),
        ("Un café à Zürich, l'Ångström", "cafe zurich angstrom", ["café", "Zürich", "Ångström"]),
        ("Cafe\u0301 noir", "café", ["Café"]),
        ("Die Straße, ﬁne", "strasse fine", ["Straße", "ﬁne"]),
        ("😀 boat 😀 Ёлка", "boat елка", ["boat", "Ёлка"]),
        ("ราคาน้ำมันวันนี้", "น้ำมัน", ["น้ำมัน"]),
        ("א שָׁלוֹם ב", "שלום", ["שָׁלוֹם"]),
    ],
)
def test_places_in_a_snippet_are_those_of_the_text(
    notes: PageDirectory, text: str, query: str, words: list[str]
) -> None:
    index = save(notes, page=f"---\ntitle: t\n---\n{text}\n")
    assert snippet_of(index, notes, "page", query)[1] == [display_text(word) for word in words]


def test_snippet_from_elsewhere_than_the_body(notes: PageDirectory) -> None:
    index = save(notes, page="---\ntitle: Anchors\nsummary: About mooring\ntags: [iron]\n---\nplain text\n")
    assert snippet_of(index, notes, "page", "mooring") == ("About mooring", ["mooring"])
    assert snippet_of(index, notes, "page", "iron") == ("tags iron", ["iron"])
    assert snippet_of(index, notes, "page", "anchor") == ("Anchors", ["Anchors"])
    assert snippet_of(index, notes, "page", "nothing") == ("About mooring", [])
    assert snippet_of(index, notes, "page", "?") == ("About mooring", [])


def test_words_that_every_text_holds_are_marked_only_where_nothing_else_was_asked(notes: PageDirectory) -> None:
    index = save(notes, page="---\ntitle: t\nsummary: s\n---\nThe one on the hoist, and the other is off.\n")
    assert snippet_of(index, notes, "page", "is the hoist on?")[1] == ["hoist"]  # not "one" either, by its stem "on"
    assert snippet_of(index, notes, "page", "what is the")[1] == ["The", "the", "the", "is"]
    assert snippet_of(index, notes, "page", "the anchor") == ("s", [])


def test_snippet_is_of_the_page_as_it_is_now(notes: PageDirectory) -> None:
    index = save(notes, page="the old needle\n")
    (notes.path / "page.md").write_text("a newer text\n")
    assert snippet_of(index, notes, "page", "needle") == ("a newer text", [])
    assert snippet_of(index, notes, "page", "new texts") == ("a newer text", ["text"])
    assert index.snippets("needle", ["missing"]) == {}


def test_snippet_of_hostile_text(notes: PageDirectory) -> None:
    text = "\x02\x03\x02 needle \x03 <script>alert(1)</script> " + "x" * 200_000 + " needle"
    index = save(notes, page=text)
    shown, words = snippet_of(index, notes, "page", "needle")
    assert "needle" in words and len(shown) <= 300


# In step with the disk


def test_only_what_changed_is_read_again(notes: PageDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    index = save(notes, a="boat\n", b="mast\n", c="sail\n")
    read: list[str] = []
    original = PageDirectory.read
    monkeypatch.setattr(PageDirectory, "read", lambda self, name: (read.append(name), original(self, name))[1])
    assert index.sync().pages == 3 and read == []
    (notes.path / "a.md").write_text("anchor\n")
    (notes.path / "b.md").unlink()
    (notes.path / "d.md").write_text("deck\n")
    report = index.sync()
    assert (report.added, report.updated, report.removed) == (("d",), ("a",), ("b",))
    assert read == ["a.md", "d.md"]
    assert found(index, "boat") == found(index, "mast") == [] and found(index, "anchor deck") == ["a", "d"]
    read.clear()
    assert KeywordIndex(notes).sync().pages == 3 and read == []


def test_empty_field(notes: PageDirectory) -> None:
    index = KeywordIndex(notes)
    assert index.search("boat", 3) == []
    assert index.sync().pages == 0 and index.search("boat", 3) == []
    (notes.path / "page.md").write_text("boat\n")
    assert index.sync().added == ("page",) and found(index, "boat") == ["page"]
    (notes.path / "page.md").unlink()
    assert index.sync().removed == ("page",) and found(index, "boat") == []


def test_file_is_in_the_cache_and_not_in_the_field_X8(notes: PageDirectory) -> None:
    index = save(notes, page="boat\n")
    assert index.path.is_relative_to(cache_directory() / "keywords")
    assert os.listdir(notes.path) == ["page.md"]
    if os.name != "nt":
        assert index.path.parent.stat().st_mode & 0o077 == 0


# A cache that repairs itself


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE pages (a)")


def other_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE about SET value = '99'")


def corrupt_words(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE words_data SET block = zeroblob(20)")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


DAMAGE = {
    "garbage": lambda path: path.write_bytes(b"garbage" * 1000),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": foreign,
    "other version": other_version,
    "corrupt words": corrupt_words,
    "truncated": truncated,
    "link": link,
    "gone": lambda path: path.unlink(),
    "no words": lambda path: sqlite_drop(path),
}


def sqlite_drop(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE words")


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("fresh", [False, True])
def test_damaged_cache_is_made_anew_without_a_word(notes: PageDirectory, damage, fresh: bool) -> None:  # type: ignore[no-untyped-def]
    index = save(notes, a="boat\n", b="mast\n")
    damage(index.path)
    if fresh:
        index = KeywordIndex(notes)
    index.sync()
    assert found(index, "boat") == ["a"]
    (notes.path / "c.md").write_text("sail\n")
    index.sync()
    assert found(index, "sail") == ["c"] and found(index, "mast") == ["b"]
    assert set(index.snippets("sail", ["c.md"])["c"].spans) == {(0, 4)}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_between_sync_and_search_is_repaired(notes: PageDirectory, damage) -> None:  # type: ignore[no-untyped-def]
    index = save(notes, a="boat\n", b="mast\n")
    damage(index.path)
    assert found(index, "boat") in (["a"], [])
    index.sync()
    assert found(index, "boat") == ["a"]


def test_place_that_cannot_be_written_is_said(notes: PageDirectory, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    index = KeywordIndex(notes, tmp_path / "file" / "keywords.sqlite3")
    with pytest.raises(IndexFileError, match="MEMORYFIELD_CACHE_DIR"):
        index.sync()


SYNC_AND_SEARCH = """
import json, sys
from memoryfield.format.pages import PageDirectory
from memoryfield.index.keywords import KeywordIndex
index = KeywordIndex(PageDirectory(sys.argv[1]))
found = []
for turn in range(8):
    index.sync()
    found.append(len(index.search("common", 1000)))
print(json.dumps(found))
"""


def test_several_processes_at_once(notes: PageDirectory) -> None:
    for number in range(100):
        (notes.path / f"p-{number}.md").write_text(f"common word{number}\n")
    command = [sys.executable, "-c", SYNC_AND_SEARCH, str(notes.path)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    for number in range(100, 140):
        (notes.path / f"p-{number}.md").write_text(f"common word{number}\n")
    for output, errors in [process.communicate(timeout=120) for process in processes]:
        assert errors == ""
        assert min(json.loads(output)) >= 100
    index = KeywordIndex(notes)
    index.sync()
    assert len(index.search("common", 1000)) == 140
    assert all(found(index, f"word{number}") == [f"p-{number}"] for number in range(140))


def test_several_threads_at_once(notes: PageDirectory) -> None:
    index = save(notes, **{f"p{number}": f"common word{number}\n" for number in range(20)})
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                index.sync()
                assert len(index.search("common", 100)) >= 20
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for number in range(20, 40):
        (notes.path / f"p{number}.md").write_text("common\n")
    for thread in threads:
        thread.join()
    index.sync()
    assert problems == [] and len(index.search("common", 100)) == 40


# Folding


def test_terms_are_quoted_and_few() -> None:
    assert query_terms("Boat, boat! BOAT") == ['"boat"']
    assert query_terms('a "b" OR c*') == ['"a"', '"b"', '"or"', '"c"']
    assert query_terms("Carmen's don't, we’ll.") == ['"carmen"', '"don"', '"we"']
    assert query_terms("gen-itgc l'été") == ['"gen"', '"itgc"', '"gen itgc"', '"l"', '"ete"', '"l ete"']
    assert query_terms("悬空") == ['"悬 空"'] and query_terms("悬") == ['"悬"']
    assert len(query_terms(" ".join(f"w{number}" for number in range(5000)))) == 200


def test_places_lead_back_from_folded_text() -> None:
    for text in ("plain", "Straße ﬁne", "步2重跑", "e\u0301 \u200d x", "Ёлка", "", "שָׁלוֹם"):
        shown = display_text(text)
        begins = starts(shown)
        assert len(begins) == len(shown) + 1 and begins[-1] == len(fold(shown))
        assert begins == sorted(begins)


DAMAGE_AND_SEARCH = """
import random, sys
from memoryfield.format.pages import PageDirectory
from memoryfield.index.keywords import KeywordIndex
index = KeywordIndex(PageDirectory(sys.argv[1]))
choose = random.Random(sys.argv[2])
for turn in range(25):
    index.sync()
    found = len(index.search("common", 1000))
    assert found == 60, found
    if choose.random() < 0.15:
        try:
            index.path.write_bytes(b"garbage" * choose.randrange(2, 3000))
        except OSError:
            pass
"""


def test_several_processes_that_find_a_damaged_file(notes: PageDirectory) -> None:
    for number in range(60):
        (notes.path / f"p-{number}.md").write_text(f"common word{number}\n")
    command = [sys.executable, "-c", DAMAGE_AND_SEARCH, str(notes.path)]
    processes = [subprocess.Popen([*command, str(n)], stderr=subprocess.PIPE, text=True) for n in range(4)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [errors for _, errors in outputs] == [""] * 4
