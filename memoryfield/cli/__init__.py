"""The command line: ``memoryfield VERB FIELD ...``. Every verb is one call of ``MemoryField``.

Exit codes: 0 done, 1 nothing found or findings, 2 wrong use, 3 refused (the message says why and what to do).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

DONE, NOTHING, USAGE, REFUSED = 0, 1, 2, 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from memoryfield.advice import MemoryfieldWarning, at_command_line
    from memoryfield.cli.parser import build_parser
    from memoryfield.display import plain
    from memoryfield.errors import MemoryfieldError

    for stream in (sys.stdout, sys.stderr):
        # page names and texts may hold what the terminal's encoding cannot
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    parser = build_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    options = parser.parse_args(arguments)
    try:
        with at_command_line(), warnings.catch_warnings():
            warnings.simplefilter("always", MemoryfieldWarning)
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            code: int = options.run(options)
        if not sys.stdout.closed:  # some servers close what they wrote to
            sys.stdout.flush()
    except MemoryfieldError as error:
        told, _, to_do = str(error).partition(" What to do: ")
        sys.stderr.write(f"memoryfield: {plain(told)}\n" + (f"what to do: {plain(to_do)}\n" if to_do else ""))
        return REFUSED
    except KeyboardInterrupt:
        sys.stderr.write("memoryfield: interrupted; what was finished stays\n")
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has seen enough; nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        sys.stderr.write(f"memoryfield: {plain(f'{error.strerror or error}{place}')}\n")
        return REFUSED
    return code


def _show_warning(
    otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any, **words: Any
) -> None:
    """Show what this library warns of as one line, everything else as Python does."""
    from memoryfield.advice import MemoryfieldWarning
    from memoryfield.display import plain

    if issubclass(category, MemoryfieldWarning):
        sys.stderr.write(f"memoryfield: {plain(message)}\n")
    else:
        otherwise(message, category, *rest, **words)


__all__ = ["DONE", "INTERRUPTED", "NOTHING", "REFUSED", "USAGE", "main"]
