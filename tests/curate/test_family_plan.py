"""A family plans its own merge: its medoid stays, unless other pages link to another member."""

from __future__ import annotations

from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.curate.family import Family
from memoryfield.curate.merge import plan_merge
from memoryfield.errors import QueryError, ReadOnlyField
from memoryfield.format.directory import PageDirectory

_WINCH = "The brake of the winch slips when the lining is wet, so dry it before a boat hangs in the slings."
_PAGES = {
    "a-rainy-story": (
        "A rainy story",
        f"It rained for a week. {_WINCH} Then we had coffee and went home.",
    ),
    "winch-brake": ("Winch brake slips", _WINCH),
    "winch-brake-wet": ("Wet lining of the winch brake", f"{_WINCH} A new lining holds."),
    "paint": ("Paint in the shed", "Two pots of red lead stand in the shed behind the office."),
    "keys": ("Keys", "The key of the crane hangs in the office beside the tide table."),
    "oil": ("Oil", "Waste oil goes into the blue drum and is collected on Mondays."),
}


@pytest.fixture
def field(tmp_path: Path) -> mf.MemoryField:
    opened = mf.open_field(tmp_path / "yard", create=True, model="hashing-1024")
    for name, (title, body) in _PAGES.items():
        opened.write(name, title=title, body=body, on_similar="ignore")
    return opened


def _winches(field: mf.MemoryField) -> Family:
    family = field.families(progress=False).of("winch-brake")
    assert family is not None and set(family) == {"a-rainy-story", "winch-brake", "winch-brake-wet"}
    return family


def test_the_medoid_stays_and_the_plan_is_one_step(field: mf.MemoryField) -> None:
    family = _winches(field)
    plan = family.plan()
    assert plan.survivor == family.medoid and "nearest to all the others" in plan.why
    assert set(plan.absorbed) == set(family) - {family.medoid} and plan.account().complete
    assert "planner" not in repr(family) and "planner" not in family.to_dict()
    before = {name: field.read(name).raw for name in field}
    plan.apply()
    assert not set(family) - {family.medoid} & set(field.names())
    field.undo()
    assert {name: field.read(name).raw for name in field} == before


def test_links_and_the_curator_count_more_than_the_medoid(field: mf.MemoryField) -> None:
    field.edit("oil", append="See [the story](a-rainy-story.md).")
    family = _winches(field)
    assert family.medoid != "a-rainy-story"
    linked = family.plan()
    assert linked.survivor == "a-rainy-story" and "1 link" in linked.why
    assert family.plan("winch-brake-wet.md").survivor == "winch-brake-wet"
    with pytest.raises(QueryError, match="none of the pages"):
        family.plan("oil")
    assert "SHOUTED" in family.plan(rewrite=lambda text: text + "\nSHOUTED\n").text


def test_families_after_an_answer_can_still_plan(field: mf.MemoryField) -> None:
    found = field.families(progress=False).review("winch-brake", "winch-brake-wet", same=True)
    family = found.rethreshold(0.5).of("winch-brake")
    assert family is not None and family.plan().survivor in family


def test_a_family_without_a_field_and_one_of_an_archive_say_so(field: mf.MemoryField, tmp_path: Path) -> None:
    from memoryfield.curate.families import families

    index = field.vector_index(recipe="content")
    index.sync()
    vectors = index.vectors()
    alone = families([field.read(name) for name in vectors.names], vectors.matrix, model_code=index.model_code)
    with pytest.raises(QueryError, match="plan_merge"):
        alone[0].plan()
    field.export(tmp_path / "yard.memoryfield.zip")
    packed = mf.open_field(tmp_path / "yard.memoryfield.zip", model="hashing-1024")
    family = packed.families(progress=False).of("winch-brake")
    assert family is not None
    with pytest.raises(ReadOnlyField):
        family.plan()


def test_without_a_medoid_the_title_that_the_others_say_stays(tmp_path: Path) -> None:
    directory = PageDirectory(tmp_path, create=True)
    directory.create("long", title="An afternoon", body=f"{_WINCH} It was a long day, and we were tired of it all.")
    directory.create("short", title="Winch brake slips", body="Dry the lining of the winch brake when it slips.")
    plan = plan_merge([directory.read("long"), directory.read("short")], directory=directory)
    assert plan.survivor == "short" and "title" in plan.why


def test_a_merge_brings_the_indexes_that_were_used_up_to_date(field: mf.MemoryField) -> None:
    names = field.names()[:2]
    field.search("anything", recipe="content", progress=False)
    field.plan_merge(names, names[0]).apply()
    vectors = field.vector_index(recipe="content").vectors()
    assert names[1] not in vectors.names and set(vectors.names) == set(field.names())
