"""Opening fields for commands: what a folder holds that cannot be a page is said, with the way out."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.cli.output import note
from memoryfield.display import counted, plain

if TYPE_CHECKING:
    from memoryfield.field import MemoryField

_NAMED = 3  # files that are named


def open_field(place: str | os.PathLike[str], create: bool = False, **words: Any) -> MemoryField:
    """Open a field; say what Markdown in its folder cannot be a page, and how to make pages of it.

    Args:
        place: Directory, archive or address.
        create: Make the directory when it is missing.
        words: For ``memoryfield.opening.open_field``.
    """
    from memoryfield.opening import open_field as opened

    field = opened(place, create, **words)
    tell_of_other_markdown(Path(place).expanduser())
    return field


def tell_of_other_markdown(folder: Path) -> None:
    """Say which Markdown of a folder cannot be a page; nothing where all can be."""
    from memoryfield.exchange.detect import other_markdown

    found, is_whole = other_markdown(folder)
    if not found:
        return
    shown = ", ".join(plain(name, 60) for name in found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
    size = counted(len(found), "Markdown file") if is_whole else f"{len(found):,} Markdown files and more"
    target = folder.resolve().with_name(f"{folder.resolve().name}-field").name
    note(
        f"memoryfield: {size} here cannot be {'a page' if len(found) == 1 and is_whole else 'pages'}, for a field is "
        f"flat and its names are a-z, 0-9 and hyphens: {shown}\n"
        f"memoryfield: memoryfield import {shlex.quote(str(folder))} {shlex.quote(target)} makes pages of all "
        "(--dry-run only says how)"
    )
