"""Does search surface the page that holds the answer? Probes put to several retrievers, all at once.

Each retriever ranks the pages for all probes in one go (``retrieve.bulk``); a few probes are asked once more one by
one, for what a single question costs. What comes of it is an ``Evaluation``.
"""

from __future__ import annotations

import hashlib
import math
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from memoryfield.display import counted
from memoryfield.errors import QueryError
from memoryfield.retrieve.bulk import Rankings, rank_many
from memoryfield.retrieve.search import search
from memoryfield.study.evaluation.differences import diff
from memoryfield.study.evaluation.evaluation import SCHEMA, Evaluation
from memoryfield.study.evaluation.files import load_evaluation
from memoryfield.study.evaluation.groups import Groups, GroupsLike
from memoryfield.study.evaluation.intervals import CONFIDENCE, check_resampling
from memoryfield.study.evaluation.outcomes import KEPT, Run, outcome, quantile_threshold
from memoryfield.study.probes.probe import Probe, Probes

if TYPE_CHECKING:
    from memoryfield.format.snapshot import Entry, Snapshot
    from memoryfield.index.keywords import KeywordIndex
    from memoryfield.index.syncing import Progress
    from memoryfield.index.termscores import TermScores
    from memoryfield.index.vectors import VectorIndex
    from memoryfield.retrieve.search import SearchTarget

__all__ = ["Evaluation", "diff", "evaluate", "load_evaluation"]

RETRIEVERS = ("vector", "keyword", "hybrid")
KS = (1, 3, 5, 10)
DEPTH = 100
TIMED = 20
KEPT_AT_GATE = 0.9  # of the answerable probes, where no gate is given

# Short names for what the published comparisons have beside vector, keyword and hybrid.
_NAMED: Mapping[str, Mapping[str, Any]] = {"hashed": {"retriever": "vector", "model": "hashing-1024"}}
_SETTINGS = ("retriever", "model", "recipe")

RetrieverLike: TypeAlias = str | tuple[str, Mapping[str, Any]]


class GateLike(Protocol):
    """Something that says of rankings whether they hold an answer: the higher the score, the surer."""

    @property
    def threshold(self) -> float:
        """Score from which a question passes."""
        ...

    def scores(self, rankings: Rankings) -> npt.ArrayLike:
        """Return one score a question."""
        ...


@dataclass(frozen=True)
class _Wanted:
    """A retriever as it was asked for."""

    label: str
    retriever: str
    model: Any = None
    recipe: str | None = None


TargetOf: TypeAlias = "Callable[[str, Any, str | None], SearchTarget]"


