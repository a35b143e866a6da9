"""A comparison as one HTML page without scripts, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryfield.display import Table, escape, plain
from memoryfield.study.comparison.figures import aligned_maps
from memoryfield.study.comparison.svg import distributions, heat_map, page_map
from memoryfield.study.comparison.tables import space_rows
from memoryfield.study.htmlpage import html_page, html_table

if TYPE_CHECKING:
    from memoryfield.study.comparison.changed import ChangedPages
    from memoryfield.study.comparison.comparison import Comparison

_MAPPED = 2000  # pages up to which "auto" draws with UMAP; beyond, it would take minutes
_EXPLAINED = (
    ("overlap@k", "share of a page's k nearest pages that both spaces name, mean over the pages"),
    ("RBO", "rank-biased overlap of the neighbours: the first places count most (persistence 0.9, 50 places)"),
    ("CKA, unbiased", "linear centred kernel alignment; the plain one is high by itself where pages are few"),
    ("correlation, ranks", "Pearson's and Spearman's, of the cosines of all pairs of pages"),
    ("mean cosine", "over all pairs; far above 0 means that the vectors crowd into a cone (anisotropy)"),
    ("hubness", "skewness of how often a page is among the k nearest of others; above 1 a few pages are everywhere"),
    ("s / 1,000 pages", "embedding alone, on this machine, at the load it had; measured over all runs so far"),
    (
        "load s",
        "from the model's name to its first vector, where it was not in memory; the first time of all is longer",
    ),
)


def html_report(comparison: Comparison, *, title: str = "", maps: str = "auto", n: int = 15) -> str:
    """Return a comparison as one HTML page.

    Args:
        comparison: What to show.
        title: Heading; by default made of the labels.
        maps: ``auto``, ``pca``, ``umap`` or ``none``.
        n: How many of the most different pages are shown.
    """
    heading = title or "Comparison of " + (", ".join(comparison.labels) or "embedding models")
    count = len(comparison.pages)
    tables = comparison.tables()
    parts = [f"<h1>{escape(heading, 200)}</h1>", f'<p class="soft">{escape(_summary(comparison))}</p>']
    parts += [_failures(comparison), "<h2>Spaces and what they cost</h2>", html_table(tables[0])]
    if len(comparison.spaces) > 1:
        parts += [
            "<h2>How alike they are</h2>",
            f"<figure>{heat_map(comparison)}<figcaption>Rank-biased overlap of the neighbours, mean over "
            f"{count:,} pages.</figcaption></figure>",
            html_table(tables[1]),
        ]
    if comparison.evaluation is not None:
        parts.append("<h2>Retrieval</h2>")
        parts += [html_table(table, heading=True) for table in comparison.evaluation.tables()]
        if comparison.differences:
            parts.append(html_table(comparison.differences.table(), heading=True))
    if picture := distributions(comparison):
        parts += ["<h2>Cosines of all pairs</h2>", f"<figure>{picture}</figure>"]
        parts.append(html_table(_shape_table(comparison)))
    if len(comparison.spaces) > 1 and count > 1:
        parts += _changed_section(comparison, maps, n)
    if comparison.notes:
        parts += ["<h2>Notes</h2>", "<ul>", *(f"<li>{escape(note)}</li>" for note in comparison.notes), "</ul>"]
    explained = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in _EXPLAINED)
    parts += ["<h2>What the words mean</h2>", f"<dl>{explained}</dl>"]
    return html_page(heading, "\n".join(parts))


def _summary(comparison: Comparison) -> str:
    spaces, count = len(comparison.spaces), len(comparison.pages)
    shown = f"{spaces} {'space' if spaces == 1 else 'spaces'} of {count:,} {'page' if count == 1 else 'pages'}."
    if len(comparison.likenesses) and count > 1:
        ranked = comparison.least_alike()
        (least, value), (most, largest) = ranked[0], ranked[-1]
        shown += f" Least alike: {least[0]} and {least[1]} (rank-biased overlap {value:.2f})."
        if len(ranked) > 1:
            shown += f" Most alike: {most[0]} and {most[1]} ({largest:.2f})."
    return shown


def _failures(comparison: Comparison) -> str:
    if not comparison.failed:
        return ""
    items = "".join(
        f"<li><strong>{escape(name)}</strong>: {escape(why)}</li>" for name, why in comparison.failed.items()
    )
    return f"<p>Could not be compared:</p><ul>{items}</ul>"


def _shape_table(comparison: Comparison) -> Table:
    columns = ("space", "5 %", "median", "95 %", "nearest", "largest hub", "in how many", "never near", "tied")
    rows = []
    for row in space_rows(comparison):
        cosines = [f"{row[key]:.2f}" for key in ("cosine_5", "cosine_50", "cosine_95", "nearest")]
        shares = [f"{row[key]:.0%}" for key in ("never_near", "tied")]
        rows.append([row["space"], *cosines, row["largest_hub"], f"{row['largest_hub_occurrences']:,}", *shares])
    notes = [
        f"largest hub: the page that is among the {comparison.k} nearest of most others; never near: pages that are "
        "among those of none; tied: pages whose last near neighbour and the next are equally near"
    ]
    return Table("", columns, rows, notes, right=frozenset(columns[1:]) - {"largest hub"})


def _changed_section(comparison: Comparison, maps: str, n: int) -> list[str]:
    """Return the most different pages of all pairs, and the maps of the pair that is least alike."""
    parts = ["<h2>Pages that are seen most differently</h2>", _changed_table(comparison.most_changed(n))]
    if maps == "none":
        return parts
    pair, _ = comparison.least_alike()[0]
    if maps == "auto" and len(comparison.pages) > _MAPPED:
        maps = "pca"
    both, kinds = aligned_maps(comparison, *pair, maps)
    row = {name: number for number, name in enumerate(comparison.pages)}
    here = comparison.most_changed(n, *pair)
    numbers = {row[page.name]: str(place) for place, page in enumerate(here, 1)}
    titles = [page.title for page in comparison.pages.values()]
    rbo = comparison.likenesses[pair].rbo
    figures = "".join(
        f"<figure><figcaption>{escape(label, 60)} ({kind})</figcaption>"
        f"{page_map(points, titles, rbo, numbers)}</figure>"
        for label, kind, points in zip(pair, kinds, both, strict=True)
    )
    named = "".join(f"<li>{escape(page.name, 80)} ({page.rbo:.2f})</li>" for page in here)
    caption = (
        "The two spaces that are least alike, the second map turned to fit the first. The fuller a point, the more "
        "alike both see the page; diamonds with numbers are the pages seen most differently. Maps help the eye and "
        "are no evidence."
    )
    return [
        *parts,
        "<h2>Two maps</h2>",
        f'<p class="soft">{caption}</p><div class="pair">{figures}</div><ol>{named}</ol>',
    ]


def _changed_table(changed: ChangedPages) -> str:
    """Return one row a page, with its neighbours in both spaces side by side."""
    rows = []
    for page in changed:
        sides = [(page.first, page.near_first, page.words_first), (page.second, page.near_second, page.words_second)]
        cells = [
            f"<strong>{escape(page.title, 120)}</strong><br><small>{escape(page.name, 120)}<br>overlap "
            f"{page.overlap:.2f}, RBO {page.rbo:.2f}</small>"
        ]
        for label, near, words in sides:
            listed = "".join(f"<li>{escape(name, 80)} <small>{cosine:.2f}</small></li>" for name, cosine in near)
            shared = f"in common: {escape(', '.join(words), 200)}" if words else "no rare words in common"
            read = f"; reads {page.read[label]:.0%} of the page" if label in page.read else ""
            cells.append(f"<small>{escape(label, 60)}</small><ol>{listed}</ol><small>{shared}{read}</small>")
        rows.append("<tr>" + "".join(f'<td class="wide">{cell}</td>' for cell in cells) + "</tr>")
    head = "".join(
        f'<th scope="col">{title}</th>' for title in ("page", "nearest in one space", "nearest in the other")
    )
    note = f"overlap: of the {changed.k} nearest. Rare words in common are a hint at why, not a proof."
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"<p><small>{note}</small></p>"
    )


def markdown(comparison: Comparison) -> str:
    """Return spaces, pairs and notes as Markdown tables."""
    blocks = []
    for table in comparison.tables():
        lines = [f"**{_cell(table.heading)}**", ""]
        if table.columns:
            lines.append("| " + " | ".join(_cell(title) for title in table.columns) + " |")
            lines.append("|" + "|".join("---:" if title in table.right else "---" for title in table.columns) + "|")
            lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in table.rows]
            lines.append("")
        lines += [f"- {_cell(note)}" for note in table.notes]
        blocks.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(blocks)


def _cell(value: object) -> str:
    """Return a value as Markdown text in one line: nothing in it is markup."""
    text = plain(value, 600).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for character in "\\`*_[]|$~":
        text = text.replace(character, "\\" + character)
    return text
