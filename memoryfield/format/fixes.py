"""Repairs that need no guess, planned, shown as a diff, and applied when somebody has looked.

There are three: a page in UTF-16 with its byte order mark becomes UTF-8; a badly named page gets the one name that the
rule for slugs makes of it, with the links to it; and a value of the frontmatter with a colon inside gets quotes. Bytes
that are no UTF-8 are a guess, so their repair must be asked for. Everything else that ``validate`` finds is for a
person.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload
from urllib.parse import unquote

from memoryfield.advice import advice
from memoryfield.display import Table, counted, escape
from memoryfield.errors import PageChanged, PageExists, QueryError, ReadOnlyField
from memoryfield.format.changes import Change, apply_changes
from memoryfield.format.directory import PageDirectory
from memoryfield.format.files import Folder, Unreadable, write_errors
from memoryfield.format.findings import shown_name
from memoryfield.format.frontmatter import read_frontmatter
from memoryfield.format.journaling import Recorded, recorded
from memoryfield.format.links import links
from memoryfield.format.normal import normalized
from memoryfield.format.page import Page
from memoryfield.format.pagechecks import UTF_16_MARKS
from memoryfield.format.pages import PageSource
from memoryfield.format.quoting import quoted
from memoryfield.format.renames import rename_proposals, stem_of

_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a terminal would obey them
_MOST_SHOWN = 200  # lines of a diff in a notebook


@dataclass(frozen=True)
class Fix:
    """One repair of one file.

    Attributes:
        filename: The file as the system names it.
        rule: Id of the rule that it will hold.
        message: What is done.
        before: Its bytes now.
        after: Its bytes then.
        new_filename: Its name then.
    """

    filename: str
    rule: str
    message: str
    before: bytes
    after: bytes
    new_filename: str

    def diff(self) -> str:
        """Return the repair as a unified diff, with the lines that ``git`` writes for a rename."""
        old, new = shown_name(self.filename), shown_name(self.new_filename)
        head = [f"# {old}: {self.message}"]
        if old != new:
            head += [f"rename from {old}", f"rename to {new}"]
        if self.before == self.after:
            return "\n".join(head) + "\n"
        before, after = (_lines(_shown(raw)) for raw in (self.before, self.after))
        body = list(difflib.unified_diff(before, after, f"a/{old}", f"b/{new}", lineterm=""))
        if not body:
            body = [f"--- a/{old}", f"+++ b/{new}", f"@@ same text, {len(self.before)} -> {len(self.after)} bytes @@"]
        return "\n".join([*head, *body]) + "\n"


@dataclass(frozen=True, repr=False, eq=False)
class Fixes(Sequence[Fix]):
    """Planned repairs. Nothing is written before ``apply``.

    Attributes:
        fixes: The repairs, by filename.
        left: Files that cannot be repaired as asked, with the reason.
    """

    fixes: tuple[Fix, ...]
    left: tuple[tuple[str, str], ...] = ()
    source: PageSource | None = field(default=None, kw_only=True)

    @overload
    def __getitem__(self, index: int) -> Fix: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Fix]: ...

    def __getitem__(self, index: int | slice) -> Fix | Sequence[Fix]:
        return self.fixes[index]

    def __len__(self) -> int:
        return len(self.fixes)

    def diff(self) -> str:
        """Return all repairs as one text of unified diffs."""
        return "\n".join(fix.diff() for fix in self.fixes)

    def apply(self, directory: PageDirectory | None = None) -> tuple[str, ...]:
        """Write the repairs and return the names of the files as they are now.

        Args:
            directory: Where; by default the directory for which they were planned.

        Raises:
            PageChanged: A file is not the one that the plan saw; nothing was written.
            PageExists: The new name of a file was taken meanwhile; nothing was written.
            ReadOnlyField: The plan was made for an archive, or the directory cannot be written.
        """
        goal = directory if directory is not None else self.source
        if not isinstance(goal, PageDirectory):
            raise ReadOnlyField("repairs are written to a directory: import the archive first")
        renames = [fix for fix in self.fixes if fix.new_filename != fix.filename]
        with goal.lock(), Folder(goal.path) as folder, write_errors(goal.path):
            for fix in renames:
                _check_rename(folder, fix)
            with recorded(goal.journal, "fix", [item for fix in self.fixes for item in _recorded(folder, fix)]):
                in_place = [fix for fix in renames if folder.is_same(fix.filename, fix.new_filename)]
                changes = [_change(fix) for fix in self.fixes if fix.new_filename == fix.filename]
                for fix in renames:
                    if fix not in in_place:
                        changes += _rename(folder, fix)
                apply_changes(folder, changes)
                for fix in in_place:  # a name in another case, where the file system does not tell them apart
                    folder.move(fix.filename, fix.new_filename)
                folder.sync()
                apply_changes(folder, [_change(fix) for fix in in_place if fix.after != fix.before])
        return tuple(fix.new_filename for fix in self.fixes)

    def table(self) -> Table:
        """Return what ``repr`` shows."""
        rows = [(shown_name(fix.filename), fix.rule, fix.message) for fix in self.fixes]
        notes = [f"{shown_name(name)} is left as it is: {reason}" for name, reason in self.left]
        how = advice(python="diff() shows every line, apply() writes", command="--fix --yes writes")
        notes += [how] if self.fixes else []
        return Table(
            f"{counted(len(rows), 'repair')} planned",
            ("file", "rule", "what"),
            rows,
            notes,
            widths={"what": 120},
        )

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        shown = self.diff().splitlines()
        cut = [f"... and {len(shown) - _MOST_SHOWN} more lines"] if len(shown) > _MOST_SHOWN else []
        text = "\n".join(escape(line, 500) for line in [*shown[:_MOST_SHOWN], *cut])
        return self.table().html() + f'<pre class="memoryfield">{text}</pre>'


def plan_fixes(source: PageSource, reencode: bool | str | None = None) -> Fixes:
    """Plan the repairs of a field; nothing is written.

    Args:
        source: The field.
        reencode: What bytes are that are no UTF-8: the name of an encoding, or True for Windows-1252, and Latin-1 where
            that has no character. Valid UTF-8 in the same page stays, where the encoding has one byte a character.

    Raises:
        QueryError: There is no such encoding.
    """
    if isinstance(reencode, str):
        _check_encoding(reencode)
    snapshot = source.snapshot()
    renames = {}
    if isinstance(source, PageDirectory):
        present = [*snapshot.entries, *source.other_files(), *(item.filename for item in snapshot.skipped)]
        renames = rename_proposals(present)
    targets = _targets(renames)
    found: list[Fix] = []
    left: list[tuple[str, str]] = []
    for page in source.pages():
        raw, messages, rule = page.raw, [], "P2"
        if not page.is_utf8:
            try:
                raw, message = _reencoded(page, reencode)
            except UnicodeDecodeError as error:
                left.append((page.filename, f"its bytes are no {error.encoding}"))
                continue
            if message:
                messages.append(message)
                rule = "P10"
        mended = quoted(raw)
        if mended is not None:
            raw, rule = mended, "P8" if rule == "P2" else rule
            messages.append("values of the frontmatter with a colon inside stand in quotes")
        if renames:
            linked = _relinked(raw, targets)
            if linked != raw:
                raw = linked
                messages.append("links follow the new names")
        if messages:
            found.append(Fix(page.filename, rule, "; ".join(messages), page.raw, raw, page.filename))
    for old, new in renames.items():
        try:
            raw = source.read_bytes(old)
        except KeyError:
            continue
        linked = _relinked(raw, targets)
        message = f"is named {new}" + ("; links follow the new names" if linked != raw else "")
        found.append(Fix(old, "P1", message, raw, linked, new))
    return Fixes(tuple(sorted(found, key=lambda fix: fix.filename)), tuple(left), source=source)


def _reencoded(page: Page, reencode: bool | str | None) -> tuple[bytes, str]:
    """Return the page in UTF-8 and what was done, or as it is and an empty text."""
    if page.raw[:2] in UTF_16_MARKS:
        return page.raw.decode("utf-16").encode("utf-8"), "UTF-16 becomes UTF-8"
    if reencode is True:
        text = page.raw.decode("utf-8", "surrogateescape")
        return _ESCAPED_BYTE.sub(_windows_character, text).encode("utf-8"), "Windows-1252 becomes UTF-8"
    if not reencode:
        return page.raw, ""
    encoding = reencode
    if len(bytes(range(128, 256)).decode(encoding, "replace")) == 128:
        text = page.raw.decode("utf-8", "surrogateescape")
        text = _ESCAPED_BYTE.sub(lambda match: bytes([ord(match[0]) & 0xFF]).decode(encoding), text)
    else:
        text = page.raw.decode(encoding)
    return text.encode("utf-8"), f"{encoding} becomes UTF-8"


def _windows_character(match: re.Match[str]) -> str:
    octet = bytes([ord(match[0]) & 0xFF])
    try:
        return octet.decode("cp1252")
    except UnicodeDecodeError:
        return octet.decode("latin-1")


def _check_encoding(name: str) -> None:
    try:
        known = isinstance(b"a".decode(name), str)
    except (LookupError, UnicodeError, ValueError):
        known = False
    if not known:
        raise QueryError(f"there is no text encoding {name!r}: try cp1252 or latin-1")


def _relinked(raw: bytes, targets: Mapping[str, str]) -> bytes:
    """Return a page whose body links to the new names of badly named files; every other byte is equal."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
    body_start = read_frontmatter(raw).body_start
    parts: list[bytes] = []
    position = 0
    for link in links(raw):
        start, end = link.span
        if link.page is None and start >= body_start:
            new = _new_target(raw[start:end].decode("utf-8"), targets)
            if new is not None:
                parts += [raw[position:start], new.encode("utf-8")]
                position = end
    return b"".join([*parts, raw[position:]])


