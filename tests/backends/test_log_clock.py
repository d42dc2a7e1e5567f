"""The zone of a log's lines, learned from records of the same jobs. A log in UTC is never shifted."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from jobtui.demo.incidents import INCIDENTS
from jobtui.model.clock import SECOND, LogClock, Nanos
from tests.analysis.explain.cases import played
from tests.backends.log_fakes import log_file
from tests.demo.sites import DriverName
from tests.polling import polled
from tests.rows import CAPTURES

STAMP = re.compile(rb"^[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d", re.MULTILINE)
LOGS = sorted(path for path in CAPTURES.glob("*/*.log") if path.parent.name != "legacy-2020")


def in_zones(log: bytes, first: int, then: int | None = None, turn: int = 0) -> bytes:
    """A log in UTC in another zone, in minutes, and from a time on, in seconds, in a second one."""

    def local(found: re.Match[bytes]) -> bytes:
        at = datetime.strptime(f"2026 {found[0].decode()} +0000", "%Y %b %d %H:%M:%S %z")
        minutes = first if then is None or at.timestamp() < turn else then
        return (at + timedelta(minutes=minutes)).strftime("%b %d %H:%M:%S").encode()

    return STAMP.sub(local, log)


async def read(log: Path, root: Path) -> tuple[list[Nanos | None], str]:
    """The times of its lines, and the zone that was learned, in words."""
    source = log_file(log)
    source.others = lambda: (SirepoDb(root), source)
    found = [record.at for batch in await polled(source) for record in batch.records]
    return found, source.clock_of_lines.words


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_lines_of_another_zone_have_the_times_of_those_in_utc(log: Path, tmp_path: Path) -> None:
    (true, words), data = await read(log, log.parent), log.read_bytes()  # noqa: ASYNC240
    assert words == ""
    times = sorted(at // SECOND for at in true if at is not None) or [0]
    copy, stamped = tmp_path / log.name, log.stem == "supervisor" and "docker" not in log.parent.name
    zones = {(-240,): "UTC-04:00", (345,): "UTC+05:45"}
    for given, said in (*zones.items(), ((-240, -300, times[len(times) // 2]), "UTC-04:00, then UTC-05:00")):
        copy.write_bytes(in_zones(data, *given))
        found, words = await read(copy, log.parent)
        has_both = len(given) == 1 or "debug" not in log.parent.name  # in a short one two events are before
        if has_both and (stamped or (words and len(given) == 1)):
            assert (words, found) == (f"writes local time, {said}", true)


@pytest.mark.parametrize("name", INCIDENTS)
async def test_a_simulated_log_in_utc_is_not_shifted(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        played(name, seed, DriverName.LOCAL, 420).write(place := tmp_path / str(seed))
        assert (await read(place / "supervisor.log", place))[1] == ""


def test_events_that_do_not_agree_change_nothing() -> None:
    clock, at = LogClock(), Nanos(1_795_200_000 * SECOND)
    for hours in (1, 2, 0, 1, 2, 0):
        at = Nanos(at + 60 * SECOND)
        clock.learn([(at, [Nanos(at + hours * 3_600 * SECOND)])])
    assert (clock.words, clock.utc(at, 7)) == ("", at)
