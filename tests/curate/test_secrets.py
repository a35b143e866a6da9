"""Secrets are found by their form, never shown whole, and few other things are taken for one.

Every key here is made up while the test runs, so that no scanner finds one in this file.
"""

from __future__ import annotations

import base64
import hashlib
import random
import string
import time
import uuid
from pathlib import Path

import pytest

from memoryfield.curate.secrets import find_secrets, redacted, secret_spans
from memoryfield.examples import example_field
from memoryfield.format.page import Page
from memoryfield.format.pages import open_pages

_RANDOM = random.Random(20)
_ALNUM = string.ascii_letters + string.digits


def _made(length: int, letters: str = _ALNUM) -> str:
    while True:
        text = "".join(_RANDOM.choice(letters) for _ in range(length))
        if len(set(text)) > min(length // 3, 12):
            return text


_JWT = ".".join(["ey" + "J" + _made(30), "ey" + "J" + _made(60), _made(43)])
_PEM = "-----BEGIN RSA PRIVATE" + " KEY-----\n" + base64.b64encode(_RANDOM.randbytes(300)).decode() + "\n-----END RSA"
_SECRETS = {
    "GitHub token": "gh" + "p_" + _made(36),
    "AWS access key id": "AK" + "IA" + _made(16, string.ascii_uppercase + "234567"),
    "GitLab token": "glp" + "at-" + _made(20),
    "Slack token": "xo" + "xb-" + _made(12, string.digits) + "-" + _made(24),
    "Stripe key": "sk_" + "live_" + _made(24),
    "Anthropic key": "sk-" + "ant-api03-" + _made(60),
    "OpenAI key": "sk-" + "proj-" + _made(48),
    "Google API key": "AI" + "za" + _made(35),
    "Hugging Face token": "h" + "f_" + _made(34, string.ascii_letters),
    "npm token": "np" + "m_" + _made(36),
    "JSON web token": _JWT,
    "private key": _PEM,
}


@pytest.mark.parametrize("kind", _SECRETS)
def test_known_forms_are_found_and_not_shown(kind: str) -> None:
    secret = _SECRETS[kind]
    page = Page("notes", f"---\ntitle: Notes\n---\nFirst line.\n\nUse `{secret}` here.\n".encode())
    (found,) = find_secrets(page)
    assert (found.page, found.line, found.kind) == ("notes", 6, kind)
    shown = repr(found) + str(found.to_dict())
    assert secret not in shown and secret[-12:] not in shown and secret[12:24] not in shown
    assert secret[12:] not in redacted(page.text) and kind in redacted(page.text)


def _assigned() -> dict[str, str]:
    password = _made(5, string.ascii_lowercase) + _made(4, string.digits) + "K!"
    token = "q7" + _made(30) + "Z3a"
    return {
        "PASSWORD={}": password,
        "password: {}": password,
        'db_password = "{}"': password,
        "**Password:** `{}`": password,
        "export API_TOKEN={}": token,
        '  "client_secret": "{}",': token,
        "api key: {}": token,
        "AWS_SECRET_ACCESS_KEY={}": token,
        "Authorization: Bearer {}": token,
        "postgres://app:{}@db.internal:5432/app": password,
    }


@pytest.mark.parametrize("form", _assigned())
def test_values_behind_telling_names_are_found(form: str) -> None:
    value = _assigned()[form]
    text = "Note.\r\n" + form.format(value) + "\r\n"
    (span,) = secret_spans(text)
    assert text[span[0] : span[1]] == value
    assert value not in span[3] and value[:4] not in span[3]
    assert find_secrets(Page("a", text.encode()))[0].line == 2


_HEX = hashlib.sha256(b"a").hexdigest()
_NONE = [
    f"sha256: {_HEX}",
    f"token_hash: {_HEX}",
    f"commit {_HEX[:40]} fixes it",
    f"secret: {_HEX}",  # the digest of one as likely as one
    f"uuid: {uuid.UUID(int=7**40)}",
    f"api_key: {uuid.UUID(int=7**40)}",
    f'"integrity": "sha512-{base64.b64encode(bytes(range(64))).decode()}"',
    "password: ask Maud, it is in the safe",
    "The password is changed each January 2026.",
    "password = getpass.getpass()",
    'token = os.environ["API_TOKEN_V2"]',
    "TOKEN=${GITHUB_TOKEN_2}",
    "password: $DB_PASS1x!",
    "api_key: YOUR_API_KEY_123!",
    "password: changeme123!",
    "password: Xxxxxxx1!",
    "secret: <your secret 1>",
    "max_tokens: 8192",
    "token_limit = 128000tokens",
    "tokenizer: all-MiniLM-L6-v2-quantized-2024",
    "secret_name: projects/12/secrets/Abc-9",
    "postgres://postgres:postgres@localhost:5432/app",
    "https://user:password@example.com/",
    "https://user:pass@host/x",
    "see http://localhost:8080/a@b",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "gh" + "p_" + "x" * 36,
    "sk-" + "1234567890abcdef" * 2,
    "-----BEGIN RSA PRIVATE" + " KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(bytes(range(100))).decode(),
    "-----BEGIN CERTIFICATE-----\n" + base64.b64encode(bytes(range(100))).decode(),
    "the key: turn it twice, row 2, hook 14",
    "Key code of the shed: 4711",
    "pip install ask-learn-something-quite-long-indeed-here",
    "password_reset_url: https://a.example/reset?x=1",
    "next password date: 2026-01-05T08:00:00Z",
]


@pytest.mark.parametrize("text", _NONE)
def test_digests_placeholders_and_prose_are_no_secrets(text: str) -> None:
    assert secret_spans(text) == []


@pytest.mark.parametrize("name", ["harbor", "bread"])
def test_the_example_fields_hold_none(name: str) -> None:
    pages = list(open_pages(example_field(name)).pages())
    assert len(pages) > 10 and [s for page in pages for s in find_secrets(page)] == []


def test_bytes_that_are_no_text_and_long_lower_cases() -> None:
    secret = _SECRETS["GitHub token"]
    assert find_secrets(Page("a", b"\xff\xfe\n" + secret.encode()))[0].line == 2
    text = "İİİ password: " + "qwErt77!zz"
    assert [text[a:b] for a, b, *_ in secret_spans(text)] == ["qwErt77!zz"]
    assert find_secrets(Page("a", b"")) == ()


@pytest.mark.parametrize(
    "piece",
    [
        "a-",
        "eyJ-",
        "password=",
        "token.",
        "a://b:",
        "-----BEGIN PRIVATE KEY-----\n",
        "authorization: bearer ",
        "AKIA",
        "sk-",
    ],
)
def test_hostile_text_costs_little(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    secret_spans(text)
    assert time.process_time() - started < 3.0


def test_the_same_place_is_told_once(tmp_path: Path) -> None:
    secret = _SECRETS["Stripe key"]
    text = f"api_key: {secret}\nagain {secret}\n"
    assert [kind for _, _, kind, _ in secret_spans(text)] == ["Stripe key", "Stripe key"]