def _targets(renames: Mapping[str, str]) -> dict[str, str]:
    """Return what links may call badly named files, with the new names: with the ending, and without for wiki links."""
    normal = {normalized("NFC", old): new for old, new in renames.items()}
    return {**{stem_of(old): stem_of(new) for old, new in normal.items()}, **normal}


def _new_target(target: str, targets: Mapping[str, str]) -> str | None:
    lead = "./" if target.startswith("./") else ""
    rest = target[len(lead) :]
    # A number sign may belong to the name or begin a fragment.
    for cut in {len(rest), rest.find("#")} - {-1}:
        for name in (rest[:cut], unquote(rest[:cut])):
            new = targets.get(normalized("NFC", name))
            if new is not None:
                return lead + new + rest[cut:]
    return None


def _change(fix: Fix) -> Change:
    return Change(fix.new_filename, fix.after, hashlib.sha256(fix.before).hexdigest())


def _rename(folder: Folder, fix: Fix) -> list[Change]:
    status = folder.status(fix.filename)
    mode, modified = stat.S_IMODE(status.st_mode), status.st_mtime_ns if fix.after == fix.before else None
    digest = hashlib.sha256(fix.before).hexdigest()
    return [
        Change(fix.new_filename, fix.after, absent=True, modified_ns=modified, mode=mode),
        Change(fix.filename, None, digest, as_before=True),
    ]


