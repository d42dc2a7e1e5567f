"""A capture of Sirepo in real journal files, read in every way there is, also while it is written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.journal.source import Journal
from jobtui.logs.journal import JournalPages, Selection, matches_of
from jobtui.model.clock import Nanos
from jobtui.model.pages import LogLine
from tests.analysis.captured import seen, true_ops
from tests.backends.journal.live import writer
from tests.backends.journal.make import START_US, entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import Way, each_program
from tests.journal_captures import container_rows, exported, supervisor_rows
from tests.waiting import LONG_S

pytestmark = needs_journal_tools
LAST = 1 << 200


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


@each_program
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


UNIT = "sirepo_job_supervisor.service"
LINE = "Nov 14 22:13:20     7     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, None)"
DROPPED = {
    "SYSLOG_IDENTIFIER": "systemd-journald",
    "_TRANSPORT": "driver",
    "_SYSTEMD_UNIT": "systemd-journald.service",
    "MESSAGE_ID": "a596d6fe7bfa4994828e72309e95d61e",
    "PRIORITY": "4",
}


@each_program
async def test_what_journald_dropped_is_told(way: Way, tmp_path: Path) -> None:
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


JID = "VUlhaMOD-fuSjgiZf-activityAnimation"
LAST_WORDS = f"canceling after reload jid={JID}"


def test_a_command_follows_it(tmp_path: Path) -> None:
    rows = supervisor_rows("docker")
    last = next(n for n, (row, _) in enumerate(rows) if LAST_WORDS in row.message)
    fixture = Path(__file__).parents[2] / "fixtures" / "sirepo" / "docker"
    words = ["logs", JID, "-f", "--json", "--srdb", str(fixture), "--journal", str(tmp_path)]
    with writer(tmp_path) as journal:
        journal.write([exported(rows[:last])])
        process = subprocess.Popen(
            [sys.executable, "-m", "jobtui", *words, "--since", "2026-11-20T20:00:00Z"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert process.stdout is not None
        try:
            until(process.stdout, "new status=running")
            journal.write([exported(rows[last:])])
            until(process.stdout, LAST_WORDS)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(LONG_S)
            process.stdout.close()
        assert process.returncode == 0


def until(output: IO[bytes], words: str) -> None:
    """Read JSON lines up to one whose text has these words."""
    while line := output.readline():
        if words in json.loads(line)["text"]:
            return
    raise AssertionError(f"it ended without {words}")
