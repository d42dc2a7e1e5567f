"""`jobtui serve` in a real browser: the dashboard is shown, typed to, and kept from the pages of others.

REAL_PICTURE=FILE keeps the picture that the documentation shows.
"""

import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from PIL import Image

from tests.real.chromium import chromium
from tests.waiting import wait_until
from tests.web.serving import serving

pytestmark = pytest.mark.real

SIZE = (1280, 800)
PICTURE = os.environ.get("REAL_PICTURE", "")
DRAWN = 20_000
"""Pixels that are brighter than any background, when something is written on a screen."""

ATTACK = """
(address) => new Promise(done => {
    const socket = new WebSocket(address);
    socket.onmessage = () => done("read");
    socket.onerror = () => done("refused");
    setTimeout(() => done("silent"), 5000);
})
"""


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
        await page.seen("urgent first")
        assert await page.evaluate("location.href") == f"{served.url}/"
        assert await page.evaluate("document.cookie") == ""

        pictures: list[bytes] = []
        while not pictures or bright(pictures[-1]) < DRAWN:
            pictures.append(await page.picture())
        await page.click(SIZE[0] // 2, SIZE[1] // 2)
        await page.press("?")
        await page.seen("What is read, how old it is")
        assert {urlsplit(url).netloc for url in page.asked if not url.startswith("data:")} == {served.host}

        await page.go(trap)
        assert await page.evaluate(f"({ATTACK})('ws://{served.host}/ws')") == "refused"
        opaque = f"fetch('{served.url}/').then(answer => answer.text(), () => 'refused')"
        assert await page.evaluate(opaque) == "refused"
        children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children")
        await wait_until(lambda: not children.read_text())
        if PICTURE:
            keep(pictures[-1])
