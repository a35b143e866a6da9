"""How near is near in this field: many answers to that question at once, weighed by what the curator says.

A hypothesis is a view (a mixture of the kinds of evidence), a cut through its tree and how soft that cut is. Before any
answer the weights come from the field itself: one cut serves locally scaled similarities in most fields, and the mean
silhouette of the contents tells of a field whose families are broad. Each answer multiplies the weight of a hypothesis
by the probability that it gave to the answer, so that answers teach breadth and which evidence misleads. Asked are the
pairs on which the hypotheses, sure as each may be, disagree most (mutual information); of these first the one that is
least sure.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memoryfield.curate.linkage import FloatArray, IntArray, Tree, constrained_average, silhouettes
from memoryfield.curate.settings import Settings

Pair = tuple[int, int]
Tile = Mapping[str, FloatArray]

_GRID = np.arange(-0.3, 0.9, 0.01)  # cuts that may be right
_SILHOUETTE_CUTS = np.arange(-0.2, 0.31, 0.02)
_SILHOUETTE_BLUR = 0.01
# A question whose answer says less (nats) changes the families no more. What the best question says falls by the factor
# e in some nine answers, on the fields that the settings were chosen on.
_WORTH = 0.05
_ANSWERS_A_FOLD = 9
# Of so many questions, each saying so much of what the best one says, the least sure is asked first.
_SHORTLIST = 10
_AS_GOOD = 0.5


class Precision(NamedTuple):
    """Estimated share of the pairs within families that belong together, with a 90 % interval."""

    estimate: float
    low: float
    high: float


def mixture(tile: Tile, weights: Mapping[str, float]) -> FloatArray:
    """Return the weighted mean of the kinds of evidence of a view."""
    return np.asarray(sum(weight * tile[kind] for kind, weight in weights.items()) / sum(weights.values()))


def beyond(tile: Tile, settings: Settings) -> FloatArray:
    """Return what is added to every view, whatever the neighbours: shared lines, numbers, one form, equal text."""
    return np.asarray(
        settings.lines * tile["lines"]
        + settings.numbers * tile["numbers"]
        + settings.same * tile["same"]
        - settings.template * tile["template"]
        - settings.slot * tile["slot"]
    )


class Committee:
    """The hypotheses on a field and their weights.

    Args:
        count: Number of pages.
        blocks: Pages that are compared with each other, as increasing numbers; a page stands in one block at most.
        tile: Gives every kind of evidence between the pages of a block.
        levels: For each view, how near the neighbours of each page usually are.
        settings: The settings.

    Attributes:
        answers: What was answered, by pair, smaller number first.
        silhouette: The cut that the silhouette likes best.
        cut: The cut in the first view before any answer.
        rarity: How much rarer repetition is here than in most fields (log of the factor); 0 where it is not.
    """

    def __init__(
        self,
        count: int,
        blocks: Sequence[IntArray],
        tile: Callable[[IntArray], Tile],
        levels: Mapping[str, FloatArray],
        settings: Settings,
    ) -> None:
        self.settings = settings
        self.answers: dict[Pair, bool] = {}
        self.silhouette, self.cut, self.rarity = 0.0, settings.cut, 0.0
        self._count = count
        self._blocks = [block for block in blocks if len(block) > 1]
        self._block = np.full(count, -1)
        self._place = np.zeros(count, dtype=np.int64)
        self._starts = [0]
        for number, block in enumerate(self._blocks):
            self._block[block], self._place[block] = number, np.arange(len(block))
            self._starts.append(self._starts[-1] + len(block) * (len(block) - 1) // 2)
        self._trees: dict[str, list[Tree]] = {name: [] for name in settings.views}
        scores, siblings, against, distances = [], [], [], []
        first = next(iter(settings.views))
        for block in self._blocks:
            found = tile(block)
            more = beyond(found, settings)
            upper = np.triu_indices(len(block), 1)
            for name, weights in settings.views.items():
                level = levels[name][block] / 2
                score = mixture(found, weights) - level[:, None] - level[None, :] + more
                self._trees[name].append(Tree(score))
                if name == first:
                    scores.append(score[upper])
            siblings.append(found["template"][upper] > 0)
            against.append(settings.unlike * found["unlike"][upper])
            distances.append(1 - found["content"])
            np.fill_diagonal(distances[-1], 0)
        self.scores = np.concatenate(scores) if scores else np.zeros(0)
        self._siblings = np.concatenate(siblings) if siblings else np.zeros(0, dtype=bool)
        self._against = np.concatenate(against) if against else np.zeros(0)
        self._set_prior(distances)

    # ---- before any answer

    def _set_prior(self, distances: Sequence[FloatArray]) -> None:
        settings = self.settings
        heights = {
            name: np.concatenate([tree.heights for tree in trees]) if trees else np.zeros(1)
            for name, trees in self._trees.items()
        }
        first = next(iter(heights))
        # a few pages say little about the field: their silhouette is chance, and one answer is not to turn all over
        much = min(max(self._count - 10, 0) / 100, 1.0)
        spread = settings.spread * (1 + much) / 2
        if self._blocks:
            self.silhouette = self._silhouette_cut(self._trees[first], distances)
            self._set_cut(heights[first], much)
        kept = int((heights[first] >= self.cut).sum())
        prior = []
        for name, found in heights.items():
            # another view is cut where it makes as many merges as the first
            centre = self.cut if name == first else float(np.sort(found)[::-1][min(kept, len(found) - 1)])
            share = settings.first if name == first else (1 - settings.first) / (len(heights) - 1)
            weight = -0.5 * ((_GRID - centre) / spread) ** 2
            weight -= np.log(np.exp(weight).sum())
            prior.append(weight + np.log(share / len(settings.slopes)))
        self._prior: FloatArray = np.tile(np.array(prior), len(settings.slopes))
        self._log_weight = self._prior
        self._cuts = np.tile(_GRID, len(settings.slopes))
        self._slopes = np.repeat(np.array(settings.slopes), len(_GRID))

    def _set_cut(self, heights: FloatArray, much: float) -> None:
        """Choose the cut of the first view: lower where families are broad, higher where repetition is rare.

        The silhouette likes a low cut both where families are broad and where there are none at all; only in the first
        case most pages then stand in families.
        """
        settings = self.settings

        def lowered(above: float) -> float:
            return max(settings.cut - self.silhouette - above, 0.0)

        narrow, wide = settings.broad
        inside = float((heights >= settings.cut - lowered(settings.tried)).sum()) / self._count
        breadth = min(max((inside - narrow) / (wide - narrow), 0.0), 1.0)
        self.cut = settings.cut - lowered(settings.above) * much * breadth
        clear = max(float((heights >= self.cut + settings.clear).sum()), 0.5) / self._count
        self.rarity = much * math.log(max(settings.common / clear, 1.0))
        self.cut += settings.rare * self.rarity

    def _silhouette_cut(self, trees: Sequence[Tree], distances: Sequence[FloatArray]) -> float:
        """Return the mean of the cuts, weighed by how much the silhouette likes them; pages in no block count 0."""
        scores = np.array(
            [
                sum(float(silhouettes(d, tree.labels(cut)).sum()) for tree, d in zip(trees, distances, strict=True))
                for cut in _SILHOUETTE_CUTS
            ]
        )
        scores /= self._count
        weight = np.exp((scores - scores.max()) / _SILHOUETTE_BLUR)
        return float((weight * _SILHOUETTE_CUTS).sum() / weight.sum())

    # ---- belief

    def _weights(self) -> FloatArray:
        weights = np.exp(self._log_weight - self._log_weight.max())
        return np.asarray(weights / weights.sum())

    def _mix(self, curve: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the mean over the hypotheses of a function of their probabilities, for each pair."""
        weights = self._weights()
        total = np.zeros(self._starts[-1])
        for row, trees in enumerate(self._trees.values()):
            if weights[row].sum() <= 1e-6:
                continue
            for start, tree in zip(self._starts, trees, strict=False):
                values = curve(self._likely(tree.heights)) @ weights[row]
                total[start : start + len(tree.step)] += values[tree.step]
        return total

    def _likely(self, heights: FloatArray) -> FloatArray:
        return _sigmoid((np.atleast_1d(heights)[:, None] - self._cuts[None, :]) / self._slopes[None, :])

    def _slip(self, likely: FloatArray) -> FloatArray:
        return self.settings.wrong + (1 - 2 * self.settings.wrong) * likely

    def _belief(self) -> FloatArray:
        """Return the same for the pairs as they are, with what speaks against them whatever the cut."""
        return _shifted(self._mix(lambda p: p), self._against)

    def probabilities(self) -> FloatArray:
        """Return for each pair of a block how likely its pages are of one family; an answer is 0 or 1."""
        likely = self._belief()
        for pair, same in self.answers.items():
            place = self.position(*pair)
            if place is not None:
                likely[place] = float(same)
        return likely

    def position(self, a: int, b: int) -> int | None:
        """Return where a pair stands among the pairs, or None for one that was never compared."""
        if a == b or self._block[a] < 0 or self._block[a] != self._block[b]:
            return None
        i, j = sorted((int(self._place[a]), int(self._place[b])))
        number = int(self._block[a])
        size = len(self._blocks[number])
        return self._starts[number] + size * i - i * (i + 1) // 2 + j - i - 1

    def pairs_at(self, places: npt.NDArray[np.integer]) -> list[Pair]:
        """Return the pages of the pairs at *places*."""
        found: list[Pair] = []
        blocks = np.searchsorted(self._starts, places, side="right") - 1
        for place, number in zip(places.tolist(), blocks.tolist(), strict=True):
            block, rest = self._blocks[number], place - self._starts[number]
            ends = np.cumsum(np.arange(len(block) - 1, 0, -1))
            i = int(np.searchsorted(ends, rest, side="right"))
            j = i + 1 + rest - (int(ends[i - 1]) if i else 0)
            found.append((int(block[i]), int(block[j])))
        return found

    # ---- questions and answers

    def borderline(self, count: int) -> list[Pair]:
        """Return the pairs whose answer says most; of the best ones that which is nearest to even odds comes first."""
        if not self._blocks or count < 1:
            return []
        gain = self._gain()
        trees = next(iter(self._trees.values()))
        merged = np.concatenate([tree.heights[tree.step] for tree in trees])
        typical = np.round(np.abs(self.scores - merged), 9)
        chosen: list[int] = []
        for value in np.unique(gain)[::-1][: max(count, _SHORTLIST)]:
            if value >= 0:
                # pairs of one merge say the same; of those the most typical, whose score is nearest to the merge's mean
                alike = np.flatnonzero(gain == value)
                chosen.append(int(alike[typical[alike].argmin()]))
        likely = self.expected()
        good = [place for place in chosen[:_SHORTLIST] if gain[place] >= _AS_GOOD * gain[chosen[0]]]
        good.sort(key=lambda place: round(abs(float(likely[place]) - 0.5), 9))
        return self.pairs_at(np.array([*good, *chosen[len(good) :]][:count], dtype=np.int64))

    def worthwhile(self) -> int:
        """Return about how many more answers would still change something; see ``_WORTH``."""
        gain = self._gain() if self._blocks else np.zeros(1)
        most = float(gain.max())
        if most < _WORTH:
            return 0
        questions = len(np.unique(gain[gain >= _WORTH]))
        return min(math.ceil(_ANSWERS_A_FOLD * math.log(most / _WORTH)) or 1, questions)

    def _gain(self) -> FloatArray:
        """Return how much the answer on each pair would say (mutual information, nats); -1 where it was given."""
        mean = self._mix(lambda p: p)
        gain = _entropy(self._slip(mean)) - self._mix(lambda p: _entropy(self._slip(p)))
        # What speaks against a pair whatever the cut settles it for all hypotheses alike, which then disagree less.
        # A shift of the log odds changes their variance by the square of this factor and that of the answer by itself.
        known = _shifted(mean, self._against - self._doubt())
        gain = np.round(gain * np.minimum(_spread(known) / _spread(mean), 1), 9)
        for pair in self.answers:
            place = self.position(*pair)
            if place is not None:
                gain[place] = -1
        return gain

    def answered(self, answers: Mapping[Pair, bool]) -> Committee:
        """Return the committee after *answers*, which stand for all that were given."""
        changed = copy.copy(self)
        changed.answers = {(min(pair), max(pair)): same for pair, same in sorted(answers.items())}
        changed._log_weight = self._prior.copy()
        # a few answers are not to turn all over: they were asked for where it is hardest, not where most pairs are
        trust = self._trust(len(changed.answers))
        for pair, same in changed.answers.items():
            place = self.position(*pair)
            if place is None or self._siblings[place]:
                continue  # one form with other values: the answer is about these two and says nothing on the rest
            number = self._block[pair[0]]
            for row, trees in enumerate(self._trees.values()):
                tree = trees[number]
                height = tree.heights[tree.step[place - self._starts[number]]]
                likely = self._slip(self._likely(height)[0])
                changed._log_weight[row] += trust * np.log(likely if same else 1 - likely)
        return changed

    # ---- families

    def labels(self, least: float | None = None) -> IntArray:
        """Return a number for each page; pages of one family share it.

        Args:
            least: Mean probability down to which families are joined; None for the settings' own.
        """
        settings = self.settings
        # what is asked for by a number is meant as it is shown
        likely = self._belief() if least is None else _shifted(self._belief(), -self._doubt())
        known = self.probabilities()
        expected = float(known[known > settings.floor].sum())
        options = [least] if least is not None else settings.least if self.answers else [settings.first_least]
        best: tuple[float, IntArray] | None = None
        for option in options:
            labels = self._joined(likely, option)
            inside = self._inside(labels)
            promise = 2 * float(known[inside].sum()) / max(float(inside.sum()) + expected, 1e-9)
            if best is None or promise > best[0] + 1e-9:
                best = promise, labels
        assert best is not None
        return self._with_answers_across(best[1])

    def _joined(self, likely: FloatArray, least: float) -> IntArray:
        from scipy.spatial.distance import squareform

        labels = np.arange(self._count, dtype=np.int64)
        for number, block in enumerate(self._blocks):
            part = slice(self._starts[number], self._starts[number + 1])
            barred = squareform(self._siblings[part], checks=False).astype(bool)
            same: list[Pair] = []
            for (a, b), yes in self.answers.items():
                if self._block[a] == self._block[b] == number:
                    i, j = int(self._place[a]), int(self._place[b])
                    barred[i, j] = barred[j, i] = not yes
                    if yes:
                        same.append((i, j))
            found = constrained_average(squareform(likely[part], checks=False), same, barred, least)
            firsts = np.unique(found, return_index=True)[1]
            labels[block] = block[firsts[found]]
        return labels

    def _with_answers_across(self, labels: IntArray) -> IntArray:
        """Join what was answered to be the same but stands in two blocks, unless another answer forbids it."""
        apart = [pair for pair, same in self.answers.items() if not same]
        for (a, b), same in self.answers.items():
            if not same or labels[a] == labels[b] or self.position(a, b) is not None:
                continue
            ends = {int(labels[a]), int(labels[b])}
            if not any({int(labels[c]), int(labels[d])} == ends for c, d in apart):
                labels = np.where(np.isin(labels, list(ends)), min(ends), labels)
        return labels

    def _inside(self, labels: IntArray) -> npt.NDArray[np.bool_]:
        parts = []
        for block in self._blocks:
            first, second = np.triu_indices(len(block), 1)
            parts.append(labels[block[first]] == labels[block[second]])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def expected(self) -> FloatArray:
        """Return the probabilities as they are to be believed in this field: less where repetition is rare.

        What stands just above a cut is a repetition in a field that has many, and chance in one that has hardly any.
        """
        known = self.probabilities()
        unanswered = (known > 0) & (known < 1)
        known[unanswered] = _shifted(known[unanswered], -self._doubt())
        return known

    def _doubt(self) -> float:
        return self.rarity * (1 - self._trust(len(self.answers)))

    def _trust(self, answers: int) -> float:
        return answers / (answers + self.settings.calm) if answers else 0.0

    def precision(self, labels: IntArray) -> Precision:
        """Return how many of the pairs within families are expected to belong together, with a 90 % interval.

        The reviewed pairs are chosen where it is hardest, so their share of yes answers says nothing; the interval is
        one of a beta distribution that narrows with the answers. Without any family it is 1, 1, 1.
        """
        from scipy.stats import beta

        inside = self._inside(labels)
        if not inside.any():
            return Precision(1.0, 1.0, 1.0)
        estimate = float(self.expected()[inside].mean())
        strength = 2 + 0.25 * len(self.answers)  # few: the pairs of one family stand or fall together
        low, high = beta.interval(0.9, 0.5 + strength * estimate, 0.5 + strength * (1 - estimate))
        return Precision(estimate, min(float(low), estimate), max(float(high), estimate))  # skewed near 0 and 1


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def _shifted(p: FloatArray, log_odds: FloatArray | float) -> FloatArray:
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return _sigmoid(np.log(p / (1 - p)) + log_odds)


def _spread(p: FloatArray) -> FloatArray:
    """Return the variance of a yes of this probability."""
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return np.asarray(p * (1 - p))


def _entropy(p: FloatArray) -> FloatArray:
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return np.asarray(-(p * np.log(p) + (1 - p) * np.log(1 - p)))
