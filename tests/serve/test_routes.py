"""The specification's routes over a real socket (FORMAT H)."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import memoryfield as mf
from memoryfield.serve.policy import Policy


def test_pages_are_served_byte_for_byte_with_tags_H(server: Any) -> None:
    answer = server.get("/tea.md")
    raw = server.field["tea"].raw
    assert (answer.status, answer.body) == (200, raw)
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    tag = answer.headers["Etag"]
    assert tag == f'"{hashlib.sha256(raw).hexdigest()}"'
    again = server.get("/tea.md", If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")
    assert server.get("/memory/tea.md").body == raw  # the other layout
    assert server.get("/nothing.md").status == 404
    head = server.ask("HEAD", "/tea.md")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(raw))


def test_the_home_is_the_introduction_or_the_catalogue_H(server: Any) -> None:
    assert b"| [tea](tea.md) | Tea | green tea |" in server.get("/").body
    server.field.put("index", b"# Welcome\n")
    assert server.get("/").body == b"# Welcome\n"
    html = server.get("/", Accept="text/html")
    assert b"<h1>Welcome</h1>" in html.body and "default-src 'none'" in html.headers["Content-Security-Policy"]


def test_the_listing_is_up_to_date_on_request(server: Any) -> None:
    before = server.get("/listing.md")
    server.field.write("fog", title="Fog | [x](y)", body="Fog.\n")
    after = server.get("/listing.md", If_None_Match=before.headers["Etag"])
    assert after.status == 200 and b"fog.md" in after.body and b"Fog \\| \\[x\\](y)" in after.body
    assert "listing" not in server.field.names()  # nothing was written


def test_search_answers_as_the_specification_says_H(server: Any) -> None:
    answer = json.loads(server.get("/search?q=green+tea").body)
    first = answer["results"][0]
    assert first["filename"] == "tea.md" and first["frontmatter"]["title"] == "Tea" and first["score"] > 0
    words = json.loads(server.get("/search?q=gree&retriever=keyword").body)
    assert [hit["filename"] for hit in words["results"]] == ["tea.md"]  # a part of a word in the summary
    assert server.get("/search").status == 400 and server.get("/search?q=x&k=0").status == 400
    assert server.get("/search?q=x&retriever=magic").status == 400


def test_the_archive_is_a_field_H(server: Any, tmp_path: Path) -> None:
    for path in ("/memoryfield.zip", "/memory.memoryfield.zip", "/memory/memoryfield.zip"):
        answer = server.get(path)
        assert answer.headers["Etag"] == f'"{hashlib.sha256(answer.body).hexdigest()}"'
        assert sorted(zipfile.ZipFile(BytesIO(answer.body)).namelist()) == ["dock.md", "tea.md"]
    (tmp_path / "got.memoryfield.zip").write_bytes(answer.body)
    assert mf.open_field(tmp_path / "got.memoryfield.zip")["tea"].raw == server.field["tea"].raw


def test_put_and_delete_H(server: Any) -> None:
    made = server.ask("PUT", "/fog.md", b"# Fog\n\nThick.\n")
    assert made.status == 201 and made.headers["Location"] == "fog.md"
    assert server.ask("PUT", "/fog.md", b"# Fog\n\nThin.\n").status == 204
    uuid = server.field["tea"].uuid
    assert server.ask("PUT", "/tea.md", b"---\ntitle: Tea\n---\nBlack tea.\n").status == 204
    assert server.field["tea"].uuid == uuid and "Black" in server.field["tea"].body  # the stored uuid stays
    other = b"---\nuuid: 11111111-1111-4111-8111-111111111111\n---\nx\n"
    assert server.ask("PUT", "/tea.md", other).status == 409
    assert server.ask("PUT", "/tea.md", b"caf\xe9").status == 415
    assert server.ask("PUT", "/tea.md", b"  \n").status == 400
    assert server.ask("PUT", "/Bad_Name.md", b"x").status == 400
    assert server.ask("DELETE", "/fog.md").status == 204 and server.ask("DELETE", "/fog.md").status == 404
    # each change is a step, with who
    assert {step.who for step in list(server.field.history())[:3]} == {"http"}


def test_a_page_changed_meanwhile_is_not_overwritten_P14(server: Any) -> None:
    tag = server.get("/tea.md").headers["Etag"]
    server.field.edit("tea", append="And coffee.\n")
    kept = server.field["tea"].raw
    assert server.ask("PUT", "/tea.md", b"mine\n", If_Match=tag).status == 412
    assert server.ask("DELETE", "/tea.md", If_Match=tag).status == 412
    assert server.ask("PUT", "/tea.md", b"mine\n", If_None_Match="*").status == 412
    assert server.ask("PUT", "/new.md", b"mine\n", If_Match=tag).status == 412
    assert server.field["tea"].raw == kept and "new" not in server.field
    now = server.get("/tea.md").headers["Etag"]
    assert server.ask("PUT", "/tea.md", b"mine\n", If_Match=now).status == 204


def test_several_fields_stand_beside_one_another(running: Any, field: mf.MemoryField, tmp_path: Path) -> None:
    other = mf.open_field(tmp_path / "other", create=True, model="hashing-1024")
    other.write("kelp", title="Kelp", body="Kelp grows fast, and so does green algae.\n")
    with running({"memory": field, "other": other}, Policy()) as server:
        assert json.loads(server.get("/").body)["fields"] == [
            {"name": "memory", "pages": 2},
            {"name": "other", "pages": 1},
        ]
        assert server.get("/other/kelp.md").status == 200 and server.get("/kelp.md").status == 404
        both = json.loads(server.get("/search?q=green").body)["results"]
        assert {hit["field"] for hit in both} == {"memory", "other"}
        assert server.ask("PUT", "/other/kelp.md", b"x\n").status == 403  # writes are off by default


def test_the_description_is_true(server: Any) -> None:
    document = json.loads(server.get("/openapi.json").body)
    assert document["openapi"] == "3.1.0" and set(document["paths"]) == {
        "/",
        "/{page}.md",
        "/search",
        "/listing.json",
        "/pages.json",
        "/memoryfield.zip",
    }
    listing = document["paths"]["/listing.json"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    told = server.get("/listing.json")
    jsonschema.validate(json.loads(told.body), listing)
    assert json.loads(told.body)["writes"] is True
    assert server.get("/listing.json", If_None_Match=told.headers["Etag"]).status == 304
    schema = document["paths"]["/search"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(server.get("/search?q=tea").body), schema)
    for path, operations in document["paths"].items():
        for method in ("get", "put", "delete"):
            if method in operations:
                real = path.replace("{page}", "absent") + ("?q=x" if "search" in path else "")
                status = server.ask(method.upper(), real, b"x\n" if method == "put" else None).status
                assert str(status) in operations[method]["responses"], (method, path, status)


@pytest.mark.parametrize("archive", [False, True])
def test_a_read_only_field_is_served_and_refuses_writes(
    running: Any, field: mf.MemoryField, tmp_path: Path, archive: bool
) -> None:
    report = field.export(tmp_path / "a.memoryfield.zip")
    served = mf.open_field(report.path, model="hashing-1024") if archive else field
    with running({"memory": served}, Policy(writes=archive)) as server:
        assert server.get("/tea.md").status == 200
        assert server.ask("PUT", "/tea.md", b"x\n").status == 403
        if archive:
            assert hashlib.sha256(server.get("/memoryfield.zip").body).hexdigest() == report.sha256


def test_long_questions_and_other_methods_are_answered_in_words(server: Any) -> None:
    from urllib.parse import quote

    assert server.get("/search?q=" + quote("ࠀ" * 2000)).status == 200
    assert server.get("/search?q=" + quote("ࠀ" * 2001)).status == 400
    for method in ("POST", "PATCH", "TRACE"):
        answer = server.ask(method, "/tea.md")
        assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, PUT, DELETE"


def test_questions_asked_at_once_get_the_answers_of_questions_asked_alone(server: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    paths = [
        f"/search?q={word}&retriever={how}" for word in ("tea", "dock", "green", "x") for how in ("vector", "keyword")
    ]
    alone = {path: server.get(path).body for path in paths}
    with ThreadPoolExecutor(16) as clients:
        together = list(clients.map(lambda path: (path, server.get(path)), paths * 4))
    assert all(answer.status == 200 and answer.body == alone[path] for path, answer in together)
    # a question without a vector, an unknown retriever: each fails alone
    with ThreadPoolExecutor(4) as clients:
        statuses = list(clients.map(lambda path: server.get(path).status, [*paths[:3], "/search?q=x&retriever=magic"]))
    assert statuses == [200, 200, 200, 400]


def test_a_page_written_before_a_question_is_found_by_it(server: Any) -> None:
    for number in range(5):
        assert server.ask("PUT", f"/news-{number}.md", f"Unusual word zyzzyva{number}.\n".encode()).status == 201
        answer = json.loads(server.get(f"/search?q=zyzzyva{number}&retriever=keyword").body)
        assert answer["results"][0]["filename"] == f"news-{number}.md"


def test_several_pages_in_one_answer(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(server.get("/pages.json?names=tea.md,gone.md,dock.md,tea.md").body)
    assert [row["filename"] for row in told["pages"]] == ["tea.md", "dock.md"] and told["left"] == []
    for row in told["pages"]:
        page = server.field.read(row["filename"])
        assert base64.b64decode(row["base64"]) == page.raw and row["tag"] == f'"{page.sha256}"'
    listed = json.loads(server.get("/listing.json").body)
    times = {row["filename"]: row["modified_ns"] for row in listed["pages"]}
    assert {row["filename"]: row["modified_ns"] for row in told["pages"]} == times and listed["together"] == 64
    assert server.get(f"/pages.json?names={','.join(['tea.md'] * 65)}").status == 400
    monkeypatch.setattr("memoryfield.serve.answers._LARGEST_PART", 10)
    told = json.loads(server.get("/pages.json?names=tea.md,dock.md").body)
    assert [row["filename"] for row in told["pages"]] == ["tea.md"] and told["left"] == ["dock.md"]
