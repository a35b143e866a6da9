"""A folder of Markdown with folders in it, made flat: names become page names, links follow them.

The bytes of each file are kept; only links to files that were renamed change, and the keys that say where the page is
from. Links find their page as vaults do: by path, by file name, by title, by an alias or a permalink.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from memoryfield.display import counted
from memoryfield.errors import InvalidName
from memoryfield.exchange.parts import Part, Unread
from memoryfield.format.dates import moment_of
from memoryfield.format.files import Folder, Unreadable
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.links import links
from memoryfield.format.names import is_page_filename, slug
from memoryfield.format.page import Page
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.format.yamlwrite import Settable

MARKDOWN = (".md", ".markdown", ".mdown")
_DEEPEST = 32
_MOST_FILES = 200_000
_TITLE_KEYS = ("title", "name")
_SUMMARY_KEYS = ("summary", "description")


@dataclass(frozen=True)
class _File:
    path: str  # relative to the folder, with slashes
    raw: bytes
    modified: datetime | None


def read_vault(folder: Path, skip: Iterable[str] = (), beside: Sequence[Part] = ()) -> tuple[list[Part], list[Unread]]:
    """Return the Markdown files of a folder and of the folders in it as parts.

    Hidden files and folders are passed over; links of the file system are never followed.

    Args:
        folder: The folder.
        skip: Paths of files, relative to the folder, that something else reads.
        beside: What that made of them; its links are made to follow the new names, too, and it comes first.
    """
    files, unread = _files(folder, set(skip))
    names = flat_names([file.path for file in files])
    pages = {file.path: Page(names[file.path], file.raw) for file in files}
    finder = _Finder({path: (names[path], page) for path, page in pages.items()})
    parts = []
    left_out = _LeftOut(item.where for item in unread)
    for part in beside:
        text = part.body if part.raw is None else part.raw.decode("utf-8", "surrogateescape")
        raw, changes, lost = _with_links(_File(part.where, text.encode("utf-8", "surrogateescape"), None), finder)
        unread += left_out.dead(part.where, lost)
        body = raw.decode("utf-8", "surrogateescape")
        whole = None if part.raw is None else raw
        parts.append(replace(part, body=body, raw=whole, changes=(*part.changes, *changes)))
    for file in files:
        page = pages[file.path]
        raw, changes, lost = _with_links(file, finder)
        unread += left_out.dead(file.path, lost)
        title, keys = _known_keys(page, file.path)
        if keys.get("title") == PurePosixPath(file.path).stem:
            changes = (*changes, "its file name became its title")
        parts.append(
            Part(
                file.path,
                title,
                "",
                file.path,
                created=file.modified,
                updated=file.modified,
                keys=keys,
                name=names[file.path],
                raw=raw,
                changes=changes,
            )
        )
    return parts, [left_out.with_pages(item) for item in unread]


def flat_names(paths: Iterable[str]) -> dict[str, str]:
    """Return a page name for each path; the same paths give the same names.

    Args:
        paths: Paths with slashes. A file name that several have gets its folders in front; what then still is the same
            gets a number.
    """
    ordered = sorted(paths)
    base = {path: _slug(PurePosixPath(path).stem) for path in ordered}
    often = Counter(base.values())
    result: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(ordered, key=lambda path: (not _is_name(path), path)):
        parts = PurePosixPath(path)
        wanted = base[path]
        if often[wanted] > 1 and len(parts.parts) > 1:
            wanted = _slug(" ".join((*parts.parts[:-1], parts.stem)))
        name = slug(wanted, taken)
        taken.add(name)
        result[path] = name
    return result


def _is_name(path: str) -> bool:
    return is_page_filename(path)  # a file that has a page name already keeps it before others get it


def _slug(text: str) -> str:
    try:
        return slug(text)
    except InvalidName:
        return slug(f"page {text.encode('utf-8', errors='replace').hex()[:12]}")


def _files(folder: Path, skip: set[str]) -> tuple[list[_File], list[Unread]]:
    files: list[_File] = []
    unread: list[Unread] = []
    todo = [("", 0)]
    while todo:
        inside, depth = todo.pop()
        with Folder(folder / inside if inside else folder) as place:
            for entry in sorted(place.scan(), key=lambda entry: entry.name):
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.name.startswith(".") or path in skip:
                    continue
                if entry.is_symlink():
                    unread.append(Unread(path, "it is a link of the file system and not followed"))
                elif entry.is_dir(follow_symlinks=False):
                    if depth < _DEEPEST:
                        todo.append((path, depth + 1))
                    else:
                        unread.append(Unread(path, f"it lies more than {_DEEPEST} folders deep"))
                elif not entry.name.lower().endswith(MARKDOWN):
                    unread.append(Unread(path, "no Markdown"))
                elif len(files) >= _MOST_FILES:
                    unread.append(Unread(path, f"more than {_MOST_FILES:,} files"))
                else:
                    try:
                        raw, status = place.read(entry.name, LARGEST_PAGE)
                    except (Unreadable, OSError) as error:
                        unread.append(Unread(path, f"it cannot be read: {error}"))
                        continue
                    files.append(_File(path, raw, moment_of(status.st_mtime)))
    files.sort(key=lambda file: file.path)
    return files, unread


class _Finder:
    """Finds the page that a link of a vault means."""

    def __init__(self, pages: Mapping[str, tuple[str, Page]]) -> None:
        self._by_path: dict[str, str] = {}
        self._by_word: dict[str, list[tuple[str, str]]] = {}
        for path, (name, page) in pages.items():
            bare = path[: path.rindex(".")].lower()
            self._by_path[path.lower()] = self._by_path[bare] = name
            front = page.frontmatter
            aliases = front.get("aliases")
            words = {
                PurePosixPath(path).stem,
                name,
                *(v for k in ("title", "name", "permalink") if isinstance(v := front.get(k), str)),
            }
            words |= {item for item in aliases if isinstance(item, str)} if isinstance(aliases, list) else set()
            for word in words:
                self._by_word.setdefault(word.strip().lower(), []).append((path, name))
        self._by_end: dict[str, list[tuple[str, str]]] = {}
        for path, name in self._by_path.items():
            if "." in path:
                self._by_end.setdefault(path.rsplit("/", 1)[-1], []).append((path, name))

    def find(self, target: str, origin: str) -> str | None:
        """Return the name of the page that *target* means in the file *origin*; None for none."""
        wanted, beside = _places(target, origin)
        for path in (beside, os.path.normpath(wanted.lstrip("/")).replace("\\", "/")):
            if path in self._by_path:
                return self._by_path[path]
        bare = re.sub(r"\.(?:md|markdown|mdown)\Z", "", wanted)
        found = self._by_word.get(bare) or [
            pair for pair in self._by_end.get(wanted.rsplit("/", 1)[-1], ()) if pair[0].endswith("/" + wanted)
        ]
        # of several, the one in the same folder, then the first
        folder = os.path.dirname(origin).lower()
        found = sorted(found, key=lambda pair: (os.path.dirname(pair[0]).lower() != folder, pair[0]))
        return found[0][1] if found else None


class _LeftOut:
    """The files of a vault that become no page, and which pages show them: one thing to say for each file."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._pages: dict[str, set[str]] = {path: set() for path in paths}
        self._paths = {path.lower(): path for path in reversed(self._pages)}
        self._by_name = {path.rsplit("/", 1)[-1].lower(): path for path in reversed(self._pages)}

    def dead(self, origin: str, targets: Mapping[str, bool]) -> list[Unread]:
        """Return which targets in *origin* that mean a page lead nowhere, and remember those that lead to a file."""
        found = []
        for target, means_page in targets.items():
            path = self._find(target, origin)
            if path is not None:
                self._pages[path].add(origin)
            elif means_page:
                found.append(Unread(origin, f"the link to {target[:80]!r} leads to no page of the source", True))
        return found

    def with_pages(self, item: Unread) -> Unread:
        """Return what is said of a file, with how many pages show it."""
        count = 0 if item.is_link else len(self._pages.get(item.where, ()))
        if not count:
            return item
        return replace(item, reason=f"{item.reason}; {counted(count, 'page shows', 'pages show')} it")

    def _find(self, target: str, origin: str) -> str | None:
        wanted, beside = _places(target, origin)
        for path in (beside, os.path.normpath(wanted.lstrip("/")).replace("\\", "/")):
            if path in self._paths:
                return self._paths[path]
        return self._by_name.get(wanted) if "/" not in wanted else None


