"""A field and another place: pages carried there and back, what changed since, and the versions that git has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from memoryfield.curate.history import history_of
from memoryfield.errors import FieldNotFound
from memoryfield.field.pages import FieldPages
from memoryfield.format.pages import PageSource
from memoryfield.stores.opening import is_address, open_source
from memoryfield.stores.pages import StorePages, fetching

if TYPE_CHECKING:
    import os

    from memoryfield.curate.placechanges import FieldDifference
    from memoryfield.stores.git import PageVersions
    from memoryfield.stores.transfer import TransferPlan

_GIT = "git+file://"


class FieldPlaces(FieldPages):
    """A field that can be compared with other places and carried to them."""

    def plan_push(
        self,
        place: str | os.PathLike[str],
        *,
        create: bool = False,
        on_secrets: str = "warn",
        progress: bool | Callable[[int, int], None] = True,
    ) -> TransferPlan:
        """Return what it takes to bring this field's pages to another place, as a table; ``apply()`` does it.

        By content: what both places held after the last transfer tells which of them changed a page, and a page that
        was deleted from one that is new. What both changed is a conflict and left alone.

        Args:
            place: A directory or an address.
            create: Make the directory when it is missing.
            on_secrets: As in ``export``, for the pages that would leave.
            progress: Show a bar while pages come from elsewhere; or a function of pages done and pages to do.

        Raises:
            StoreError: The place elsewhere does not answer.
            SecretsFound: ``on_secrets="refuse"`` and pages that would leave hold what looks like keys or passwords.
        """
        from memoryfield.stores.transfer import plan_transfer

        plan = plan_transfer(self._source, self._other_place(place, create), "push", progress=progress)
        self._check_secrets([move.name for move in plan.changes if move.after is not None], on_secrets)
        return plan

    def plan_pull(
        self, place: str | os.PathLike[str], *, progress: bool | Callable[[int, int], None] = True
    ) -> TransferPlan:
        """Return what it takes to bring the pages of another place to this field; see ``plan_push``.

        In a directory ``apply()`` is one step of the history: ``undo()`` takes it back.
        """
        from memoryfield.stores.transfer import plan_transfer

        return plan_transfer(self._other_place(place), self._source, "pull", progress=progress)

    def changes_since(
        self, place: str | os.PathLike[str], *, progress: bool | Callable[[int, int], None] = True
    ) -> FieldDifference:
        """Return what changed from another place to this one: pages added, deleted, changed, renamed, with diffs.

        Args:
            place: The earlier pages: a directory, an archive, an address; or ``@REVISION`` for this directory as it was
                at a commit of the git repository that it stands in, such as ``@HEAD~3``.
            progress: Show a bar while pages come from elsewhere; or a function of pages done and pages to do.

        Raises:
            FieldNotFound: Nothing is there, or no such commit.
            StoreError: A place elsewhere does not answer and has never answered.
        """
        from memoryfield.curate.placechanges import place_changes

        if isinstance(place, str) and place.startswith("@"):
            place = self._at_commit(place[1:])
        earlier = self._other_place(place)
        with fetching(earlier, progress), fetching(self._source, progress):
            return place_changes(earlier, self._source)

    def versions(self, page: str, limit: int | None = None) -> PageVersions:
        """Return the versions of a page that git has, newest first, each with its commit, author and text.

        For a directory in a git work tree, from HEAD back; for a field opened at a commit, from that one back.

        Args:
            page: Page name.
            limit: Most versions.

        Raises:
            FieldNotFound: The field is in no git repository.
            PageNotFound: No commit has such a page.
        """
        from memoryfield.stores.git import page_versions

        return page_versions(self._at_commit("HEAD"), page, limit)

    def _at_commit(self, revision: str) -> str:
        """Return the address of this field at a commit; a field opened at a commit stays at its own."""
        if isinstance(self._source, StorePages):
            if self.place.startswith(_GIT):
                where, _, own = self.place.removeprefix(_GIT).rpartition("@")  # as it is called, not as addresses are
                return f"{_GIT}{quote(where)}@{quote(own if revision == 'HEAD' else revision)}"
            raise FieldNotFound(f"{self.place} is in no git repository of this machine")
        return f"{_GIT}{quote(str(self.path.resolve()))}@{quote(revision)}"

    def _other_place(self, place: str | os.PathLike[str], create: bool = False) -> PageSource:
        source = open_source(place if is_address(place) else Path(place).expanduser(), create)
        history_of(source, who=None if self._history is None else self._history.who)
        return source
