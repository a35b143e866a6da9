"""What validate says, and that it says it of every kind of page without changing one."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from pathlib import Path

import pytest

from memoryfield.format.archive import export_archive
from memoryfield.format.findings import Finding, Findings, shown_name
from memoryfield.format.pages import PageDirectory, open_pages
from memoryfield.format.validate import validate

GOOD = b"---\ntitle: Good\nuuid: 00000000-0000-4000-8000-0000000000%02d\n---\nText of its own.\n"


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    return PageDirectory(tmp_path / "field", create=True)


def put(field: PageDirectory, filename: str, raw: bytes | str) -> None:
    (field.path / filename).write_bytes(raw.encode() if isinstance(raw, str) else raw)


def found(field: PageDirectory, filename: str, raw: bytes | str) -> list[tuple[str, str, int | None]]:
    """Level, rule and line of what is said about one page in a field of its own."""
    put(field, filename, raw)
    return [(f.level, f.rule, f.line) for f in validate(field)]


def only(field: PageDirectory, raw: bytes | str, filename: str = "page.md") -> Finding:
    put(field, filename, raw)
    findings = validate(field)
    assert len(findings) == 1, list(findings)
    assert findings[0].filename == filename
    return findings[0]


def page(front: str, body: str = "Text of its own.\n") -> str:
    return f"---\n{front}---\n{body}"


def test_a_good_page_has_no_findings_P3(field: PageDirectory) -> None:
    put(field, "page.md", GOOD % 1)
    put(field, "plain.md", "# Title\n\nText.\n")
    put(field, "foreign.md", page("title: T\napplyTo: '**/*.py'\ntools: [a, b]\nmodel: x\n"))
    findings = validate(field)
    assert list(findings) == []
    assert repr(findings) == "Findings: none"
    assert findings.counts == {"error": 0, "warning": 0, "info": 0}


def test_an_empty_field_is_no_error(field: PageDirectory) -> None:
    findings = validate(field)
    assert [(f.level, f.filename) for f in findings] == [("info", "")]
    assert "no pages yet" in str(findings[0])


# Size (P4)


@pytest.mark.parametrize(("size", "cut"), [(8192, 0), (8193, 1), (9400, 1208)])
def test_what_is_past_8192_bytes_is_counted_P4(field: PageDirectory, size: int, cut: int) -> None:
    raw = b"# T\n" + b"word word\n" * 1000
    put(field, "page.md", raw[:size])
    findings = validate(field)
    if cut:
        assert [(f.level, f.rule) for f in findings] == [("warning", "P4")]
        assert findings[0].message.startswith(f"{cut:,} of {size:,} bytes")
        assert findings[0].line == 1 + raw[:8192].count(b"\n")
    else:
        assert list(findings) == []


# Encoding (P10) and characters


def test_invalid_utf8_names_the_line_P10(field: PageDirectory) -> None:
    finding = only(field, b"---\ntitle: Byte\n---\nfine\na \x96 b\n")
    assert (finding.level, finding.rule, finding.line, finding.fixable) == ("error", "P10", 5, False)
    assert "0x96" in finding.message
    assert "reencode" in finding.remedy


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_is_one_finding_that_can_be_fixed_P10(field: PageDirectory, codec: str) -> None:
    finding = only(field, ("\ufeff" + page("title: Tämä\n")).encode(codec))
    assert (finding.level, finding.rule, finding.fixable) == ("error", "P10", True)
    assert "UTF-16" in finding.message


def test_damaged_utf16_is_not_fixable_P10(field: PageDirectory) -> None:
    finding = only(field, b"\xff\xfe" + "text".encode("utf-16-le") + b"\x00")
    assert (finding.level, finding.rule, finding.fixable) == ("error", "P10", False)


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [
        ("before\0after", "warning", "NUL U+0000"),
        ("\x1b[31mred\x1b[0m", "warning", "control character U+001B, and 1 more"),
        ("bell\x07", "warning", "control character U+0007"),
        ("name: \u202egnp.exe\u202c", "warning", "writing direction U+202E"),
        ("\u2066isolate\u2069", "warning", "writing direction U+2066"),
        ("zero\u200bwidth", "info", "invisible character U+200B"),
        ("inner\ufeffmark", "info", "invisible character U+FEFF"),
        ("a\u2028b", "info", "line separator"),
        ("a\x0bb\x0cc\x85d", "info", "line separator that is no line end in Markdown U+000B, and 2 more"),
        ("caf\ufffd", "info", "replacement character U+FFFD"),
    ],
)
def test_characters_that_nobody_sees(field: PageDirectory, text: str, level: str, words: str) -> None:
    finding = only(field, page("title: T\n", f"line\n{text}\n"))
    assert (finding.level, finding.rule, finding.line) == (level, "P3", 5)
    assert words in finding.message
    assert finding.remedy


@pytest.mark.parametrize(
    "text", ["emoji 👩\u200d🔬 and Persian می\u200cخواهم", "\ttab", "soft\u00adhyphen", "no\u00a0break", "漢字 עברית"]
)
def test_characters_that_people_need(field: PageDirectory, text: str) -> None:
    assert found(field, "page.md", page("title: T\n", text + "\n")) == []


def test_a_bom_and_crlf_are_fine_P6(field: PageDirectory) -> None:
    assert found(field, "page.md", b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\nText.\r\n") == []


def test_lone_cr_P6(field: PageDirectory) -> None:
    finding = only(field, page("title: T\n", "one\rtwo\rthree\n"))
    assert (finding.level, finding.rule, finding.line) == ("warning", "P6", 4)


# Frontmatter


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("---\nkey: `C:\\agent`\n---\nbody\n", 2),
        ("---\ntitle: *Italic*\n---\nbody\n", 2),
        ("---\n- [[wiki]]suffix\n---\nbody\n", 2),
        ("---\ntitle: [x\nsummary: open\n---\nbody\n", None),
        ("---\nfine: yes\ntitle:\tTabbed: value\n---\nbody\n", 3),
        ("---\ndate: {{date}}\ntitle: T\n---\nbody\n", 2),
        ("---\ntitle: &a [*a]\n---\nbody\n", 2),
    ],
)
def test_broken_frontmatter_names_file_and_line_P8(field: PageDirectory, raw: str, line: int | None) -> None:
    findings = [f for f in [only(field, raw)] if line is None or f.line == line]
    assert [(f.level, f.filename) for f in findings] == [("error", "page.md")]
    assert findings[0].rule in ("P7", "P8")
    assert findings[0].line is not None


def test_an_alias_bomb_is_reported_in_no_time_P7(field: PageDirectory) -> None:
    rows = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for before, letter in zip("abcde", "bcdef", strict=True):
        rows.append(f"{letter}: &{letter} [" + ",".join([f"*{before}"] * 9) + "]")
    begun = time.process_time()
    finding = only(field, "---\n" + "\n".join(rows) + "\n---\nbody\n")
    assert time.process_time() - begun < 1
    assert finding.level == "error"


def test_duplicate_keys_are_an_error_P7(field: PageDirectory) -> None:
    finding = only(field, page("title: one\nsummary: s\ntitle: two\n"))
    assert (finding.level, finding.rule) == ("error", "P7")
    assert "'title'" in finding.message


@pytest.mark.parametrize("value", ["yesterday", "2026-13-45", "2026-02-30T25:61:00Z", "1772355600", "2026", "20260301"])
@pytest.mark.parametrize("key", ["created", "updated"])
def test_dates_that_are_none_P7(field: PageDirectory, key: str, value: str) -> None:
    finding = only(field, page(f"title: T\n{key}: {value}\n"))
    assert (finding.level, finding.rule, finding.line) == ("warning", "P7", 3)
    assert value in finding.message and "YYYY-MM-DD" in finding.remedy


@pytest.mark.parametrize(
    "value", ["2026-03-01", "'2026-03-01T09:00:00Z'", "2026-03-01 02:12:52 +0200", "2026-03-01T02:12:52+02:00"]
)
def test_dates_that_are_fine_P7(field: PageDirectory, value: str) -> None:
    assert found(field, "page.md", page(f"title: T\ncreated: {value}\nupdated: {value}\n")) == []


def test_a_time_without_zone_is_a_note_P7(field: PageDirectory) -> None:
    assert only(field, page("title: T\ncreated: 2026-03-01 13:03\n")).level == "info"


def test_updated_before_created(field: PageDirectory) -> None:
    finding = only(field, page("title: T\ncreated: 2026-03-09\nupdated: 2026-03-01T23:00:00+02:00\n"))
    assert (finding.level, finding.line) == ("warning", 4)
    assert "before created" in finding.message


def test_values_that_are_no_text_P3(field: PageDirectory) -> None:
    put(field, "page.md", page("title:\n  - Pump\n  - Valve\nsummary: {a: b}\n"))
    findings = validate(field)
    assert [(f.level, f.rule, f.line) for f in findings] == [("warning", "P3", 2), ("warning", "P3", 5)]
    assert "'Pump, Valve'" in findings[0].message


def test_values_that_look_like_something_else_are_fine_P7(field: PageDirectory) -> None:
    front = "title: 2024-12-19\nsummary: No\nstart: 12:30\nversion: 1.10\n2026-01-01: key\nratio: .nan\n"
    assert found(field, "page.md", page(front)) == []


def test_a_comment_that_eats_a_value_P7(field: PageDirectory) -> None:
    put(field, "page.md", page("title: Issue #12 is closed\nsummary: C # minor\nother: x # fine\n"))
    assert [(f.level, f.rule, f.line) for f in validate(field)] == [("info", "P7", 2), ("info", "P7", 3)]
    assert found(field, "page.md", page("title: 'C # minor'\nsummary: C#\n")) == []


def test_keys_in_capitals_and_wiki_links_as_lists_P7(field: PageDirectory) -> None:
    put(field, "page.md", "---\nTitle: X\nrelated: [[soil]]\n---\n# T\ntext\n")
    put(field, "soil.md", "# S\ntext\n")
    assert [(f.line, f.message.partition(" ")[0]) for f in validate(field)] == [(2, "the"), (3, "related")]


@pytest.mark.parametrize(
    ("raw", "level", "rule", "line"),
    [
        ("---\ntitle: Never closed\n\n# T\ntext\n", "warning", "P6", 1),
        ("----\ntitle: Four\n----\n# T\ntext\n", "warning", "P6", 1),
        ("<!-- a comment -->\n---\ntitle: Late\n---\n# T\ntext\n", "warning", "P6", 2),
        ("+++\ntitle = 'TOML'\n+++\n# T\ntext\n", "info", "P6", 1),
        ('{\n  "title": "JSON"\n}\n# T\ntext\n', "info", "P6", 1),
        ("---\ntitle: One\n---\n\n---\ntitle: Two\n---\ntext\n", "warning", "P8", 5),
    ],
)
def test_blocks_that_are_not_read_as_meant(field: PageDirectory, raw: str, level: str, rule: str, line: int) -> None:
    finding = only(field, raw)
    assert (finding.level, finding.rule, finding.line) == (level, rule, line)


@pytest.mark.parametrize(
    "raw",
    [
        "---\n**ACME Partners**\nCarmen O.\n---\nDear reader.\n# T\n",
        "---\n\nprose\n\n---\n# T\ntext\n",
        "---\n- a\n- b\n---\n# T\ntext\n",
        "---\njust a sentence\n---\n# T\ntext\n",
        "---\n---\n# T\ntext\n",
        "---\ntitle: T\n...\ntext\n",
        "# T\n---\ntext\n",
    ],
)
def test_rules_that_are_no_frontmatter_are_fine_P6(field: PageDirectory, raw: str) -> None:
    assert found(field, "page.md", raw) == []


# Identity (P12)


def test_one_uuid_on_two_pages_names_both_P12(field: PageDirectory) -> None:
    put(field, "a.md", GOOD % 1)
    put(field, "b.md", (GOOD % 1).upper().replace(b"TITLE", b"title").replace(b"UUID", b"uuid"))
    put(field, "c.md", GOOD % 2)
    findings = validate(field)
    assert [(f.level, f.rule, f.filename, f.line) for f in findings] == [
        ("error", "P12", "a.md", 3),
        ("error", "P12", "b.md", 3),
    ]
    assert "b.md" in findings[0].message and "a.md" in findings[1].message


@pytest.mark.parametrize("value", ["12345678901234567890", "abc", "00000000000040008000000000000001", "'{x}'"])
def test_a_uuid_that_is_none_P12(field: PageDirectory, value: str) -> None:
    finding = only(field, page(f"title: T\nuuid: {value}\n"))
    assert (finding.level, finding.rule, finding.line) == ("warning", "P12", 3)


# The body


def test_titles_and_empty_pages_P3(field: PageDirectory) -> None:
    for name, raw in {
        "nothing": "",
        "blank": "\n \n",
        "only-front": "---\ntitle: T\n---\n",
        "only-heading": "# T\n",
        "no-title": "just text\n",
    }.items():
        put(field, f"{name}.md", raw)
    said = {(f.filename, f.message.partition(":")[0]) for f in validate(field)}
    assert ("nothing.md", "the page is empty") in said
    assert ("blank.md", "the page is empty") in said
    assert ("only-front.md", "the page has no text of its own") in said
    assert ("only-heading.md", "the page has no text of its own") in said
    assert ("no-title.md", "no title and no heading") in said
    assert {f.level for f in validate(field)} == {"info"}


def test_links_to_pages_that_are_not_there(field: PageDirectory) -> None:
    text = "# T\n\n[a](there.md) [b](missing.md#x)\n[again](missing.md) [web](https://example.org/x.md)\n"
    text += "[[gone]] `[c](code.md)`\n"
    put(field, "page.md", text)
    put(field, "there.md", "# There\ntext\n")
    findings = validate(field)
    assert [(f.level, f.line, f.message) for f in findings] == [
        ("info", 3, "links to missing.md, which is not there"),
        ("info", 5, "links to gone.md, which is not there"),
    ]


def test_an_unresolved_merge_P3(field: PageDirectory) -> None:
    markers = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n"
    finding = only(field, page("title: T\n", "text\n" + markers))
    assert (finding.level, finding.line) == ("warning", 5)
    assert found(field, "page.md", page("title: T\n", f"How it looks:\n\n```\n{markers}```\n")) == []
    assert found(field, "page.md", page("title: T\n", "Heading\n=======\ntext\n")) == []


def test_a_fence_that_is_never_closed(field: PageDirectory) -> None:
    finding = only(field, page("title: T\n", "text\n\n```sh\npump --on\n\n---\n"))
    assert (finding.level, finding.line) == ("info", 6)
    assert found(field, "page.md", page("title: T\n", "~~~\n```\n~~~\ntext\n")) == []


def test_encoded_data_among_the_text_P4(field: PageDirectory) -> None:
    finding = only(field, page("title: T\n", "text\n\n![](data:image/png;base64," + "iVBOR" * 300 + ")\n"))
    assert (finding.level, finding.rule, finding.line) == ("info", "P4", 6)


def test_hostile_sizes_take_no_time(field: PageDirectory) -> None:
    put(field, "markers.md", b"# T\n" + b"<<<<<<< \n" * 100_000)
    put(field, "fences.md", b"# T\n" + b"```\n~~~\n" * 50_000)
    put(field, "brackets.md", b"# T\n" + b"[[" * 200_000)
    put(field, "carriage.md", b"# T\n" + b"\r" * 200_000)
    put(field, "hashes.md", b"---\ntitle: " + b"x #" * 20_000 + b"\n---\n")
    begun = time.perf_counter()
    validate(field)
    assert time.perf_counter() - begun < 15


# Files that are no pages (P2)


def test_what_is_no_page_is_said_with_a_remedy_P2(field: PageDirectory) -> None:
    put(field, "page.md", GOOD % 1)
    for name in (
        ".hidden-bed.md",
        ".DS_Store",
        "page.md~",
        "#page.md#",
        "page.sync-conflict-20260301-090000-ABCDEFG.md",
    ):
        put(field, name, b"x")
    for name in ("seed_order.md", "SHED.MD", "펌프-점검-메모.md", "a.md "):
        put(field, name, b"x")
    (field.path / "archive").mkdir()
    (field.path / ".git").mkdir()
    put(field, ".memoryfield-0123456789abcdef.tmp", b"half")
    put(field, "notes.txt", b"kept, and not worth a word")
    by_file = {f.filename: f for f in validate(field)}
    assert {name: (f.level, f.rule) for name, f in by_file.items()} == {
        ".hidden-bed.md": ("warning", "P2"),
        ".DS_Store": ("info", "P2"),
        ".git": ("info", "P2"),
        "page.md~": ("info", "P2"),
        "#page.md#": ("info", "P2"),
        "page.sync-conflict-20260301-090000-ABCDEFG.md": ("warning", "P2"),
        "seed_order.md": ("warning", "P2"),
        "SHED.MD": ("warning", "P2"),
        "펌프-점검-메모.md": ("warning", "P2"),
        "a.md ": ("warning", "P2"),
        "archive": ("info", "P2"),
        ".memoryfield-0123456789abcdef.tmp": ("info", "P14"),
    }
    assert "merge it with page.md" in by_file["page.sync-conflict-20260301-090000-ABCDEFG.md"].remedy
    assert "seed-order.md" in by_file["seed_order.md"].remedy and by_file["seed_order.md"].fixable
    assert "shed.md" in by_file["SHED.MD"].remedy and by_file["SHED.MD"].fixable
    assert not by_file["펌프-점검-메모.md"].fixable


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot make such files")
def test_links_and_odd_files_P2(field: PageDirectory, tmp_path: Path) -> None:
    put(field, "page.md", GOOD % 1)
    (field.path / "link.md").symlink_to("page.md")
    (field.path / "dangling.md").symlink_to("nowhere")
    os.mkfifo(field.path / "pipe.md")
    with open(field.path / "huge.md", "wb") as handle:
        handle.truncate(2**24 + 1)
    assert {f.filename: (f.level, f.rule) for f in validate(field)} == {
        "link.md": ("warning", "P2"),
        "dangling.md": ("warning", "P2"),
        "pipe.md": ("warning", "P2"),
        "huge.md": ("error", "P4"),
    }


def test_names_that_other_systems_or_tools_cannot_hold_P1_P13(field: PageDirectory) -> None:
    names = ["a--b", "con", "x" * 121]
    for number, name in enumerate(names):
        put(field, f"{name}.md", GOOD % number)
    assert [(f.level, f.rule, f.filename) for f in validate(field)] == [
        ("warning", "P1", "a--b.md"),
        ("warning", "P13", "con.md"),
        ("warning", "P13", "x" * 121 + ".md"),
    ]


def test_twins_are_reported_A1(field: PageDirectory) -> None:
    nfc = unicodedata.normalize("NFC", "Café.md")
    for name in ("Config.md", "config.md", nfc, unicodedata.normalize("NFD", nfc)):
        put(field, name, GOOD % 1)
    if len(os.listdir(field.path)) < 4:
        pytest.skip("this file system holds no twins")
    twins = [f for f in validate(field) if f.rule == "A1"]
    assert len(twins) == 2
    assert len({f.filename for f in twins}) == 2
    assert not any(f.fixable for f in validate(field) if f.filename == "Config.md")


def test_side_files_of_sqlite_X8(field: PageDirectory) -> None:
    put(field, "page.md", GOOD % 1)
    for name in ("model.sqlite3", "model.sqlite3-journal", "other-wal"):
        put(field, name, b"")
    assert [(f.level, f.rule, f.filename) for f in validate(field)] == [("info", "X8", "model.sqlite3-journal")]


@pytest.mark.skipif(os.name == "nt", reason="Windows names are text")
def test_names_of_any_bytes_can_be_shown_and_stored(field: PageDirectory) -> None:
    put(field, "page.md", GOOD % 1)
    try:
        for raw in (b"caf\xe9.md", b"\x1b[31mred.md", b"new\nline.md"):
            with open(os.path.join(os.fsencode(field.path), raw), "wb") as handle:
                handle.write(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    findings = validate(field)
    shown = {f.filename for f in findings}
    assert shown == {"caf\\xe9.md", "\\x1b[31mred.md", "new\\nline.md"}
    for text in (
        repr(findings),
        findings._repr_html_(),
        json.dumps([f.to_dict() for f in findings], ensure_ascii=False),
    ):
        assert "\x1b" not in text
        text.encode("utf-8")
    assert all(str(f).isprintable() for f in findings)


# The same for archives, and the shape of the result


def test_an_archive_has_the_same_findings_A4(field: PageDirectory, tmp_path: Path) -> None:
    put(field, "good.md", GOOD % 1)
    put(field, "bad.md", "---\ntitle: [x\n---\nbody\n")
    put(field, "Bad Name.md", b"x")
    put(field, "long.md", b"# T\n" + b"word " * 2000)
    archive = export_archive(field, tmp_path / "x.memoryfield.zip").path
    inside = list(validate(open_pages(archive)))
    assert inside == list(validate(field))


def test_bad_pages_among_twenty_P8_P10(field: PageDirectory) -> None:
    for number in range(20):
        put(field, f"good-{number}.md", GOOD % number)
    bad = {
        "bad-path.md": b"---\nkey: `C:\\agent`\n---\nbody one\n",
        "bad-alias.md": b"---\ntitle: *Italic*\n---\nbody two\n",
        "bad-list.md": b"---\n- [[wiki]]suffix\n---\nbody three\n",
        "bad-bracket.md": b"---\ntitle: [x\nsummary: open\n---\nbody four\n",
        "bad-tab.md": b"---\ntitle:\tTabbed: value\n---\nbody five\n",
        "bad-byte.md": b"---\ntitle: Byte\n---\na \x96 b\n",
    }
    for name, raw in bad.items():
        put(field, name, raw)
    before = {name: (field.path / name).stat().st_mtime_ns for name in os.listdir(field.path)}
    errors = validate(field).by_level("error")
    assert {f.filename for f in errors} == set(bad)
    assert all(f.line is not None for f in errors)
    assert {name: (field.path / name).stat().st_mtime_ns for name in os.listdir(field.path)} == before


def test_findings_are_a_sequence_with_tables() -> None:
    made = [
        Finding("info", "b.md", None, "P3", "note"),
        Finding("error", "b.md", 3, "P8", "<script>alert(1)</script> & $x$", "mend it"),
        Finding("error", "a.md", 10, "P8", "late"),
        Finding("error", "a.md", 2, "P8", "early", fixable=True),
    ]
    findings = Findings(made)
    assert [f.message[:5] for f in findings] == ["early", "late", "<scri", "note"]
    assert findings[0] is made[3] and findings[-1] is made[0]
    assert isinstance(findings[1:], Findings) and len(findings[1:]) == 3
    assert findings == Findings(reversed(made)) and len({findings, Findings(made)}) == 1
    assert findings.counts == {"error": 3, "warning": 0, "info": 1}
    assert len(findings.by_level("error")) == 3 and len(findings.by_file("b.md")) == 2
    assert "Findings: 3 errors, 1 info" in repr(findings)
    html = findings._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "plan_fixes" in repr(findings)
    assert str(findings[2]) == "error P8 b.md, line 3: <script>alert(1)</script> & $x$ (mend it)"
    frame = findings.to_frame()
    assert list(frame.columns) == ["level", "filename", "line", "rule", "message", "remedy", "fixable"]
    assert frame["line"].tolist()[:3] == [2, 10, 3]
    assert Findings().to_frame().empty
    json.dumps([f.to_dict() for f in findings])


def test_long_results_are_cut_and_say_so() -> None:
    findings = Findings(Finding("info", f"{n}.md", None, "P3", "x") for n in range(120))
    assert "... and 70 more" in repr(findings)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a.md", "a.md"), ("é漢.md", "é漢.md"), ("a\nb", "a\\nb"), ("\udcff", "\\xff"), ("\x1b", "\\x1b")],
)
def test_shown_names(name: str, shown: str) -> None:
    assert shown_name(name) == shown
