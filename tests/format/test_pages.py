"""A directory of pages: reading, and the verbs create, write, edit, rename, delete."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryfield.errors import (
    FieldNotFound,
    FrontmatterError,
    InvalidName,
    NotEditable,
    PageChanged,
    PageExists,
    PageNotFound,
)
from memoryfield.format.pages import PageDirectory, PageSource, ZipPages, open_pages

NOW = datetime(2026, 11, 1, 10, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 24, 18, 30, tzinfo=UTC)

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows cannot make such files")


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    return PageDirectory(tmp_path / "field", create=True)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A file that no operation on the field may read, write or delete."""
    path = tmp_path / "outside.md"
    path.write_bytes(b"secret\n")
    before = path.stat()
    yield path
    assert path.read_bytes() == b"secret\n"
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def put(field: PageDirectory, filename: str, raw: bytes) -> Path:
    path = field.path / filename
    path.write_bytes(raw)
    return path


def files(field: PageDirectory) -> list[str]:
    return sorted(os.listdir(field.path))


# Opening


def test_open_pages_opens_directories_and_archives(field: PageDirectory, tmp_path: Path) -> None:
    from memoryfield.format.archive import export_archive

    field.create("a", title="A", now=NOW)
    export_archive(field, tmp_path / "x.memoryfield.zip")
    assert isinstance(open_pages(field.path), PageDirectory)
    assert isinstance(open_pages(str(tmp_path / "x.memoryfield.zip")), ZipPages)
    for source in (open_pages(field.path), open_pages(tmp_path / "x.memoryfield.zip")):
        assert isinstance(source, PageSource)
        assert source.names() == ["a"]


def test_open_pages_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(FieldNotFound, match="nothing is there"):
        open_pages(tmp_path / "missing")
    with pytest.raises(FieldNotFound, match="exporting a field"):
        open_pages(tmp_path / "new.memoryfield.zip", create=True)
    (tmp_path / "file").write_text("no zip")
    with pytest.raises(FieldNotFound, match="a file stands there"):
        PageDirectory(tmp_path / "file", create=True)
    with pytest.raises(FieldNotFound, match="it is a file"):
        PageDirectory(tmp_path / "file")
    assert not (tmp_path / "missing").exists()


def test_create_makes_the_directory_with_its_parents(tmp_path: Path) -> None:
    source = open_pages(tmp_path / "some" / "where", create=True)
    assert source.path == tmp_path / "some" / "where"
    assert source.names() == []
    assert list(source.pages()) == []
    assert not source.read_only


def test_a_relative_path_survives_a_change_of_directory(
    field: PageDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    relative = PageDirectory("field")
    monkeypatch.chdir("/")
    relative.create("a", title="A")
    assert field.names() == ["a"]


# Reading


def test_read_takes_name_and_filename(field: PageDirectory) -> None:
    put(field, "a.md", b"text\n")
    assert field.read("a").raw == field.read("a.md").raw == b"text\n"
    assert field.read("a").modified == datetime.fromtimestamp((field.path / "a.md").stat().st_mtime, tz=UTC)
    assert field.read_bytes("a.md") == b"text\n"


@pytest.mark.parametrize("name", ["b", "missing.md"])
def test_a_missing_page_is_named(field: PageDirectory, name: str) -> None:
    with pytest.raises(PageNotFound, match=name):
        field.read(name)
    with pytest.raises(KeyError):
        field.read(name)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "A", "a\n", "", ".", "..", "sub/a", "nul\0"])
def test_names_that_are_no_page_names_are_refused_P1(field: PageDirectory, outside: Path, name: str) -> None:
    for call in (field.read, field.delete, field.edit, lambda n: field.write(n, b"x"), lambda n: field.rename(n, "b")):
        with pytest.raises(InvalidName):
            call(name)
    with pytest.raises((InvalidName, PageNotFound)):
        field.read_bytes(name)
    assert files(field) == []


