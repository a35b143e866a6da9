"""Text in pages that looks like a key, a password or a token; what it is, never shown whole.

A list of known forms first (a provider's prefix, a PEM block, a password in an address), then values that are random
enough and stand behind a name such as ``token`` or ``password``. In doubt nothing is reported: digests, UUIDs, commit
ids, lock files, placeholders and references to variables are no secrets. Time is linear in the text.
"""

from __future__ import annotations

import math
import re
import string
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from memoryfield.format.page import Page

REMEDY = "withdraw it where it was issued, then take it out of the page; copies, archives and history may hold it too"


@dataclass(frozen=True, slots=True)
class Secret:
    """A place that looks like a secret.

    Attributes:
        page: Name of the page.
        line: Line in the file, from 1.
        kind: What it looks like, such as ``GitHub token``.
        shown: Enough to find it: the prefix that all keys of the kind share, and the length. Never the secret.
    """

    page: str
    line: int
    kind: str
    shown: str

    def to_dict(self) -> dict[str, Any]:
        """Return the place as values that JSON can hold."""
        return asdict(self)


def find_secrets(page: Page) -> tuple[Secret, ...]:
    """Return the places of a page that look like secrets, in the order of the text."""
    text = page.text
    found = []
    position, line = 0, 1
    for start, _, kind, shown in secret_spans(text):
        line += len(_LINE_END.findall(text, position, start))
        position = start
        found.append(Secret(page.name, line, kind, shown))
    return tuple(found)


def secret_spans(text: str) -> list[tuple[int, int, str, str]]:
    """Return begin, end, kind and a form that can be shown of each secret in *text*, in order, none inside another."""
    found: list[Place] = []
    taken: list[tuple[int, int]] = []  # sorted, apart from each other
    lower = text.lower() if len(text.lower()) == len(text) else text.translate(_LOWER)
    for finder in (_known, _blocks, _addresses, _headers, _assignments):
        for start, end, kind, prefix in finder(text, lower):
            place = bisect_left(taken, (start, end))
            after_last = place == 0 or taken[place - 1][1] <= start
            if after_last and (place == len(taken) or taken[place][0] >= end):
                taken.insert(place, (start, end))
                found.append((start, end, kind, f"{prefix}… ({end - start} characters)"))
    return sorted(found)


def redacted(text: str) -> str:
    """Return *text* with every secret in it replaced by what may be shown of it."""
    parts, position = [], 0
    for start, end, kind, shown in secret_spans(text):
        parts += [text[position:start], f"[{kind}: {shown}]"]
        position = end
    return "".join([*parts, text[position:]])


# Some capitals have a longer lower case ("İ"): then only ASCII is lowered, so that places stay the same.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_LINE_END = re.compile(r"\r\n|\n|\r")

