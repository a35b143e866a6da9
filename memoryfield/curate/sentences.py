"""Sentences: where one ends, and when two count as the same.

A sentence is what a reader would not want to lose: cut from prose by full stops with care for abbreviations, decimals,
addresses, code spans and scripts that have stops of their own. Two sentences are the same when they differ in case,
spacing, punctuation at word ends or emphasis only; code, link targets, numbers and signs inside words always count.
Cutting too seldom is harmless (a longer piece is kept whole), cutting wrongly is not, so in doubt nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from memoryfield.format.normal import normalized

SHORT = 5  # tokens; anything below says little without what stands around it ("Yes.", "Ask Ines.")
_FITS = 60  # columns: a line broken although the next word would have fitted here was broken on purpose

_CLOSERS = "\"'”’»›)]}*_~」』）】〉》"
_WIDE_STOPS = "。！？｡।॥۔؟።"
# No break inside: code spans, links, bold text, addresses, tags. Bounded, so that no text costs more than linear time.
_PROTECTED = re.compile(
    r"(`{1,8})[^`]{1,400}?\1(?!`)|!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,400}(?: [^()\n]{0,200})?\)"
    r"|(?<![\w*])\*\*(?=[^\s*])[^*\n]{1,400}(?<=[^\s*])\*\*(?![\w*])"
    r"|\b[a-zA-Z][a-zA-Z+.-]{1,15}://[^\s<>\"]{1,500}[^\s<>\".,;:!?')\]*_]|</?[a-zA-Z][^<>\n]{0,300}>"
)
_STOP = re.compile(rf"(?:[.!?…]+[{re.escape(_CLOSERS)}]*(?=\s|\Z))|(?:[{_WIDE_STOPS}]+[{re.escape(_CLOSERS)}]*)|\n")
_LAST_WORD = re.compile(r"[^\s(\[\"'“„«*_]{1,30}\Z")
_HARD_BREAK = re.compile(r"(?:  |\\|<br ?/?>)\Z", re.IGNORECASE)
_OPENERS = "\"'“„‘«‹([{*_~`¿¡「『（【"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# English, German, French, Spanish, Italian, Dutch, Scandinavian, Polish; without their last full stop.
_ABBREVIATIONS = word_set("""
    mr mrs ms dr prof st sr jr vs etc e.g i.e eg ie cf ca approx fig figs p pp vol ch sec ed eds al inc ltd co corp dept
    est ext tel max min avg temp gen gov sgt capt lt col rev hon mt ave blvd rd jan feb mar apr jun jul aug sep sept oct
    nov dec z.b d.h u.a u.ä usw bzw ggf evtl vgl inkl exkl zzgl nr str abs art bd sog mind ing dipl st.-nr o.ä i.d.r
    v.a z.t p.ex env av mme mlle ex fr sra ud uds núm pág pag sig sigg dott bijv d.w.z enz nl o.a blz f.eks bl.a osv ev
    kl np tj itd itp ul im wg tzn nt m.in godz
""")
_MONTHS = word_set("""
    januar februar märz april mai juni juli august september oktober november dezember jänner jan feb mär apr jun jul
    aug sep okt nov dez januari februari mars maj augusti stycznia lutego marca kwietnia maja czerwca lipca sierpnia
    września października listopada grudnia ledna února března dubna května června srpna září října
