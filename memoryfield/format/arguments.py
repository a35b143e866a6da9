"""What callers hand to the verbs of a field, checked before anything is read or locked.

Type checkers see such mistakes; notebooks and programs in a hurry do not run them. Names are checked in ``names.py``,
values of frontmatter in ``yamlwrite.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memoryfield.errors import QueryError

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def check_sha256(value: object) -> None:
    """Refuse a condition that no page could ever meet, or that looks as if there were none.

    Raises:
        QueryError: It is neither None nor a sha256 in hexadecimal digits.
    """
    if value is not None and not (isinstance(value, str) and _SHA256.fullmatch(value)):
        raise QueryError(f"if_sha256 must be the 64 hexadecimal digits of page.sha256, or None, not {_shown(value)}")


def check_raw(value: object) -> None:
    """Refuse a content that is not bytes.

    Raises:
        QueryError: It is of another type.
    """
    if not isinstance(value, bytes):
        remedy = ": text.encode() makes bytes of it" if isinstance(value, str) else ""
        raise QueryError(f"the content of a page must be bytes, not {type(value).__name__}{remedy}")


def check_texts(**given: object) -> None:
    """Refuse what is neither None nor text.

    Args:
        given: Values by the names of their arguments.

    Raises:
        QueryError: One is of another type.
    """
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise QueryError(f"{name} must be text, not {_shown(value)}")


def check_keys(value: object) -> None:
    """Refuse what is neither None nor a mapping.

    Raises:
        QueryError: It is of another type.
    """
    if value is not None and not isinstance(value, Mapping):
        raise QueryError(f"keys must be a mapping such as {{'status': 'done'}}, not {_shown(value)}")


def check_section(value: object) -> None:
    """Refuse what is neither None nor a heading with a text.

    Raises:
        QueryError: It is something else.
    """
    if value is not None and not (
        isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(part, str) for part in value)
    ):
        raise QueryError(f"section must be a heading and a text, ('Heading', 'text'), not {_shown(value)}")


def _shown(value: object) -> str:
    return f"{type(value).__name__} {repr(value)[:60]}"
