"""The journal as a source: the ops of a capture, what is asked for, what is missing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.job_reader import JobReader
from jobtui.backends.journal.records import WantedStreams
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceError
from jobtui.model.job_reader import Unreadable
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, Step
from jobtui.session import Session
from tests.analysis.captured import seen, true_ops
from tests.backends.journal.make import needs_journal_tools
from tests.backends.journal.rigs import Way, each_program
from tests.journal_memory import T0, MemoryJournal, container_rows, in_order, one_journal, supervisor_rows
from tests.loopback import Timer, timed
from tests.polling import read_on

SEND = (
    "sirepo/job_supervisor.py:12:send _Op(run, abc%d) runDir=/srv/db/user/VUlhaMOD/myapp/HrCJ26rQ/animation"
)


def whole(journal: MemoryJournal, name: str = "memory") -> Journal:
    return Journal(name, lambda: journal.reader(name), since=Nanos(0))


async def records(source: Journal) -> list[LogRecord]:
    _, batches = await read_on(source)
    return [record for batch in batches for record in batch.records]


def ops_in(found: Sequence[LogRecord]) -> list[object]:
    correlator = Correlator()
    correlator.feed(found)
    return sorted(map(seen, correlator.ops()), key=str)


async def test_two_hosts_in_any_order_and_one_alone() -> None:
    supervisor = await records(whole(MemoryJournal(in_order(supervisor_rows("docker")))))
    docker = await records(whole(MemoryJournal(in_order(container_rows("docker"))), "docker7"))
    wanted = sorted(true_ops("docker"), key=str)
    assert (ops_in([*supervisor, *docker]), ops_in([*docker, *supervisor])) == (wanted, wanted)
    assert ops_in(supervisor) == wanted


@needs_journal_tools
@each_program
async def test_ops_out_of_files_are_as_they_were_when_read_again(way: Way, journals: Path) -> None:
    correlator = Correlator()
    with way.open(journals) as make_reader:
        for name in ("captured", "again"):
            source = Journal(name, make_reader, since=Nanos(0))
            _, batches = await read_on(source)
            await source.aclose()
            rows = [*supervisor_rows("docker"), *container_rows("docker")]
            assert sum(batch.count for batch in batches) == len(rows)
            correlator.feed([record for batch in batches for record in batch.records])
            assert sorted(map(seen, correlator.ops()), key=str) == sorted(true_ops("docker"), key=str)
    assert not [op for op in correlator.ops() if op.sends and op.arrived_at is None]


def entries(count: int = 3) -> MemoryJournal:
    journal = MemoryJournal()
    for n in range(count):
        journal.log(SEND % n, n)
    return journal


async def test_lines_that_continue_a_record_are_those_of_its_process() -> None:
    journal = MemoryJournal()
    first = journal.log(SEND % 1)
    journal.log("  more of it")
    journal.write("  of another process", unit="sirepo_job_supervisor.service", host="v3", pid=8)
    journal.log("  and more")
    second = journal.log(SEND % 2)
    journal.log("  of the second")
    source = whole(journal)
    found = await records(source)
    name = found[0].source
    wanted = {record.cursor: record.offset for record in found if record.cursor}
    assert list(wanted) == [first.cursor, second.cursor]
    assert await source.continuations(name, wanted) == {
        first.cursor: [SEND % 1, "  more of it", "  and more"],
        second.cursor: [SEND % 2, "  of the second"],
    }
    assert await source.continuations("other@v3", wanted) == {}
    gone = {"s=1;i=7;t=1": found[0].offset}
    assert await source.continuations(name, gone) == {}
    await source.aclose()


async def test_a_journal_is_asked_for_sirepo_or_the_named_units_only() -> None:
    journal = entries(1)
    journal.write(SEND % 5, unit="sshd.service", host="v3", pid=7)
    journal.write(SEND % 6, unit="docker.service", container="nginx", host="v3", pid=7)
    journal.write(SEND % 7, unit="sirepo@8001.service", identifier="sirepo-8001", host="v3", pid=9)
    journal.write(SEND % 8, identifier="sirepo-8002", host="v3", pid=10)
    journal.write(SEND % 9, identifier="sirepo-8002", unit="session-3.scope", host="v3", pid=11)
    found = await records(whole(journal))
    assert [(r.source, r.fields["o"]) for r in found] == [
        ("sirepo_job_supervisor@v3", "abc0"), ("sirepo-8001@v3", "abc7"), ("sirepo-8002@v3", "abc8"),
    ]  # fmt: skip
    journal = MemoryJournal()
    journal.write(SEND % 1, unit="dev-sup.service", host="v3", pid=7)
    journal.log(SEND % 2)
    source = Journal("m", journal.reader, wanted=WantedStreams(["dev-*"], ["dev-sup"]), since=Nanos(0))
    assert [record.source for record in await records(source)] == ["dev-sup@v3"]


async def test_new_units_and_containers_are_read_from_their_first_line_on() -> None:
    journal = entries(2)
    timer = Timer()
    source = Journal("m", journal.reader, since=Nanos(0))
    source.timer = timer
    cursor, _ = await read_on(source)
    for n in range(500):
        journal.write(SEND % (n % 10), identifier="sirepo-8003", host="v3", pid=9)
        journal.write(SEND % (n % 10), container="srj-s-VUlhaMOD", container_id="e" * 64, host="v7", pid=1)
    timer.now += 1
    cursor, before = await read_on(source, cursor)
    timer.now += 100
    journal.log(SEND % 3)
    cursor, after = await read_on(source, cursor)
    found = [record.source for batch in (*before, *after) for record in batch.records]
    assert (found.count("sirepo-8003@v3"), found.count("srj-s-VUlhaMOD@v7")) == (500, 500)
    assert found.count("sirepo_job_supervisor@v3") == 1
    timer.now += 100
    assert (await source.poll(cursor)).records == ()


async def test_two_containers_of_one_name_and_two_hosts_are_kept_apart() -> None:
    journal = MemoryJournal()
    for host, instance in (("v7.a.org", "a1"), ("v7.a.org", "b2"), ("v7.b.org", "c3")):
        name: Any = {"container": "srj-p-VUlhaMOD", "container_id": instance * 32, "unit": "docker.service"}
        journal.write(SEND % 1, host=host, pid=1, **name)
    found = await records(whole(journal))
    assert [(record.source, record.container) for record in found] == [
        ("srj-p-VUlhaMOD@v7", "srj-p-VUlhaMOD"),
        ("srj-p-VUlhaMOD.b2b2@v7", "srj-p-VUlhaMOD"),
        ("srj-p-VUlhaMOD@v7.b.org", "srj-p-VUlhaMOD"),
    ]


async def test_times_are_those_of_receipt_or_of_the_line_where_that_is_older() -> None:
    journal = MemoryJournal()
    plain = journal.log(SEND % 1, 0.25)
    stamp = "Nov 20 20:36:40 10147     0 "
    journal.log(stamp + SEND % 2, 0.5)
    journal.log(stamp + SEND % 3, 90)
    journal.log(stamp + SEND % 4, 1.5)
    found = await records(whole(journal))
    assert found[0].at == plain.at
    assert [(record.at or 0) - T0 for record in found] == [SECOND // 4, SECOND // 2, 0, SECOND - 1_000]
    assert [record.pid for record in found] == [7, 10147, 10147, 10147]


async def test_a_journal_begins_two_hours_ago_and_can_begin_earlier() -> None:
    journal = entries(0)
    for hour in range(5):
        journal.log(SEND % hour, hour * 3600)
    clock = FixedClock(Nanos(T0 + 4 * 3600 * SECOND + SECOND))
    source = timed(Journal("m", journal.reader), clock)
    assert [r.fields["o"] for r in await records(source)] == ["abc3", "abc4"]
    assert source.begins_after(Nanos(T0 + 3600 * SECOND))
    assert not source.begins_after(Nanos(T0 + 3 * 3600 * SECOND))
    earlier = source.starting_at(Nanos(T0 + 3600 * SECOND))
    assert [r.fields["o"] for r in await records(earlier)] == ["abc1", "abc2", "abc3", "abc4"]
    same = earlier.starting_at(clock.now())
    assert [r.fields["o"] for r in await records(same)] == ["abc1", "abc2", "abc3", "abc4"]
    (batch,) = (await read_on(source))[1]
    assert "anything earlier was not read" in (batch.note or "")


async def test_an_outage_is_reported_with_its_times_and_loses_nothing() -> None:
    journal = entries(2)
    clock = FixedClock(T0)
    source = timed(Journal("m", journal.reader, since=Nanos(0)), clock)
    cursor, _ = await read_on(source)
    journal.broken = "connection refused"
    clock.advance(60)
    journal.log(SEND % 7)
    for _ in range(2):
        with pytest.raises(SourceError, match="connection refused"):
            await source.poll(cursor)
    assert [gap.end for gap in source.gaps] == [None]
    journal.broken = ""
    clock.advance(60)
    cursor, batches = await read_on(source, cursor)
    assert [record.fields["o"] for record in batches[0].records] == ["abc7"]
    assert "2026-11-20T20:36:40Z to 20:38:40Z" in (batches[0].note or "")
    assert None not in [gap.end for gap in source.gaps]


async def test_entries_that_were_let_go_and_suppressed_ones_are_gaps() -> None:
    journal = entries(5)
    source = whole(journal)
    cursor, _ = await read_on(source)
    journal.write("Suppressed 17 messages from sirepo_job_supervisor.service", identifier="systemd-journald")
    cursor, batches = await read_on(source, cursor)
    (skip,) = batches[0].skipped
    assert "17 messages of sirepo_job_supervisor.service" in skip.why
    journal.log(SEND % 8)
    journal.log(SEND % 9)
    journal.delete_oldest(7)
    cursor, batches = await read_on(source, cursor)
    assert "dropped entries" in batches[0].skipped[0].why
    assert [record.fields["o"] for record in batches[0].records] == ["abc9"]


async def test_a_session_reaches_back_in_a_journal() -> None:
    journal = one_journal("docker")
    newest = journal.rows[-1][0].at
    clock = FixedClock(Nanos(newest + SECOND))
    late = Nanos(newest - 10 * SECOND)
    source = timed(Journal("m", journal.reader, since=late), clock)
    async with Session([source], clock) as session:
        await session.catch_up()
        before = list(session.store.correlation.ops())
        assert await session.reach_back(Nanos(1))
        found = sorted(map(seen, session.store.correlation.ops()), key=str)
        assert len(before) < len(found)
        assert found == sorted(true_ops("docker"), key=str)
        assert not await session.reach_back(Nanos(1))


async def test_the_record_behind_a_step_is_read_from_its_journal() -> None:
    journal = MemoryJournal()
    journal.log(SEND % 1)
    journal.log("  more of it")
    journal.log(SEND % 2)
    source = whole(journal)
    first, _ = await records(source)
    step = Step(
        "sent", first.at, Component.DRIVER, first.text, first.source, 0, 0, Certainty.JID, first.cursor
    )

    async def reach_back(at: Nanos, progress: object) -> bool:
        return False

    job_reader = JobReader(lambda: [source], reach_back)
    assert [raw.text for raw in await job_reader.lines_behind(step, 9)] == [SEND % 1, "  more of it"]
    journal.delete_oldest(1)
    assert await job_reader.lines_behind(step, 9) == ()
    journal.broken = "gone"
    with pytest.raises(Unreadable, match="gone"):
        await job_reader.lines_behind(step, 9)