@needs_posix
def test_links_are_never_read_written_or_deleted_through_P2(field: PageDirectory, outside: Path) -> None:
    put(field, "inside.md", b"inside\n")
    (field.path / "to-outside.md").symlink_to(outside)
    (field.path / "to-inside.md").symlink_to("inside.md")
    (field.path / "dangling.md").symlink_to("nowhere.md")
    assert field.names() == ["inside"]
    assert [page.name for page in field.pages()] == ["inside"]
    for name in ("to-outside", "to-inside", "dangling"):
        with pytest.raises(PageNotFound, match="symbolic link"):
            field.read(name)
        with pytest.raises(PageNotFound, match="symbolic link"):
            field.read_bytes(f"{name}.md")
        with pytest.raises(NotEditable, match="symbolic link"):
            field.write(name, b"overwritten")
        with pytest.raises(PageExists, match="symbolic link"):
            field.create(name, title="X")
        with pytest.raises(PageNotFound, match="symbolic link"):
            field.edit(name, append="more")
        with pytest.raises(PageNotFound, match="symbolic link"):
            field.delete(name)
        with pytest.raises(PageNotFound, match="symbolic link"):
            field.rename(name, "other")
        with pytest.raises(PageExists, match="symbolic link"):
            field.rename("inside", name)
        assert (field.path / f"{name}.md").is_symlink()
    assert field.read("inside").raw == b"inside\n"
    assert not (field.path / "nowhere.md").exists()
    assert files(field) == ["dangling.md", "inside.md", "to-inside.md", "to-outside.md"]


@needs_posix
@pytest.mark.timeout(20)
def test_pipes_and_directories_are_refused_and_stay(field: PageDirectory) -> None:
    os.mkfifo(field.path / "pipe.md")
    (field.path / "folder.md").mkdir()
    for name, words in (("pipe", "named pipe"), ("folder", "sub-directory")):
        with pytest.raises(PageNotFound, match=words):
            field.read(name)
        with pytest.raises(NotEditable, match=words):
            field.write(name, b"x")
        with pytest.raises(PageNotFound, match=words):
            field.delete(name)
    assert files(field) == ["folder.md", "pipe.md"]


