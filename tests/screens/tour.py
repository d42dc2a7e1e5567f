"""Every screen of the dashboard and the keys that lead there, for tests that go through all of them."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.model.ids import JobId
from jobtui.theme import DARK
from tests.builders import a_cluster
from tests.rows import table
from tests.screens.captured import CAPTURED, LARGE_TOO, app_on, app_on_traces
from tests.screens.scene import FAILED, THREE, Scene, agents, with_runs
from tests.waiting import LONG_S, wait_until
from tests.widgets.widget_app import press, screen_text, text


class Stop(NamedTuple):
    """A screen: the keys that lead there from the jobs or from a job, and texts that show it is there."""

    name: str
    keys: tuple[str, ...] = ()
    sign: str = ""
    open_at: JobId | None = None


def typed(keys: str) -> Iterator[str]:
    for word in shlex.split(keys):
        yield from word[1:] if word.startswith("=") else [word]


STOPS = tuple(
    Stop(name, tuple(typed(keys)), sign, FAILED if of_job else None)
    for name, keys, sign, *of_job in table("stops")["stops"]
)


@asynccontextmanager
async def at_stop(
    stop: Stop, size: tuple[int, int], *, theme: str = DARK.name
) -> AsyncIterator[tuple[JobtuiApp, Pilot[Any]]]:
    known = Scene(open_at=stop.open_at, theme=theme, agents=agents(), clusters=(a_cluster(),))
    scene = with_runs(known, *THREE)
    app = scene.app
    if stop.name.startswith("logs"):
        app = app_on(*CAPTURED, theme=theme)
    elif stop.name.startswith("trace"):
        app = app_on_traces(*LARGE_TOO, theme=theme)
    async with AsyncExitStack() as stack:
        stack.enter_context(patch("jobtui.screens.jobs.REST_S", 0.0))
        pilot = await stack.enter_async_context(app.run_test(size=(120, 40)))  # all is found in it
        if app is scene.app:
            await wait_until(scene.is_read, pilot)
            signs = " sure" if stop.open_at is None else "run 3 of 3|Its program failed"
            await wait_until(lambda: has(app, signs) and "starting" not in text(app), pilot)
        await pilot.press(*stop.keys[:1])
        if stop.name.startswith("trace"):
            sources = app._session.store.sources
            await wait_until(lambda: "3 traces" in text(app) and all(s.read_at for s in sources()), pilot)
        await settled(app, pilot)
        await press(pilot, *stop.keys[1:], until=lambda: has(app, stop.sign))
        await pilot.resize_terminal(*size)
        await settled(app, pilot)
        yield app, pilot


def has(app: JobtuiApp, signs: str) -> bool:
    return all(sign in text(app) for sign in signs.split("|"))


async def settled(app: JobtuiApp, pilot: Pilot[Any]) -> None:
    seen: list[str] = []
    async with asyncio.timeout(LONG_S):
        while (shown := screen_text(app)) != seen or is_drawing(app):
            # What was drawn a moment ago is painted only after the next pause
            seen = [] if is_drawing(app) else shown
            await pilot.pause()


def is_drawing(app: JobtuiApp) -> bool:
    return any(worker.name in {"charts", "draw"} and not worker.is_finished for worker in app.workers)
