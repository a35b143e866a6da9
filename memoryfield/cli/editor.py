"""Editing a page in the user's own editor. What was typed is never lost: a draft goes only when it is stored."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

from memoryfield import places
from memoryfield.cli import DONE, REFUSED, USAGE
from memoryfield.cli.output import note, say
from memoryfield.errors import QueryError, ReadOnlyField

_TOO_SHORT = 1.0  # seconds; an editor that is back sooner has probably opened a window and left


def edit_in_editor(field: Any, name: str) -> int:
    """Open a page in ``$VISUAL`` or ``$EDITOR`` and store what comes back, if the page is still the one shown.

    Raises:
        QueryError: The editor's command line cannot be read.
        ReadOnlyField: The page could not be stored; said before the editor opens.
        MemoryfieldError: The page was refused; the draft is kept and named.
    """
    command = _command()
    if command is None:
        note("memoryfield: nothing to change: give an option such as --title, or set $EDITOR")
        return USAGE
    page = field.read(name)
    if field.read_only or not os.access(field.path / page.filename, os.W_OK):
        raise ReadOnlyField(f"{page.filename} cannot be written: nothing was opened")
    draft = _new_draft(page.name, page.raw)
    stored = False
    try:
        started = time.monotonic()
        code = subprocess.run([*command, str(draft)], check=False).returncode
        raw = _read_draft(draft)
        if raw == page.raw:
            # a window may still be open on the draft: a graphical editor needs its option to wait
            if time.monotonic() - started < _TOO_SHORT:
                note(f"the editor came back at once; a later save goes to {draft} (does it need --wait?)")
            else:
                stored = True
            say(f"{page.name} unchanged")
            return DONE
        if code:
            note(f"memoryfield: the editor ended with code {code}; {page.name} is unchanged")
            return REFUSED
        if not raw.strip():
            note(f"memoryfield: the draft is empty; {page.name} is unchanged (memoryfield delete removes a page)")
            return REFUSED
        field.put(page.name, raw, if_sha256=page.sha256)
        stored = True
        say(f"{page.name} changed")
        return DONE
    finally:
        if stored:
            draft.unlink(missing_ok=True)
        elif _differs(draft, page.raw):
            note(f"memoryfield: your text is kept in {draft}")


def _command() -> list[str] | None:
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        return shlex.split(given) or None
    except ValueError as error:
        raise QueryError(f"the editor {given!r} is no command line: {error}") from error


def _new_draft(name: str, raw: bytes) -> Path:
    folder = places.private_directory(places.state_directory() / "drafts")
    draft = folder / f"{name}.{secrets.token_hex(4)}.md"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(raw)
    return draft


def _read_draft(draft: Path) -> bytes:
    """Return the bytes of the draft, never those of a file that a link in its place points to."""
    if not stat.S_ISREG(draft.lstat().st_mode):
        raise QueryError(f"{draft} is no regular file any more; nothing was stored")
    return draft.read_bytes()


def _differs(draft: Path, raw: bytes) -> bool:
    try:
        return not stat.S_ISREG(draft.lstat().st_mode) or draft.read_bytes() != raw
    except OSError:
        return False
