"""Repairs: planned, shown, applied under a condition, and never a guess that nobody asked for."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from memoryfield.errors import PageChanged, PageExists, QueryError, ReadOnlyField
from memoryfield.format.archive import export_archive
from memoryfield.format.fixes import plan_fixes
from memoryfield.format.pages import PageDirectory, open_pages
from memoryfield.format.renames import rename_proposals
from memoryfield.format.validate import validate

CP1252 = b"---\ntitle: Label\n---\nThe label says \x93keep dry\x94 \x97 it doesn\x92t mean it.\n"
LATIN = "---\ntitle: Gärtnerei\n---\nMontag geschlossen, früh geöffnet.\n".encode("latin-1")


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    return PageDirectory(tmp_path / "field", create=True)


def put(field: PageDirectory, filename: str, raw: bytes) -> None:
    (field.path / filename).write_bytes(raw)


def content(field: PageDirectory) -> dict[str, bytes]:
    return {name: (field.path / name).read_bytes() for name in sorted(os.listdir(field.path))}


def test_nothing_to_repair(field: PageDirectory) -> None:
    field.create("a", title="A")
    fixes = plan_fixes(field, reencode=True)
    assert len(fixes) == 0 and list(fixes) == []
    assert fixes.diff() == ""
    assert fixes.apply() == ()
    assert "0 repairs planned" in repr(fixes)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_becomes_utf8_and_nothing_else_changes_P10(field: PageDirectory, codec: str) -> None:
    text = "---\r\ntitle: Tämä 漢\r\n---\r\nbody\r\n\r\n"
    put(field, "wide.md", ("\ufeff" + text).encode(codec))
    fixes = plan_fixes(field)
    assert [(fix.filename, fix.rule, fix.message) for fix in fixes] == [("wide.md", "P10", "UTF-16 becomes UTF-8")]
    assert "same text" in fixes.diff()
    assert content(field)["wide.md"] == ("\ufeff" + text).encode(codec)  # a plan writes nothing
    assert fixes.apply() == ("wide.md",)
    assert content(field) == {"wide.md": text.encode()}
    assert field.read("wide").title == "Tämä 漢"
    assert len(plan_fixes(field)) == 0
    assert list(validate(field)) == []


def test_damaged_utf16_is_left_and_told_P10(field: PageDirectory) -> None:
    raw = b"\xff\xfe" + "text".encode("utf-16-le") + b"\x00"
    put(field, "wide.md", raw)
    fixes = plan_fixes(field)
    assert len(fixes) == 0
    assert fixes.left[0][0] == "wide.md"
    assert "wide.md is left as it is" in repr(fixes)
    assert content(field) == {"wide.md": raw}


def test_other_bytes_are_touched_only_when_asked_P10(field: PageDirectory) -> None:
    put(field, "cp1252.md", CP1252)
    put(field, "latin.md", LATIN)
    assert len(plan_fixes(field)) == 0
    fixes = plan_fixes(field, reencode=True)
    assert [fix.filename for fix in fixes] == ["cp1252.md", "latin.md"]
    lines = fixes.diff().splitlines()
    assert "--- a/cp1252.md" in lines and "+++ b/cp1252.md" in lines
    assert r"-The label says \x93keep dry\x94 \x97 it doesn\x92t mean it." in lines
    assert "+The label says “keep dry” — it doesn’t mean it." in lines
    fixes.apply()
    assert field.read("cp1252").body == "The label says “keep dry” — it doesn’t mean it.\n"
    assert field.read("latin").title == "Gärtnerei"
    assert field.edit("latin", append="now editable").is_utf8


def test_valid_utf8_in_the_same_page_stays_P10(field: PageDirectory) -> None:
    put(field, "mixed.md", "é 漢 ".encode() + b"\x93quoted\x94 \x81 end\n")
    plan_fixes(field, reencode=True).apply()
    assert field.read("mixed").text == "é 漢 “quoted” \x81 end\n"


def test_the_encoding_can_be_named(field: PageDirectory) -> None:
    put(field, "cyrillic.md", "Привет, é".encode("cp1251", "ignore"))
    put(field, "japanese.md", "日本語の頁\n".encode("shift_jis"))
    fixes = plan_fixes(field, reencode="shift_jis")
    assert [fix.filename for fix in fixes if fix.after == "日本語の頁\n".encode()] == ["japanese.md"]
    by_name = {fix.filename: fix.after.decode() for fix in plan_fixes(field, reencode="cp1251")}
    assert by_name["cyrillic.md"] == "Привет, "
    with pytest.raises(QueryError, match="cp9999"):
        plan_fixes(field, reencode="cp9999")
    for name in ("hex", "rot13", "base64"):  # codecs, but of no text
        with pytest.raises(QueryError, match=name):
            plan_fixes(field, reencode=name)


def test_bytes_that_the_named_encoding_does_not_have_are_left(field: PageDirectory) -> None:
    put(field, "a.md", b"text \xff\xff\n")
    fixes = plan_fixes(field, reencode="utf-8")
    assert len(fixes) == 0
    assert fixes.left == (("a.md", "its bytes are no utf-8"),)


def test_a_page_changed_since_the_plan_is_not_overwritten_P14(field: PageDirectory) -> None:
    put(field, "a.md", CP1252)
    put(field, "b.md", LATIN)
    fixes = plan_fixes(field, reencode=True)
    put(field, "b.md", LATIN + b"more \xe4\n")
    before = content(field)
    with pytest.raises(PageChanged, match=r"b\.md"):
        fixes.apply()
    assert content(field) == before


# Names


def test_a_bad_name_gets_the_only_slug_there_is_P13(field: PageDirectory) -> None:
    put(field, "seed_order.md", b"seeds\n")
    put(field, "SHED.MD", b"shed\n")
    put(field, "café-list.md", b"list\n")
    put(field, "what-now?.md" if os.name != "nt" else "what now.md", b"what\n")
    fixes = plan_fixes(field)
    assert "rename from seed_order.md\nrename to seed-order.md" in fixes.diff()
    fixes.apply()
    assert content(field) == {
        "cafe-list.md": b"list\n",
        "seed-order.md": b"seeds\n",
        "shed.md": b"shed\n",
        "what-now.md": b"what\n",
    }
    assert field.names() == ["cafe-list", "seed-order", "shed", "what-now"]


@pytest.mark.parametrize(
    ("present", "proposed"),
    [
        (["seed_order.md"], {"seed_order.md": "seed-order.md"}),
        (["seed_order.md", "seed-order.md"], {}),
        (["seed_order.md", "Seed-Order.md"], {}),
        (["seed_order.md", "seed order.md"], {}),
        (["SHED.MD"], {"SHED.MD": "shed.md"}),
        (["Shed.md", "SHED.MD"], {}),
        (["a.md "], {"a.md ": "a.md"}),
        (["펌프-점검-메모.md"], {}),
        (["펌프-v2.md"], {}),
        (["ßßßß한.md"], {}),
        (["Straße.md"], {"Straße.md": "strasse.md"}),
        (["_.md"], {}),
        (["con_.md"], {}),
        (["x" * 61 + "_.md"], {}),
        ([".hidden.md", "page.sync-conflict-1.md", "x.md~", "notes.txt", "fine.md"], {}),
        (["\udcff.md"], {}),
        (["caf\udce9.md"], {}),
    ],
)
def test_only_where_nothing_has_to_be_guessed(present: list[str], proposed: dict[str, str]) -> None:
    assert rename_proposals(present) == proposed


def test_links_follow_a_rename_byte_by_byte(field: PageDirectory) -> None:
    put(field, "seed_order.md", b"[self](seed_order.md) and [other](caf%C3%A9.md)\n")
    put(field, unicodedata.normalize("NFD", "café.md"), b"x\n")
    old = (
        '---\ntitle: see seed_order.md\n---\r\n[a](seed_order.md#top "t") [b](./seed_order.md) [[seed_order|text]]\r\n'
        "[c](caf%C3%A9.md) [d](café.md) ![i](seed_order.png) `[code](seed_order.md)` seed_order.md\r\n\r\n"
    )
    put(field, "linker.md", old.encode())
    put(field, "bad.md", b"\x96 [a](seed_order.md)\n")
    fixes = plan_fixes(field)
    fixes.apply()
    new = (
        '---\ntitle: see seed_order.md\n---\r\n[a](seed-order.md#top "t") [b](./seed-order.md) [[seed-order|text]]\r\n'
        "[c](cafe.md) [d](cafe.md) ![i](seed_order.png) `[code](seed_order.md)` seed_order.md\r\n\r\n"
    )
    assert field.read("linker").raw == new.encode()
    assert field.read("seed-order").raw == b"[self](seed-order.md) and [other](cafe.md)\n"
    assert field.read("bad").raw == b"\x96 [a](seed_order.md)\n"  # not editable: untouched
    assert field.names() == ["bad", "cafe", "linker", "seed-order"]


def test_a_rename_keeps_the_file_and_refuses_when_something_changed_P14(field: PageDirectory) -> None:
    put(field, "seed_order.md", b"seeds\n")
    before = (field.path / "seed_order.md").stat()
    fixes = plan_fixes(field)
    put(field, "seed-order.md", b"meanwhile\n")
    with pytest.raises(PageExists, match=r"seed-order\.md"):
        fixes.apply()
    (field.path / "seed-order.md").unlink()
    put(field, "seed_order.md", b"edited\n")
    with pytest.raises(PageChanged, match=r"seed_order\.md"):
        fixes.apply()
    (field.path / "seed_order.md").unlink()
    with pytest.raises(PageChanged, match=r"seed_order\.md"):
        fixes.apply()
    put(field, "seed_order.md", b"seeds\n")
    fixes.apply()
    after = (field.path / "seed-order.md").stat()
    assert after.st_size == before.st_size and after.st_nlink == 1
    assert content(field) == {"seed-order.md": b"seeds\n"}


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_with_a_bad_name_is_not_renamed_P2(field: PageDirectory, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_bytes(b"\xff\xfet\0")
    (field.path / "bad_name.md").symlink_to(tmp_path / "outside.md")
    (field.path / "wide.md").symlink_to(tmp_path / "outside.md")
    fixes = plan_fixes(field, reencode=True)
    assert len(fixes) == 0
    assert (field.path / "bad_name.md").is_symlink()
    assert (tmp_path / "outside.md").read_bytes() == b"\xff\xfet\0"


# What people see


def test_plans_show_themselves_without_obeying_the_page(field: PageDirectory) -> None:
    put(field, "a.md", b"<script>alert(1)</script> \x1b[31m \x96\n")
    fixes = plan_fixes(field, reencode=True)
    assert "\x1b" not in fixes.diff()
    html = fixes._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "1 repair planned" in repr(fixes)
    assert fixes[0].filename == "a.md" and len(fixes[0:]) == 1


def test_an_archive_is_not_repaired(field: PageDirectory, tmp_path: Path) -> None:
    put(field, "a.md", CP1252)
    source = open_pages(export_archive(field, tmp_path / "x.zip").path)
    fixes = plan_fixes(source, reencode=True)
    assert len(fixes) == 1
    with pytest.raises(ReadOnlyField, match="import the archive"):
        fixes.apply()
    assert fixes.apply(field) == ("a.md",)


def test_everything_that_is_called_fixable_is_fixed(field: PageDirectory) -> None:
    put(field, "wide.md", "\ufeff# T\ntext\n".encode("utf-16-le"))
    put(field, "seed_order.md", b"# T\ntext\n")
    put(field, "펌프.md", b"# T\ntext\n")
    put(field, "cp1252.md", CP1252)
    assert {f.filename for f in validate(field) if f.fixable} == {"wide.md", "seed_order.md"}
    plan_fixes(field).apply()
    assert not any(f.fixable for f in validate(field))


COLONS = b"---\r\ntitle: Insurance: who pays\r\nsummary: it's 5: really\r\ntags: [a]\r\n---\r\nText: stays.\r\n"


def test_a_value_with_a_colon_inside_gets_quotes_P8(field: PageDirectory) -> None:
    put(field, "colons.md", COLONS)
    assert [(f.rule, f.line, f.fixable) for f in validate(field) if f.level == "error"] == [("P8", 2, True)]
    fixes = plan_fixes(field)
    assert [(fix.filename, fix.rule) for fix in fixes] == [("colons.md", "P8")]
    fixes.apply()
    page = field.read("colons")
    assert page.title == "Insurance: who pays" and page.frontmatter["summary"] == "it's 5: really"
    assert page.raw == COLONS.replace(b"Insurance: who pays", b"'Insurance: who pays'").replace(
        b"it's 5: really", b"'it''s 5: really'"
    )
    assert not [finding for finding in validate(field) if finding.level == "error"]


@pytest.mark.parametrize(
    "block",
    [
        b"title: one: two # a remark or a word\n",
        b"title: one: two\nother: [open\n",
        b"title: 'one: two\n",
        b"title: one\n  two: three\n",
        b"- title: one: two\n",
        b"title: one: two\ntitle: three: four\n",
    ],
)
def test_what_has_two_readings_is_left_P8(field: PageDirectory, block: bytes) -> None:
    put(field, "a.md", b"---\n" + block + b"---\nText.\n")
    assert list(plan_fixes(field)) == []
    assert not [finding for finding in validate(field) if finding.fixable]
