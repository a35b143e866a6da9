"""The rewriter asks a real server on this machine; keys and bad answers do no harm."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memoryfield.curate.rewriting import openai_rewriter
from memoryfield.errors import QueryError, RewritingFailed


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, Any]]]:
    state: dict[str, Any] = {"status": 200, "answer": {}, "asked": []}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state["asked"].append((self.path, self.headers.get("Authorization"), body))
            raw = json.dumps(state["answer"]).encode()
            self.send_response(state["status"])
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1", state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_the_text_of_the_answer_is_returned(server: tuple[str, dict[str, Any]]) -> None:
    url, state = server
    state["answer"] = {"choices": [{"message": {"content": "```markdown\nNew text.\n```"}}]}
    assert openai_rewriter(url, "a-model", "s3cret")("Old text.") == "New text.\n"
    path, key, body = state["asked"][0]
    assert path == "/v1/chat/completions" and key == "Bearer s3cret" and body["model"] == "a-model"
    assert body["messages"][1]["content"] == "Old text." and "[Conflict" in body["messages"][0]["content"]


@pytest.mark.parametrize("answer", [{}, [], {"choices": []}, {"choices": [{"message": {"content": None}}]}])
def test_answers_without_text_are_refused(server: tuple[str, dict[str, Any]], answer: object) -> None:
    url, state = server
    state["answer"] = answer
    with pytest.raises(RewritingFailed, match="without a text"):
        openai_rewriter(url, "m")("x")


def test_the_key_is_in_no_message(server: tuple[str, dict[str, Any]]) -> None:
    url, state = server
    state.update(status=401, answer={"error": "key s3cret is wrong"})
    rewrite = openai_rewriter(url, "m", "s3cret")
    with pytest.raises(RewritingFailed) as caught:
        rewrite("x")
    assert "s3cret" not in str(caught.value) and "401" in str(caught.value) and "EMBEDDINGS" not in str(caught.value)
    assert "s3cret" not in repr(rewrite)
    with pytest.raises(QueryError, match="chat server"):
        openai_rewriter("ftp://example.org", "m")