# Kind, a text that must be there at all (searching for it is cheap), prefix, what follows it.
_FORMS: tuple[tuple[str, str, str], ...] = (
    ("AWS access key id", "AKIA", r"[A-Z2-7]{16}"),
    ("AWS temporary key id", "ASIA", r"[A-Z2-7]{16}"),
    ("GitHub token", "ghp_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "gho_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "ghu_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "ghs_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "ghr_", r"[A-Za-z0-9]{36,255}"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{50,255}"),
    ("GitLab token", "glpat-", r"[A-Za-z0-9_-]{20,64}"),
    ("Slack token", "xoxb-", r"[A-Za-z0-9-]{20,200}"),
    ("Slack token", "xoxp-", r"[A-Za-z0-9-]{20,200}"),
    ("Slack token", "xoxa-", r"[A-Za-z0-9-]{20,200}"),
    ("Slack token", "xapp-", r"[A-Za-z0-9-]{20,200}"),
    ("Slack webhook", "hooks.slack.com/services/", r"T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,32}"),
    ("Discord webhook", "discord.com/api/webhooks/", r"\d{16,20}/[A-Za-z0-9_-]{50,90}"),
    ("Stripe key", "sk_live_", r"[A-Za-z0-9]{20,200}"),
    ("Stripe key", "rk_live_", r"[A-Za-z0-9]{20,200}"),
    ("Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/=]{30,80}"),
    ("Anthropic key", "sk-ant-", r"[A-Za-z0-9_-]{30,200}"),
    ("OpenAI key", "sk-proj-", r"[A-Za-z0-9_-]{30,220}"),
    ("OpenAI key", "sk-svcacct-", r"[A-Za-z0-9_-]{30,220}"),
    ("OpenAI key", "sk-or-v1-", r"[a-f0-9]{64}"),
    ("API key", "sk-", r"[A-Za-z0-9]{32,64}"),
    ("Google API key", "AIza", r"[A-Za-z0-9_-]{35}"),
    ("Google access token", "ya29.", r"[A-Za-z0-9_-]{50,300}"),
    ("Google client secret", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    ("Hugging Face token", "hf_", r"[A-Za-z]{34,40}"),
    ("npm token", "npm_", r"[A-Za-z0-9]{36}"),
    ("PyPI token", "pypi-AgEI", r"[A-Za-z0-9_-]{50,250}"),
    ("SendGrid key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("DigitalOcean token", "dop_v1_", r"[a-f0-9]{64}"),
    ("Shopify token", "shpat_", r"[a-fA-F0-9]{32}"),
    ("age secret key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    ("HashiCorp Vault token", "hvs.", r"[A-Za-z0-9_-]{60,200}"),
    ("Telegram bot token", ":AA", r"[A-Za-z0-9_-]{32,33}"),
    ("JSON web token", "eyJ", r"[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{20,1000}"),
)


def _form(prefix: str, rest: str) -> re.Pattern[str]:
    """Return the pattern of a known form: the prefix at the begin of a word, and the rest up to the end of one."""
    before, after = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    if prefix == ":AA":
        before = r"(?<![\w.-])\d{8,10}"
    elif prefix == "eyJ":
        before = r"(?<![\w.-])"  # in a row of them, only the first is tried
    elif "/" in prefix:
        before = ""
    return re.compile(f"{before}{re.escape(prefix)}({rest}){after}")


_KNOWN = tuple((kind, prefix, _form(prefix, rest)) for kind, prefix, rest in _FORMS)
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\s|\\n|[>|]|[A-Z][A-Za-z-]{2,30}: [^\n]{0,200}\n){1,60}[A-Za-z0-9+/=]{40}(?:[^-]{0,20000}-----END )?"
)
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])([a-z][a-z0-9+.-]{1,20})://([^\s:/@?#\"'`<>\[\]]{0,80}):([^\s:/@?#\"'`<>]{3,200})@([\w.\[-]{1,200})"
)
_HEADER = re.compile(r"authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3}([\w.~+/=-]{20,2000})")
_ASSIGNED = re.compile(
    r"(?<![a-z0-9])([a-z0-9_.-]{0,40}?(?:passwords?|passwd|passphrase|pwd|secrets?|tokens?|api[_ -]?keys?"
    r"|access[_ -]?keys?|secret[_ -]?keys?|private[_ -]?keys?|auth[_ -]?keys?|credentials?)"
    r"(?:[_.-]?[a-z0-9]{1,12}){0,2})"
    r"[\"'`*]{0,3}[ \t]{0,4}(?::=|=>|=|:)[*]{0,2}[ \t]{0,4}([\"'`]?)"
)
_VALUE = re.compile(r"[^\s\"'`,;|<>()\[\]{}]{8,512}")
_NAMES_NO_SECRET = re.compile(
    r"hash|digest|sha\d|checksum|md5|fingerprint|public|_id\b|(?:token|key)[_-]?(?:id|count|type|name|url|uri|file|path)"
    r"|max|min|limit|count|length|expir|ttl|version|pad|eos|bos|unk"
)
_PASSWORD_NAME = re.compile(r"passw|passphrase|pwd")
_PLACEHOLDER = re.compile(
    r"example|sample|dummy|placeholder|changeme|change[_-]me|replace|redacted|your|insert|todo|fixme|foobar|my[_-]"
    r"|xxx|\*{3}|\.{3}|…|•|123456|abcdef|abc123|not[_-]?real|fake|password|passwort"
    r"|secret|s3cr3t|token|hunter2|p@ss|passw0rd|p4ss|undefined|null"
)
_REFERENCE = re.compile(
    r"[$%&@~/\\]|[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+\Z|(?:process|os|env|config|settings)\b", re.I
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.I)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|example\.(?:com|org|net)|host(?:name)?|server)\Z")
_HEX = re.compile(r"[0-9a-f]+\Z", re.I)
_DIGEST_LENGTHS = frozenset([40, 56, 64, 96, 128])

