"""A field as it was at a commit of a git repository, read without a checkout; and the versions of a page.

Read only. The repository's settings, hooks and filters are not used: what is read are the bytes that were committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from memoryfield.display import Table, counted
from memoryfield.errors import (
    FieldNotFound,
    MemoryfieldError,
    PageNotFound,
    QueryError,
    ReadOnlyField,
    StoreRefused,
)
from memoryfield.format.dates import clamped_ns
from memoryfield.format.names import PAGE_SUFFIX, page_name
from memoryfield.format.page import Page
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.protocol import Fetched, Listed, Listing, sorted_out

if TYPE_CHECKING:
    import pygit2

_SCHEME = "git+file://"
_REGULAR = (0o100644, 0o100755)
_MOST_COMMITS = 100_000


@dataclass(frozen=True)
class PageVersion:
    """A version of a page in a repository.

    Attributes:
        commit: Its commit, as 40 or 64 digits.
        when: When it was committed, in UTC.
        who: Name of the author.
        message: First line of the commit's message.
        page: The page; None where the commit deleted it.
    """

    commit: str
    when: datetime
    who: str
    message: str
    page: Page | None


class PageVersions(tuple[PageVersion, ...]):
    """The versions of a page, newest first."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        rows = [
            (
                v.when.isoformat(" ", "seconds")[:19],
                v.commit[:10],
                v.who,
                v.message,
                v.page.size if v.page else "deleted",
            )
            for v in self
        ]
        return Table(counted(len(self), "version"), ("committed", "commit", "by", "message", "bytes"), rows)