""")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of one paragraph, list item or table cell begin and end, without blanks around them.

    Args:
        text: Text without a blank line in it.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _ends(text):
        _add(spans, text, start, end)
        start = end
    _add(spans, text, start, len(text))
    return spans


@lru_cache(maxsize=16384)
def sentence_key(text: str) -> str:
    """Return what two sentences share when they are the same but for case, spacing, punctuation and emphasis.

    Text of which nothing is left (a rule, a lone sign) is its own key.
    """
    key = " ".join(folded for _, folded in tokens(text))
    return _BETWEEN_WIDE.sub("", key) or " ".join(text.split())


def is_short(text: str) -> bool:
    """Whether a sentence has too few words to mean the same wherever it stands."""
    return len(words(text)) < SHORT


@lru_cache(maxsize=16384)
def words(text: str) -> tuple[tuple[str, str], ...]:
    """Return the tokens of a text with ideographs one by one: as written, and as compared."""
    found: list[tuple[str, str]] = []
    for raw, folded in tokens(text):
        if len(raw) == len(folded) and _WIDE.search(raw):
            found += [(piece, piece.casefold()) for piece in _PIECES.findall(raw)]
        else:
            found.append((raw, folded))
    return tuple(found)


@lru_cache(maxsize=16384)
def word_bag(text: str) -> frozenset[str]:
    """Return the different words of a text as they are compared."""
    return frozenset(folded for _, folded in words(text))


# -- ends of sentences ------------------------------------------------------------------------------------------------


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        begin = start + len(piece) - len(piece.lstrip())
        spans.append((begin, begin + len(stripped)))


def _ends(text: str) -> Iterator[int]:
    guarded = [match.span() for match in _PROTECTED.finditer(text)]
    position = 0
    for stop in _STOP.finditer(text):
        while position < len(guarded) and guarded[position][1] <= stop.start():
            position += 1
        if position < len(guarded) and guarded[position][0] <= stop.start() and stop.end() < guarded[position][1]:
            continue
        if stop[0] == "\n":
            if _is_meant(text, stop.start()):
                yield stop.start()
        elif stop[0][0] in _WIDE_STOPS or _is_end(text, stop):
            yield stop.end()


def _is_meant(text: str, newline: int) -> bool:
    """Whether the author ended the line on purpose, rather than wrapping at the margin."""
    begin = text.rfind("\n", 0, newline) + 1
    line = text[begin:newline]
    following = text[newline + 1 : newline + 201].partition("\n")[0].split(None, 1)
    if _HARD_BREAK.search(line) or not following:
        return True
    if _WIDE.match(following[0]) and _WIDE.match(line.rstrip()[-1:] or " "):
        return len(line) < _FITS // 4
    return len(line.rstrip()) + 1 + len(following[0]) <= _FITS


def _is_end(text: str, stop: re.Match[str]) -> bool:
    following = text[stop.end() : stop.end() + 40].lstrip()
    bare = following.lstrip(_OPENERS)
    if not following:
        return True
    if bare[:1].islower():
        return False
    if stop[0][0] != "." or stop[0].startswith(".."):
        return True
    word = _LAST_WORD.search(text, max(0, stop.start() - 30), stop.start())
    if word is None:
        return True
    last = word[0]
    if len(last) == 1 and last.isalpha():  # J. Smith, p. 4; but "wait 5 s. Then"
        return not last.isupper() and not bare[:1].isdigit()
    if last.casefold() in ("no", "nos"):
        return not bare[:1].isdigit()
    if last.casefold() in _ABBREVIATIONS:
        return False
    if re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", last):  # U.S, z.B, i.d.R
        return False
    if last.isdecimal() and len(last) <= 2:
        first = re.match(r"\w+", bare)
        return first is None or first[0].casefold() not in _MONTHS
    return True


# -- what counts ------------------------------------------------------------------------------------------------------

_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u3001-\u303f\U00020000-\U0003ffff]")
_PIECES = re.compile(rf"{_WIDE.pattern}|(?:(?!{_WIDE.pattern}).)+", re.DOTALL)
_BETWEEN_WIDE = re.compile(rf"(?<={_WIDE.pattern}) (?={_WIDE.pattern})")
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_MARKER = re.compile(r"\A[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_BOX = re.compile(r"\A\[([ xX])\](?=\s)")
_CODE = re.compile(r"(`{1,8})([^`]{1,400}?)\1(?!`)")
_EMPHASIS = re.compile(
    r"(?<![\w*\\])(\*{1,3})(?=[^\s*])([^\n*]{1,400}(?:\n[^\n*]{1,400}){0,4}?)(?<=[^\s*])\1(?![\w*])"
    r"|(?<![\w\\])(_{1,3})(?=[^\s_])([^\n_]{1,400}(?:\n[^\n_]{1,400}){0,4}?)(?<=[^\s_])\3(?!\w)"
)
_ALIKE = str.maketrans("“”„«»‘’–—‐", '"""""\'\'---')
_LEFT = "\"'([{¿¡「『（【"
_RIGHT = ".,;:!…\"')]}。、，；：！」』）】"
_PAIRS = {")": "(", "]": "[", "}": "{", "）": "（", "】": "【"}


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[tuple[str, str], ...]:
    """Return the words of a sentence, each as written and as compared; code keeps its case."""
    text = normalized("NFC", text)
    text = _MARKER.sub("", _QUOTE_MARKS.sub("", text), count=1)
    text = _BOX.sub(lambda box: "☐" if box[1] == " " else "☑", text)
    found: list[tuple[str, str]] = []
    plain: list[str] = []
    codes: list[str] = []
    position = 0
    for code in _CODE.finditer(text):
        plain += [text[position : code.start()], f"\0{len(codes)}\0"]
        codes.append(" ".join(code[2].split()))
        position = code.end()
    rest = "".join([*plain, text[position:].replace("\0", "")]) if plain else text.replace("\0", "")
    for _ in range(2):
        rest = _EMPHASIS.sub(lambda match: match[2] or match[4], rest)
    for word in rest.translate(_ALIKE).split():
        bare = _bare(word)
        if not bare:
            continue
        if "\0" in bare:
            raw = re.sub(r"\0(\d+)\0", lambda number: codes[int(number[1])], bare)
            found.append((raw, raw))
        else:
            found.append((bare, bare.casefold()))
    return tuple(found)


def _bare(word: str) -> str:
    """Return a word without quotes, brackets and stops at its ends; a word of signs alone stays as it is."""
    bare = word
    while bare and bare[0] in _LEFT:
        bare = bare[1:]
    while bare and bare[-1] in _RIGHT:
        last = bare[-1]
        if last in "\"'" and bare[-2:-1].isdecimal():
            break  # 6' is not 6"
        if last in _PAIRS and _PAIRS[last] in bare:
            break  # f(x), a[0]
        bare = bare[:-1]
    if bare:
        return bare
    return "" if not word.strip("\"'") else word
