"""One thread that does the blocking work, call after call."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from jobtui.logs.search import SearchFailed, SearchProgram
from jobtui.model.health import SourceError
from jobtui.model.pages import query_of
from jobtui.transport import worker as workers
from jobtui.transport.worker import Worker
from tests.rows import program
from tests.waiting import LONG_S, wait_until


async def test_calls_run_in_order_in_one_other_thread() -> None:
    worker = Worker("test worker")
    threads: list[tuple[int, str]] = []

    def call(number: int) -> int:
        threads.append((number, threading.current_thread().name))
        return number

    results = await asyncio.gather(*(worker.run(lambda n=n: call(n)) for n in range(5)))  # type: ignore[misc]
    assert (results, threads) == (list(range(5)), [(number, "test worker") for number in range(5)])
    worker.close()
    worker.close()
    await wait_until(lambda: "test worker" not in {thread.name for thread in threading.enumerate()})


async def test_a_cancelled_call_that_has_not_begun_never_does() -> None:
    worker = Worker("test")
    go_on, began = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        go_on.wait(LONG_S)

    ran: list[int] = []
    first = asyncio.create_task(worker.run(hold))
    second = asyncio.create_task(worker.run(lambda: ran.append(1)))
    await wait_until(began.is_set)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go_on.set()
    await first
    await worker.run(lambda: ran.append(2))
    assert ran == [2]
    worker.close()


def test_a_call_that_hangs_does_not_keep_the_program_from_ending() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program("hangs_in_a_thread")], capture_output=True, timeout=60, check=True
    )
    assert (ran.stdout, ran.stderr) == (b"ended\n", b"")


async def test_a_last_call_comes_after_all_others() -> None:
    worker = Worker("test")
    ran: list[int] = []
    first = asyncio.create_task(worker.run(lambda: ran.append(1)))
    await asyncio.sleep(0)
    await worker.finish(lambda: ran.append(2))
    await first
    assert ran == [1, 2]
    idle = Worker("never used")
    await idle.finish(lambda: ran.append(3))
    assert ran == [1, 2, 3]


async def test_a_last_call_is_not_waited_for_behind_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "FINISH_S", 0.05)
    worker = Worker("test")
    go_on, ended = threading.Event(), threading.Event()
    hanging = asyncio.create_task(worker.run(lambda: go_on.wait(LONG_S)))
    await asyncio.sleep(0)
    await worker.finish(ended.set)
    assert not ended.is_set()
    go_on.set()
    await hanging
    await wait_until(ended.is_set)


def refuse_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


async def test_a_call_that_got_no_thread_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker("test")
    with monkeypatch.context() as refusing:
        refuse_threads(refusing)
        for _ in range(2):
            with pytest.raises(SourceError, match="ulimit -u"):
                await asyncio.wait_for(worker.run(lambda: 7), LONG_S)
    assert await worker.run(lambda: 7) == 7
    worker.close()


def test_a_search_without_a_thread_fails_and_leaves_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    query = query_of("x")
    assert query is not None
    started: list[subprocess.Popen[bytes]] = []

    class Program(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Program)
    refuse_threads(monkeypatch)
    with pytest.raises(SearchFailed, match="ulimit -u"):
        list(SearchProgram(query).found_in_lines(["x"]))
    assert [program.returncode is not None for program in started] == [True]
