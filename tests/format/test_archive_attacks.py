"""Archives that mean harm, or are broken: refused with the member's name, nothing left behind (FORMAT A2)."""

from __future__ import annotations

import io
import os
import random
import stat
import struct
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memoryfield.errors import ArchiveError, FieldNotFound, MemoryfieldError
from memoryfield.format.archive import import_archive, verify_archive
from memoryfield.format.pages import PageDirectory, open_pages
from memoryfield.format.zipread import Limits, name_problem, read_listing, twins

PAGE = b"---\ntitle: T\n---\ntext\n"


@dataclass
class Raw:
    """One member, every field of which can lie."""

    name: bytes
    content: bytes = PAGE
    method: int = 8
    flags: int = 0x800
    mode: int = stat.S_IFREG | 0o644
    size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    packed: bytes | None = None
    offset: int | None = None
    extra: bytes = b""


@dataclass
class Maker:
    """Builds an archive byte by byte."""

    members: list[Raw] = field(default_factory=list)

    def build(self, *, count: int | None = None, prefix: bytes = b"", comment: bytes = b"", repeat: int = 1) -> bytes:
        body, directory = bytearray(prefix), bytearray()
        for member in self.members:
            packed = member.packed
            if packed is None:
                squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
                packed = member.content if member.method == 0 else squeeze.compress(member.content) + squeeze.flush()
            size = len(member.content) if member.size is None else member.size
            crc = zlib.crc32(member.content) if member.crc is None else member.crc
            offset = len(body) if member.offset is None else member.offset
            local_name = member.name if member.local_name is None else member.local_name
            head = (20, member.flags, member.method, 0, 33, crc, len(packed), size)
            body += struct.pack("<4s5H3L2H", b"PK\x03\x04", *head, len(local_name), 0) + local_name + packed
            directory += struct.pack(
                "<4s6H3L5H2L",
                b"PK\x01\x02",
                20 | 3 << 8,
                *head,
                len(member.name),
                len(member.extra),
                0,
                0,
                0,
                member.mode << 16,
                offset,
            )
            directory += member.name + member.extra
        directory *= repeat
        number = len(self.members) * repeat if count is None else count
        end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, min(number, 65535), min(number, 65535), 0, 0, len(comment))
        if number < 65535:
            sizes = struct.pack("<2L", len(directory), len(body))
            return bytes(body) + bytes(directory) + end[:12] + sizes + end[20:] + comment
        at = len(body) + len(directory)
        record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, number, number, len(directory), len(body))
        locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
        full = struct.pack("<2L", 0xFFFFFFFF, 0xFFFFFFFF)
        return bytes(body) + bytes(directory) + record + locator + end[:12] + full + end[20:] + comment


def archive(path: Path, *members: Raw) -> Path:
    path.write_bytes(Maker(list(members)).build())
    return path


GOOD = Raw(b"good.md")


def refused(tmp_path: Path, raw: bytes, match: str) -> None:
    """Assert that every way in refuses the archive and leaves nothing behind."""
    path = tmp_path / "bad.memoryfield.zip"
    path.write_bytes(raw)
    before = sorted(os.listdir(tmp_path))
    for attempt in (
        lambda: import_archive(path, tmp_path / "new" / "target"),
        lambda: import_archive(path, tmp_path / "target"),
        lambda: verify_archive(path),
    ):
        with pytest.raises(ArchiveError, match=match):
            attempt()
    assert sorted(os.listdir(tmp_path)) == before
    assert not (tmp_path.parent / "evil.md").exists()