@needs_posix
def test_a_hard_link_is_cut_by_a_write_and_the_other_name_keeps_its_text(field: PageDirectory, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(b"shared\n")
    os.link(other, field.path / "a.md")
    field.edit("a", append="mine")
    assert other.read_bytes() == b"shared\n"
    assert field.read("a").raw == b"shared\n\nmine\n"


# Creating


def test_create_writes_a_page_with_known_keys_first_P11(field: PageDirectory) -> None:
    page = field.create("winch", title='Release: how: "x" #1', summary="s", body="Text", now=NOW, tags=["a"])
    lines = page.raw.decode().splitlines()
    assert [line.partition(":")[0] for line in lines[1:7]] == ["title", "uuid", "summary", "created", "updated", "tags"]
    assert page.title == 'Release: how: "x" #1'
    assert page.created == page.updated == "2026-11-01T10:00:00Z"
    assert page.uuid is not None
    assert page.raw.endswith(b"---\nText\n")
    assert page.raw == (field.path / "winch.md").read_bytes()
    assert page.modified is not None


def test_names_made_from_titles_P13(field: PageDirectory) -> None:
    (field.path / "winch-brake-3.md").mkdir()
    assert [field.create(title="Winch brake!").name for _ in range(3)] == [
        "winch-brake",
        "winch-brake-2",
        "winch-brake-4",
    ]
    with pytest.raises(InvalidName, match="give a name"):
        field.create(title="漢字")
    with pytest.raises(InvalidName, match="give a name"):
        field.create()


def test_a_slug_avoids_names_that_differ_by_case_only_P13(field: PageDirectory) -> None:
    put(field, "Config.md", b"x")
    assert field.create(title="Config").name == "config-2"


def test_every_new_page_has_its_own_uuid_P12(field: PageDirectory) -> None:
    assert len({field.create(title="Same").uuid for _ in range(5)}) == 5


def test_create_never_overwrites(field: PageDirectory) -> None:
    put(field, "a.md", b"old")
    with pytest.raises(PageExists, match=r"a\.md"):
        field.create("a", title="New")
    assert field.read("a").raw == b"old"


@pytest.mark.parametrize("name", ["a--b", "con", "x" * 121, "Ä"])
def test_names_that_are_not_created_P1_P13(field: PageDirectory, name: str) -> None:
    with pytest.raises(InvalidName):
        field.create(name, title="X")
    with pytest.raises(InvalidName):
        field.write(name, b"x")
    assert files(field) == []


def test_a_name_that_is_not_created_can_be_read_and_edited_when_it_is_there_P1(field: PageDirectory) -> None:
    put(field, "a--b.md", b"text\n")
    assert field.edit("a--b", append="more").raw == b"text\n\nmore\n"


# Editing


def test_edit_changes_one_line_and_sets_updated_P9(field: PageDirectory) -> None:
    raw = b"---\n# keep me\ntitle: old   # why\nupdated: '2026-01-01T00:00:00Z'\ntags: [a]\n---\nText\n\n\n"
    put(field, "a.md", raw)
    page = field.edit("a", title="new", now=NOW)
    assert page.raw == raw.replace(b"old", b"new").replace(b"2026-01-01T00:00:00Z", b"2026-11-01T10:00:00Z")
    assert page.raw == (field.path / "a.md").read_bytes()


def test_an_edit_that_changes_nothing_writes_nothing_P12(field: PageDirectory) -> None:
    page = field.create("a", title="T", summary="S", body="## H\nbody\n", now=NOW)
    before = (field.path / "a.md").stat()
    same = field.edit(
        "a", title="T", summary="S", keys={"uuid": page.uuid}, body="## H\nbody\n", section=("H", "body"), now=LATER
    )
    assert same.raw == page.raw
    after = (field.path / "a.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_all_parts_of_an_edit_at_once(field: PageDirectory) -> None:
    field.create("a", title="T", body="intro\n\n## One\nfirst\n\n## Two\nsecond\n", now=NOW, draft="yes")
    page = field.edit(
        "a", summary="S", keys={"draft": None, "owner": "infra"}, section=("Two", "2nd"), append="end", now=LATER
    )
    assert page.body == "intro\n\n## One\nfirst\n\n## Two\n2nd\n\nend\n"
    assert (page.summary, page.frontmatter["owner"], "draft" in page.frontmatter) == ("S", "infra", False)
    assert (page.created, page.updated) == ("2026-11-01T10:00:00Z", "2026-12-24T18:30:00Z")


def test_updated_is_not_forced_on_a_page_without_frontmatter_P12(field: PageDirectory) -> None:
    put(field, "plain.md", b"text\n")
    assert field.edit("plain", append="more", now=NOW).raw == b"text\n\nmore\n"
    assert field.edit("plain", title="Now with a title", now=NOW).updated == "2026-11-01T10:00:00Z"


def test_updated_that_is_asked_for_is_taken_P12(field: PageDirectory) -> None:
    field.create("a", title="T", now=NOW)
    assert field.edit("a", keys={"updated": LATER}, append="x", now=NOW).updated == "2026-12-24T18:30:00Z"


def test_the_uuid_never_changes_P12(field: PageDirectory) -> None:
    page = field.create("a", title="T", now=NOW)
    for keys in ({"uuid": "00000000-0000-4000-8000-000000000001"}, {"uuid": None}):
        with pytest.raises(NotEditable, match=str(page.uuid)):
            field.edit("a", keys=keys)
    put(field, "b.md", b"---\ntitle: x\n---\n")
    assert field.edit("b", keys={"uuid": "00000000-0000-4000-8000-000000000001"}).uuid is not None


def test_write_refuses_another_uuid_P12(field: PageDirectory) -> None:
    page = field.create("a", title="T", now=NOW)
    assert page.uuid is not None
    for raw in (page.raw.replace(page.uuid.encode(), b"00000000-0000-4000-8000-000000000001"), b"no frontmatter\n"):
        with pytest.raises(NotEditable, match="uuid"):
            field.write("a", raw)
    assert field.write("a", page.raw + b"more\n").body.endswith("more\n")


def test_broken_frontmatter_is_readable_and_not_edited_P8(field: PageDirectory) -> None:
    raw = b"---\ntitle: [x\nsummary: open\n---\nbody four\n"
    put(field, "bad-bracket.md", raw)
    for edit in ({"title": "T"}, {"append": "more"}, {"body": "new"}):
        with pytest.raises(FrontmatterError, match=r"bad-bracket\.md, line \d"):
            field.edit("bad-bracket", **edit)  # type: ignore[arg-type]
    assert field.read("bad-bracket").raw == raw


def test_bytes_that_are_no_utf8_are_readable_and_not_edited_P10(field: PageDirectory) -> None:
    raw = b"---\ntitle: Byte\n---\na \x96 b\n"
    put(field, "bad-byte.md", raw)
    for edit in ({"title": "T"}, {"append": "more"}):
        with pytest.raises(NotEditable, match=r"bad-byte\.md .*UTF-8"):
            field.edit("bad-byte", **edit)  # type: ignore[arg-type]
    assert field.read("bad-byte").raw == raw
    assert field.read("bad-byte").title == "Byte"


def test_an_edit_that_is_refused_names_the_file_P9(field: PageDirectory) -> None:
    put(field, "a.md", b"---\ntitle: T\n---\n")
    with pytest.raises(FrontmatterError, match=r"a\.md"):
        field.edit("a", keys={"bad": "half \ud800 of a pair"})
    with pytest.raises(NotEditable, match="Missing"):
        field.edit("a", section=("Missing", "text"))


# Conditions


def test_a_page_changed_since_it_was_read_is_never_overwritten_P14(field: PageDirectory) -> None:
    page = field.create("a", title="T", now=NOW)
    put(field, "a.md", page.raw + b"by somebody else\n")
    for call in (
        lambda: field.edit("a", title="Mine", if_sha256=page.sha256),
        lambda: field.write("a", b"---\nuuid: x\n---\n".replace(b"x", str(page.uuid).encode()), if_sha256=page.sha256),
        lambda: field.delete("a", if_sha256=page.sha256),
    ):
        with pytest.raises(PageChanged, match=r"a\.md was changed"):
            call()
    assert field.read("a").raw == page.raw + b"by somebody else\n"
    assert field.edit("a", title="Mine", if_sha256=field.read("a").sha256.upper()).title == "Mine"


def test_a_page_deleted_since_it_was_read_is_not_made_again_P14(field: PageDirectory) -> None:
    page = field.create("a", title="T")
    field.delete("a")
    with pytest.raises(PageChanged, match="deleted meanwhile"):
        field.write("a", page.raw, if_sha256=page.sha256)
    with pytest.raises(PageNotFound):
        field.edit("a", title="x", if_sha256=page.sha256)
    assert files(field) == []


# Renaming


def test_rename_rewrites_links_and_nothing_else(field: PageDirectory) -> None:
    put(field, "old.md", b"---\nuuid: 1\n---\nSee [me](old.md#top) and [[old|me]].\n")
    put(
        field,
        "linker.md",
        b"---\nupdated: 'x'\n---\r\n[a](./old.md \"t\") <old.md>\r\n`[code](old.md)` [b](older.md)\r\n",
    )
    put(field, "other.md", b"old words, no link\n")
    times = {name: (field.path / f"{name}.md").stat().st_mtime_ns for name in ("old", "other")}
    changed = field.rename("old", "new-name")
    assert [page.name for page in changed] == ["new-name", "linker"]
    assert field.read("new-name").raw == b"---\nuuid: 1\n---\nSee [me](new-name.md#top) and [[new-name|me]].\n"
    linker = b"---\nupdated: 'x'\n---\r\n[a](./new-name.md \"t\") <new-name.md>\r\n`[code](old.md)` [b](older.md)\r\n"
    assert field.read("linker").raw == linker
    assert files(field) == ["linker.md", "new-name.md", "other.md"]
    assert (field.path / "new-name.md").stat().st_mtime_ns == times["old"]
    assert (field.path / "other.md").stat().st_mtime_ns == times["other"]


def test_rename_refuses_and_changes_nothing(field: PageDirectory) -> None:
    put(field, "a.md", b"a")
    put(field, "b.md", b"[a](a.md)")
    with pytest.raises(PageExists, match=r"b\.md"):
        field.rename("a", "b")
    with pytest.raises(PageNotFound, match="missing"):
        field.rename("missing", "c")
    with pytest.raises(InvalidName):
        field.rename("a", "con")
    assert field.rename("a", "a") == []
    assert (field.read("a").raw, field.read("b").raw) == (b"a", b"[a](a.md)")


def test_rename_does_not_leave_a_broken_link_in_a_page_that_cannot_be_edited_P10(field: PageDirectory) -> None:
    put(field, "a.md", b"a")
    put(field, "bad.md", b"\x96 [a](a.md)\n")
    with pytest.raises(NotEditable, match=r"bad\.md"):
        field.rename("a", "b")
    assert files(field) == ["a.md", "bad.md"]


@pytest.mark.parametrize("name", ["index", "listing"])
def test_special_pages_are_guarded_P5(field: PageDirectory, name: str) -> None:
    put(field, f"{name}.md", b"x")
    assert field.names() == [name]
    assert field.read(name).is_special
    with pytest.raises(NotEditable, match="force=True"):
        field.delete(name)
    with pytest.raises(NotEditable, match="force=True"):
        field.rename(name, "other")
    assert field.edit(name, append="editing is fine").raw == b"x\n\nediting is fine\n"
    field.rename(name, "other", force=True)
    field.rename("other", name)
    assert field.delete(name, force=True).name == name
    assert files(field) == []


def test_delete_returns_what_was_there(field: PageDirectory) -> None:
    page = field.create("a", title="T")
    assert field.delete("a.md").raw == page.raw
    with pytest.raises(PageNotFound):
        field.delete("a")


# Places that cannot be written


@needs_posix
def test_a_write_protected_page_is_refused(field: PageDirectory) -> None:
    path = put(field, "a.md", b"x")
    path.chmod(0o444)
    for call in (lambda: field.edit("a", append="y"), lambda: field.write("a", b"y"), lambda: field.delete("a")):
        with pytest.raises(NotEditable, match="write-protected"):
            call()
    assert path.read_bytes() == b"x"


NO_RIGHTS = """
import os, sys
from pathlib import Path
import filelock
from memoryfield.errors import MemoryfieldError
from memoryfield.format import edit
from memoryfield.format.pages import PageDirectory
if os.geteuid() == 0:  # root writes everywhere: be somebody else
    os.setegid(65534)
    os.seteuid(65534)
place = Path(sys.argv[1])
field = PageDirectory(place / "field")
print(field.read_only, field.read("a").raw)
for attempt in (
    lambda: field.create("b", title="B"),
    lambda: field.edit("a", append="more"),
    lambda: field.delete("a"),
    lambda: PageDirectory(place / "field" / "new", create=True),
):
    try:
        attempt()
    except MemoryfieldError as error:
        print(type(error).__name__)
"""


@needs_posix
def test_a_directory_without_permission_is_read_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "field").mkdir()
        (place / "field" / "a.md").write_bytes(b"x")
        (place / "field").chmod(0o555)
        (place / "state").mkdir()
        (place / "state").chmod(0o777)
        environment = {**os.environ, "MEMORYFIELD_STATE_DIR": str(place / "state")}
        command = [sys.executable, "-c", NO_RIGHTS, name]
        root = Path(__file__).resolve().parents[2]
        run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60)
        found = {path.name: path.read_bytes() for path in (place / "field").iterdir()}
        (place / "field").chmod(0o755)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["True b'x'"] + ["ReadOnlyField"] * 4
    assert found == {"a.md": b"x"}


