"""Which page somebody may have meant who gave a name that no page has."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 3
_MOST_COMPARED = 5_000  # names that are compared letter by letter, a few milliseconds a thousand


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that are most like *name*: those that hold it, then those that are spelt alike."""
    wanted = name.strip().lower().removesuffix(".md").replace(" ", "-").replace("_", "-")
    if not wanted:
        return []
    known = sorted(names)
    inside = sorted(
        (other for other in known if wanted in other), key=lambda other: (not other.startswith(wanted), other)
    )
    words = {word for word in wanted.split("-") if len(word) > 2}
    alike = [other for other in known if words & set(other.split("-"))] or known
    close = get_close_matches(wanted, alike[:_MOST_COMPARED], _MOST, 0.6)
    if not close and alike is not known:
        close = get_close_matches(wanted, known[:_MOST_COMPARED], _MOST, 0.6)
    return list(dict.fromkeys([*inside, *close]))[:_MOST]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the end of a message that names them, or an empty text."""
    near = near_names(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""
