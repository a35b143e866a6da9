"""Pages carried from one place of a field to another, by content: planned first, conflicts shown, nothing overwritten.

What both places held after the last transfer is kept in the journal of one of them, with a tombstone for each page that
was deleted since. It tells a page that was deleted in one place from one that is new in the other, and who of the two
changed a page. Places without a journal keep it in a file of the state directory, as all did before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from memoryfield.advice import advice
from memoryfield.display import Table, counted
from memoryfield.errors import (
    FieldError,
    HistoryError,
    InvalidName,
    NewerSchema,
    PageNotFound,
    QueryError,
    ReadOnlyField,
)
from memoryfield.format.changes import Change
from memoryfield.format.journaling import Agreements
from memoryfield.format.names import PAGE_SUFFIX, is_page_filename, new_page_name
from memoryfield.format.page import Page
from memoryfield.format.pages import PageSource
from memoryfield.format.snapshot import Snapshot
from memoryfield.format.verbs import PageVerbs
from memoryfield.places import private_directory, state_directory
from memoryfield.stores.pages import Report, StorePages, fetching

Act = Literal["add", "update", "delete", "keep", "conflict"]
_LARGEST_RECORD = 64 * 2**20
_SHOWN = 50
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Move:
    """What is to be done with one page, or why nothing is.

    Attributes:
        name: Page name.
        act: ``add``, ``update`` or ``delete`` in the target; ``keep``: only the target changed it since the last
            transfer; ``conflict``: both did, or it cannot be told.
        reason: Why, in a few words.
        after: New content; None for a deletion, and where nothing is done.
        before: Hexadecimal sha256 of the page in the target; None where there is none.
        now: Hexadecimal sha256 of the page in the source; None where there is none.
    """

    name: str
    act: Act
    reason: str
    after: bytes | None = field(default=None, repr=False)
    before: str | None = None
    now: str | None = None


@dataclass(frozen=True, repr=False)
class TransferPlan:
    """What a transfer would do; ``apply()`` does it.

    Attributes:
        source: Where the pages come from.
        target: Where they go.
        moves: By name; pages that are the same in both places are not listed.
        same: How many pages are the same.
        verb: ``push`` or ``pull``, for the history.
    """

    source: PageSource
    target: PageSource
    moves: tuple[Move, ...]
    same: int
    verb: str
    base: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)  # sha256 of the pages that are the same

    @property
    def conflicts(self) -> tuple[Move, ...]:
        """The pages that both places changed."""
        return tuple(move for move in self.moves if move.act == "conflict")

    @property
    def changes(self) -> tuple[Move, ...]:
        """The pages that would be written or deleted in the target."""
        return tuple(move for move in self.moves if move.act in ("add", "update", "delete"))

    def apply(self, take: Collection[str] = (), *, progress: bool | Report = True) -> TransferPlan:
        """Write and delete in the target, and return the plan of what was done.

        A target that changed since the plan was made is refused as a whole. In a directory this is one step of the
        history, and can be undone.

        Args:
            take: Names of conflicts in which the source is right: there the target is overwritten.
            progress: Show a bar while pages go to a place elsewhere; or a function of pages done and pages to do.

        Raises:
            QueryError: *take* names a page that is no conflict, or one that cannot be carried over.
            PageChanged: The target changed since.
            ReadOnlyField: The target cannot be written.
        """
        target = self.target
        if not isinstance(target, PageVerbs) or target.read_only:
            raise ReadOnlyField(f"{place_of(target)} is read only")
        moves = _taken(self.moves, take)
        changes = [_change(move) for move in moves if move.act in ("add", "update", "delete")]
        if changes:
            with fetching(target, progress):
                target.apply(changes, verb=self.verb, note=f"{place_of(self.source)} -> {place_of(target)}")
        agreed = dict(self.base) | dict(self.held)
        for move in moves:
            if move.act in ("add", "update"):
                agreed[move.name] = hashlib.sha256(move.after or b"").hexdigest()
            elif move.act == "delete":
                agreed.pop(move.name, None)
        _write_base(self.source, target, agreed)
        return replace(self, moves=moves)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values that JSON can hold."""
        rows = [{"name": move.name, "act": move.act, "reason": move.reason} for move in self.moves]
        return {"from": place_of(self.source), "to": place_of(self.target), "same": self.same, "pages": rows}

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        counts = Counter(move.act for move in self.moves)
        told = ", ".join(f"{counts[act]} to {act}" for act in ("add", "update", "delete") if counts[act])
        heading = f"{self.verb} from {place_of(self.source)} to {place_of(self.target)}: {told or 'nothing to do'}"
        rows = [(move.act, move.name, move.reason) for move in self.moves[:_SHOWN]]
        notes = [f"{counted(self.same, 'page is', 'pages are')} the same"]
        if counts["conflict"]:
            how = advice(python="apply(take=[NAME])", command="--yes --take NAME")
            notes.append(f"conflicts are left as they are in both places; {how} takes the source's page")
        return Table(
            heading, ("act", "page", "why"), rows, notes, widths={"why": 90}, more=max(0, len(self.moves) - 50)
        )


