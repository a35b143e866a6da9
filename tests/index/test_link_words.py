"""A link counts for the page that it leads to, not for the page that it stands in; scores are told from zero."""

from __future__ import annotations

from pathlib import Path

import pytest

import memoryfield as mf
from memoryfield.display import score_text


@pytest.mark.parametrize(
    "link", ["[winch](winch-brake.md)", "[[winch-brake]]", "[[winch-brake|it]]", "<winch-brake.md>"]
)
def test_the_page_itself_is_found_before_one_that_links_to_it(tmp_path: Path, link: str) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    field.write(
        "winch-brake", title="Winch brake", body="A new lining holds, and is checked again in May by two of us."
    )
    field.write("oil", title="Oil", body=f"For the {link}.")
    results = field.search("brake", retriever="keyword")
    assert results.names == ["winch-brake", "oil"]  # the link is still found
    shown = [line.split() for line in repr(results).splitlines() if "winch-brake" in line or "  oil" in line]
    assert all("0.000" not in cells for cells in shown)


def test_every_word_of_a_link_and_around_it_is_still_found(tmp_path: Path) -> None:
    field = mf.open_field(tmp_path / "yard", create=True)
    body = "Vor dem [Löten](flux-paste.md#heat) siehe [hier](https://example.com/tin-whiskers), danach ablöschen.\r\n"
    field.put("solder", b"\xef\xbb\xbf---\ntitle: Lot\n---\n" + body.encode())
    for word in ("löten", "flux", "paste", "hier", "whiskers", "ablöschen", "vor"):
        assert field.search(word, retriever="keyword").names == ["solder"], word


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (0.7314, "0.731"),
        (0.0, "0.000"),
        (-1.5, "-1.500"),
        (0.0000123, "0.000012"),
        (-2e-6, "-0.0000020"),
        (1e-30, "0.000000000000"),
    ],
)
def test_a_small_score_is_told_from_zero(score: float, shown: str) -> None:
    assert score_text(score) == shown
