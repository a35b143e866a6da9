"""The plan of a merge: what it proposes, how a curator changes it, how it proves itself and is carried out.

Nothing is written before ``MergePlan.apply``. How plans are made is in ``merge.py``, how they show themselves in
``planviews.py``.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from memoryfield.curate import planviews
from memoryfield.curate.account import Account, Source, take_account
from memoryfield.curate.blocks import read_blocks, write_blocks
from memoryfield.curate.linking import Relinked, relinked, unclashed, with_links_to
from memoryfield.curate.mergetext import SOURCES
from memoryfield.curate.removing import remove_sentences
from memoryfield.curate.sections import Resemblance
from memoryfield.curate.selflinks import without_self_links
from memoryfield.curate.sentences import sentence_key
from memoryfield.curate.splitting import SecondPage, divide
from memoryfield.curate.survivor import (
    MERGED_FROM,
    KeyConflict,
)
from memoryfield.errors import FrontmatterError, InvalidName, NotEditable, PageChanged, PageNotFound, QueryError
from memoryfield.format.changes import Change
from memoryfield.format.dates import date_text
from memoryfield.format.edit import new_page, replace_section, set_body, set_keys
from memoryfield.format.names import slug
from memoryfield.format.page import LONGEST_EMBEDDED, Page, as_text
from memoryfield.format.verbs import PageVerbs
from memoryfield.format.yamlread import Value
from memoryfield.format.yamlwrite import Settable

_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes:
        survivor: The page that stayed, as it is now.
        absorbed: Names of the pages that are no more.
        relinked: Names of other pages whose links were rewritten.
        second: The second page of a merge that was split, or None.
    """

    survivor: Page
    absorbed: tuple[str, ...]
    relinked: tuple[str, ...]
    second: Page | None = None


