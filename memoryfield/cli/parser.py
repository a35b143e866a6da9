"""What can be typed: verbs, options, help with examples."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from memoryfield.cli import agent, compare, curate, evaluate, exchange, pages, serve, study, transfer


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; each verb sets ``run``."""
    parser = argparse.ArgumentParser(
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="print the version and end")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    pages.add_verbs(_Verbs(verbs))
    exchange.add_verbs(_Verbs(verbs))
    transfer.add_verbs(_Verbs(verbs))
    curate.add_verbs(_Verbs(verbs))
    study.add_verbs(_Verbs(verbs))
    evaluate.add_verbs(_Verbs(verbs))
    compare.add_verbs(_Verbs(verbs))
    agent.add_verbs(_Verbs(verbs))
    serve.add_verbs(_Verbs(verbs))
    completion = _Verbs(verbs).add(
        "completion",
        _completion,
        "print a script that completes verbs and options",
        'eval "$(memoryfield completion bash)"',
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    return parser


class _ShowVersion(argparse.Action):
    """Print the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from memoryfield import __version__

        sys.stdout.write(f"memoryfield {__version__}\n")
        parser.exit()


class _Verbs:
    """Adds verbs that all look alike."""

    def __init__(self, verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        self._verbs = verbs

    def add(self, name: str, run: Any, summary: str, *examples: str) -> argparse.ArgumentParser:
        """Add a verb with its function, a line of help and examples."""
        shown = "\n".join(f"  {example}" for example in examples)
        verb = self._verbs.add_parser(
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
