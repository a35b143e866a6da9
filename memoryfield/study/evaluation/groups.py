"""Which pages belong to one family, as evaluation needs it: from a file, a mapping or the families of a field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, Union

from memoryfield.errors import InvalidName, QueryError, RowError
from memoryfield.format.names import page_name
from memoryfield.study.rows import csv_rows, read_text


class HasMembers(Protocol):
    """A family of ``field.families()``."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of its pages."""
        ...


GroupsLike: TypeAlias = Union["Groups", Mapping[str, str], Iterable[HasMembers], str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Groups:
    """Families of pages; a page that is named nowhere is alone.

    Attributes:
        family: Family of each page, by page name.
    """

    family: Mapping[str, str]
    _members: dict[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        members: dict[str, set[str]] = {}
        for page, family in self.family.items():
            members.setdefault(family, set()).add(page)
        object.__setattr__(self, "_members", {family: frozenset(pages) for family, pages in members.items()})

    @classmethod
    def of(cls, given: GroupsLike) -> Groups:
        """Return families from whatever form they come in.

        Args:
            given: Families, a mapping of page names to families, what ``field.families()`` returns, or the path of a
                CSV file with the columns ``page`` and ``family``.

        Raises:
            RowError: A row of a file cannot be used.
            QueryError: It is none of these forms, or a page is in two families.
            InvalidName: A name that no page can have.
        """
        if isinstance(given, Groups):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls(_read(given))
        if isinstance(given, Mapping):
            return cls({page_name(page): str(family) for page, family in given.items()})
        family: dict[str, str] = {}
        try:
            for number, one in enumerate(given):
                for page in one.members:
                    if family.setdefault(page_name(page), str(number)) != str(number):
                        raise QueryError(f"the page {page!r} is in two families")
        except (AttributeError, TypeError):
            raise QueryError(
                f"families are given as {type(given).__name__}; expected field.families(), a mapping of page names to "
                "families, or the path of a CSV file with the columns page and family"
            ) from None
        return cls(family)

    def around(self, pages: Iterable[str]) -> frozenset[str]:
        """Return some pages and all the others of their families."""
        found: set[str] = set()
        for page in pages:
            found |= self._members[self.family[page]] if page in self.family else {page}
        return frozenset(found)

    def same(self, one: str, other: str) -> bool:
        """Say whether two pages are of one family."""
        return one == other or (one in self.family and self.family.get(other) == self.family[one])


def _read(path: str | os.PathLike[str]) -> dict[str, str]:
    name, text = read_text(path)
    family: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, row in csv_rows(name, text, ("page", "family")):
        try:
            page = page_name(row["page"].strip())
        except InvalidName as error:
            raise RowError(str(error), file=name, line=line) from None
        if not row["family"].strip():
            raise RowError(f"the page {page!r} has no family", file=name, line=line)
        if page in family:
            raise RowError(f"the page {page!r} stands in line {lines[page]} already", file=name, line=line)
        family[page], lines[page] = row["family"].strip(), line
    return family