def test_the_maker_makes_good_archives(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", GOOD, Raw(b"other.md", method=0))
    with zipfile.ZipFile(path) as check:
        assert check.testzip() is None
    report = import_archive(path, tmp_path / "target")
    assert report.added == ("good", "other")
    assert (tmp_path / "target" / "good.md").read_bytes() == PAGE


NAMES = [
    (b"../evil.md", "leads out"),
    (b"a/../../evil.md", "leads out"),
    (b"..", "leads out"),
    (b"..\\evil.md", "backslash"),
    (b"a\\b.md", "backslash"),
    (b"/abs.md", "absolute"),
    (b"//host/share.md", "absolute"),
    (b"C:\\x.md", "backslash"),
    (b"C:/x.md", "drive letter"),
    (b"c:x.md", "drive letter"),
    (b"a.md\0.txt", "NUL"),
    (b"\0", "NUL"),
    (b"a//b.md", "empty part"),
    (b"", "empty part"),
    (b"\xff\xfe.md", "not the UTF-8"),
    (b"__MACOSX/../../evil.md", "leads out"),
    (b"../evil/", "leads out"),
]


@pytest.mark.parametrize(("name", "match"), NAMES)
def test_names_that_lead_elsewhere_A2(tmp_path: Path, name: bytes, match: str) -> None:
    refused(tmp_path, Maker([GOOD, Raw(name, content=b"" if name.endswith(b"/") else PAGE)]).build(), match)


def test_the_names_are_in_the_messages_A2(tmp_path: Path) -> None:
    refused(tmp_path, Maker([GOOD, Raw(b"../evil.md")]).build(), r"'\.\./evil\.md'")
    refused(
        tmp_path, Maker([GOOD, Raw(b"link.md", mode=stat.S_IFLNK | 0o777)]).build(), r"'link\.md' is a symbolic link"
    )


@pytest.mark.parametrize(
    "mode",
    [stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644, stat.S_IFCHR | 0o644, stat.S_IFBLK | 0o644, stat.S_IFSOCK | 0o644],
)
def test_links_and_special_files_A2(tmp_path: Path, mode: int) -> None:
    refused(tmp_path, Maker([GOOD, Raw(b"link.md", b"/etc/passwd", mode=mode)]).build(), r"link\.md")


@pytest.mark.parametrize("flags", [0x1, 0x801, 0x40, 0x2000])
def test_encrypted_members_A2(tmp_path: Path, flags: int) -> None:
    refused(tmp_path, Maker([GOOD, Raw(b"locked.md", flags=flags)]).build(), r"'locked\.md' is encrypted")


NFC = unicodedata.normalize("NFC", "café.txt").encode()
NFD = unicodedata.normalize("NFD", "café.txt").encode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"a.md", b"a.md"),
        (b"a.md", b"./a.md"),
        (b"a.md", b"A.md"),
        (NFC, NFD),
        (b"top/a.md", b"TOP/a.md"),
        ("straße.txt".encode(), b"STRASSE.txt"),
    ],
)
def test_duplicates_and_twins_A2(tmp_path: Path, one: bytes, other: bytes) -> None:
    refused(tmp_path, Maker([Raw(one), Raw(other, b"other\n")]).build(), "two members|cannot keep apart")


def test_twins_are_only_twins() -> None:
    assert twins(["a.md", "b.md", "x².txt", "x2.txt", "ﬁle.txt", "file-2.txt"]) == []
    assert twins(["a", "A", "b", "á", "a\u0301"]) == [("a", "A"), ("á", "a\u0301")]


def test_ten_gigabytes_of_zeros_A2(tmp_path: Path) -> None:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(2**20)
    packed = b"".join([squeeze.compress(block) for _ in range(64)] + [squeeze.flush()])
    ten = 10 * 2**30
    begun = time.monotonic()
    for name in (b"zeros.md", b"zeros.bin", b".hidden"):
        for claim in (ten & 0xFFFFFFFF, 64 * 2**20):
            raw = Maker([GOOD, Raw(name, packed=packed, size=claim, crc=0)]).build()
            refused(tmp_path, raw, "would have|would grow")
    assert time.monotonic() - begun < 20


