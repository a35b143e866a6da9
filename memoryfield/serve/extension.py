"""The same routes in a Jupyter server: behind its login, its token and its XSRF check.

``jupyter server extension enable memoryfield.serve.extension`` turns it on. Which fields are served stands in
``MEMORYFIELD_FIELDS``, as for ``memoryfield.agent.jupyter``. Writes need ``MEMORYFIELD_SERVE_WRITES=1``.
"""

from __future__ import annotations

import hmac
import os
from typing import Any

from memoryfield.errors import MemoryfieldError
from memoryfield.opening import open_field
from memoryfield.serve.handlers import Site, routes
from memoryfield.serve.policy import Policy, shown_secret
from memoryfield.serve.standalone import make_site

PREFIX = "memoryfield"


def guard_class() -> type[Any]:
    """Return the handler that asks Jupyter who is there; without a login the answer is 401, never a login page."""
    from jupyter_server.auth.decorator import allow_unauthenticated
    from jupyter_server.base.handlers import JupyterHandler

    class Guard(JupyterHandler):
        """Maps HTTP Basic to Jupyter's token."""

        site: Site

        @property
        def _knows_token(self) -> bool:
            token = getattr(self.identity_provider, "token", "") or ""
            shown = shown_secret(self.request.headers.get("Authorization", "")) or ""
            return bool(token) and hmac.compare_digest(shown.encode(), token.encode())

        def check_xsrf_cookie(self) -> None:
            """A client that shows the token needs no cookie, and one with a cookie needs its XSRF token."""
            if not self._knows_token:
                super().check_xsrf_cookie()

        wrapped = staticmethod(allow_unauthenticated)  # checked below: a 401, and no login page

        async def prepare(self, **words: Any) -> None:
            await super().prepare(**words)
            if self._finished:
                return
            if self.current_user is None and not self._knows_token:
                self.set_status(401)
                self.set_header("WWW-Authenticate", 'Basic realm="memoryfield", charset="UTF-8"')
                self.set_header("Content-Type", "text/plain; charset=utf-8")
                self.finish("log in to Jupyter, or send its token\n")

    return Guard


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "memoryfield.serve.extension"}]


def _load_jupyter_server_extension(server_app: Any) -> None:
    """Add the routes to a Jupyter server; without fields nothing is added. Jupyter asks for it by this name."""
    from memoryfield.agent.jupyter import VARIABLE, fields_from

    if not os.environ.get(VARIABLE, "").strip():
        server_app.log.info("memoryfield: no fields to serve (set %s)", VARIABLE)
        return
    try:
        named = fields_from(os.environ)
        fields = {
            label: open_field(path, model=os.environ.get("MEMORYFIELD_MODEL"), who="jupyter")
            for label, path in named.items()
        }
        writes = os.environ.get("MEMORYFIELD_SERVE_WRITES", "") == "1"
        site = make_site(fields, Policy(writes=writes))
    except MemoryfieldError as error:
        server_app.log.error("memoryfield: %s", error)
        return
    site = Site(site.fields, site.policy, site.meter, site.threads, alone=False)
    base = str(server_app.web_app.settings["base_url"]).rstrip("/")
    server_app.web_app.add_handlers(".*$", routes(guard_class(), site, f"{base}/{PREFIX}"))
    server_app.log.info("memoryfield: %s at %s/%s/", ", ".join(fields), base, PREFIX)
