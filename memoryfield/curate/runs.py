"""Which part of their runs of words or characters two texts share, and which texts share some: by sketches.

The runs of a text are hashed; of each of 64 fixed permutations of the hashes the smallest stays (MinHash). In how many
of the 64 two texts agree is an estimate of the part of their runs that they share, whatever their length. Texts that
agree in a whole band of them are near without any two having been compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

_WORDS = 3
_CHARACTERS = 5
_PERMUTATIONS = 64
_BAND = 2  # of a band so small texts with a third of their runs in common share one almost surely
_LARGEST_BUCKET = 20  # what more texts share is a form that all are written in
_PRIME = np.uint64((1 << 31) - 1)


class Runs:
    """The sketches of some texts, made of each text when it is first asked for.

    Args:
        texts: Their words, lower case, one space between any two.
        by_word: Runs of three words; otherwise runs of five characters.
    """

    def __init__(self, texts: Sequence[str], *, by_word: bool) -> None:
        self._texts = texts
        self._by_word = by_word
        random = np.random.default_rng(20)
        self._factor = random.integers(1, int(_PRIME), _PERMUTATIONS, dtype=np.uint64)
        self._shift = random.integers(0, int(_PRIME), _PERMUTATIONS, dtype=np.uint64)
        self._sketches: dict[int, npt.NDArray[np.uint32]] = {}

    def _sketch(self, number: int) -> npt.NDArray[np.uint32]:
        if number not in self._sketches:
            hashes = self._hashes(self._texts[number])
            mixed = (hashes[:, None] * self._factor + self._shift) % _PRIME if len(hashes) else None
            lowest = np.full(_PERMUTATIONS, number) if mixed is None else mixed.min(axis=0)
            self._sketches[number] = lowest.astype(np.uint32)
        return self._sketches[number]

    def _hashes(self, text: str) -> npt.NDArray[np.uint64]:
        if self._by_word:
            words = text.split(" ")
            runs = {" ".join(words[i : i + _WORDS]) for i in range(len(words) - _WORDS + 1)}
        else:
            runs = {text[i : i + _CHARACTERS] for i in range(len(text) - _CHARACTERS + 1)}
        return np.array([zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in runs], dtype=np.uint64) % _PRIME

    def of_pairs(self, a: IndexArray, b: IndexArray) -> FloatArray:
        """Return the estimated part of their runs that the texts ``a[i]`` and ``b[i]`` share."""
        numbers = sorted({*a.tolist(), *b.tolist()})
        if not numbers:
            return np.zeros(0)
        sketches = np.stack([self._sketch(number) for number in numbers])
        one, other = sketches[np.searchsorted(numbers, a)], sketches[np.searchsorted(numbers, b)]
        return np.asarray((one == other).mean(axis=1), dtype=np.float64)

    def near(self) -> set[tuple[int, int]]:
        """Return the pairs of texts that agree in a whole band of their sketches, smaller number first.

        Of a band that more than 20 texts agree in each is paired with the next ones only.
        """
        sketches = np.stack([self._sketch(number) for number in range(len(self._texts))])
        found: set[tuple[int, int]] = set()
        for start in range(0, _PERMUTATIONS, _BAND):
            band = sketches[:, start : start + _BAND]
            order = np.lexsort(band.T)
            for step in range(1, _LARGEST_BUCKET):
                same = (band[order[step:]] == band[order[:-step]]).all(axis=1)
                if not same.any():
                    break
                first, second = order[:-step][same], order[step:][same]
                found.update(zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True))
        return found