def test_a_real_size_beyond_four_gigabytes_is_read_and_refused_A2(tmp_path: Path) -> None:
    extra = struct.pack("<2HQ", 1, 8, 10 * 2**30)
    raw = Maker([Raw(b"zeros.bin", packed=b"x", size=0xFFFFFFFF, crc=0, extra=extra)]).build()
    refused(tmp_path, raw, "10,737,418,240 bytes")
    for broken in (b"", extra[:6], struct.pack("<2H", 1, 0), struct.pack("<2HL", 1, 4, 1)):
        raw = Maker([Raw(b"zeros.bin", packed=b"x", size=0xFFFFFFFF, crc=0, extra=broken)]).build()
        refused(tmp_path, raw, "sizes that are missing")


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("claim", [0, 1, len(PAGE) - 1, len(PAGE) + 1, 10_000])
def test_a_member_that_lies_about_its_size_A2(tmp_path: Path, claim: int, method: int) -> None:
    crc = zlib.crc32(PAGE[:claim])  # also one that fits the first bytes, which is all that some readers look at
    raw = Maker([GOOD, Raw(b"liar.md", size=claim, crc=crc, method=method)]).build()
    refused(tmp_path, raw, r"'liar\.md'")


def test_a_bomb_that_claims_a_small_size_stops_early_A2(tmp_path: Path) -> None:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(2**20)
    packed = b"".join([squeeze.compress(block) for _ in range(128)] + [squeeze.flush()])
    begun = time.monotonic()
    refused(
        tmp_path,
        Maker([GOOD, Raw(b"liar.md", packed=packed, size=100, crc=zlib.crc32(bytes(100)))]).build(),
        "more than the 100",
    )
    assert time.monotonic() - begun < 5


def test_two_million_members_are_counted_before_they_are_read_A2(tmp_path: Path) -> None:
    raw = Maker([GOOD]).build(repeat=2_000_000)
    assert len(raw) > 100_000_000
    path = tmp_path / "bad.zip"
    path.write_bytes(raw)
    del raw
    begun = time.monotonic()
    with pytest.raises(ArchiveError, match="claims 2,000,000 members; at most 100,000"):
        read_listing(io.BytesIO(path.read_bytes()), Limits(), "bad.zip")
    with pytest.raises(ArchiveError, match="2,000,000"):
        open_pages(path)
    assert time.monotonic() - begun < 5


def test_a_count_that_lies_A2(tmp_path: Path) -> None:
    refused(tmp_path, Maker([GOOD]).build(repeat=1000, count=3), "two members|more than the 3 members")
    refused(tmp_path, Maker([GOOD, Raw(b"b.md"), Raw(b"c.md")]).build(count=2), "more than the 2 members")
    refused(tmp_path, Maker([GOOD]).build(count=2), "ends before all 2 members")
    refused(tmp_path, Maker([GOOD]).build(count=70_000), "ends before all 70,000 members")


