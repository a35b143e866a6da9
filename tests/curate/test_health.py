"""The health of a field names every kind of thing to look at, with what to do, and nothing that is in order."""

from __future__ import annotations

import json
import random
import string
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from memoryfield.curate.families import Families, families
from memoryfield.curate.family import Family
from memoryfield.curate.health import SECTIONS, Health, _near, health
from memoryfield.curate.reviews import Reviews
from memoryfield.errors import QueryError
from memoryfield.format.pages import PageDirectory
from memoryfield.index.embedders.hashing import HashingEmbedder
from memoryfield.index.loaded import Vectors
from memoryfield.index.vectors import VectorIndex

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_KEY = "gh" + "p_" + "".join(random.Random(7).sample(string.ascii_letters + string.digits, 36))


def _write(
    place: Path, name: str, title: str | None, body: str, summary: str = "One line.", day: str = "2026-10-01"
) -> None:
    front = f"---\ntitle: {title}\nsummary: {summary}\nupdated: '{day}T00:00:00Z'\n---\n" if title else ""
    (place / f"{name}.md").write_bytes((front + body).encode())


@pytest.fixture
def ailing(tmp_path: Path) -> PageDirectory:
    said = "The slip is usable two hours either side of high water, and never with wind from the south-east."
    _write(tmp_path, "slip-hours", "Slip hours", said)
    _write(tmp_path, "slip-hours-again", "When the slip works", f"{said}\n", "Other line.")
    _write(tmp_path, "keys", "Keys", "The steel cabinet hangs behind the office door.")
    _write(
        tmp_path,
        "keys-2",
        "KEYS",
        f"Programs are licensed for three seats; Wiktoria pays for them.\n\nThe token is\n{_KEY}\n",
        "Seats and renewal.",
    )
    _write(tmp_path, "bare", None, "No frontmatter here, [gone](nowhere.md) and [there](keys.md).\n")
    _write(tmp_path, "old", "Old", "Written long ago about the crane.", day="2021-01-01")
    _write(tmp_path, "long", "Long", "One line of many about rope.\n" * 400)
    _write(tmp_path, "index", None, "Welcome.\n")
    (tmp_path / "keys.sync-conflict-20261001-120000-ABCDEFG.md").write_text("copy")
    return PageDirectory(tmp_path)


def test_every_section_names_what_ails(ailing: PageDirectory) -> None:
    index = VectorIndex(ailing, HashingEmbedder())
    index.sync()
    vectors = index.vectors()
    found = health(ailing, vectors, _families(ailing, vectors), model_code=index.model_code, days=365, now=_NOW)
    named = {section: [item.pages for item in found.section(section)] for section in SECTIONS}
    assert named == {
        "secrets": [("keys-2",)],
        "conflict-copies": [("keys.sync-conflict-20261001-120000-ABCDEFG.md",)],
        "near-duplicates": [("slip-hours", "slip-hours-again")],
        "same-titles": [("keys", "keys-2")],
        "equal-vectors": [],
        "broken-links": [("bare",)],
        "over-limit": [("long",)],
        "stale": [("old",)],
        "untitled": [("bare",)],  # not index
    }
    assert found.section("secrets")[0].line == 9 and found.section("broken-links")[0].line == 1
    assert all(item.remedy and item.message for item in found) and found.pages == 8 and not found.not_checked
    assert "keys.md" in found.section("conflict-copies")[0].remedy
    _shown(found)


def _families(source: PageDirectory, vectors: Vectors, reviews: Reviews | None = None) -> Families:
    pages = [source.read(name) for name in vectors.names]
    return families(pages, vectors.matrix, model_code="hashing-1024", reviews=reviews)


def test_what_was_answered_to_be_distinct_is_no_duplicate(ailing: PageDirectory) -> None:
    index = VectorIndex(ailing, HashingEmbedder())
    index.sync()
    vectors = index.vectors()
    reviews = Reviews().answer(ailing.read("slip-hours"), ailing.read("slip-hours-again"), same=False)
    found = health(ailing, vectors, _families(ailing, vectors, reviews), now=_NOW)
    assert not [item for item in found.section("near-duplicates") if "slip-hours" in item.pages]


def _shown(found: Health) -> None:
    frame, values = found.to_frame(), json.loads(json.dumps(found.to_dict()))
    assert list(frame["section"]) == [item.section for item in found] == [item["section"] for item in values["items"]]
    for text in (repr(found), found._repr_html_(), str(values), frame.to_csv()):
        assert "slip-hours-again" in text or not found.section("near-duplicates")
        assert _KEY not in text and _KEY[8:] not in text
    for name, count in found.counts.items():
        assert (name in repr(found)) or not count


