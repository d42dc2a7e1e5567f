"""The server for a browser: a page with textual-serve's terminal, behind a guard, on a bound socket.

It uses internals of the textual-serve that pyproject.toml pins: its script, and its messages.
"""

import asyncio
import ipaddress
import json
import os
import secrets
import shlex
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from hmac import compare_digest
from html import escape
from string import Template
from tempfile import NamedTemporaryFile
from urllib.parse import quote, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from jobtui.model.numbers import whole_of
from jobtui.model.secrets import mask_text, masked_lines
from jobtui.model.tables import text_of
from jobtui.web import DRIVER, SIZE, bounded

TOKEN = "token"
JOB, JOB_SOCKET = "/job/", "/ws/job/"
"""The page of one job, and its socket; an id, or whatever names the job, follows."""
LONGEST_ID = 500
"""Characters."""
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
"""What the page may load: only files from this server."""


class Guard:
    """Refuses requests that are not from the user of the dashboard, with one line that says why."""

    def __init__(self, names: Collection[str], port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._names = frozenset(name.lower() for name in names)
        # A browser sends its cookies to every port of a host
        self._cookie = f"jobtui-{port}"

    @web.middleware
    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self.is_ours(request.host):
            raise web.HTTPForbidden(text="This dashboard is not served under that name.\n")
        if request.headers.get("Origin", own := f"http://{request.host}").lower() != own.lower():
            raise web.HTTPForbidden(text="Other pages may not read this dashboard.\n")
        is_page = request.path == "/" or request.path.startswith(JOB)
        if is_page and self._is_token(request.query.get(TOKEN, "")):
            answer = web.HTTPSeeOther(request.rel_url.raw_path)
            answer.set_cookie(self._cookie, self.token, path="/", httponly=True, samesite="Strict")
            raise answer
        if not self._is_token(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text="Open the address that `jobtui serve` printed, with its token.\n")
        return await handler(request)

    def is_ours(self, host: str) -> bool:
        """Whether a `Host` is an address, or a name of this machine; other names may be another's."""
        name = ""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode(), self.token.encode())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add to each answer what the page may do, and that it must not be cached."""
    response.headers.update({**HEADERS, "Content-Security-Policy": POLICY.format(host=request.host)})


GRACE_S = 5.0
"""How long a dashboard may take to end before it is ended."""
OF_A_TERMINAL = frozenset({"COLUMNS", "LINES", "ROWS", "STY", "TMUX", "SSH_TTY", "SSH_CONNECTION"})
"""Variables on the terminal in which the server was started, which is not the browser's."""


class DashboardService(AppService):
    """Starts the dashboard, and passes on its output and what is typed."""

    def __init__(
        self, words: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager
    ) -> None:
        self._is_shown = False
        self._errors = NamedTemporaryFile("r", errors="replace", prefix="jobtui-")  # noqa: SIM115 - run closes it
        super().__init__(
            f"exec {shlex.join(words)} 2>{shlex.quote(self._errors.name)}",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,  # type: ignore[arg-type]  # what it gives is not read
            download_manager=downloads,
        )
        self._websocket = websocket

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        columns, lines = bounded(width, height)
        kept = {name: value for name, value in os.environ.items() if name not in OF_A_TERMINAL}
        return kept | {
            "TEXTUAL_DRIVER": DRIVER,
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM": "xterm-256color",
            SIZE: f"{columns}x{lines}",
        }

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(*bounded(whole_of(width) or 0, whole_of(height) or 0))

    async def run(self) -> None:
        """Pass on the output of the dashboard; if there was none, its stderr."""
        try:
            await super().run()
            said = masked_lines(self._errors.read(LARGEST_MESSAGE).splitlines())
            lines = [line if line.isprintable() else ascii(line) for line in said]
            if self._is_shown:
                sys.stderr.writelines(f"{line}\n" for line in lines)
            for line in [] if self._is_shown else lines:
                await self.on_data(line.encode() + b"\r\n")
        finally:
            self._errors.close()
            with suppress(ConnectionError):
                await self._websocket.close()

    async def on_data(self, payload: bytes) -> None:
        self._is_shown = True
        await super().on_data(payload)

    async def stop(self) -> None:
        task, self._task = self._task, None
        process: Process | None = self._process
        if task is None or process is None:
            return
        with suppress(ConnectionError):
            self.stdin.close()  # while it starts it sees this, but not a request to quit
        try:
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        await task


