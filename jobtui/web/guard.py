"""Who may look at a served dashboard: whoever was told its address, from a page of the dashboard itself.

Any page in a browser can send requests to a server on the same machine, and open a WebSocket to it. So
three things are asked of each request. Its `Host` is an address or one of our names: a foreign name that was
made to point here (DNS rebinding) is not. Its `Origin`, when it has one, is the dashboard's own page. And it
has the token: in the address that `jobtui serve` printed, from then on in a cookie.
"""

import ipaddress
import secrets
from collections.abc import Collection
from hmac import compare_digest
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

TOKEN = "token"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'none'; connect-src 'self' ws://{host}; font-src 'self' data:; img-src 'self' data:; "
    "script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: what comes from here, and nothing from anywhere else."""


class Guard:
    """Refuses, with one line that says why, what is not asked by whom the dashboard is for."""

    def __init__(self, names: Collection[str], port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._names = frozenset(name.lower() for name in names)
        # A browser sends its cookies to every port of a host
        self._cookie = f"jobtui-{port}"

    @web.middleware
    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request through, make its token a cookie, or refuse it."""
        if not self.is_ours(request.host):
            raise web.HTTPForbidden(text="This dashboard does not go by that name.\n")
        if request.headers.get("Origin", own := f"http://{request.host}").lower() != own.lower():
            raise web.HTTPForbidden(text="Pages of others may not read this dashboard.\n")
        if request.path == "/" and self._is_token(request.query.get(TOKEN, "")):
            answer = web.HTTPSeeOther("/")
            answer.set_cookie(self._cookie, self.token, path="/", httponly=True, samesite="Strict")
            raise answer
        if not self._is_token(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text="Open the address that `jobtui serve` printed, with its token.\n")
        return await handler(request)

    def is_ours(self, host: str) -> bool:
        """Whether a `Host` is an address, or a name of this machine; other names may be anybody's."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode(), self.token.encode())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Say with each answer what the page may do, and that nobody keeps it."""
    response.headers.update({**HEADERS, "Content-Security-Policy": POLICY.format(host=request.host)})
