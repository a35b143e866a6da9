"""Which memory belongs to the directory that one works in: that of its repository, never a guess outside one.

Git is not run, and nothing of its configuration is followed: the remote is read from the repository's own file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_SECTION = re.compile(r'\s*\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]')
_URL = re.compile(r"\s*url\s*=\s*(.+?)\s*\Z")
_SSH = re.compile(r"(?:[^@/\s]+@)?[^:/\s]+:(?!//)(.+)")
_LARGEST_CONFIG = 1 << 20


@dataclass(frozen=True)
class Scope:
    """A project that a memory can belong to.

    Attributes:
        name: ``owner/name`` of its remote, else the name of its directory.
        root: Top directory of the repository.
        from_remote: Whether the name comes from a remote.
    """

    name: str
    root: Path
    from_remote: bool

    @property
    def page_key(self) -> str:
        """The name as it can stand in a file name: ``owner--name``."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("/", "--")).strip("-") or "project"


def scope_for(directory: str | os.PathLike[str] | None = None) -> Scope | None:
    """Return the project that a directory belongs to; None outside every git repository.

    Args:
        directory: Where one works; by default the current directory.
    """
    start = Path(os.path.abspath(Path(directory or ".").expanduser()))
    for place in (start, *start.parents):
        git = _git_directory(place)
        if git is not None:
            named = _remote_name(git)
            return Scope(named or place.name or "root", place, named is not None)
    return None


def _git_directory(place: Path) -> Path | None:
    marker = place / ".git"
    if marker.is_dir():
        return marker if (marker / "HEAD").is_file() else None
    if not marker.is_file():
        return None
    # a linked work tree or a submodule: a file that says where the repository is
    text = _read(marker)
    if not text.startswith("gitdir:"):
        return None
    target = Path(os.path.join(place, text.removeprefix("gitdir:").strip()))
    shared = _read(target / "commondir").strip()
    return Path(os.path.normpath(target / shared)) if shared else target


def _remote_name(git: Path) -> str | None:
    """Return ``owner/name`` of the remote ``origin``, else of the first one."""
    urls: dict[str, str] = {}
    remote: str | None = None
    for line in _read(git / "config").splitlines():
        if line.lstrip().startswith("["):
            section = _SECTION.match(line)
            remote = section[1] if section else None
        elif remote is not None and (url := _URL.match(line)):
            urls.setdefault(remote, url[1].strip('"'))
    for chosen in ("origin", *urls):
        if chosen in urls:
            return repository_name(urls[chosen])
    return None


def repository_name(url: str) -> str | None:
    """Return ``owner/name`` of a remote's address, without host, user or password; None for a path on this machine."""
    ssh = _SSH.fullmatch(url)
    if "://" in url:
        parts = urlsplit(url)
        if parts.scheme == "file":
            return None
        path = parts.path
    elif ssh and not re.match(r"[A-Za-z]:[\\/]", url):
        path = ssh[1]
    else:
        return None
    words = [word for word in path.strip("/").removesuffix(".git").split("/") if word not in ("", ".", "..", "~")]
    return "/".join(words[-2:]) if words else None


def _read(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_CONFIG:
            return ""
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""
