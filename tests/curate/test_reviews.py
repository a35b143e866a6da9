"""Answers of a curator are kept outside the field, by name and uuid, whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryfield.curate.reviews import Reviews, reviews_file
from memoryfield.errors import FieldError, NewerSchema, QueryError
from memoryfield.format.edit import new_page
from memoryfield.format.page import Page

_A, _B, _C = (f"0000000{n}-0000-4000-8000-000000000000" for n in "123")


def _page(name: str, uuid: str | None = None) -> Page:
    return Page(name, new_page(name, "One line.", "Text.", uuid=uuid) if uuid else f"# {name}\n".encode())


def _at(hour: int) -> datetime:
    return datetime(2026, 5, 1, hour, tzinfo=UTC)


def test_an_answer_is_kept_outside_the_field_and_found_again(tmp_path: Path) -> None:
    reviews = Reviews.load(tmp_path)
    assert len(reviews) == 0 and reviews.file is not None and not reviews.file.exists()
    changed = reviews.answer(_page("winch"), _page("slip", _A), same=True)
    assert Reviews.load(tmp_path) == changed and len(reviews) == 0
    assert changed.pairs([_page("winch"), _page("slip", _A)]) == {("slip", "winch"): True}
    assert list(tmp_path.iterdir()) == [] and [p.name for p in changed.file.parent.iterdir()] == [changed.file.name]
    assert "winch" in repr(changed) and "slip" in changed._repr_html_() and changed[0] == next(iter(changed))


def test_a_later_answer_on_the_pair_replaces_the_earlier_in_either_order() -> None:
    one, other = _page("a", _A), _page("b", _B)
    reviews = Reviews().answer(one, other, same=True, now=_at(1)).answer(other, one, same=False, now=_at(2))
    assert len(reviews) == 1 and reviews.pairs([one, other]) == {("a", "b"): False}


def test_a_renamed_page_keeps_its_answers_by_the_uuid_P12() -> None:
    reviews = Reviews().answer(_page("a", _A), _page("b", _B), same=True)
    assert reviews.pairs([_page("new-a", _A), _page("b", _B)]) == {("b", "new-a"): True}
    assert reviews.pairs([_page("a", _C), _page("b", _B)]) == {}  # another page that got the name
    assert reviews.pairs([_page("b", _B)]) == {}
    assert reviews.pairs([_page("x", _A), _page("y", _A), _page("b", _B)]) == {}  # which of the two is not known


def test_pages_that_share_a_uuid_can_be_answered_apart() -> None:
    pages = [_page("a", _A), _page("a-copy", _A), _page("b", _B)]
    reviews = Reviews().answer(pages[0], pages[1], same=True).answer(pages[0], pages[2], same=False)
    reviews = reviews.answer(pages[1], pages[2], same=True)
    assert reviews.pairs(pages) == {("a", "a-copy"): True, ("a", "b"): False, ("a-copy", "b"): True}


def test_an_answer_can_be_withdrawn_and_the_others_stay(tmp_path: Path) -> None:
    one, other, third = _page("a", _A), _page("b"), _page("c")
    kept = Reviews.load(tmp_path).answer(one, other, same=True).answer(one, third, same=False)
    rest = kept.withdraw(other, _page("new-a", _A))
    assert rest == Reviews.load(tmp_path) and rest.pairs([one, other, third]) == {("a", "c"): False}
    assert rest.withdraw(one, other) == rest
    assert len(Reviews().answer(one, other, same=True).withdraw(one, other)) == 0


def test_answers_can_be_taken_to_another_field(tmp_path: Path) -> None:
    one, other, third = _page("a"), _page("b"), _page("c")
    here = Reviews.load(tmp_path / "here").answer(one, other, same=True, now=_at(1))
    file = here.answer(other, third, same=False, now=_at(1)).export(tmp_path / "answers.json")
    there = Reviews.load(tmp_path / "there").answer(one, other, same=False, now=_at(5))
    assert there.take_in(file).pairs([one, other, third]) == {("a", "b"): False, ("b", "c"): False}
    assert len(Reviews.load(tmp_path / "there").take_in(file)) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", FieldError),
        ("[]", FieldError),
        ('{"kind": "other", "schema": 1}', FieldError),
        ('{"kind": "memoryfield reviews", "schema": 99, "answers": []}', NewerSchema),
        ('{"kind": "memoryfield reviews", "schema": 1}', FieldError),
        ('{"kind": "memoryfield reviews", "schema": 1, "answers": [{"pages": [{"name": 1}], "same": 1}]}', FieldError),
        ("[" * 100_000, FieldError),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_left(tmp_path: Path, text: str, error: type[Exception]) -> None:
    file = reviews_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(error, match="json"):
        Reviews.load(tmp_path)
    with pytest.raises(error):
        Reviews((), tmp_path).answer(_page("a"), _page("b"), same=True)
    with pytest.raises(error):
        Reviews().take_in(file)
    assert file.read_text() == text


def test_a_place_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    taken = tmp_path / "answers.json"
    taken.mkdir()
    with pytest.raises(FieldError, match="written"):
        Reviews().export(taken)
    assert list(tmp_path.iterdir()) == [taken]


ANSWERING = """
import sys
from memoryfield.curate.reviews import Reviews
from memoryfield.format.page import Page
reviews = Reviews((), sys.argv[1])
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 10):
    reviews.answer(Page(f"a-{number}", b"One.\\n"), Page(f"b-{number}", b"Two.\\n"), same=True)
"""


def test_several_processes_lose_no_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", ANSWERING, str(tmp_path)]
    workers = [subprocess.Popen([*command, start], stderr=subprocess.PIPE, text=True) for start in ("0", "10")]
    assert [worker.communicate(timeout=120)[1] for worker in workers] == ["", ""]
    assert [worker.returncode for worker in workers] == [0, 0]
    held = json.loads(reviews_file(tmp_path).read_text())
    assert len(held["answers"]) == 20 and held["schema"] == 1


def test_an_export_replaces_answers_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(FieldError, match="file of answers"):
        Reviews().export(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "precious"
    Reviews().export(tmp_path / "answers.json")
    assert Reviews().export(tmp_path / "answers.json") == tmp_path / "answers.json"


def test_an_answer_is_about_two_pages() -> None:
    page = Page("a", b"Text.\n")
    with pytest.raises(QueryError, match="given twice"):
        Reviews().answer(page, page, same=False)
