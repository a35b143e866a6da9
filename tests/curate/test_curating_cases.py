"""Cases from reports on tools of this kind, on the whole field: templates, equal titles, and fields of hardly a page.

Others stand where their subject is tested: no sentence vanishes, stale plans and two plans for one page in
``test_merge.py``, links to itself in ``test_selflinks.py``, disks that fail in ``test_merge_faults.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryfield import MemoryField, open_field
from memoryfield.errors import HistoryError, QueryError


def _field(path: Path, pages: dict[str, str]) -> MemoryField:
    field = open_field(path, create=True, model="hashing-1024")
    for name, text in pages.items():
        (path / f"{name}.md").write_text(text)
    return field


_FORM = "---\ntitle: Berth bill {0}\n---\n# Bill\n\n## Boat\n\n{1}\n\n## Sum\n\n{2} EUR\n\n## Due\n\n{3}\n"
_BILLS = {
    "berth-bill-711": _FORM.format(711, "Petrel", "310.00", "2026-02-01"),
    "berth-bill-712": _FORM.format(712, "Grey Goose of Airlund", "88.20", "2026-03-15"),
    "berth-bill-713": _FORM.format(713, "Merrow", "12,400.00", "2026-05-30"),
}


def test_bills_of_one_form_are_never_proposed_for_a_merge(tmp_path: Path) -> None:
    """The case template-siblings-are-not-duplicates, from the families to the warning of a new page."""
    field = _field(tmp_path / "f", _BILLS)
    found = field.families(progress=False)
    assert all(not family.automatic for family in found if set(family) & set(_BILLS))
    for item in field.health(progress=False).section("near-duplicates"):
        assert not set(item.pages) & set(_BILLS) or not item.remedy.startswith("look at the merge")
    (tmp_path / "f" / "berth-bill-713.md").unlink()
    assert len(field.similar("berth-bill-711")) == 0
    if pairs := [pair for pair in found.pairs if {pair.first, pair.second} <= set(_BILLS)]:
        assert all(pair.opposing for pair in pairs)


def test_pages_of_one_title_are_candidates_whatever_they_say(tmp_path: Path) -> None:
    """The case same-title-different-body."""
    field = _field(
        tmp_path / "f",
        {
            "crane": "---\ntitle: Crane\n---\nThe old crane went to the museum in spring.\n",
            "crane-2": "---\ntitle: Crane\n---\nOil: two litres of grade 46, form K-12 to the office.\n",
            "rope": "---\ntitle: Rope\n---\nChanged before the first boat each year.\n",
        },
    )
    (pair,) = (p for p in field.families(progress=False).pairs if (p.first, p.second) == ("crane", "crane-2"))
    assert "same title" in [reason.kind for reason in pair.supporting] and not pair.together
    assert [item.pages for item in field.health(progress=False).section("same-titles")] == [("crane", "crane-2")]
    plan = field.plan_merge(["crane", "crane-2"])
    assert plan.account().complete and "museum" in plan.text and "K-12" in plan.text


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_fields_of_hardly_a_page(tmp_path: Path, count: int) -> None:
    """The case empty-and-tiny, for everything that curates."""
    words = ("The slip is long.", "Paint dries slowly in the shed.", "A key hangs in the office.")
    field = _field(tmp_path / "f", {f"page-{n}": f"---\ntitle: Page {n}\n---\n{words[n]}\n" for n in range(count)})
    families = field.families(progress=False)
    assert len(families) == 0 and families.borderline(3) is not None and f"{count} page" in repr(families)
    health = field.health(progress=False)
    assert health.pages == count and not health.section("near-duplicates") and repr(health)
    assert len(field.stale(1)) == 0 and len(field.history()) == 0 and "0 steps" in repr(field.history())
    with pytest.raises(HistoryError, match="no history yet"):
        field.undo()
    if count < 2:
        with pytest.raises(QueryError, match="two pages or more"):
            field.plan_merge(field.names())
        return
    before = {name: field.read(name).raw for name in field}
    plan = field.plan_merge(field.names())
    assert plan.account().complete
    plan.apply()
    assert len(field) == 1 and len(field.families(progress=False)) == 0
    field.undo()
    assert {name: field.read(name).raw for name in field} == before
    with pytest.raises(HistoryError, match="nothing to undo"):
        field.undo()
