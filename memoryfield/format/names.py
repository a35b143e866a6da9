"""Names: which file names are pages, which files are left alone and why, and how a title becomes a name.

A page *name* has no ending (``slipway-rules``), a *filename* has (``slipway-rules.md``). Nothing here touches a disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set

from memoryfield.errors import InvalidName
from memoryfield.format.normal import normalized

PAGE_SUFFIX = ".md"
LONGEST_SLUG = 60
LONGEST_NEW_NAME = 120  # with a suffix of a backup or sync tool still far from the 255 bytes of most file systems

_COUNTED = 100  # clashes of one name that are counted one by one

_PAGE_FILENAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.md")
_PAGE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")

# Windows opens a device under these names, whatever the ending.
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)]
)
_DESKTOP_DEBRIS = frozenset([".ds_store", "desktop.ini", "thumbs.db"])
# Latin letters that Unicode does not take apart into a base letter and a mark.
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})


def is_page_filename(filename: str) -> bool:
    """Say whether a file of this name is a page (FORMAT P1)."""
    return _PAGE_FILENAME.fullmatch(filename) is not None


def page_name(text: str) -> str:
    """Return the page name that *text* means, given with or without ``.md``.

    Raises:
        InvalidName: No page may have that name; the message says why and proposes one.
    """
    check_name_type(text)
    name = text.removesuffix(PAGE_SUFFIX)
    if _PAGE_NAME.fullmatch(name) is None:
        raise InvalidName(f"{text!r} cannot be a page name: {_why_invalid(name)}.{_proposal(name)}")
    return name


def check_name_type(name: object) -> None:
    """Refuse what is no text at all.

    Raises:
        InvalidName: It is of another type.
    """
    if not isinstance(name, str):
        raise InvalidName(f"a name is a text such as 'shopping-list', not {type(name).__name__} {repr(name)[:60]}")


def new_page_name(text: str) -> str:
    """Return the name for a page that is to be created; stricter than :func:`page_name`.

    Raises:
        InvalidName: The name is invalid, or readable but one that other tools or systems cannot hold.
    """
    name = page_name(text)
    if "--" in name:
        reason = "some tools cannot edit names with two hyphens in a row"
    elif name in _DEVICES:
        reason = "it is the name of a device on Windows"
    elif len(name) > LONGEST_NEW_NAME:
        reason = f"it has {len(name)} characters, at most {LONGEST_NEW_NAME} are allowed"
    else:
        return name
    raise InvalidName(f"{text!r} cannot be the name of a new page: {reason}.{_proposal(name)}")


def slug(title: str, taken: Iterable[str] = ()) -> str:
    """Return a page name made from a title (FORMAT P13).

    Args:
        title: Any text.
        taken: Names or filenames that exist; a clash gets ``-2``, ``-3`` and so on.

    Raises:
        InvalidName: Nothing of the title can stand in a name, or what is left is a reserved name.
    """
    name = _shortened(_slug_words(title), LONGEST_SLUG)
    if not name:
        raise InvalidName(
            f"the title {title!r} leaves nothing for a page name (a-z, 0-9, hyphens): give a name for the page."
        )
    if name in _DEVICES:
        raise InvalidName(
            f"the title {title!r} would make the page name {name!r}, a device on Windows: give another name."
        )
    # Looked up as it is: an import asks once for each of its pages, and a copy each time would take for ever.
    used = taken if isinstance(taken, Set | Mapping) else frozenset(taken)

    def free(candidate: str) -> bool:
        return candidate not in used and candidate + PAGE_SUFFIX not in used

    def numbered(number: int) -> str:
        ending = f"-{number}"
        return _shortened(name, LONGEST_SLUG - len(ending)) + ending

    if free(name):
        return name
    number = 2
    while not free(numbered(number)):
        if number < _COUNTED:
            number += 1
            continue
        low, number = number, 2 * number  # far up, gaps are not looked for: some free number behind a taken one
        while not free(numbered(number)):
            low, number = number, 2 * number
        while number - low > 1:
            middle = (low + number) // 2
            low, number = (low, middle) if free(numbered(middle)) else (middle, number)
    return numbered(number)


def skip_reason(filename: str) -> str | None:
    """Return why a file of this name is left out of the field, or None for a page or another file that is kept."""
    lower = filename.lower()
    if lower in _DESKTOP_DEBRIS:
        return "desktop debris"
    if ".sync-conflict-" in lower:
        return "sync conflict copy"
    if filename.endswith("~") or (filename.startswith("#") and filename.endswith("#")):
        return "editor backup"
    if filename.startswith("."):
        return "hidden"
    if lower.rstrip().endswith(PAGE_SUFFIX) and not is_page_filename(filename):
        return "not a valid page name"
    return None


def _slug_words(title: str) -> str:
    """Return the title in lower-case ASCII words joined by single hyphens, of any length."""
    folded = normalized("NFKD", title.lower().translate(_LETTERS))
    bare = "".join(c for c in folded if not unicodedata.combining(c))
    return _NOT_IN_SLUG.sub("-", bare.lower()).strip("-")


def _shortened(words: str, longest: int) -> str:
    """Cut at the last hyphen that fits; a single longer word is cut hard."""
    if len(words) <= longest:
        return words
    cut = words[:longest]
    if words[longest] != "-" and "-" in cut:
        cut = cut[: cut.rindex("-")]
    return cut.strip("-")


def _why_invalid(name: str) -> str:
    if not name:
        return "it is empty"
    if name != name.strip():
        return "it has blanks or line ends around it"
    if name.startswith("-") or name.endswith("-"):
        return "it must begin and end with a letter or digit"
    if name.isascii() and _PAGE_NAME.fullmatch(name.lower()):
        return "capital letters are not allowed"
    strange = sorted({c for c in name if not (c.isascii() and (c.isalnum() or c == "-"))})
    shown = ", ".join(repr(c) for c in strange[:5]) + (", ..." if len(strange) > 5 else "")
    return f"only a-z, 0-9 and hyphens are allowed, not {shown}"


def _proposal(name: str) -> str:
    words = _shortened(_slug_words(name), LONGEST_SLUG)
    if not words:
        return ""
    return f" Try {words + '-page' if words in _DEVICES else words!r}."
