"""A capture of Sirepo in real journal files, one for each host, read in every way there is."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.backends.journal.page_lines import Selection, matches_of
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from jobtui.model.pages import LogLine
from tests.analysis.captured import seen, true_ops
from tests.backends.journal.make import make_journal, needs_journal_tools
from tests.backends.journal.readers import Way, each_way
from tests.journal_captures import container_rows, exported, supervisor_rows

pytestmark = needs_journal_tools
LAST = 1 << 200


@pytest.fixture(scope="module")
def journals() -> Iterator[Path]:
    """A directory of what the supervisor's host and the docker host have."""
    with TemporaryDirectory() as text:
        directory = Path(text) / "journals"
        make_journal(directory, [exported(supervisor_rows("docker"))], "remote-v3.journal")
        make_journal(directory, [exported(container_rows("docker"))], "remote-docker7.journal")
        yield directory


async def read(source: Journal, correlator: Correlator) -> int:
    count, cursor, more = 0, None, True
    while more:
        batch = await source.poll(cursor)
        count += batch.count
        correlator.feed(batch.records)
        cursor, more = batch.cursor, batch.more
    return count


@each_way
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


@each_way
async def test_its_lines_are_read_both_ways(way: Way, journals: Path) -> None:
    with way.open(journals) as make_reader:
        source = Journal("captured", make_reader, since=Nanos(0))
        await read(source, Correlator())
        stream = source.streams["sirepo_job_supervisor@v3"]
        selection = Selection(source.names, source.wanted, [stream], matches_of([stream]))
        pages = JournalPages("supervisor", make_reader, selection)
        extent = await pages.look()
        found: list[LogLine] = []
        place, at_edge = LAST, False
        while not at_edge:
            page = await pages.before(place, 150)
            found[:0] = page.lines
            place, at_edge = page.lines[0].place, page.at_edge
        unit = ("_SYSTEMD_UNIT", (b"sirepo_job_supervisor.service",))
        true = [entry.message for entry, fields in supervisor_rows("docker") if unit in fields.items()]
        assert [line.text for line in found] == true
        assert list((await pages.after(extent.begin, len(true))).lines) == found
        middle = found[len(found) // 2]
        other = JournalPages("supervisor", make_reader, selection)
        assert (await other.after(middle.place, 1)).lines == (middle,)
        await pages.aclose()
        await other.aclose()
        await source.aclose()
