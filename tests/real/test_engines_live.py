"""A real Elasticsearch, OpenSearch or Loki, where `JOBTUI_REAL_ELASTIC` or `JOBTUI_REAL_LOKI` names one.

Each is the value of the flag, such as `https://host:9200/filebeat-*?preset=journald`; its login stands in
`JOBTUI_ELASTIC_LOGS_BASIC` and the like. Nothing is written there: what it holds is read both ways, and the
answers are compared. Where no Elasticsearch is named, another server of OpenSearch's interface is started.
"""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from jobtui.backends.journal.client import JournalReader
from jobtui.backends.journal.source import Journal
from jobtui.backends.registry import announce
from jobtui.config import load
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.journal import At, Tail
from tests.backends.engines.rigs import journald_document
from tests.commands.running import Runner
from tests.real.sirepo_system import free_port
from tests.waiting import wait_for

pytestmark = pytest.mark.real
VARIABLES = {"elastic_logs": "JOBTUI_REAL_ELASTIC", "loki": "JOBTUI_REAL_LOKI"}
ENVIRON = dict(os.environ)
"""As it was: tests have none of the variables of jobtui."""
OSMEM = ENVIRON.get("REAL_OSMEM", "")
ENTRIES = 2_500
MOST = 700


@pytest.fixture(scope="module", params=[*VARIABLES])
def named(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The setting, and its value."""
    setting: str = request.param
    if address := ENVIRON.get(VARIABLES[setting]):
        yield setting, address
    elif setting == "elastic_logs" and os.path.exists(OSMEM):
        port = free_port()
        with subprocess.Popen([OSMEM, "-addr", f"127.0.0.1:{port}", "-no-stdin-watch", "-no-ja"]) as server:
            try:
                yield setting, _filled(f"http://127.0.0.1:{port}")
            finally:
                server.kill()
    else:
        pytest.skip(f"{VARIABLES[setting]} names no server")


def _filled(server: str) -> str:
    """The address of an index whose mapping is what the server makes of journald's entries."""

    def answers() -> bool:
        try:
            return httpx.get(server).is_success
        except httpx.TransportError:
            return False

    wait_for(answers, timeout_s=30.0)
    begin = (SystemClock().now() - 600 * SECOND) / SECOND
    lines = []
    for number in range(ENTRIES):
        document = journald_document(0, f"entry {number} of the unit")
        document |= {"@timestamp": round((begin + number * 600 / ENTRIES) * 1000)}
        lines += [json.dumps({"index": {"_id": f"entry{number}"}}), json.dumps(document)]
    mapping = {"mappings": {"properties": {"@timestamp": {"type": "date"}}}}
    httpx.put(f"{server}/logs", json=mapping).raise_for_status()
    body = "\n".join([*lines, ""])
    headers = {"Content-Type": "application/x-ndjson"}
    sent = httpx.post(f"{server}/logs/_bulk?refresh=true", content=body, headers=headers, timeout=60)
    assert not sent.raise_for_status().json()["errors"]
    return f"{server}/logs"


@asynccontextmanager
async def reader_of(named: tuple[str, str]) -> AsyncIterator[JournalReader]:
    setting, address = named
    (spec,) = load({setting: (address,)}, ENVIRON).sources
    source = announce(spec).make()
    assert isinstance(source, Journal)
    reader = source.make_reader()
    yield reader
    await reader.aclose()
    await source.aclose()


async def test_both_ways_and_by_time_it_gives_the_same(named: tuple[str, str]) -> None:
    async with reader_of(named) as reader:
        last = await reader.backward(Tail(), (), MOST)
        assert last.entries, "it holds nothing"
        assert [entry.at for entry in last.entries] == sorted(entry.at for entry in last.entries)
        again = await reader.forward(At(last.entries[0].at), (), 3 * MOST)
        found = [entry.cursor for entry in again.entries]
        assert [entry.cursor for entry in last.entries if entry.cursor not in set(found)] == []
        middle = last.entries[len(last.entries) // 2]
        assert all(one.at < middle.at for one in (await reader.backward(At(middle.at), (), 50)).entries)
        assert (await reader.values("_HOSTNAME"))["_HOSTNAME"]


async def test_it_is_followed_from_a_minute_ago_and_nothing_is_doubtful(named: tuple[str, str]) -> None:
    async with reader_of(named) as reader:
        following = reader.follow(At(Nanos(SystemClock().now() - 60 * SECOND)), ())
        cursors: list[str] = []
        edges = 0
        while edges < 10:  # from the second on, what it sends as it comes is in it
            piece = await following.take(MOST)
            cursors += [entry.cursor for entry in piece.entries]
            edges += piece.at_edge
            assert not piece.note
            await following.changed(0.5)
        assert len(cursors) == len(set(cursors))
        await following.aclose()


def test_the_doctor_can_read_it(named: tuple[str, str], run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, address = named
    for end in ("BASIC", "BEARER", "HEADERS"):
        name = f"JOBTUI_{setting.upper()}_{end}"
        if name in ENVIRON:
            monkeypatch.setenv(name, ENVIRON[name])
    (check,) = run("doctor", "--json", f"--{setting.replace('_', '-')}", address).json["checks"]
    assert check["state"] in ("ok", "partial"), check
