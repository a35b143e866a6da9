"""What a merged page keeps of the pages' frontmatter, which page survives, and what is said about the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memoryfield.curate.blocks import Block, read_blocks, write_blocks
from memoryfield.curate.sentences import sentence_key, split_sentences, words
from memoryfield.format.dates import date_text, parse_date
from memoryfield.format.page import Page, as_text
from memoryfield.format.yamlread import Value

MERGED_FROM = "merged_from"
_OWN = ("title", "uuid", "summary", "created", "updated", MERGED_FROM)
_SOURCE_LINE = re.compile(
    r"(?:\*\*|_|\*)?(?:sources?|origins?|quellen?|fuentes?|fonti?|fontes?|bron|bronnen|källa|kilde|źródł[oa]|zdroj|出典|来源|來源)"
    r"(?:\*\*|_|\*)?[ ]?[:：]",
    re.IGNORECASE,
)
_LONGEST_SOURCE_LINE = 300
_LONGEST_SUMMARY = 500  # characters
_STOPS = tuple(".!?…。！？")
_SHORTEST_TELLING = 4  # letters of a word of a title that says something


@dataclass(frozen=True)
class KeyConflict:
    """A frontmatter key that has more than one value.

    Attributes:
        key: The key.
        kept: Value of the merged page.
        others: The other values as text, by page.
    """

    key: str
    kept: str
    others: tuple[tuple[str, str], ...]


def choose_survivor(pages: Sequence[Page], linked: Mapping[str, int], medoid: str | None = None) -> tuple[Page, str]:
    """Return the page that stays, and why.

    That is the page with more links to it than any other; else the medoid; else the page whose title the others say
    most; else the longest, the oldest, the first by name. A long page of an odd title makes a page nobody finds.

    Args:
        pages: The pages.
        linked: How many links of other pages point to each.
        medoid: Name of the page that is nearest to all the others, where that is known and there are more than two.
    """
    texts = {page.name: f"{page.title}\n{page.summary}\n{page.body}".casefold() for page in pages}

    def rank(page: Page) -> tuple[int, bool, float, int, str, str]:
        created = parse_date(page.created or "")
        others = [text for name, text in texts.items() if name != page.name]
        oldest = date_text(created) if created is not None else "~"
        said = _said(page.title, others)
        return -linked.get(page.name, 0), page.name != medoid, -said, -len(page.body), oldest, page.name

    first, second = sorted(pages, key=rank)[:2]
    one, two = rank(first), rank(second)
    count = -one[0]
    if one[0] != two[0]:
        return first, f"{count} {'link of another page points' if count == 1 else 'links of other pages point'} to it"
    same = "none is linked from elsewhere" if count == 0 else "others are linked as often"
    reasons = (
        "it is the nearest to all the others",
        "the others say most of what its title says",
        "it is the longest",
        "it is the oldest",
        "it is the first by name",
    )
    return first, f"{same}; {next(r for r, a, b in zip(reasons, one[1:], two[1:], strict=True) if a != b)}"


def _said(title: str, others: Sequence[str]) -> float:
    """Return which share of the telling words of a title stands in the other texts, on average over those texts."""
    telling = {word for _, word in words(title) if len(word) >= _SHORTEST_TELLING or not word.isascii()}
    telling |= {word for _, word in words(title) if any(sign.isdigit() for sign in word)}
    if not telling or not others:
        return 0.0
    return round(sum(word in text for word in telling for text in others) / (len(telling) * len(others)), 6)


def merged_keys(survivor: Page, absorbed: Sequence[Page]) -> tuple[dict[str, Value], tuple[KeyConflict, ...]]:
    """Return the keys to set in the surviving page, without ``updated``, and where pages disagree."""
    keys: dict[str, Value] = {}
    conflicts = []
    names = dict.fromkeys(key for page in (survivor, *absorbed) for key in page.frontmatter if key not in _OWN)
    for key in names:
        holders = [page for page in (survivor, *absorbed) if page.frontmatter.get(key) not in (None, "")]
        values = [page.frontmatter[key] for page in holders]
        if not values:
            continue
        if any(isinstance(value, list) for value in values) and not any(isinstance(value, dict) for value in values):
            union: list[Value] = []
            for value in values:
                union += [item for item in (value if isinstance(value, list) else [value]) if item not in union]
            keys[key] = union
            continue
        keys[key] = values[0]
        others = tuple((page.name, as_text(v)) for page, v in zip(holders, values, strict=True) if v != values[0])
        if others:
            conflicts.append(KeyConflict(key, as_text(values[0]), others))
    moments = [moment for page in (survivor, *absorbed) if (moment := parse_date(page.created or "")) is not None]
    own = parse_date(survivor.created or "")
    if moments and min(moments) != own:
        keys["created"] = date_text(min(moments))
    before: list[Value] = []
    for page in (survivor, *absorbed):
        listed = page.frontmatter.get(MERGED_FROM)
        before += [item for item in (listed if isinstance(listed, list) else [listed]) if item and item not in before]
    fresh = [f"{page.name} {page.uuid}" if page.uuid else page.name for page in absorbed]
    keys[MERGED_FROM] = before + [item for item in fresh if item not in before]
    return {k: v for k, v in keys.items() if survivor.frontmatter.get(k) != v}, tuple(conflicts)


def merged_summary(pages: Sequence[Page]) -> str:
    """Return the summary of the merged page: that of the first page, and what those of the others add, in one line.

    A summary says what a page holds, and it is what a model with a short input reads of a long page. What would make it
    longer than a few lines is left to the section of sources.
    """
    summary = ""
    for page in pages:
        own = " ".join(as_text(page.frontmatter.get("summary")).split())
        keys = _sentence_keys(summary)
        if not own or set(_sentence_keys(own)) <= set(keys):
            continue
        joined = f"{summary if summary.endswith(_STOPS) or not summary else summary + '.'} {own}".strip()
        if not summary or (len(joined) <= _LONGEST_SUMMARY and _sentence_keys(joined) == keys + _sentence_keys(own)):
            summary = joined
    return summary


def _sentence_keys(text: str) -> list[str]:
    return [sentence_key(text[start:end]) for start, end in split_sentences(text)]


def day_of(page: Page) -> str:
    """Return the day to which a page's statements belong: that of the last update, else of its creation."""
    for text in (page.updated, page.created):
        moment = parse_date(text or "")
        if moment is not None:
            return moment.date().isoformat()
    return page.modified.date().isoformat() if page.modified is not None else ""


