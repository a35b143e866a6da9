"""One HTML page that stands alone: no network, no script, light and dark, readable on a small screen and on paper."""

from __future__ import annotations

from collections.abc import Sequence

from memoryfield.display import Table, escape

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --raised: #f4f5f6; --ink: #1b1d1f; --soft: #5a6066;
  --line: #d5d9dd;
  --value: #0072B2; --on-value: #ffffff; --link: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --raised: #1d2125; --ink: #e8eaec; --soft: #a4abb2;
  --line: #3a4046; --value: #56B4E9; --on-value: #10131a; --link: #7cc4f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .4rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { max-width: 46rem; margin: .4rem 0; }
.soft, small, figcaption { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  min-width: 3rem; overflow-wrap: break-word; }
th { color: var(--soft); font-weight: 600; }
th.r, td.r { text-align: right; white-space: nowrap; }
td.wide { min-width: 16rem; max-width: 26rem; overflow-wrap: anywhere; }
td ol { margin: .2rem 0; padding-left: 1.3rem; }
figure { margin: .8rem 0; }
svg { display: block; max-width: 100%; height: auto; color: var(--ink); }
svg text { fill: var(--ink); font-family: system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
ul { padding-left: 1.2rem; max-width: 52rem; }
dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0 0 0 1.2rem; max-width: 46rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
""".strip()


def html_page(title: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: Shown in the browser's tab; escaped here.
        body: HTML, escaped by whoever made it.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # even if something slipped through: nothing is fetched and nothing runs
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def html_table(table: Table, wide: Sequence[str] = (), heading: bool = False) -> str:
    """Return a table as HTML with its notes, to be scrolled where it is too wide.

    Args:
        table: What to show.
        wide: Titles of the columns that hold running text.
        heading: Show the table's own heading.
    """
    classes = ["r" if title in table.right else "wide" if title in wide else "" for title in table.columns]
    marks = [f' class="{name}"' if name else "" for name in classes]
    limits = [table.widths.get(title, 200) for title in table.columns]
    head = "".join(
        f'<th scope="col"{mark}>{escape(text)}</th>' for text, mark in zip(table.columns, marks, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{m}>{escape(v, limit)}</td>" for v, m, limit in zip(row, marks, limits, strict=True))
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in table.notes)
    above = f"<p><strong>{escape(table.heading)}</strong></p>" if heading else ""
    return f'{above}<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}'
