"""Plans of merges: nothing is lost, everything is shown, nothing is written that nobody approved."""

from __future__ import annotations

import csv
import os
import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryfield.curate.blocks import body_sentences, read_blocks, write_blocks
from memoryfield.curate.history import keep_history
from memoryfield.curate.merge import MergePlan, plan_merge
from memoryfield.curate.mergetext import Weaver
from memoryfield.curate.sections import Part
from memoryfield.curate.sentences import sentence_key
from memoryfield.errors import FrontmatterError, NotEditable, PageChanged, QueryError, ReadOnlyField
from memoryfield.format.directory import PageDirectory

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
UUIDS = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")

SAM = {
    "sam-job": "---\ntitle: Where Sam works\ncreated: '2025-01-10T08:00:00Z'\n---\n"
    "Sam works at Northwind as an analyst.\n\nSam likes tea.\n",
    "sam-new-job": "---\ntitle: Sam changed jobs\ncreated: '2026-05-02T08:00:00Z'\n---\n"
    "Sam just joined Blue Door as team lead.\n\nSam likes tea.\n",
}
LIMITS = {
    "limits": f"---\ntitle: Slip limits\nuuid: {UUIDS[0]}\ncreated: '2026-01-01T08:00:00Z'\n"
    "tags: [slip]\nowner: Ollis\n---\n"
    "# Slip limits\n\nThe slip is used above a predicted height of 4.1 m only. Ollis decides on the day.\n\n"
    "## Steps\n\n1. Read the tide table in the office.\n2. Write the time on the white board.\n3. Tell Ollis.\n\n"
    "## Values\n\n| Item | Value |\n|---|---|\n| Height | 4.1 m |\n| Window | 30 min |\n\n- Cradle: 12 m\n\n"
    "```sh\nslip --list\n```\n\nMore [1].\n\n[1]: https://a.example/one\n",
    "slip-limits": f"---\ntitle: Slip limits\nuuid: {UUIDS[1]}\ncreated: '2025-06-01T08:00:00Z'\ntags: [slip, tides]\n"
    "owner: Tobiah\nphase: two\n---\n"
    "# Slip limits\n\nThe slip is used above a predicted height of 4.0 m only. Ollis decides on the day. "
    "In his absence nobody uses it at all.\n\n"
    "## Steps\n\n1. Read the tide table in the office.\n2. Write the time on the white board.\n3. Check the winch.\n\n"
    "## Values\n\n| Item | Value |\n|---|---|\n| Height | 4.0 m |\n| Draught | 2 m |\n\n- Cradle: 14 m\n\n"
    "```sh\nslip --list\n```\n\nOther [1].\n\n[1]: https://b.example/two\n\n## Wind\n\nSouth-east is bad.\n",
}


def _field(folder: Path, pages: dict[str, str]) -> PageDirectory:
    directory = PageDirectory(folder, create=True)
    for name, text in pages.items():
        (folder / f"{name}.md").write_bytes(text.encode("utf-8"))
    return directory


def _plan(directory: PageDirectory, *names: str, **given: Any) -> MergePlan:
    return plan_merge([directory.read(name) for name in names], directory=directory, now=NOW, **given)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".md"}


# -- the cases --------------------------------------------------------------------------------------------------------


def test_no_sentence_vanishes(tmp_path: Path) -> None:
    """The case no-sentence-vanishes: all of both pages stands in the result; what is dropped is listed."""
    directory = _field(tmp_path / "f", SAM)
    plan = _plan(directory, "sam-job", "sam-new-job")
    assert plan.account().complete
    text = plan.text
    for sentence in ("Sam works at Northwind as an analyst.", "Sam just joined Blue Door as team lead."):
        assert text.count(sentence) == 1
    assert text.count("Sam likes tea.") == 1 and "Sam changed jobs" in text and "2026-05-02" in text
    entry = next(e for e in plan.account() if e.state == "kept" and "Northwind" in e.text)
    less = plan.drop(entry.id)
    assert "Northwind" not in less.text and less.account().complete
    assert [e.text for e in less.account().dropped] == ["Sam works at Northwind as an analyst."]
    assert "dropped" in repr(less)


