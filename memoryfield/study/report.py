"""A report on a field: one HTML page without scripts that can be mailed, and read without this program.

Each section is made on its own. One that fails says so in its place, and the others stand.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoryfield.advice import advice
from memoryfield.display import Table, escape
from memoryfield.errors import MemoryfieldError, QueryError
from memoryfield.format.targets import HTML_STARTS, check_target, write_target
from memoryfield.study.htmlpage import html_page

Maker = Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Attributes:
        heading: What it is about.
        about: How to read it, in one or two sentences.
        html: What was found.
        text: The same as plain text.
        seconds: Time that it took.
        failed: Whether it could not be made; *text* says why.
    """

    heading: str
    about: str
    html: str
    text: str
    seconds: float
    failed: bool = False


@dataclass(frozen=True, repr=False)
class Report:
    """What a report found.

    Attributes:
        title: Its heading.
        sections: Its parts, in order.
        made: When.
    """

    title: str
    sections: tuple[Section, ...]
    made: datetime

    def __len__(self) -> int:
        return len(self.sections)

    def __iter__(self) -> Iterator[Section]:
        return iter(self.sections)

    def to_html(self) -> str:
        """Return the report as one HTML page that asks for nothing from elsewhere."""
        contents = "".join(
            f'<li><a href="#part-{number}">{escape(section.heading)}</a>{" (not made)" if section.failed else ""}</li>'
            for number, section in enumerate(self.sections)
        )
        parts = "".join(
            f'<section id="part-{number}"><h2>{escape(section.heading)}</h2><p class="soft">{escape(section.about)}</p>'
            f'<div class="scroll">{section.html}</div></section>'
            for number, section in enumerate(self.sections)
        )
        when = f'<p class="soft">Made {self.made:%Y-%m-%d %H:%M} UTC.</p>'
        body = (
            f'<header><h1>{escape(self.title)}</h1>{when}</header><nav aria-label="Contents"><ul>{contents}</ul></nav>'
        )
        return html_page(self.title, f"{body}<main>{parts}</main>")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report and return where; a file that is no HTML page is never overwritten.

        Raises:
            QueryError: Something else stands there.
        """
        goal = Path(path).expanduser()
        goal.parent.mkdir(parents=True, exist_ok=True)
        write_target(
            check_target(goal, HTML_STARTS, what="HTML page", error=QueryError),
            self.to_html().encode("utf-8", "backslashreplace"),
        )
        return goal

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        notes = advice(python="save(path) writes it as one HTML page", command="")
        rows = [
            (section.heading, "not made: " + section.text if section.failed else "made", f"{section.seconds:.1f} s")
            for section in self.sections
        ]
        return Table(self.title, ("section", "state", "time"), rows, notes)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def make_report(title: str, parts: Sequence[tuple[str, str, Maker]], told: Callable[[Section], object]) -> Report:
    """Make each part of a report.

    Args:
        title: Its heading.
        parts: For each part its heading, how to read it, and what makes it: a value that shows itself as HTML and text.
        told: Called with each section when it is made.
    """
    sections = []
    for heading, about, make in parts:
        started = time.perf_counter()
        try:
            made = make()
            html, text, failed = made._repr_html_(), repr(made), False
        except MemoryfieldError as error:
            html, text, failed = f"<p>This part could not be made: {escape(error)}</p>", str(error), True
        section = Section(heading, about, html, text, time.perf_counter() - started, failed)
        told(section)
        sections.append(section)
    return Report(title, tuple(sections), datetime.now(UTC))
