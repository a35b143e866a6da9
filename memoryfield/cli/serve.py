"""The verb serve: fields over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import Any

from memoryfield.cli import DONE
from memoryfield.cli.output import add_on_secrets, heed_secrets_of, say
from memoryfield.errors import QueryError


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "serve",
        _serve,
        "serve fields over HTTP, to this machine only unless told otherwise",
        "memoryfield serve notes/",
        "memoryfield serve personal=~/memory project=./memory --port 9000 --model auto",
        "MEMORYFIELD_SERVE_TOKEN=... memoryfield serve notes/ --writes --address 0.0.0.0 --host box.example",
    )
    verb.add_argument("fields", nargs="+", help="directories or archives, each with an optional name= in front")
    verb.add_argument("--address", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    verb.add_argument("--port", type=int, default=8765, help="port, 0 for any (default: 8765)")
    verb.add_argument("--host", action="append", default=[], help="name by which clients know this server; repeatable")
    verb.add_argument(
        "--writes", action="store_true", help="take PUT and DELETE; beyond this machine only with a token"
    )
    verb.add_argument("--model", help="embedding model; without one that is ready, search goes by words")
    add_on_secrets(verb)


def _serve(options: argparse.Namespace) -> int:
    from memoryfield.agent.jupyter import VARIABLE, fields_from
    from memoryfield.cli.fields import open_field
    from memoryfield.serve.policy import Policy
    from memoryfield.serve.standalone import serve

    if not 0 <= options.port <= 65535:
        raise QueryError(f"--port is {options.port}; expected 0 (any) to 65535")
    named = fields_from({VARIABLE: os.pathsep.join(options.fields)})
    fields = {label: open_field(path, model=options.model, who="http") for label, path in named.items()}
    for label, field in fields.items():
        heed_secrets_of(label, field, options.on_secrets)
    policy = Policy(options.writes, os.environ.get("MEMORYFIELD_SERVE_TOKEN") or None, tuple(options.host))

    def ready(port: int) -> None:
        shown = f"[{options.address}]" if ":" in options.address else options.address
        say(f"serving {', '.join(fields)} at http://{shown}:{port}/ (end with Ctrl-C)")

    with contextlib.suppress(KeyboardInterrupt):  # which is how it ends
        serve(fields, address=options.address, port=options.port, policy=policy, ready=ready)
    return DONE
