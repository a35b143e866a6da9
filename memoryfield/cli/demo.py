"""The main job on the example field, told as a story: open, embed, search three ways, map, near-duplicates.

Prints to the terminal and writes one HTML page with the same content and a map to explore.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from memoryfield.cli import DONE
from memoryfield.cli.output import html_target, say, write_html
from memoryfield.display import escape

QUESTIONS = (
    ("vector", "the boat hoist will not pick up properly on a frosty morning"),
    ("keyword", "T40 labels blank"),
    ("hybrid", "saw blade wanders off the line"),
)
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top }
h2 { margin-top: 2.5rem }
.memoryfield { overflow-x: auto }
.map { background: #fff }
"""


def run_demo(path: Path | None, model: str, out: Path) -> int:
    """Run the story on *path* (by default the example field) with *model* and write *out*."""
    from memoryfield.examples import example_field
    from memoryfield.opening import open_field

    html_target(out)  # before the work, not after it
    started = time.perf_counter()
    parts: list[tuple[str, str]] = []

    def tell(heading: str, result: object) -> None:
        say(f"\n== {heading}\n{result!r}" if not isinstance(result, str) else f"\n== {heading}\n{result}")
        html = result._repr_html_() if hasattr(result, "_repr_html_") else f"<p>{escape(result)}</p>"
        parts.append((heading, html))

    with open_field(path or _own_copy(example_field(), out.parent), model=model) as field:
        embedder = field.embedder()
        because = getattr(embedder, "chosen_because", None)
        tell("Model", f"{embedder.model_code} from {embedder.source}" + (f": {because}" if because else ""))
        report = field.sync()
        tell("Embed what changed", report)
        tell("The field", field)
        for retriever, question in QUESTIONS:
            tell(f'Search by {retriever}: "{question}"', field.search(question, k=5, retriever=retriever))
        tell("Near duplicates", field.near_duplicates())
        layout = field.layout()
        say(f"\n== Map\n{layout!r}")
        figure = layout.figure().to_html(full_html=False, include_plotlyjs=True)
        parts.append(("Map", f'<div class="map">{figure}</div>'))
        name = field.name
    write_page(out, f"memoryfield demo: {name}", parts)
    say(f"\n{out} written in {time.perf_counter() - started:.1f} s; open it in a browser")
    return DONE


def _own_copy(example: Path, folder: Path) -> Path:
    """Return the example itself in a source tree; a copy of an installed one, whose directory is not for indexes."""
    if "site-packages" not in example.parts and "dist-packages" not in example.parts:
        return example
    copy = folder / example.name
    if not copy.is_dir():
        shutil.copytree(example, copy)
    return copy


def write_page(out: Path, title: str, parts: list[tuple[str, str]]) -> None:
    """Write sections of HTML as one page that needs nothing else."""
    sections = "".join(f"<section><h2>{escape(heading)}</h2>{html}</section>" for heading, html in parts)
    write_html(
        out,
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{sections}</body></html>",
    )


__all__ = ["QUESTIONS", "run_demo", "write_page"]