def _places(target: str, origin: str) -> tuple[str, str]:
    """Return a target as it is looked for, and the path that it is beside the file *origin*."""
    wanted = unquote(target).strip().replace("\\", "/").lower()
    beside = os.path.normpath(os.path.join(os.path.dirname(origin), wanted)).replace("\\", "/").lower()
    return wanted, beside


def _with_links(file: _File, finder: _Finder) -> tuple[bytes, tuple[str, ...], dict[str, bool]]:
    """Return the bytes with links to the new names, what was changed, and the targets that no page is found for.

    Those with whether they mean a page: a wiki link does, and a path of Markdown.
    """
    raw = file.raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw, (), {}
    parts: list[bytes] = []
    lost: dict[str, bool] = {}
    position = rewritten = 0
    for link in links(raw):
        start, end = link.span
        written = raw[start:end].decode("utf-8")
        path, cut, fragment = written.partition("#")
        wiki = raw[:start].rstrip(b" \t").endswith(b"[[")
        if not path.strip() or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", path):
            continue
        name = finder.find(path, file.path)
        if name is None:
            lost[path] = lost.get(path, False) or wiki or path.lower().endswith(MARKDOWN)
            continue
        suffix = raw[end:].startswith(b".md")
        new = name if wiki or suffix else f"{name}.md"
        if link.page is None and not wiki:
            new = f"{name}.md"
        new += cut + fragment
        if wiki and raw[end:].startswith(b"]]") and not raw[:start].rstrip(b" \t").endswith(b"![["):
            new += f"|{path.strip()}"  # what the reader saw
        if new.split("|")[0] != written:
            parts += [raw[position:start], new.encode()]
            position = end
            rewritten += 1
    changed = b"".join([*parts, raw[position:]])
    before, after = read_frontmatter(raw), read_frontmatter(changed)
    if (before.present, before.error, list(before.fields)) != (after.present, after.error, list(after.fields)):
        return raw, ("links stay as they were: in its frontmatter they cannot be rewritten",), lost
    words = f"{rewritten} {'link' if rewritten == 1 else 'links'} rewritten"
    return changed, (words,) if rewritten else (), lost


def _known_keys(page: Page, path: str) -> tuple[str, dict[str, Settable]]:
    """Return the title, and the title and summary keys that the file has under other names."""
    front = page.frontmatter
    title = next((v for k in _TITLE_KEYS if isinstance(v := front.get(k), str) and v.strip()), None)
    summary = next((v for k in _SUMMARY_KEYS if isinstance(v := front.get(k), str) and v.strip()), None)
    keys: dict[str, Settable] = {}
    if title is not None and "title" not in front:
        keys["title"] = title
    if summary is not None and "summary" not in front:
        keys["summary"] = summary
    if title is None and _was_title(page, stem := PurePosixPath(path).stem):
        title = keys["title"] = stem
    return title or page.title, keys


def _was_title(page: Page, stem: str) -> bool:
    """Whether a file's name said what no title and no heading says: vaults show notes under their names."""
    if page.name == stem:
        return False
    return page.title == page.name or (not stem.isupper() and _slug(page.title) != _slug(stem))
