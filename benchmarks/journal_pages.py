"""Pages of a big journal as the log screen asks for them, and a search of it."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from benchmarks.journal_files import CONTAINER, UNIT
from benchmarks.rows import Row, at_most
from jobtui.backends.journal.opening import maker_of
from jobtui.backends.journal.page_lines import Selection
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.streams import StreamNames, Wanted
from jobtui.model.pages import query_of

SHOWN = 40
SHOWN_LIMIT_MS = 30.0
SEARCHED_S = 5.0
STEP_LIMIT_MS = 50.0
"""How long the event loop may be held up. Processor time: how long others have it is not ours."""
NEEDLE = "this is nowhere"


async def looked_through(directory: Path, rounds: int) -> list[Row]:
    """Pages as a screen asks for them, and a search for what is nowhere, beside a screen that goes on."""
    wanted = Wanted()
    matches = wanted.matches({"_SYSTEMD_UNIT": (UNIT,), "CONTAINER_NAME": (CONTAINER,)})
    selection = Selection(StreamNames(str(directory)), wanted, None, matches)
    pages = JournalPages(str(directory), maker_of(str(directory)), selection)
    place = (await pages.look()).end
    times = []
    for _ in range(20 * rounds):
        began = time.process_time()
        place = (await pages.before(place, SHOWN)).lines[0].place
        times.append(1_000 * (time.process_time() - began))
    query = query_of(NEEDLE)
    assert query is not None
    search = pages.search(query, place)
    with longest_step() as longest:
        running = asyncio.create_task(search.run())
        await asyncio.wait([running], timeout=SEARCHED_S)
        search.cancel()
        await running
    await pages.aclose()
    p95 = statistics.quantiles(times, n=20)[-1]
    return [
        at_most("journal: a page further back, of CPU time, p95", p95, "ms", SHOWN_LIMIT_MS),
        at_most("journal: searched, longest step, of CPU time", longest(), "ms", STEP_LIMIT_MS),
    ]


@contextmanager
def longest_step() -> Iterator[Callable[[], float]]:
    """What gives the longest that one step of the event loop has taken meanwhile, ms of processor time."""
    longest, step = 0.0, asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        step(handle)
        longest = max(longest, 1_000 * (time.thread_time() - began))

    with mock.patch.object(asyncio.Handle, "_run", timed):
        yield lambda: longest
