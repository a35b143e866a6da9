"""A report on a field: one HTML page without scripts that can be mailed, and read without this program.

Each section is made on its own. One that fails says so in its place, and the others stand.
"""

from __future__ import annotations

import html
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoryfield.advice import advice, at_command_line
from memoryfield.curate.secrets import find_secrets
from memoryfield.display import Table, escape
from memoryfield.errors import MemoryfieldError, QueryError
from memoryfield.exchange.outward import heed_secrets
from memoryfield.format.page import Page
from memoryfield.format.targets import HTML_STARTS, check_target, write_target
from memoryfield.places import cache_directory, state_directory
from memoryfield.study.htmlpage import html_page

Maker = Callable[[], Any]
_TAG = re.compile(r"<[^<>]*>")


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

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of the report looks like a key or a password, in words; nothing is shown whole."""
        found = []
        for section in self.sections:
            seen = html.unescape(_TAG.sub("\n", section.html))  # pictures hold titles that the text has not
            for secret in find_secrets(Page("report", seen.encode("utf-8", "replace"))):
                found.append(f"part {section.heading}: {secret.kind} {secret.shown}")
        return tuple(dict.fromkeys(found))

    def save(self, path: str | os.PathLike[str], *, on_secrets: str = "warn") -> Path:
        """Write the report and return where; a file that is no HTML page is never overwritten.

        Args:
            path: File to write.
            on_secrets: What to do when it shows what looks like keys or passwords: ``warn`` (a ``SecretWarning``),
                ``refuse`` or ``ignore``.

        Raises:
            QueryError: Something else stands there.
            SecretsFound: ``on_secrets="refuse"`` and there are such places; nothing was written.
        """
        heed_secrets(lambda: self.secrets, on_secrets)
        goal = Path(path).expanduser()
        goal.parent.mkdir(parents=True, exist_ok=True)
        write_target(
            check_target(goal, HTML_STARTS, what="HTML page", error=QueryError),
            self.to_html().encode("utf-8", "backslashreplace"),
        )
        return goal

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        how = advice(python="save(path) writes it as one HTML page", command="")
        notes = [how] if how else []
        rows = [
            (section.heading, "not made: " + section.text if section.failed else "made", f"{section.seconds:.1f} s")
            for section in self.sections
        ]
        return Table(self.title, ("section", "state", "time"), rows, notes)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def make_report(
    title: str,
    parts: Sequence[tuple[str, str, Maker]],
    told: Callable[[Section], object],
    *,
    private: Iterable[str | os.PathLike[str]] = (),
) -> Report:
    """Make each part of a report.

    Args:
        title: Its heading.
        parts: For each part its heading, how to read it, and what makes it: a value that shows itself as HTML and text.
        told: Called with each section when it is made.
        private: Files and directories that stand in the report by their own names alone: whoever gets it learns
            nothing of the directories above them.
    """
    hidden = _directories(private)
    sections = []
    for heading, about, make in parts:
        started = time.perf_counter()
        # whoever gets the page has no objects to call: advice is worded as commands to type
        with at_command_line():
            try:
                made = make()
                shown, text, failed = made._repr_html_(), repr(made), False
            except MemoryfieldError as error:
                shown, text, failed = f"<p>This part could not be made: {escape(error)}</p>", str(error), True
        shown, text = _without(shown, hidden), _without(text, hidden)
        section = Section(heading, about, shown, text, time.perf_counter() - started, failed)
        told(section)
        sections.append(section)
    return Report(title, tuple(sections), datetime.now(UTC))


def _directories(private: Iterable[str | os.PathLike[str]]) -> tuple[tuple[str, str], ...]:
    """Return what is to be replaced in a report, and by what, the longest first."""
    found: dict[str, str] = {}
    for path in private:
        place = Path(path).expanduser()
        for parent in (place.parent, place.absolute().parent, place.resolve().parent):
            if parent.is_absolute() and parent != Path(parent.anchor):
                found[str(parent) + os.sep] = ""
    for own, shown in ((cache_directory(), "(cache)"), (state_directory(), "(state)"), (Path.home(), "~")):
        if own.absolute() != Path(own.absolute().anchor):  # the home of some users of containers: it tells nothing
            found[str(own.absolute())] = shown
    found |= {escape(path): shown for path, shown in found.items()}
    return tuple(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def _without(text: str, hidden: Iterable[tuple[str, str]]) -> str:
    for path, shown in hidden:
        end = "" if path.endswith(os.sep) else r"(?![\w-])"  # the home of ann is not that of anna
        text = shown.join(re.split(re.escape(path) + end, text))
    return text
