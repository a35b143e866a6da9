"""The elements of a JSON file one by one: a list, an object that holds one, or a value on each line.

An export that broke off, or that holds one damaged element, still gives all the others; each problem has its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memoryfield.display import counted

_BLANK = re.compile(r"[\s,]*")
_DEPTH = 200  # deeper nesting than any export has; Python's own limit would be an exception of another kind
_NOT_JSON = "it is not valid JSON"


@dataclass(frozen=True)
class Element:
    """One element of a file.

    Attributes:
        line: Line on which it begins, from 1.
        value: What it is; None where *problem* says why it cannot be read.
        problem: Why it cannot be read.
    """

    line: int
    value: Any = None
    problem: str | None = None


def elements(text: str, inside: tuple[str, ...] = ()) -> Iterator[Element]:
    """Yield the elements of a JSON text.

    Args:
        text: The file's text: a list, one object, or a value on each line.
        inside: Keys of an outer object whose list is meant, such as ``results``; the first that is there counts.
    """
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if text[start : start + 1] == "[":
        end = yield from _of_list(text, start + 1)
        yield from _of_lines(text, end)  # a list on the first of many lines is no more than that line
        return
    if text[start : start + 1] == "{":
        for key in inside:
            opened = re.compile(rf'\{{\s*+(?:"[^"\\]*+"\s*+:[^\[\]{{}}]*?,\s*+)?"{re.escape(key)}"\s*+:\s*+\[').match(
                text, start
            )
            if opened:
                end = yield from _of_list(text, opened.end())
                yield from _after(text, end)
                return
    yield from _of_lines(text)


def beside(value: Mapping[str, Any], key: str = "") -> list[str]:
    """Return in words which lists and objects stand beside the list that is read, such as a graph of relations."""
    held = {name: found for name, found in value.items() if name != key and isinstance(found, list | dict) and found}
    return [f"{counted(len(found), 'item')} under {name[:60]!r}, beside the records" for name, found in held.items()]


def _after(text: str, end: int) -> Iterator[Element]:
    """Yield what stands in the outer object after the list that was read, and on the lines after that object."""
    rest = text[end:].lstrip(" \t\r\n,")
    start = len(text) - len(rest)
    if not rest:
        return
    line = text.count("\n", 0, start) + 1
    try:
        found, length = json.JSONDecoder(parse_constant=_refuse).raw_decode("{" + rest)
    except (ValueError, RecursionError) as error:
        yield Element(line, problem=f"after the list {_NOT_JSON}: {error}")
        return
    yield from (Element(line, problem=said) for said in beside(found))
    yield from _of_lines(text, start + length - 1)


def _of_lines(text: str, start: int = 0) -> Iterator[Element]:
    if not start:
        try:
            whole = _loads(text)
        except ValueError:
            whole = None
        if whole is not None:
            yield Element(1, whole)
            return
    for number, line in enumerate(text[start:].split("\n"), start=text.count("\n", 0, start) + 1):
        if line.strip():
            try:
                yield Element(number, _loads(line))
            except ValueError as error:
                yield Element(number, problem=f"{_NOT_JSON}: {error}")


def _of_list(text: str, position: int) -> Generator[Element, None, int]:
    line, counted = 1, 0  # counted as it goes: the places of all line ends of a large file would fill the memory
    decoder = json.JSONDecoder(parse_constant=_refuse)
    while True:
        blank = _BLANK.match(text, position)
        position = blank.end() if blank else position
        line, counted = line + text.count("\n", counted, position), position
        if position >= len(text):
            yield Element(line, problem="the file ends in the middle of its list: the export was cut off")
            return position
        if text[position] == "]":
            return position + 1
        end = _end(text, position)
        if end is None:
            yield Element(line, problem="the file ends in the middle of this element: the export was cut off")
            return len(text)
        try:
            value, _ = decoder.raw_decode(text[position:end])
            yield Element(line, value)
        except (ValueError, RecursionError) as error:
            yield Element(line, problem=f"{_NOT_JSON}: {error}")
        position = end


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]|"', re.DOTALL)


def _end(text: str, start: int) -> int | None:
    """Return where the element that begins at *start* ends, damaged or not; None where the text ends before it."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        if sign in "[{":
            depth += 1
        elif sign in ("]", "}"):
            depth -= 1
            if depth < 0:
                return token.start()  # the list's own end: a bare word or number stood there
            if depth == 0:
                return token.end()
        elif sign == "," and depth == 0:
            return token.start()
        elif sign == '"':
            return None  # a string that never ends
    return None


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEPTH} deep") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")