@dataclass(frozen=True, repr=False)
class MergePlan:
    """A proposed merge: read it, edit it, apply it. Every edit gives a new plan.

    Attributes:
        directory: The pages.
        pages: The pages as they were read, the surviving one first, then the others from the oldest on.
        why: Why that one survives.
        body: The proposed body.
        keys: Frontmatter keys that the surviving page gets.
        resemblances: Sentences that are almost the same, and contradictions; both sides stand in the text.
        key_conflicts: Frontmatter keys with more than one value; the surviving page's stays.
        links: Other pages whose links would be rewritten.
        now: Moment of the plan, which ``updated`` gets.
        dropped_keys: What equal sentences share, for those that the curator dropped.
        decided: The text is the curator's own; whatever is missing in it counts as dropped.
        second: Second page, where the result was split.
        notes: What else there is to know.
        afterwards: Called when the plan was carried out; a field brings its indexes up to date with it.
    """

    directory: PageVerbs = field(compare=False)
    pages: tuple[Page, ...]
    why: str
    body: str
    keys: Mapping[str, Settable]
    resemblances: tuple[Resemblance, ...]
    key_conflicts: tuple[KeyConflict, ...]
    links: tuple[Relinked, ...]
    now: datetime
    dropped_keys: frozenset[str] = frozenset()
    decided: bool = False
    second: SecondPage | None = None
    notes: tuple[str, ...] = ()
    afterwards: Callable[[], None] | None = field(default=None, compare=False)

    # -- what it proposes ---------------------------------------------------------------------------------------------

    @property
    def survivor(self) -> str:
        """Name of the page that stays."""
        return self.pages[0].name

    @property
    def absorbed(self) -> tuple[str, ...]:
        """Names of the pages that go."""
        return tuple(page.name for page in self.pages[1:])

    @cached_property
    def raw(self) -> bytes:
        """The bytes of the surviving page after the merge."""
        page = self.pages[0]
        try:
            raw = set_body(with_links_to(page, self.absorbed, self.survivor).raw, self.body)
            return set_keys(raw, {**self.keys, "updated": date_text(self.now)})
        except FrontmatterError as error:
            raise FrontmatterError(error.problem, file=page.filename, line=error.line) from error
        except NotEditable as error:
            raise NotEditable(f"{page.filename}: {error}") from error

    @cached_property
    def second_raw(self) -> bytes | None:
        """The bytes of the second page, where the result was split."""
        if self.second is None:
            return None
        return new_page(
            title=self.second.title,
            body=self.second.body,
            now=self.now,
            uuid=self.second.uuid,
            summary=None,
            **self.second.keys,
        )

    @property
    def text(self) -> str:
        """The surviving page after the merge, as text."""
        return self.result.text

    @cached_property
    def result(self) -> Page:
        """The surviving page after the merge."""
        return Page(self.survivor, self.raw)

    @property
    def size(self) -> int:
        """Bytes of the surviving page after the merge."""
        return len(self.raw)

    @property
    def over_limit(self) -> int:
        """Bytes past the 8192 that need not be embedded; where there are any, see ``split``."""
        return max(self.size - LONGEST_EMBEDDED, 0)

    @property
    def conflicts(self) -> tuple[Resemblance, ...]:
        """Pairs of sentences that say the same with other values, both in the text."""
        return tuple(pair for pair in self.resemblances if pair.kind == "conflict")

    def account(self) -> Account:
        """Return where every sentence of every page is, worked out from the pages and the proposed text alone."""
        return self._account

    @cached_property
    def _account(self) -> Account:
        results = [source_of(self.result, self.result.body)]
        if self.second is not None:
            results.append(Source(self.second.name, self.second.body, self.second.title))
        return take_account(sources_of(self.pages), results, dropped=self.dropped_keys, decided=self.decided)

    # -- what a curator changes ---------------------------------------------------------------------------------------

    def with_body(self, text: str) -> MergePlan:
        """Return the plan with the curator's own body; sentences that it lacks count as dropped by the curator."""
        return self.changed(body=_ended(_BREAK.sub("\n", text)), decided=True)

    def with_keys(self, **keys: Settable) -> MergePlan:
        """Return the plan with the curator's own values in the surviving page's frontmatter, such as ``title``.

        What they lack, and the body too, counts as dropped by the curator.
        """
        return self.changed(keys={**self.keys, **keys}, decided=True)

    def edit(self, heading: str, text: str) -> MergePlan:
        """Return the plan with other text under one heading; what that lacks counts as dropped by the curator.

        Args:
            heading: Text of the heading.
            text: What stands under it, subsections included.

        Raises:
            NotEditable: There is no such heading, or more than one.
        """
        raw = replace_section(b"\n" + self.body.encode("utf-8"), heading, text)
        return self.changed(body=raw.decode("utf-8")[1:], decided=True)

    def drop(self, *ids: str) -> MergePlan:
        """Return the plan without some sentences; the account lists them as dropped.

        Args:
            ids: Ids of the account's entries. Equal sentences of other pages go too.

        Raises:
            QueryError: No such id, or a heading or a title, which are edited instead.
        """
        entries = {entry.id: entry for entry in self.account()}
        keys = set()
        for id_ in ids:
            entry = entries.get(id_)
            if entry is None:
                raise QueryError(f"the account has no sentence {id_!r}; its ids look like {next(iter(entries))!r}")
            if entry.kind == "heading" or (entry.kind == "frontmatter" and entry.where == "frontmatter"):
                raise QueryError(f"{id_} is a title or heading: change it with edit or with_body")
            keys.add(entry.key)
        return self._without(keys)

    def resolve(self, number: int, keep: str) -> MergePlan:
        """Return the plan with one contradiction decided.

        Args:
            number: Position in ``conflicts``, from 0.
            keep: ``first``, ``second`` or ``both``; the mark between the two goes in each case.

        Raises:
            QueryError: No such contradiction, or another word.
        """
        if not 0 <= number < len(self.conflicts):
            raise QueryError(f"there is no conflict {number}; the plan has {len(self.conflicts)}, counted from 0")
        if keep not in ("first", "second", "both"):
            raise QueryError(f"keep is {keep!r}; give first, second or both")
        pair = self.conflicts[number]
        gone = {"first": set(pair.second_keys), "second": set(pair.first_keys), "both": set[str]()}[keep]
        rest = tuple(other for other in self.resemblances if other is not pair)
        return self.changed(body=remove_sentences(self.body, markers=[pair.marker]), resemblances=rest)._without(gone)

    def accept(self) -> MergePlan:
        """Return the plan with its present text approved as it is: what is missing in it counts as dropped."""
        return self.changed(decided=True)

    def rewritten(self, rewrite: Callable[[str], str]) -> MergePlan:
        """Return the plan with the body as a function makes it; what that loses, the account shows as lost.

        Args:
            rewrite: Gets the body and returns another one.

        Raises:
            QueryError: It returned no text.
        """
        text: Any = rewrite(self.body)
        if not isinstance(text, str) or not text.strip():
            raise QueryError("rewrite returned no text; give a function that takes the body and returns a body")
        return self.changed(body=_ended(_BREAK.sub("\n", text)), decided=False)

    def split(self) -> MergePlan:
        """Return the plan with the end of the result on a second page, so that the first is within 8192 bytes.

        Raises:
            QueryError: The result is split already, is short enough, or has no place to cut.
        """
        if self.second is not None:
            raise QueryError("the result is split already")
        if not self.over_limit:
            raise QueryError(f"the result has {self.size:,} bytes, within {LONGEST_EMBEDDED:,}: nothing to split")
        taken = [*self.directory.names(), *self.directory.other_files()]
        title = self.result.title
        for head, tail, own_title in divide(self.body, sentence_key(SOURCES)):
            new_title = own_title or f"{title}, part 2"
            try:
                name = slug(new_title, taken)
            except InvalidName:
                name = slug(f"{self.survivor} part 2", taken)
            keys: dict[str, Settable] = {
                key: settable(value)
                for key, value in self.result.frontmatter.items()
                if isinstance(value, list) and key != MERGED_FROM
            }
            second = SecondPage(name, new_title, _linked(tail, title, self.survivor), str(uuids.uuid4()), keys)
            plan = self.changed(body=_linked(head, new_title, name), second=second)
            if not plan.over_limit:
                return plan
        raise QueryError("the result has no heading or paragraph at which a first page of 8,192 bytes ends: edit it")

    def _without(self, keys: set[str]) -> MergePlan:
        touched = [pair for pair in self.resemblances if {*pair.first_keys, *pair.second_keys} & keys]
        markers = [pair.marker for pair in touched]
        second = self.second
        if second is not None:
            second = replace(second, body=remove_sentences(second.body, keys, markers))
        rest = tuple(pair for pair in self.resemblances if pair not in touched)
        body = remove_sentences(self.body, keys, markers)
        return self.changed(body=body, resemblances=rest, second=second, dropped_keys=self.dropped_keys | keys)

    def changed(self, **changes: object) -> MergePlan:
        """Return the plan with other attributes; refused here where it could not be written later."""
        plan: MergePlan = replace(self, **changes)  # type: ignore[arg-type]  # the callers know the attributes
        _ = plan.raw
        return plan

    # -- carrying it out ----------------------------------------------------------------------------------------------

    def apply(self, *, verb: str = "merge", note: str | None = None) -> Merged:
        """Write the surviving page, delete the others and rewrite the links to them, all in one step.

        Args:
            verb: Word for the journal.
            note: Remark for the journal; by default which pages were merged.

        Raises:
            PageChanged: A page is not the one that the plan was made from; nothing was written.
            PageExists: The second page's name was taken meanwhile.
            NotEditable: A sentence is missing that nobody dropped, or a page with a link cannot be edited.
            MemoryfieldError: As ``PageDirectory.apply``.
        """
        lost = self.account().lost
        if lost:
            shown = "; ".join(f"{e.id} {as_text(e.text)[:80]!r}" for e in lost[:3])
            raise NotEditable(
                f"{len(lost)} {'sentence is' if len(lost) == 1 else 'sentences are'} missing in the merged text and "
                f"nobody dropped them ({shown}): drop them, put them back, or accept the text as it is"
            )
        with self.directory.lock():
            for page in self.pages:
                try:
                    now = self.directory.read(page.name)
                except PageNotFound:
                    raise PageChanged(
                        f"{page.filename} was deleted since the plan was made; nothing was written"
                    ) from None
                if now.sha256 != page.sha256:
                    raise PageChanged(
                        f"{page.filename} was changed since the plan was made; nothing was written: make the plan again"
                    )
            others = relinked(self.directory, self.absorbed, self.survivor, {page.name for page in self.pages})
            changes = [Change(self.survivor, self.raw, self.pages[0].sha256)]
            if self.second is not None:
                changes.insert(0, Change(self.second.name, self.second_raw, absent=True))
            changes += [Change(other.name, other.after, other.sha256) for other in others]
            changes += [Change(page.name, None, page.sha256) for page in self.pages[1:]]
            said = note if note is not None else f"{', '.join(self.absorbed)} into {self.survivor}"
            self.directory.apply(changes, verb=verb, note=said)
            second = self.directory.read(self.second.name) if self.second is not None else None
            merged = Merged(self.directory.read(self.survivor), self.absorbed, tuple(o.name for o in others), second)
        if self.afterwards is not None:
            self.afterwards()
        return merged

    # -- showing it ---------------------------------------------------------------------------------------------------

    def diff(self) -> str:
        """Return every change of every page as one unified diff."""
        return planviews.unified(self)

    def side_by_side(self) -> str:
        """Return the sentences of the pages beside the merged text, as HTML without scripts."""
        return planviews.side_by_side(self)

    def __repr__(self) -> str:
        return planviews.summary(self).text()

    def __str__(self) -> str:
        return planviews.summary(self).text() + "\n\n" + planviews.plain_lines(self.text)

    def _repr_html_(self) -> str:
        return planviews.summary(self).html() + self.side_by_side()


