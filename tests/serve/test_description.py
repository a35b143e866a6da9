"""The description of the routes, held against the server by a program that knows neither."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryfield.serve.policy import Policy

TOKEN = "a-long-enough-token-for-tests"
CODE = "from schemathesis.cli import schemathesis; schemathesis()"


@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed")
def test_the_server_does_what_its_description_says_and_nothing_else(running: Any, field: Any, tmp_path: Path) -> None:
    options = [
        *("--phases", "coverage,fuzzing", "--max-examples", "4", "--seed", "1", "--no-color", "--workers", "1"),
        *("--generation-database", "none", "--checks", "all"),
        # a condition that is not met, a page that is not there: right as asked, and not fulfilled
        *("--exclude-checks", "positive_data_acceptance"),
        *("--header", f"Authorization: token {TOKEN}"),  # it also asks without, and with another
    ]
    with running({"memory": field}, Policy(writes=True, token=TOKEN)) as server:
        command = [sys.executable, "-c", CODE, "run", f"http://127.0.0.1:{server.port}/openapi.json", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    said = [line[:200] for line in done.stdout.splitlines()]  # the requests it shows can be very long
    assert done.returncode == 0, "\n".join(said[-80:])
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated and int(generated[1]) > 50, "\n".join(said[-30:])