def _recorded(folder: Folder, fix: Fix) -> list[Recorded]:
    """Return what a journal keeps of a repair; a new name is a new file and a deleted one."""
    try:
        status = folder.status(fix.filename)
    except FileNotFoundError:
        raise PageChanged(
            f"{shown_name(fix.filename)} was deleted since the plan was made; nothing was written"
        ) from None
    mode, modified = stat.S_IMODE(status.st_mode), status.st_mtime_ns
    if fix.new_filename == fix.filename:
        return [Recorded(fix.filename, fix.before, fix.after, mode, modified)]
    return [
        Recorded(
            fix.new_filename,
            None,
            fix.after,
            new_mode=mode,
            new_modified_ns=modified if fix.after == fix.before else None,
        ),
        Recorded(fix.filename, fix.before, None, mode, modified),
    ]


def _check_rename(folder: Folder, fix: Fix) -> None:
    try:
        raw, _ = folder.read(fix.filename)
    except (FileNotFoundError, Unreadable) as error:
        raise PageChanged(f"{shown_name(fix.filename)} is not there as it was; nothing was written: {error}") from None
    if raw != fix.before:
        raise PageChanged(f"{shown_name(fix.filename)} was changed since the plan was made; nothing was written")
    if folder.is_there(fix.new_filename) and not folder.is_same(fix.filename, fix.new_filename):
        raise PageExists(f"{fix.new_filename} is there meanwhile; nothing was written")


def _shown(raw: bytes) -> str:
    if raw[:2] in UTF_16_MARKS:
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8", "backslashreplace")


def _lines(text: str) -> list[str]:
    visible = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r\n", "\n"))
    return visible.split("\n")