def take_source_line(body: str) -> tuple[str, str]:
    """Return a body without a last paragraph such as ``Source: ...``, and that paragraph."""
    blocks, tail = read_blocks(body)
    last: Block | None = blocks[-1] if blocks else None
    if last is None or last.kind != "paragraph" or "\n" in last.text or len(last.text) > _LONGEST_SOURCE_LINE:
        return body, ""
    if len(blocks) < 2 or not _SOURCE_LINE.match(last.text.strip()):
        return body, ""
    return write_blocks(blocks[:-1], tail or "\n"), last.text.strip()


def source_lines(page: Page, *, stays: bool, said: Sequence[str]) -> list[str]:
    """Return the list items that name a page in the section of sources.

    Args:
        page: The page.
        stays: It is the surviving one.
        said: What of it stands nowhere else: title, summary, where it has it from.
    """
    created, updated = (parse_date(text or "") for text in (page.created, page.updated))
    days = [moment.date().isoformat() for moment in (created, updated) if moment is not None]
    dates = days[0] if len(set(days)) == 1 else " to ".join(days)
    notes = [note for note in ("this page" if stays else "", dates) if note]
    head = f"- `{page.name}`" + (f" ({', '.join(notes)})" if notes else "")
    return [head, *(f"  - {line}" for line in said)]