# Cases from other tools' users


CASES_BAD = {
    "bad-path.md": b"---\nkey: `C:\\agent`\n---\nbody one\n",
    "bad-alias.md": b"---\ntitle: *Italic*\n---\nbody two\n",
    "bad-list.md": b"---\n- [[wiki]]suffix\n---\nbody three\n",
    "bad-bracket.md": b"---\ntitle: [x\nsummary: open\n---\nbody four\n",
    "bad-tab.md": b"---\ntitle:\tTabbed: value\n---\nbody five\n",
    "bad-byte.md": b"---\ntitle: Byte\n---\na \x96 b\n",
}


def test_bad_pages_among_twenty_hide_nothing_P8_P10(field: PageDirectory) -> None:
    for number in range(20):
        field.create(f"good-{number}", title=f"Good {number}")
    for filename, raw in CASES_BAD.items():
        put(field, filename, raw)
    assert len(field.names()) == len(list(field.pages())) == len(field.snapshot().entries) == 26
    refused = 0
    for filename in CASES_BAD:
        try:
            field.edit(filename, title="T")
        except (FrontmatterError, NotEditable) as error:
            refused += 1
            assert filename in str(error)
            assert (field.path / filename).read_bytes() == CASES_BAD[filename]
    assert refused == 6


def test_exactly_one_block_after_an_edit_of_a_nested_map_P8_P9(field: PageDirectory) -> None:
    raw = (
        b"---\nname: deploy-notes\ndescription: how we deploy\nmetadata:\n  owner: infra\n  tags:\n    - ci\n"
        b"    - release\n---\n\nRun the pipeline, then tag.\n"
    )
    put(field, "deploy-notes.md", raw)
    page = field.edit("deploy-notes", keys={"updated": NOW})
    added = b"updated: '2026-11-01T10:00:00Z'\n"
    assert page.raw == raw.replace(b"\n---\n\nRun", b"\n" + added + b"---\n\nRun")
    assert page.frontmatter["description"] == "how we deploy"