def evaluate(
    target_of: TargetOf,
    probes: Iterable[Probe],
    retrievers: Sequence[RetrieverLike] = RETRIEVERS,
    ks: Sequence[int] = KS,
    *,
    families: GroupsLike | None = None,
    gate: float | GateLike | Mapping[str, float | GateLike] | None = None,
    depth: int = DEPTH,
    timed: int = TIMED,
    resamples: int = 2000,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Put probes to retrievers; see ``MemoryField.evaluate`` for the arguments.

    Args:
        target_of: Gives what to search, for a retriever, a model and a recipe.
        probes: The probes.
        retrievers: Names, or pairs of a label and settings.
        ks: For recall@k.
        families: For the family figures.
        gate: From which score a question passes.
        depth: How many pages of each ranking count; an answer below is not found.
        timed: How many probes are asked one by one as well.
        resamples: Of the bootstrap.
        confidence: Of the intervals.
        seed: Of the bootstrap.
        progress: Called with pages embedded and pages to embed, for each index that is behind.

    Raises:
        QueryError: Something asked for makes no sense.
        ModelNotReady: A model cannot be loaded.
    """
    asked = _checked_probes(probes, families)
    wanted = _wanted(retrievers)
    ks = _checked_ks(ks)
    depth = max(_whole("depth", depth, 1, 100_000), max(ks), 10)
    timed = _whole("timed", timed, 0, 1_000_000)
    check_resampling(resamples, seed, confidence)
    gates = _gates(gate, wanted)

    runs: list[Run] = []
    indexes = _Indexes(progress)
    for one in wanted:
        target = indexes.in_step(target_of(one.retriever, one.model, one.recipe), one.retriever)
        rankings = rank_many(target, [probe.question for probe in asked], one.retriever, depth, sync=False)
        runs.append(_run(one, rankings, asked, gates.get(one.label), _timings(target, one, asked, timed)))

    notes = indexes.notes
    pages = indexes.entries()
    there = {filename.removesuffix(".md") for filename in pages}
    gone = sorted({name for probe in asked for name in probe.gold} - there)
    if gone:
        shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        notes.append(f"gold pages that are not in the field count as not found: {shown}")
    bare = sum(probe.answerable and not probe.gold for probe in asked)
    if bare:
        notes.append(f"{counted(bare, 'probe')} without gold pages: not counted")
    if not any(probe.counts for probe in asked):
        notes.append("no probe has a page that answers it: recall, MRR and nDCG have no value")
    if max(ks) > len(there):
        size = counted(len(there), "page")
        notes.append(f"the field has {size}, fewer than k={max(ks)}: recall there is what was found at all")
    digest = hashlib.sha256()
    for filename, entry in sorted(pages.items()):
        digest.update(filename.encode() + b"\0" + entry.sha256)
    about = {
        "schema": SCHEMA,
        "field": indexes.field,
        "pages": len(there),
        "field_sha256": digest.hexdigest(),
        "probes_sha256": asked.digest,
        "ks": list(ks),
        "depth": depth,
        "resamples": resamples,
        "confidence": confidence,
        "seed": seed,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
    }
    return Evaluation(asked, tuple(runs), about, tuple(notes))


class _Kept:
    """A keyword index that reads the words of all probes once for all retrievers; all else goes through."""

    def __init__(self, inner: KeywordIndex) -> None:
        self._inner = inner
        self._read: tuple[frozenset[str], TermScores] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def term_scores(self, terms: Iterable[str]) -> TermScores:
        wanted = frozenset(terms)
        if self._read is None or self._read[0] != wanted:
            self._read = (wanted, self._inner.term_scores(sorted(wanted)))
        return self._read[1]


class _Indexes:
    """The indexes of an evaluation, each brought in step with the pages once.

    Attributes:
        field: What the field is called.
        notes: What there is to say about pages without a vector.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._snapshot: Snapshot | None = None
        self._source: Any = None
        self._done: set[int] = set()
        self._kept: dict[int, _Kept] = {}
        self._held: list[Any] = []  # so that no number of an index is given again
        self.field = ""
        self.notes: list[str] = []

    def in_step(self, target: SearchTarget, retriever: str) -> SearchTarget:
        """Bring what a retriever needs in step; return the target to search."""
        self.field, self._source = target.field, target.source
        self._held.append(target)
        vectors, keywords = target.vectors, target.keywords
        if vectors is not None and retriever != "keyword" and id(vectors) not in self._done:
            report = vectors.sync(verify=False, progress=self._progress)
            self._snapshot = vectors.snapshot or self._snapshot
            self._done.add(id(vectors))
            for count, what in ((len(report.refused), "without a vector"), (len(report.waiting), "changed just now")):
                note = f"{counted(count, 'page')} {what} of {report.model_code}, recipe {report.recipe}"
                if count and note not in self.notes:
                    self.notes.append(note)
        if keywords is None or retriever == "vector":
            return target
        if id(keywords) not in self._done:
            keywords.sync(verify=False, snapshot=self._snapshot)
            self._snapshot = self._snapshot or keywords.snapshot
            self._done.add(id(keywords))
            self._kept[id(keywords)] = _Kept(keywords)
        return replace(target, keywords=cast("KeywordIndex", self._kept[id(keywords)]))

    def entries(self) -> Mapping[str, Entry]:
        """Return the pages as the last sync saw them."""
        return (self._snapshot or self._source.snapshot()).entries


def _run(
    one: _Wanted,
    rankings: Rankings,
    probes: Probes,
    gate: float | GateLike | None,
    times: tuple[tuple[float, ...], tuple[float, ...]],
) -> Run:
    gold, family, top, scores = outcome(rankings, probes)
    threshold, kind = math.nan, ""
    answerable = np.array([probe.answerable for probe in probes], bool)
    if gate is None:
        if not answerable.all():
            threshold = quantile_threshold(np.array(scores)[answerable], KEPT_AT_GATE)
            if not math.isnan(threshold):
                kind = f"set on these probes, to keep {KEPT_AT_GATE:.0%} of the answerable ones"
    elif isinstance(gate, (int, float)):
        threshold, kind = float(gate), "given"
    else:
        found = np.asarray(gate.scores(rankings), np.float64)
        if found.shape != (len(probes),):
            raise QueryError(
                f"the gate gave scores of shape {found.shape}; expected one for each of {len(probes)} probes"
            )
        scores = tuple(x if math.isfinite(x) else -math.inf for x in found.tolist())
        threshold, kind = float(gate.threshold), "calibrated"
        if not threshold < math.inf:
            raise QueryError(f"the gate for {one.label!r} has the threshold {threshold}; give a number")
    return Run(
        one.label,
        rankings.retriever,
        rankings.model_code,
        rankings.recipe,
        gold,
        family,
        top,
        scores,
        threshold,
        kind,
        *times,
        float(rankings.embedding_seconds.sum() + rankings.search_seconds.sum()),
    )


class _Timed:
    """A model or an index that notes how long questions take to embed; all else goes through."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self.seconds = 0.0
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def embed_query(self, text: str) -> Any:
        started = time.perf_counter()
        try:
            return self._inner.embed_query(text)
        finally:
            self.seconds += time.perf_counter() - started


def _timings(
    target: SearchTarget, one: _Wanted, probes: Probes, timed: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return milliseconds of embedding and of the rest, for searches one by one; the first warms up.

    It is the search that people call, pages read and snippets made, without the look for changed pages.
    """
    if not timed:
        return (), ()
    ordered = sorted(probes, key=lambda probe: probe.id)
    count = min(timed, len(ordered))
    chosen = [ordered[(2 * number + 1) * len(ordered) // (2 * count)].question for number in range(count)]
    model = _Timed(target.vectors.embedder if target.vectors is not None else None)
    if target.vectors is not None:
        target = replace(target, vectors=cast("VectorIndex", _Timed(target.vectors, embedder=model)))
    embedding, searching = [], []
    for question in [chosen[0], *chosen]:
        model.seconds = 0.0
        started = time.perf_counter()
        search([target], question, k=KEPT, retriever=one.retriever, sync=False)
        seconds = time.perf_counter() - started
        embedding.append(1000 * model.seconds)
        searching.append(1000 * (seconds - model.seconds))
    return tuple(embedding[1:]), tuple(searching[1:])


def _checked_probes(probes: Iterable[Probe], families: GroupsLike | None) -> Probes:
    asked = probes if isinstance(probes, Probes) else Probes(probes)
    if not asked:
        raise QueryError("there are no probes; read_probes(path) reads a file of them")
    seen: set[str] = set()
    for probe in asked:
        if probe.id in seen:
            raise QueryError(f"two probes have the id {probe.id!r}; each needs its own, so that runs can be compared")
        seen.add(probe.id)
    return asked if families is None else asked.with_families(Groups.of(families))


def _wanted(retrievers: Sequence[RetrieverLike]) -> list[_Wanted]:
    if isinstance(retrievers, str):
        retrievers = (retrievers,)
    found: list[_Wanted] = []
    given: Any  # a notebook may hand in anything
    for given in retrievers:
        if isinstance(given, str):
            label, settings = given, _NAMED.get(given, {"retriever": given})
        elif isinstance(given, (tuple, list)) and len(given) == 2 and _is_setting(*given):
            label, settings = given
        else:
            raise QueryError(
                f"a retriever is a name such as 'vector', or a label with settings such as ('content', {{'retriever': "
                f"'vector', 'recipe': 'content'}}), not {given!r}"
            )
        unknown = sorted(set(settings) - set(_SETTINGS), key=str)
        if unknown:
            raise QueryError(f"{label!r} has a setting {unknown[0]!r}; there are: {', '.join(_SETTINGS)}")
        if not label.strip() or any(one.label == label for one in found):
            raise QueryError(f"two retrievers are called {label!r}; give each a label of its own")
        found.append(_Wanted(label, settings.get("retriever", "vector"), settings.get("model"), settings.get("recipe")))
    if not found:
        raise QueryError("no retriever is named; there are vector, keyword, hybrid and hashed")
    return found


def _is_setting(label: Any, settings: Any) -> bool:
    return isinstance(label, str) and isinstance(settings, Mapping)


def _checked_ks(ks: Sequence[int]) -> tuple[int, ...]:
    if isinstance(ks, int) or not isinstance(ks, Iterable):
        ks = (ks,)
    return tuple(sorted({_whole("k", k, 1, 100_000) for k in ks})) or KS


def _whole(what: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise QueryError(f"{what}={value!r}: give a whole number from {least} to {most:,}")
    return int(value)


def _gates(gate: Any, wanted: Sequence[_Wanted]) -> dict[str, Any]:
    given = dict(gate) if isinstance(gate, Mapping) else {one.label: gate for one in wanted if gate is not None}
    for label, one in given.items():
        is_number = isinstance(one, (int, float)) and not isinstance(one, bool)
        if label not in {each.label for each in wanted}:
            raise QueryError(f"there is a gate for {label!r} and no retriever of that label")
        if is_number and not math.isfinite(one):
            raise QueryError(f"the gate for {label!r} is {one!r}; give a number")
        if not is_number and not (hasattr(one, "scores") and hasattr(one, "threshold")):
            raise QueryError(f"the gate for {label!r} is a {type(one).__name__}; give a number or a gate of the field")
    return given


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("memoryfield-lab", "sentence-transformers", "onnxruntime", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