def test_caps_can_be_set(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", GOOD, Raw(b"b.md"), Raw(b"c.bin", b"x" * 500, method=0))
    assert len(import_archive(path, tmp_path / "fine").added) == 2
    size = len(PAGE)
    for limits, match in (
        (Limits(members=2), "claims 3 members; at most 2"),
        (Limits(page_bytes=size - 1), rf"'good\.md' would have {size} bytes; at most {size - 1}"),
        (Limits(member_bytes=499), r"'c\.bin' would have 500"),
        (Limits(total_bytes=500), "would unpack to"),
    ):
        with pytest.raises(ArchiveError, match=match):
            import_archive(path, tmp_path / "target", limits=limits)


def test_the_ratio_counts_above_a_megabyte_only_A2(tmp_path: Path) -> None:
    archive(tmp_path / "small.zip", Raw(b"blank.md", b" " * 2**20))
    assert import_archive(tmp_path / "small.zip", tmp_path / "fine").added == ("blank",)
    refused(tmp_path, Maker([Raw(b"blank.md", b" " * (2**20 + 1))]).build(), "more than 200 times")
    many = [Raw(b"p%d.md" % number, b" " * 2**18) for number in range(20)]
    refused(tmp_path, Maker(many).build(), "bad.memoryfield.zip would grow")


def test_members_that_share_their_bytes_A2(tmp_path: Path) -> None:
    content = os.urandom(5000)
    raw = Maker(
        [Raw(b"a.bin", content, method=0), Raw(b"b.bin", content, method=0, offset=0, local_name=b"a.bin")]
    ).build()
    refused(tmp_path, raw, "shares bytes")
    nested = Maker([Raw(b"a.bin", content, method=0, offset=10)]).build()
    refused(tmp_path, nested, "not where the directory|beyond the end")


def test_a_member_with_two_names_A2(tmp_path: Path) -> None:
    refused(tmp_path, Maker([GOOD, Raw(b"nice.md", local_name=b"evil.md")]).build(), "calls itself otherwise")


@pytest.mark.parametrize("method", [1, 6, 9, 12, 14, 93, 95, 98])
def test_packings_that_are_not_read(tmp_path: Path, method: int) -> None:
    refused(
        tmp_path,
        Maker([GOOD, Raw(b"odd.md", method=method, packed=PAGE)]).build(),
        rf"'odd\.md' .* \(method {method}\)",
    )


def test_damaged_content_A2(tmp_path: Path) -> None:
    for member in (
        Raw(b"bad.md", crc=1),
        Raw(b"bad.md", packed=b"\xff" * 20),
        Raw(b"bad.md", packed=b""),
        Raw(b"bad.md", packed=zlib.compress(PAGE, wbits=-15)[:-3]),
        Raw(b"bad.md", packed=zlib.compress(PAGE, wbits=-15) + b"more"),
    ):
        refused(tmp_path, Maker([GOOD, member]).build(), r"'bad\.md'")


def test_truncated_at_every_place_A2(tmp_path: Path) -> None:
    raw = Maker([GOOD, Raw(b"b.md")]).build()
    path = tmp_path / "bad.zip"
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(ArchiveError):
            import_archive(path, tmp_path / "target")
    assert os.listdir(tmp_path) == ["bad.zip"]


def test_changed_at_random_places_A2(tmp_path: Path) -> None:
    """Whatever the bytes are: an error of ours, or pages that are whole."""
    chance = random.Random(20260301)
    whole = Maker([GOOD, Raw(b"b.md", PAGE * 30), Raw(b"c.txt", b"kept", method=0)]).build(comment=b"a comment")
    path = tmp_path / "bad.zip"
    for number in range(250):
        raw = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw)
        try:
            report = import_archive(path, tmp_path / f"target-{number}")
        except ArchiveError:
            assert not (tmp_path / f"target-{number}").exists()
            continue
        for page in PageDirectory(report.path).pages():
            assert page.raw in (PAGE, PAGE * 30, b"kept")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize(
    "raw", [b"", b"PK", b"not a zip" * 1000, b"PK\x05\x06" + bytes(10), bytes(70_000), b"PK\x05\x06" * 20_000]
)
def test_files_that_are_no_archives(tmp_path: Path, raw: bytes) -> None:
    refused(tmp_path, raw, "not a zip archive|damaged|split")
    with pytest.raises(ArchiveError):
        open_pages(tmp_path / "bad.memoryfield.zip")


def test_bytes_before_the_archive_and_split_archives_are_refused(tmp_path: Path) -> None:
    raw = Maker([GOOD]).build()
    refused(tmp_path, b"#!/bin/sh\n" + raw, "before the archive")
    split = bytearray(raw)
    split[-18] = 1
    refused(tmp_path, bytes(split), "split")


