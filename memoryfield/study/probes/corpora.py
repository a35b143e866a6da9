"""Fields made from what is at hand elsewhere: an agent's finished tasks, a page each.

A run makes the field agree with the tasks: pages of new tasks are added, pages of tasks that are gone are removed,
pages that are as they should be are not touched, and pages that are none of ours never are. What it does is one step
of the field's history and can be undone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoryfield.curate.history import keep_history
from memoryfield.display import Table, counted, plain
from memoryfield.errors import FieldNotFound, InvalidName, MemoryfieldError, QueryError
from memoryfield.format.changes import Change
from memoryfield.format.directory import PageDirectory
from memoryfield.format.edit import new_page
from memoryfield.format.names import slug
from memoryfield.format.page import SPECIAL_NAMES, Page
from memoryfield.format.targets import check_target, write_target
from memoryfield.study.probes.tasks import FINISHED, ReadTasks, RefusedRow, Task, normal_request, read_tasks

if TYPE_CHECKING:
    import pandas

_SOURCE = "source"  # keys of the frontmatter by which a page is known as ours
_TASK = "task"
_TITLE, _SUMMARY = 90, 200  # characters


@dataclass(frozen=True, repr=False)
class TasksReport:
    """What a run did, or with ``dry_run`` would do; page names.

    Attributes:
        path: The field's directory.
        label: What the source is called in the pages.
        added: Pages of tasks that had none.
        updated: Pages that were not what their task gives, since the task or the page was changed.
        removed: Pages whose task is gone or no longer finished.
        unchanged: Pages that are as they should be.
        held: Pages whose task was not found, kept since some rows could not be read.
        unfinished: How many tasks are not done.
        refused: Rows that are no task, and why.
        families: Family of each page, from the normal form of the request.
        dry_run: Nothing was written.
    """

    path: Path
    label: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    unfinished: int = 0
    refused: tuple[RefusedRow, ...] = ()
    families: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False

    def save_families(self, path: str | os.PathLike[str]) -> None:
        """Write the families as CSV (``page,family``), as ``evaluate(families=...)`` reads them.

        Raises:
            QueryError: Something else stands there.
        """
        out = io.StringIO(newline="")
        writer = csv.writer(out)  # lines end in CR LF as RFC 4180 has it, so that a CR in a cell is quoted
        writer.writerow(("page", "family"))
        writer.writerows((f"{page}.md", family) for page, family in sorted(self.families.items()))
        goal = check_target(path, (b"page,family",), what="file of families", error=QueryError)
        write_target(goal, out.getvalue().encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {**asdict(self), "path": str(self.path), "families": dict(self.families)}

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a page: ``page, what, family``."""
        import pandas

        kinds = ("added", "updated", "removed", "unchanged", "held")
        rows = [(page, kind, self.families.get(page)) for kind in kinds for page in getattr(self, kind)]
        return pandas.DataFrame(sorted(rows), columns=["page", "what", "family"])

    def _table(self) -> Table:
        counts = [(kind, len(getattr(self, kind))) for kind in ("added", "updated", "removed", "unchanged", "held")]
        said = ", ".join(f"{count:,} {kind}" for kind, count in counts if count) or "nothing to do"
        shown = [(kind, name) for kind, _ in counts if kind != "unchanged" for name in getattr(self, kind)]
        rows = [*shown[:20], *(("refused", f"{row.where}: {row.problem}") for row in self.refused[:20])]
        notes = [str(self.path)]
        if self.families:
            notes.append(f"{len(set(self.families.values())):,} families of requests")
        if self.unfinished:
            notes.append(f"{self.unfinished:,} tasks are not finished")
        if self.held:
            notes.append("no page is removed while rows are refused: they may be its task")
        more = max(len(shown) - 20, 0) + max(len(self.refused) - 20, 0)
        heading = f"Tasks of {self.label}: {said}" + (", dry run" if self.dry_run else "")
        return Table(heading, ("what", "page"), rows, notes, widths={"page": 120}, more=more)

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def from_tasks(
    source: str | os.PathLike[str],
    into: str | os.PathLike[str],
    *,
    table: str = "tasks",
    columns: Mapping[str, str] | None = None,
    statuses: Sequence[str] | None = FINISHED,
    label: str | None = None,
    dry_run: bool = False,
) -> TasksReport:
    """Make a field of an agent's finished tasks, or bring one up to date.

    Each task is a page: its request and its result, dated by its times. Pages know their task by the keys ``source``
    and ``task``; one that was renamed keeps its name, one that was edited by hand is written anew (``undo`` has it).

    Args:
        source: A SQLite database or JSON lines with request, result, status and times.
        into: The field's directory, made when missing.
        table: Table of the database.
        columns: What ``id, request, result, status, started`` and ``finished`` are called, where it is unusual.
        statuses: Which count as finished; None for all.
        label: What the source is called in the pages, by default the file's name; pages of other sources stay.
        dry_run: Only say what would be done.

    Returns:
        The report; ``mf.open_field(report.path)`` opens the field.

    Raises:
        RowError: The source cannot be read at all.
        PageChanged: A page was changed at the same moment; nothing was written.
        FieldError: The directory cannot be written.
    """
    named = plain(Path(source).stem if label is None else label, 100)
    if not named:
        raise QueryError("the label is empty; give what the source is called")
    tasks = read_tasks(source, table=table, columns=columns, statuses=statuses)
    place = Path(into).expanduser()
    try:
        directory = PageDirectory(place, create=not dry_run)
    except FieldNotFound:
        if not dry_run or place.exists():
            raise
        changes, report = _plan(tasks, [], named, place)
        return report
    if not dry_run:
        keep_history(directory)
    changes, report = _plan(tasks, list(directory.pages()), named, directory.path, dry_run=dry_run)
    if changes and not dry_run:
        directory.apply(changes, verb="tasks", note=f"{named}: {counted(len(changes), 'page')}")
    return report


