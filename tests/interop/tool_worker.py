"""Run commands of memoryfield-tool, one after the other; started with the Python of the environment that has the tool.

The tool takes a second to import. So this process imports it once and, for each request, forks a child that runs the
command as the tool's own entry point does: fresh state, own exit code. Where there is no fork, each command is a new
process.

Requests and replies are JSON, one a line, on standard input and output. A request has ``args``, ``env``, ``stdin``,
``stdout`` and ``stderr`` (file names) and ``background``: the verbs that write pages start ``index`` behind the
caller's back, which would still write into the field while the next test step runs; ``wait`` lets it run and waits for
it, ``skip`` leaves it out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from types import SimpleNamespace
from typing import Any


def run_command(args: list[str], background: str) -> int:
    """Run one command of the tool in this process and return its exit code."""
    from memoryfield_tool import cli, reindex

    def awaited(*arguments: Any, **keywords: Any) -> None:
        if background == "wait":
            subprocess.run(*arguments, **{k: v for k, v in keywords.items() if k != "start_new_session"}, check=False)

    reindex.subprocess = SimpleNamespace(Popen=awaited, DEVNULL=subprocess.DEVNULL)
    try:
        cli.cli(args=args, prog_name="memoryfield-tool")
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        return code if isinstance(code, int) else int(code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def in_fork(request: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        os.environ.update(request["env"])
        for number, (name, flags) in enumerate(
            [("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY | os.O_CREAT), ("stderr", os.O_WRONLY | os.O_CREAT)]
        ):
            handle = os.open(request[name], flags, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        code = run_command(request["args"], request["background"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def in_process(request: dict[str, Any]) -> int:
    with (
        open(request["stdin"], "rb") as source,
        open(request["stdout"], "wb") as out,
        open(request["stderr"], "wb") as err,
    ):
        return subprocess.run(
            [sys.executable, __file__, request["background"], *request["args"]],
            env={**os.environ, **request["env"]},
            stdin=source,
            stdout=out,
            stderr=err,
            check=False,
        ).returncode


def serve() -> None:
    from importlib.metadata import version

    import memoryfield_tool.cli  # noqa: F401 - loaded here once, for all children

    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    run = in_fork if hasattr(os, "fork") else in_process
    print(json.dumps({"version": version("memoryfield-tool")}), file=replies, flush=True)
    while line := requests.readline():
        print(json.dumps({"code": run(json.loads(line))}), file=replies, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(run_command(sys.argv[2:], sys.argv[1]))
    serve()
