"""Running a program for what it prints: pieces on request, what it said, its end, nothing left behind."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from jobtui.transport.ssh import STDERR_BYTES, Running
from tests.waiting import has_ended, wait_until


def shell(script: str) -> Running:
    return Running(["/bin/sh", "-c", script], {})


async def all_of(running: Running) -> bytes:
    pieces = []
    while piece := await running.read():
        pieces.append(piece)
    return b"".join(pieces)


async def test_a_command_gives_its_output_its_errors_and_its_exit_code() -> None:
    running = shell("echo out; echo bad >&2; exit 3")
    assert await all_of(running) == b"out\n"
    assert await running.ended() == 3
    assert running.stderr == "bad\n"
    await running.stop()
    await running.stop()
    running = Running(["/bin/sh", "-c", 'echo "$LC_ALL $HOME"'], {"LC_ALL": "C"})
    assert await all_of(running) == f"C {os.environ['HOME']}\n".encode()
    await running.stop()
    with pytest.raises(FileNotFoundError):
        Running(["/nowhere/program"], {})


async def test_a_command_waits_while_its_output_is_not_read(tmp_path: Path) -> None:
    done = tmp_path / "done"
    running = shell(f"head -c 3000000 /dev/zero; touch {done}; echo end")
    taken = len(await running.read())
    start = time.monotonic()
    await wait_until(lambda: time.monotonic() - start > 0.2)
    assert not done.exists()
    assert taken + len(await all_of(running)) == 3_000_004
    assert done.exists()
    await running.stop()


async def test_long_stderr_keeps_both_ends() -> None:
    running = shell("echo first >&2; head -c 1000000 /dev/zero >&2; echo last >&2")
    assert await all_of(running) == b""
    assert await running.ended() == 0
    assert running.stderr.startswith("first\n")
    assert running.stderr.endswith("last\n")
    assert len(running.stderr) <= 2 * STDERR_BYTES
    await running.stop()


async def test_stopping_ends_a_command_that_ignores_signals_and_its_children() -> None:
    running = shell("sleep 600 & echo $!; wait")
    child = int(await running.read())
    await running.stop()
    await wait_until(lambda: has_ended(child))
    running = shell("trap '' TERM; echo $$; while :; do sleep 1; done")
    pid = int(await running.read())
    await running.stop()
    assert has_ended(pid)


async def test_a_cancellation_while_it_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    running = shell("sleep 600")

    async def ended() -> int:
        stopping.cancel()
        return 0

    monkeypatch.setattr(running, "ended", ended)
    stopping = asyncio.ensure_future(running.stop())
    with pytest.raises(asyncio.CancelledError):
        await stopping


async def test_stopping_can_be_cancelled_and_still_frees_everything() -> None:
    running = shell("trap '' TERM; echo $$; while :; do sleep 1; done")
    pid = int(await running.read())
    stopping = asyncio.ensure_future(running.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert has_ended(pid)
