"""Requests go on to their end, so many at once, also when nobody waits for them any more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import httpx
import pytest

from jobtui.backends.archive.elastic_http import ElasticClient
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.finishing import Finishing
from tests.waiting import LONG_S, wait_until


class Closed(Protocol):
    """What is closed in the end."""

    async def aclose(self) -> None:
        """Let go of all connections."""
        ...


Make = Callable[[httpx.AsyncBaseTransport], tuple[Callable[[], Awaitable[object]], Closed]]


async def test_what_runs_ends_and_what_waits_for_its_turn_is_given_up() -> None:
    requests, gate = Finishing(2), asyncio.Event()
    begun: list[int] = []
    ended: list[int] = []

    async def ask(number: int) -> int:
        begun.append(number)
        await gate.wait()
        ended.append(number)
        return number

    askers = [asyncio.create_task(requests.run(lambda n=n: ask(n))) for n in range(4)]  # type: ignore[misc]
    await wait_until(lambda: begun == [0, 1])
    for asker in askers:
        asker.cancel()
    await asyncio.gather(*askers, return_exceptions=True)
    gate.set()
    await wait_until(lambda: ended == [0, 1])
    assert await requests.run(lambda: ask(4)) == 4
    assert begun == [0, 1, 4]


async def test_what_goes_wrong_is_told_to_who_asked_and_the_turn_is_free_again() -> None:
    requests = Finishing(1)

    async def fail() -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await requests.run(fail)


async def test_what_runs_is_ended_when_it_is_closed() -> None:
    requests = Finishing(1)
    asker = asyncio.create_task(requests.run(asyncio.Event().wait))
    await asyncio.sleep(0)
    await requests.aclose()
    await requests.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asker


def elastic(transport: httpx.AsyncBaseTransport) -> tuple[Callable[[], Awaitable[object]], Closed]:
    client = ElasticClient("http://elastic.test/scripts", transport=transport)
    return lambda: client.document("1"), client


def balsam(transport: httpx.AsyncBaseTransport) -> tuple[Callable[[], Awaitable[object]], Closed]:
    client = BalsamClient("http://balsam.test", lambda: None, transport)
    return lambda: client.get("/jobs/", {}), client


@pytest.mark.parametrize("make", [elastic, balsam])
async def test_a_server_is_heard_to_its_end_when_who_asked_is_gone(make: Make) -> None:
    is_asked, may_answer, is_heard = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        is_asked.set()
        await may_answer.wait()
        is_heard.set()
        return httpx.Response(200, content=b"{}")

    ask, client = make(httpx.MockTransport(answer))
    asker = asyncio.ensure_future(ask())
    async with asyncio.timeout(LONG_S):
        await is_asked.wait()
        asker.cancel()
        await asyncio.gather(asker, return_exceptions=True)
        may_answer.set()
        await is_heard.wait()
        await ask()
    await client.aclose()