def plan_transfer(
    source: PageSource, target: PageSource, verb: str = "push", *, progress: bool | Report = False
) -> TransferPlan:
    """Return what it takes to bring the pages of *source* to *target*.

    Args:
        source: Where the pages come from; it is never written.
        target: Where they go.
        verb: What it is called in the history of the target.
        progress: Show a bar while pages come from elsewhere; or a function of pages done and pages to do.

    Raises:
        QueryError: Both are the same place.
        StoreError: A place elsewhere does not answer.
    """
    if _identity(source) == _identity(target):
        raise QueryError(f"{place_of(source)} cannot be carried to itself")
    with fetching(source, progress), fetching(target, progress):
        here, there = _hashes(source), _hashes(target)
    base, tombs = _read_base(source, target)
    held = {name: digest for name, digest in here.items() if there.get(name) == digest}
    moves = [
        _told_of(_move(name, here.get(name), there.get(name), base.get(name), source), tombs)
        for name in sorted({*here, *there} - held.keys())
    ]
    moves = _identities_kept(moves, target)
    # what both deleted since is forgotten, or it would be deleted once more when it comes again
    kept = {name: digest for name, digest in base.items() if name in here or name in there}
    return TransferPlan(source, target, tuple(moves), len(held), verb, kept, held)


def place_of(source: PageSource) -> str:
    """Return where pages live, as text without credentials."""
    return source.place if isinstance(source, StorePages) else str(source.path)


def _identity(source: PageSource) -> str:
    return source.identity if isinstance(source, StorePages) else os.path.realpath(source.path)


def _move(name: str, now: str | None, before: str | None, base: str | None, source: PageSource) -> Move:
    if now is None:
        if base is None:
            return Move(name, "keep", "only in the target", before=before)
        if before == base:
            return Move(name, "delete", "deleted in the source since the last transfer", before=before)
        return Move(name, "conflict", "deleted in the source, changed in the target", before=before)
    if before is not None and now == base:
        return Move(name, "keep", "changed in the target only", before=before, now=now)
    if before is None and base is not None and now == base:
        return Move(name, "keep", "deleted in the target", now=now)
    try:
        page = source.read(name)
    except PageNotFound:
        return Move(name, "keep", "gone from the source just now", before=before, now=now)
    digest = page.sha256
    if before is None and base is not None:
        return Move(name, "conflict", "deleted in the target, changed in the source", page.raw, None, digest)
    if before is None:
        try:
            new_page_name(name)
        except InvalidName as error:
            return Move(name, "conflict", str(error), now=digest)
        return Move(name, "add", "new", page.raw, None, digest)
    if before == base:
        return Move(name, "update", "changed in the source only", page.raw, before, digest)
    reason = "changed in both places" if base is not None else "another page of that name"
    return Move(name, "conflict", reason, page.raw, before, digest)


def _told_of(move: Move, tombs: Mapping[str, tuple[str, int]]) -> Move:
    """Say of a page that is only in one place that both had it and one deleted it, where that is known."""
    digest, gone_ns = tombs.get(move.name, ("", 0))
    if move.reason in ("new", "only in the target") and digest == (move.now or move.before):
        day = datetime.fromtimestamp(gone_ns / 1e9, UTC).date()
        return replace(move, reason=f"{move.reason}; deleted before {day}, and there again")
    return move


def _identities_kept(moves: Sequence[Move], target: PageSource) -> list[Move]:
    """Make conflicts of what would change a page's uuid or give one uuid to two pages (FORMAT P12)."""
    if not any(move.after is not None for move in moves):
        return list(moves)
    deleted = {move.name for move in moves if move.act == "delete"}
    uuids = {page.name: page.uuid.lower() for page in target.pages() if page.uuid and page.name not in deleted}
    owners = {uuid: name for name, uuid in uuids.items()}
    found = []
    for move in moves:
        uuid = None if move.after is None else Page(move.name, move.after).uuid
        owner = owners.get(uuid.lower()) if uuid else None
        if move.after is not None and move.name in uuids and (uuid or "").lower() != uuids[move.name]:
            move = replace(move, act="conflict", reason="has another uuid in the target", after=None)
        elif move.after is not None and owner is not None and owner != move.name:
            move = replace(move, act="conflict", reason=f"{owner} in the target has the same uuid", after=None)
        elif uuid and move.act in ("add", "update"):
            owners[uuid.lower()] = move.name
        found.append(move)
    return found