def test_a_comment_that_holds_the_signature_is_no_second_end(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(Maker([GOOD]).build(comment=b"PK\x05\x06" + bytes(40)))
    assert open_pages(path).names() == ["good"]


def test_what_is_ignored_and_what_is_stripped_A2(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "x.zip",
        Raw(b"field/", b"", method=0, mode=stat.S_IFDIR | 0o755),
        Raw(b"field/a.md"),
        Raw(b"field/notes.txt", b"kept"),
        Raw(b"field/sub/b.md"),
        Raw(b"field/.DS_Store", b"x"),
        Raw(b"field/.git/config", b"x"),
        Raw(b"field/a.md~", b"x"),
        Raw(b"__MACOSX/field/._a.md", b"x"),
        Raw(b".DS_Store", b"x"),
    )
    report = import_archive(path, tmp_path / "target")
    assert (report.added, report.files) == (("a",), ("notes.txt",))
    assert sorted(os.listdir(report.path)) == ["a.md", "notes.txt"]
    assert {item.filename: item.reason for item in report.skipped} == {
        "sub/b.md": "in a sub-directory",
        ".DS_Store": "desktop debris",
        ".git/config": "in a sub-directory",
        "a.md~": "editor backup",
        "__MACOSX/field/._a.md": "resource fork of macOS",
    }


def test_only_one_top_directory_is_stripped_A2(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", Raw(b"one/a.md"), Raw(b"two/b.md"))
    report = import_archive(path, tmp_path / "target")
    assert report.added == ()
    assert [item.reason for item in report.skipped] == ["in a sub-directory"] * 2
    path = archive(tmp_path / "y.zip", Raw(b"one/a.md"), Raw(b"b.md"))
    assert import_archive(path, tmp_path / "mixed").added == ("b",)
    path = archive(tmp_path / "z.zip", Raw(b"deep/er/a.md"))
    assert import_archive(path, tmp_path / "deep").added == ()


def test_a_zip_inside_a_zip_is_a_file_like_others_A2(tmp_path: Path) -> None:
    inner = Maker([Raw(b"../evil.md")]).build()
    path = archive(tmp_path / "x.zip", GOOD, Raw(b"inner.zip", inner, method=0))
    report = import_archive(path, tmp_path / "target")
    assert report.files == ("inner.zip",)
    assert (report.path / "inner.zip").read_bytes() == inner


def test_names_in_the_code_page_of_old_programs(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", Raw("größe.txt".encode("cp437"), flags=0), Raw("漢字.txt".encode(), flags=0))
    assert set(import_archive(path, tmp_path / "target").files) == {"größe.txt", "漢字.txt"}


def test_a_name_too_long_for_a_disk_is_left_out(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", GOOD, Raw(b"x" * 256), Raw("漢".encode() * 90 + b".txt"))
    report = import_archive(path, tmp_path / "target")
    assert report.added == ("good",)
    assert [item.reason for item in report.skipped] == ["name too long"] * 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in directories")
@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_an_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.zip")
    with pytest.raises(ArchiveError, match="not a regular file"):
        import_archive(tmp_path / "x.zip", tmp_path / "target")
    with pytest.raises(MemoryfieldError):
        open_pages(tmp_path / "x.zip")


@pytest.mark.parametrize("name", ["a.md", "a b.txt", "it's.md", "größe.md", "sub/a.md", "sub/", "ab:c", "..a", "a.."])
def test_names_that_are_fine(name: str) -> None:
    assert name_problem(name) is None


def test_programs_that_write_sizes_behind_the_content(tmp_path: Path) -> None:
    """Streaming writers leave sizes out of the local header and set a flag."""

    class Stream(io.RawIOBase):
        def __init__(self, goal: io.BufferedWriter) -> None:
            self.goal = goal

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            return self.goal.write(data)  # type: ignore[arg-type]

    with open(tmp_path / "x.zip", "wb") as handle, zipfile.ZipFile(Stream(handle), "w", zipfile.ZIP_DEFLATED) as made:  # type: ignore[arg-type]
        made.writestr("a.md", PAGE)
        made.writestr("b.md", PAGE * 100)
    report = import_archive(tmp_path / "x.zip", tmp_path / "target")
    assert report.added == ("a", "b")
    assert (tmp_path / "target" / "b.md").read_bytes() == PAGE * 100


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"missing\.zip"):
        import_archive(tmp_path / "missing.zip", tmp_path / "target")
    with pytest.raises(FieldNotFound, match=r"missing\.zip"):
        open_pages(tmp_path / "missing.zip")


def test_memory_stays_small_while_a_large_member_is_unpacked(tmp_path: Path) -> None:
    import tracemalloc

    content = os.urandom(2**20) * 12
    path = archive(tmp_path / "x.zip", Raw(b"large.bin", content, method=0), Raw(b"deflated.bin", content))
    del content
    steps: list[Callable[[], object]] = [
        lambda: verify_archive(path),
        lambda: import_archive(path, tmp_path / "target"),
    ]
    for step in steps:
        tracemalloc.start()
        step()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 * 2**20
