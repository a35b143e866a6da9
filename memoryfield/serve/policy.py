"""Who may read and write, which hosts are answered, and how much one client may ask for."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from memoryfield.errors import QueryError

LARGEST_BODY = 1 << 20
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class Policy:
    """What a server allows.

    Attributes:
        writes: Whether pages may be written and deleted at all.
        token: What a client has to show, as a token or as the password of HTTP Basic; None asks for nothing.
        hosts: Names that a request may be addressed to, beside those of this machine.
        largest_body: Most bytes of a page that is sent.
        per_second: Requests a second that one address may make, over a few seconds.
    """

    writes: bool = False
    token: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    largest_body: int = LARGEST_BODY
    per_second: float = 500.0

    def check_address(self, address: str) -> None:
        """Refuse to be reached from other machines with writes and without a token.

        Raises:
            QueryError: That is what was asked for.
        """
        if self.token is not None and len(self.token) < 16:
            raise QueryError("the token is shorter than 16 characters: anyone could guess it")
        if self.writes and self.token is None and not is_loopback(address):
            raise QueryError(
                f"writes without a token would let everyone who reaches {address} change the pages: "
                "set MEMORYFIELD_SERVE_TOKEN, or serve on 127.0.0.1"
            )

    def knows_host(self, header: str) -> bool:
        """Say whether a ``Host`` header names this server; another name is a page that wants to reach it by DNS."""
        name = header.rsplit(":", 1)[0] if not header.endswith("]") and header.count(":") != 0 else header
        name = name.strip("[]").lower().rstrip(".")
        return name in _LOCAL_NAMES or name in {host.lower() for host in self.hosts}

    def knows_client(self, authorization: str | None) -> bool:
        """Say whether an ``Authorization`` header shows the token."""
        if self.token is None:
            return True
        shown = shown_secret(authorization or "")
        return shown is not None and hmac.compare_digest(shown.encode(), self.token.encode())


def is_loopback(address: str) -> bool:
    """Say whether only this machine can reach an address."""
    if address.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def shown_secret(header: str) -> str | None:
    """Return the token of an ``Authorization`` header: a token, or the password of HTTP Basic."""
    kind, _, rest = header.strip().partition(" ")
    if kind.lower() in ("token", "bearer"):
        return rest.strip()
    if kind.lower() == "basic":
        try:
            pair = base64.b64decode(rest.strip(), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return pair.partition(":")[2]
    return None


class Meter:
    """Counts requests of each address in a bucket that refills; not for several threads."""

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self.most = per_second * 4
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str, now: float | None = None) -> bool:
        """Take one request from an address's bucket; False where it is empty."""
        moment = time.monotonic() if now is None else now
        left, seen = self._left.pop(address, (self.most, moment))
        left = min(self.most, left + (moment - seen) * self.per_second)
        allowed = left >= 1
        self._left[address] = (left - 1 if allowed else left, moment)
        while len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return allowed
