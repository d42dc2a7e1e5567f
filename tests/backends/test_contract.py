"""What every source does, whatever it reads. A new backend joins by a rig.

What raises for one row of an answer costs that row.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobtui.backends import engine, loki
from jobtui.backends.balsam import records as balsam_rows
from jobtui.backends.balsam.poll import Questions
from jobtui.backends.base import Batch, Source
from jobtui.backends.elastic import source as elastic_rows
from jobtui.backends.registry import build
from jobtui.backends.slurm.client import CommandAnswer
from jobtui.backends.slurm.records import ClusterJobs
from jobtui.backends.traces import tempo
from jobtui.formats import spans
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.health import Faults, SourceError
from jobtui.model.specs import SourceSpec
from jobtui.model.traces import TraceSearch
from tests.backends.engines.rigs import ENGINE_RIGS
from tests.backends.journal.rigs import JOURNAL_RIGS, JournalRig
from tests.backends.rigs import RIGS, Rig
from tests.conftest import NOW
from tests.fakes import SECRET, fail
from tests.fuzz.targets import TARGETS, WAITING
from tests.polling import read_on
from tests.rows import FIXTURES
from tests.waiting import LONG_S


@pytest.fixture(
    params=[*(pytest.param(rig, id=rig.__name__) for rig in (*RIGS, *ENGINE_RIGS)), *JOURNAL_RIGS]
)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = request.param(tmp_path)
    yield made
    if isinstance(made, JournalRig):
        made.close()


@pytest.fixture
async def source(rig: Rig) -> AsyncIterator[Source]:
    made = rig.source()
    yield made
    await made.aclose()


async def read_new(source: Source, rig: Rig, cursor: str, count: int = 1) -> list[Batch]:
    """What `count` records that were just written are in; a connection brings them when it does."""
    cursor, batches = await read_on(source, cursor)
    until = time.monotonic() + LONG_S * rig.reconnects
    while len(keys_in(rig, batches)) < count and time.monotonic() < until:
        await source.changed(0.05)
        cursor, more = await read_on(source, cursor)
        batches += more
    return batches


async def read_when_back(source: Source, rig: Rig, cursor: str | None = None) -> list[Batch]:
    """The same where the system is there again, as far as that is known at once."""
    until = time.monotonic() + LONG_S * rig.reconnects
    while True:
        try:
            return (await read_on(source, cursor))[1]
        except SourceError:
            if time.monotonic() > until:
                raise
            await source.changed(0.05)


def keys_in(rig: Rig, batches: list[Batch]) -> list[str]:
    return sorted(key for batch in batches for key in rig.keys(batch))


async def test_a_source_names_itself_and_an_empty_one_is_not_a_fault(source: Source, rig: Rig) -> None:
    assert source.kind
    assert source.name
    cursor, batches = await read_on(source)
    again = await source.poll(cursor)
    for batch in [*batches, again]:
        assert not rig.keys(batch)
        assert batch.skip_count == 0
    assert not again.more


async def test_a_batch_that_was_lost_comes_again(source: Source, rig: Rig) -> None:
    rig.add()
    cursor, _ = await read_on(source)
    written = rig.add()
    await source.poll(cursor)
    batches = await read_new(source, rig, cursor)
    assert keys_in(rig, batches) == [written]


async def test_only_news_come_after_a_cursor_though_a_poll_was_cancelled(source: Source, rig: Rig) -> None:
    rig.add()
    cursor, _ = await read_on(source)
    written = [rig.add() for _ in range(5)]
    poll = asyncio.create_task(source.poll(cursor))
    await asyncio.sleep(0)
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    batches = await read_new(source, rig, cursor, len(written))
    assert keys_in(rig, batches) == sorted(written)


async def test_everything_comes_once_and_from_the_beginning_again(source: Source, rig: Rig) -> None:
    written = [rig.add() for _ in range(5)]
    for _ in range(2):
        cursor, batches = await read_on(source)
        assert keys_in(rig, batches) == sorted(written)
        assert not rig.keys(await source.poll(cursor))


async def test_a_cursor_it_never_gave_does_not_break_it(source: Source, rig: Rig) -> None:
    written = rig.add()
    _, batches = await read_on(source, "no cursor \x00 of this source")
    assert keys_in(rig, batches) == [written]


async def test_one_torn_record_costs_only_itself(source: Source, rig: Rig) -> None:
    written = rig.add()
    rig.tear()
    _, batches = await read_on(source)
    assert (keys_in(rig, batches), sum(batch.skip_count for batch in batches)) == ([written], 1)
    (skip,) = (skip for batch in batches for skip in batch.skipped)
    assert source.name in skip.where
    assert skip.why


async def test_a_fault_of_ours_in_making_one_record_costs_only_that(
    source: Source, rig: Rig, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    written = [rig.add() for _ in range(3)]
    holder, name = rig.makes
    make, made = getattr(holder, name), 0

    def making(*given: Any, **named: Any) -> Any:
        nonlocal made
        made += 1
        if made == 2:
            raise LookupError("hunter2")
        return make(*given, **named)

    monkeypatch.setattr(holder, name, making)
    cursor, batches = await read_on(source)
    assert len(keys_in(rig, batches)) == len(written) - 1
    assert sum(batch.skip_count for batch in batches) == 1
    (fault,) = expected_faults.all()
    assert (fault.kind, fault.count) == ("LookupError", 1)
    (skip,) = (skip for batch in batches for skip in batch.skipped)
    assert (source.name in skip.where, skip.why) == (True, fault.words)
    more = rig.add()
    after = await read_new(source, rig, cursor)
    more_from, rest = await read_on(source, after[-1].cursor)
    assert more in keys_in(rig, [*after, *rest])
    assert not rig.keys(await source.poll(more_from)), "what raised is read only once"
    assert len(expected_faults) == 1


async def test_a_torn_record_that_is_fixed_no_longer_counts(source: Source, rig: Rig) -> None:
    rig.tear()
    cursor, before = await read_on(source)
    mended = rig.mend()
    _, after = await read_on(source, cursor)
    assert keys_in(rig, after) == [mended]
    assert sum(batch.skip_count - batch.recovered for batch in [*before, *after]) == 0


async def test_a_source_that_is_gone_says_so_and_recovers(source: Source, rig: Rig) -> None:
    rig.add()
    cursor, _ = await read_on(source)
    rig.go_away()
    until = time.monotonic() + LONG_S * rig.reconnects
    with suppress(SourceError):  # where the end of a connection shows it
        while time.monotonic() < until:
            cursor = (await source.poll(cursor)).cursor
            await source.changed(0.05)
    for _ in range(2):
        with pytest.raises(SourceError) as raised:
            await source.poll(cursor)
        assert source.name in str(raised.value)
        assert str(raised.value).isprintable()
    rig.come_back()
    written = rig.add()
    batches = await read_when_back(source, rig, cursor)
    assert written in keys_in(rig, batches)


async def test_one_that_was_never_there_recovers_too(source: Source, rig: Rig) -> None:
    written = rig.add()
    rig.go_away()
    with pytest.raises(SourceError):
        await source.poll(None)
    rig.come_back()
    batches = await read_when_back(source, rig)
    assert keys_in(rig, batches) == [written]


async def test_waiting_ends_when_something_changed(source: Source, rig: Rig) -> None:
    if not rig.tells:
        pytest.skip("it has to be asked")
    rig.add()
    cursor, _ = await read_on(source)
    await source.changed(0.0)
    cursor, _ = await read_on(source, cursor)
    waiting = asyncio.create_task(source.changed(LONG_S))
    written = rig.add()
    await asyncio.wait_for(waiting, LONG_S / 2)
    batches = await read_new(source, rig, cursor)
    assert keys_in(rig, batches) == [written]


async def test_waiting_ends_by_itself(source: Source) -> None:
    await read_on(source)
    for _ in range(3):
        await asyncio.wait_for(source.changed(0.02), LONG_S)


async def test_a_source_can_be_closed_twice_and_is_then_closed(rig: Rig) -> None:
    await rig.source().aclose()  # one that was never polled
    source = rig.source()
    await read_on(source)
    await source.changed(0.0)
    await source.aclose()
    await source.aclose()
    with pytest.raises(SourceError, match="closed"):
        await source.poll(None)


def answers_read(name: str) -> Callable[[], object]:
    return lambda: [TARGETS[name].read(data) for data in TARGETS[name].pieces]


def traces_read() -> object:
    paths = (FIXTURES / "tracing" / name for name in ("job-good.otlp.json", "job-fail.jaeger.json"))
    return [read_telemetry(path.read_bytes(), "a").skipped for path in paths]


def rows_read_singly() -> object:
    return balsam_rows.decode_page(balsam_rows.AppRow, b'{"count": 1, "results": [{"id": 2}]}', "a").skips[0]


def rows_asked_for() -> object:
    asked: Any = SimpleNamespace(_lost=[], _client=SimpleNamespace(name="a"))
    return [*Questions._each(asked, [SimpleNamespace(id=1)], fail)], asked._lost[0]


def queue_taken() -> object:
    told = ClusterJobs("a", "slurm").take_queue(CommandAnswer(f"{WAITING[0]}|\n".encode(), "|"), NOW)
    return told.skipped[0]


def tempo_listed() -> object:
    async def answer(*asked: object) -> object:
        return {"traces": [{}]}

    source: Any = build(SourceSpec("tempo", "http://a.test"))
    source._ask_within = answer
    return asyncio.run(source.search(TraceSearch())).notes[0]


ROWS: dict[str, tuple[object, str, Callable[[], object]]] = {
    "Balsam, one by one": (balsam_rows, "partial", rows_read_singly),
    "Balsam, what was asked for": (balsam_rows, "__doc__", rows_asked_for),
    "a hit of Elasticsearch": (elastic_rows, "row_of", answers_read("elastic")),
    "a row as an entry": (engine, "entry_of_export", answers_read("elastic")),
    "a line of Loki": (loki, "_row_of", answers_read("loki")),
    "a job of Slurm": (ClusterJobs, "_job", queue_taken),
    "a trace that Tempo lists": (tempo, "_summary", tempo_listed),
    "a span": (spans, "_span", traces_read),
    "a resource": (spans, "attributes_of", traces_read),
    "an export": (spans, "read_otlp", traces_read),
    "a span of Jaeger": (spans, "_jaeger_span", traces_read),
    "a process of Jaeger": (spans, "_jaeger_resource", traces_read),
}
"""What is made to raise, and what reads rows all the same."""


@pytest.mark.parametrize("row", ROWS)
def test_a_fault_costs_its_row(row: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults) -> None:
    owner, name, read = ROWS[row]
    monkeypatch.setattr(owner, name, (lambda *given, **named: fail) if name == "partial" else fail)
    said = str(read())
    (fault,) = {fault.words for fault in expected_faults.all()}
    assert "(reading a record)" in fault
    assert SECRET not in said