def test_without_vectors_says_what_was_not_checked(ailing: PageDirectory) -> None:
    found = health(ailing, now=_NOW)
    assert set(found.not_checked) == {"near-duplicates", "equal-vectors"} and "near-duplicates" not in found.counts
    assert "not checked: near duplicates" in repr(found) and found.to_dict()["model"] is None
    _shown(found)


def test_equal_vectors_of_different_texts_X7(ailing: PageDirectory) -> None:
    rows = np.eye(8, dtype=np.float32)
    rows[1] = rows[0]
    names = ("bare", "keys", "keys-2", "long", "old", "slip-hours", "slip-hours-again", "gone")
    (item,) = health(ailing, Vectors(names, rows), (), now=_NOW).section("equal-vectors")
    assert item.pages == ("bare", "keys") and "cannot tell them apart" in item.message


def test_a_healthy_and_an_empty_field(tmp_path: Path) -> None:
    source = PageDirectory(tmp_path)
    assert len(health(source, now=_NOW)) == 0 and health(source).to_frame().empty
    _write(tmp_path, "one", "One", "All is well.")
    found = health(source, Vectors(("one",), np.ones((1, 4), np.float32)), (), model_code="m", now=_NOW)
    assert len(found) == 0 and "0 things to look at in 1 page" in repr(found) and "none: secrets" in repr(found)


def test_a_broken_block_does_not_stop_it_P8(tmp_path: Path) -> None:
    (tmp_path / "broken.md").write_bytes(b"---\ntitle: [a\nb: 1\n---\nText.\n")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00 no text")
    found = health(PageDirectory(tmp_path), now=_NOW)
    (item,) = (i for i in found.section("untitled") if i.pages == ("broken",))
    assert "cannot be read" in item.message


def test_unknown_sections_and_ages_are_refused(tmp_path: Path) -> None:
    source = PageDirectory(tmp_path)
    with pytest.raises(QueryError, match="near-duplicates"):
        health(source).section("duplicates")
    with pytest.raises(QueryError, match="days"):
        health(source, days=-1)


@pytest.mark.parametrize(
    ("probability", "said", "to_do"),
    [
        (0.97, "very likely say", "look at the merge"),
        (0.83, "likely say", "read them side by side"),
        (0.6, "may say", "read them side by side"),
    ],
)
def test_near_duplicates_are_worded_by_how_likely_they_are(probability: float, said: str, to_do: str) -> None:
    family = Family(("a", "b"), ("A", "B"), "a", 0.8, probability, ())
    (item,) = _near([family])
    assert item.message.startswith(f"2 pages {said} the same ({probability:.0%})") and to_do in item.remedy
    assert "merge them" not in item.remedy.split(":")[0]


def test_a_copy_by_its_name_is_one_notion_for_families_and_for_health(tmp_path: Path) -> None:
    said = "Close the valve at the boiler, open each radiator from the ground floor up and catch the water."
    for name in ("valve", "valve-copy", "valve-conflict-2026", "key-copies", "lone-copy"):
        _write(tmp_path, name, name, f"{said} {name}" if "valve" in name else f"Nothing of the kind, {name}.")
    source = PageDirectory(tmp_path)
    index = VectorIndex(source, HashingEmbedder())
    index.sync()
    vectors = index.vectors()
    found = _families(source, vectors)
    assert "conflict copy" in {reason.kind for reason in found.evidence("valve", "valve-copy").reasons}
    copies = health(source, vectors, found, now=_NOW).section("conflict-copies")
    assert {item.pages for item in copies} == {("valve-conflict-2026", "valve"), ("valve-copy", "valve")}
    assert {item.pages for item in health(source, now=_NOW).section("conflict-copies")} == {i.pages for i in copies}
    assert "none: secrets that look like keys, conflict copies" not in repr(health(source, now=_NOW))
    reviews = Reviews().answer(source.read("valve"), source.read("valve-copy"), same=False)
    (left,) = health(source, vectors, _families(source, vectors, reviews), now=_NOW).section("conflict-copies")
    assert left.pages == ("valve-conflict-2026", "valve")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Winch\n\nThe brake slips.\n", ""),
        ("---\ntitle: Winch\n---\nThe brake slips.\n", ""),
        ("---\ntitle: Winch\nsummary: Brake.\n---\n", ""),
        ("The brake slips.\n", "no title and no heading"),
        ("# Winch\n", "no summary and no prose"),
        ("```\nx\n```\n", "no title and no heading: shown as 'page'; no summary and no prose"),
        ("---\ntitle: [a\n---\n# Winch\n\nThe brake slips.\n", "the frontmatter cannot be read"),
    ],
)
def test_a_title_may_be_a_heading_and_a_summary_the_first_line_P3(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "page.md").write_text(text)
    items = health(PageDirectory(tmp_path), now=_NOW).section("untitled")
    assert len(items) == bool(said) and all(item.message.startswith(said) for item in items)
