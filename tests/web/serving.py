"""`jobtui serve` as somebody starts it, and a browser's half of what is said to it."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar

from tests.commands.running import environment

ADDRESS = re.compile(r"http://(?P<host>[\w.:]+)/\?token=(?P<token>\S+)")
END_S = 20.0


class Served(NamedTuple):
    process: asyncio.subprocess.Process
    host: str
    token: str

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def origin(self, **more: str) -> Mapping[str, str]:
        """The headers of a request by its own page."""
        return {"Origin": self.url, **more}


@asynccontextmanager
async def serving(*words: str, cwd: Path, **environ: str) -> AsyncIterator[Served]:
    """A server on a free port of this machine; ends it as ctrl+c does, which must be in good order."""
    before = ["--"] if words[0] == "demo" else []
    command = [sys.executable, "-m", "jobtui", "serve", "--listen", "0", *before, *words]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=environment(**environ), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), END_S)).decode()
        found = ADDRESS.search(line)
        assert found, line
        yield Served(process, found["host"], found["token"])
        if process.returncode is not None:  # it was killed on purpose
            return
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), END_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def browser(served: Served | None = None) -> AsyncIterator[ClientSession]:
    """What keeps cookies, having opened the address that was printed when there is one."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        if served is not None:
            async with session.get(f"{served.url}/?token={served.token}") as answer:
                assert answer.status == 200
                assert "token" not in str(answer.url)
        yield session


class Screen:
    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self.written = b""

    async def seen(self, text: str) -> None:
        async with asyncio.timeout(END_S):
            while text.encode() not in self.written:
                message = await self._socket.receive()
                assert isinstance(message.data, bytes), (message, self.written[-500:])
                self.written += message.data

    async def press(self, keys: str) -> None:
        await self._socket.send_str(json.dumps(["stdin", keys]))

    async def ended(self) -> None:
        async with asyncio.timeout(END_S):
            while not self._socket.closed:
                await self._socket.receive()
