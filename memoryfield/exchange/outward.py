"""A field in the forms that other programs take: a vault, one memory file, JSON lines of facts."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from memoryfield.advice import MemoryfieldWarning
from memoryfield.curate.secrets import find_secrets
from memoryfield.errors import ArchiveError, QueryError, SecretsFound
from memoryfield.format.files import write_errors
from memoryfield.format.page import SPECIAL_NAMES, Page

FORMS = ("vault", "memory-file", "records")
ON_SECRETS = ("warn", "refuse", "ignore")


class SecretWarning(MemoryfieldWarning):
    """What is exported holds what looks like keys or passwords."""


def write_form(pages: Iterable[Page], target: str | os.PathLike[str], form: str) -> Path:
    """Write pages in the form of another program; nothing that is there already is overwritten.

    Args:
        pages: The pages.
        target: A folder to make for ``vault``, a file to make for the others.
        form: ``vault`` (Markdown files, bytes as they are), ``memory-file`` (one Markdown file, pages in the order of
            their key ``position``, then by name; titles and texts, the rest of the frontmatter stays behind) or
            ``records`` (one JSON object a line, frontmatter and all).

    Raises:
        QueryError: There is no such form.
        ArchiveError: The target is there already.
    """
    if form not in FORMS:
        raise QueryError(f"form is {form!r}; expected one of {', '.join(FORMS)}")
    goal = Path(os.path.abspath(Path(target).expanduser()))
    if goal.is_symlink() or (goal.exists() and not (form == "vault" and goal.is_dir() and not any(goal.iterdir()))):
        raise ArchiveError(f"{goal} is there already: give a new name")
    with write_errors(goal.parent):
        if form == "vault":
            goal.mkdir(parents=True, exist_ok=True)
            for page in pages:
                _write(goal / page.filename, page.raw)
        else:
            text = memory_file(pages) if form == "memory-file" else records(pages)
            _write(goal, text.encode("utf-8", errors="replace"))
    return goal


def memory_file(pages: Iterable[Page]) -> str:
    """Return the pages as one Markdown text; pages that were cut from one file give that file again."""
    chosen = sorted((page for page in pages if page.name not in SPECIAL_NAMES), key=_place)
    return "".join(_section(page) for page in chosen)


def _section(page: Page) -> str:
    body = page.body if page.body.endswith("\n") or not page.body else page.body + "\n"
    if "position" in page.frontmatter or body.lstrip().startswith("#"):
        return body  # it brings its own heading, or is what stood before the first one
    return f"# {page.title}\n\n{body.lstrip()}\n"


def _place(page: Page) -> tuple[int, int, str]:
    given = page.frontmatter.get("position")
    if isinstance(given, str) and given.isdecimal() and len(given) < 10:
        return (0, int(given), page.name)
    return (1, 0, page.name)


def records(pages: Iterable[Page]) -> str:
    """Return the pages as JSON lines: ``id, title, memory, created_at, updated_at, metadata``."""
    lines = []
    for page in pages:
        if page.name in SPECIAL_NAMES:
            continue
        rest = {k: v for k, v in page.frontmatter.items() if k not in ("uuid", "title", "created", "updated")}
        if page.frontmatter_error is not None:  # as it stands there: no key of it can be read
            rest["frontmatter"] = page.text.removesuffix(page.body)
        record = {
            "id": page.uuid or page.name,
            "title": page.title,
            "memory": page.body.strip(),
            "created_at": page.created,
            "updated_at": page.updated,
            "metadata": {"page": page.name, **rest},
        }
        lines.append(json.dumps({k: v for k, v in record.items() if v is not None}, ensure_ascii=False))
    return "\n".join(lines) + ("\n" if lines else "")


def secrets_in(pages: Iterable[Page]) -> tuple[str, ...]:
    """Return in words each place that looks like a key or a password; to be asked before pages leave the house."""
    return tuple(
        f"{page.filename}, line {found.line}: {found.kind} {found.shown}"
        for page in pages
        for found in find_secrets(page)
    )


def heed_secrets(find: Callable[[], Sequence[str]], on_secrets: str) -> None:
    """Warn of secrets in what is about to leave the house, or refuse to let it.

    Args:
        find: Gives each place in words; not called where nobody asked.
        on_secrets: ``warn``, ``refuse`` or ``ignore``.

    Raises:
        QueryError: *on_secrets* is none of them.
        SecretsFound: ``refuse``, and there are secrets.
    """
    if on_secrets not in ON_SECRETS:
        raise QueryError(f"on_secrets is {on_secrets!r}; expected warn, refuse or ignore")
    found = () if on_secrets == "ignore" else find()
    if not found:
        return
    shown = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
    if on_secrets == "refuse":
        raise SecretsFound(f"nothing left the house: this looks like secrets: {shown}")
    warnings.warn(f"this looks like secrets, and it leaves the house: {shown}", SecretWarning, stacklevel=4)


def _write(path: Path, raw: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o666), "wb") as handle:
        handle.write(raw)