def sources_of(pages: Sequence[Page]) -> list[Source]:
    """Return the pages as their sentences are counted: with the links and labels that they have in the merged page."""
    labels: set[str] = set()
    found = []
    for page in pages:
        raw = without_self_links(page, [other.name for other in pages[1:]], pages[0].name)
        found.append(source_of(page, unclashed(Page(page.name, raw).body, labels)))
    return found


def source_of(page: Page, body: str) -> Source:
    """Return a page with another body as its sentences are counted."""
    title, summary = (as_text(page.frontmatter.get(key)).strip() for key in ("title", "summary"))
    return Source(page.name, _BREAK.sub("\n", body), title, summary)


def settable(value: Value) -> Settable:
    """Return a value that was read as one to write: the types are the same, lists and mappings only look different."""
    if isinstance(value, list):
        return [settable(item) for item in value]
    if isinstance(value, dict):
        return {key: settable(item) for key, item in value.items()}
    return value


def _linked(body: str, title: str, name: str) -> str:
    label = title.replace("[", "(").replace("]", ")")
    line = f"See also: [{label}]({name}.md)."
    blocks, tail = read_blocks(body)
    place = next((i for i, b in enumerate(blocks) if b.kind == "heading" and b.title == SOURCES), len(blocks))
    return write_blocks([*blocks[:place], *read_blocks("\n\n" + line)[0], *blocks[place:]], tail or "\n").lstrip("\n")


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