class GitStore:
    """A field at a commit.

    Args:
        address: ``git+file://PATH@REVISION``: the path of a directory in a work tree (or of a bare repository), and
            anything that git takes for a commit; by default HEAD.

    Raises:
        FieldNotFound: No repository, no such commit, or no such directory in it.
    """

    read_only = True

    def __init__(self, address: str) -> None:
        import pygit2

        if not address.lower().startswith(_SCHEME):
            raise QueryError("an address in a repository is git+file://PATH@REVISION")
        path, revision = _parts(unquote(address[len(_SCHEME) :]))
        self.place = f"{_SCHEME}{path}@{revision}"
        found = pygit2.discover_repository(str(path)) if path.exists() else None
        if found is None:
            raise FieldNotFound(f"{path} is in no git repository")
        try:
            self._repository = pygit2.Repository(found)
        except (pygit2.GitError, OSError):
            raise FieldNotFound(
                f"the repository of {path} cannot be opened (does it belong to somebody else?)"
            ) from None
        work = self._repository.workdir
        top = Path(work).resolve() if work and not self._repository.is_bare else Path(found).resolve()
        here = path.resolve()
        self._inside = here.relative_to(top).as_posix() if here.is_relative_to(top) else "."
        self._revision = revision
        with self._whole():
            self._tree(self._commit())

    def __repr__(self) -> str:
        return f"<GitStore {self.place!r}>"

    def list(self) -> Listing:
        """Return the files of the commit."""
        with self._whole():
            return sorted_out(self._entries(self._commit()), self.place, writes=False)

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        """Yield files as they were committed."""
        with self._whole():
            commit = self._commit()
            tree = self._tree(commit)
        for item in wanted:
            with self._whole():
                found = self._fetched(commit, tree, item)
            yield found

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        """Refuse: a commit never changes."""
        raise ReadOnlyField(f"{self.place} is a commit and never changes; open the directory itself to edit")

    def delete_if(self, filename: str, tag: str) -> None:
        """Refuse: a commit never changes."""
        self.write_if(filename, b"", tag)

    def open_zip(self) -> BinaryIO | None:
        """Return None: blobs are as near as an archive."""
        return None

    def versions(self, name: str, limit: int | None = None) -> PageVersions:
        """Return the versions of a page, newest first, from this commit back along the first parents.

        Args:
            name: Page name.
            limit: Most versions.

        Raises:
            PageNotFound: No commit has such a page.
        """
        with self._whole():
            return self._versions(name, page_name(name) + PAGE_SUFFIX, limit)

    def _versions(self, name: str, filename: str, limit: int | None) -> PageVersions:
        found: list[PageVersion] = []
        commit: Any = self._commit()
        for _ in range(_MOST_COMMITS):
            parent = commit.parents[0] if commit.parents else None
            now = self._blob(commit, filename)
            before = None if parent is None else self._blob(parent, filename)
            if (None if now is None else now.id) != (None if before is None else before.id):
                found.append(_version(commit, name, now))
                if limit is not None and len(found) >= limit:
                    break
            if parent is None:
                break
            commit = parent
        if not found:
            raise PageNotFound(f"no commit before {self._revision} has {filename} in {self.place}")
        return PageVersions(found)

    def _fetched(self, commit: Any, tree: Any, item: Listed) -> Fetched:
        blob = _entry(tree, item.filename)
        if blob is None or blob.filemode not in _REGULAR:
            return Fetched(item.filename, None, "")
        largest = LARGEST_PAGE if item.filename.endswith(PAGE_SUFFIX) else (item.size or LARGEST_PAGE)
        if self._size(blob) > largest:
            raise StoreRefused(f"{item.filename} in {self.place} is larger than {largest:,} bytes")
        return Fetched(item.filename, blob.data, str(blob.id), clamped_ns(commit.commit_time * 1_000_000_000))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Say of an object that is missing or damaged what it means; a repository of a stranger may hold anything."""
        import pygit2

        try:
            yield
        except MemoryfieldError:
            raise
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            raise StoreRefused(
                f"{self.place}: an object of the repository is missing or damaged ({error}); "
                "git fsck says which, and a whole clone has it"
            ) from None

    def _commit(self) -> pygit2.Commit:
        import pygit2

        try:
            found = self._repository.revparse_single(self._revision).peel(pygit2.Commit)
        except (KeyError, ValueError, pygit2.GitError, OSError):
            raise FieldNotFound(f"{self.place}: there is no commit {self._revision!r}") from None
        return found

    def _tree(self, commit: pygit2.Commit) -> Any:
        tree: Any = commit.tree
        if self._inside == ".":
            return tree
        found = _entry(tree, self._inside)
        if found is None or found.type_str != "tree":
            raise FieldNotFound(f"{self.place}: the commit has no directory {self._inside}")
        return found

    def _blob(self, commit: pygit2.Commit, filename: str) -> Any:
        try:
            tree = self._tree(commit)
        except FieldNotFound:
            return None
        blob = _entry(tree, filename)
        return blob if blob is not None and blob.filemode in _REGULAR and self._size(blob) <= LARGEST_PAGE else None

    def _entries(self, commit: pygit2.Commit) -> Iterator[Listed]:
        moment = clamped_ns(commit.commit_time * 1_000_000_000)
        for item in self._tree(commit):
            name = item.name if item.name is not None else "?"
            if item.filemode not in _REGULAR:  # directories, links, other repositories
                yield Listed(f"{name}/", "")
            else:
                yield Listed(name, str(item.id), self._size(item), moment)

    def _size(self, blob: Any) -> int:
        """Return the size of a blob from its header: asking the blob itself would read all of it."""
        database: Any = self._repository.odb
        return int(database.read_header(blob.id)[1])


def _entry(tree: Any, name: str) -> Any:
    # one that is named and cannot be read is another matter; a tree has no get()
    return tree[name] if name in tree else None  # noqa: SIM401  # a tree of pygit2 has no get()


def page_versions(address: str, name: str, limit: int | None = None) -> PageVersions:
    """Return the versions of a page of a field in a git repository; see ``GitStore``."""
    return GitStore(address).versions(name, limit)


def _parts(text: str) -> tuple[Path, str]:
    """Take ``PATH@REVISION`` apart; a path may hold an ``@`` where it exists as a whole."""
    whole = Path(text)
    if "@" not in text or whole.exists():
        path, revision = whole, "HEAD"
    else:
        left, _, revision = text.rpartition("@")
        if revision == "":
            left, revision = text[:-1], "HEAD"
        path = Path(left)
        if not path.exists() and "@{" in text:  # main@{yesterday}
            left, _, revision = text.partition("@")
            path = Path(left)
    if not path.is_absolute():
        raise QueryError("the path of a repository is absolute: git+file:///home/ann/notes@main")
    return path, revision


def _version(commit: Any, name: str, blob: Any) -> PageVersion:
    # a commit says its time and its encoding itself: the year may be the three millionth, the encoding unknown
    when = datetime.fromtimestamp(clamped_ns(commit.commit_time * 1_000_000_000) // 1_000_000_000, UTC)
    message = _text(commit, "message", commit.raw_message).strip().splitlines()
    page = None if blob is None else Page(name.removesuffix(PAGE_SUFFIX), blob.data, when)
    author = _text(commit.author, "name", commit.author.raw_name)
    return PageVersion(str(commit.id), when, author, message[0][:200] if message else "", page)


def _text(of: Any, name: str, raw: bytes) -> str:
    try:
        return str(getattr(of, name))
    except (LookupError, ValueError):
        return raw.decode("utf-8", errors="replace")
