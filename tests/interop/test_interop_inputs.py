"""What is sent to the embedding model is the same text, byte for byte, whoever sends it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.interop

LIMIT = 8192
FRONTMATTER = b"---\ntitle: A title\nsummary: A summary.\n---\n\n"


def filled(start: bytes, size: int) -> bytes:
    """Return *start* with words after it, up to a size in bytes."""
    return (start + b"lorem ipsum dolor " * (size // 18 + 1))[:size]


PAGES = {
    "plain.md": FRONTMATTER + b"# Heading\n\nSome words.\n",
    "no-frontmatter.md": b"Only words, and a newline at the end.\n",
    "no-newline.md": b"Only words",
    "empty.md": b"",
    "blanks.md": b" \n\t\n",
    "empty-block.md": b"---\n---\nBody.\n",
    "letterhead.md": b"---\nWorkshop of this and that\n---\n\nDear sir,\n",
    "rule.md": b"Above.\n\n---\n\nBelow.\n",
    "exactly-8192.md": filled(FRONTMATTER, LIMIT),
    "one-more.md": filled(FRONTMATTER, LIMIT + 1),
    "far-over.md": filled(FRONTMATTER, 50_000),
    "cut-in-two-bytes.md": filled(b"", LIMIT - 1) + "é and more".encode(),
    "cut-in-three-bytes.md": filled(b"", LIMIT - 2) + "東京 and more".encode(),
    "cut-in-four-bytes.md": filled(b"", LIMIT - 3) + "\U0001f9f0 and more".encode(),
    "cut-after-four-bytes.md": filled(b"", LIMIT - 4) + "\U0001f9f0 and more".encode(),
    "cut-before-combining.md": filled(b"", LIMIT - 1) + "e\u0301 and more".encode(),
    "cut-in-a-line-end.md": filled(b"", LIMIT - 1) + b"\r\nmore",
    "cut-in-bad-bytes.md": filled(b"", LIMIT - 2) + b"\xe2\x82 and more",
    "all-cjk.md": ("年間の工房の記録。" * 800).encode(),
    "bad-bytes.md": b"Caf\xe9 au lait \xff\xfe, \xc3\x28, \xf0\x9f\x98 end.\n",
    "bad-bytes-in-frontmatter.md": b"---\ntitle: Caf\xe9\n---\n\nBody.\n",
    "surrogates.md": b"Half \xed\xa0\x80 a pair \xed\xa0\xbd\xed\xb8\x80.\n",
    "overlong.md": b"Slash \xc0\xaf, too high \xf5\x80\x80\x80.\n",
    "cp1252.md": "Ærøskøbing – “quoted”".encode("cp1252"),
    "utf-16.md": "UTF-16 with a BOM".encode("utf-16"),
    "bom.md": b"\xef\xbb\xbf" + FRONTMATTER + b"After a BOM.\n",
    "bom-twice.md": b"\xef\xbb\xbf\xef\xbb\xbfTwo of them.\n",
    "bom-inside.md": b"Word\xef\xbb\xbfword.\n",
    "bom-over.md": filled(b"\xef\xbb\xbf" + FRONTMATTER, LIMIT + 2),
    "crlf.md": FRONTMATTER.replace(b"\n", b"\r\n") + b"Two bytes\r\nfor a line end.\r\n",
    "crlf-over.md": filled(FRONTMATTER.replace(b"\n", b"\r\n"), LIMIT + 100).replace(b" ipsum ", b"\r\nipsum "),
    "old-mac.md": b"Carriage\rreturns\ronly.\r",
    "mixed-lines.md": b"One\nTwo\r\nThree\rFour\x0bFive\x0cSix\xc2\x85Seven\xe2\x80\xa8Eight\n",
    "controls.md": b"Nul \x00, bell \x07, escape \x1b[31m, delete \x7f.\n",
    "spaces.md": b"  \n  leading and trailing  \n\n\n  ",
    "broken-yaml.md": b"---\ntitle: [never closed\n---\n\nBody.\n",
    "unclosed.md": b"---\ntitle: no end\n\nBody.\n",
    "duplicate-keys.md": b"---\ntitle: one\ntitle: two\n---\n\nBody.\n",
    "double--hyphen.md": b"A name that may be read and not created.\n",
    "prefix-inside.md": b"search_document: search_query: twice\n",
    "not-composed.md": "e\u0301 and \u00e9, \ufb01, A\u030a and \u212b\n".encode(),
    "html.md": b"<script>alert('&amp;')</script> \\u0041 \\n \"quotes\"\n",
}


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """The same pages twice, one directory for each program."""
    for side in ("ours", "theirs"):
        (tmp_path / side).mkdir()
        for filename, content in PAGES.items():
            (tmp_path / side / filename).write_bytes(content)
    return tmp_path / "ours", tmp_path / "theirs"


def test_embedded_texts_are_the_same_bytes_X4_X5_P1_P4_P6_P8_P10(
    directories: tuple[Path, Path], tool: Any, server: Any, ours: Any
) -> None:
    mine, theirs = directories
    tool.connect(theirs)
    assert tool.index() == f"field: indexed {len(PAGES)} files"
    calls = server.calls
    # the tool sends one text at a time, in the order of the file names
    by_tool = dict(zip(sorted(PAGES), (text.encode() for text in server.texts), strict=True))
    server.reset()
    report = ours(mine).sync(progress=False)
    by_us = {text.encode() for text in server.texts}
    assert dict(report.refused) == {}
    for filename, content in PAGES.items():
        expected = b"search_document: " + content[:LIMIT].decode("utf-8", "ignore").encode()
        assert by_tool[filename] == expected, filename
        assert expected in by_us, filename
    assert by_us == set(by_tool.values())
    assert {call.model.removesuffix(":latest") for call in server.calls} == {"nomic-embed-text"}
    # neither asks for an error where the model's own limit cuts further
    assert all(call.truncate is not False for call in (*calls, *server.calls))
    over = sorted(filename.removesuffix(".md") for filename, content in PAGES.items() if len(content) > LIMIT)
    assert list(report.cut) == over
    # and so either index of these pages serves both
    server.reset()
    tool.connect(mine, "mine")
    assert tool.index("mine") == "mine: all files up to date"
    again = ours(theirs).sync(progress=False)
    assert (len(again.unchanged), again.embedded) == (len(PAGES), 0)
    assert server.calls == []


@pytest.mark.parametrize(
    "question",
    [
        "plain words",
        "quotes \" and ' and `",
        "AND OR NOT NEAR(",
        "colon: star* -minus +plus ^caret",
        "Ærøskøbing 東京 \U0001f9f0",
        "e\u0301 not composed",
        "x" * 9000,
    ],
    ids=["plain", "quotes", "operators", "punctuation", "unicode", "not-composed", "long"],
)
def test_questions_are_the_same_bytes_X5(question: str, tmp_path: Path, tool: Any, server: Any, ours: Any) -> None:
    directory = tmp_path / "field"
    directory.mkdir()
    (directory / "page.md").write_bytes(b"Words.\n")
    field = ours(directory)
    field.sync(progress=False)
    tool.connect(directory)
    server.reset()
    tool.search(question)
    field.search(question, retriever="vector", progress=False)
    by_tool, by_us = (text.encode() for text in server.texts)
    assert by_tool == by_us == b"search_query: " + os.fsencode(question)
