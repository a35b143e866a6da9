"""Making the plan of a merge: which page stays, what its text and its frontmatter become.

How texts are woven is in ``mergetext.py``, what becomes of the frontmatter in ``survivor.py``, what a plan can do in
``mergeplan.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from memoryfield.curate.account import Entry, Source
from memoryfield.curate.blocks import body_sentences, read_blocks, write_blocks
from memoryfield.curate.linking import relinked, unclashed, with_links_to
from memoryfield.curate.mergeplan import Merged, MergePlan, settable, source_of, sources_of
from memoryfield.curate.mergetext import SOURCES, TOO_LONG, Weaver
from memoryfield.curate.sections import Part
from memoryfield.curate.survivor import (
    choose_survivor,
    day_of,
    merged_keys,
    merged_summary,
    source_lines,
    take_source_line,
)
from memoryfield.errors import FrontmatterError, NotEditable, QueryError
from memoryfield.format.links import links
from memoryfield.format.names import page_name
from memoryfield.format.page import Page, as_text
from memoryfield.format.verbs import PageVerbs

__all__ = ["MergePlan", "Merged", "plan_merge"]


def plan_merge(
    pages: Sequence[Page],
    into: str | None = None,
    *,
    directory: PageVerbs,
    medoid: str | None = None,
    now: datetime | None = None,
    rewrite: Callable[[str], str] | None = None,
) -> MergePlan:
    """Propose a merge of pages; nothing is written.

    Args:
        pages: Two pages or more, in any order.
        into: Name of the one that stays; by default the plan proposes one, see ``survivor.choose_survivor``.
        directory: Where they are.
        medoid: Name of the one that is nearest to all the others, where that is known.
        now: Moment for ``updated``; by default the present.
        rewrite: Function that smooths the merged body; see ``MergePlan.rewritten``.

    Raises:
        QueryError: Fewer than two pages, one given twice, or *into* is none of them.
        NotEditable: ``index`` or ``listing``, or a page that is not UTF-8.
        FrontmatterError: The frontmatter of a page is broken.
    """
    _check(pages)
    ordered, why = _ordered(pages, into, directory, medoid)
    survivor, absorbed = ordered[0], ordered[1:]
    parts: list[Part] = []
    said: list[str] = []
    labels: set[str] = set()
    for page, source in zip(ordered, sources_of(ordered), strict=True):
        body, line = take_source_line(unclashed(source.body, labels))
        parts.append(Part(page.name, page.title, day_of(page), body))
        said.append(line)
    weaver = Weaver(parts[0])
    if said[0] or f"\n- `{survivor.name}`" not in parts[0].body:  # not named by an earlier merge
        weaver.end_with(SOURCES, source_lines(survivor, stays=True, said=[said[0]] if said[0] else []))
    for part in parts[1:]:
        weaver.add(part)
    names = [page.name for page in absorbed]
    rewritten = [with_links_to(page, names, survivor.name) for page in ordered]
    keys, key_conflicts = merged_keys(rewritten[0], rewritten[1:])
    summary = merged_summary(ordered)
    if summary != " ".join(as_text(survivor.frontmatter.get("summary")).split()):
        keys = {"summary": summary, **keys}
    for page, line in zip(absorbed, said[1:], strict=True):
        known = {sentence.key for sentence in body_sentences(weaver.text())}
        known |= {s.key for s in Source("", "", "", summary).sentences()}
        known |= {s.key for s in source_of(survivor, "").sentences()}
        extra = [text for text in (as_text(page.frontmatter.get(key)).strip() for key in ("title", "summary")) if text]
        fresh = [" ".join(text.split()) for text in extra if not _is_known(text, known)]
        weaver.end_with(SOURCES, source_lines(page, stays=False, said=[*fresh, *([line] if line else [])]))
    plan = MergePlan(
        directory,
        tuple(ordered),
        why,
        weaver.text(),
        {key: settable(value) for key, value in keys.items()},
        tuple(weaver.resemblances),
        key_conflicts,
        relinked(directory, names, survivor.name, {page.name for page in pages}),
        now or datetime.now(UTC),
        notes=(TOO_LONG,) if weaver.too_long else (),
    )
    plan = _mended(plan)
    return plan if rewrite is None else plan.rewritten(rewrite)


def _check(pages: Sequence[Page]) -> None:
    if len(pages) < 2:
        raise QueryError(f"a merge needs two pages or more, {len(pages)} given")
    twice = [name for name, count in Counter(page.name for page in pages).items() if count > 1]
    if twice:
        raise QueryError(f"{twice[0]} is given twice")
    for page in pages:
        if page.is_special:
            raise NotEditable(f"{page.filename} has a meaning of its own and is never merged")
        if not page.is_utf8:
            raise NotEditable(f"{page.filename} is not valid UTF-8; re-encode it before it is merged")
        problem = page.frontmatter_error
        if problem is not None:
            raise FrontmatterError(
                f"{problem.message}; mend it before it is merged", file=page.filename, line=problem.line
            )


def _ordered(
    pages: Sequence[Page], into: str | None, directory: PageVerbs, medoid: str | None
) -> tuple[list[Page], str]:
    """Return the pages, the surviving one first, and why that one."""
    by_name = {page.name: page for page in pages}
    if into is not None:
        name = page_name(into)
        if name not in by_name:
            raise QueryError(f"{name} is none of the pages to merge: {', '.join(sorted(by_name))}")
        survivor, why = by_name[name], "chosen by the curator"
    else:
        linked: Counter[str] = Counter()
        for other in directory.pages():
            lower = other.raw.lower()
            if other.name not in by_name and any(name.encode() in lower for name in by_name):
                linked.update(link.page for link in links(other.raw) if link.page in by_name)
        survivor, why = choose_survivor(pages, linked, medoid if len(pages) > 2 else None)
    rest = sorted((page for page in pages if page is not survivor), key=lambda page: (page.created or "~", page.name))
    return [survivor, *rest], why


def _is_known(text: str, known: set[str]) -> bool:
    return all(s.key in known for s in Source("", "", text).sentences())


def _mended(plan: MergePlan) -> MergePlan:
    """Put back what the weaving lost, as paragraphs before the sources: a merge is complete before anybody edits it."""
    for _ in range(3):
        lost = plan.account().lost
        if not lost:
            break
        blocks, tail = read_blocks(plan.body)
        place = next((i for i, b in enumerate(blocks) if b.kind == "heading" and b.title == SOURCES), len(blocks))
        texts = dict.fromkeys(_standing_alone(entry) for entry in lost)
        addition = read_blocks("\n\n" + "\n\n".join(texts))[0]
        plan = plan.changed(body=write_blocks([*blocks[:place], *addition, *blocks[place:]], tail or "\n"))
    return plan


def _standing_alone(entry: Entry) -> str:
    """Return a lost sentence as a block that nothing before it swallows."""
    if entry.kind == "table":
        return f"| {entry.text} |\n{'|---' * (entry.text.count(' | ') + 1)}|"
    # Behind a list, indented code would be a part of its last item.
    return f"<!-- code -->\n\n{entry.text}" if entry.text.startswith(("    ", "\t")) else entry.text
