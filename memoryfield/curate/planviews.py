"""How a plan shows itself: a summary, a unified diff, and the sentences of the pages beside the merged text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memoryfield.curate.textdiff import unified_diff
from memoryfield.display import Table, counted, escape, plain
from memoryfield.format.names import PAGE_SUFFIX
from memoryfield.format.page import LONGEST_EMBEDDED, Page

if TYPE_CHECKING:
    from memoryfield.curate.merge import MergePlan

_COLOURS = {"kept": "#e8f5e9", "equal": "#eceff1", "heading": "#eceff1", "dropped": "#fff3e0", "lost": "#ffebee"}
_MOST_SHOWN = 20


def summary(plan: MergePlan) -> Table:
    """Return what the plan does, in one table with notes."""
    account = plan.account()
    rows = []
    for page in plan.pages:
        own = [entry for entry in account if entry.page == page.name]
        states = ", ".join(
            f"{count} {state}"
            for state in ("kept", "equal", "heading", "dropped", "lost")
            if (count := sum(entry.state == state for entry in own))
        )
        rows.append((page.name, "stays" if page.name == plan.survivor else "goes", page.size, states))
    return Table(
        f"Merge {len(plan.pages)} pages into {plan.survivor} ({plan.why})",
        ("page", "", "bytes", "sentences"),
        rows,
        list(_notes(plan)),
        right=frozenset({"bytes"}),
    )


def _notes(plan: MergePlan) -> Iterator[str]:
    account = plan.account()
    if account.complete:
        yield f"account: {counted(len(account), 'sentence')}, nothing is missing ({account})"
    else:
        yield f"account: {len(account.lost)} of {len(account)} sentences are missing and block the merge ({account})"
        for entry in account.lost[:_MOST_SHOWN]:
            yield f"lost: {entry.id}: {entry.text}" + (f" (resembles: {entry.near})" if entry.near else "")
    for entry in [entry for entry in account if entry.state == "heading"][:_MOST_SHOWN]:
        yield f"heading left out, all under it stands elsewhere: {entry.id}: {entry.text}"
    for entry in account.dropped[:_MOST_SHOWN]:
        yield f"dropped: {entry.id}: {entry.text}"
    for number, pair in enumerate(plan.conflicts):
        yield f"conflict {number}: {pair.first_page}: {pair.first} / {pair.second_page}: {pair.second}"
    for pair in [pair for pair in plan.resemblances if pair.kind == "near"][:_MOST_SHOWN]:
        yield f"almost the same, both kept: {pair.first_page}: {pair.first} / {pair.second_page}: {pair.second}"
    for conflict in plan.key_conflicts:
        others = ", ".join(f"{value!r} in {name}" for name, value in conflict.others)
        yield f"frontmatter {conflict.key}: {conflict.kept!r} stays; {others}"
    for other in plan.links:
        yield f"{other.count} {'link' if other.count == 1 else 'links'} rewritten in {other.name}"
    yield f"result: {counted(plan.size, 'byte')}"
    if plan.over_limit:
        yield f"{plan.over_limit:,} bytes are past {LONGEST_EMBEDDED:,} and need not be embedded; split the page"
    yield from plan.notes
    if plan.second is not None:
        yield f"second page: {plan.second.name}, {len(plan.second_raw or b''):,} bytes"


def unified(plan: MergePlan) -> str:
    """Return the changes of all pages as a unified diff."""
    changes: list[tuple[str, bytes | None, bytes | None]] = [(plan.survivor, plan.pages[0].raw, plan.raw)]
    if plan.second is not None:
        changes.append((plan.second.name, None, plan.second_raw))
    changes += [(other.name, other.before, other.after) for other in plan.links]
    changes += [(page.name, page.raw, None) for page in plan.pages[1:]]
    return "".join(unified_diff(name + PAGE_SUFFIX, before, after) for name, before, after in changes)


def plain_lines(text: str) -> str:
    """Return a text as a terminal shows it: control and direction characters made visible, every blank kept."""
    return "\n".join(" ".join(plain(piece) for piece in line.split(" ")) for line in text.splitlines())


def side_by_side(plan: MergePlan) -> str:
    """Return the sentences of all pages, and what became of each, beside the merged text; HTML without scripts."""
    left = []
    name = ""
    for entry in plan.account():
        if entry.page != name:
            name = entry.page
            left.append(f"<p><strong>{escape(name)}</strong></p>")
        told = entry.state if not entry.equal_to else f"equal to one of {entry.equal_to}"
        told += f", under {entry.where}" if entry.where and entry.state == "kept" else ""
        told += f", resembles: {entry.near}" if entry.near else ""
        left.append(
            f'<p style="margin:2px;padding:2px;color:#111;background:{_COLOURS[entry.state]}">{escape(entry.text)}'
            f" <small>[{escape(told)}]</small></p>"
        )
    right = [_result(plan.survivor, plan.text)]
    if plan.second is not None:
        right.append(_result(plan.second.name, Page("", plan.second_raw or b"").text))
    cell = '<td style="vertical-align:top;text-align:left;width:50%">'
    return (
        '<div class="memoryfield"><table><thead><tr><th scope="col">sentences of the pages</th>'
        f'<th scope="col">merged</th></tr></thead><tbody><tr>{cell}{"".join(left)}</td>{cell}{"".join(right)}</td>'
        "</tr></tbody></table></div>"
    )


def _result(name: str, text: str) -> str:
    shown = "\n".join(escape(line) if line.strip() else "" for line in text.splitlines())
    return f'<p><strong>{escape(name)}</strong></p><pre style="white-space:pre-wrap">{shown}</pre>'
