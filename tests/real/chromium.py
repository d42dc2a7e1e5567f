"""A real browser: headless Chromium, told what to do through its DevTools protocol."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

from tests.waiting import wait_until

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
        """What a script gives in the page, also one that promises it."""
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

    async def click(self, x: int, y: int) -> None:
        """Click at a place, which also gives the page the keys."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

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
