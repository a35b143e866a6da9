"""Scopes: the repository's remote, its directory, and nothing outside a repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memoryfield.agent.protocol import MEMORY_PROTOCOL, write_skill
from memoryfield.agent.scopes import repository_name, scope_for
from memoryfield.errors import ArchiveError


def _git(directory: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(directory), *words], check=True, capture_output=True, timeout=60)


def test_the_remote_then_the_directory_then_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert scope_for(outside) is None
    work = tmp_path / "work"
    (work / "deep" / "er").mkdir(parents=True)
    _git(work, "init", "-q")
    scope = scope_for(work / "deep" / "er")
    assert scope is not None and (scope.name, scope.root, scope.from_remote) == ("work", work, False)
    _git(work, "remote", "add", "upstream", "https://example.com/other/thing.git")
    _git(work, "remote", "add", "origin", "git@example.com:Owner/My.Name.git")
    scope = scope_for(work / "deep")
    assert scope is not None and scope.name == "Owner/My.Name" and scope.page_key == "owner-my-name"


def test_a_linked_work_tree_has_the_scope_of_its_repository(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    _git(work, "init", "-q")
    _git(work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    _git(work, "remote", "add", "origin", "https://user:password@example.com/owner/name")
    _git(work, "worktree", "add", "-q", str(tmp_path / "linked"))
    scope = scope_for(tmp_path / "linked")
    assert scope is not None and scope.name == "owner/name"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@example.com:owner/name.git", "owner/name"),
        ("ssh://git@example.com:22/owner/name.git", "owner/name"),
        ("https://user:secret@example.com/group/owner/name", "owner/name"),
        ("https://example.com/name", "name"),
        ("/srv/git/name.git", None),
        ("file:///srv/git/name.git", None),
        ("../name", None),
        ("C:\\git\\name", None),
        ("https://example.com/", None),
        ("", None),
    ],
)
def test_names_of_remotes(url: str, name: str | None) -> None:
    assert repository_name(url) == name


def test_a_hostile_git_directory_is_only_read(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: " + "../" * 50 + "etc\n")
    scope = scope_for(tmp_path)
    assert scope is not None and not scope.from_remote
    (tmp_path / ".git").write_bytes(b"\xff\xfe not a gitdir")
    scope = scope_for(tmp_path)
    assert scope is None or not scope.from_remote


def test_the_skill_is_written_once_and_never_over_another(tmp_path: Path) -> None:
    path = write_skill(tmp_path)
    assert write_skill(tmp_path) == path and MEMORY_PROTOCOL in path.read_text()
    assert len(MEMORY_PROTOCOL) < 2000
    path.write_text("mine")
    with pytest.raises(ArchiveError):
        write_skill(tmp_path)
    assert path.read_text() == "mine"
