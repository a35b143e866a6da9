"""What is wrong with probes: pages that are not there, repeats, and questions that give the answer away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from memoryfield.display import Table
from memoryfield.errors import PageNotFound
from memoryfield.index.words import display_text, fold

if TYPE_CHECKING:
    import pandas

    from memoryfield.study.probes.probe import Pages, Probe

Level = Literal["error", "warning"]

FEWEST_COPIED = 5  # words in a row; shorter runs are shared by chance ("how do I get the")
_LEAST_SHARE = 0.5  # of the question's words
_SHOWN = 50
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ProbeFinding:
    """One thing that is wrong with a probe.

    Attributes:
        level: ``error`` (the figures would be wrong) or ``warning`` (they would say less than they seem to).
        probe: Id of the probe; empty where all of them are meant.
        kind: ``missing gold``, ``no gold``, ``duplicate id``, ``duplicate question``, ``copied`` or ``nothing
            answerable``.
        message: What was found, and what to do.
        overlap: For ``copied``: length of the longest run of words that question and page share, by the number of
            words of the question.
    """

    level: Level
    probe: str
    kind: str
    message: str
    overlap: float | None = None

    def __str__(self) -> str:
        return f"{self.level} {self.kind} {self.probe or 'probes'}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values that JSON can hold."""
        return asdict(self)


class ProbeFindings(Sequence[ProbeFinding]):
    """What a check of probes found: errors first, each by kind, in the order of the probes."""

    def __init__(self, findings: Iterable[ProbeFinding] = ()) -> None:
        self._items = tuple(sorted(findings, key=lambda finding: (finding.level != "error", finding.kind)))

    @overload
    def __getitem__(self, index: int) -> ProbeFinding: ...
    @overload
    def __getitem__(self, index: slice) -> ProbeFindings: ...
    def __getitem__(self, index: int | slice) -> ProbeFinding | ProbeFindings:
        return ProbeFindings(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[ProbeFinding]:
        return iter(self._items)

    def of_kind(self, kind: str) -> ProbeFindings:
        """Return the findings of one kind."""
        return ProbeFindings(finding for finding in self._items if finding.kind == kind)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a finding: ``level, probe, kind, message, overlap``."""
        import pandas

        columns = ["level", "probe", "kind", "message", "overlap"]
        return pandas.DataFrame([finding.to_dict() for finding in self._items], columns=columns)

    def _table(self) -> Table:
        errors = sum(finding.level == "error" for finding in self._items)
        warnings = len(self._items) - errors
        parts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
        rows = [(f.level, f.kind, f.probe, f.message) for f in self._items[:_SHOWN]]
        return Table(
            f"Probes: {', '.join(parts) or 'no findings'}",
            ("level", "kind", "probe", "what"),
            rows,
            widths={"probe": 30, "what": 160},
            more=max(len(self._items) - _SHOWN, 0),
        )

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def check_probes(probes: Sequence[Probe], field: Pages) -> ProbeFindings:
    """Compare probes with the field that they are about."""
    names = set(field.names())
    texts = _Texts(field)
    found: list[ProbeFinding] = []
    ids: dict[str, int] = {}
    questions: dict[str, str] = {}
    for number, probe in enumerate(probes, start=1):
        if probe.id in ids:
            found.append(_error(probe, "duplicate id", f"probe {ids[probe.id]} has this id too; give it another"))
        ids.setdefault(probe.id, number)
        key = " ".join(words_of(probe.question)) or probe.question.strip()
        if key in questions:
            message = f"asks the same as {questions[key]}; a question that stands twice counts twice"
            found.append(ProbeFinding("warning", probe.id, "duplicate question", message))
        questions.setdefault(key, probe.id)
        missing = sorted(probe.gold - names)
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            message = f"not in the field: {shown}; a page that is not there is never found"
            found.append(_error(probe, "missing gold", message))
        if probe.answerable and not probe.gold:
            message = "has no gold pages and is not said to be unanswerable; it counts nowhere"
            found.append(_error(probe, "no gold", message))
        found += _copied(probe, sorted(probe.gold & names), texts)
    if probes and not any(probe.counts for probe in probes):
        message = "no probe has a page that answers it; recall and ranks have no value"
        found.append(ProbeFinding("error", "", "nothing answerable", message))
    if not probes:
        found.append(ProbeFinding("error", "", "nothing answerable", "there are no probes"))
    return ProbeFindings(found)


def _error(probe: Probe, kind: str, message: str) -> ProbeFinding:
    return ProbeFinding("error", probe.id, kind, message)


def _copied(probe: Probe, gold: Sequence[str], texts: _Texts) -> Iterator[ProbeFinding]:
    words = words_of(probe.question)
    best: list[str] = []
    where = ""
    for name in gold:
        run = longest_run(words, texts[name])
        if len(run) > len(best):
            best, where = run, name
    share = len(best) / len(words) if words else 0.0
    if len(best) >= FEWEST_COPIED and share >= _LEAST_SHARE:
        message = (
            f"{len(best)} of its {len(words)} words stand in a row in {where} ({' '.join(best)}); such a question "
            "is found by any search: say it in other words"
        )
        yield ProbeFinding("warning", probe.id, "copied", message, round(share, 4))


class _Texts:
    """The words of pages, read when they are needed, in one string with a blank around each."""

    def __init__(self, field: Pages) -> None:
        self._field = field
        self._known: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            try:
                self._known[name] = spaced(words_of(self._field.read(name).text))
            except PageNotFound:  # deleted a moment ago
                self._known[name] = " "
        return self._known[name]


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded as the keyword index folds them; scripts without spaces by character."""
    return _WORD.findall(fold(display_text(text)).casefold())


def spaced(words: Sequence[str]) -> str:
    """Return words in one string with a blank around each, to look for runs in."""
    return f" {' '.join(words)} "


def longest_run(words: Sequence[str], text: str) -> list[str]:
    """Return the longest run of *words* that stands in *text*, which comes from ``spaced``; the first of equals."""
    start, longest, at = 0, 0, 0
    for end in range(1, len(words) + 1):
        while start < end and spaced(words[start:end]) not in text:
            start += 1
        if end - start > longest:
            longest, at = end - start, start
    return list(words[at : at + longest])
