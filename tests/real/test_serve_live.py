"""`jobtui serve` in a real browser: the dashboard is shown, typed to, and kept from the pages of others.

REAL_PICTURE=FILE keeps the picture that the documentation shows.
"""

import asyncio
import base64
import io
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, web
from PIL import Image

from tests.backends.journal.rigs import children_of
from tests.waiting import wait_until
from tests.web.serving import serving

START_S = 180.0
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
"""No sandbox: as root there is none, and the pages are ours."""


class Page:
    """A tab: goes to addresses, presses keys, says what its WebSockets were sent, and takes pictures."""

    def __init__(self, connection: ClientWebSocketResponse) -> None:
        self._connection = connection
        self._calls = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.received = b""
        self.loaded = False

    async def listen(self) -> None:
        """Take in what the browser says, for as long as it does."""
        async for message in self._connection:
            said = json.loads(message.data)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Network.requestWillBeSent":
                self.asked.append(said["params"]["request"]["url"])
            elif said["method"] == "Page.loadEventFired":
                self.loaded = True
            elif said["method"] == "Network.webSocketCreated":
                self.asked.append(said["params"]["url"])
            elif said["method"] == "Network.webSocketFrameReceived":
                frame = said["params"]["response"]
                if frame["opcode"] == 2:
                    self.received += base64.b64decode(frame["payloadData"])

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol; what it gives. AssertionError when it fails."""
        self._calls += 1
        answer = self._answers[self._calls] = asyncio.get_running_loop().create_future()
        await self._connection.send_json({"id": self._calls, "method": method, "params": parameters})
        said = await asyncio.wait_for(answer, START_S)
        assert "error" not in said, said
        result: dict[str, Any] = said["result"]
        return result

    async def evaluate(self, script: str) -> Any:
        given = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in given, given
        return given["result"].get("value")

    async def go(self, address: str) -> None:
        """Open an address, until it has loaded."""
        self.loaded = False
        await self.call("Page.navigate", url=address)
        await wait_until(lambda: self.loaded, timeout_s=START_S)

    async def seen(self, text: str) -> None:
        """Until a WebSocket was sent this."""
        await wait_until(lambda: text.encode() in self.received, timeout_s=START_S)

    async def press(self, key: str) -> None:
        """Type a character."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self) -> bytes:
        """What it looks like now, as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def chromium(place: Path, size: tuple[int, int]) -> AsyncIterator[Page]:
    """A browser with one tab of so many pixels; what it keeps is below `place`."""
    process = await asyncio.create_subprocess_exec(
        "chromium", *FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={place}",
        "--remote-debugging-port=0", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port_file = place / "DevToolsActivePort"
        await wait_until(lambda: port_file.exists() and port_file.read_text().count("\n"), timeout_s=START_S)
        port = port_file.read_text().split()[0]
        async with ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                (tab,) = (one for one in await answer.json() if one["type"] == "page")
            address = re.sub(r"//[^/]*", f"//127.0.0.1:{port}", tab["webSocketDebuggerUrl"])
            async with session.ws_connect(address, max_msg_size=0) as connection:
                page = Page(connection)
                listening = asyncio.create_task(page.listen())
                for domain in ("Network", "Page", "Runtime"):
                    await page.call(f"{domain}.enable")
                yield page
                listening.cancel()
    finally:
        process.terminate()
        await process.wait()


pytestmark = pytest.mark.real

SIZE = (1280, 800)
PICTURE = os.environ.get("REAL_PICTURE", "")
DRAWN = 20_000
"""Pixels that are brighter than any background, when something is written on a screen."""

ATTACK = Path(__file__).with_name("attack.js").read_text().strip()


def bright(png: bytes) -> int:
    """How many pixels are written on."""
    return sum(Image.open(io.BytesIO(png)).convert("L").histogram()[128:])


def keep(png: bytes) -> None:
    """Keep the picture for the documentation, as small as the others there."""
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128).save(PICTURE, optimize=True)


@asynccontextmanager
async def foreign_page() -> AsyncIterator[str]:
    """The address of a page of somebody else, on this machine."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<title>a trap</title>", content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_a_browser_shows_the_dashboard_and_keeps_it_from_others(tmp_path: Path) -> None:
    async with (
        serving("demo", "--seed", "3", cwd=tmp_path) as served,
        chromium(tmp_path / "chromium", SIZE) as page,
        foreign_page() as trap,
    ):
        await page.go(f"{served.url}/?token={served.token}")
        await page.press("?")  # at once, before anything is shown
        await page.seen("what is read, how old it is")
        await page.press("?")
        await page.seen("urgent first")
        assert await page.evaluate("location.href") == f"{served.url}/"
        assert await page.evaluate("document.cookie") == ""

        pictures: list[bytes] = []
        while not pictures or bright(pictures[-1]) < DRAWN:
            pictures.append(await page.picture())
        assert {urlsplit(url).netloc for url in page.asked if not url.startswith("data:")} == {served.host}

        await page.press("q")
        await wait_until(lambda: not children_of(served.process.pid))
        ended = "document.activeElement.matches('button') && done(document.body.innerText)"
        said = await page.evaluate(f"new Promise(done => setInterval(() => {ended}, 50))")
        assert said == "The dashboard has ended. Open again"

        await page.go(trap)
        assert await page.evaluate(f"({ATTACK})('ws://{served.host}/ws')") == "refused"
        opaque = f"fetch('{served.url}/').then(answer => answer.text(), () => 'refused')"
        assert await page.evaluate(opaque) == "refused"
        await wait_until(lambda: not children_of(served.process.pid))
        if PICTURE:
            keep(pictures[-1])
