"""However often logs are read back while they are written and rotated: no op is lost, doubled or another.

Only some ops are kept, so that those that were dropped come again. Seeds choose what is read, and when. The
logs are doubled, also by a journal that begins later than they do, or goes further back.
"""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from benchmarks.endurance import differences
from benchmarks.site import Site, held, op_of
from benchmarks.site_logs import WAYS
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.journal.source import Journal
from jobtui.backends.log_start import FromStart
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.session import Session
from jobtui.transport.blocks import Limits
from tests.backends.log_fakes import log_file
from tests.journal_memory import T0, MemoryJournal

SEEDS = range(6)
KEPT, RATE, STEPS = 60, 8.0, 14
UNIT = "sirepo_job_supervisor.service"


async def some_of(session: Session, chance: random.Random) -> None:
    for poller in chance.choices(session._pollers, k=chance.randint(0, 3)):
        await poller.poll_once()


async def reach_back(session: Session, site: Site, chance: random.Random) -> None:
    at = Nanos(1)
    if chance.random() < 0.5:
        await session.catch_up()  # what lies before that was read
        at = Nanos(site._world.kernel.now - chance.randint(0, STEPS) * SECOND)
    await session.reach_back(at)


async def check(session: Session, site: Site) -> None:
    with held(site, at_rest=True):
        await session.catch_up()
        correlation = session.store.correlation
        told = {"ops": [*map(op_of, correlation.ops())], "dropped": correlation.dropped_ops}
        assert differences(told, site) == (0, 0, ())


class JournalOfLog(MemoryJournal):
    """A journal with the lines of a site's log, of which the oldest go when the log is rotated."""

    def __init__(self, site: Site, kept: int) -> None:
        super().__init__()
        self._site = site
        self._kept = kept
        self._at = 0

    def write(self, data: bytes) -> None:  # type: ignore[override]
        for line in data.decode().splitlines():
            self._at = max(self._at + 1_000, self._site._world.kernel.now)
            identity: dict[str, str | int] = {"boot": "b", "machine": "c", "monotonic_us": self._at // 1_000}
            super().write(line, (self._at - T0) / SECOND, unit=UNIT, host="site", pid=14458, **identity)

    def rotate(self) -> None:
        self.delete_oldest(max(0, len(self.rows) - self._kept))

    def close(self) -> None:
        """There is nothing to close."""


def rotate(site: Site, chance: random.Random) -> None:
    site.rotate(chance.choice(list(WAYS)))
    for log in site._logs.logs.values():
        log.path.touch()
        log.copy.touch()


def log_files(site: Site, chance: random.Random) -> list[LogFile | Journal]:
    limits = Limits(batch_records=chance.choice((20, 2_000)))
    return [
        log_file(path, start=FromStart(), limits=limits)
        for log in site._logs.logs.values()
        for path in (log.path, log.copy)
    ]


def journal_of(site: Site, chance: random.Random) -> Journal:
    """A journal that began at some time in the past of the site."""
    kept = JournalOfLog(site, chance.choice((200, 1_000, 100_000)))
    site._logs._journal = kept  # type: ignore[assignment]
    for _ in range(chance.randint(0, 6)):
        site.step(1.0)
        if chance.random() < 0.3:
            rotate(site, chance)
    kept.delete_oldest(chance.choice((0, len(kept.rows) // 2)))
    since = Nanos(site._world.kernel.now - chance.choice((1, 3, 8)) * SECOND)
    return Journal("local", lambda: kept.reader("local"), since=since)


async def live(session: Session, site: Site, chance: random.Random) -> None:
    for _ in range(STEPS):
        site.step(1.0)
        await some_of(session, chance)
        if chance.random() < 0.5:
            await session.catch_up()
            rotate(site, chance)
        if chance.random() < 0.2:
            await reach_back(session, site, chance)
        if chance.random() < 0.1:
            await check(session, site)
    await reach_back(session, site, chance)
    await check(session, site)


@pytest.mark.parametrize("has_journal", [False, True], ids=["", "with a journal"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_reading_back_costs_no_op_and_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, has_journal: bool
) -> None:
    monkeypatch.setattr(Correlator.__init__, "__defaults__", (KEPT, 1 << 30))
    monkeypatch.setattr(LogFile, "begins_after", lambda *_: True)
    chance = random.Random(seed)
    minute = Nanos((time.time_ns() // (60 * SECOND) - chance.choice((0, 2))) * 60 * SECOND)
    site = Site(str(tmp_path), RATE, seed, start=Nanos(minute + chance.randrange(SECOND)))
    logs = log_files(site, chance)
    if has_journal:
        logs = [
            log
            for log in logs
            if log.name == str(site._logs.logs["supervisor"].path) or chance.random() < 0.7
        ]
        logs.insert(chance.randrange(len(logs) + 1), journal_of(site, chance))
    async with Session(logs) as session:
        await session.reach_back(Nanos(1))  # in the order of time, wherever each begins
        await live(session, site, chance)
    assert site.lived().ops > 2 * KEPT


CAPTURE = Path(__file__).parent / "fixtures/sirepo/local/supervisor.log"


def told(correlator: Correlator) -> list[tuple[object, ...]]:
    return [
        (op.op, op.name, op.jid, op.sends, op.replies, op.updates, len(op.steps)) for op in correlator.ops()
    ]


def fed(records: Sequence[LogRecord]) -> Correlator:
    correlator = Correlator()
    correlator.feed(records)
    return correlator


def test_an_op_is_the_same_from_a_journal_that_tells_times_more_exactly() -> None:
    data = CAPTURE.read_bytes()
    parser = LogParser(str(CAPTURE))
    records = parser.parse(data, 0, 1, Nanos(CAPTURE.stat().st_mtime_ns)).records
    exact = [
        record if record.at is None else msgspec.structs.replace(record, at=Nanos(record.at + SECOND // 2))
        for record in records
    ]
    whole = fed(records)
    expected = told(whole)
    whole.take_in(fed(exact))
    assert told(whole) == expected
    rest = fed(records[len(records) // 2 :])
    rest.take_in(fed(exact[: len(exact) * 2 // 3]))
    assert told(rest) == expected
