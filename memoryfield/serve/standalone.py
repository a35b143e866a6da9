"""The server of ``memoryfield serve``: one process, this machine only unless told otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memoryfield.errors import QueryError
from memoryfield.field import MemoryField
from memoryfield.serve.answers import FieldAnswers
from memoryfield.serve.handlers import Site, routes
from memoryfield.serve.policy import Meter, Policy

_THREADS = 16  # mostly waiting for one that ranks for all
_SLOWEST = 20.0  # seconds for a request's headers, and for its body


def make_site(fields: Mapping[str, MemoryField], policy: Policy) -> Site:
    """Return what is served; a field's name in addresses is its key.

    Raises:
        QueryError: No fields, or a name that no address can hold.
    """
    if not fields:
        raise QueryError("no field to serve")
    for name in fields:
        if not name or not all(c.isascii() and (c.isalnum() or c in "_-") for c in name) or name == "search":
            raise QueryError(f"{name!r} cannot stand in an address: use letters, digits, - and _, as in name=PATH")
    return Site(
        {name: FieldAnswers(field, policy.largest_body) for name, field in fields.items()},
        policy,
        Meter(policy.per_second),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="memoryfield-serve"),
        len(fields) == 1,
    )


def make_application(site: Site) -> Any:
    """Return a ``tornado.web.Application`` that serves a site."""
    from tornado.log import app_log
    from tornado.web import Application, HTTPError, RequestHandler

    class Guard(RequestHandler):
        """Checks the host, the rate and the token before every request; there are no cookies, so no XSRF."""

        site: Site

        @staticmethod
        def wrapped(method: Any) -> Any:
            """Return a method as it is; Jupyter's handlers need a mark on theirs."""
            return method

        def prepare(self) -> None:
            refusal = self._refusal()
            if refusal is not None:
                status, text = refusal
                self.set_status(status)
                if status == 401:
                    self.set_header("WWW-Authenticate", 'Basic realm="memoryfield", charset="UTF-8"')
                if status == 429:
                    self.set_header("Retry-After", "1")
                self.set_header("Content-Type", "text/plain; charset=utf-8")
                self.finish(text + "\n")

        def _refusal(self) -> tuple[int, str] | None:
            policy = self.site.policy
            if not self.site.meter.allows(self.request.remote_ip or ""):
                return 429, "too many requests: wait a second"
            if not policy.knows_host(self.request.headers.get("Host", "")):
                return 421, "this server is not known by that name"
            if not policy.knows_client(self.request.headers.get("Authorization")):
                return 401, "a token is needed: as the password of HTTP Basic, or as 'Authorization: token ...'"
            return None

        def log_exception(self, kind: Any, error: Any, trace: Any) -> None:
            """Log what is a fault of ours, without the address: it may hold a question."""
            if not isinstance(error, HTTPError):
                app_log.error("a request failed", exc_info=(kind, error, trace))

    return Application(routes(Guard, site), log_function=lambda _handler: None, serve_traceback=False)


async def serving(site: Site, address: str, port: int, ready: Callable[[int], object], stop: asyncio.Event) -> None:
    """Serve until *stop* is set.

    Args:
        site: What is served.
        address: Address to listen on.
        port: Port, 0 for any.
        ready: Called with the port when requests are answered.
        stop: Ends the server.
    """
    import numpy  # noqa: F401 - its threads are what is limited below
    from threadpoolctl import threadpool_limits  # comes with scikit-learn
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets

    sockets = bind_sockets(port, address)
    server = HTTPServer(
        make_application(site),
        max_body_size=site.policy.largest_body + 1024,
        max_header_size=1 << 16,
        max_buffer_size=site.policy.largest_body + (1 << 17),
        idle_connection_timeout=_SLOWEST,
        body_timeout=_SLOWEST,
    )
    server.add_sockets(sockets)
    try:
        # Requests share the cores as it is: the threads of one small product would mostly wait for one another, busily.
        with threadpool_limits(1, "blas"):
            ready(sockets[0].getsockname()[1])
            await stop.wait()
    finally:
        server.stop()
        await server.close_all_connections()
        site.threads.shutdown(wait=True)
        for answers in site.fields.values():
            answers.close()


def serve(
    fields: Mapping[str, MemoryField],
    *,
    address: str = "127.0.0.1",
    port: int = 8765,
    policy: Policy | None = None,
    ready: Callable[[int], object] = lambda _port: None,
) -> None:
    """Serve fields over HTTP until the process is interrupted.

    Args:
        fields: Fields by the name in their address; a single one also answers at the root.
        address: Address to listen on; by default only this machine can reach it.
        port: Port, 0 for any.
        policy: What is allowed; by default reading, without a token.
        ready: Called with the port when requests are answered.

    Raises:
        QueryError: Writes without a token on an address that others can reach.
    """
    chosen = policy or Policy()
    chosen.check_address(address)
    site = make_site(fields, chosen)

    async def run() -> None:
        stop = asyncio.Event()
        await serving(site, address, port, ready, stop)

    asyncio.run(run())
