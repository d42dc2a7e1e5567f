"""Following a directory in which the journals of several hosts are collected, as each of them sends."""

import asyncio
import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.native import NativeJournal
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Head, Start, Tail
from tests.backends.journal.live import Writer, writer
from tests.backends.journal.make import START_US, entry, needs_journal_tools
from tests.backends.journal.readers import needs_systemd_python
from tests.backends.journal.reading import Follower, messages, of

pytestmark = [needs_journal_tools, needs_systemd_python]

HOSTS = ("node1", "node2", "node3")
WANTED = of(WANTED="1")


def from_host(host: str, nth: int, wanted: str = "1") -> bytes:
    number = HOSTS.index(host) + 1
    return entry(
        nth, f"{host} {nth}", host=host, machine=f"{number:x}" * 32, boot=f"{number:x}" * 32, WANTED=wanted
    )


async def followed(directory: Path, start: Start) -> tuple[NativeJournal, Following, Follower]:
    reader = NativeJournal(str(directory), str(directory))
    following = reader.follow(start, WANTED)
    follower = Follower(following)
    await follower.take()
    return reader, following, follower


@pytest.mark.parametrize("start", [Head(), At(Nanos(START_US * 1_000)), Tail()], ids=["head", "at", "tail"])
async def test_what_a_host_sends_late_is_not_lost(tmp_path: Path, start: Start) -> None:
    with writer(tmp_path, "remote-node1.journal") as one, writer(tmp_path, "remote-node2.journal") as two:
        reader, following, follower = await followed(tmp_path, start)
        one.write([from_host("node1", 0)])
        await follower.until(1)
        two.write([from_host("node2", n) for n in (1, 2)])
        await follower.until(3)
        one.write([from_host("node1", n) for n in range(50, 60)])
        await follower.until(13)
        two.write([from_host("node2", n, wanted="0") for n in (3, 4)])
        two.write([from_host("node2", n) for n in range(5, 25)])
        found = messages(await follower.until(33))
        assert [each for each in found if "node1" in each] == [
            "node1 0",
            *(f"node1 {n}" for n in range(50, 60)),
        ]
        assert [each for each in found if "node2" in each] == [f"node2 {n}" for n in (1, 2, *range(5, 25))]
        assert follower.losses == 0
        await following.aclose()
        await reader.aclose()


LONG_S = 60.0


# Seen on a busy machine only: now and then an entry comes twice, or the last ones do not come
@pytest.mark.xfail(strict=False, reason="several hosts that write at once: not exact on a busy machine")
@pytest.mark.parametrize("seed", range(4))
async def test_everything_comes_once_whatever_the_order_of_arrival(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    waiting = {host: [n for n in range(150) if draw.random() < 0.5] for host in HOSTS}
    everything = {f"{host} {n}" for host, numbers in waiting.items() for n in numbers}
    with ExitStack() as stack:
        writers: dict[str, Writer] = {
            host: stack.enter_context(writer(tmp_path, f"remote-{host}.journal")) for host in HOSTS
        }
        send_some(writers, waiting, draw)
        reader, following, follower = await followed(tmp_path, Head())
        while any(waiting.values()):
            send_some(writers, waiting, draw)
            await follower.take(draw.choice((1, 2, 7, 200)))
        async with asyncio.timeout(LONG_S):
            found = messages(await follower.until(len(everything)))
        assert sorted(found) == sorted(everything)
        for host in HOSTS:
            own = [int(each.split()[1]) for each in found if each.startswith(host)]
            assert own == sorted(own)
        await following.aclose()
        await reader.aclose()


def send_some(writers: dict[str, Writer], waiting: dict[str, list[int]], draw: random.Random) -> None:
    for host, numbers in waiting.items():
        count = draw.randrange(12)
        writers[host].write(from_host(host, n) for n in numbers[:count])
        del numbers[:count]


async def test_what_was_there_comes_in_order_of_time(tmp_path: Path) -> None:
    with writer(tmp_path, "remote-node1.journal") as one, writer(tmp_path, "remote-node2.journal") as two:
        one.write(from_host("node1", n) for n in range(0, 400, 2))
        two.write(from_host("node2", n) for n in range(1, 400, 2))
    reader, following, follower = await followed(tmp_path, Head())
    assert [each.message.split()[1] for each in follower.found] == [str(n) for n in range(400)]
    part = await following.take(10)
    assert (part.entries, part.at_edge, part.lost) == ((), True, False)
    await following.aclose()
    await reader.aclose()
