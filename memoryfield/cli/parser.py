"""What can be typed: verbs, options, help with examples."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from memoryfield.cli import agent, compare, curate, evaluate, exchange, pages, serve, study, transfer

_LIKE = 0.65  # how much of a word that somebody meant has to be in what was typed

# What the verbs are for, as the help of the whole command line shows them.
_GROUPS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("pages", (pages,)),
    ("to and from elsewhere", (exchange, transfer)),
    ("keeping a field clean", (curate,)),
    ("searching and looking", (study,)),
    ("measuring", (evaluate, compare)),
    ("agents and other programs", (agent, serve)),
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; each verb sets ``run``."""
    parser = _Parser(
        prog="memoryfield",
        description="Open, search, study and curate a memoryfield: a directory of Markdown pages.",
        epilog=(
            "examples:\n"
            "  memoryfield demo\n"
            "  memoryfield list notes/\n"
            '  memoryfield search notes/ "why did the build stop" --model auto\n'
            "  memoryfield validate notes/ --fix\n\n"
            "exit codes: 0 done, 1 nothing found or findings, 2 wrong use, 3 refused"
        ),
        formatter_class=_Grouped,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version and end")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for heading, rooms in _GROUPS:
        before = len(verbs._choices_actions)
        for room in rooms:
            room.add_verbs(_Verbs(verbs))
        vars(verbs._choices_actions[before])["heading"] = heading
    completion = _Verbs(verbs).add(
        "completion",
        _completion,
        "print a script that completes verbs and options",
        'eval "$(memoryfield completion bash)"',
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    return parser


class _Parser(argparse.ArgumentParser):
    """Says of a word that it does not know which one may have been meant, with the usage of the verb it belongs to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, and refuse here what no verb above could take either."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
            near = [match for word in rest for match in get_close_matches(word.partition("=")[0], flags, 2, _LIKE)]
            self.error(f"not understood: {' '.join(rest)}{_meant(near)}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        is_verb = action.dest == "verb"
        what = "there is no verb" if is_verb else f"{'/'.join(action.option_strings) or action.dest} cannot be"
        listed = "memoryfield --help lists all verbs" if is_verb else f"there are: {', '.join(choices)}"
        meant = _meant(get_close_matches(str(value).lower(), choices, 2, _LIKE))
        raise argparse.ArgumentError(None, f"{what} {value!r}{meant or '; ' + listed}")


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""


class _Grouped(argparse.RawDescriptionHelpFormatter):
    """Puts a heading above the first verb of each group."""

    def _format_action(self, action: argparse.Action) -> str:
        heading = vars(action).get("heading")
        text = super()._format_action(action)
        return f"\n  {heading}:\n{text}" if heading else text


class _ShowVersion(argparse.Action):
    """Print the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from memoryfield import __version__

        sys.stdout.write(f"memoryfield {__version__}\n")
        parser.exit()


class _Verbs:
    """Adds verbs that all look alike."""

    def __init__(self, verbs: argparse._SubParsersAction[Any]) -> None:
        self._verbs = verbs

    def add(self, name: str, run: Any, summary: str, *examples: str) -> argparse.ArgumentParser:
        """Add a verb with its function, a line of help and examples."""
        shown = "\n".join(f"  {example}" for example in examples)
        verb: argparse.ArgumentParser = self._verbs.add_parser(
            name,
            help=summary,
            description=summary[:1].upper() + summary[1:] + ".",
            epilog=f"example{'s' if len(examples) > 1 else ''}:\n{shown}" if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.set_defaults(run=run)
        return verb


def _completion(options: argparse.Namespace) -> int:
    import shtab

    from memoryfield.cli import DONE
    from memoryfield.cli.output import say

    say(shtab.complete(build_parser(), shell=options.shell))
    return DONE
