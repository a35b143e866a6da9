"""Gate, weight and many questions from the field itself."""

from __future__ import annotations

from pathlib import Path

import memoryfield as mf

PAGES = {
    f"page-{number}": f"The {word} is kept in shed {number}."
    for number, word in enumerate(["winch", "oar", "mast", "rope", "anchor", "keel", "sail", "buoy", "lamp"])
}


def test_field_methods(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / f"{name}.md").write_text(f"---\ntitle: {text[4:12]}\n---\n{text}\n", encoding="utf-8")
    with mf.open_field(tmp_path, model="hashing-1024") as field:
        gate = field.gate(progress=False)
        weight = field.hybrid_weight(progress=False)
        found = field.search("which shed has the anchor", gate=gate, weight=weight, progress=False)
        assert found.passed_gate is gate.passes("which shed has the anchor")
        assert field.gate(list(PAGES.values()), ["xylophone"], progress=False).passed == 0.0
        assert field.hybrid_weight([("anchor", ["page-4"])], progress=False).learned_from == "learned from 1 probe"
        ranked = field.rank_many(["anchor", "keel"], depth=2, progress=False)
        assert [ranked.ranked(0)[0][0], ranked.ranked(1)[0][0]] == ["page-4", "page-5"]
        assert field.search("anchor", recipe="passages", progress=False).recipe == "passages"
        assert field.search("anchor", retriever="rrf", progress=False)[0].name == "page-4"
