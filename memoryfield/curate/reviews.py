"""Answers of a curator on whether two pages belong together, kept so that none is asked twice.

They stand in the user's state directory, one file a field, never in the field. A page is known by its name and, where
it has one, by the uuid of its frontmatter: a page that was renamed keeps its answers by the uuid, and another page that
got the old name does not inherit them. The file can be copied out and taken in again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from memoryfield import places
from memoryfield.display import Table
from memoryfield.errors import FieldError, NewerSchema, QueryError
from memoryfield.format.lock import field_lock
from memoryfield.format.targets import check_target

if TYPE_CHECKING:
    from memoryfield.format.page import Page

SCHEMA = 1
_KIND = "memoryfield reviews"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A page as an answer knows it.

    Attributes:
        name: Its name when the answer was given.
        uuid: Its uuid then, or None.
    """

    name: str
    uuid: str | None = None

    def _key(self) -> str:
        return f"uuid {self.uuid.lower()}" if self.uuid else f"name {self.name}"


@dataclass(frozen=True, slots=True)
class Review:
    """One answer.

    Attributes:
        first: One page.
        second: The other.
        same: Whether they belong to one family.
        time: When it was given, in UTC, as ``YYYY-MM-DDTHH:MM:SSZ``.
    """

    first: Reviewed
    second: Reviewed
    same: bool
    time: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells this pair from others, in whichever order it was given."""
        one, other = sorted((self.first._key(), self.second._key()))
        return one, other


@dataclass(frozen=True)
class Reviews(Sequence[Review]):
    """The answers on a field; a value, each change gives a new one and writes it where it has a file.

    Attributes:
        items: The answers, one a pair, oldest first.
        path: The field's directory or archive whose answers these are; None for answers that are not kept.
    """

    items: tuple[Review, ...] = ()
    path: Path | None = None

    @classmethod
    def load(cls, path: str | Path) -> Reviews:
        """Return what is kept for the field at *path*; nothing yet is an empty one.

        Raises:
            FieldError: The file cannot be read; it is left as it is.
            NewerSchema: A newer version of this library wrote it.
        """
        field = Path(path)
        file = reviews_file(field)
        try:
            raw = file.read_bytes()
        except FileNotFoundError:
            return cls((), field)
        except OSError as error:
            raise FieldError(f"the review answers in {file} cannot be read: {error}") from error
        return cls(_read(raw, file), field)

    @property
    def file(self) -> Path | None:
        """Where the answers are kept, or None."""
        return None if self.path is None else reviews_file(self.path)

    def answer(self, first: Page, second: Page, *, same: bool, now: datetime | None = None) -> Reviews:
        """Return the answers with one more; it replaces an earlier one on the same pair.

        Answers that another process kept meanwhile are taken along.

        Raises:
            QueryError: It is one page given twice.
        """
        if first.name == second.name:
            raise QueryError(f"{first.name} is given twice; an answer is about two pages")
        time = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pair = (Reviewed(first.name, first.uuid), Reviewed(second.name, second.uuid))
        return self._with([Review(*pair, same, time)])

    def withdraw(self, first: Page, second: Page) -> Reviews:
        """Return the answers without those on a pair of pages, by their names and uuids of today."""
        pages = (first, second)
        if self.path is None:
            return Reviews(tuple(item for item in self if not Reviews((item,)).pairs(pages)), None)
        with field_lock(self.path):
            kept = Reviews.load(self.path)
            rest = Reviews(tuple(item for item in kept if not Reviews((item,)).pairs(pages)), self.path)
            _write(reviews_file(self.path), rest.to_dict())
        return rest

    def take_in(self, source: str | Path) -> Reviews:
        """Return the answers with those of a file that :meth:`export` wrote; of one pair the later answer stands.

        Raises:
            FieldError: The file is not one of answers.
            NewerSchema: A newer version of this library wrote it.
        """
        file = Path(source)
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise FieldError(f"the review answers in {file} cannot be read: {error}") from error
        return self._with(_read(raw, file), later_wins=True)

    def export(self, target: str | Path) -> Path:
        """Write the answers to a file of its own and return its path.

        Raises:
            FieldError: Something else than answers stands there, or it cannot be written.
        """
        goal = check_target(target, (f'{{\n "kind": "{_KIND}"'.encode(),), what="file of answers", error=FieldError)
        _write(goal, self.to_dict())
        return Path(target)

    def pairs(self, pages: Iterable[Page]) -> dict[tuple[str, str], bool]:
        """Return the answers that concern *pages*, by their names of today, smaller name first.

        An answer is left out while one of its pages is gone, or where its name belongs to a page of another uuid.
        """
        found = list(pages)
        by_name: Mapping[str, Page] = {page.name: page for page in found}
        by_uuid: dict[str, list[str]] = {}
        for page in found:
            if page.uuid:
                by_uuid.setdefault(page.uuid.lower(), []).append(page.name)
        answers: dict[tuple[str, str], bool] = {}
        for item in self.items:
            names = [_today(reviewed, by_name, by_uuid) for reviewed in (item.first, item.second)]
            if names[0] is not None and names[1] is not None and names[0] != names[1]:
                first, second = sorted((names[0], names[1]))
                answers[first, second] = item.same
        return answers

    def _with(self, new: Iterable[Review], later_wins: bool = False) -> Reviews:
        if self.path is None:
            return Reviews(_joined(self.items, new, later_wins), None)
        with field_lock(self.path):
            kept = Reviews.load(self.path)
            changed = Reviews(_joined(_joined(self.items, kept.items, True), new, later_wins), self.path)
            _write(reviews_file(self.path), changed.to_dict())
        return changed

    @overload
    def __getitem__(self, index: int) -> Review: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Review]: ...
    def __getitem__(self, index: int | slice) -> Review | Sequence[Review]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Review]:
        return iter(self.items)

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as values that JSON can hold: what the file says."""
        return {"kind": _KIND, "schema": SCHEMA, "answers": [_as_dict(item) for item in self.items]}

    def _table(self) -> Table:
        count = len(self.items)
        rows = [(r.time, "same" if r.same else "distinct", r.first.name, r.second.name) for r in self.items[::-1]]
        return Table(
            f"{count} review {'answer' if count == 1 else 'answers'}",
            ["time", "answer", "first", "second"],
            rows[:_SHOWN],
            more=max(count - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def reviews_file(path: Path) -> Path:
    """Return where the answers on the field at *path* stand."""
    return places.state_directory() / "reviews" / f"{places.field_key(path)}.json"


def _today(reviewed: Reviewed, by_name: Mapping[str, Page], by_uuid: Mapping[str, list[str]]) -> str | None:
    page = by_name.get(reviewed.name)
    if reviewed.uuid is None:
        return None if page is None else page.name
    if page is not None and (page.uuid is None or page.uuid.lower() == reviewed.uuid.lower()):
        return page.name
    holders = by_uuid.get(reviewed.uuid.lower(), [])
    return holders[0] if len(holders) == 1 else None  # a uuid that two pages have says nothing


def _joined(old: Iterable[Review], new: Iterable[Review], later_wins: bool) -> tuple[Review, ...]:
    found = {_pair_key(item): item for item in old}
    for item in new:
        before = found.pop(_pair_key(item), None)
        found[_pair_key(item)] = before if before is not None and later_wins and before.time > item.time else item
    return tuple(sorted(found.values(), key=lambda item: (item.time, item.key)))


def _pair_key(item: Review) -> tuple[str, ...]:
    # the names belong to it: two pages may share a uuid, and that is just what a curator is asked about
    return (*item.key, *sorted((item.first.name, item.second.name)))


def _as_dict(item: Review) -> dict[str, Any]:
    pages = [{"name": page.name, "uuid": page.uuid} for page in (item.first, item.second)]
    return {"pages": pages, "same": item.same, "time": item.time}


def _read(raw: bytes, file: Path) -> tuple[Review, ...]:
    try:
        held = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FieldError(f"{file} is not a file of review answers: {error}") from error
    if not isinstance(held, dict) or held.get("kind") != _KIND or not isinstance(held.get("schema"), int):
        raise FieldError(f"{file} is not a file of review answers; rename it to start anew.")
    if held["schema"] > SCHEMA:
        raise NewerSchema(f"{file} has schema {held['schema']}, this version reads up to {SCHEMA}: update it.")
    try:
        return tuple(_review(item) for item in held["answers"])
    except (KeyError, TypeError, ValueError) as error:
        raise FieldError(f"{file} is damaged: an answer cannot be read; rename it to start anew.") from error


def _review(item: Any) -> Review:
    first, second = item["pages"]
    texts = (first["name"], second["name"], item["time"])
    uuids = (first["uuid"], second["uuid"])
    right = all(isinstance(text, str) for text in texts) and all(u is None or isinstance(u, str) for u in uuids)
    if not right or not isinstance(item["same"], bool):
        raise ValueError("wrong types")
    return Review(Reviewed(texts[0], uuids[0]), Reviewed(texts[1], uuids[1]), item["same"], texts[2])


def _write(file: Path, held: dict[str, Any]) -> None:
    """Replace *file* as a whole; a failure leaves it as it was."""
    text = json.dumps(held, ensure_ascii=False, indent=1) + "\n"
    temporary: str | None = None
    try:
        places.private_directory(file.parent)
        handle, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise FieldError(f"the review answers cannot be written to {file}: {error}") from error
