"""Checking a whole field: every page, every file that is no page, and what takes more than one page to see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from memoryfield.advice import advice
from memoryfield.errors import InvalidName, PageNotFound
from memoryfield.format.deadlinks import dead_links, held_names
from memoryfield.format.files import is_temporary
from memoryfield.format.findings import Finding, Findings, Level, shown_name
from memoryfield.format.names import PAGE_SUFFIX, page_name, slug
from memoryfield.format.page import Page
from memoryfield.format.pagechecks import check_page, key_line
from memoryfield.format.pages import PageSource
from memoryfield.format.renames import rename_proposals, stem_of
from memoryfield.format.snapshot import Skipped
from memoryfield.format.zipread import twins

__all__ = ["Finding", "Findings", "validate"]

_CONFLICT_COPY = re.compile(r"(.+?)\.sync-conflict-.*", re.IGNORECASE | re.DOTALL)


def validate(source: PageSource) -> Findings:
    """Check every page and file of a field; nothing is changed.

    Args:
        source: A directory or an archive.

    Returns:
        Errors, warnings and notes, each with the file, the line where there is one, the rule and what to do.
    """
    snapshot = source.snapshot()
    found: list[Finding] = []
    held = held_names(source)
    uuids: dict[str, list[str]] = {}
    for page in source.pages():
        found += check_page(page)
        found += _broken_links(page, held)
        if page.uuid is not None:
            uuids.setdefault(page.uuid.lower(), []).append(page.name)
    found += _equal_uuids(source, uuids)
    others = source.other_files()
    proposals = rename_proposals([*snapshot.entries, *others, *(item.filename for item in snapshot.skipped)])
    for item in snapshot.skipped:
        found.append(_left_out(item, proposals))
    found += _twins(
        [*snapshot.entries, *others, *(s.filename for s in snapshot.skipped if not s.filename.startswith("."))]
    )
    found += _side_files(others)
    if not snapshot.entries:
        found.append(Finding("info", "", None, "P1", "the field has no pages yet"))
    return Findings(found)


def _broken_links(page: Page, held: Collection[str]) -> Iterator[Finding]:
    for dead in dead_links(page, held):
        yield Finding("info", page.filename, dead.line, "P3", dead.message, dead.remedy)


def _equal_uuids(source: PageSource, uuids: Mapping[str, list[str]]) -> Iterator[Finding]:
    for names in uuids.values():
        for name in names if len(names) > 1 else ():
            try:
                line = key_line(source.read(name), "uuid")
            except PageNotFound:  # gone since it was looked at
                continue
            others = ", ".join(other + PAGE_SUFFIX for other in names if other != name)
            message = f"has the same uuid as {others}"
            yield Finding("error", name + PAGE_SUFFIX, line, "P12", message, "give the copy a uuid of its own")


def _left_out(item: Skipped, proposals: Mapping[str, str]) -> Finding:
    name, reason = shown_name(item.filename), item.reason
    level: Level = "warning"
    rule, fixable = "P2", False
    if is_temporary(item.filename):
        level, rule = "info", "P14"
        message, remedy = "left by a write that was interrupted", "a later write removes it"
    elif reason == "hidden":
        is_page = item.filename.lower().endswith(PAGE_SUFFIX)
        level = "warning" if is_page else "info"
        message, remedy = "hidden, so not part of the field", "take the dot away" if is_page else ""
    elif reason == "sync conflict copy":
        original = _CONFLICT_COPY.fullmatch(item.filename)
        base = f"{original[1]}{PAGE_SUFFIX}" if original is not None else "the page"
        message = "a copy that a sync tool made when two places changed one page"
        remedy = f"merge it with {shown_name(base)}, then delete it"
    elif reason in ("editor backup", "desktop debris", "resource fork of macOS"):
        level = "info"
        message, remedy = f"{reason}, not part of the field", "delete it"
    elif reason == "not a valid page name":
        message, remedy = _bad_name(item.filename, proposals)
        fixable = item.filename in proposals
    elif reason in ("sub-directory", "in a sub-directory"):
        level = "info"
        message, remedy = f"{reason}: a field is flat, what is in there is not read", ""
    elif reason == "symbolic link":
        message = "a symbolic link, which is never followed"
        remedy = "put the file itself there, or remove the link"
    elif reason.startswith("not readable"):
        level, message, remedy = "error", reason, "give yourself permission to read it"
    elif reason.startswith("larger than"):
        level, rule, message, remedy = "error", "P4", f"{reason}: too large for a page", "split it"
    elif reason.startswith("damaged"):
        level, rule, message, remedy = "error", "A2", reason, "get the archive anew"
    else:
        message, remedy = f"{reason}, not part of the field", "remove it"
    return Finding(level, name, None, rule, message, remedy, fixable)


def _bad_name(filename: str, proposals: Mapping[str, str]) -> tuple[str, str]:
    message = "the ending must be .md"
    if filename.endswith(PAGE_SUFFIX):
        try:
            page_name(filename)
        except InvalidName as error:
            message = str(error).rpartition(" cannot be a page name: ")[2].partition(". Try ")[0].removesuffix(".")
    message = f"no page, because of its name: {shown_name(message)}"
    if filename in proposals:
        how = advice(python="plan_fixes() does", command="validate --fix does")
        return message, f"rename it to {proposals[filename]}; {how}"
    try:
        return message, f"rename it, for example to {slug(stem_of(filename), proposals.values())}{PAGE_SUFFIX}"
    except InvalidName:
        return message, "rename it with a-z, 0-9 and hyphens"


def _twins(filenames: list[str]) -> Iterator[Finding]:
    for one, other in twins(filenames):
        message = f"differs from {shown_name(one)} only by case or Unicode form; many file systems cannot hold both"
        yield Finding(
            "warning", shown_name(other), None, "A1", message, "rename one; until then no archive can be made"
        )


def _side_files(others: list[str]) -> Iterator[Finding]:
    present = set(others)
    for name in others:
        for ending in ("-journal", "-wal", "-shm"):
            if name.endswith(ending) and name.removesuffix(ending) in present:
                message = f"a side file of {shown_name(name.removesuffix(ending))}: in use now, or left by a crash"
                yield Finding(
                    "info", shown_name(name), None, "X8", message, "close what uses it; the next sync clears it"
                )
