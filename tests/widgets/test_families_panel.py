"""The review of families without a browser: questions, answers that are kept, merge plans, undo, what is stale."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield_widgets import FamilyReview, State
from memoryfield_widgets import families as module

MODEL = "hashing-1024"
TOPICS = {
    "slip": "The slip is usable two hours either side of high water, never with wind from the south-east.",
    "winch": "Grease the winch drum and the pawls with the blue tin before every haul-out of a heavy boat.",
    "paint": "Antifouling needs eight degrees and a dry hull; the second coat goes on the day after the first.",
    "keys": "Keys of the joinery hang in the office behind the door, the spare ones with Ines in the chandlery.",
    "diesel": "Diesel polishing takes a whole morning; the filter of the pump is drained into the green can.",
    "sails": "Wet sails are hung in the loft over the long beam and folded only when the seams feel dry.",
}
Told = Callable[[Any], list[tuple[dict[str, Any], list[Any]]]]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[FamilyReview]:
    """Six pages, and a seventh that says one of them again."""
    place = tmp_path / "notes"
    place.mkdir()
    for name, text in TOPICS.items():
        (place / f"{name}.md").write_text(f"---\ntitle: {text[:28]}\n---\n{text}\n", encoding="utf-8")
    again = f"---\ntitle: {TOPICS['slip'][:28]}\n---\n{TOPICS['slip']} Ask Ines first.\n"
    (place / "slip-again.md").write_text(again, encoding="utf-8")
    (place / "sails.md").write_text(f"---\ntitle: Sails\n---\n{TOPICS['sails']} See [slip](slip-again.md).\n")
    module._unsure.clear()
    panel = FamilyReview(mf.open_field(place, model=MODEL))
    yield panel
    panel.state.jobs.cancel()
    assert panel.state.jobs.wait()


def _settle(panel: FamilyReview) -> None:
    assert panel.state.jobs.wait()
    assert panel.state.error == "", panel.state.trouble


def _begin(panel: FamilyReview, hear: Callable[..., None], told: Told) -> list[dict[str, Any]]:
    sent = told(panel)
    hear(panel, "hello")
    _settle(panel)
    return [content for content, _ in sent]


def _last(sent: list[tuple[dict[str, Any], list[Any]]], kind: str) -> dict[str, Any]:
    return [content for content, _ in sent if content["kind"] == kind][-1]


def test_families_are_found_when_the_panel_is_shown(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    assert review.stage == "idle" and "looked for" in review.twin() and not review.state.busy
    sent = told(review)
    hear(review, "hello")
    _settle(review)
    assert review.stage == "ready"
    assert [group["members"] for group in review.groups] == [["slip", "slip-again"]]
    assert review.score["families"] == 1 and review.score["pages"] == 7 and review.score["answers"] == 0
    assert review.score["low"] <= review.score["estimate"] <= review.score["high"]
    assert review.score["worthwhile"] == review.found.worthwhile > 0
    pair = _last(sent, "pair")
    asked = review.found.borderline(1)[0]
    assert [page["name"] for page in pair["pages"]] == [asked.first, asked.second] == list(review.pair or ())
    assert pair["probability"] == asked.probability and pair["answer"] is None and not pair["back"]
    assert "1 family, 2 of 7 pages" in review.twin()


def test_an_answer_is_kept_and_never_asked_again(review: FamilyReview, hear: Callable[..., None], told: Told) -> None:
    _begin(review, hear, told)
    asked = []
    while review.pair is not None:
        asked.append(review.pair)
        hear(
            review,
            "answer",
            said="same" if set(review.pair) == {"slip", "slip-again"} else "different",
            pair=list(review.pair),
        )
        _settle(review)
    assert len(asked) == len(set(asked)) == review.score["answers"] and review.score["worthwhile"] == 0
    assert [group["members"] for group in review.groups] == [["slip", "slip-again"]]
    again = mf.open_field(review.field.path, model=MODEL).families(progress=False)
    assert len(again.reviews) == len(asked)
    assert not {(p.first, p.second) for p in again.borderline(100)} & set(asked)


def test_an_echo_of_an_answer_counts_once(review: FamilyReview, hear: Callable[..., None], told: Told) -> None:
    _begin(review, hear, told)
    first = list(review.pair or ())
    hear(review, "answer", said="different", pair=first)
    _settle(review)
    second = review.pair
    hear(review, "answer", said="same", pair=first)
    hear(review, "answer", said="perhaps", pair=list(second or ()))
    hear(review, "answer", said="same", pair="slip")
    _settle(review)
    assert review.pair == second and review.score["answers"] == 1


def test_back_shows_the_answer_and_another_one_replaces_it(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    _begin(review, hear, told)
    sent = told(review)
    first = review.pair
    assert first is not None
    hear(review, "answer", said="different", pair=list(first))
    _settle(review)
    second = review.pair
    hear(review, "back")
    assert review.pair == first and _last(sent, "pair")["answer"] == "different"
    hear(review, "answer", said="same", pair=list(first))
    _settle(review)
    assert review.pair == second and review.found.evidence(*first).answer is True and review.score["answers"] == 1
    hear(review, "back")
    hear(review, "answer", said="unsure", pair=list(first))  # takes the answer back
    _settle(review)
    assert review.found.evidence(*first).answer is None and review.score["answers"] == 0 and review.pair == second


def test_unsure_is_not_asked_again_and_a_skipped_pair_comes_last(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    _begin(review, hear, told)
    unsure, seen = review.pair, []
    hear(review, "answer", said="unsure", pair=list(unsure or ()))
    skipped = review.pair
    hear(review, "skip")
    while review.pair is not None and review.pair != skipped:
        seen.append(review.pair)
        hear(review, "answer", said="different", pair=list(review.pair))
        _settle(review)
    assert review.pair == skipped and unsure not in seen and seen
    hear(review, "skip")  # the only one left
    assert review.pair == skipped
    hear(review, "answer", said="unsure", pair=list(skipped or ()))
    assert review.pair is None
    hear(review, "back")
    assert review.pair == skipped
    other = FamilyReview(State(review.field))  # another notebook
    other.find()
    assert other.state.jobs.wait()
    assert other.pair is None


def test_a_cell_that_runs_again_shows_the_families_at_once(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    _begin(review, hear, told)
    hear(review, "answer", said="different", pair=list(review.pair or ()))
    _settle(review)
    again = FamilyReview(review.field)
    assert again.stage == "ready" and again.groups == review.groups and again.score["answers"] == 1
    assert again.pair == review.pair and "1 family" in again.twin()
    review.close()
    sent = told(again)
    again.field.write("slip-third", title=TOPICS["slip"][:28], body=TOPICS["slip"], on_similar="ignore")
    hear(again, "hello")  # and looks whether they are still the same
    _settle(again)
    assert again.groups[0]["members"] == ["slip", "slip-again", "slip-third"] and _last(sent, "pair")["pages"]


def test_answers_given_faster_than_they_are_learned_all_count(
    review: FamilyReview, hear: Callable[..., None], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUICK", 0.0)  # as in a field so large that nobody wants to wait for the families
    _begin(review, hear, told)
    given = []
    for _ in range(4):
        given.append(review.pair)
        hear(review, "answer", said="different", pair=list(review.pair or ()))
    _settle(review)
    assert len(set(given)) == 4 == review.score["answers"]


def test_a_merge_is_planned_edited_applied_and_undone(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    _begin(review, hear, told)
    sent = told(review)
    before = {page.name: page.raw for page in review.field.pages()}
    hear(review, "plan", names=["slip", "slip-again"])
    _settle(review)
    plan = _last(sent, "plan")["plan"]
    assert {page["name"]: page["stays"] for page in plan["pages"]} == {
        name: name == plan["survivor"] for name in ("slip", "slip-again")
    }
    assert plan["complete"] and plan["lost"] == 0 and not plan["edited"] and not plan["stale"]
    assert any(line.startswith("+++") for line in plan["diff"])
    other = "slip" if plan["survivor"] == "slip-again" else "slip-again"
    hear(review, "plan", names=["slip", "slip-again"], into=other)
    _settle(review)
    hear(review, "plan", names=["slip", "slip-again"], into="slip")
    _settle(review)
    plan = _last(sent, "plan")["plan"]
    assert plan["survivor"] == "slip" and plan["links"] == [{"name": "sails", "count": 1}]
    ines = next(entry for entry in plan["account"] if "Ask Ines" in entry["text"])
    assert ines["drop"]
    hear(review, "drop", id=ines["id"])
    plan = _last(sent, "plan")["plan"]
    assert plan["edited"] and plan["counts"]["dropped"] == 1 and "Ask Ines" not in plan["body"]
    hear(review, "body", body=plan["body"] + "\nAsk nobody.\n")
    assert plan["tags"] == ""
    hear(review, "body", title="The slip: when", summary=" ", tags="tide, boats,")
    plan = _last(sent, "plan")["plan"]
    assert (
        plan["title"] == "The slip: when"
        and plan["tags"] == "tide, boats"
        and "Ask nobody." in plan["body"]
        and plan["edited"]
    )
    assert plan["account"][0]["state"] == "dropped" and plan["complete"]  # the title that it had

    review.state.update(active="slip-again", selected=("slip", "slip-again"))
    hear(review, "apply")
    _settle(review)
    assert sorted(review.field) == sorted(set(TOPICS)) and b"Ask nobody." in review.field.read("slip").raw
    assert review.field.read("slip").title == "The slip: when"
    assert review.field.read("slip").frontmatter["tags"] == ["tide", "boats"]
    assert b"(slip.md)" in review.field.read("sails").raw
    assert review.state.active == "slip" and review.state.selected == ("slip",)
    assert review.merged["text"] == "slip-again merged into slip" and review.merged["step"]
    assert review.groups == [] and _last(sent, "plan")["plan"] == {}

    hear(review, "undo")
    _settle(review)
    assert {page.name: page.raw for page in review.field.pages()} == before
    assert review.merged["step"] is None
    assert [group["members"] for group in review.groups] == [["slip", "slip-again"]]


def test_a_plan_gone_stale_says_so_and_offers_a_new_one(
    review: FamilyReview, hear: Callable[..., None], told: Told
) -> None:
    _begin(review, hear, told)
    sent = told(review)
    hear(review, "plan", names=["slip", "slip-again"])
    _settle(review)
    page = review.field.path / "slip.md"
    page.write_bytes(page.read_bytes() + b"\nAnother hand was here.\n")
    hear(review, "apply")
    assert review.state.jobs.wait()
    plan = _last(sent, "plan")["plan"]
    assert "slip.md was changed" in plan["stale"] and "slip.md was changed" in review.state.error
    assert "slip-again" in review.field
    hear(review, "apply")  # refused while it is stale
    assert review.state.jobs.wait() and "slip-again" in review.field
    hear(review, "again")
    _settle_after_error(review)
    plan = _last(sent, "plan")["plan"]
    assert plan["stale"] == "" and "Another hand" in plan["body"]
    # a change by another panel is seen without Apply
    review.field.delete("slip-again")
    review.state.wrote("deleted")
    assert review.state.jobs.wait()
    assert "slip-again.md was deleted" in _last(sent, "plan")["plan"]["stale"]
    hear(review, "again")
    assert review.state.jobs.wait() and _last(sent, "plan")["plan"] == {}
    assert "nothing to merge" in review.state.message


def _settle_after_error(panel: FamilyReview) -> None:
    panel.state.error = ""
    _settle(panel)


def test_contradictions_and_lost_sentences_are_decided(tmp_path: Path, hear: Callable[..., None], told: Told) -> None:
    place = tmp_path / "ferry"
    place.mkdir()
    for name, hour in (("ferry", "21:10"), ("ferry-times", "22:30")):
        text = f"# Ferry\n\nThe night ferry from the east pier leaves at {hour} on Sundays. Bring a lamp.\n"
        (place / f"{name}.md").write_text(text, encoding="utf-8")
    panel = FamilyReview(mf.open_field(place, model=MODEL))
    sent = told(panel)
    panel.plan(["ferry", "ferry-times"])
    _settle(panel)
    plan = _last(sent, "plan")["plan"]
    assert len(plan["conflicts"]) == 1
    hear(panel, "resolve", number=0, keep="second")
    plan = _last(sent, "plan")["plan"]
    assert plan["conflicts"] == [] and ("21:10" in plan["body"]) != ("22:30" in plan["body"])
    hear(panel, "resolve", number=7, keep="first")
    assert "no conflict 7" in panel.state.error
    panel.desk.change(lambda plan: plan.rewritten(lambda body: "# Ferry\n"))
    assert _last(sent, "plan")["plan"]["lost"] > 0
    hear(panel, "apply")
    assert panel.state.jobs.wait() and "missing in the merged text" in panel.state.error
    assert _last(sent, "plan")["plan"]["survivor"]  # the view hears how it went
    hear(panel, "accept")
    assert _last(sent, "plan")["plan"]["complete"]
    hear(panel, "leave")
    assert _last(sent, "plan")["plan"] == {} and sorted(panel.field) == ["ferry", "ferry-times"]


def test_an_archive_is_reviewed_but_not_merged(
    review: FamilyReview, tmp_path: Path, hear: Callable[..., None], told: Told
) -> None:
    archive = review.field.export(tmp_path / "notes.memoryfield.zip").path
    panel = FamilyReview(mf.open_field(archive, model=MODEL))
    _begin(panel, hear, told)
    assert not panel.can_write and panel.groups
    hear(panel, "answer", said="different", pair=list(panel.pair or ()))
    _settle(panel)
    assert panel.score["answers"] == 1
    hear(panel, "plan", names=["slip", "slip-again"])
    assert panel.state.jobs.wait()
    assert "read only" in panel.state.error and panel.desk.plan is None


def test_what_is_refused_or_gone_is_said(
    review: FamilyReview, hear: Callable[..., None], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = told(review)
    hear(review, "hello")
    _settle(review)
    pair = review.pair
    assert pair is not None
    state_place = review.found.reviews.file.parent
    monkeypatch.setattr(type(review.found.reviews), "answer", _refuse)
    hear(review, "answer", said="same", pair=list(pair))
    assert review.state.jobs.wait()
    assert "no room for answers" in review.state.error and not state_place.exists()
    assert review.pair == pair and _last(sent, "pair")["answer"] is None  # asked still
    monkeypatch.undo()
    (review.field.path / f"{pair[0]}.md").unlink()
    hear(review, "hello")
    assert pair[0] in _last(sent, "pair")["gone"]
    hear(review, "skip")
    assert review.pair != pair


def _refuse(*_: Any, **__: Any) -> Any:
    raise mf.errors.FieldError("no room for answers")


def test_callbacks_come_from_any_thread(review: FamilyReview, hear: Callable[..., None], told: Told) -> None:
    _begin(review, hear, told)
    for _ in range(3):
        pair = list(review.pair or ())
        thread = threading.Thread(target=hear, args=(review, "answer"), kwargs={"said": "different", "pair": pair})
        thread.start()
        thread.join()
        _settle(review)
    thread = threading.Thread(target=hear, args=(review, "plan"), kwargs={"names": ["slip", "slip-again"]})
    thread.start()
    thread.join()
    _settle(review)
    assert review.score["answers"] == 3 and review.desk.plan is not None


def test_a_large_or_odd_page_is_cut_and_stays_text(tmp_path: Path, hear: Callable[..., None], told: Told) -> None:
    place = tmp_path / "odd"
    place.mkdir()
    hostile = "<img src=x onerror=alert(1)> " * 3000
    for name in ("one", "two"):
        (place / f"{name}.md").write_text(f"---\ntitle: <b>{name}</b>\n---\n{hostile}\n", encoding="utf-8")
    panel = FamilyReview(mf.open_field(place, model=MODEL))
    sent = told(panel)
    hear(panel, "hello")
    _settle(panel)
    page = _last(sent, "pair")["pages"][0]
    assert sum(len(text) for text, _ in page["body"]) == 20_000 and page["more"] > 60_000
    assert "<img" not in panel.twin() and "<b>" not in panel.twin()


def test_one_page_or_none_has_no_question(tmp_path: Path, hear: Callable[..., None], told: Told) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    panel = FamilyReview(mf.open_field(place, model=MODEL))
    sent = told(panel)
    hear(panel, "hello")
    _settle(panel)
    assert panel.score["families"] == 0 and panel.pair is None and _last(sent, "pair")["pages"] == []
    for act in ("skip", "back"):
        hear(panel, act)
    panel.answer(True)
    assert panel.state.error == ""


def test_pages_selected_elsewhere_can_be_merged(review: FamilyReview, hear: Callable[..., None], told: Told) -> None:
    review.state.selected = ("winch", "paint")
    assert review.chosen == ["winch", "paint"]
    told(review)
    hear(review, "plan", names=review.chosen)
    _settle(review)
    assert set(review.desk.names) == {"winch", "paint"}
    hear(review, "select", names=["keys"])
    assert review.state.selected == ("keys",)
    hear(review, "open", name="keys")
    assert review.state.active == "keys"
