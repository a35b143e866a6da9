"""Verbs that keep a field clean: history, undo, redo, families, review, merge, health."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from memoryfield.cli import DONE, NOTHING
from memoryfield.cli.output import note, say, say_json, show
from memoryfield.cli.reviewing import review
from memoryfield.display import Table, counted, plain
from memoryfield.errors import QueryError

if TYPE_CHECKING:
    from memoryfield.curate.families import Families
    from memoryfield.curate.family import PairEvidence

_LISTED = 30  # families whose pages are named


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "history",
        _history,
        "list the steps that changed a field, newest first; with --diff show one",
        "memoryfield history notes/",
        "memoryfield history notes/ --page winch-brake",
        "memoryfield history notes/ --diff 12",
        "memoryfield history notes/ --prune 90",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("--page", metavar="NAME", help="only steps that touched this page")
    verb.add_argument("-n", "--limit", type=int, default=20, help="most steps (default: 20)")
    verb.add_argument("--diff", type=int, metavar="STEP", help="show what a step changed")
    verb.add_argument("--prune", type=float, metavar="DAYS", help="forget steps older than so many days; for good")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "undo",
        _undo,
        "take a step back, byte for byte; by default the last",
        "memoryfield undo notes/",
        "memoryfield undo notes/ --step 12",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("--step", type=int, help="step to take back")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add("redo", _redo, "do again what was undone last", "memoryfield redo notes/")
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("--step", type=int, help="step to do again")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "families",
        _families,
        "list the families of pages that say the same",
        "memoryfield families notes/ --model auto",
        "memoryfield families notes/ --model auto --pairs",
    )
    verb.add_argument("field", help="directory or archive")
    verb.add_argument("--model", help="embedding model; auto takes what is ready")
    verb.add_argument("--pairs", action="store_true", help="list the pairs as well, with the reasons")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")
    verb.add_argument("--json", action="store_true", help="print JSON")

    verb = verbs.add(
        "review",
        _review,
        "answer whether two pages say the same; each answer is kept and sharpens the families",
        "memoryfield review notes/ --model auto",
        "memoryfield review notes/ --model auto --questions 20",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("--model", help="embedding model; auto takes what is ready")
    verb.add_argument("--questions", type=int, default=10, help="most questions (default: 10)")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")

    verb = verbs.add(
        "merge",
        _merge,
        "show how several pages become one, without losing a sentence; with --yes do it",
        "memoryfield merge notes/ winch-brake winch-brake-again",
        "memoryfield merge notes/ --family winch-brake --model auto",
        "memoryfield merge notes/ winch-brake winch-brake-again --into winch-brake --yes",
    )
    verb.add_argument("field", help="directory of pages")
    verb.add_argument("names", nargs="*", metavar="NAME", help="pages, at least two")
    verb.add_argument("--family", metavar="PAGE", help="instead of names: every page that says the same as this one")
    verb.add_argument("--model", help="embedding model for --family; auto takes what is ready")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")
    verb.add_argument("--into", metavar="NAME", help="page that stays; proposed when left out")
    verb.add_argument("--drop", nargs="+", default=[], metavar="ID", help="sentences to leave out, by their id")
    verb.add_argument("--account", action="store_true", help="list every sentence, its id and where it is then")
    verb.add_argument("--yes", action="store_true", help="apply the plan")

    verb = verbs.add(
        "health",
        _health,
        "list what a curator should look at: duplicates, stale pages, broken links, secrets",
        "memoryfield health notes/ --model auto",
        "memoryfield health notes/ --days 90 --json",
    )
    verb.add_argument("field", help="directory or archive")
    verb.add_argument("--section", metavar="NAME", help="only this section, all of it: near-duplicates, stale ...")
    verb.add_argument("--days", type=float, default=365, help="age from which a page is stale (default: 365)")
    verb.add_argument("--model", help="embedding model; without one that is ready, duplicates are not checked")
    verb.add_argument("--quiet", action="store_true", help="no progress bar")
    verb.add_argument("--json", action="store_true", help="print JSON")


def _open(options: argparse.Namespace) -> Any:
    from memoryfield.cli.fields import open_field

    return open_field(options.field, model=getattr(options, "model", None))


def _history(options: argparse.Namespace) -> int:
    field = _open(options)
    if options.diff is not None:
        say(field.diff(options.diff))
        return DONE
    if options.prune is not None:
        show(field.prune_history(older_than=options.prune), options.json)
        return DONE
    steps = field.history(options.page, options.limit)
    show(steps, options.json)
    return DONE if len(steps) else NOTHING


def _families(options: argparse.Namespace) -> int:
    found = _open(options).families(progress=not (options.quiet or options.json))
    if options.json:
        pairs = {"pairs": [pair.to_dict() for pair in found.pairs]} if options.pairs else {}
        say_json(found.to_dict() | pairs)
    else:
        say(repr(found))
        _list_members(found)
        if options.pairs:
            _list_pairs(found)
        if len(found):
            note("merge FIELD --family PAGE shows how the family of a page becomes one; review FIELD asks first")
    return DONE if len(found) else NOTHING


def _list_members(found: Families) -> None:
    for family in found[:_LISTED]:
        say(
            f"\n{family.medoid} ({family.probability:.0%})"
            + ("" if family.automatic else ", to look at before a merge")
        )
        for name, title in zip(family.members, family.titles, strict=True):
            say(f"  {name}  {plain(title, 80)}")
    if len(found) > _LISTED:
        say(f"\n... and {len(found) - _LISTED} more; --json lists them all")


def _list_pairs(found: Families) -> None:
    rows = [(f"{pair.probability:.0%}", pair.first, pair.second, _kinds(pair)) for pair in found.pairs[:_LISTED]]
    more = len(found.pairs) - _LISTED
    notes = [f"... and {more:,} more; --json lists them all"] if more > 0 else []
    heading, columns = counted(len(found.pairs), "pair"), ("likely", "page", "other page", "why")
    say("\n" + Table(heading, columns, rows, notes, frozenset(["likely"]), {"why": 80}).text())


def _kinds(pair: PairEvidence) -> str:
    """Return the kinds of evidence of a pair in one line; how strong each is, ``--json`` says."""
    against = ", ".join(reason.kind for reason in pair.opposing)
    kinds = ", ".join(reason.kind for reason in pair.supporting) or "nothing in particular"
    return f"{kinds} | against: {against}" if against else kinds


def _review(options: argparse.Namespace) -> int:
    field = _open(options)
    found = review(field, field.families(progress=not options.quiet), options.questions)
    say(f"\n{found!r}")
    return DONE if len(found) else NOTHING


def _merge(options: argparse.Namespace) -> int:
    field = _open(options)
    if options.family is not None:
        if options.names:
            raise QueryError("give the names of the pages, or --family with one of them, not both")
        name = field.read(options.family).name
        family = field.families(progress=not options.quiet).of(name)
        if family is None:
            raise QueryError(f"{name} stands alone: no other page says the same; name the pages to merge them anyway")
        plan = family.plan(options.into)
    elif len(options.names) < 2:
        raise QueryError(
            "a merge needs two names of pages or more, or --family PAGE; memoryfield families FIELD lists families"
        )
    else:
        plan = field.plan_merge(options.names, options.into)
    if options.drop:
        plan = plan.drop(*options.drop)
    if options.account:
        say(repr(plan.account()))
        return DONE
    say(repr(plan))
    say(plan.diff())
    if not options.yes:
        note("nothing was written: --yes applies the plan, --drop ID leaves a sentence out, --account lists them")
        return DONE
    merged = plan.apply()
    say(f"{', '.join(merged.absorbed)} went into {merged.survivor.name}; memoryfield undo takes it back")
    return DONE


def _undo(options: argparse.Namespace) -> int:
    show(_open(options).undo(options.step), options.json)
    return DONE


def _redo(options: argparse.Namespace) -> int:
    show(_open(options).redo(options.step), options.json)
    return DONE


def _health(options: argparse.Namespace) -> int:
    health = _open(options).health(options.days, progress=not (options.quiet or options.json))
    if options.section is not None:
        health = health.only(options.section)
    show(health, options.json)
    if not options.json:
        if options.section is None and len(health):
            note("--section NAME lists all of one section")
        if health.not_checked:
            note(f"not checked: {', '.join(health.not_checked)} (no model is ready; --model auto takes what is)")
    return NOTHING if len(health) else DONE
