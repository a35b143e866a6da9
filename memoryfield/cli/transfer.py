"""Verbs for two places of a field: push and pull carry pages, changed shows what is not the same."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import add_on_secrets, note, say, show
from memoryfield.errors import FieldNotFound


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "push",
        _push,
        "bring the pages of a field to another place; shows the plan, --yes does it",
        "memoryfield push notes/ s3://bucket/notes",
        "memoryfield push notes/ s3://bucket/notes --yes",
    )
    verb.add_argument("--create", action="store_true", help="make the directory PLACE when it is missing")
    add_on_secrets(verb)
    _add_arguments(verb)
    verb = verbs.add(
        "pull",
        _pull,
        "bring the pages of another place to a field; shows the plan, --yes does it",
        "memoryfield pull notes/ https://host/notes",
        "memoryfield pull notes/ https://host/notes --yes --take tea",
    )
    _add_arguments(verb)
    verb = verbs.add(
        "changed",
        _changed,
        "show what changed from another place, or from a commit, to a field",
        "memoryfield changed @HEAD~3 notes/",
        "memoryfield changed s3://bucket/notes notes/ --diff",
    )
    verb.add_argument(
        "earlier", help="directory, archive or address; or @REVISION: the field at a commit of its git repository"
    )
    verb.add_argument("field", help="directory or archive, or an address: the pages as they are now")
    verb.add_argument("--diff", action="store_true", help="print the lines that changed")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _add_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("field", help="directory of pages, or an address")
    verb.add_argument("place", help="directory, or an address such as s3://bucket/prefix or https://host/field")
    verb.add_argument("--yes", dest="apply", action="store_true", help="do it")
    verb.add_argument("--apply", action="store_true", help=argparse.SUPPRESS)  # its name in earlier versions
    verb.add_argument(
        "--take", nargs="+", default=[], metavar="NAME", help="conflicts in which the page that comes is right"
    )
    verb.add_argument("--json", action="store_true", help="print JSON")


def _push(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field
    from memoryfield.stores.opening import is_address

    if not (options.create or is_address(options.place) or Path(options.place).expanduser().exists()):
        raise FieldNotFound(f"{options.place} is not there; --create makes the directory")
    plan = open_field(options.field).plan_push(options.place, create=options.create, on_secrets=options.on_secrets)
    return _carry(plan, options)


def _pull(options: argparse.Namespace) -> int:
    from memoryfield.cli.fields import open_field

    return _carry(open_field(options.field).plan_pull(options.place), options)


def _carry(plan: Any, options: argparse.Namespace) -> int:
    """Show a plan, or do it; conflicts that are left make the exit code 1."""
    done = plan.apply(options.take) if options.apply else plan
    show(done, options.json)
    if not options.apply and plan.changes:
        note("nothing was written; --yes does it")
    return NOTHING if done.conflicts else DONE


def _changed(options: argparse.Namespace) -> int:
    """Show what changed; where nothing did, the exit code is 1."""
    from memoryfield.cli.fields import open_field

    found = open_field(options.field).changes_since(options.earlier)
    if options.diff and not options.json:
        say(found.diff())
    else:
        show(found, options.json)
    return DONE if found else NOTHING
