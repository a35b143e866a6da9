"""Links that lead nowhere are found, whatever they were to lead to; links that lead somewhere are left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryfield.curate.health import health
from memoryfield.format.deadlinks import dead_links, held_names
from memoryfield.format.directory import PageDirectory
from memoryfield.format.links import links
from memoryfield.format.page import Page
from memoryfield.format.validate import validate


@pytest.fixture
def field(tmp_path: Path) -> PageDirectory:
    (tmp_path / "boat-hoist.md").write_text("The hoist.\n")
    (tmp_path / "My Old Page.md").write_text("No page, because of its name.\n")
    (tmp_path / "plan.pdf").write_bytes(b"%PDF-1.4\n")
    (tmp_path / "photos").mkdir()
    return PageDirectory(tmp_path)


@pytest.mark.parametrize(
    ("text", "said", "to_do"),
    [
        ("See [[Boat Hoist!]].", "a name that no page can have", "write boat-hoist, which is there"),
        ("See [[Neue Übersicht|there]].", "a name that no page can have", "write that page as neue-ubersicht"),
        ("See [[日本]].", "a name that no page can have", ""),
        ("See [it](Boat_Hoist.md).", "a name that no page can have", "write boat-hoist"),
        ("See [it](boat%20hoist.md).", "a name that no page can have", "write boat-hoist"),
        ("See [it](keel.md#part).", "links to keel.md, which is not there", "write that page"),
        ("![the hoist](hoist.png)", "shows hoist.png, which is not there", "put that file"),
        ("![the hoist](<the hoist.png>)", "shows the hoist.png", "put that file"),
        ("![the hoist](hoist)", "shows hoist", "put that file"),
        ("![[hoist.png]]", "shows hoist.png", "put that file"),
        ("See [the paper](./paper.pdf).", "links to paper.pdf", "put that file"),
        ("See [it](sub/plan.pdf).", "links to sub/plan.pdf", "put that file"),
        ("See [it](../plan.pdf).", "leads out of the field", "put the file into the field"),
        ("[paper]: paper.pdf\n\nSee [paper].", "links to paper.pdf", "put that file"),
    ],
)
def test_a_link_that_leads_nowhere_is_found_with_its_line(
    field: PageDirectory, text: str, said: str, to_do: str
) -> None:
    page = Page("tide", f"---\ntitle: Tide\n---\nFirst line.\n\n{text}\n".encode())
    (found,) = dead_links(page, held_names(field))
    assert said in found.message and to_do in found.remedy and found.line == 6


@pytest.mark.parametrize(
    "text",
    [
        "See [[boat-hoist]] and [[Boat-Hoist|it]] and [it](boat-hoist.md#part).",
        "See [the plan](plan.pdf), [it](./plan.pdf#page=2) and ![it](photos/one.png).",
        "See [it](https://example.com/x.png), [it](//example.com/x.pdf), [it](/x.pdf), [it](mailto:a@example.com).",
        "See [it](#part), [it](www.example.com/x.html) and ![it](data:image/png;base64,AAAA).",
        "In code: `[[No Page]]`, and a[0](x.y), f[1](args.first).",
        "```\n[[No Page]] ![x](y.png)\n```",
        "See [it](My%20Old%20Page.md): the file is there, and its name has a finding of its own.",
    ],
)
def test_a_link_that_leads_somewhere_or_elsewhere_is_left_alone(field: PageDirectory, text: str) -> None:
    assert list(dead_links(Page("tide", f"{text}\n".encode()), held_names(field))) == []


def test_validate_and_health_say_the_same(field: PageDirectory) -> None:
    field.create("tide", title="Tide", summary="s", body="See [[Boat Hoist!]], ![](x.png) and [it](gone.md).\n")
    said = [finding.message for finding in validate(field).by_file("tide.md")]
    items = [item.message for item in health(field).section("broken-links")]
    assert len(items) == 3 and said == sorted(items)


def test_a_line_of_very_many_links_takes_no_longer_than_reading_them() -> None:
    page = Page("tide", b"".join(b"[a](b%d) " % number for number in range(30_000)))

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    reading = min(seconds(lambda: list(links(page.raw))) for _ in range(2))
    assert seconds(lambda: list(dead_links(page, frozenset()))) < 6 * reading  # it was 15 and grew with the page
