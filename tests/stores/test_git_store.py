"""A field at a commit, and the versions of a page, from a real repository without a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memoryfield as mf
from memoryfield.errors import FieldNotFound, PageNotFound, QueryError, ReadOnlyField, StoreRefused
from memoryfield.stores.git import GitStore, page_versions
from memoryfield.stores.opening import open_store

pygit2 = pytest.importorskip("pygit2")


class Repository:
    """A repository whose commits are made of dictionaries."""

    def __init__(self, path: Path, bare: bool = False) -> None:
        self.path = path
        self.git: Any = pygit2.init_repository(str(path), bare=bare, initial_head="main")

    def commit(self, files: dict[str, bytes | str], message: str, at: int = 1_700_000_000) -> str:
        """Commit exactly these files; a text is where a symbolic link points."""
        index = pygit2.Index()
        for name, raw in files.items():
            mode = pygit2.GIT_FILEMODE_LINK if isinstance(raw, str) else pygit2.GIT_FILEMODE_BLOB
            blob = self.git.create_blob(raw.encode() if isinstance(raw, str) else raw)
            index.add(pygit2.IndexEntry(name, blob, mode))
        tree = index.write_tree(self.git)
        ann = pygit2.Signature("Ann & Bo", "ann@example.org", at, 0)
        parents = [] if self.git.head_is_unborn else [self.git.head.target]
        return str(self.git.create_commit("HEAD", ann, ann, message, tree, parents))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "work")
    found.commit({"notes/tea.md": b"green\n", "notes/dock.md": b"deep\n", "README.md": b"x\n"}, "Begin", 1_700_000_000)
    found.commit({"notes/tea.md": b"black\n", "notes/dock.md": b"deep\n"}, "Black tea\n\nat length", 1_700_000_100)
    found.commit({"notes/dock.md": b"deep\n", "notes/coal.md": b"hard\n"}, "No tea <script>", 1_700_000_200)
    (found.path / "notes").mkdir()
    (found.path / "notes" / "dirty.md").write_text("never committed\n")
    return found


def test_a_field_at_a_commit(repository: Repository) -> None:
    place = f"git+file://{repository.path / 'notes'}"
    assert mf.open_field(place).names() == mf.open_field(f"{place}@main").names() == ["coal", "dock"]
    before = mf.open_field(f"{place}@main~1", model="hashing-1024")
    assert before.names() == ["dock", "tea"] and before["tea"].raw == b"black\n" and before.read_only
    assert [hit.name for hit in before.search("black", k=1, progress=False)] == ["tea"]
    assert mf.open_field(f"{place}@main~2")["tea"].raw == b"green\n"
    for act in (lambda: before.write("x", title="X"), lambda: before.delete("tea")):
        with pytest.raises(ReadOnlyField):
            act()
    assert sorted(p.name for p in (repository.path / "notes").iterdir()) == ["dirty.md"], "nothing is checked out"


def test_a_branch_that_moves_is_noticed(repository: Repository) -> None:
    field = mf.open_field(f"git+file://{repository.path}/notes@main")
    field._source.fresh_seconds = 0.0  # type: ignore[attr-defined]
    assert "pier" not in field
    repository.commit({"notes/pier.md": b"long\n"}, "Pier")
    assert field.names() == ["pier"]


def test_a_bare_repository_and_its_top(tmp_path: Path) -> None:
    bare = Repository(tmp_path / "memory.git", bare=True)
    commit = bare.commit({"tea.md": b"green\n", "link.md": "/etc/passwd", "sub/x.md": b"x\n", "photo.png": b"p"}, "One")
    field = mf.open_field(f"git+file://{bare.path}@{commit[:12]}")
    assert field.names() == ["tea"]
    assert {item.filename for item in field._source.snapshot().skipped} == {"link.md", "sub"}
    assert field._source.read_bytes("photo.png") == b"p"


def test_versions_of_a_page(repository: Repository) -> None:
    place = f"git+file://{repository.path}/notes"
    versions = page_versions(place, "tea")
    told = [(v.message, v.page.raw if v.page else None) for v in versions]
    assert told == [("No tea <script>", None), ("Black tea", b"black\n"), ("Begin", b"green\n")]
    assert versions[2].who == "Ann & Bo" and versions[2].when.isoformat() == "2023-11-14T22:13:20+00:00"
    assert "Black tea" in repr(versions) and "<script>" not in versions._repr_html_()
    assert len(page_versions(place, "tea", limit=1)) == 1
    assert [v.message for v in page_versions(f"{place}@main~1", "tea.md")] == ["Black tea", "Begin"]
    with pytest.raises(PageNotFound):
        page_versions(place, "pier")


def test_addresses(repository: Repository, tmp_path: Path) -> None:
    for bad in (
        f"{tmp_path}/nowhere",
        f"{repository.path}@no-such-branch",
        f"{repository.path}/gone@main",
        str(tmp_path),
    ):
        with pytest.raises(FieldNotFound):
            open_store(f"git+file://{bad}")
    with pytest.raises(QueryError, match="absolute"):
        open_store("git+file://notes@main")
    odd = Repository(tmp_path / "a@b c#d")
    odd.commit({"tea.md": b"green\n"}, "One")
    assert mf.open_field(f"git+file://{odd.path}").names() == ["tea"]
    assert mf.open_field(f"git+file://{odd.path}@main").names() == ["tea"]
    assert isinstance(open_store(f"git+file://{odd.path}"), GitStore)


def test_a_page_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    found = Repository(tmp_path / "large")
    found.commit({"tea.md": b"green\n", "large.md": b"x" * (16 * 2**20 + 1)}, "One")
    field = mf.open_field(f"git+file://{found.path}@HEAD")
    assert field.names() == ["tea"]
    assert [(s.filename, s.reason) for s in field._source.snapshot().skipped] == [("large.md", "larger than 16 MiB")]
    with pytest.raises(PageNotFound):
        page_versions(field.place, "large")


@pytest.mark.parametrize("at", ["99999999999999", "9223372036854775807", "-99999999999999"])
@pytest.mark.parametrize("encoding", ["", "encoding foo\n", "encoding hex\n"])
def test_a_commit_of_any_time_and_encoding_is_read(repository: Repository, at: str, encoding: str) -> None:
    tree = repository.git.revparse_single("HEAD").peel(pygit2.Tree).id
    head = repository.git.head.target
    text = f"tree {tree}\nparent {head}\nauthor A\xe9 <a@b> {at} +0000\ncommitter C <c@d> {at} +0000\n{encoding}\nm\xff"
    made = repository.git.odb.write(pygit2.GIT_OBJECT_COMMIT, text.encode("latin-1"))
    field = mf.open_field(f"git+file://{repository.path / 'notes'}@{made}")
    assert field["coal"].raw == b"hard\n" and field["coal"].modified is not None
    again = repository.git.odb.write(
        pygit2.GIT_OBJECT_COMMIT, text.replace(str(tree), _other_tree(repository), 1).encode("latin-1")
    )
    versions = page_versions(f"git+file://{repository.path / 'notes'}@{again}", "coal")
    assert len(versions) == 2 and versions[0].message.startswith("m") and "A" in versions[0].who


def _other_tree(repository: Repository) -> str:
    blob = repository.git.create_blob(b"soft\n")
    index = pygit2.Index()
    index.add(pygit2.IndexEntry("notes/coal.md", blob, pygit2.GIT_FILEMODE_BLOB))
    return str(index.write_tree(repository.git))


@pytest.mark.parametrize("kind", ["tree", "blob", "commit"])
def test_a_repository_that_lacks_an_object_says_so(repository: Repository, kind: str) -> None:
    tip = repository.git.revparse_single("HEAD")
    tree = tip.tree["notes"]
    gone = str({"tree": tree.id, "blob": tree["coal.md"].id, "commit": tip.parents[0].id}[kind])
    (repository.path / ".git" / "objects" / gone[:2] / gone[2:]).unlink()
    place = f"git+file://{repository.path / 'notes'}"
    with pytest.raises(StoreRefused, match="missing or damaged"):
        page_versions(place, "coal")
    if kind != "commit":
        with pytest.raises(StoreRefused, match="missing or damaged"):
            mf.open_field(place)["coal"]
