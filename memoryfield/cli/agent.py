"""Verbs for agents: mcp, skill."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from memoryfield.cli import DONE
from memoryfield.cli.output import add_on_secrets, heed_secrets_of, say


def add_verbs(verbs: Any) -> None:
    """Add the verbs of this module to a parser."""
    verb = verbs.add(
        "mcp",
        _mcp,
        "serve the memory tools over MCP on standard input and output",
        "memoryfield mcp ~/memory",
        "memoryfield mcp personal=~/memory project=./memory --model auto --who my-agent",
    )
    verb.add_argument("fields", nargs="+", help="directories, each with an optional name= in front")
    verb.add_argument("--model", help="embedding model; default $MEMORYFIELD_MODEL or nomic-embed-text-v1.5")
    verb.add_argument("--who", default="agent", help="who is named in the history (default: agent)")
    verb.add_argument("--read-only", action="store_true", help="offer no tools that change pages")
    add_on_secrets(verb)

    verb = verbs.add("skill", _skill, "write a skill folder for coding agents", "memoryfield skill ~/.agent/skills")
    verb.add_argument("directory", type=Path, help="where skills live; the folder memoryfield is made in it")


def _mcp(options: argparse.Namespace) -> int:
    from memoryfield.agent.jupyter import VARIABLE, fields_from
    from memoryfield.agent.mcp_server import serve_stdio
    from memoryfield.agent.tools import MemoryTools
    from memoryfield.cli.fields import open_field

    named = fields_from({VARIABLE: os.pathsep.join(options.fields)})
    for label, path in named.items():
        if path.exists():  # what is missing is refused below
            heed_secrets_of(label, open_field(path), options.on_secrets)
    tools = MemoryTools(dict(named), model=options.model, who=options.who, read_only=options.read_only)
    serve_stdio(tools)
    return DONE


def _skill(options: argparse.Namespace) -> int:
    from memoryfield.agent.protocol import write_skill

    say(f"written to {write_skill(options.directory)}")
    return DONE
