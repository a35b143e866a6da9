"""What can be said about one page on its own; what takes the whole field is in ``validate.py``.

A check looks at bytes and text, never guesses, and never raises. A page without faults costs a few regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryfield.advice import advice
from memoryfield.format.dates import parse_date
from memoryfield.format.findings import Finding, Level
from memoryfield.format.frontmatter import BOM, Problem, read_frontmatter
from memoryfield.format.markdown import first_heading, lines
from memoryfield.format.names import LONGEST_NEW_NAME, new_page_name
from memoryfield.format.page import LONGEST_EMBEDDED, Page, as_text
from memoryfield.format.quoting import quoted
from memoryfield.format.yamlread import line_of
from memoryfield.format.yamlwrite import KNOWN_KEYS

UTF_16_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONE_CR = re.compile(r"\r(?!\n)")
_HAS_ZONE = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)\Z")
_DAY_ONLY = 10
_COMMENTED = re.compile(r"^(title|summary)[ \t]*:[ \t]+(?![\"'|>&*!%@`\[{#])[^\r\n]*?[ \t]#", re.MULTILINE)
_TEXT_LINE = re.compile(r"^[ \t]*[^\s#\ufeff]", re.MULTILINE)
_DATA_URI = re.compile(r"data:[\w/+.-]{1,80};base64,[A-Za-z0-9+/=]{1000,}")
_FOREIGN_FRONT = re.compile(rb'(\+\+\+)[ \t]*[\r\n]|(\{)[ \t\r\n]*"')
# Characters that few people type on purpose, in groups with what is to be said of them.
_STRANGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffd]")
_PLAIN = bytes([9, 10, *range(32, 127)])  # pages of these bytes alone need no closer look
_GROUPS: tuple[tuple[re.Pattern[str], Level, str, str], ...] = (
    (re.compile("\x00"), "warning", "NUL", "other tools cut the page there: remove it"),
    (
        re.compile("[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"),
        "warning",
        "control character",
        "a terminal would obey it: remove it",
    ),
    (
        re.compile("[\u202a-\u202e\u2066-\u2069]"),
        "warning",
        "character that turns the writing direction",
        "text may read otherwise than it stands there: remove it where it is not meant",
    ),
    (re.compile("[\u200b\u2060\ufeff]"), "info", "invisible character", "searches for the words around it may fail"),
    (
        re.compile("[\x0b\x0c\x85\u2028\u2029]"),
        "info",
        "line separator that is no line end in Markdown",
        "some tools break the line there, others do not",
    ),
    (re.compile("\ufffd"), "info", "replacement character", "an earlier conversion lost a character there"),
)


def check_page(page: Page) -> Iterator[Finding]:
    """Yield what there is to say about a page."""
    yield from _name(page)
    yield from _size(page)
    if not page.is_utf8:
        yield _bad_bytes(page)
        if page.raw[:2] in UTF_16_MARKS:
            return  # nothing else can be said before it is UTF-8
    yield from _characters(page)
    yield from _frontmatter(page)
    if page.frontmatter_error is None:
        yield from _keys(page)
    yield from _body(page)


def key_line(page: Page, key: str) -> int | None:
    """Return the line of the file on which a frontmatter key stands, the last one of several."""
    block = _block(page)
    found = [m.start() for m in re.finditer(rf"^[ \t{{]*[\"']?{re.escape(key)}[\"']?[ \t]*:", block, re.MULTILINE)]
    return 2 + line_of(block, found[-1]) if found else None


def _name(page: Page) -> Iterator[Finding]:
    if "--" in page.name:
        message = "two hyphens in a row: memoryfield-tool cannot edit a page of that name"
        yield Finding("warning", page.filename, None, "P1", message, "rename it")
    elif len(page.name) > LONGEST_NEW_NAME:
        message = f"the name has {len(page.name)} characters; tools that add to it reach the limit of file systems"
        yield Finding("warning", page.filename, None, "P13", message, f"rename it to at most {LONGEST_NEW_NAME}")
    else:
        try:
            new_page_name(page.name)
        except ValueError:
            message = "Windows takes that name for a device and cannot hold the page"
            yield Finding("warning", page.filename, None, "P13", message, "rename it")


def _size(page: Page) -> Iterator[Finding]:
    if page.cut_bytes:
        head = page.raw[:LONGEST_EMBEDDED].decode("utf-8", errors="replace")
        message = f"{page.cut_bytes:,} of {page.size:,} bytes, from this line on, are not embedded"
        remedy = "split the page, or say what matters further up; keyword search finds all of it"
        yield Finding("warning", page.filename, 1 + line_of(head, len(head)), "P4", message, remedy)
    if not page.raw.strip(b"\xef\xbb\xbf \t\r\n"):
        yield Finding("info", page.filename, None, "P3", "the page is empty", "write it or delete it")


def _bad_bytes(page: Page) -> Finding:
    if page.raw[:2] in UTF_16_MARKS:
        try:
            page.raw.decode("utf-16")
        except UnicodeDecodeError:
            return Finding("error", page.filename, 1, "P10", "looks like UTF-16 but is damaged", "mend it by hand")
        remedy = advice(python="plan_fixes() makes it UTF-8", command="validate --fix makes it UTF-8")
        return Finding("error", page.filename, 1, "P10", "the page is UTF-16, not UTF-8", remedy, fixable=True)
    try:
        page.raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = page.raw[: error.start].decode("latin-1")
        message = f"byte 0x{page.raw[error.start]:02x} is not valid UTF-8; the page is read without it and not edited"
        how = advice(python="plan_fixes(reencode=True)", command="validate --fix --reencode")
        remedy = f"{how} reads the page as Windows-1252 or Latin-1; look at the diff"
        return Finding("error", page.filename, 1 + line_of(before, len(before)), "P10", message, remedy)
    raise AssertionError("called for pages that are not UTF-8")


def _characters(page: Page) -> Iterator[Finding]:
    if page.raw.isascii() and len(page.raw.translate(None, _PLAIN)) == 0:
        return
    text = page.raw.decode("utf-8", errors="ignore").removeprefix("\ufeff")
    if _STRANGE.search(text):
        for pattern, level, name, remedy in _GROUPS:
            found = list(pattern.finditer(text))
            if found:
                more = f", and {len(found) - 1} more" if len(found) > 1 else ""
                message = f"{name} U+{ord(found[0][0]):04X}{more}"
                yield Finding(level, page.filename, 1 + line_of(text, found[0].start()), "P3", message, remedy)
    if b"\r" in page.raw:
        lone = _LONE_CR.search(text)
        if lone is not None:
            message = "a line ends in CR alone; many tools take all that follows for one line"
            line = 1 + line_of(text, lone.start())
            yield Finding("warning", page.filename, line, "P6", message, "write LF or CRLF line ends")


def _frontmatter(page: Page) -> Iterator[Finding]:
    problem = page.frontmatter_error
    if problem is not None:
        message = f"the frontmatter cannot be read: {problem.message}"
        fixable = quoted(page.raw) is not None
        if fixable:
            remedy = advice(python="plan_fixes() puts it in quotes", command="validate --fix puts it in quotes")
        else:
            remedy = "mend it in a text editor; until then the page is read without it and not edited"
        yield Finding("error", page.filename, problem.line, problem.rule or "P8", message, remedy, fixable=fixable)
    for problem in page.warnings:
        yield _warning(page, problem)
    foreign = None if page.has_frontmatter else _FOREIGN_FRONT.match(page.raw.removeprefix(BOM))
    if foreign is not None:
        message = (
            f"begins with {(foreign[1] or foreign[2]).decode()}: TOML and JSON are not read as frontmatter but as body"
        )
        yield Finding("info", page.filename, 1, "P6", message, "write the keys as YAML between lines of ---")
    if page.has_frontmatter and page.raw.count(b"---") > 2:
        body = page.body.lstrip("\r\n \t")
        if not body.startswith("---"):
            return
        second = read_frontmatter(body.encode("utf-8", errors="replace"))
        if second.present and (second.fields or second.error is not None):
            start = len(page.text) - len(body)
            message = "a second block of frontmatter follows the first; it is read as body"
            line = 1 + line_of(page.text, start)
            yield Finding("warning", page.filename, line, "P8", message, "join the two by hand")


def _warning(page: Page, problem: Problem) -> Finding:
    if problem.message.startswith(("created ", "updated ")):
        remedy = "write it as 'YYYY-MM-DDTHH:MM:SSZ', in quotes"
        return Finding("warning", page.filename, problem.line, problem.rule or "P7", problem.message, remedy)
    if problem.rule == "P7":
        return Finding(
            "error", page.filename, problem.line, "P7", problem.message, "remove the other lines of that key"
        )
    return Finding("warning", page.filename, problem.line, problem.rule or "P6", problem.message, "mend it by hand")


def _keys(page: Page) -> Iterator[Finding]:
    fields = page.frontmatter
    for key in ("title", "summary", "uuid"):
        value = fields.get(key)
        if value is not None and not isinstance(value, str):
            kind = "a list" if isinstance(value, list) else "a mapping"
            message = f"{key} is {kind}, not text; it is shown as {as_text(value)[:60]!r}"
            yield Finding("warning", page.filename, key_line(page, key), "P3", message, "write it in quotes")
    for key in fields:
        lower = key.lower()
        if lower != key and lower in KNOWN_KEYS and lower not in fields:
            message = f"the key {key!r} is kept but not read as {lower!r}"
            yield Finding("info", page.filename, key_line(page, key), "P3", message, f"write {lower!r} if it is meant")
    if page.uuid is not None and isinstance(fields.get("uuid"), str) and not _UUID.fullmatch(page.uuid):
        message = f"uuid is no UUID: {page.uuid[:60]!r}"
        remedy = "other tools may refuse or replace it: put a UUID there"
        yield Finding("warning", page.filename, key_line(page, "uuid"), "P12", message, remedy)
    yield from _dates(page)
    for key, value in fields.items():
        if isinstance(value, list) and any(isinstance(item, list) for item in value):
            message = f"{key} holds a list within a list; a [[wiki link]] without quotes is read so"
            yield Finding("info", page.filename, key_line(page, key), "P7", message, "put the link in quotes")
    if b" #" in page.raw and fields:
        block = _block(page)
        for match in _COMMENTED.finditer(block):
            message = f"what follows ' #' in {match[1]} is a comment for YAML and not read"
            yield Finding("info", page.filename, 2 + line_of(block, match.start()), "P7", message, "quote the value")


def _dates(page: Page) -> Iterator[Finding]:
    created, updated = (parse_date(text) if text else None for text in (page.created, page.updated))
    if created is not None and updated is not None and updated < created:
        message = f"updated ({page.updated}) is before created ({page.created})"
        yield Finding("warning", page.filename, key_line(page, "updated"), "P3", message, "correct one of them")
    for key, text, moment in (("created", page.created, created), ("updated", page.updated, updated)):
        if moment is not None and text and len(text) > _DAY_ONLY and not _HAS_ZONE.search(text):
            message = f"{key} names no time zone; it is taken as UTC"
            yield Finding("info", page.filename, key_line(page, key), "P7", message, "add Z or an offset")


def _body(page: Page) -> Iterator[Finding]:
    raw = page.raw
    if b"<<<<<<< " in raw:
        line = _conflict(page.text)
        if line is not None:
            message = "a merge conflict was not resolved"
            remedy = "keep one side and remove the markers"
            yield Finding("warning", page.filename, line, "P3", message, remedy)
    if b"```" in raw or b"~~~" in raw:
        marked = list(lines(page.body + "\n\n-\n"))
        if marked[-1].in_code:
            first = len(marked) - 1
            while first and marked[first - 1].in_code:
                first -= 1
            start = len(page.text) - len(page.body) + marked[first].start
            message = "a code fence is never closed; the rest of the page is code"
            yield Finding("info", page.filename, 1 + line_of(page.text, start), "P3", message, "close it")
    if b"data:" in raw:
        for match in _DATA_URI.finditer(page.text):
            message = f"{len(match[0]):,} characters of encoded data stand among the text and are embedded with it"
            line = 1 + line_of(page.text, match.start())
            yield Finding("info", page.filename, line, "P4", message, "put the file beside the page")
    if page.frontmatter_error is None and not _has_title(page):
        yield Finding("info", page.filename, None, "P3", "no title and no heading: the page is shown under its name")
    if raw.strip() and not _TEXT_LINE.search(page.body):
        yield Finding("info", page.filename, None, "P3", "the page has no text of its own", "write it or delete it")


def _conflict(text: str) -> int | None:
    """Return the line of the first whole set of conflict markers outside of fenced code."""
    begun, halved = 0, False
    for number, line in enumerate(lines(text), 1):
        if line.in_code:
            continue
        if line.text.startswith("<<<<<<< "):
            begun, halved = number, False
        elif begun and line.text == "=======":
            halved = True
        elif halved and line.text.startswith(">>>>>>> "):
            return begun
    return None


def _block(page: Page) -> str:
    begin, end = read_frontmatter(page.raw).inner
    return page.raw[begin:end].decode("utf-8", errors="replace")


def _has_title(page: Page) -> bool:
    return bool(as_text(page.frontmatter.get("title")).strip() or first_heading(page.body))
