"""A capture of Sirepo in real journal files, read in every way there is, also while it is written."""

from pathlib import Path

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from tests.analysis.captured import seen, true_ops
from tests.backends.journal.make import needs_journal_tools
from tests.backends.journal.readers import Way, each_program
from tests.journal_captures import container_rows, supervisor_rows

pytestmark = needs_journal_tools


async def read(source: Journal, correlator: Correlator) -> int:
    count, cursor, more = 0, None, True
    while more:
        batch = await source.poll(cursor)
        count += batch.count
        correlator.feed(batch.records)
        cursor, more = batch.cursor, batch.more
    return count


@each_program
async def test_ops_are_as_they_were_and_all_that_were_sent_have_arrived(way: Way, journals: Path) -> None:
    with way.open(journals) as make_reader:
        source = Journal("captured", make_reader, since=Nanos(0))
        correlator = Correlator()
        count = await read(source, correlator)
        assert count == len(supervisor_rows("docker")) + len(container_rows("docker"))
        assert sorted(map(seen, correlator.ops()), key=str) == sorted(true_ops("docker"), key=str)
        assert not [op for op in correlator.ops() if op.sends and op.arrived_at is None]
        again = Journal("again", make_reader, since=Nanos(0))
        await read(again, correlator)
        assert sorted(map(seen, correlator.ops()), key=str) == sorted(true_ops("docker"), key=str)
        await source.aclose()
        await again.aclose()