Place = tuple[int, int, str, str]


def _known(text: str, _lower: str) -> Iterator[Place]:
    for kind, prefix, pattern in _KNOWN:
        if prefix not in text:
            continue
        for match in pattern.finditer(text):
            if not _invented(match[1]):
                yield match.start(), match.end(), kind, "" if prefix == ":AA" else prefix


def _blocks(text: str, _lower: str) -> Iterator[Place]:
    if "PRIVATE KEY" in text:
        for match in _PEM.finditer(text):
            yield match.start(), match.end(), "private key", "-----BEGIN "


def _addresses(text: str, _lower: str) -> Iterator[Place]:
    if "@" not in text or "://" not in text:
        return
    for match in _ADDRESS.finditer(text):
        user, password, host = match[2].lower(), match[3], match[4].lower()
        common = password.lower() in (user, "pass", "pw", "pwd", "postgres", "root", "admin", "guest", "user", "test")
        if common or _LOCAL.match(host) or _is_stand_in(password) or _PLACEHOLDER.search(user + "@" + host):
            continue
        yield match.start(3), match.end(3), f"password in a {match[1]} address", ""


def _headers(text: str, lower: str) -> Iterator[Place]:
    if "authorization" in lower:
        for match in _HEADER.finditer(lower):
            value = text[match.start(1) : match.end(1)]
            if not _invented(value) and _entropy(value) >= 3.5 and _classes(value) >= 2:
                yield match.start(1), match.end(1), "authorization header", ""


def _assignments(text: str, lower: str) -> Iterator[Place]:
    for match in _ASSIGNED.finditer(lower):
        name = match[1]
        found = _VALUE.match(text, match.end())
        if found is None or _NAMES_NO_SECRET.search(name):
            continue
        value = found[0].rstrip("*")
        after = text[found.end() : found.end() + 1]
        if after and after in "([{<":  # a call, an element or a tag: code, not a value
            continue
        if match[2] and after != match[2]:  # in quotes that do not close behind it: several words
            continue
        is_password = _PASSWORD_NAME.search(name) is not None
        if _random_enough(value, is_password):
            kind = "password" if is_password else "value of a secret name"
            yield found.start(), found.start() + len(value), kind, ""


def _random_enough(value: str, is_password: bool) -> bool:
    if _is_stand_in(value) or _UUID.match(value) or _DATE.match(value):
        return False
    if _HEX.match(value):
        return len(value) >= 32 and len(value) not in _DIGEST_LENGTHS and not value.isdigit() and _entropy(value) > 3.0
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if not digits or not letters:
        return False
    if is_password:
        return len(value) >= 8 and _classes(value) >= 3 and _entropy(value) >= 2.7
    # Random text mixes its classes; words joined by hyphens or underscores with a number at the end do not.
    return len(value) >= 20 and _classes(value) >= 3 and digits >= 2 and _entropy(value) >= 3.7 and _mixed(value)


def _mixed(value: str) -> bool:
    longest = max((len(run) for run in re.findall(r"[a-z]+|[A-Z][a-z]+", value)), default=0)
    return longest <= max(5, len(value) // 4)


def _is_stand_in(value: str) -> bool:
    return _invented(value) or _REFERENCE.match(value) is not None or "$" in value or "{" in value or "<" in value


def _invented(value: str) -> bool:
    """Whether a value was written to show where one goes: a word for that, or hardly any variety."""
    return _PLACEHOLDER.search(value.lower()) is not None or len(set(value)) <= max(3, min(len(value) // 8, 8))


def _classes(value: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, lambda c: not c.isalnum())
    return sum(any(test(c) for c in value) for test in tests)


def _entropy(value: str) -> float:
    """Return the bits a character of *value* holds by the frequencies in it (Shannon)."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
