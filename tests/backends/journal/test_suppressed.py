"""What journald says that it dropped is a gap, whatever way the journal is read.

The entry is one as journald's `server_driver_message` makes it (MESSAGE_ID of SD_MESSAGE_JOURNAL_DROPPED). It
only drops what has a unit, so no journald can be brought to it where no systemd runs.
"""

from pathlib import Path

from jobtui.backends.journal.page_lines import Selection
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from tests.backends.journal.make import START_US, entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import Way, each_way

pytestmark = [needs_journal_tools, each_way]

UNIT = "sirepo_job_supervisor.service"
LINE = "Nov 14 22:13:20     7     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, None)"
DROPPED = {
    "SYSLOG_IDENTIFIER": "systemd-journald",
    "_TRANSPORT": "driver",
    "_SYSTEMD_UNIT": "systemd-journald.service",
    "MESSAGE_ID": "a596d6fe7bfa4994828e72309e95d61e",
    "PRIORITY": "4",
}


async def test_it_is_told_with_its_unit_its_number_and_its_times(way: Way, tmp_path: Path) -> None:
    said = entry(40, f"Suppressed 2431 messages from {UNIT}", N_DROPPED="2431", UNIT=UNIT, **DROPPED)
    other = entry(41, "Suppressed 5 messages from cron.service")  # not by journald: a line like any other
    own = [entry(n, LINE, _SYSTEMD_UNIT=UNIT, _PID="7") for n in (0, 1, 42)]
    make_journal(tmp_path, [*own[:2], said, other, own[2]])
    with way.open(tmp_path) as make:
        source = Journal("it", make, since=Nanos(1))
        batch = await source.poll(None)
        while batch.more:
            batch = await source.poll(batch.cursor)
        (gap,) = source.gaps
        assert gap.what == UNIT
        assert "dropped 2431 messages" in gap.why
        assert gap.end == Nanos((START_US + 40_000_000) * 1_000)
        pages = JournalPages("it", make, Selection(source.names, source.wanted, None, source.matches))
        page = await pages.before((await pages.look()).end, 100)
        assert [line.is_gap for line in page.lines] == [False, False, True, False]
        assert "dropped 2431 messages" in page.lines[2].text
        await pages.aclose()
        await source.aclose()
