"""New names for files that would be pages but for their names: only where the rule for slugs leaves no choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memoryfield.errors import InvalidName
from memoryfield.format.names import PAGE_SUFFIX, skip_reason, slug
from memoryfield.format.zipread import twin_key

_BAD_NAME = skip_reason("_.md")


def rename_proposals(filenames: Iterable[str]) -> dict[str, str]:
    """Return new filenames for badly named pages, where each is free, the only one that wants it, and loses no letter.

    Args:
        filenames: Everything that stands in the directory.
    """
    present = list(filenames)
    taken = Counter(twin_key(filename) for filename in present)
    wanted = {old: new for old in present if skip_reason(old) == _BAD_NAME and (new := _only_slug(old)) is not None}
    rivals = Counter(wanted.values())
    # A file may be in its own way: SHED.MD and shed.md are one name to many file systems.
    return {old: new for old, new in wanted.items() if rivals[new] == 1 and taken[new] <= (twin_key(old) == new)}


def stem_of(filename: str) -> str:
    """Return a badly named page's filename without its ending, however that is written."""
    bare = filename.rstrip()
    return bare[: -len(PAGE_SUFFIX)] if bare.lower().endswith(PAGE_SUFFIX) else bare


def _only_slug(filename: str) -> str | None:
    """Return the filename that the rule for slugs makes of a stem, or None where it drops a letter or cuts."""
    stem = stem_of(filename)
    try:
        stem.encode("utf-8")  # a byte that is no UTF-8 may well have been a letter
    except UnicodeEncodeError:
        return None
    try:
        new = slug(stem)
        letters = "".join(slug(c) for c in stem if c.isalnum())
    except InvalidName:
        return None
    return new + PAGE_SUFFIX if letters == new.replace("-", "") else None
