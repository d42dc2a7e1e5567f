"""A journal that is written while it is read: by a source, by pages, by a command that follows."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from jobtui.backends.journal.opening import maker_of, open_journal
from jobtui.backends.journal.page_lines import Selection, matches_of
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.streams import Stream, StreamKind, StreamNames, Wanted
from jobtui.model.clock import Nanos
from jobtui.model.pages import LogLine
from jobtui.model.specs import SourceSpec
from tests.backends.journal.live import writer
from tests.backends.journal.make import entry, needs_journal_tools
from tests.journal_captures import exported, supervisor_rows
from tests.waiting import LONG_S

pytestmark = needs_journal_tools
UNIT = "sirepo_job_supervisor.service"
LINE = (
    "sirepo/job_supervisor.py:12:send _Op(run, abc{}) runDir=/srv/db/user/VUlhaMOD/myapp/HrCJ26rQ/animation"
)


def lines(begin: int, end: int) -> list[bytes]:
    return [
        entry(n, LINE.format(n % 10), _SYSTEMD_UNIT=UNIT, _PID=7, at_us=time.time_ns() // 1_000 + n)
        for n in range(begin, end)
    ]


async def test_what_is_written_is_read_once_and_soon(tmp_path: Path) -> None:
    with writer(tmp_path) as journal:
        journal.write(lines(0, 20))
        source = open_journal(SourceSpec("journal", str(tmp_path)), Nanos(0))
        found: list[str] = []
        cursor: str | None = None
        for end in (20, 21, 60, 61):
            if end > 20:
                journal.write(lines(len(found), end))
            async with asyncio.timeout(LONG_S / 2):
                while len(found) < end:
                    batch = await source.poll(cursor)
                    cursor = batch.cursor
                    found += [record.cursor or "" for record in batch.records]
                    if not batch.more and len(found) < end:
                        await source.changed(LONG_S)
            assert len(found) == len(set(found)) == end
        await source.aclose()


async def test_pages_grow_with_it(tmp_path: Path) -> None:
    with writer(tmp_path) as journal:
        journal.write(lines(0, 30))
        stream = Stream(StreamKind.UNIT, UNIT, "node1")
        selection = Selection(StreamNames("j"), Wanted(), [stream], matches_of([stream]))
        pages = JournalPages("j", maker_of(str(tmp_path)), selection)
        shown: tuple[LogLine, ...] = ()
        for end in (30, 31, 90):
            if shown:
                journal.write(lines(len(shown), end))
            async with asyncio.timeout(LONG_S):
                while True:
                    await pages.look()
                    shown = (await pages.before(1 << 200, 500)).lines
                    if len(shown) == end:
                        break
                    await pages.changed(1.0)
        assert [line.place for line in shown] == sorted({line.place for line in shown})
        await pages.aclose()


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