def _taken(moves: Sequence[Move], take: Collection[str]) -> tuple[Move, ...]:
    """Return the moves with some conflicts settled in favour of the source."""
    chosen = {name.removesuffix(PAGE_SUFFIX) for name in ([take] if isinstance(take, str) else take)}
    conflicts = {move.name: move for move in moves if move.act == "conflict"}
    unknown = sorted(chosen - conflicts.keys())
    if unknown:
        raise QueryError(f"{unknown[0]} is no conflict of this plan; there are: {', '.join(conflicts) or 'none'}")
    settled = []
    for move in moves:
        if move.name in chosen:
            if move.now is not None and move.after is None:
                raise QueryError(f"{move.name} cannot be taken over: {move.reason}")
            act: Act = "delete" if move.now is None else "add" if move.before is None else "update"
            move = replace(move, act=act, reason=f"{move.reason}; the source's is taken")
        settled.append(move)
    return tuple(settled)


def _change(move: Move) -> Change:
    return Change(move.name, move.after, if_sha256=move.before, absent=move.act == "add")


def _hashes(source: PageSource) -> dict[str, str]:
    """Return the sha256 of every page now, by name; a copy of an earlier moment will not do."""
    snapshot: Snapshot = source.refresh() if isinstance(source, StorePages) else source.snapshot()
    return {filename.removesuffix(PAGE_SUFFIX): entry.sha256.hex() for filename, entry in snapshot.entries.items()}


def _pair(source: PageSource, target: PageSource) -> str:
    return "\n".join(sorted([_identity(source), _identity(target)]))


def _keeper(source: PageSource, target: PageSource) -> Agreements | None:
    """Return the journal that keeps what both hold: of the directory, of two directories or stores of the first."""
    for place in sorted((source, target), key=lambda place: (isinstance(place, StorePages), _identity(place))):
        journal = getattr(place, "journal", None)
        if isinstance(journal, Agreements):
            return journal
    return None


def _base_file(source: PageSource, target: PageSource) -> str:
    digest = hashlib.sha256(_pair(source, target).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return os.path.join(state_directory(), "transfers", f"{digest}.json")


def _read_base(source: PageSource, target: PageSource) -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
    """Return what both places held after the last transfer between them, and what was deleted; nothing if unknown."""
    keeper = _keeper(source, target)
    kept: dict[str, tuple[bytes, int | None]] = {}
    if keeper is not None:
        with contextlib.suppress(HistoryError, NewerSchema):  # then conflicts are shown, and nothing is lost
            kept = keeper.agreed(_kept_as(source, target))
    if not kept:
        return _read_base_file(source, target), {}
    names = {name: name.removesuffix(PAGE_SUFFIX) for name in kept if is_page_filename(name)}
    base = {names[name]: kept[name][0].hex() for name in names if kept[name][1] is None}
    tombs = {names[name]: (kept[name][0].hex(), gone) for name in names if (gone := kept[name][1]) is not None}
    return base, tombs


def _kept_as(source: PageSource, target: PageSource) -> str:
    """Return what a journal calls a pair of places; surrogates of a path are no text for a database."""
    return _pair(source, target).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _read_base_file(source: PageSource, target: PageSource) -> dict[str, str]:
    try:
        with open(_base_file(source, target), "rb") as handle:
            told = json.loads(handle.read(_LARGEST_RECORD))
        pages = told["pages"]
        return {
            name: digest
            for name, digest in pages.items()
            if _SHA256.fullmatch(digest) and is_page_filename(f"{name}{PAGE_SUFFIX}")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _write_base(source: PageSource, target: PageSource, agreed: Mapping[str, str]) -> None:
    keeper = _keeper(source, target)
    if keeper is not None:
        pages = {name + PAGE_SUFFIX: bytes.fromhex(digest) for name, digest in sorted(agreed.items())}
        keeper.agree(_kept_as(source, target), pages)
        with contextlib.suppress(OSError):
            os.unlink(_base_file(source, target))
        return
    goal = _base_file(source, target)
    told = {"places": sorted([place_of(source), place_of(target)]), "pages": dict(sorted(agreed.items()))}
    folder = private_directory(state_directory() / "transfers")
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            json.dump(told, handle, ensure_ascii=True)
        os.replace(name, goal)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        message = f"the pages were carried over, but that cannot be noted in {folder}: {error.strerror or error}"
        raise FieldError(message) from error
