"""HTTP connections that keep one deadline: for connecting, the TLS handshake, sending, headers and body together.

A time limit on a socket holds for one wait only, so a server that sends a byte now and then is never late. Here
every wait gets what is left until one moment. What cannot be limited is the system's look-up of a host name.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import time
import urllib.request
from typing import Any


class Deadline:
    """A moment after which nothing is waited for.

    Attributes:
        seconds: How far away it was at first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until then, more than 0.

        Raises:
            TimeoutError: There are none.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def opener(self, *handlers: urllib.request.BaseHandler | type[urllib.request.BaseHandler]) -> Any:
        """Return urllib's opener with these connections; *handlers* as for ``urllib.request.build_opener``."""
        return urllib.request.build_opener(_HTTPHandler(self), _HTTPSHandler(self), *handlers)

    def connect(self, address: Any, *_: Any) -> socket.socket:
        """Connect to the first of a host's addresses that answers; each gets its share of the time."""
        host, port = address
        places = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
        failure: OSError = OSError(f"{host} has no address")
        for later, (family, kind, protocol, _name, place) in zip(range(len(places), 0, -1), places, strict=True):
            connection = None
            try:
                connection = socket.socket(family, kind, protocol)
                connection.settimeout(self.left() / later)
                connection.connect(place)
                connection.settimeout(self.left())
                return connection
            except OSError as error:
                failure = error
                if connection is not None:
                    connection.close()
        raise failure


class _Reads(io.RawIOBase):
    """The reading half of a socket."""

    def __init__(self, raw: Any, connection: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._raw = raw
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        self._connection.settimeout(self._deadline.left())
        size: int | None = self._raw.readinto(buffer)
        self._connection.settimeout(self._deadline.left())  # for what is no read: a handshake after a proxy's answer
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer, of the server or of a proxy on the way."""

    def __init__(self, deadline: Deadline, connection: Any, *arguments: Any, **settings: Any) -> None:
        super().__init__(connection, *arguments, **settings)
        buffered: Any = self.fp
        self.fp = io.BufferedReader(_Reads(buffered.detach(), connection, deadline))


class _HTTPConnection(http.client.HTTPConnection):
    def __init__(self, *arguments: Any, deadline: Deadline, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._deadline = deadline
        self._create_connection = deadline.connect
        self.response_class: Any = functools.partial(_Response, deadline)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        self.sock.settimeout(self._deadline.left())
        super().send(data)


class _HTTPSConnection(_HTTPConnection, http.client.HTTPSConnection):
    pass  # the order matters: HTTPSConnection's own arguments pass through _HTTPConnection's


class _HTTPHandler(urllib.request.HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connection: Any = functools.partial(_HTTPConnection, deadline=self._deadline)
        return self.do_open(connection, req)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connection: Any = functools.partial(_HTTPSConnection, deadline=self._deadline)
        return self.do_open(connection, req)
