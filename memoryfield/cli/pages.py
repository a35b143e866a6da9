"""Verbs that read and change pages: init, new, list, show, edit, write, rename, delete, validate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import note, say, say_json
from memoryfield.display import counted
from memoryfield.errors import QueryError


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add("init", _init, "make an empty field", "memoryfield init notes/")
    verb.add_argument("field", help="directory to make")

    verb = verbs.add(
        "new",
        _new,
        "create a page",
        'memoryfield new notes/ --title "Winch brake" --body "Oil it in spring."',
        'memoryfield new notes/ winch-brake --title "Winch brake" < text.md',
    )
    _field(verb)
    verb.add_argument("name", nargs="?", help="page name; made from the title when left out")
    verb.add_argument("--title")
    verb.add_argument("--summary", help="one line that says what the page holds")
    verb.add_argument("--body", help="text; read from standard input when left out and something is piped in")
    _keys(verb)

    verb = verbs.add(
        "list", _list, "list pages", "memoryfield list notes/", "memoryfield list notes/ --where tags=ci --json"
    )
    _field(verb)
    where(verb)
    _json(verb)

    verb = verbs.add("show", _show, "print a page", "memoryfield show notes/ winch-brake")
    _field(verb)
    verb.add_argument("name")
    _json(verb)

    verb = verbs.add(
        "edit",
        _edit,
        "change parts of a page; without options in $EDITOR",
        'memoryfield edit notes/ winch-brake --title "Winch brake, new pads"',
        "memoryfield edit notes/ winch-brake --set status=done --unset draft",
        'memoryfield edit notes/ winch-brake --append "Checked again in May."',
    )
    _field(verb)
    verb.add_argument("name")
    verb.add_argument("--title")
    verb.add_argument("--summary")
    verb.add_argument("--body", help="new body in place of the old; - reads standard input")
    verb.add_argument("--append", metavar="TEXT", help="text to add at the end; - reads standard input")
    verb.add_argument("--section", nargs=2, metavar=("HEADING", "TEXT"), help="new text of one section")
    _keys(verb)
    verb.add_argument("--unset", action="append", default=[], metavar="KEY", help="remove a frontmatter key")
    verb.add_argument("--allow-empty", action="store_true", help="also take an empty body")
    verb.add_argument("--if-sha256", metavar="SHA256", help="only if the page is still this version")

    verb = verbs.add(
        "write",
        _write,
        "store a whole page file as it is, read from standard input or a file",
        "memoryfield write notes/ winch-brake < winch-brake.md",
    )
    _field(verb)
    verb.add_argument("name")
    verb.add_argument("--file", type=Path, help="file to read instead of standard input")
    verb.add_argument("--replace", action="store_true", help="overwrite the page if it is there")
    verb.add_argument("--allow-empty", action="store_true", help="also overwrite a page with nothing")
    verb.add_argument("--if-sha256", metavar="SHA256", help="overwrite only this version of the page")

    verb = verbs.add(
        "rename", _rename, "rename a page and the links to it", "memoryfield rename notes/ brake winch-brake"
    )
    _field(verb)
    verb.add_argument("old")
    verb.add_argument("new")
    verb.add_argument("--force", action="store_true", help="also index or listing, which have a meaning of their own")

    verb = verbs.add("delete", _delete, "delete a page", "memoryfield delete notes/ winch-brake")
    _field(verb)
    verb.add_argument("name")
    verb.add_argument("--force", action="store_true", help="also index or listing, which have a meaning of their own")
    verb.add_argument("--if-sha256", metavar="SHA256", help="only if the page is still this version")

    verb = verbs.add(
        "validate",
        _validate,
        "check every page; with --fix show repairs, with --yes apply them",
        "memoryfield validate notes/",
        "memoryfield validate notes/ --fix",
        "memoryfield validate notes/ --fix --yes",
    )
    _field(verb)
    verb.add_argument("--fix", action="store_true", help="show the diff of what can be repaired without guessing")
    verb.add_argument("--yes", action="store_true", help="with --fix: apply it")
    verb.add_argument(
        "--reencode",
        nargs="?",
        const=True,
        metavar="ENCODING",
        help="with --fix: read pages that are not UTF-8 in this encoding; without one as Windows-1252",
    )
    verb.add_argument("--level", choices=["error", "warning", "info"], default="info", help="lowest level to list")
    _json(verb)


def _field(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("field", help="directory or .memoryfield.zip")


def _json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", action="store_true", help="print JSON")


def _keys(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="frontmatter key; [a, b] is a list"
    )


def where(verb: argparse.ArgumentParser) -> None:
    """Add the option that filters by frontmatter."""
    verb.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE", help="only pages with this frontmatter"
    )


def conditions(pairs: list[str]) -> dict[str, Any]:
    """Turn ``KEY=VALUE`` options into a filter; one key given twice means either value."""
    wanted: dict[str, Any] = {}
    for pair in pairs:
        key, value = _pair(pair)
        wanted[key] = [*wanted.get(key, []), value]
    return {key: values[0] if len(values) == 1 else values for key, values in wanted.items()}


def _pair(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key.strip():
        raise QueryError(f"{pair!r} is not KEY=VALUE")
    return key.strip(), value


def _values(pairs: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        key, value = _pair(pair)
        if value.startswith("[") and value.endswith("]"):
            values[key] = [part.strip() for part in value[1:-1].split(",") if part.strip()]
        else:
            values[key] = value
    return values


def _open(options: argparse.Namespace, create: bool = False) -> Any:
    from memoryfield.cli.fields import open_field

    return open_field(options.field, create)


def _stdin() -> Any:
    if sys.stdin is None:
        raise QueryError("standard input is closed")
    return sys.stdin


def _text(given: str | None) -> str | None:
    return _stdin().read() if given == "-" else given


def _init(options: argparse.Namespace) -> int:
    field = _open(options, create=True)
    say(f"{field.path}: {counted(len(field), 'page')}")
    return DONE


def _new(options: argparse.Namespace) -> int:
    body = options.body
    if body is None:
        body = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    values = _values(options.set)
    reserved = sorted({"name", "title", "summary", "body", "on_similar", "self"} & set(values))
    if reserved:
        raise QueryError(f"--set {reserved[0]}=... cannot be given here; title, summary and body have options")
    page = _open(options).write(
        options.name, title=options.title, summary=options.summary, body=_text(body) or "", **_values(options.set)
    )
    say(page.name)
    return DONE


def _list(options: argparse.Namespace) -> int:
    from memoryfield.display import Table

    field = _open(options)
    pages = [field.read(name) for name in field.select(conditions(options.where))]
    if options.json:
        say_json([page.to_dict() for page in pages])
    elif pages:
        rows = [(page.name, page.title, page.updated or page.created or "", page.size) for page in pages]
        columns = ["name", "title", "updated", "bytes"]
        say(Table(counted(len(pages), "page"), columns, rows, right=frozenset({"bytes"})).text())
    else:
        note("no page matches" if options.where else "no pages yet; memoryfield new FIELD --title ... makes one")
    return DONE if pages else NOTHING


def _show(options: argparse.Namespace) -> int:
    page = _open(options).read(options.name)
    if options.json:
        say_json(page.to_dict())
    elif sys.stdout.isatty():
        from memoryfield.display import plain

        # a page from a stranger may hold codes that rewrite the terminal
        say("\n".join(plain(line) if not line.isprintable() else line for line in page.text.split("\n")))
    else:
        sys.stdout.buffer.write(page.raw)
    return DONE


def _edit(options: argparse.Namespace) -> int:
    field = _open(options)
    keys: dict[str, Any] = {**_values(options.set), **dict.fromkeys(options.unset)}
    asked = [options.title, options.summary, options.body, options.append, options.section]
    if all(part is None for part in asked) and not keys:
        from memoryfield.cli.editor import edit_in_editor

        return edit_in_editor(field, options.name)
    before = field.read(options.name)
    body = _text(options.body)
    if body is not None and before.body.strip() and not options.allow_empty:
        _not_empty(body, "the new body")
    page = field.edit(
        options.name,
        title=options.title,
        summary=options.summary,
        keys=keys or None,
        body=body,
        append=_text(options.append),
        section=tuple(options.section) if options.section else None,
        if_sha256=options.if_sha256,
    )
    say(f"{page.name} {'unchanged' if page.sha256 == before.sha256 else 'changed'}")
    return DONE


def _not_empty(given: str | bytes, what: str) -> None:
    """Refuse to empty a page because a program before the pipe failed."""
    if not given.strip():
        raise QueryError(f"{what} is empty, and the page is not; --allow-empty stores that")


def _write(options: argparse.Namespace) -> int:
    if options.file:
        if not options.file.is_file():
            raise QueryError(f"{options.file} is no regular file")
        raw = options.file.read_bytes()
    else:
        raw = _stdin().buffer.read()
    field = _open(options)
    if options.name in field and not options.allow_empty:
        _not_empty(raw, "what was read")
    page = field.put(options.name, raw, if_sha256=options.if_sha256, replace=options.replace)
    say(page.name)
    return DONE


def _rename(options: argparse.Namespace) -> int:
    page = _open(options).rename(options.old, options.new, force=options.force)
    say(f"{options.old} -> {page.name}")
    return DONE


def _delete(options: argparse.Namespace) -> int:
    _open(options).delete(options.name, if_sha256=options.if_sha256, force=options.force)
    say(f"{options.name} deleted")
    return DONE


def _validate(options: argparse.Namespace) -> int:
    field = _open(options)
    if options.fix:
        return _fix(options, field)
    findings = _findings(options, field)
    say_json([finding.to_dict() for finding in findings]) if options.json else _say_findings(findings, "finding")
    return NOTHING if any(finding.level != "info" for finding in findings) else DONE


def _fix(options: argparse.Namespace, field: Any) -> int:
    """Show the repairs, or apply them, and what remains to be done by hand either way."""
    fixes = field.plan_fixes(reencode=options.reencode)
    repaired = fixes.apply() if options.yes else ()
    planned = {(fix.filename, fix.rule) for fix in fixes}
    remaining = [
        finding
        for finding in _findings(options, field)
        if options.yes or not (finding.fixable or (finding.filename, finding.rule) in planned)
    ]
    if options.json:
        repairs = [{"filename": fix.filename, "rule": fix.rule, "what": fix.message} for fix in fixes]
        remain = [finding.to_dict() for finding in remaining]
        say_json({"repairs": repairs, "written": bool(repaired), "remaining": remain})
    else:
        say(fixes.diff() or "nothing that can be repaired without guessing")
        for name in repaired:
            say(f"repaired {name}")
        for name, reason in fixes.left:
            note(f"{name} is left as it is: {reason}")
        _say_findings(remaining, "finding remains", "findings remain")
        if len(fixes) and not options.yes:
            note("nothing was written; --fix --yes applies it")
    waits = bool(fixes) and not options.yes
    return NOTHING if waits or any(finding.level != "info" for finding in remaining) else DONE


def _findings(options: argparse.Namespace, field: Any) -> list[Any]:
    levels = ("error", "warning", "info")
    return [f for f in field.validate() if levels.index(f.level) <= levels.index(options.level)]


def _say_findings(findings: list[Any], *words: str) -> None:
    for finding in findings:
        say(str(finding))
    note(counted(len(findings), *words) if findings else f"no {words[-1] if len(words) > 1 else words[0] + 's'}")