def _plan(
    tasks: ReadTasks, pages: Sequence[Page], label: str, path: Path, *, dry_run: bool = True
) -> tuple[list[Change], TasksReport]:
    marker = f"tasks:{label}"
    ours: dict[str, Page] = {}
    for page in pages:
        task = page.frontmatter.get(_TASK)
        if page.frontmatter.get(_SOURCE) == marker and isinstance(task, str) and task not in ours:
            ours[task] = page  # a second page of one task is somebody's copy
    taken = {page.name for page in pages} | SPECIAL_NAMES
    refused = list(tasks.refused)
    changes: list[Change] = []
    families: dict[str, str] = {}
    added, updated, unchanged = [], [], []
    for one in tasks.finished:
        try:
            raw = _page(one, marker)
        except MemoryfieldError as error:
            refused.append(RefusedRow(f"task {plain(one.id, 60)}", str(error)))
            continue
        page_now = ours.get(one.id)
        name = page_now.name if page_now is not None else _name(one, taken)
        taken.add(name)
        families[name] = "request-" + hashlib.sha256(normal_request(one.request).encode()).hexdigest()[:10]
        if page_now is None:
            changes.append(Change(name, raw, absent=True))
            added.append(name)
        elif page_now.raw != raw:
            changes.append(Change(name, raw, if_sha256=page_now.sha256))
            updated.append(name)
        else:
            unchanged.append(name)
    known = {task.id for task in tasks.finished}
    gone = sorted(page.name for task, page in ours.items() if task not in known)
    held = gone if refused else []
    removed = [] if refused else gone
    by_name = {page.name: page for page in pages}
    changes += [Change(name, None, if_sha256=by_name[name].sha256) for name in removed]
    report = TasksReport(
        path,
        label,
        tuple(sorted(added)),
        tuple(sorted(updated)),
        tuple(removed),
        tuple(sorted(unchanged)),
        tuple(held),
        len(tasks.unfinished),
        tuple(refused),
        families,
        dry_run,
    )
    return changes, report


def _page(task: Task, marker: str) -> bytes:
    """Return the bytes of a task's page; the same for the same task, whenever it is made."""
    keys: dict[str, Any] = {_SOURCE: marker, _TASK: task.id}
    return new_page(
        title=_first_line(task.request, _TITLE),
        summary=_first_line(task.result, _SUMMARY) or None,
        body=f"## Request\n\n{task.request.strip()}\n\n## Result\n\n{task.result.strip() or '(none)'}\n",
        uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{marker}\0{task.id}")),
        created=task.started or task.finished,
        updated=task.finished or task.started,
        **keys,
    )


def _first_line(text: str, longest: int) -> str:
    return plain(next((line for line in text.splitlines() if line.strip(" \t#*-_>`")), "").strip(" \t#*-_>`"), longest)


def _name(task: Task, taken: set[str]) -> str:
    for title in (_first_line(task.request, _TITLE), f"task {task.id}"):
        try:
            return slug(title, taken)
        except InvalidName:
            continue
    return slug(f"task {hashlib.sha256(task.id.encode()).hexdigest()[:12]}", taken)