MOST = 8
"""The most dashboards at a time; each is a process that reads the sources itself."""
LARGEST_MESSAGE = 1 << 20
"""The most bytes that a browser sends at once; the largest is a pasted text."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ANY_HOST = ("0.0.0.0", "[::]")


class DashboardServer(Server):
    """Serves dashboards to browsers that have the token.

    `words_at` gives the command of a dashboard, which opens at a job if one is named; None for a name that
    would make it another command.
    """

    def __init__(self, words_at: Callable[[str | None], Sequence[str]], listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        super().__init__("", host=host, port=port, title="jobtui")
        self._words_at = words_at
        self._listener = listener
        self._open: set[web.WebSocketResponse] = set()
        self.guard = Guard({"localhost", socket.gethostname(), socket.getfqdn()}, port)

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if host in ANY_HOST:
            host = socket.gethostname()
        return f"http://{host}:{self.port}/?{TOKEN}={self.guard.token}"

    def run(self) -> None:
        # A signal waits until aiohttp handles it: else a task would be left that never began
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            web.run_app(
                self._make_app(),
                sock=self._listener,
                print=None,
                access_log=None,
                shutdown_timeout=2 * GRACE_S,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.router.add_get(f"{JOB}{{job:.+}}", self.handle_index)
        app.router.add_get(f"{JOB_SOCKET}{{job:.+}}", self.handle_websocket)
        app.middlewares.append(self.guard.__call__)
        app.on_response_prepare.append(add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: `jobtui serve` has printed the address."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    async def on_shutdown(self, app: web.Application) -> None:
        for websocket in [*self._open]:
            await websocket.close(code=1001, message=b"the server ends")

    async def handle_index(self, request: web.Request) -> web.Response:
        job = _job_of(request)
        self._check(job)
        values = {
            "title": f"{mask_text(job)} - {self.title}" if job else self.title,
            "socket": f"ws://{request.host}{JOB_SOCKET + quote(job) if job else '/ws'}",
        }
        page = Template(text_of("jobtui.web", "page.html"))
        text = page.substitute({name: escape(value) for name, value in values.items()})
        return web.Response(text=text, content_type="text/html")

    def _check(self, job: str | None) -> Sequence[str]:
        """The command of the requested dashboard. Raises HTTPException if there is none."""
        if len(self._open) >= MOST:
            raise web.HTTPServiceUnavailable(text=f"{MOST} dashboards are open, the most allowed.\n")
        words = self._words_at(job)
        if not words:
            raise web.HTTPNotFound(text="No job has such an id.\n")
        return words

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if "Origin" not in request.headers:
            raise web.HTTPForbidden(text="Only a page of this dashboard may open it.\n")
        words = self._check(_job_of(request))
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=LARGEST_MESSAGE)
        self._open.add(websocket)
        try:
            await websocket.prepare(request)
            service = DashboardService(words, websocket, self.download_manager)
            asked = request.query
            await service.start(to_int(asked.get("width", ""), 80), to_int(asked.get("height", ""), 24))
            try:
                await self._process_messages(websocket, service)
            except (AssertionError, KeyError, IndexError, TypeError, ValueError, json.JSONDecodeError):
                await websocket.close(code=1002, message=b"not understood")
            finally:
                await service.stop()
        finally:
            self._open.discard(websocket)
        return websocket


def _job_of(request: web.Request) -> str | None:
    """The job that the address names, None for all. Raises HTTPNotFound for anything else."""
    job = request.match_info.get("job")
    if job is not None and (len(job) > LONGEST_ID or not job.isprintable()):
        raise web.HTTPNotFound(text="No job has such an id.\n")
    return job
