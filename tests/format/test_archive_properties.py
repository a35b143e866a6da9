"""Any field, whatever its bytes: into an archive and out again is the same field (FORMAT A1, A2, A4)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryfield.format.archive import export_archive, import_archive, import_pages
from memoryfield.format.names import is_page_filename
from memoryfield.format.pages import PageDirectory, open_pages

NAMES = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
TEXTS = st.one_of(
    st.binary(max_size=400), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@settings(max_examples=25, deadline=None)
@given(pages=st.dictionaries(NAMES, TEXTS, max_size=6), other=st.binary(max_size=100))
def test_out_and_in_again_is_the_same_A1_A2_A4(pages: dict[str, bytes], other: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        field = PageDirectory(place / "field", create=True)
        for page, raw in pages.items():
            (field.path / f"{page}.md").write_bytes(raw)
        (field.path / "other.bin").write_bytes(other)
        report = export_archive(field, place / "x.memoryfield.zip")
        inside = open_pages(report.path)
        assert all(is_page_filename(filename) for filename in inside.snapshot().entries)
        assert {page.name: page.raw for page in inside.pages()} == pages
        assert inside.read_bytes("other.bin") == other
        again = PageDirectory(import_archive(report.path, place / "again").path)
        assert {page.name: page.raw for page in again.pages()} == pages
        assert export_archive(again, place / "y.memoryfield.zip").sha256 == report.sha256
        assert import_pages(inside, again).added == ()