def test_stale_merge_plan(tmp_path: Path) -> None:
    """The case stale-merge-plan: refused, naming the page; nothing changed."""
    directory = _field(tmp_path / "f", SAM)
    plan = _plan(directory, "sam-job", "sam-new-job")
    (tmp_path / "f" / "sam-new-job.md").write_text(SAM["sam-new-job"] + "\nMore.\n")
    before = _files(tmp_path / "f")
    with pytest.raises(PageChanged, match=r"sam-new-job\.md"):
        plan.apply()
    assert _files(tmp_path / "f") == before
    (tmp_path / "f" / "sam-new-job.md").unlink()
    with pytest.raises(PageChanged, match="deleted"):
        plan.apply()


def test_a_page_in_two_plans_is_merged_once(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", {**SAM, "sam-3": "Sam has a dog.\n"})
    first, second = _plan(directory, "sam-job", "sam-new-job"), _plan(directory, "sam-new-job", "sam-3")
    first.apply()
    before = _files(tmp_path / "f")
    with pytest.raises(PageChanged):
        second.apply()
    assert _files(tmp_path / "f") == before


# -- the text ---------------------------------------------------------------------------------------------------------


def test_sections_blocks_and_values(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", LIMITS)
    plan = _plan(directory, "limits", "slip-limits", into="limits")
    body = plan.result.body
    assert body.startswith(
        "# Slip limits\n\nThe slip is used above a predicted height of 4.1 m only. **[Conflict: limits, "
    )
    for heading in ("# Slip limits", "## Steps", "## Values", "## Wind", "## Sources"):
        assert body.splitlines().count(heading) == 1
    assert body.count("slip --list") == 1 and body.count("Read the tide table in the office.") == 1
    assert "3. Tell Ollis." in body and "   - Check the winch." in body  # steps keep their numbers
    assert "- Cradle: 12 m\n- **[Conflict:" in body and "| Height | 4.1 m |\n| **[Conflict:" in body
    assert "[1]: https://a.example/one" in body and "[1-2]: https://b.example/two" in body
    assert "Other [1][1-2]." in body
    assert [c.kind for c in plan.conflicts] == ["conflict"] * 3
    assert "2026-01-01" in plan.conflicts[0].marker and "2025-06-01" in plan.conflicts[0].marker
    assert plan.account().complete and plan.account().counts()["equal"] >= 8


def test_conflicts_are_decided_one_by_one(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", LIMITS)
    plan = _plan(directory, "limits", "slip-limits", into="limits")
    decided = plan.resolve(0, "second").resolve(0, "first").resolve(0, "both")
    assert not decided.conflicts and "Conflict" not in decided.text
    assert "height of 4.0 m" in decided.text and "height of 4.1 m" not in decided.text
    assert decided.account().complete and len(decided.account().dropped) == 2
    for wrong in (("x", 0), ("first", 9)):
        with pytest.raises(QueryError):
            plan.resolve(wrong[1], wrong[0])


def test_a_short_answer_keeps_its_place(tmp_path: Path) -> None:
    pages = {
        "a": "**Is it broken?**\nNo.\n\n**Is it new?**\nYes, since May of last year.\n",
        "b": "**Is it loud?**\nNo.\n\n**Is it new?**\nYes, since May of last year.\n",
    }
    text = _plan(_field(tmp_path / "f", pages), "a", "b").text
    assert "**Is it loud?**\nNo." in text and "**Is it broken?**\nNo." in text
    assert text.count("Yes, since May of last year.") == 1


def test_a_story_keeps_its_sentences_together(tmp_path: Path) -> None:
    pages = {
        "a": "---\ntitle: Limits\n---\n## Values\n\n- The slip needs a height of 4.1 m at springs\n",
        "b": "---\ntitle: A day\n---\nWe came early. The slip needs a height of 4.0 m at springs. It did not help.\n",
    }
    plan = _plan(_field(tmp_path / "f", pages), "a", "b", into="a")
    assert "We came early. The slip needs a height of 4.0 m at springs. **[Conflict: b" in plan.text
    assert "It did not help." in plan.text and plan.account().complete and len(plan.conflicts) == 1


def test_frontmatter_of_the_result_P12(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", LIMITS)
    plan = _plan(directory, "limits", "slip-limits", into="limits.md")
    front = plan.result.frontmatter
    assert front["uuid"] == UUIDS[0] and front["created"] == "2025-06-01T08:00:00Z"
    assert front["updated"] == "2026-09-01T12:00:00Z" and front["tags"] == ["slip", "tides"]
    assert front["merged_from"] == [f"slip-limits {UUIDS[1]}"]
    assert front["owner"] == "Ollis" and front["phase"] == "two"
    assert [(c.key, c.kept, c.others) for c in plan.key_conflicts] == [("owner", "Ollis", (("slip-limits", "Tobiah"),))]
    assert "Tobiah" in repr(plan)


def test_unchanged_lines_of_the_survivor_keep_their_bytes_P9(tmp_path: Path) -> None:
    raw = "\ufeff---\ntitle: 'A'   # why\nx:   1\n---\n\nFirst line.\n".replace("\n", "\r\n")
    directory = _field(tmp_path / "f", {"a": raw, "b": "Second line, which is longer.\n"})
    result = _plan(directory, "a", "b", into="a").raw.decode("utf-8")
    assert result.startswith("\ufeff---\r\ntitle: 'A'   # why\r\n") and "\r\nx:   1\r\n" in result
    assert "---\r\n\r\nFirst line.\r\n" in result
    assert "\n" not in result.replace("\r\n", "")


def test_who_survives_and_why(tmp_path: Path) -> None:
    pages = {"a": "Long text here.\n", "b": "Short.\n", "c": "See [b](b.md).\n"}
    directory = _field(tmp_path / "f", pages)
    plan = _plan(directory, "a", "b")
    assert plan.survivor == "b" and "1 link" in plan.why
    (tmp_path / "f" / "c.md").unlink()
    assert (plan := _plan(directory, "a", "b")).survivor == "a" and "longest" in plan.why
    assert _plan(directory, "b", "a").raw == plan.raw  # the order of the pages does not matter


def test_merging_again_keeps_one_section_of_sources(tmp_path: Path) -> None:
    directory = _field(
        tmp_path / "f", {**SAM, "sam-3": "---\ntitle: The dog\nuuid: u-3\n---\nSam has a dog.\n\nSource: Sam\n"}
    )
    _plan(directory, "sam-job", "sam-new-job", into="sam-job").apply()
    plan = _plan(directory, "sam-job", "sam-3", into="sam-job")
    assert plan.text.count("## Sources") == 1 and plan.text.count("`sam-job` (this page") == 1
    assert plan.text.index("## The dog") < plan.text.index("## Sources") < plan.text.index("Source: Sam")
    assert plan.result.frontmatter["merged_from"] == ["sam-new-job", "sam-3 u-3"]


@pytest.mark.parametrize("end", ["<!-- open", "```sh\nopen", "- item\n\n  ~~~\n  open", "> ```\n> open"])
def test_an_open_fence_or_comment_swallows_nothing(tmp_path: Path, end: str) -> None:
    pages = {"a": f"Text one is long enough to be first.\n\n{end}\n", "b": f"Text two.\n\n## More\n\n{end}\n"}
    plan = _plan(_field(tmp_path / "f", pages), "a", "b", into="a")
    assert plan.account().complete and plan.text.count("Text two.") == 1 and plan.text.count("- `b`") == 1


def test_what_cannot_be_put_together_is_said_and_not_written(tmp_path: Path) -> None:
    odd = "```\na\n```\n\n<!-- open\n\n```sh\nb\n\n```\nc\n```\n\n<!-- note -->\n"  # a fence that opens in a comment
    directory = _field(tmp_path / "f", {"a": f"{odd}", "b": "Text two.\n"})
    plan, before = _plan(directory, "a", "b", into="a"), _files(tmp_path / "f")
    assert not plan.account().complete and "block the merge" in repr(plan)
    with pytest.raises(NotEditable, match="missing"):
        plan.apply()
    assert _files(tmp_path / "f") == before
    assert plan.with_body("Text two.\n").apply().survivor.body == "Text two.\n"  # a curator can always write it


def test_pages_of_one_template_keep_their_answers_apart(tmp_path: Path) -> None:
    text = "---\ntitle: {0} of {1}\n---\nRequest: what is the {0} of {1}\n\nSite: shop\n\n## Result\n\n- {2}\n"
    pages = {
        "a": text.format("best product", "2022", "Sprite"),
        "b": text.format("best brand", "2023", "Yoga ball"),
        "c": text.format("worst brand", "2024", "Sprite"),
    }
    plan = _plan(_field(tmp_path / "f", pages), "a", "b", "c", into="a")
    body = plan.result.body
    assert "## Result\n\n- Sprite\n\n## best brand of 2023\n" in body
    assert "### Result\n\n- Yoga ball\n\n## worst brand of 2024\n" in body and body.count("- Sprite") == 2
    assert body.count("Site: shop") == 1 and plan.account().complete


def test_long_pages_take_bounded_time(tmp_path: Path) -> None:
    rng = random.Random(7)
    words = [f"word{i}" for i in range(900)]
    bodies = [
        "\n\n".join(" ".join(rng.choices(words, k=9)).capitalize() + "." for _ in range(1500)) + "\n" for _ in range(2)
    ]
    directory = _field(tmp_path / "f", {"a": bodies[0], "b": bodies[1]})
    begin = time.perf_counter()
    plan = _plan(directory, "a", "b")
    assert plan.account().complete and "too long to look for" in repr(plan)
    assert time.perf_counter() - begin < 60


# -- carrying it out --------------------------------------------------------------------------------------------------


def test_apply_writes_deletes_and_relinks(tmp_path: Path) -> None:
    other = "See [two](slip-limits.md#steps) and [[slip-limits]].\r\n\r\n`slip-limits.md` stays.\r\n"
    directory = _field(tmp_path / "f", {**LIMITS, "other": other, "index": "# Hi\n\n- [x](slip-limits.md)\n"})
    plan = _plan(directory, "limits", "slip-limits", into="limits")
    assert [(link.name, link.count) for link in plan.links] == [("index", 1), ("other", 2)]
    done = plan.apply()
    assert done.absorbed == ("slip-limits",) and done.relinked == ("index", "other")
    assert directory.names() == ["index", "limits", "other"]
    assert (tmp_path / "f" / "other.md").read_bytes().decode() == other.replace("(slip-", "(").replace("[[slip-", "[[")
    assert done.survivor.raw == plan.raw


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_field_is_refused_whole(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", SAM)
    plan = _plan(directory, "sam-job", "sam-new-job")
    before = _files(tmp_path / "f")
    (tmp_path / "f").chmod(0o555)
    try:
        with pytest.raises(ReadOnlyField):
            plan.apply()
    finally:
        (tmp_path / "f").chmod(0o755)
    assert _files(tmp_path / "f") == before


def test_a_linking_page_that_cannot_be_written_stops_all_of_it(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", {**SAM, "other": "See [[sam-job]] and [[sam-new-job]].\n"})
    plan = _plan(directory, "sam-job", "sam-new-job")
    (tmp_path / "f" / "other.md").chmod(0o444)
    before = _files(tmp_path / "f")
    with pytest.raises(NotEditable, match=r"other\.md"):
        plan.apply()
    assert _files(tmp_path / "f") == before
    (tmp_path / "f" / "other.md").chmod(0o644)
    (tmp_path / "f" / "late.md").write_text(f"Late: [[{plan.absorbed[0]}]].\n")  # a link that came after the plan
    assert plan.apply().relinked == ("late", "other")


def test_bad_input_is_refused(tmp_path: Path) -> None:
    pages = {**SAM, "index": "# I\n", "broken": "---\na: [1\nb: {\n---\nText.\n"}
    directory = _field(tmp_path / "f", pages)
    (tmp_path / "f" / "bytes.md").write_bytes(b"caf\xe9\n")
    before = _files(tmp_path / "f")
    for names, error, words in (
        ([], QueryError, "two pages or more"),
        (["sam-job"], QueryError, "two pages or more"),
        (["sam-job", "sam-job"], QueryError, "twice"),
        (["sam-job", "index"], NotEditable, r"index\.md"),
        (["sam-job", "broken"], FrontmatterError, r"broken\.md"),
        (["sam-job", "bytes"], NotEditable, r"bytes\.md"),
    ):
        with pytest.raises(error, match=words):
            _plan(directory, *names)
    with pytest.raises(QueryError, match="none of the pages"):
        _plan(directory, "sam-job", "sam-new-job", into="index")
    plan = _plan(directory, "sam-job", "sam-new-job")
    with pytest.raises(QueryError, match="no sentence"):
        plan.drop("nothing#1")
    with pytest.raises(QueryError, match="title"):
        plan.drop(f"{plan.survivor}#1")
    assert _files(tmp_path / "f") == before


def test_what_a_rewriter_loses_blocks_the_merge(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", SAM)
    before = _files(tmp_path / "f")
    plan = _plan(
        directory, "sam-job", "sam-new-job", rewrite=lambda text: text.replace("Sam likes tea.", "Sam is fond of tea.")
    )
    assert [e.text for e in plan.account().lost] == ["Sam likes tea.", "Sam likes tea."]
    with pytest.raises(NotEditable, match="Sam likes tea"):
        plan.apply()
    assert _files(tmp_path / "f") == before
    accepted = plan.accept()
    assert accepted.account().complete and len(accepted.account().dropped) == 2
    assert "fond of tea" in accepted.apply().survivor.body
    with pytest.raises(QueryError, match="no text"):
        _plan(_field(tmp_path / "g", SAM), "sam-job", "sam-new-job", rewrite=lambda text: " ")


def test_a_curator_edits_any_part(tmp_path: Path) -> None:
    directory = _field(tmp_path / "f", LIMITS)
    plan = _plan(directory, "limits", "slip-limits", into="limits").edit("Wind", "South-east is bad. North is fine.")
    assert "North is fine." in plan.text and plan.account().complete and not plan.account().dropped
    own = plan.with_body("All new.")
    assert own.result.body == "All new.\n" and own.account().complete and own.account().dropped
    named = plan.with_keys(title="Limits of the slip", summary="One line.")
    assert (named.result.title, named.result.summary) == ("Limits of the slip", "One line.")
    assert named.result.body == plan.result.body and named.account().complete
    with pytest.raises(NotEditable, match="no heading"):
        plan.edit("Nowhere", "x")


def test_a_long_result_is_offered_as_two_pages(tmp_path: Path) -> None:
    parts = {
        name: f"---\ntitle: Page {name}\ntags: [t]\n---\n"
        + "".join(f"## {name} {i}\n\n" + f"Fact {name} {i} is noted. " * 9 + "\n\n" for i in range(25))
        for name in ("a", "b")
    }
    directory = _field(tmp_path / "f", parts)
    plan = _plan(directory, "a", "b")
    assert plan.over_limit > 0 and "split the page" in repr(plan)
    two = plan.split()
    assert two.over_limit == 0 and two.account().complete and two.second is not None
    assert two.second.uuid not in {page.uuid for page in two.pages}
    done = two.apply()
    assert done.second is not None and f"({done.second.name}.md)" in done.survivor.body
    assert f"({done.survivor.name}.md)" in done.second.body and done.second.frontmatter["tags"] == ["t"]
    with pytest.raises(QueryError, match="nothing to split"):
        _plan(_field(tmp_path / "g", SAM), "sam-job", "sam-new-job").split()


def test_the_views_say_the_same_and_escape(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    directory = _field(
        tmp_path / "f", {"a": f"---\ntitle: {bad}\n---\nText {bad} one.\n", "b": f"Other {bad} two \x1b[31m.\n"}
    )
    plan = _plan(directory, "a", "b", into="a")
    html, text = plan._repr_html_(), str(plan)
    assert "<script" not in html and "&lt;script" in html and "\x1b" not in text and "\x1b" not in plan.diff()
    assert "nothing is missing" in html and "nothing is missing" in text
    assert "--- a/b.md\n+++ /dev/null" in plan.diff()
    assert plan.account().to_dict()["complete"] is True and len(plan.account().to_frame()) == len(plan.account())


# -- properties -------------------------------------------------------------------------------------------------------

_WORDS = ["slip", "tide", "Ollis", "winch", "4.1", "never", "boat", "the", "is", "at", "30", "oil", "Monday", "not"]
_sentence = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map(lambda ws: " ".join(ws).capitalize() + ".")
_paragraph = st.lists(_sentence, min_size=1, max_size=4).flatmap(
    lambda ss: st.sampled_from([" ", "\n"]).map(lambda g: g.join(ss))
)
_bullets = st.lists(_sentence, min_size=1, max_size=4).map(lambda ss: "\n".join(f"- {s}" for s in ss))
_steps = st.lists(_sentence, min_size=1, max_size=4).map(lambda ss: "\n".join(f"{i}. {s}" for i, s in enumerate(ss, 1)))
_table = st.lists(st.tuples(_sentence, _sentence), min_size=1, max_size=3).map(
    lambda rows: "| K | V |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)
)
_code = st.lists(_sentence, min_size=1, max_size=2).map(lambda ss: "```\n" + "\n".join(ss) + "\n```")
_quote = _paragraph.map(lambda text: "\n".join(f"> {line}" for line in text.split("\n")))
_headings = st.builds(
    lambda n, t: "#" * n + " " + t, st.integers(1, 4), st.sampled_from(["Steps", "Cause", "Notes", "Sources"])
)
_loose = st.sampled_from(
    [
        "<!-- note -->",
        "```sh\nopen",
        "- item\n  ```\n  open",
        "[1]: http://a.example",
        "[1]: http://b.example",
        "---",
        "Ask: ",
        "    code",
        "[^n]: Foot.",
    ]
)
_bodies = st.lists(
    st.one_of(_paragraph, _bullets, _steps, _table, _code, _quote, _headings, _loose), min_size=1, max_size=9
).flatmap(lambda blocks: st.sampled_from(["\n\n", "\n"]).map(lambda gap: gap.join(blocks) + "\n"))


@given(st.text(alphabet="ab.- \n\t#|>`*1[]:<!~\u3002", max_size=120))
@settings(max_examples=400)
def test_blocks_put_together_are_the_body(body: str) -> None:
    blocks, tail = read_blocks(body)
    assert write_blocks(blocks, tail) == body
    for s in body_sentences(body):
        assert 0 <= s.start < s.end <= len(body)


@given(st.lists(_bodies, min_size=2, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_sentence_of_random_pages_is_in_the_result(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[str], titled: bool
) -> None:
    folder = tmp_path_factory.mktemp("random")
    front = "---\ntitle: {}\nsummary: What {} says.\n---\n" if titled else ""
    pages = {f"p{i}": front.format(f"Page {i}", i) + body for i, body in enumerate(bodies)}
    directory = _field(folder, pages)
    plan = _plan(directory, *pages)
    assert plan.account().complete
    inside = {s.key for s in body_sentences(plan.result.body)} | {sentence_key(plan.result.title)}
    inside |= {e.key for e in plan.account() if e.state in ("heading",) or e.kind in ("frontmatter", "definition")}
    for body in bodies:
        for s in body_sentences(body):
            assert s.key in inside or "[1]" in s.text or "[^n]" in s.text
    assert _plan(directory, *reversed(pages)).raw == plan.raw  # the order in which pages are given does not matter


def test_indented_code_behind_a_list_is_not_swallowed_by_it(tmp_path: Path) -> None:
    pages = {"a": "Text of the first page.\n\n- One item.\n", "b": "- Another item.\n\n## More\n\n    make all\n"}
    directory = _field(tmp_path / "f", {**pages, "c": "    make all\n"})
    for names in (("a", "c"), ("a", "b"), ("a", "b", "c")):
        plan = _plan(directory, *names, into="a")
        assert plan.account().complete and "    make all" in plan.text, names


def test_a_merge_is_one_step_that_can_be_undone(tmp_path: Path) -> None:
    """The other half of the case no-sentence-vanishes: after undo all files are byte-equal to before."""
    directory = _field(tmp_path / "f", {**SAM, "other": "See [[sam-job]] and [[sam-new-job]].\n"})
    history = keep_history(directory)
    before = _files(tmp_path / "f")
    _plan(directory, "sam-job", "sam-new-job").apply()
    after = _files(tmp_path / "f")
    assert len(after) == 2 and [step.verb for step in history.steps()] == ["merge"]
    history.undo()
    assert _files(tmp_path / "f") == before
    history.redo()
    assert _files(tmp_path / "f") == after


def test_a_merge_with_itself_under_another_name_adds_sources_only(tmp_path: Path) -> None:
    for name, text in LIMITS.items():
        body = text.split("---\n", 2)[2]
        weaver = Weaver(Part("one", "Slip limits", "", body))
        weaver.add(Part("two", "Slip limits", "", body))
        assert weaver.text() == body, name


HARBOR = Path(__file__).parents[2] / "data"


@pytest.mark.skipif(not (HARBOR / "harbor").is_dir(), reason="the example field is not beside the tests")
def test_every_family_of_the_example_field_merges_without_loss(tmp_path: Path) -> None:
    directory = PageDirectory(HARBOR / "harbor")
    families: dict[str, list[str]] = {}
    with open(HARBOR / "harbor.families.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            families.setdefault(row["family"], []).append(row["page"])
    merged = [names for names in families.values() if len(names) > 1]
    assert len(merged) >= 10
    for names in merged:
        plan = _plan(directory, *names)
        body = plan.result.body
        assert plan.account().complete and plan.size <= 8192
        assert not plan.conflicts or "Conflict" in body
        assert body.count("## Sources") == 1 and all(f"`{page.name}`" in body for page in plan.pages)
        long = [s.key for s in body_sentences(body) if len(s.text.split()) > 6 and not s.text.startswith("Source")]
        assert len(long) == len(set(long)), plan.survivor


def test_the_merged_summary_says_what_all_pages_hold(tmp_path: Path) -> None:
    front = "---\ntitle: {0}\nsummary: {1}\n---\nBody {0} says its own.\n"
    pages = {
        "a": front.format("A", "'When the slip is used'"),
        "b": front.format("B", "'Tides: who decides.'"),
        "c": front.format("C", "when the slip is used."),
        "d": front.format("D", "lower case stays out of the line"),
        "e": front.format("E", "'" + "Long words " * 60 + "'"),
        "f": "Body without a summary.\n",
    }
    plan = _plan(_field(tmp_path / "f", pages), *pages, into="a")
    assert plan.result.frontmatter["summary"] == "When the slip is used. Tides: who decides."
    sources = plan.text[plan.text.index("## Sources") :]
    assert "lower case stays out of the line" in sources and "Long words" in sources and "Tides" not in sources
    assert plan.account().complete
    plan = _plan(_field(tmp_path / "g", {"a": pages["f"], "b": pages["b"]}), "a", "b", into="a")
    assert plan.result.frontmatter["summary"] == "Tides: who decides." and plan.account().complete
