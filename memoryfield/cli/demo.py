"""The main job on the example field, told as a story: open, embed, search three ways, and a report on the whole.

Prints to the terminal and writes the report as one HTML page.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import html_target, say
from memoryfield.index.recipes import CONTENT

QUESTIONS = (
    ("vector", "the boat hoist will not pick up properly on a frosty morning"),
    ("keyword", "T40 labels blank"),
    ("hybrid", "saw blade wanders off the line"),
)


def run_demo(path: Path | None, model: str, out: Path) -> int:
    """Run the story on *path* (by default the example field) with *model* and write *out*."""
    from memoryfield.examples import example_field
    from memoryfield.opening import open_field
    from memoryfield.study.report import Report, Section, make_report

    html_target(out)  # before the work, not after it
    started = time.perf_counter()

    def tell(section: Section) -> None:
        say(f"\n== {section.heading}\n{section.text}")

    example = example_field()
    probes = example.with_name(f"{example.name}.probes.jsonl") if path is None else None
    # families are found by title, summary and body alone: with that recipe for all, each page is embedded once
    with open_field(path or _own_copy(example, out.parent), model=model, recipe=CONTENT) as field:
        embedder = field.embedder()
        because = getattr(embedder, "chosen_because", None)
        say(f"== Model\n{embedder.model_code} from {embedder.source}" + (f": {because}" if because else ""))
        parts: list[tuple[str, str, Callable[[], Any]]] = [
            (
                "Embed what changed",
                "Only pages that changed since the last time are embedded, each once: title, summary and body.",
                field.sync,
            )
        ]
        for retriever, question in QUESTIONS:
            ask = partial(field.search, question, k=5, retriever=retriever)
            parts.append((f'Search by {retriever}: "{question}"', "The five pages that answer best.", ask))
        title = f"memoryfield demo: {field.name}"
        first = make_report(title, parts, tell)
        rest = field.report(probes=probes if probes is not None and probes.is_file() else None, told=tell)
        report = Report(title, first.sections + rest.sections, rest.made)
    report.save(out)
    say(f"\n{out} written in {time.perf_counter() - started:.1f} s; open it in a browser")
    return DONE if not any(section.failed for section in report) else NOTHING


def _own_copy(example: Path, folder: Path) -> Path:
    """Return the example itself in a source tree; a copy of an installed one, whose directory is not for indexes."""
    if "site-packages" not in example.parts and "dist-packages" not in example.parts:
        return example
    copy = folder / example.name
    if not copy.is_dir():
        shutil.copytree(example, copy)
    return copy
