"""Words as the keyword index sees them: accents and forms of letters folded, scripts without spaces taken apart.

Every character is folded by itself, so a place in the folded text always leads back to a character of the text. What
SQLite's tokenizer does afterwards (case, English stems) is not repeated here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate

from memoryfield.format.normal import normalized

# First and last code points of scripts that put no spaces between words, or (Korean) glue particles to them.
_IDEOGRAPHIC = (
    (0x1100, 0x11FF),  # Hangul letters
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),  # Han iteration marks and zero
    (0x3021, 0x3029),
    (0x3031, 0x303C),
    (0x3041, 0x318F),  # Hiragana, Katakana, Bopomofo, Hangul
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),  # half-width forms
    (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B2FF),
    (0x20000, 0x3FFFD),
)
_SOUTH_EAST_ASIAN = (
    (0x0E01, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17DD),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
)
# Marks that readers leave out when they type: accents, Hebrew points, Arabic vowels, joiners, variation selectors.
_DROPPED = (
    (0x00AD, 0x00AD),
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x05BF, 0x05BF),
    (0x05C1, 0x05C2),
    (0x05C4, 0x05C5),
    (0x05C7, 0x05C7),
    (0x0610, 0x061A),
    (0x0640, 0x0640),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06DC),
    (0x06DF, 0x06E8),
    (0x06EA, 0x06ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x200C, 0x200D),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
)
_LETTERS = {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "ё": "е"}  # no marks to take off, or one to
_CYRILLIC = (0x0400, 0x052F)
# How many characters of an unbroken run make a term: two ideographs are a word; elsewhere a syllable takes several.
_WINDOW_IDEOGRAPHIC, _WINDOW_OTHER = 2, 4
_LONGEST_PHRASE = 24  # tokens
_MOST_JOINED = 6  # words; what is longer is a path or a line of code, which is not repeated word for word
_ENDING = re.compile("['’](?:s|t|m|d|re|ve|ll)(?=\\W*$)", re.IGNORECASE)
MOST_TERMS = 200  # somebody pastes a page as a question; the rest adds nothing


def _within(code: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


class _Folding(dict[int, str]):
    """For ``str.translate``: each character is worked out once."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    code = ord(character)
    if code < 128:
        return " " if code < 32 else character  # control characters mark the matches in what SQLite hands back
    if _within(code, _DROPPED):
        return ""
    if 0xD800 <= code <= 0xDFFF:  # half of a character; SQLite takes none
        return " "
    if _within(code, _IDEOGRAPHIC) or _within(code, _SOUTH_EAST_ASIAN):
        return f" {unicodedata.normalize('NFKC', character)} "
    lower = character.casefold()
    if lower in _LETTERS or _CYRILLIC[0] <= code <= _CYRILLIC[1]:  # there a mark makes another letter
        return _LETTERS.get(lower, lower)
    taken_apart = unicodedata.normalize("NFKD", lower)
    return "".join(c for c in taken_apart if not _within(ord(c), _DROPPED)).casefold()


_FOLDING = _Folding({code: _folded(chr(code)) for code in range(128)})


def display_text(text: str) -> str:
    """Return the text that places refer to: composed, so that a letter and its accent are one character."""
    return normalized("NFC", text)


def fold(text: str) -> str:
    """Return the text to index; *text* comes from :func:`display_text`."""
    return text.translate(_FOLDING)


def starts(text: str) -> list[int]:
    """Return where each character of *text* begins in its folded form, and at last the length of that."""
    return list(accumulate((len(_FOLDING[ord(c)]) for c in text), initial=0))


def query_terms(query: str) -> list[str]:
    """Return the terms of a question as FTS5 phrases, each in quotes and nothing in them that is syntax.

    Words are terms, without an English ending such as ``'s``. Words that stand together without a blank
    (``path_join``, ``gen-itgc``) are terms one by one and as a whole. A run of a script without spaces is one term if
    it is short; of a longer one every piece of two characters (four in the scripts of South-East Asia) is a term, and
    so is the whole.
    """
    terms: dict[str, None] = {}
    for chunk in display_text(query).split():
        words: list[str] = []
        for run, window in _runs(_ENDING.sub("", chunk)):
            tokens = [token for part in fold(run).lower().split() for token in _alphanumeric(part)]
            if not window:
                words += tokens
                terms.update((_phrase([token]), None) for token in tokens)
                continue
            last = max(1, len(tokens) - window + 1)
            terms.update((_phrase(tokens[start : start + window]), None) for start in range(last if tokens else 0))
            if window < len(tokens) <= _LONGEST_PHRASE:
                terms[_phrase(tokens)] = None
        if 1 < len(words) <= _MOST_JOINED:
            terms[_phrase(words)] = None
        if len(terms) >= MOST_TERMS:
            break
    return list(terms)[:MOST_TERMS]


def _phrase(tokens: Sequence[str]) -> str:
    return '"' + " ".join(tokens) + '"'


def _runs(chunk: str) -> Iterator[tuple[str, int]]:
    """Yield runs of characters of one kind; with each the length of its terms, 0 for a word of a script with spaces."""
    run: list[str] = []
    kind = -1
    for character in chunk:
        now = _kind(character)
        if now != kind and run:
            yield "".join(run), kind
            run = []
        kind = now
        if kind >= 0:
            run.append(character)
    if run:
        yield "".join(run), kind


def _kind(character: str) -> int:
    """Return the length of terms in the character's script, 0 in scripts with spaces, -1 between words."""
    code = ord(character)
    if code < 128:
        return 0 if character.isalnum() else -1
    if _within(code, _IDEOGRAPHIC):
        return _WINDOW_IDEOGRAPHIC
    if _within(code, _SOUTH_EAST_ASIAN):
        return _WINDOW_OTHER
    return 0 if _is_part_of_word(character) or _within(code, _DROPPED) else -1


def _alphanumeric(text: str) -> Iterator[str]:
    """Yield the parts of folded text that SQLite's tokenizer takes for tokens."""
    token: list[str] = []
    for character in text:
        if _is_part_of_word(character):
            token.append(character)
        elif token:
            yield "".join(token)
            token = []
    if token:
        yield "".join(token)


def _is_part_of_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M" or unicodedata.category(character) == "Co"
