"""Several who write at once: nobody is refused without reason, and nothing that was taken is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import memoryfield as mf


def test_writes_without_a_condition_are_never_refused_for_one(server: Any) -> None:
    other = mf.open_field(server.field.path, who="another program")

    def put(number: int) -> int:
        if number % 8 == 7:
            other.put("shared", f"Edit {number} from beside.\n".encode(), replace=True)
            return 204
        return int(server.ask("PUT", "/shared.md", f"Edit {number}.\n".encode()).status)

    with ThreadPoolExecutor(8) as writers:
        statuses = list(writers.map(put, range(64)))
    assert set(statuses) <= {201, 204}, statuses
    assert server.field["shared"].body.startswith("Edit ")


def test_deletes_and_writes_that_meet_are_one_after_the_other(server: Any) -> None:
    def turn(number: int) -> int:
        if number % 3 == 0:
            return int(server.ask("DELETE", "/shared.md").status)
        return int(server.ask("PUT", "/shared.md", f"Edit {number}.\n".encode()).status)

    with ThreadPoolExecutor(8) as writers:
        statuses = list(writers.map(turn, range(60)))
    assert set(statuses) <= {201, 204, 404}, statuses


def test_of_changes_with_one_condition_one_is_taken(server: Any) -> None:
    for turn in range(5):
        tag = server.get("/tea.md").headers["Etag"]
        bodies = [f"Version {turn}.{number}.\n".encode() for number in range(6)]
        ask = partial(server.ask, "PUT", "/tea.md", If_Match=tag)
        with ThreadPoolExecutor(6) as writers:
            statuses = sorted(answer.status for answer in writers.map(ask, bodies))
        assert statuses == [204] + [412] * 5
    with ThreadPoolExecutor(6) as writers:
        made = list(writers.map(lambda n: server.ask("PUT", "/new.md", b"New.\n", If_None_Match="*").status, range(6)))
    assert sorted(made) == [201] + [412] * 5
