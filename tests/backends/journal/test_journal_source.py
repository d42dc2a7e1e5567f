"""The journal as a source: the ops of a capture, what is asked for, what is missing."""

from collections.abc import Iterable

from jobtui.analysis.correlate import Correlator
from jobtui.backends.base import Batch
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from jobtui.model.logs import LogRecord
from tests.analysis.captured import seen, true_ops
from tests.journal_captures import container_rows, one_journal, supervisor_rows
from tests.journal_memory import MemoryJournal, in_order


def whole(journal: MemoryJournal, name: str = "memory") -> Journal:
    return Journal(name, lambda: journal.reader(name), since=Nanos(0))


async def read(source: Journal, cursor: str | None = None) -> tuple[str, list[Batch]]:
    batches = [await source.poll(cursor)]
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    return batches[-1].cursor, batches


async def records(source: Journal) -> list[LogRecord]:
    _, batches = await read(source)
    return [record for batch in batches for record in batch.records]


def ops_in(found: Iterable[LogRecord]) -> list[object]:
    correlator = Correlator()
    correlator.feed(found)
    return sorted(map(seen, correlator.ops()), key=str)


async def test_ops_of_a_capture_are_as_they_were() -> None:
    assert ops_in(await records(whole(one_journal("docker")))) == sorted(true_ops("docker"), key=str)


async def test_without_the_containers_too() -> None:
    journal = MemoryJournal(supervisor_rows("docker"))
    assert ops_in(await records(whole(journal))) == sorted(true_ops("docker"), key=str)


async def test_two_hosts_in_any_order() -> None:
    supervisor = await records(whole(MemoryJournal(in_order(supervisor_rows("docker")))))
    docker = await records(whole(MemoryJournal(in_order(container_rows("docker"))), "docker7"))
    wanted = sorted(true_ops("docker"), key=str)
    assert ops_in([*supervisor, *docker]) == wanted
    assert ops_in([*docker, *supervisor]) == wanted


async def test_every_sent_op_has_arrived_where_containers_are_read() -> None:
    def missing(found: Iterable[LogRecord]) -> int:
        correlator = Correlator()
        correlator.feed(found)
        return sum(op.sends > 0 and op.arrived_at is None for op in correlator.ops())

    assert missing(await records(whole(MemoryJournal(supervisor_rows("docker"))))) > 0
    assert missing(await records(whole(one_journal("docker")))) == 0


async def test_a_host_given_twice_counts_once() -> None:
    journal = one_journal("docker")
    copies = MemoryJournal(in_order([*journal.rows[::-1]]))
    correlator = Correlator()
    first, second = whole(journal), whole(copies, "copies")
    cursors: list[str | None] = [None, None]
    more = True
    while more:
        more = False
        for at, source in enumerate((first, second)):
            batch = await source.poll(cursors[at])
            cursors[at] = batch.cursor
            correlator.feed(batch.records)
            more |= batch.more
    assert sorted(map(seen, correlator.ops()), key=str) == sorted(true_ops("docker"), key=str)
