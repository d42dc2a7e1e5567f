"""What a browser talks to: textual-serve's page and protocol, behind a guard, on a bound socket.

Leans on insides of the version of textual-serve that pyproject.toml pins: its page, and its messages.
"""

import json
import re
import socket
from collections.abc import Sequence

import aiohttp_jinja2
from aiohttp import web
from textual_serve.server import Server, to_int

from jobtui.web.guard import TOKEN, Guard, add_headers
from jobtui.web.service import DashboardService

MOST = 8
"""Dashboards at a time; each is a process, and reads the sources for itself."""
LARGEST_MESSAGE = 1 << 20
"""Bytes of what a browser sends at once; the largest is a text that is pasted."""
SHUTDOWN_S = 10.0
ELSEWHERE = re.compile(r"<link[^>]*https://[^>]*>")
"""What the page would load from others: a font, which is not to tell them who looks when."""
ANY_HOST = ("0.0.0.0", "[::]")


class DashboardServer(Server):
    """Serves a dashboard, which `words` start, to browsers that were told the token."""

    def __init__(self, words: Sequence[str], listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        super().__init__("", host=host, port=port, title="jobtui")
        self._words = words
        self._listener = listener
        self._open: set[web.WebSocketResponse] = set()
        self.guard = Guard({"localhost", socket.gethostname(), socket.getfqdn()}, port)

    @property
    def address(self) -> str:
        """What to open in a browser. Whoever has it can look."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if host in ANY_HOST:
            host = socket.gethostname()
        return f"http://{host}:{self.port}/?{TOKEN}={self.guard.token}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        web.run_app(
            self._make_app(),
            sock=self._listener,
            print=None,
            access_log=None,
            shutdown_timeout=SHUTDOWN_S,
        )

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self.guard.__call__)
        app.on_response_prepare.append(add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: `jobtui serve` has told the address."""

    async def on_shutdown(self, app: web.Application) -> None:
        """End all dashboards."""
        for websocket in [*self._open]:
            await websocket.close(code=1001, message=b"the server ends")

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, whose links lead to where it was asked for."""
        own = f"//{request.host}"
        told = {
            "font_size": min(max(to_int(request.query.get("fontsize", ""), 16), 6), 60),
            "app_websocket_url": f"ws:{own}/ws",
            "config": {"static": {"url": f"http:{own}/static/"}},
            "application": {"name": self.title},
        }
        page = aiohttp_jinja2.render_template("app_index.html", request, told)
        page.text = ELSEWHERE.sub("", page.text or "")
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One dashboard, from when the page asks for it until either is gone."""
        if "Origin" not in request.headers:
            raise web.HTTPForbidden(text="Only a page of this dashboard may open it.\n")
        if len(self._open) >= MOST:
            raise web.HTTPServiceUnavailable(text=f"{MOST} dashboards are open, which is the most.\n")
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=LARGEST_MESSAGE)
        self._open.add(websocket)
        try:
            await websocket.prepare(request)
            await self._show(request, websocket)
        finally:
            self._open.discard(websocket)
        return websocket

    async def _show(self, request: web.Request, websocket: web.WebSocketResponse) -> None:
        service = DashboardService(self._words, websocket, self.download_manager)
        width, height = (
            to_int(request.query.get(name, ""), usual) for name, usual in (("width", 80), ("height", 24))
        )
        await service.start(width, height)
        try:
            await self._process_messages(websocket, service)
        except (AssertionError, KeyError, IndexError, TypeError, ValueError, json.JSONDecodeError):
            await websocket.close(code=1002, message=b"not understood")
        finally:
            await service.stop()
