"""Changing keys of a block by replacing characters: everything else stays as it was typed (FORMAT P9).

The tree says where each value stands; a change becomes a few *splices* (from, to, new characters). Lists and mappings
are changed item by item, so that comments and quotes of the items that stay are kept. The result is read again and
compared: whatever cannot be done so that only the asked keys change is refused. Files and fences are the business of
``edit.py``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from memoryfield.errors import FrontmatterError, NotEditable
from memoryfield.format.yamlread import BlockError, Node, Value, read_tree
from memoryfield.format.yamlwrite import KNOWN_KEYS, Settable, as_value, dump_key, dump_literal, dump_value

Splice = tuple[int, int, str]

_BLANKS = re.compile(r"[ \t]*")
_DASH_LINE = re.compile(r"([ ]*)-(?:[ \t]+|(?=[\r\n]|\Z))")
_HEADER_COMMENT = re.compile(r"[^\r\n]*[ \t]#")
_LINE_END = re.compile(r"[^\r\n]*(\r\n|\n|\r|\Z)")
_MOST_COMPARED = 400  # items of a list that are compared one by one; longer lists are written anew


def change_keys(text: str, changes: Mapping[str, Settable], newline: str) -> str:
    """Return the text between the fences with some keys changed, added, or removed where the new value is None.

    Args:
        text: A block that reads as a mapping, or holds nothing.
        changes: Keys and new values; a key that has that value already is left alone.
        newline: Line end of added lines.

    Raises:
        NotEditable: It cannot be done without touching something else.
        FrontmatterError: The block cannot be read, or a value has no place in it.
    """
    for key, given in changes.items():
        text = _Block(text, newline).changed(key, given)
    return text


class _Block:
    """One block, read, and the splices that a change of it needs."""

    def __init__(self, text: str, newline: str) -> None:
        self.text = text
        self.newline = newline
        self.root = _root(text)
        self.fields = _fields(self.root)

    def changed(self, key: str, given: Settable) -> str:
        """Return the text with one key changed, after a look at the result."""
        expected = dict(self.fields)
        if given is None:
            if key not in expected:
                return self.text
            del expected[key]
        else:
            value = as_value(given)
            if expected.get(key) == value:
                return self.text
            expected[key] = value
        reason = ""
        for way in self._ways(key, given):
            try:
                result = _spliced(self.text, way())
                if _fields(_root(result)) == expected:
                    return result
                reason = "the edit would change more than this key"
            except NotEditable as error:
                reason = str(error)
            except FrontmatterError as error:
                reason = f"the block could not be read afterwards ({error.problem})"
        raise NotEditable(f"{key}: {reason}; change it in a text editor")

    def _ways(self, key: str, given: Settable) -> Iterator[Callable[[], list[Splice]]]:
        """Yield ways to make the change, the one that touches least first."""
        root = self.root
        end = len(self.text)
        if root is None:
            yield lambda: [(end, end, f"{dump_key(key)}: {dump_value(given)}{self.newline}")]
        elif given is None:
            yield lambda: self._removals(root, {key})
        elif key in self.fields:
            value = next(value for name, value in reversed(root.entries) if name.value == key)
            behind = self._behind_colon(root, value)
            yield lambda: self._replacement(value, given, behind, root.style == "flow")
            yield lambda: self._whole(value, given, behind, root.style == "flow")
        elif root.style == "flow":
            row = f"{dump_key(key, flow=True)}: {dump_value(given, flow=True)}"
            yield lambda: self._flow_addition(root, row)
        else:
            row = self._indent(root) + f"{dump_key(key)}: {dump_value(given)}{self.newline}"
            before = KNOWN_KEYS[: KNOWN_KEYS.index(key)] if key in KNOWN_KEYS else ()
            known = [(before.index(name.value), value) for name, value in root.entries if name.value in before]
            if known:
                place = self._line_end(self._end(max(known, key=lambda pair: pair[0])[1]))
                yield lambda: [(place, place, row)]
            yield lambda: [(end, end, row)]

    # -- one value ----------------------------------------------------------------------------------------------

    def _replacement(self, node: Node, given: Settable, behind: int, flow: bool = False) -> list[Splice]:
        """Return what turns the value at *node* into *given*; *behind* is the end of the colon or dash before it."""
        value = as_value(given)
        if node.value == value:
            return []
        if isinstance(given, Mapping) and node.kind == "mapping" and node.entries and given and not node.marked:
            return self._mapping_changes(node, given, flow or node.style == "flow")
        if isinstance(given, (list, tuple)) and node.kind == "sequence" and not node.marked:
            items = self._item_changes(node, list(given), flow or node.style == "flow")
            if items is not None:
                return items
        return self._whole(node, given, behind, flow)

    def _whole(self, node: Node, given: Settable, behind: int, flow: bool) -> list[Splice]:
        if self._has_comment(node):
            raise NotEditable("the value holds comments that would be lost")
        style = node.style if node.style in ("'", '"') else ""
        new = dump_value(given, flow=flow, style=style)
        if node.style in ("|", ">") and isinstance(given, str) and "\n" in given:
            inner = self.text[self._line_end(node.start) : node.end]
            indent = _BLANKS.match(inner.lstrip("\r\n"))
            new = dump_literal(given, (indent[0] if indent is not None else "") or "  ", self.newline) or new
        end = self._end(node)
        if node.start == end:  # an empty value: nothing stands behind the colon
            return [(behind, behind, " " + new)]
        if node.kind in ("mapping", "sequence") and node.style == "block":
            if "\n" in self.text[behind : node.start] or "\r" in self.text[behind : node.start]:
                start = self._line_start(node.start)
                return [(behind, behind, " " + new), (start, self._line_end(end), "")]
            end = self._line_end(end, with_break=False)
        return [(node.start, end, new)]

    def _mapping_changes(self, node: Node, given: Mapping[str, Settable], flow: bool) -> list[Splice]:
        old = {str(key.value): value for key, value in node.entries}
        splices: list[Splice] = []
        for key, new in given.items():
            if key in old:
                splices += self._replacement(old[key], new, self._behind_colon(node, old[key]), flow)
        gone = set(old) - set(given)
        if gone == set(old):
            return self._whole(node, given, node.start, flow)
        if gone:
            splices += self._removals(node, gone)
        added = [f"{dump_key(k, flow=flow)}: {dump_value(v, flow=flow)}" for k, v in given.items() if k not in old]
        if added and flow:
            splices += self._flow_addition(node, ", ".join(added))
        elif added:
            indent = self._indent(node)
            place = self._line_end(self._end(node))
            splices.append((place, place, "".join(f"{indent}{row}{self.newline}" for row in added)))
        return splices

    def _item_changes(self, node: Node, given: list[Settable], flow: bool) -> list[Splice] | None:
        """Return what turns one list into another item by item, or None where it has to be written anew."""
        if not given or not node.items or max(len(given), len(node.items)) > _MOST_COMPARED:
            return None
        dashes = [] if flow else self._dashes(node)
        if dashes is None:
            return None
        old = [json.dumps(item.value) for item in node.items]
        new = [json.dumps(as_value(item)) for item in given]
        splices: list[Splice] = []
        for verb, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            shared = min(i2 - i1, j2 - j1) if verb == "replace" else 0
            for offset in range(shared if verb != "equal" else 0):
                item = node.items[i1 + offset]
                behind = item.start if flow else dashes[i1 + offset][1]
                splices += self._replacement(item, given[j1 + offset], behind, flow)
            rest = range(i1 + shared, i2) if verb != "equal" else range(0)
            more = given[j1 + shared : j2] if verb != "equal" else []
            if flow:
                splices += self._flow_removals([(item.start, item.end) for item in node.items], set(rest))
                splices += self._flow_items(node, i2, more)
                continue
            splices += [(dashes[i][0], self._line_end(self._end(node.items[i])), "") for i in rest]
            if more:
                lead = self.text[dashes[0][0] : dashes[0][1]].rstrip() + " "
                place = self._line_end(self._end(node.items[i2 - 1])) if i2 else dashes[0][0]
                splices.append((place, place, "".join(lead + dump_value(item) + self.newline for item in more)))
        return splices

    # -- parts of lists and mappings ----------------------------------------------------------------------------

    def _removals(self, node: Node, keys: set[str]) -> list[Splice]:
        gone = {i for i, (key, _) in enumerate(node.entries) if key.value in keys}
        if node.style == "flow":
            return self._flow_removals([(key.start, max(value.end, key.end)) for key, value in node.entries], gone)
        splices = []
        for i in sorted(gone):
            key, value = node.entries[i]
            start = self._line_start(key.start)
            if self.text[start : key.start].strip(" "):
                raise NotEditable("something stands before the key on its line")
            splices.append((start, self._line_end(max(self._end(value), key.end)), ""))
        return splices

    def _flow_removals(self, places: list[tuple[int, int]], gone: set[int]) -> list[Splice]:
        """Return what takes entries out of brackets: each with the comma before it, the first ones with the next."""
        splices = []
        first = next((i for i in range(len(places)) if i not in gone), len(places))  # the first that stays
        for i in sorted(gone):
            start, end = places[i]
            if i > first:
                start = places[i - 1][1]
            elif i + 1 < len(places):
                end = places[i + 1][0]
            if "#" in self.text[start : places[i][0]] or "#" in self.text[places[i][1] : end]:
                raise NotEditable("a comment inside the brackets would be lost")
            splices.append((start, end, ""))
        return splices

    def _flow_items(self, node: Node, position: int, more: Sequence[Settable]) -> list[Splice]:
        if not more:
            return []
        rows = ", ".join(dump_value(item, flow=True) for item in more)
        if position == 0:
            return [(node.items[0].start, node.items[0].start, rows + ", ")]
        place = node.items[position - 1].end
        return [(place, place, ", " + rows)]

    def _flow_addition(self, node: Node, row: str) -> list[Splice]:
        if not node.entries:
            return [(node.end - 1, node.end - 1, row)]
        key, value = node.entries[-1]
        place = max(value.end, key.end)
        return [(place, place, ", " + row)]

    # -- places -------------------------------------------------------------------------------------------------

    def _dashes(self, node: Node) -> list[tuple[int, int]] | None:
        """Return, for each item of a block list, where its line begins and where its dash ends."""
        found = []
        start = self._line_start(node.start)
        for item in node.items:
            match = _DASH_LINE.match(self.text, start)
            while match is None and start < item.start:  # blank lines and comments between the items
                start = self._line_end(start)
                match = _DASH_LINE.match(self.text, start)
            if match is None or match.start() > item.start:
                return None
            found.append((match.start(), match.end(1) + 1))
            start = self._line_end(max(self._end(item), match.end(1)))
        return found

    def _behind_colon(self, parent: Node, value: Node) -> int:
        key = next(key for key, other in parent.entries if other is value)
        colon = self.text.find(":", key.end)
        return colon + 1 if 0 <= colon < max(value.start, key.end + 1) or colon == value.start else value.start

    def _end(self, node: Node) -> int:
        """Return the end of a value without the blank lines behind a ``|`` or ``>`` block."""
        if node.style == "block":
            last = node.entries[-1][1] if node.entries else node.items[-1] if node.items else None
            return self._end(last) if last is not None else node.end
        if node.style in ("|", ">"):
            return node.start + len(self.text[node.start : node.end].rstrip(" \t\r\n"))
        return node.end

    def _line_start(self, index: int) -> int:
        return max(self.text.rfind("\n", 0, index), self.text.rfind("\r", 0, index)) + 1

    def _line_end(self, index: int, with_break: bool = True) -> int:
        match = _LINE_END.match(self.text, index)
        assert match is not None
        return match.end() if with_break else match.start(1)

    def _indent(self, mapping: Node) -> str:
        """Return as many blanks as stand left of a mapping's keys; a dash before them counts as one."""
        first = mapping.entries[0][0].start if mapping.marked else mapping.start  # with `? key` that is the mark
        return " " * (first - self._line_start(first))

    def _has_comment(self, node: Node) -> bool:
        if node.style in ("|", ">"):
            return _HEADER_COMMENT.match(self.text, node.start) is not None
        position = node.start
        end = self._line_end(self._end(node), with_break=False) if node.style == "block" else node.end
        for leaf in _leaves(node):
            if leaf is not node and "#" in self.text[position : leaf.start]:
                return True
            if leaf.style in ("|", ">") and self._has_comment(leaf):
                return True
            position = max(position, self._end(leaf))
        return "#" in self.text[position:end]


def _leaves(node: Node) -> Iterator[Node]:
    if node.kind == "mapping":
        for key, value in node.entries:
            yield key
            yield from _leaves(value)
    elif node.kind == "sequence":
        for item in node.items:
            yield from _leaves(item)
    else:
        yield node


def _root(text: str) -> Node | None:
    try:
        root = read_tree(text).root
    except BlockError as error:
        raise FrontmatterError(error.message) from None
    if root is not None and root.kind != "mapping":
        raise FrontmatterError("the block is not a mapping")
    return root


def _fields(root: Node | None) -> dict[str, Value]:
    return root.value if root is not None and isinstance(root.value, dict) else {}


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    """Apply splices; at one place insertions come first, in the order given."""
    parts = []
    position = 0
    for start, end, new in sorted(splices, key=lambda splice: (splice[0], splice[1] > splice[0])):
        if start < position:
            raise NotEditable("two parts of the change overlap")
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])
