"""The health of a field: what a curator should look at, section by section, each item with what to do about it.

Nothing is changed. Each check is made elsewhere (``similar``, ``secrets``, ``format.validate``); here they are brought
together. ``index`` and ``listing`` stay out of the views of duplicates and of age (FORMAT P5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, overload

from memoryfield.advice import advice
from memoryfield.curate.evidence import copied_from
from memoryfield.curate.families import Families
from memoryfield.curate.secrets import REMEDY, find_secrets
from memoryfield.curate.similar import HasVectors
from memoryfield.curate.stale import DAYS, check_days, stale
from memoryfield.display import Table, counted
from memoryfield.errors import QueryError
from memoryfield.format.deadlinks import dead_links, held_names
from memoryfield.format.findings import Finding, shown_name
from memoryfield.format.markdown import first_heading
from memoryfield.format.normal import normalized
from memoryfield.format.page import LONGEST_EMBEDDED, Page, as_text
from memoryfield.format.validate import validate
from memoryfield.index.loaded import Vectors
from memoryfield.index.recipes import PAGE, recipe_text

if TYPE_CHECKING:
    import pandas

    from memoryfield.curate.family import Family
    from memoryfield.format.pages import PageSource

SECTIONS: dict[str, str] = {
    "secrets": "secrets that look like keys",
    "conflict-copies": "conflict copies",
    "near-duplicates": "near duplicates",
    "same-titles": "same titles",
    "equal-vectors": "equal vectors for different texts",
    "broken-links": "broken links",
    "over-limit": f"pages over {LONGEST_EMBEDDED:,} bytes",
    "stale": "stale pages",
    "untitled": "pages without title or summary",
}
_LIKELY, _VERY_LIKELY = 0.75, 0.9  # from here on a family is called so
_SHOWN = 5  # items of a section in a view of the whole field
_CONFLICT_COPY = "sync conflict copy"  # the reason for which a snapshot skips them


@dataclass(frozen=True, slots=True)
class HealthItem:
    """One thing to look at.

    Attributes:
        section: Key of ``SECTIONS``.
        pages: Names of the pages concerned; for a conflict copy that is no page its file name.
        line: Line in the first of them, from 1, or None.
        message: What was found.
        remedy: What to do about it.
    """

    section: str
    pages: tuple[str, ...]
    line: int | None
    message: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """Return the item as values that JSON can hold."""
        return asdict(self) | {"pages": list(self.pages)}


@dataclass(frozen=True)
class Health(Sequence[HealthItem]):
    """What a look at a whole field found, the most pressing sections first.

    Attributes:
        items: Everything found, by section and in its order there.
        pages: How many pages were looked at.
        not_checked: Sections that could not be looked at, and why.
        model_code: Model of the vectors, empty without vectors.
        recipe: Recipe of the vectors, empty without vectors.
        chosen: The only section that is shown, empty for all.
    """

    items: tuple[HealthItem, ...]
    pages: int
    not_checked: dict[str, str]
    model_code: str = ""
    recipe: str = ""
    chosen: str = ""

    @overload
    def __getitem__(self, index: int) -> HealthItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HealthItem]: ...
    def __getitem__(self, index: int | slice) -> HealthItem | Sequence[HealthItem]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[HealthItem]:
        return iter(self.items)

    def section(self, name: str) -> tuple[HealthItem, ...]:
        """Return the items of one section.

        Raises:
            QueryError: There is no such section; the message lists those there are.
        """
        if name not in SECTIONS:
            raise QueryError(f"there is no section {name!r}; there are: {', '.join(SECTIONS)}.")
        return tuple(item for item in self.items if item.section == name)

    @property
    def counts(self) -> dict[str, int]:
        """How many items each section has; sections that were not checked are left out."""
        names = [self.chosen] if self.chosen else SECTIONS
        return {name: len(self.section(name)) for name in names if name not in self.not_checked}

    def to_frame(self) -> pandas.DataFrame:
        """Return one row an item: ``section, pages, line, message, remedy``; pages joined by commas."""
        import pandas

        columns = ["section", "pages", "line", "message", "remedy"]
        rows = [(i.section, ", ".join(i.pages), i.line, i.message, i.remedy) for i in self.items]
        return pandas.DataFrame(rows, columns=columns).astype({"line": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "pages": self.pages,
            "model": self.model_code or None,
            "recipe": self.recipe or None,
            "counts": self.counts,
            "not_checked": dict(self.not_checked),
            "items": [item.to_dict() for item in self.items],
        }

    def only(self, name: str) -> Health:
        """Return the health with the items of one section alone, all of which its view shows.

        Raises:
            QueryError: There is no such section; the message lists those there are.
        """
        rest = {key: why for key, why in self.not_checked.items() if key == name}
        return replace(self, items=self.section(name), not_checked=rest, chosen=name)

    def table(self) -> Table:
        """Return what ``repr`` shows: the first items of each section, what to do, and which sections are clean."""
        rows: list[tuple[object, ...]] = []
        notes = []
        for name, count in self.counts.items():
            items = self.section(name)
            shown = items if self.chosen else items[:_SHOWN]
            remedies = list(dict.fromkeys(item.remedy for item in items))
            for place, item in enumerate(shown):
                what = item.message if len(remedies) == 1 else f"{item.message}: {item.remedy}"
                rows.append((name if place == 0 else "", ", ".join(item.pages), item.line, what))
            if len(remedies) == 1:
                notes.append(f"{name}: {remedies[0]}")
            if count > len(shown):
                how = advice(python=f"only({name!r}) lists", command=f"memoryfield health FIELD --section {name} lists")
                notes.append(f"{name}: {count - len(shown)} more; {how} them all")
        clean = [SECTIONS[name] for name, count in self.counts.items() if not count and not self.chosen]
        if clean:
            notes.append(f"none: {', '.join(clean)}")
        notes += [f"not checked: {SECTIONS[name]}: {why}" for name, why in self.not_checked.items()]
        if self.model_code:
            notes.append(f"model {self.model_code}, recipe {self.recipe}; a near duplicate is a place to look")
        found, pages = len(self.items), self.pages
        return Table(
            f"Health: {counted(found, 'thing')} to look at in {counted(pages, 'page')}",
            ("section", "pages", "line", "what"),
            rows,
            notes,
            frozenset(["line"]),
            {"pages": 60, "what": 110},
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def health(
    source: PageSource,
    vectors: HasVectors | None = None,
    families: Iterable[Family] | None = None,
    *,
    model_code: str = "",
    recipe: str = PAGE,
    days: float = DAYS,
    now: datetime | None = None,
) -> Health:
    """Look at a whole field and return what a curator should look at; nothing is changed.

    Args:
        source: The field.
        vectors: Its vectors; without them equal vectors are not checked.
        families: Its families, which know the curator's answers; without them near duplicates are not checked.
        model_code: Model of the vectors.
        recipe: Recipe of the vectors.
        days: Age in days from which a page counts as stale.
        now: The moment that ages are counted from, with a time zone; the present by default.

    Raises:
        QueryError: *days* makes no sense.
    """
    check_days(days)
    moment = now if now is not None else datetime.now(UTC)
    pages = {page.name: page for page in source.pages()}
    findings = list(validate(source))
    ordinary = [page for page in pages.values() if not page.is_special]
    not_checked: dict[str, str] = {}
    found: list[HealthItem] = []
    found += _secrets(pages.values())
    found += _conflict_copies(source, findings)
    answers = families.reviews.pairs(pages.values()) if isinstance(families, Families) else {}
    found += _named_as_copies(pages, {pair for pair, same in answers.items() if not same})
    for name, given in (("near-duplicates", families), ("equal-vectors", vectors)):
        if given is None:
            how = advice(python="sync() makes them", command="memoryfield index FIELD --model auto makes them")
            not_checked[name] = f"needs vectors; {how}"
    found += _near(families or ())
    if vectors is not None:
        found += _equal_vectors(vectors, pages, recipe)
    found += _same_titles(ordinary)
    found += _broken_links(pages, held_names(source))
    found += _over_limit(pages)
    for old in stale(ordinary, days, moment):
        message = f"last changed {old.age:.0f} days ago, on {old.changed:%Y-%m-%d}"
        remedy = "read it: correct it, note that it still holds, or delete it"
        found.append(HealthItem("stale", (old.name,), None, message, remedy))
    found += _untitled(ordinary)
    rank = {name: position for position, name in enumerate(SECTIONS)}
    found.sort(key=lambda item: rank[item.section])
    code, used = (model_code, recipe) if vectors is not None else ("", "")
    return Health(tuple(found), len(pages), not_checked, code, used)


def _secrets(pages: Iterable[Page]) -> Iterator[HealthItem]:
    for page in pages:
        for secret in find_secrets(page):
            message = f"looks like a secret: {secret.kind} {secret.shown}"
            yield HealthItem("secrets", (page.name,), secret.line, message, REMEDY)


def _conflict_copies(source: PageSource, findings: Sequence[Finding]) -> Iterator[HealthItem]:
    copies = {shown_name(s.filename) for s in source.snapshot().skipped if s.reason == _CONFLICT_COPY}
    for finding in findings:
        if finding.filename in copies and finding.rule == "P2":
            yield HealthItem("conflict-copies", (finding.filename,), None, finding.message, finding.remedy)


def _named_as_copies(pages: Collection[str], distinct: Collection[tuple[str, str]]) -> Iterator[HealthItem]:
    """Yield the pages whose name makes them a copy of another, but for those that were answered to be distinct."""
    for name in pages:
        original = copied_from(name)
        if original is not None and original in pages and (min(name, original), max(name, original)) not in distinct:
            message = f"named as a copy of {original}"
            remedy = "merge it with that page, or rename it if it is one of its own"
            yield HealthItem("conflict-copies", (name, original), None, message, remedy)


def _near(families: Iterable[Family]) -> Iterator[HealthItem]:
    worth = [family for family in families if not family.doubtful]
    for family in sorted(worth, key=lambda family: (-round(family.probability, 9), family.members)):
        certain = family.automatic and family.probability >= _VERY_LIKELY
        seems = "very likely say" if certain else "likely say" if family.probability >= _LIKELY else "may say"
        message = f"{len(family)} pages {seems} the same ({family.probability:.0%}): {family.why}"
        unsure = "read them side by side: merge them, or answer that they differ"
        remedy = "look at the merge that is proposed: it loses no sentence" if certain else unsure
        yield HealthItem("near-duplicates", tuple(family), None, message, remedy)


def _equal_vectors(vectors: HasVectors, pages: dict[str, Page], recipe: str) -> Iterator[HealthItem]:
    for group in Vectors(tuple(vectors.names), vectors.matrix).equal():
        present = [name for name in group if name in pages]
        if len({recipe_text(recipe, pages[name]) for name in present}) > 1:
            message = f"{len(present)} pages have one vector though their texts differ: search cannot tell them apart"
            remedy = "say earlier in each page what sets it apart, or use a model that reads longer texts"
            yield HealthItem("equal-vectors", tuple(present), None, message, remedy)


def _same_titles(pages: Sequence[Page]) -> Iterator[HealthItem]:
    groups: dict[str, list[Page]] = {}
    for page in pages:
        key = " ".join(normalized("NFKC", page.title).casefold().split())
        groups.setdefault(key, []).append(page)
    for group in groups.values():
        if len(group) > 1:
            message = f"{len(group)} pages are titled {group[0].title!r}"
            remedy = "merge them if they say the same; else give each a title of its own"
            yield HealthItem("same-titles", tuple(page.name for page in group), None, message, remedy)


def _broken_links(pages: dict[str, Page], held: Collection[str]) -> Iterator[HealthItem]:
    for page in pages.values():
        for dead in dead_links(page, held):
            yield HealthItem("broken-links", (page.name,), dead.line, dead.message, dead.remedy)


def _over_limit(pages: dict[str, Page]) -> Iterator[HealthItem]:
    for page in pages.values():
        if page.cut_bytes:
            line = 1 + page.raw.count(b"\n", 0, LONGEST_EMBEDDED)
            message = f"{page.size:,} bytes: the last {page.cut_bytes:,}, from this line on, are not embedded"
            remedy = "split the page, or say what matters further up"
            yield HealthItem("over-limit", (page.name,), line, message, remedy)


def _untitled(pages: Sequence[Page]) -> Iterator[HealthItem]:
    for page in pages:
        # all keys are optional (FORMAT P3): a heading is a title, and the first line of prose sums up
        title = as_text(page.frontmatter.get("title")).strip() or first_heading(page.body)
        missing = [key for key, said in (("title", title), ("summary", page.summary)) if not said]
        if page.frontmatter_error is not None:
            message = "the frontmatter cannot be read, nor a title or a summary in it"
            remedy = "mend the frontmatter"
        elif missing:
            found = {"title": f"no title and no heading: shown as {page.name!r}", "summary": "no summary and no prose"}
            message = "; ".join(found[key] for key in missing)
            remedy = f"add {' and '.join(missing)} to the frontmatter"
        else:
            continue
        yield HealthItem("untitled", (page.name,), None, message, remedy)
